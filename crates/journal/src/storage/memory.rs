//! Files in memory. The content lives as long as one clone of the storage, so a test can drop a
//! store and open it again, as after the end of a process.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{FileBytes, Storage, StorageFile, clamp_range};

type Content = Arc<Mutex<Vec<u8>>>;

/// A disk in memory; clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    files: Arc<Mutex<BTreeMap<String, Content>>>,
}

impl MemoryStorage {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every file's name and bytes.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = lock(&self.files);
        files
            .iter()
            .map(|(name, content)| (name.clone(), lock(content).clone()))
            .collect()
    }

    /// A disk with these files.
    pub fn with_files(files: BTreeMap<String, Vec<u8>>) -> Self {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name, Arc::new(Mutex::new(bytes))));
        Self {
            files: Arc::new(Mutex::new(files.collect())),
        }
    }
}

impl Storage for MemoryStorage {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{dir}/");
        let files = lock(&self.files);
        let names = files.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
            .collect())
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let content = Content::new(Mutex::new(vec![0; len]));
        lock(&self.files).insert(name.to_owned(), content.clone());
        Ok(Arc::new(MemoryFile(content)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let found = lock(&self.files).get(name).cloned();
        Ok(Arc::new(MemoryFile(found.ok_or(io::ErrorKind::NotFound)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = lock(&self.files);
        let content = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        lock(&self.files)
            .remove(name)
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

struct MemoryFile(Content);

impl StorageFile for MemoryFile {
    fn len(&self) -> u64 {
        lock(&self.0).len() as u64
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut content = lock(&self.0);
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        lock(&self.0).truncate(usize::try_from(len).map_err(io::Error::other)?);
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> io::Result<FileBytes> {
        let content = lock(&self.0);
        Ok(FileBytes::copy_from_slice(
            &content[clamp_range(&range, content.len())],
        ))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
