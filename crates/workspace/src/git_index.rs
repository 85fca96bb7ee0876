//! Private indexes, and trees made from them.
//!
//! A workspace has one saved index, which makes the next snapshot fast. Each operation works on a
//! copy with a name of its own, so two threads never wait for each other's lock file, and a lock that
//! a killed process left behind stops nothing. The last to finish saves its copy.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::WorkspaceError;
use crate::git::GitCall;
use crate::repository::{Repository, check_object_id, replace_file, short_key, unique_sibling};
use crate::tree::{FileMode, TreeFile, TreeName};

/// A temporary index. The file is removed at the end unless it is saved.
pub(crate) struct PrivateIndex<'a> {
    repository: &'a Repository,
    path: PathBuf,
    /// The index that the next snapshot begins with.
    saved: PathBuf,
}

/// One line of `update-index --index-info`.
pub(crate) struct IndexEdit<'a> {
    pub(crate) path: &'a [u8],
    /// `None` removes the path.
    pub(crate) file: Option<&'a TreeFile>,
}

impl<'a> PrivateIndex<'a> {
    /// An empty index.
    pub(crate) fn empty(repository: &'a Repository) -> Self {
        let key = short_key(&repository.workspace_in(&repository.top));
        let saved = repository.private_dir.join("indexes").join(key);
        Self {
            repository,
            path: unique_sibling(&saved),
            saved,
        }
    }

    /// An index that holds a tree.
    pub(crate) fn from_tree(
        repository: &'a Repository,
        tree: &str,
    ) -> Result<Self, WorkspaceError> {
        let index = Self::empty(repository);
        index.git().args(["read-tree", tree]).run()?;
        Ok(index)
    }

    /// The index of the last snapshot, brought up to date with the current commit: a file that is
    /// tracked there belongs to the workspace even if `.gitignore` matches it.
    pub(crate) fn from_last_snapshot(
        repository: &'a Repository,
        head: &str,
    ) -> Result<Self, WorkspaceError> {
        let index = Self::empty(repository);
        if index.copy_saved().is_err() {
            return Self::from_tree(repository, head);
        }
        let seeded_from = fs::read_to_string(index.head_file()).unwrap_or_default();
        if seeded_from == head {
            return Ok(index);
        }
        // Entries that are equal in both keep their file times, so those files are not read again.
        let reset = index.git().args(["read-tree", "--reset", head]).run();
        match reset {
            Ok(_) => Ok(index),
            // A damaged index only costs time.
            Err(WorkspaceError::GitFailed { .. }) => Self::from_tree(repository, head),
            Err(error) => Err(error),
        }
    }

    /// Copies the saved index together with its time. Git compares that time with the times of files:
    /// a file written in the same instant as the index is read again. With a later time, git would
    /// miss a second change within that instant.
    fn copy_saved(&self) -> std::io::Result<()> {
        let modified = fs::metadata(&self.saved)?.modified()?;
        fs::copy(&self.saved, &self.path)?;
        fs::File::options()
            .append(true)
            .open(&self.path)?
            .set_modified(modified)
    }

    /// Forgets the index of the last snapshot.
    pub(crate) fn discard_saved(repository: &Repository) {
        // It may not exist.
        fs::remove_file(&PrivateIndex::empty(repository).saved).unwrap_or_default();
    }

    /// Makes this the index that the next snapshot begins with.
    pub(crate) fn save(self, head: &str) -> Result<(), WorkspaceError> {
        // The index first: with an old commit beside it the next snapshot only does more work.
        fs::rename(&self.path, &self.saved).map_err(WorkspaceError::file("save", &self.saved))?;
        replace_file(&self.head_file(), head.as_bytes())
    }

    /// The commit from which the saved index was filled.
    fn head_file(&self) -> PathBuf {
        self.saved.with_extension("head")
    }

    /// A command that uses this index and the user's working tree.
    pub(crate) fn git(&self) -> GitCall {
        self.repository
            .private_git(&self.repository.top, &self.path)
    }

