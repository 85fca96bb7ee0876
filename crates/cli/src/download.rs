//! Writes an answer of the server that may be larger than memory to a file or to standard output.
//!
//! Exports hold everything that people and agents wrote, so only its owner may read the file (mode
//! 0600), whatever the umask is. It is written under an unused name in the same directory and gets
//! its own name when it is complete. It opens, follows and replaces no existing file unless the
//! caller says so.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use indicatif::ProgressBar;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::data_dir::random_bytes;
use crate::failure::Failure;
use crate::output::Output;

/// Only its owner may read the file.
const PRIVATE_MODE: u32 = 0o600;

/// Where a download goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Destination<'a> {
    Stdout,
    File {
        path: &'a Path,
        /// Whether a file of this name is replaced.
        replace: bool,
    },
}

impl<'a> Destination<'a> {
    /// The destination that a person names; `-` is standard output.
    pub(crate) fn new(path: &'a Path, replace: bool) -> Self {
        if path == Path::new("-") {
            Self::Stdout
        } else {
            Self::File { path, replace }
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(self) -> Option<&'a Path> {
        match self {
            Self::Stdout => None,
            Self::File { path, .. } => Some(path),
        }
    }

    /// Refuses a name that is taken before the server begins its work, which may take a while. The
    /// end checks again, because a file may appear meanwhile.
    pub(crate) fn refuse_taken_name(self) -> Result<()> {
        match self {
            Self::File {
                path,
                replace: false,
            } if path.symlink_metadata().is_ok() => Err(name_taken_error(path)),
            _ => Ok(()),
        }
    }

    /// Writes a body. Returns its length.
    pub(crate) async fn save(
        self,
        body: Incoming,
        bar: &ProgressBar,
        out: &mut Output,
    ) -> Result<u64> {
        let Self::File { path, replace } = self else {
            return copy_body(body, bar, |bytes| out.bytes(bytes)).await;
        };
        let mut file = UnfinishedFile::create_beside(path)?;
        let bytes = copy_body(body, bar, |bytes| file.write(bytes)).await?;
        file.publish(path, replace)?;
        Ok(bytes)
    }
}

/// The server stopped in the middle of an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer of the server broke off: {0}")]
pub(crate) struct BrokenAnswer(hyper::Error);

async fn copy_body(
    mut body: Incoming,
    bar: &ProgressBar,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(BrokenAnswer)?;
        if let Some(data) = frame.data_ref() {
            write(data)?;
            bytes += data.len() as u64;
            bar.set_position(bytes);
        }
    }
    Ok(bytes)
}

/// A new file that does not have its final name yet. Dropping it removes it.
struct UnfinishedFile {
    path: PathBuf,
    file: File,
    is_published: bool,
}

impl UnfinishedFile {
    /// Creates a file in the directory of `target`, under a name that no other program uses or can
    /// guess.
    fn create_beside(target: &Path) -> Result<Self> {
        let random = hex::encode(random_bytes::<8>()?);
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{random}.part"));
        let path = PathBuf::from(name);
        // `create_new` neither opens an existing file nor follows a link, even one that was
        // created a moment ago.
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE_MODE)
            .open(&path);
        let file = created.with_context(|| format!("cannot write {}", target.display()))?;
        let unfinished = Self {
            path,
            file,
            is_published: false,
        };
        // The umask may have taken the owner's own bits away.
        let mode = Permissions::from_mode(PRIVATE_MODE);
        let set = unfinished.file.set_permissions(mode);
        set.with_context(|| format!("cannot set the mode of {}", unfinished.path.display()))?;
        Ok(unfinished)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Gives the complete file its name.
    fn publish(mut self, target: &Path, replace: bool) -> Result<()> {
        let cannot = || format!("cannot write {}", target.display());
        // Content first, then the name: after a crash the name must not belong to an empty file.
        self.file.sync_all().with_context(cannot)?;
        if replace {
            fs::rename(&self.path, target).with_context(cannot)?;
        } else {
            rename_to_free_name(&self.path, target)?;
        }
        self.is_published = true;
        sync_parent(target).with_context(cannot)
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_published && fs::remove_file(&self.path).is_err() {
            let part = self.path.display();
            tracing::warn!(%part, "the unfinished file could not be removed");
        }
    }
}

/// A file that appeared under the name meanwhile stays.
fn rename_to_free_name(part: &Path, target: &Path) -> Result<()> {
    match renameat_with(CWD, part, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(name_taken_error(target)),
        // The file system cannot rename without replacing. A hard link refuses a taken name as well.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_and_remove(part, target),
        Err(errno) => Err(errno).with_context(|| format!("cannot write {}", target.display())),
    }
}

fn link_and_remove(part: &Path, target: &Path) -> Result<()> {
    match fs::hard_link(part, target) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(name_taken_error(target));
        }
        linked => linked.with_context(|| format!("cannot write {}", target.display()))?,
    }
    fs::remove_file(part).with_context(|| format!("cannot remove {}", part.display()))
}

/// Makes the new name durable.
fn sync_parent(path: &Path) -> std::io::Result<()> {
    // The parent of a bare name is the empty path, which cannot be opened.
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn name_taken_error(path: &Path) -> anyhow::Error {
    Failure::new(format!("{} exists already", path.display()))
        .hint("choose another name, or replace it with --force")
        .into()
}
