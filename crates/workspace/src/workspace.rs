//! A workspace: one directory in which nodes work, inside a repository or not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::diff::{Diff, diff_git_trees};
use crate::error::WorkspaceError;
use crate::git_snapshot::{self, keep_tree};
use crate::landing::{LandOutcome, LandRequest, land_tree};
use crate::patch::write_patch;
use crate::plain_snapshot::{self, BlobStore};
use crate::plain_trees::PlainTrees;
use crate::repository::{Detection, Repository, Search, find_repository};
use crate::root_dir::RootDir;
use crate::settings::Settings;
use crate::tree::{Snapshot, SnapshotName, TreeName, Trees};
use crate::tree_path::TreePath;

/// A directory in which nodes work.
pub enum Workspace {
    /// It is in a git repository with a commit.
    Git(GitWorkspace),
    /// It is not.
    Plain(PlainWorkspace),
}

/// A directory in a git repository. Only the directory is the workspace, not all of the repository.
#[derive(Debug, Clone)]
pub struct GitWorkspace {
    pub(crate) repository: Repository,
    pub(crate) directory: PathBuf,
}

/// A directory without a repository, or one whose repository cannot be used.
#[derive(Clone)]
pub struct PlainWorkspace {
    settings: Settings,
    directory: PathBuf,
    trees: PlainTrees,
    reason: String,
}

impl Workspace {
    /// Opens a directory. Without git, or where the repository has no commit, it is a plain one.
    pub fn open(
        settings: &Settings,
        blobs: Arc<dyn BlobStore>,
        directory: &Path,
    ) -> Result<Self, WorkspaceError> {
        let directory = directory
            .canonicalize()
            .map_err(WorkspaceError::file("open", directory))?;
        Ok(match find_repository(settings, &directory)? {
            Search::Found(repository) => Self::Git(GitWorkspace {
                repository: *repository,
                directory,
            }),
            Search::NotFound(reason) => Self::Plain(PlainWorkspace {
                settings: settings.clone(),
                directory,
                trees: PlainTrees { blobs },
                reason,
            }),
        })
    }

    /// Whether nodes can have worktrees here.
    pub fn has_repository(&self) -> bool {
        matches!(self, Self::Git(_))
    }

    /// What the directory is, and why it counts as plain if it does.
    pub fn detection(&self) -> Detection {
        match self {
            Self::Git(_) => Detection::Repository,
            Self::Plain(plain) => Detection::Plain(plain.reason.clone()),
        }
    }

    /// The operations that need a repository.
    pub fn as_git(&self) -> Result<&GitWorkspace, WorkspaceError> {
        match self {
            Self::Git(git) => Ok(git),
            Self::Plain(plain) => Err(WorkspaceError::NoRepository {
                path: plain.directory.clone(),
                reason: plain.reason.clone(),
            }),
        }
    }

    /// Records the directory as a tree. In a repository, `keep` protects the tree from garbage
    /// collection; elsewhere the caller attaches the tree to its turn.
    pub fn snapshot(
        &self,
        now: Timestamp,
        keep: Option<SnapshotName<'_>>,
    ) -> Result<Snapshot, WorkspaceError> {
        match self {
            Self::Git(git) => git.snapshot(keep),
            Self::Plain(plain) => plain.snapshot(now),
        }
    }

    /// Compares two trees.
    pub fn diff(&self, base: &TreeName, head: &TreeName) -> Result<Diff, WorkspaceError> {
        match self {
            Self::Git(git) => diff_git_trees(&git.repository, base, head),
            Self::Plain(plain) => plain.diff(base, head),
        }
    }

    /// Restores what the files had in `base`, if they still are as in `head`, or as in `base` already.
    /// With `only`, other files stay as they are. If any of the files changed since, nothing is written.
    pub fn revert(
        &self,
        base: &TreeName,
        head: &TreeName,
        only: Option<&[TreePath]>,
    ) -> Result<LandOutcome, WorkspaceError> {
        let (directory, trees): (&Path, &dyn Trees) = match self {
            Self::Git(git) => (&git.directory, &git.repository),
            Self::Plain(plain) => (&plain.directory, &plain.trees),
        };
        let request = LandRequest {
            from: head,
            to: base,
            only,
        };
        land_tree(directory, trees, &request)
    }
}

impl GitWorkspace {
    /// Records the directory as a git tree, without touching the user's index.
    pub fn snapshot(&self, keep: Option<SnapshotName<'_>>) -> Result<Snapshot, WorkspaceError> {
        let snapshot = git_snapshot::take_snapshot(&self.repository)?;
        if let Some(name) = keep {
            keep_tree(&self.repository, name, &snapshot.tree)?;
        }
        Ok(snapshot)
    }
}

impl PlainWorkspace {
    fn snapshot(&self, now: Timestamp) -> Result<Snapshot, WorkspaceError> {
        let root = RootDir::open(&self.directory);
        let root = root.map_err(WorkspaceError::file("open", &self.directory))?;
        plain_snapshot::take_snapshot(&self.settings, self.trees.blobs.as_ref(), &root, now)
    }

    fn diff(&self, base: &TreeName, head: &TreeName) -> Result<Diff, WorkspaceError> {
        let changes = self.trees.list_changes(base, head)?;
        write_patch(&self.trees, &changes)
    }
}
