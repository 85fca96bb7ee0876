//! Snapshots of a workspace outside any repository: every file becomes a blob of the store, every
//! directory a tree.
//!
//! Directories named `.git`, our own directories and special files are left out. Links are recorded
//! and not followed. Empty directories are not recorded, as in git.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use turnkeep_types::{BlobHash, Timestamp};

use crate::error::WorkspaceError;
use crate::landing::STAGING_PREFIX;
use crate::plain_cache::{FileStamp, HashCache};
use crate::plain_format::{DirectoryEntry, ENTRIES_MAX, EntryKind, encode_directory};
use crate::plain_trees::DEPTH_MAX;
use crate::repository::short_key;
use crate::root_dir::{RootDir, mode_of};
use crate::settings::Settings;
use crate::tree::{FileMode, SkipReason, SkippedFile, Snapshot, TreeName};
use crate::tree_path::{PathError, TreePath};

/// The store's blobs, as the caller provides them.
pub trait BlobStore: Send + Sync {
    /// Keeps a blob and returns its hash.
    fn put(&self, bytes: &[u8]) -> io::Result<BlobHash>;
    /// Reads a blob; `None` if the store has none with this hash.
    fn get(&self, hash: &BlobHash) -> io::Result<Option<Vec<u8>>>;
    /// Whether the store has a blob.
    fn contains(&self, hash: &BlobHash) -> io::Result<bool>;
}

/// Records a directory as a tree.
pub(crate) fn take_snapshot(
    settings: &Settings,
    blobs: &dyn BlobStore,
    root: &RootDir,
    now: Timestamp,
) -> Result<Snapshot, WorkspaceError> {
    let cache_dir = settings.state_dir.join("plain");
    std::fs::create_dir_all(&cache_dir).map_err(WorkspaceError::file("create", &cache_dir))?;
    let cache_file = cache_dir.join(short_key(&root.path));
    let mut recorder = Recorder {
        settings,
        blobs,
        root,
        now,
        known: HashCache::load(&cache_file),
        // A new cache, filled with the files of this snapshot, so that removed files leave it.
        next: HashCache::default(),
        own_directories: find_own_directories(settings),
        skipped: Vec::new(),
        files: 0,
        bytes_read: 0,
    };
    let fd = root.fd().try_clone();
    let fd = fd.map_err(WorkspaceError::file("open", &root.path))?;
    let entries = recorder.record_entries(&fd, &mut Vec::new(), 0)?;
    let hash = recorder.put(&encode_directory(&entries))?;
    recorder.next.save(&cache_file)?;
    Ok(Snapshot {
        tree: tree_name(hash)?,
        skipped: recorder.skipped,
    })
}

fn tree_name(hash: BlobHash) -> Result<TreeName, WorkspaceError> {
    hash.to_string().parse()
}

/// A directory by its numbers, which are the same through any link.
#[derive(PartialEq, Eq)]
struct DirectoryId {
    device: u64,
    inode: u64,
}

fn find_own_directories(settings: &Settings) -> Vec<DirectoryId> {
    settings
        .own_directories()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|found| DirectoryId {
            device: found.dev(),
            inode: found.ino(),
        })
        .collect()
}

struct Recorder<'a> {
    settings: &'a Settings,
    blobs: &'a dyn BlobStore,
    root: &'a RootDir,
    now: Timestamp,
    known: HashCache,
    next: HashCache,
    own_directories: Vec<DirectoryId>,
    skipped: Vec<SkippedFile>,
    files: usize,
    bytes_read: u64,
}

/// A file or directory that the recorder visits.
struct Visit<'a> {
    parent: &'a OwnedFd,
    name: &'a [u8],
    path: &'a mut Vec<u8>,
    depth: usize,
}

impl Visit<'_> {
    fn os_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name)
    }
}

