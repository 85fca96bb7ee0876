//! The socket's place: a directory of the user's own, one broker in it, nothing stale left in its way.
//!
//! Whoever holds the lock beside the socket is the broker, so that of two that start at once one gives way
//! and a socket file is known to be stale when its maker was killed. The lock ends with the process.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tokio::net::UnixListener;

/// Why the socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another broker listens there.
    #[error("a broker is already running on {0}")]
    AlreadyRunning(PathBuf),
    /// Something that is no socket is in the way.
    #[error("{0} is there and is no socket")]
    NotASocket(PathBuf),
    /// The directory is somebody else's.
    #[error("{0} is not a directory of this user's own")]
    NotOurs(PathBuf),
    /// The system refuses.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The socket as long as it is ours.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    _lock: File,
}

impl Socket {
    /// Makes the directory, takes the lock, removes what is stale, listens.
    pub(super) fn bind(path: &Path, uid: u32) -> Result<(Self, UnixListener), SocketError> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        own_directory(dir, uid)?;
        let lock = take_lock(dir, path)?;
        clear_stale(path)?;
        let failed = |what| move |source| SocketError::Io { what, path: path.to_owned(), source };
        let listener = UnixListener::bind(path).map_err(failed("listen on"))?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed("protect"))?;
        Ok((Self { path: path.to_owned(), _lock: lock }, listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the socket, then gives up the lock.
    pub(super) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the broker's socket could not be removed");
        }
    }
}

/// Makes the directory, or sees that one that is there is ours, and closes it to everybody else.
fn own_directory(dir: &Path, uid: u32) -> Result<(), SocketError> {
    let failed = |what| move |source| SocketError::Io { what, path: dir.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed("make")(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(dir).map_err(failed("look at"))?;
    if !found.is_dir() || found.uid() != uid {
        return Err(SocketError::NotOurs(dir.to_owned()));
    }
    if found.mode() & 0o777 != 0o700 {
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed("protect"))?;
    }
    Ok(())
}

fn take_lock(dir: &Path, socket: &Path) -> Result<File, SocketError> {
    let path = dir.join("broker.lock");
    let failed = |source| SocketError::Io { what: "lock", path: path.clone(), source };
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = opened.map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(SocketError::AlreadyRunning(socket.to_owned())),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Removes a socket that nobody listens on. One that somebody listens on, without the lock, stays.
fn clear_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |what| move |source| SocketError::Io { what, path: path.to_owned(), source };
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed("look at"))?,
    };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::AlreadyRunning(path.to_owned())),
        Err(_) => fs::remove_file(path).map_err(failed("remove")),
    }
}
