//! The storage traits: all durable I/O of the log and the index goes through them.
//!
//! `FileStorage` is the disk. Tests use `MemoryStorage`, and `FaultyStorage` for crashes and
//! failing disks. `ReadOnlyStorage` keeps changes in memory.

mod faulty;
mod file;
mod memory;
mod read_only;

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

pub use faulty::{Fault, FaultyStorage};
pub use file::FileStorage;
pub use memory::MemoryStorage;
pub use read_only::ReadOnlyStorage;

/// Bytes of a file. Cloning and slicing copy nothing; for files on disk the bytes are the pages of
/// the page cache.
pub type FileBytes = bytes::Bytes;

/// A directory tree of files. Names are relative, with `/` between directory and file.
pub trait Storage: Send + Sync {
    /// Lists the files of a directory, in order. A missing directory has none.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Creates a file of `len` zero bytes, replacing an existing one. The content and the name are
    /// durable when this returns.
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>>;
    /// Creates a file without allocating its blocks: faster to create, slower to write.
    fn create_unfilled(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        self.create(name, len)
    }
    /// Opens a file.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;
    /// Renames a file durably, replacing an existing one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file durably.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// One open file.
pub trait StorageFile: Send + Sync {
    /// The length when the file was opened, created or last truncated.
    fn len(&self) -> u64;
    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes bytes. A write beyond the end makes the file longer, but open readers do not see it.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes several pieces, one after the other.
    fn write_pieces_at(&self, offset: u64, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let whole: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.iter().copied())
            .collect();
        self.write_at(offset, &whole)
    }
    /// Makes all writes durable.
    fn sync(&self) -> io::Result<()>;
    /// Truncates the file durably. The caller makes sure that no reader needs the bytes beyond.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Reads a range. The result is shorter if the file ends before it.
    fn read(&self, range: Range<u64>) -> io::Result<FileBytes>;
}

/// Whether an error means that the disk or the quota is full.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "files that are mapped fit the address space"
)]
fn clamp_range(range: &Range<u64>, len: usize) -> Range<usize> {
    let end = range.end.min(len as u64) as usize;
    (range.start.min(end as u64) as usize)..end
}
