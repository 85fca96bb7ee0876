//! Where bytes are kept: a small door through which all durable I/O of the log and the index goes,
//! so that faults can be put behind it.

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

/// Bytes of a file; cheap to clone and to slice. For files on disk they are the page cache's own
/// pages.
pub type View = bytes::Bytes;

/// A directory tree of files. Names are relative, with `/` between directory and file.
pub trait Storage: Send + Sync {
    /// The names of the files in a directory, in order; none if it does not exist.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Creates a file of `len` zero bytes, replacing one of that name. It is durable, as is its
    /// name.
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>>;
    /// The same, without the disk setting the bytes aside: quicker to make, slower to write.
    fn create_unfilled(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        self.create(name, len)
    }
    /// Opens a file.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;
    /// Renames a file durably, replacing one of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file durably.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// One open file.
pub trait StorageFile: Send + Sync {
    /// Its length when it was opened, created or last cut.
    fn len(&self) -> u64;
    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes bytes; beyond the end the file grows, though not for readers that have it open.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes several pieces, one behind the other, as if they were one.
    fn write_pieces_at(&self, offset: u64, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let whole: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.iter().copied())
            .collect();
        self.write_at(offset, &whole)
    }
    /// Makes everything written durable.
    fn sync(&self) -> io::Result<()>;
    /// Cuts the file. Bytes beyond must not be read any more.
    fn cut(&self, len: u64) -> io::Result<()>;
    /// Reads a range; shorter where the file ends.
    fn read(&self, range: Range<u64>) -> io::Result<View>;
}

/// Whether an error means that there is no room on the disk.
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
fn clamp(range: &Range<u64>, len: usize) -> Range<usize> {
    let end = range.end.min(len as u64) as usize;
    (range.start.min(end as u64) as usize)..end
}