    /// Adds, replaces and removes entries.
    pub(crate) fn edit<'e>(
        &self,
        edits: impl IntoIterator<Item = IndexEdit<'e>>,
    ) -> Result<(), WorkspaceError> {
        let zero = self.repository.zero_id();
        let mut removals = Vec::new();
        let mut additions = Vec::new();
        for edit in edits {
            match edit.file {
                None => push_edit(&mut removals, "0", &zero, edit.path),
                Some(file) => {
                    let mode = file.mode.as_git_text();
                    push_edit(&mut additions, mode, &file.content, edit.path);
                }
            }
        }
        // Removals first, so that a directory may take the place of a file and the other way round.
        removals.extend(additions);
        if removals.is_empty() {
            return Ok(());
        }
        let call = self.git().args(["update-index", "-z", "--index-info"]);
        call.input(removals).run().map(drop)
    }

    /// Writes the whole index as a tree.
    pub(crate) fn write_tree(&self) -> Result<TreeName, WorkspaceError> {
        // A partial clone lacks the objects of some unchanged files. Without the flag, git would
        // reject the index or download them.
        let call = self.git().args(["write-tree", "--missing-ok"]);
        check_object_id(call.run_for_line()?, "git write-tree")?.parse()
    }

    /// Writes the part of the index below a directory, which ends with a slash, as a tree.
    pub(crate) fn write_subtree(&self, prefix: &[u8]) -> Result<TreeName, WorkspaceError> {
        if prefix.is_empty() {
            return self.write_tree();
        }
        if self.list_paths(prefix)?.is_empty() {
            return PrivateIndex::empty(self.repository).write_tree();
        }
        let call = self
            .git()
            .args(["write-tree", "--missing-ok"])
            .arg(prefixed_option(prefix));
        check_object_id(call.run_for_line()?, "git write-tree")?.parse()
    }

    /// Puts a tree in the place of everything below a directory, which ends with a slash.
    pub(crate) fn replace_subtree(
        &self,
        prefix: &[u8],
        tree: &TreeName,
    ) -> Result<(), WorkspaceError> {
        let paths = self.list_paths(prefix)?;
        self.edit(paths.iter().map(|path| IndexEdit { path, file: None }))?;
        self.git()
            .arg("read-tree")
            .arg(prefixed_option(prefix))
            .arg(tree.as_str())
            .run()
            .map(drop)
    }

    fn list_paths(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let call = self.git().args(["ls-files", "-z", "--"]);
        let output = call.arg(os_text(prefix)).run()?;
        Ok(split_records(&output.stdout).map(<[u8]>::to_vec).collect())
    }
}

impl Drop for PrivateIndex<'_> {
    fn drop(&mut self) {
        // It was saved, or it is not needed any more.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

fn push_edit(out: &mut Vec<u8>, mode: &str, content: &str, path: &[u8]) {
    out.extend(format!("{mode} {content}\t").bytes());
    out.extend(path);
    out.push(0);
}

fn prefixed_option(prefix: &[u8]) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from("--prefix=");
    option.push(os_text(prefix));
    option
}

/// Bytes as an argument.
pub(crate) fn os_text(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// The records of an output that ends each with NUL.
pub(crate) fn split_records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output
        .split(|byte| *byte == 0)
        .filter(|record| !record.is_empty())
}

/// Checks a tree out into a directory of ours, over whatever is there.
///
/// The index is the one of the worktree, so that `git status` is clean there afterwards. Git writes
/// the index last, so its existence shows that the checkout is complete.
pub(crate) fn check_out_tree(
    repository: &Repository,
    work_tree: &Path,
    index: &Path,
    tree: &TreeName,
) -> Result<(), WorkspaceError> {
    let call = repository.private_git(work_tree, index);
    call.args(["read-tree", "--reset", "-u", tree.as_str()])
        .run()
        .map(drop)
}

/// Reads the two modes and ids that begin a record of `--raw` output:
/// `:100644 100755 <id> <id> M`.
pub(crate) struct RawRecord {
    pub(crate) before: Option<TreeFile>,
    pub(crate) after: Option<TreeFile>,
    pub(crate) status: u8,
}

/// Parses the first part of a record of `--raw` output.
pub(crate) fn parse_raw_record(record: &[u8]) -> Option<RawRecord> {
    let mut fields = record.strip_prefix(b":")?.split(|byte| *byte == b' ');
    let (mode_before, mode_after) = (fields.next()?, fields.next()?);
    let (id_before, id_after) = (fields.next()?, fields.next()?);
    let status = *fields.next()?.first()?;
    // `:100644 000000 <id> <zeros> D`: the mode 000000 is no mode, so a missing file becomes `None`.
    let file = |mode, id: &[u8]| {
        let mode = FileMode::from_git_text(mode)?;
        let content = String::from_utf8(id.to_vec()).ok()?;
        Some(TreeFile { mode, content })
    };
    Some(RawRecord {
        before: file(mode_before, id_before),
        after: file(mode_after, id_after),
        status,
    })
}
