//! A directory for the benchmark's files, removed with everything in it when the benchmark ends.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The magic number of a file system that keeps files in memory, on which a sync costs nothing.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// The directory; dropping it removes it.
#[derive(Debug)]
pub(super) struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Creates a directory of its own in `parent`, or in the directory for temporary files.
    pub(super) fn create(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let path = parent.join(format!("turnkeep-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        // Children start in another directory, so the path must be absolute.
        let scratch = Self(path.canonicalize()?);
        if scratch.is_in_memory() {
            crate::report_progress(
                "warning: this directory is in memory, so that syncs cost nothing; give --dir",
            );
        }
        Ok(scratch)
    }

    /// A new directory inside it.
    pub(super) fn create_folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }

    /// Whether the files are kept in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        rustix::fs::statfs(&self.0).is_ok_and(|stat| stat.f_type == TMPFS_MAGIC)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            crate::report_progress(&format!("cannot remove {}: {error}", self.0.display()));
        }
    }
}

/// Bytes of all files in a directory, at any depth; 0 if the directory is missing.
pub(super) fn bytes_in(folder: &Path) -> Result<u64> {
    if !folder.exists() {
        return Ok(0);
    }
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() {
            bytes_in(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(sum)
}
