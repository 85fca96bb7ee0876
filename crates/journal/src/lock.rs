//! The data directory's lock: one process at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

const LOCK_FILE: &str = "LOCK";
/// What is read of the process id in the lock file, at most.
const PID_BYTES_MAX: u64 = 32;

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
    /// Nothing can be written there, so there is nobody to lock out either.
    #[error("the data directory {} cannot be written: {source}", .dir.display())]
    ReadOnly {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
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
        let failed = |source| LockError::Io {
            dir: dir.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = match options.open(dir.join(LOCK_FILE)) {
            Ok(file) => file,
            Err(error) if is_denied(&error) => return Err(refuse_read_only(dir, error)),
            Err(error) => return Err(failed(error)),
        };
        lock_file(dir, &file)?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Locks the open lock file, or says who has it.
fn lock_file(dir: &Path, file: &File) -> Result<(), LockError> {
    let failed = |source| LockError::Io {
        dir: dir.to_owned(),
        source,
    };
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut pid = Vec::new();
            file.take(PID_BYTES_MAX)
                .read_to_end(&mut pid)
                .map_err(failed)?;
            let pid = String::from_utf8_lossy(&pid).trim().to_owned();
            Err(LockError::Held {
                dir: dir.to_owned(),
                pid,
            })
        }
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Whether an error means that the file may not be written, by this user or by anybody.
fn is_denied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// A directory that cannot be written here may still be served by a process that can write it: the
/// lock is the kernel's and can be asked for through a file that is only read.
fn refuse_read_only(dir: &Path, source: io::Error) -> LockError {
    if let Ok(file) = File::open(dir.join(LOCK_FILE))
        && let Err(held @ LockError::Held { .. }) = lock_file(dir, &file)
    {
        return held;
    }
    LockError::ReadOnly {
        dir: dir.to_owned(),
        source,
    }
}
