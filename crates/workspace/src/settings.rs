//! What the caller decides for all workspaces: directories, the git program and limits.

use std::path::PathBuf;
use std::time::Duration;

/// Directories and limits.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Private indexes and caches. Only this crate writes there; all of it can be rebuilt.
    pub state_dir: PathBuf,
    /// The worktrees of nodes, by run. The crate deletes directories here and nowhere else.
    pub worktrees_dir: PathBuf,
    /// Other directories that are never part of a workspace, such as the caller's data.
    pub private_dirs: Vec<PathBuf>,
    /// The git program, as a path or as a name in `PATH`.
    pub git_program: PathBuf,
    /// How long one git command may run.
    pub git_time_limit: Duration,
    pub limits: SnapshotLimits,
}

impl Settings {
    /// The directories that are never part of a workspace, also if they lie inside it.
    pub(crate) fn own_directories(&self) -> impl Iterator<Item = &PathBuf> {
        let own = [&self.state_dir, &self.worktrees_dir];
        own.into_iter().chain(&self.private_dirs)
    }
}

/// The limits of one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Files to read. In a repository only changed and untracked files count.
    pub files_max: usize,
    /// A larger file is left out of the snapshot and listed as skipped.
    pub file_bytes_max: u64,
    /// All files to read together.
    pub total_bytes_max: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            files_max: 50_000,
            // The store accepts blobs of this size.
            file_bytes_max: 32 << 20,
            total_bytes_max: 2 << 30,
        }
    }
}
