//! The bare file: what the disk gives to a program that does nothing but write and sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Result;

/// A file of `bytes` zeros, on the disk, so that later writes neither allocate nor change its
/// length.
fn preallocate_file(path: &Path, bytes: u64) -> Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    // Written, not only declared: a hole in the file would be allocated by the writes that are timed.
    let zeros = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let part = usize::try_from(bytes - at)
            .unwrap_or(usize::MAX)
            .min(zeros.len());
        file.write_all_at(&zeros[..part], at)?;
        at += part as u64;
    }
    file.sync_all()?;
    Ok(file)
}

/// A preallocated file that is written round and round.
pub(super) struct BareFile {
    file: File,
    len: u64,
    at: u64,
}

impl BareFile {
    /// Creates it in `folder`.
    pub(super) fn create(folder: &Path, len: u64) -> Result<Self> {
        Ok(Self {
            file: preallocate_file(&folder.join("bare"), len)?,
            len,
            at: 0,
        })
    }

    /// One write and one sync.
    pub(super) fn write_synced(&mut self, bytes: &[u8]) -> Result<()> {
        // Back to the start: growing the file would measure the file system's allocation.
        if self.at + bytes.len() as u64 > self.len {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(self.file.sync_data()?)
    }
}
