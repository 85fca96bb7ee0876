//! Why an operation on a workspace failed. Outcomes that a caller handles (conflicts, a directory
//! that moved on) are no errors: the operations return them as values.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use turnkeep_types::BlobHash;

use crate::tree_path::PathError;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The git program cannot be started.
    #[error("cannot run `{program}`: {source}; install git or set its path")]
    GitMissing { program: String, source: io::Error },
    /// A git command failed.
    #[error("`{command}` failed ({status}): {stderr}")]
    GitFailed {
        command: String,
        status: String,
        /// The last lines of its error output.
        stderr: String,
    },
    /// A git command ran longer than the caller allows.
    #[error("`{command}` was stopped after {} s", limit.as_secs_f32())]
    GitTimedOut { command: String, limit: Duration },
    /// A git command printed more than is read.
    #[error("`{command}` printed more than {max} bytes")]
    GitOutputTooLarge { command: String, max: usize },
    /// A git command printed something else than its manual says.
    #[error("`{command}` printed an unexpected {what}")]
    GitOutputUnexpected { command: String, what: &'static str },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A path of a tree must not be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A run, node, turn or tree name has characters that such a name never has.
    #[error("`{0}` is not a valid name of a {1}")]
    BadName(String, &'static str),
    /// The snapshot would read too many files.
    #[error(
        "the workspace has more than {max} files to read; a git repository can leave files out with .gitignore"
    )]
    TooManyFiles { max: usize },
    /// The snapshot would read too many bytes.
    #[error(
        "the workspace has more than {max} bytes to read; a git repository can leave files out with .gitignore"
    )]
    TooManyBytes { max: u64 },
    /// A file of a tree is larger than what is read at a time.
    #[error("an object of {bytes} bytes is larger than the {max} bytes that are read")]
    ObjectTooLarge { bytes: u64, max: u64 },
    /// The caller's store failed.
    #[error("the blob store failed: {0}")]
    Blobs(#[source] io::Error),
    /// The caller's store has lost a blob.
    #[error("the store has no blob {0}")]
    MissingBlob(BlobHash),
    /// A blob is not a directory tree.
    #[error("the blob {0} is not a directory tree")]
    DamagedTree(BlobHash),
    /// Files changed during every attempt to record them.
    #[error("files kept changing while {} was recorded; try again", .0.display())]
    Unsteady(PathBuf),
    /// The operation needs a repository with a commit.
    #[error("{} is not in a git repository with a commit: {reason}", path.display())]
    NoRepository { path: PathBuf, reason: String },
    /// A directory is not one of ours.
    #[error("{} is not a worktree of this program and stays as it is", .0.display())]
    NotOurs(PathBuf),
    /// Git no longer knows a directory as a worktree, and a program has worked in it.
    #[error("{} is not connected to its repository any more; save its files, then delete it", .0.display())]
    Disconnected(PathBuf),
    /// A worktree has changes that are nowhere else.
    #[error("{} holds changes that are not applied: {}", path.display(), files.join(", "))]
    HoldsChanges { path: PathBuf, files: Vec<String> },
    /// An earlier write was stopped halfway and its rollback left files of the user's aside.
    #[error("{} holds files that could not be put back; move them where they belong", .0.display())]
    RollbackIncomplete(PathBuf),
}

impl WorkspaceError {
    /// A failed file operation, as a function for `map_err`.
    pub(crate) fn file<E>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Self
    where
        io::Error: From<E>,
    {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source: source.into(),
        }
    }
}