impl Recorder<'_> {
    fn record_entries(
        &mut self,
        directory: &OwnedFd,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<Vec<DirectoryEntry>, WorkspaceError> {
        if depth > DEPTH_MAX {
            return Err(PathError(String::from_utf8_lossy(path).into_owned()).into());
        }
        let listed = list_names(directory);
        let names = listed.map_err(|error| self.file_error("list", path, error))?;
        let mut entries = Vec::new();
        for name in names {
            let length = path.len();
            path.extend(&name);
            let visit = Visit {
                parent: directory,
                name: &name,
                path,
                depth,
            };
            entries.extend(self.record_entry(visit)?);
            path.truncate(length);
        }
        // The decoder reads no larger directory, so a larger one could never be restored.
        if entries.len() > ENTRIES_MAX {
            return Err(WorkspaceError::TooManyFiles { max: ENTRIES_MAX });
        }
        Ok(entries)
    }

    fn record_entry(
        &mut self,
        mut visit: Visit<'_>,
    ) -> Result<Option<DirectoryEntry>, WorkspaceError> {
        let is_staging = visit.depth == 0 && visit.name.starts_with(STAGING_PREFIX.as_bytes());
        if visit.name == b".git" || is_staging {
            return Ok(None);
        }
        if TreePath::new(visit.name).is_err() {
            self.skip(visit.path, SkipReason::UnsafeName);
            return Ok(None);
        }
        let found = rustix::fs::statat(visit.parent, visit.os_name(), AtFlags::SYMLINK_NOFOLLOW);
        let Ok(stat) = found else {
            // It vanished since the directory was listed.
            return Ok(None);
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.record_directory(&mut visit, &stat),
            FileType::RegularFile => self.record_file(&visit, &stat),
            FileType::Symlink => self.record_link(&visit),
            _ => Ok(None),
        }
    }

    fn record_directory(
        &mut self,
        visit: &mut Visit<'_>,
        stat: &Stat,
    ) -> Result<Option<DirectoryEntry>, WorkspaceError> {
        let id = DirectoryId {
            device: stat.st_dev,
            inode: stat.st_ino,
        };
        // The data directory may lie inside the workspace, also under another name.
        if self.own_directories.contains(&id) {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Without following links: the directory could have been replaced since it was looked at.
        let opened = rustix::fs::openat(visit.parent, visit.os_name(), flags, Mode::empty());
        let Ok(directory) = opened else {
            self.skip(visit.path, SkipReason::Unreadable);
            return Ok(None);
        };
        visit.path.push(b'/');
        let entries = self.record_entries(&directory, visit.path, visit.depth + 1)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let hash = self.put(&encode_directory(&entries))?;
        Ok(Some(DirectoryEntry {
            name: visit.name.to_vec(),
            kind: EntryKind::Directory,
            size: 0,
            hash,
        }))
    }

    fn record_link(&mut self, visit: &Visit<'_>) -> Result<Option<DirectoryEntry>, WorkspaceError> {
        self.count_file(0)?;
        let target = rustix::fs::readlinkat(visit.parent, visit.os_name(), Vec::new());
        let Ok(target) = target else {
            return Ok(None);
        };
        let hash = self.put(target.as_bytes())?;
        Ok(Some(DirectoryEntry {
            name: visit.name.to_vec(),
            kind: EntryKind::File(FileMode::Symlink),
            size: target.as_bytes().len() as u64,
            hash,
        }))
    }

    fn record_file(
        &mut self,
        visit: &Visit<'_>,
        stat: &Stat,
    ) -> Result<Option<DirectoryEntry>, WorkspaceError> {
        let entry = |stamp: FileStamp, hash| DirectoryEntry {
            name: visit.name.to_vec(),
            kind: EntryKind::File(mode_of(stat.st_mode)),
            size: stamp.size,
            hash,
        };
        let stamp = stamp_of(stat);
        if let Some(hash) = self.find_known(visit.path, stamp)? {
            self.count_file(0)?;
            self.next.remember(visit.path, stamp, hash, self.now);
            return Ok(Some(entry(stamp, hash)));
        }
        if stamp.size > self.settings.limits.file_bytes_max {
            self.skip(visit.path, SkipReason::TooLarge);
            return Ok(None);
        }
        self.count_file(stamp.size)?;
        // The file may have changed since it was listed: it may be gone, unreadable, or too large now.
        let read = read_still_file(visit, self.settings.limits.file_bytes_max);
        let Ok(read) = read else {
            self.skip(visit.path, SkipReason::Unreadable);
            return Ok(None);
        };
        let Some(StillFile { bytes, stamp }) = read else {
            self.skip(visit.path, SkipReason::TooLarge);
            return Ok(None);
        };
        let hash = self.put(&bytes)?;
        self.next.remember(visit.path, stamp, hash, self.now);
        Ok(Some(entry(stamp, hash)))
    }

    /// The hash of an unchanged file. The store may have been replaced since, so it is asked too.
    fn find_known(
        &self,
        path: &[u8],
        stamp: FileStamp,
    ) -> Result<Option<BlobHash>, WorkspaceError> {
        let Some(hash) = self.known.find(path, stamp) else {
            return Ok(None);
        };
        let is_kept = self.blobs.contains(&hash).map_err(WorkspaceError::Blobs)?;
        Ok(is_kept.then_some(hash))
    }

    fn put(&self, bytes: &[u8]) -> Result<BlobHash, WorkspaceError> {
        self.blobs.put(bytes).map_err(WorkspaceError::Blobs)
    }

    fn count_file(&mut self, bytes: u64) -> Result<(), WorkspaceError> {
        let limits = self.settings.limits;
        self.files += 1;
        self.bytes_read = self.bytes_read.saturating_add(bytes);
        if self.files > limits.files_max {
            let max = limits.files_max;
            return Err(WorkspaceError::TooManyFiles { max });
        }
        if self.bytes_read > limits.total_bytes_max {
            let max = limits.total_bytes_max;
            return Err(WorkspaceError::TooManyBytes { max });
        }
        Ok(())
    }

    fn skip(&mut self, path: &[u8], reason: SkipReason) {
        let path = String::from_utf8_lossy(path).into_owned();
        self.skipped.push(SkippedFile { path, reason });
    }

    fn file_error(&self, action: &'static str, path: &[u8], source: io::Error) -> WorkspaceError {
        let path: PathBuf = self.root.path.join(OsStr::from_bytes(path));
        WorkspaceError::file(action, &path)(source)
    }
}

/// The names in a directory, sorted.
fn list_names(directory: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = CStr::to_bytes(entry.file_name());
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    names.sort();
    Ok(names)
}

/// The bytes of a file, with the stamp that belongs to them.
struct StillFile {
    bytes: Vec<u8>,
    stamp: FileStamp,
}

/// Reads a file. If someone writes it meanwhile, it is read again a few times, and the last bytes
/// count. The cache never remembers such a file, because it changed a moment ago. Returns `None` if
/// the file has grown beyond the limit.
fn read_still_file(visit: &Visit<'_>, bytes_max: u64) -> io::Result<Option<StillFile>> {
    const ATTEMPTS: usize = 3;
    // `NONBLOCK`: opening a named pipe that has replaced the file must not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let file = rustix::fs::openat(visit.parent, visit.os_name(), flags, Mode::empty())?;
        let mut file = File::from(file);
        let before = stamp_of(&rustix::fs::fstat(&file)?);
        let mut bytes = Vec::new();
        (&mut file).take(bytes_max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            return Ok(None);
        }
        let mut stamp = stamp_of(&rustix::fs::fstat(&file)?);
        if stamp == before || attempt == ATTEMPTS {
            stamp.size = bytes.len() as u64;
            return Ok(Some(StillFile { bytes, stamp }));
        }
    }
}

fn stamp_of(stat: &Stat) -> FileStamp {
    const SECOND_NS: i128 = 1_000_000_000;
    let nanoseconds = |seconds: i64, rest: u64| i128::from(seconds) * SECOND_NS + i128::from(rest);
    FileStamp {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        inode: stat.st_ino,
    }
}
