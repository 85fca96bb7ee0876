//! The socket's place: a directory of the user's own, one broker in it, nothing stale left in its
//! way.
//!
//! Whoever holds the lock beside the socket is the broker, so that of two that start at once one
//! gives way and a socket file is known to be stale when its maker was killed. The lock ends with
//! the process.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
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

/// What a file is, whatever its name.
type FileId = (u64, u64);

/// The socket as long as it is ours.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    uid: u32,
    lock: File,
    file: FileId,
}

impl Socket {
    /// Makes the directory, takes the lock, removes what is stale, listens.
    pub(super) fn bind(path: &Path, uid: u32) -> Result<(Self, UnixListener), SocketError> {
        own_directory(directory(path), uid)?;
        let lock = take_lock(path)?;
        let (listener, file) = listen(path)?;
        Ok((
            Self {
                path: path.to_owned(),
                uid,
                lock,
                file,
            },
            listener,
        ))
    }

    /// Listens again if the socket was removed; gives nothing when it is there. Whoever has taken
    /// the place meanwhile keeps it.
    pub(super) fn bind_again(&mut self) -> Result<Option<UnixListener>, SocketError> {
        if self.is_there() {
            return Ok(None);
        }
        own_directory(directory(&self.path), self.uid)?;
        let ours = self.lock.metadata().ok().map(|lock| file_id(&lock));
        if look_at(&lock_path(&self.path)) != ours {
            self.lock = take_lock(&self.path)?;
        }
        let (listener, file) = listen(&self.path)?;
        self.file = file;
        Ok(Some(listener))
    }

    fn is_there(&self) -> bool {
        look_at(&self.path) == Some(self.file)
    }

    /// Removes the socket, unless it is another's by now, then gives up the lock.
    pub(super) fn remove(self) {
        if !self.is_there() {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the broker's socket could not be removed");
        }
    }
}

fn directory(socket: &Path) -> &Path {
    socket.parent().unwrap_or(Path::new("/"))
}

fn lock_path(socket: &Path) -> PathBuf {
    directory(socket).join("broker.lock")
}

fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// What is at a path, if anything is.
fn look_at(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|found| file_id(&found))
}

/// Removes what is stale and listens.
fn listen(path: &Path) -> Result<(UnixListener, FileId), SocketError> {
    clear_stale(path)?;
    let failed = |what| {
        move |source| SocketError::Io {
            what,
            path: path.to_owned(),
            source,
        }
    };
    let listener = UnixListener::bind(path).map_err(failed("listen on"))?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed("protect"))?;
    let found = fs::symlink_metadata(path).map_err(failed("look at"))?;
    Ok((listener, file_id(&found)))
}

/// Makes the directory, or sees that one that is there is ours, and closes it to everybody else.
fn own_directory(dir: &Path, uid: u32) -> Result<(), SocketError> {
    let failed = |what| {
        move |source| SocketError::Io {
            what,
            path: dir.to_owned(),
            source,
        }
    };
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("make")(error));
        }
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

fn take_lock(socket: &Path) -> Result<File, SocketError> {
    let path = lock_path(socket);
    let failed = |source| SocketError::Io {
        what: "lock",
        path: path.clone(),
        source,
    };
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path);
    let file = opened.map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(SocketError::AlreadyRunning(socket.to_owned())),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Removes a socket that nobody listens on. One that somebody listens on, without the lock, stays.
fn clear_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |what| {
        move |source| SocketError::Io {
            what,
            path: path.to_owned(),
            source,
        }
    };
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
