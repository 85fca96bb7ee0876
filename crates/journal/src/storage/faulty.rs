//! A disk in memory that fails at a chosen operation.
//!
//! It distinguishes the bytes that a process sees (the page cache) from the bytes that survive a
//! crash (the platter). Writes reach the platter when they are synced. Every operation that may
//! fail has a number. A test runs a workload once to count the operations, and then once per
//! operation and fault.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{FileBytes, MemoryStorage, Storage, StorageFile};

/// What goes wrong at an operation. A fault that does not apply to the operation happens at the
/// next one that it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Half of the written bytes reach the platter, and the power fails.
    TornWrite,
    /// Only the second half reaches the platter: a disk may write in any order.
    TornWriteBackwards,
    /// The sync fails. The unsynced bytes never reach the platter, but the process still sees them.
    FailedSync,
    /// Half of the bytes are written, then an error.
    ShortWrite,
    /// The disk is full: a creation fails, or a write fails after half of its bytes.
    NoSpace,
    /// The power fails before the operation.
    Crash,
}

const FAULTS_OF_WRITES: [Fault; 4] = [
    Fault::TornWrite,
    Fault::TornWriteBackwards,
    Fault::ShortWrite,
    Fault::NoSpace,
];

/// The disk. Clones share it.
#[derive(Clone)]
pub struct FaultyStorage {
    seen: MemoryStorage,
    disk: Arc<Mutex<Disk>>,
}

struct Disk {
    platter: BTreeMap<String, Vec<u8>>,
    /// Ranges written but not synced, by file.
    dirty: BTreeMap<String, Vec<Range<usize>>>,
    operations: u64,
    fault: Option<(u64, Fault)>,
    dead: bool,
}

impl FaultyStorage {
    /// An empty disk. The fault happens at the operation with the given number, from 0.
    pub fn new(fault: Option<(u64, Fault)>) -> Self {
        Self::with_files(BTreeMap::new(), fault)
    }

    /// A disk with these files.
    pub fn with_files(files: BTreeMap<String, Vec<u8>>, fault: Option<(u64, Fault)>) -> Self {
        let seen = MemoryStorage::with_files(files.clone());
        let disk = Disk {
            platter: files,
            dirty: BTreeMap::new(),
            operations: 0,
            fault,
            dead: false,
        };
        Self {
            seen,
            disk: Arc::new(Mutex::new(disk)),
        }
    }

    /// The number of operations so far.
    pub fn operations(&self) -> u64 {
        self.lock_disk().operations
    }

    /// The disk as a crash leaves it.
    pub fn crash(&self) -> MemoryStorage {
        MemoryStorage::with_files(self.lock_disk().platter.clone())
    }

    fn lock_disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation and returns the fault that happens at it.
    fn begin_operation(&self, fits: &[Fault]) -> io::Result<Option<Fault>> {
        let mut disk = self.lock_disk();
        if disk.dead {
            return Err(io::Error::other("the power is off"));
        }
        let number = disk.operations;
        disk.operations += 1;
        match disk.fault {
            Some((at, fault))
                if number >= at && (fits.contains(&fault) || fault == Fault::Crash) =>
            {
                disk.fault = None;
                // After a power failure every further operation fails until the test takes the
                // crash image.
                disk.dead |= matches!(
                    fault,
                    Fault::Crash | Fault::TornWrite | Fault::TornWriteBackwards
                );
                if fault == Fault::Crash {
                    return Err(io::Error::other("the power failed"));
                }
                Ok(Some(fault))
            }
            _ => Ok(None),
        }
    }
}

impl Storage for FaultyStorage {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.seen.list(dir)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        if self.begin_operation(&[Fault::NoSpace])?.is_some() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = self.seen.create(name, len)?;
        self.lock_disk().platter.insert(
            name.to_owned(),
            vec![0; usize::try_from(len).map_err(io::Error::other)?],
        );
        Ok(Arc::new(FaultyFile {
            name: name.to_owned(),
            file,
            storage: self.clone(),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = self.seen.open(name)?;
        Ok(Arc::new(FaultyFile {
            name: name.to_owned(),
            file,
            storage: self.clone(),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.begin_operation(&[])?;
        self.seen.rename(from, to)?;
        let mut disk = self.lock_disk();
        let content = disk.platter.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.platter.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.begin_operation(&[])?;
        self.seen.remove(name)?;
        self.lock_disk().platter.remove(name);
        Ok(())
    }
}

struct FaultyFile {
    name: String,
    file: Arc<dyn StorageFile>,
    storage: FaultyStorage,
}

impl StorageFile for FaultyFile {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let fault = self.storage.begin_operation(&FAULTS_OF_WRITES)?;
        let half = bytes.len() / 2;
        // Every fault of a write leaves one half, so recovery meets both a cut frame and a frame
        // without its header.
        let (skipped, written) = match fault {
            Some(Fault::TornWriteBackwards) => (half, &bytes[half..]),
            Some(_) => (0, &bytes[..half]),
            None => (0, bytes),
        };
        self.file.write_at(offset + skipped as u64, written)?;
        let start = usize::try_from(offset).map_err(io::Error::other)? + skipped;
        let mut disk = self.storage.lock_disk();
        disk.dirty
            .entry(self.name.clone())
            .or_default()
            .push(start..start + written.len());
        match fault {
            Some(Fault::TornWrite | Fault::TornWriteBackwards) => {
                disk.flush_file(&self.name, &self.file)?;
                Err(io::Error::other("the power failed in a write"))
            }
            Some(Fault::NoSpace) => Err(io::ErrorKind::StorageFull.into()),
            Some(_) => Err(io::Error::other("the write failed half way")),
            None => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let failed = self
            .storage
            .begin_operation(&[Fault::FailedSync])?
            .is_some();
        let mut disk = self.storage.lock_disk();
        if failed {
            // Like Linux: after a failed sync the pages count as clean and are never written.
            disk.dirty.remove(&self.name);
            return Err(io::Error::other("the sync failed"));
        }
        disk.flush_file(&self.name, &self.file)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.storage.begin_operation(&[])?;
        self.file.truncate(len)?;
        let len = usize::try_from(len).map_err(io::Error::other)?;
        if let Some(content) = self.storage.lock_disk().platter.get_mut(&self.name) {
            content.truncate(len);
        }
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> io::Result<FileBytes> {
        self.file.read(range)
    }
}

impl Disk {
    fn flush_file(&mut self, name: &str, file: &Arc<dyn StorageFile>) -> io::Result<()> {
        let ranges = self.dirty.remove(name).unwrap_or_default();
        let Some(content) = self.platter.get_mut(name) else {
            return Ok(());
        };
        for range in ranges {
            let bytes = file.read(range.start as u64..range.end as u64)?;
            let end = range.start + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[range.start..end].copy_from_slice(&bytes);
        }
        Ok(())
    }
}
