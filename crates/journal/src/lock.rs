//! The data directory's lock: one process at a time.
//!
//! The kernel holds the lock (`flock` on the file `LOCK`) and releases it when the process ends,
//! however it ends. The file's content, a process id, only serves the error message.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

const LOCK_FILE: &str = "LOCK";
/// The most bytes that are read of the process id in the lock file.
const PID_BYTES_MAX: u64 = 32;

/// The lock of a data directory. Dropping it, or the end of the process, releases it.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

/// Why the lock could not be acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("the data directory {} is in use by another process (pid {pid}): stop it, or use another directory", .dir.display())]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The id of the other process, from the lock file.
        pid: String,
    },
    /// This process cannot write to the directory, and no other process holds the lock.
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
    /// Acquires the lock of an existing directory. Does not wait.
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
            Err(error) if is_denied(&error) => return Err(read_only_error(dir, error)),
            Err(error) => return Err(failed(error)),
        };
        lock_file(dir, &file)?;
        // Only after the lock is held: until then the content belongs to the other process.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Locks the open lock file. Returns an error with the holder's process id if it is locked.
fn lock_file(dir: &Path, file: &File) -> Result<(), LockError> {
    let failed = |source| LockError::Io {
        dir: dir.to_owned(),
        source,
    };
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            // The holder may not have written its id yet. The message then shows none.
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

/// Whether an error means that this user may not write the file.
fn is_denied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// The error for a directory that this process cannot write. A process of another user may still
/// serve it, so this tries the lock through a file that is opened for reading.
fn read_only_error(dir: &Path, source: io::Error) -> LockError {
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
