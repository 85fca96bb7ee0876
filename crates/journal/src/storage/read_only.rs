//! A read-only directory: changes go to memory instead.
//!
//! A store on read-only media thus opens like any other. Recovery cuts a torn tail and writes
//! doubtful frames again, but only in memory, and the changes end with the process. Files under
//! `index/` are not written at all: a checkpoint would only take memory. Nothing is durable here, so
//! `sync` does nothing.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::{FileBytes, MemoryStorage, Storage, StorageFile};

/// Files that are not kept: checkpoints would only take memory.
const NOT_KEPT_PREFIX: &str = "index/";

/// The directory with its changes in memory. Clones share it.
#[derive(Clone)]
pub struct ReadOnlyStorage(Arc<Layers>);

struct Layers {
    below: Arc<dyn Storage>,
    /// New files, and copies of the files that were changed.
    above: MemoryStorage,
    /// Files of the directory below that were removed.
    removed: Mutex<BTreeSet<String>>,
}

impl ReadOnlyStorage {
    /// Reads `below` and never writes to it.
    pub fn over(below: Arc<dyn Storage>) -> Self {
        Self(Arc::new(Layers {
            below,
            above: MemoryStorage::new(),
            removed: Mutex::default(),
        }))
    }
}

impl Layers {
    fn lock_removed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies a file of the directory into memory, where it can change.
    fn copy_up(&self, name: &str, file: &dyn StorageFile) -> io::Result<Arc<dyn StorageFile>> {
        let copy = self.above.create(name, file.len())?;
        copy.write_at(0, &file.read(0..file.len())?)?;
        Ok(copy)
    }
}

impl Storage for ReadOnlyStorage {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let removed = self.0.lock_removed();
        let below = self.0.below.list(dir)?;
        let kept = below
            .into_iter()
            .filter(|name| !removed.contains(&format!("{dir}/{name}")));
        let names: BTreeSet<String> = kept.chain(self.0.above.list(dir)?).collect();
        Ok(names.into_iter().collect())
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        if name.starts_with(NOT_KEPT_PREFIX) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.0.above.create(name, len)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        if let Ok(file) = self.0.above.open(name) {
            return Ok(file);
        }
        if self.0.lock_removed().contains(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Copied into memory only when something writes to it.
        let below = self.0.below.open(name)?;
        let (layers, name) = (Arc::clone(&self.0), name.to_owned());
        Ok(Arc::new(ReadOnlyFile {
            layers,
            name,
            below,
            copy: OnceLock::new(),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        // The layer below cannot change, so the file moves to memory first.
        if self.0.above.open(from).is_err() {
            let file = self.open(from)?;
            self.0.copy_up(from, &*file)?;
        }
        self.0.above.rename(from, to)?;
        self.0.lock_removed().insert(from.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.open(name)?;
        // The file may exist only in the layer below.
        match self.0.above.remove(name) {
            Ok(()) | Err(_) => {}
        }
        self.0.lock_removed().insert(name.to_owned());
        Ok(())
    }
}

/// A file of the directory until it is changed, then a copy in memory.
struct ReadOnlyFile {
    layers: Arc<Layers>,
    name: String,
    below: Arc<dyn StorageFile>,
    copy: OnceLock<Arc<dyn StorageFile>>,
}

impl ReadOnlyFile {
    fn current_file(&self) -> &dyn StorageFile {
        &**self.copy.get().unwrap_or(&self.below)
    }

    fn writable_file(&self) -> io::Result<&dyn StorageFile> {
        if self.copy.get().is_none() {
            let copy = self.layers.copy_up(&self.name, &*self.below)?;
            return Ok(&**self.copy.get_or_init(|| copy));
        }
        Ok(self.current_file())
    }
}

impl StorageFile for ReadOnlyFile {
    fn len(&self) -> u64 {
        self.current_file().len()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writable_file()?.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.writable_file()?.truncate(len)
    }

    fn read(&self, range: Range<u64>) -> io::Result<FileBytes> {
        self.current_file().read(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_leave_the_directory_as_it_was() {
        let below = MemoryStorage::new();
        for name in ["log/a", "log/b", "log/c"] {
            below
                .create(name, 0)
                .unwrap()
                .write_at(0, name.as_bytes())
                .unwrap();
        }
        let before = below.files();
        let disk = ReadOnlyStorage::over(Arc::new(below.clone()));
        let open = disk.open("log/a").unwrap();
        open.truncate(3).unwrap();
        disk.remove("log/b").unwrap();
        disk.rename("log/c", "log/d").unwrap();
        disk.create("log/e", 2).unwrap();
        assert_eq!(disk.list("log").unwrap(), ["a", "d", "e"]);
        assert_eq!(&open.read(0..9).unwrap()[..], b"log");
        assert_eq!(&disk.open("log/a").unwrap().read(0..9).unwrap()[..], b"log");
        assert_eq!(
            &disk.open("log/d").unwrap().read(0..9).unwrap()[..],
            b"log/c"
        );
        assert!(disk.open("log/b").is_err() && disk.open("log/c").is_err());
        assert!(disk.create("index/1", 0).is_err());
        assert_eq!(below.files(), before);
    }
}
