//! Lands an integrated tree in the user's directory, and takes the changes of a turn back.

use crate::error::WorkspaceError;
use crate::landing::{LandOutcome, LandRequest, land_tree};
use crate::tree::{TreeName, Trees};
use crate::tree_path::TreePath;
use crate::workspace::GitWorkspace;

/// Which tree to land.
#[derive(Debug, Clone, Copy)]
pub struct ApplyTree<'a> {
    /// The directory's tree from which `tree` was made.
    pub base: &'a TreeName,
    pub tree: &'a TreeName,
}

/// How an apply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// The directory has exactly the tree. Empty if there was nothing new.
    Applied { paths: Vec<TreePath> },
    /// The directory changed since the tree was made, at these paths. Integrate again.
    MovedOn {
        tree: TreeName,
        paths: Vec<TreePath>,
    },
    /// These files changed during the apply, or are in the way. The directory is as it was.
    Conflicts { paths: Vec<TreePath> },
}

impl GitWorkspace {
    /// Lands a tree in the directory: all of it, or nothing.
    pub fn apply(&self, apply: ApplyTree<'_>) -> Result<ApplyOutcome, WorkspaceError> {
        let current = self.snapshot(None)?.tree;
        if &current != apply.base {
            let changes = self.repository.list_changes(apply.base, &current)?;
            return Ok(ApplyOutcome::MovedOn {
                tree: current,
                paths: changes.into_iter().map(|change| change.path).collect(),
            });
        }
        let request = LandRequest {
            from: apply.base,
            to: apply.tree,
            only: None,
        };
        let landed = land_tree(&self.directory, &self.repository, &request)?;
        Ok(match landed {
            // A file that somebody else wrote in this moment needs no landing.
            LandOutcome::Landed { paths, .. } => ApplyOutcome::Applied { paths },
            LandOutcome::Conflicts { paths } => ApplyOutcome::Conflicts { paths },
        })
    }
}
