//! The broker's socket file: a private directory, one broker per path, no stale socket in the way.
//!
//! The broker is the process that holds the lock on `broker.lock` beside the socket. So if two
//! brokers start at once, one fails, and a socket file without a locked lock file is stale. The
//! system releases the lock when the process ends, however it ends.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tokio::net::UnixListener;

/// Why the broker cannot listen on its socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another broker listens there.
    #[error("a broker is already running on {0}")]
    AlreadyRunning(PathBuf),
    /// The path is taken by a file of another kind.
    #[error("{0} is there and is no socket")]
    NotASocket(PathBuf),
    /// The directory belongs to another user.
    #[error("{0} is not a directory of this user's own")]
    NotOurs(PathBuf),
    /// A system call failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Makes the error of an operation on `path`.
fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    move |source| SocketError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Identifies a file independently of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// The file at a path, if there is one.
    fn at_path(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some(Self::of_metadata(&metadata))
    }
}

/// The socket file and the lock of a running broker.
#[derive(Debug)]
pub(super) struct BoundSocket {
    path: PathBuf,
    uid: u32,
    lock: File,
    socket_file: FileId,
}

impl BoundSocket {
    /// Creates the directory, takes the lock, removes a stale socket, and listens.
    pub(super) fn bind(path: &Path, uid: u32) -> Result<(Self, UnixListener), SocketError> {
        prepare_directory(directory_of(path), uid)?;
        let lock = take_lock(path)?;
        let (listener, socket_file) = listen(path)?;
        let socket = Self {
            path: path.to_owned(),
            uid,
            lock,
            socket_file,
        };
        Ok((socket, listener))
    }

    /// Listens again if the socket's file was removed. Returns `None` if the file exists, and
    /// `AlreadyRunning` if another broker listens there.
    pub(super) fn bind_again(&mut self) -> Result<Option<UnixListener>, SocketError> {
        if self.owns_path() {
            return Ok(None);
        }
        prepare_directory(directory_of(&self.path), self.uid)?;
        // A lock on a removed file keeps no other broker away, so the new lock file is locked.
        let held = self.lock.metadata().ok();
        let held = held.map(|metadata| FileId::of_metadata(&metadata));
        if FileId::at_path(&lock_path(&self.path)) != held {
            self.lock = take_lock(&self.path)?;
        }
        let (listener, socket_file) = listen(&self.path)?;
        self.socket_file = socket_file;
        Ok(Some(listener))
    }

    /// Whether the file at the path is the one that this process created.
    fn owns_path(&self) -> bool {
        FileId::at_path(&self.path) == Some(self.socket_file)
    }

    /// Removes the socket's file, unless another broker has replaced it, and releases the lock.
    pub(super) fn remove(self) {
        if !self.owns_path() {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the broker's socket could not be removed");
        }
    }
}

fn directory_of(socket: &Path) -> &Path {
    socket.parent().unwrap_or(Path::new("/"))
}

fn lock_path(socket: &Path) -> PathBuf {
    directory_of(socket).join("broker.lock")
}

/// Removes a stale socket and listens. The caller holds the lock.
fn listen(path: &Path) -> Result<(UnixListener, FileId), SocketError> {
    remove_stale(path)?;
    let listener = UnixListener::bind(path).map_err(io_error("listen on", path))?;
    let owner_only = Permissions::from_mode(0o600);
    fs::set_permissions(path, owner_only).map_err(io_error("protect", path))?;
    let metadata = fs::symlink_metadata(path).map_err(io_error("look at", path))?;
    Ok((listener, FileId::of_metadata(&metadata)))
}

/// Creates the directory, or checks that the user owns an existing one. Its mode keeps other users out.
fn prepare_directory(dir: &Path, uid: u32) -> Result<(), SocketError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io_error("make", dir)(error));
        }
        _ => {}
    }
    // Not through a symbolic link: its target could be exchanged later.
    let metadata = fs::symlink_metadata(dir).map_err(io_error("look at", dir))?;
    if !metadata.is_dir() || metadata.uid() != uid {
        return Err(SocketError::NotOurs(dir.to_owned()));
    }
    if metadata.mode() & 0o777 != 0o700 {
        let owner_only = Permissions::from_mode(0o700);
        fs::set_permissions(dir, owner_only).map_err(io_error("protect", dir))?;
    }
    Ok(())
}

fn take_lock(socket: &Path) -> Result<File, SocketError> {
    let path = lock_path(socket);
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path);
    let file = opened.map_err(io_error("lock", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(SocketError::AlreadyRunning(socket.to_owned())),
        Err(errno) => Err(io_error("lock", &path)(errno.into())),
    }
}

/// Removes a socket without a listener. A program may listen there without the lock, for example
/// after the lock file was removed; its socket stays.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata.map_err(io_error("look at", path))?,
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    // The file of a socket outlives its process, and only a connection shows whether one listens.
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::AlreadyRunning(path.to_owned())),
        Err(_) => fs::remove_file(path).map_err(io_error("remove", path)),
    }
}
