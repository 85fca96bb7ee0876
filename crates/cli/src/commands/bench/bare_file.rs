//! The bare file: what the disk gives to a program that does nothing but write and sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::figures::number;

/// Values in one write.
pub(super) const GROUP: usize = 256;
/// The file's length; writing starts over at its end.
const FILE_BYTES: u64 = 128 << 20;

/// A file of `bytes` zeros, on the disk, so that later writes neither allocate nor change its length.
pub(super) fn preallocate(path: &Path, bytes: u64) -> Result<File> {
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let part = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all_at(&zeros[..part], at)?;
        at += part as u64;
    }
    file.sync_all()?;
    Ok(file)
}

/// A preallocated file that is written round and round.
pub(super) struct BareFile {
    file: File,
    at: u64,
}

impl BareFile {
    /// Creates it in `folder`.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        Ok(Self { file: preallocate(&folder.join("bare"), FILE_BYTES)?, at: 0 })
    }

    /// One write and one sync.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.at + bytes.len() as u64 > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(self.file.sync_data()?)
    }

    /// Values per second in groups of [`GROUP`], and the median time of one write and sync.
    pub(super) fn run(&mut self, payload: usize, millis: u64) -> Result<(f64, Duration)> {
        let group = vec![0xA5; payload * GROUP];
        let mut times = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(millis) {
            let start = Instant::now();
            self.write(&group)?;
            times.push(start.elapsed());
        }
        let rate = number(times.len() * GROUP) / begin.elapsed().as_secs_f64();
        times.sort_unstable();
        Ok((rate, times.get(times.len() / 2).copied().unwrap_or_default()))
    }
}
