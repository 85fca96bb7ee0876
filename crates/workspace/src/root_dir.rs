//! Files below one directory, reached without following a symbolic link.
//!
//! Every component of a path is opened relative to its parent directory and must be a real directory.
//! So a directory that someone replaces by a link while we work leads to an error and never to a file
//! elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::tree::{FileContent, FileMode};
use crate::tree_path::TreePath;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The largest file that is read whole.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// A directory whose files are reached safely.
pub(crate) struct RootDir {
    pub(crate) path: PathBuf,
    fd: OwnedFd,
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    Nothing,
    File(FileContent),
    /// A directory, a device, a file too large to read, or a path through a symbolic link.
    Other,
}

/// A name in an open directory.
pub(crate) struct Place {
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
}

impl RootDir {
    /// Opens the directory itself; links in this first path are the caller's choice.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let fd = rustix::fs::open(&path, DIRECTORY, Mode::empty())?;
        Ok(Self { path, fd })
    }

    /// The directory as an open file.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Opens the directory around a path.
    pub(crate) fn locate(&self, path: &TreePath) -> io::Result<Place> {
        let mut directory = self.fd.try_clone()?;
        for name in path.directories() {
            directory = open_directory(&directory, OsStr::from_bytes(name))?;
        }
        Ok(Place::new(directory, path.name()))
    }

    /// Like [`Self::locate`], but creates missing directories.
    pub(crate) fn locate_or_create(&self, path: &TreePath) -> io::Result<Place> {
        let mut directory = self.fd.try_clone()?;
        for name in path.directories() {
            let name = OsStr::from_bytes(name);
            // If the name is taken by a file or a link, opening it as a directory fails below.
            match rustix::fs::mkdirat(&directory, name, Mode::from(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            directory = open_directory(&directory, name)?;
        }
        Ok(Place::new(directory, path.name()))
    }

    /// Whether a path is a directory that can be reached.
    pub(crate) fn has_directory(&self, path: &TreePath) -> bool {
        let opened = self
            .locate(path)
            .and_then(|place| open_directory(&place.directory, &place.name));
        opened.is_ok()
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_directory(&self, path: &TreePath) -> io::Result<()> {
        let place = self.locate(path)?;
        let removed = rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::REMOVEDIR);
        Ok(removed?)
    }

    /// Reads what is at a path.
    pub(crate) fn read(&self, path: &TreePath) -> io::Result<OnDisk> {
        match self.locate(path) {
            Ok(place) => place.read(),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => Ok(OnDisk::Nothing),
                // A file or a link is where the path has a directory. For a new file this is in the
                // way, so it is not nothing.
                Some(Errno::NOTDIR | Errno::LOOP) => Ok(OnDisk::Other),
                _ => Err(error),
            },
        }
    }

    /// Removes the directories around a path that are empty now.
    pub(crate) fn remove_empty_parents(&self, path: &TreePath) {
        for ancestor in path.ancestors() {
            let Ok(ancestor) = TreePath::new(ancestor) else {
                return;
            };
            // A directory that is not empty stays, and so do those around it.
            if self.remove_directory(&ancestor).is_err() {
                return;
            }
        }
    }
}

fn open_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?)
}

impl Place {
    fn new(directory: OwnedFd, name: &[u8]) -> Self {
        let name = OsStr::from_bytes(name).to_owned();
        Self { directory, name }
    }

    /// Reads what is at this place.
    pub(crate) fn read(&self) -> io::Result<OnDisk> {
        let stat = match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
        {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(OnDisk::Nothing),
            Err(error) => return Err(error.into()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.read_link(),
            FileType::RegularFile => self.read_file(),
            _ => Ok(OnDisk::Other),
        }
    }

    fn read_link(&self) -> io::Result<OnDisk> {
        let target = rustix::fs::readlinkat(&self.directory, &self.name, Vec::new())?;
        Ok(OnDisk::File(FileContent {
            mode: FileMode::Symlink,
            bytes: target.into_bytes(),
        }))
    }

    fn read_file(&self) -> io::Result<OnDisk> {
        // Without blocking: the file could have become a pipe since it was looked at.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())?;
        let mode = rustix::fs::fstat(&file)?.st_mode;
        if FileType::from_raw_mode(mode) != FileType::RegularFile {
            return Ok(OnDisk::Other);
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Ok(OnDisk::Other);
        }
        let mode = mode_of(mode);
        Ok(OnDisk::File(FileContent { mode, bytes }))
    }

    /// The permission bits of the file, if there is one.
    pub(crate) fn permissions(&self) -> Option<u32> {
        let stat =
            rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(stat.st_mode & 0o777)
    }

    /// Writes a new file and waits until it is on disk.
    pub(crate) fn create(&self, content: &FileContent, permissions: Option<u32>) -> io::Result<()> {
        if content.mode == FileMode::Symlink {
            let target = OsStr::from_bytes(&content.bytes);
            return Ok(rustix::fs::symlinkat(target, &self.directory, &self.name)?);
        }
        // `EXCL`: a file that appeared at this place in the meantime is never overwritten.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let is_executable = content.mode == FileMode::Executable;
        let initial = if is_executable { 0o777 } else { 0o666 };
        let file = rustix::fs::openat(&self.directory, &self.name, flags, Mode::from(initial))?;
        let mut file = File::from(file);
        file.write_all(&content.bytes)?;
        // Set again, because the umask has masked the mode of a new file.
        if let Some(permissions) = permissions {
            let mode = set_executable(permissions, is_executable);
            rustix::fs::fchmod(&file, Mode::from(mode))?;
        }
        file.sync_all()
    }

    /// Moves this file to another place, where nothing may be.
    pub(crate) fn move_to(&self, target: &Place) -> io::Result<()> {
        match self.rename_to(target, RenameFlags::NOREPLACE) {
            // A file system without the flag: a second link fails if the target exists.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                let (from, to) = (&self.directory, &target.directory);
                rustix::fs::linkat(from, &self.name, to, &target.name, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(from, &self.name, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    }

    /// Exchanges this file with another one. Returns `false` if the file system cannot.
    pub(crate) fn exchange_with(&self, target: &Place) -> io::Result<bool> {
        match self.rename_to(target, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn rename_to(&self, target: &Place, flags: RenameFlags) -> rustix::io::Result<()> {
        let (from, to) = (self.directory.as_fd(), target.directory.as_fd());
        rustix::fs::renameat_with(from, &self.name, to, &target.name, flags)
    }

    /// Removes this file.
    pub(crate) fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.directory,
            &self.name,
            AtFlags::empty(),
        )?)
    }
}

/// The mode of a regular file.
pub(crate) fn mode_of(st_mode: u32) -> FileMode {
    if st_mode & 0o100 == 0 {
        FileMode::Regular
    } else {
        FileMode::Executable
    }
}

/// Sets or clears the executable bits. Whoever may read an executable file may run it.
fn set_executable(permissions: u32, is_executable: bool) -> u32 {
    let readers = (permissions & 0o444) >> 2;
    if !is_executable {
        permissions & !0o111
    } else if permissions & 0o100 == 0 {
        permissions | readers
    } else {
        permissions
    }
}
