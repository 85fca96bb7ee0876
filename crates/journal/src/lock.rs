//! The data directory's lock: one process at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Held while a process owns a data directory; released when dropped, or when the process dies.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("the data directory {} is in use by another process (pid {pid}): stop it, or use another directory", .dir.display())]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The other process, as it wrote it down.
        pid: String,
    },
    /// The lock file cannot be opened or locked.
    #[error("the lock of the data directory {} cannot be taken: {source}", .dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DataDirLock {
    /// Takes the lock of a directory, which must exist.
    pub fn acquire(dir: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { dir: dir.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(dir.join("LOCK")).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = Vec::new();
                file.take(32).read_to_end(&mut pid).map_err(failed)?;
                let pid = String::from_utf8_lossy(&pid).trim().to_owned();
                return Err(LockError::Held { dir: dir.to_owned(), pid });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}
