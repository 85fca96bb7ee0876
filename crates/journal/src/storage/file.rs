//! Files on disk, written with `pwrite` and read through a memory map.
//!
//! A file is mapped once, at its full length, when it is opened or created. On Linux a map and
//! writes to the same file share the page cache, so readers see every write. The log truncates a
//! file only behind the bytes that readers may still use, so no map is read past the file's end.
//!
//! This holds inside the process that owns the directory. Another process must copy the bytes that
//! it reads ([`FileStorage::copying`]): the owner may truncate a file at any moment, and reading a
//! map behind the end of its file kills the process with `SIGBUS`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{FileBytes, Storage, StorageFile, clamp_range};

/// New files are filled in pieces of this size, so that no segment is built in memory.
const ZEROS: &[u8] = &[0; 1 << 20];
/// The most pieces of one `pwritev` call (Linux allows 1024).
const PIECES_MAX: usize = 1024;

/// A directory on disk.
#[derive(Debug, Clone)]
pub struct FileStorage {
    root: PathBuf,
    read_mode: ReadMode,
}

/// How an existing file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    Mapped,
    Copied,
}

impl FileStorage {
    /// Uses the existing directory `root` and maps its files.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            read_mode: ReadMode::Mapped,
        }
    }

    /// Uses a directory that another process owns: bytes are copied, not mapped.
    pub fn copying(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            read_mode: ReadMode::Copied,
        }
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn create_file(
        &self,
        name: &str,
        len: u64,
        lengthen: fn(&File, u64) -> io::Result<()>,
    ) -> io::Result<Arc<dyn StorageFile>> {
        let path = self.path_of(name);
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent)?;
        let file = write_options()
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        if let Err(e) = lengthen(&file, len).and_then(|()| file.sync_all()) {
            // A partial file is useless, and it takes the space that the disk lacks.
            match fs::remove_file(&path) {
                Ok(()) | Err(_) => {}
            }
            return Err(e);
        }
        // A new name is durable only after its directory is synced, and each new parent likewise.
        for dir in parent
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.root))
        {
            sync_dir(dir)?;
        }
        let pages = map_pages(&file, len)?;
        Ok(Arc::new(MappedFile {
            path,
            file: file.into(),
            pages,
            len: len.into(),
        }))
    }
}

impl Storage for FileStorage {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path_of(dir)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        self.create_file(name, len, fill_with_zeros)
    }

    fn create_unfilled(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        self.create_file(name, len, File::set_len)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let path = self.path_of(name);
        let file = no_link_options().read(true).open(&path)?;
        let len = file.metadata()?.len();
        if self.read_mode == ReadMode::Copied {
            return Ok(Arc::new(CopiedFile { file, len }));
        }
        let pages = map_pages(&file, len)?;
        Ok(Arc::new(MappedFile {
            path,
            file: OnceLock::new(),
            pages,
            len: len.into(),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let to = self.path_of(to);
        fs::rename(self.path_of(from), &to)?;
        sync_dir(to.parent().unwrap_or(&self.root))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path_of(name);
        fs::remove_file(&path)?;
        sync_dir(path.parent().unwrap_or(&self.root))
    }
}

/// A file that another process may change. Every read is a copy; writes fail.
struct CopiedFile {
    file: File,
    len: u64,
}

impl StorageFile for CopiedFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    /// Reads a range. The result is shorter if the owner truncated the file meanwhile.
    fn read(&self, range: Range<u64>) -> io::Result<FileBytes> {
        let end = range.end.min(self.len);
        let mut bytes =
            vec![0; usize::try_from(end.saturating_sub(range.start)).map_err(io::Error::other)?];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, range.start + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes.into())
    }
}

struct MappedFile {
    path: PathBuf,
    /// Opened on the first write: sealed segments need a map but no file descriptor.
    file: OnceLock<File>,
    pages: FileBytes,
    len: AtomicU64,
}

impl MappedFile {
    fn writable_file(&self) -> io::Result<&File> {
        if self.file.get().is_none() {
            let opened = write_options().open(&self.path)?;
            return Ok(self.file.get_or_init(|| opened));
        }
        self.file
            .get()
            .ok_or_else(|| io::Error::other("the file is not open"))
    }
}

impl StorageFile for MappedFile {
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writable_file()?.write_all_at(bytes, offset)
    }

    fn write_pieces_at(&self, offset: u64, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let mut at = offset;
        for some in pieces.chunks(PIECES_MAX) {
            at = write_some_pieces(self.writable_file()?, at, some)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.writable_file()?.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        // First the length, so that no new read goes behind the new end, where a map has no pages.
        self.len.fetch_min(len, Ordering::AcqRel);
        self.writable_file()?.set_len(len)?;
        self.writable_file()?.sync_all()
    }

    fn read(&self, range: Range<u64>) -> io::Result<FileBytes> {
        let end = range.end.min(self.len());
        Ok(self
            .pages
            .slice(clamp_range(&(range.start..end), self.pages.len())))
    }
}

/// Writes pieces with as few system calls as possible. Returns the offset behind them.
fn write_some_pieces(file: &File, mut at: u64, pieces: &[IoSlice<'_>]) -> io::Result<u64> {
    let mut pieces = pieces.to_vec();
    let mut left = &mut pieces[..];
    // Drops empty pieces at the front. `pwritev` of nothing else would return 0, like a full disk.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::pwritev(file, left, at))?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut left, written);
        at += written as u64;
    }
    Ok(at)
}

fn write_options() -> OpenOptions {
    let mut options = no_link_options();
    options.read(true).write(true);
    options
}

/// Options that refuse a link in a file's place: it might lead out of the data directory.
fn no_link_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Writes zeros, which allocates the blocks. `fallocate` would leave them unwritten, and the first
/// sync of each would write metadata.
fn fill_with_zeros(file: &File, len: u64) -> io::Result<()> {
    let mut at = 0;
    while at < len {
        let part = &ZEROS[clamp_range(&(0..len - at), ZEROS.len())];
        file.write_all_at(part, at)?;
        at += part.len() as u64;
    }
    Ok(())
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn map_pages(file: &File, len: u64) -> io::Result<FileBytes> {
    if len == 0 {
        return Ok(FileBytes::new());
    }
    #[expect(
        unsafe_code,
        reason = "mapping is unsafe because another process could cut the file under us; the data \
                  directory is locked against our own kind, and we cut only beyond what is read"
    )]
    // SAFETY: see the reason above and the module's header.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(FileBytes::from_owner(map))
}
