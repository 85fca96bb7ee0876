//! The integration tree: the user's directory as it is now, plus the work of every node.
//!
//! Each node's changes are merged in order, file by file, with three versions: the node's base, the
//! node's head, and the tree so far. Worked example for one line of one file:
//!
//! | base | tree so far | node | result |
//! |---|---|---|---|
//! | a | a | b | b: only the node changed it |
//! | a | c | a | c: only someone else did |
//! | a | b | b | b: both made the same change |
//! | a | c | b | conflict |
//!
//! A file that only one side changed is taken whole; a file that both changed is merged by lines. A
//! rename is a removal and an addition here, so a file that one node renames and another edits is a
//! conflict. Nothing is written but objects: a caller that wants to run commands in the result checks
//! it out with [`GitWorkspace::check_out_integration`].

use std::collections::{BTreeMap, BTreeSet};

use crate::error::WorkspaceError;
use crate::git_index::{IndexEdit, PrivateIndex, split_records};
use crate::git_trees::Versions;
use crate::repository::Repository;
use crate::tree::{FileMode, TreeChange, TreeFile, TreeName, Trees};
use crate::tree_path::TreePath;
use crate::workspace::GitWorkspace;

/// The work of one node since its worktree was made, or since its work was last applied.
#[derive(Debug, Clone)]
pub struct NodeChanges {
    /// The name for messages.
    pub name: String,
    /// The node's tree that the user's directory already has.
    pub base_tree: TreeName,
    pub head_tree: TreeName,
}

/// The merged tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrated {
    /// The user's directory at the time of the merge.
    pub base_tree: TreeName,
    pub tree: TreeName,
}

/// How an integration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntegrationOutcome {
    /// All changes fit together.
    Integrated(Integrated),
    /// Some do not.
    Conflicts(Vec<FileConflict>),
}

/// A file that several changed differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConflict {
    pub path: TreePath,
    /// The nodes that changed the file. A single one conflicts with the user's own change.
    pub nodes: Vec<String>,
}

impl GitWorkspace {
    /// Merges the work of all nodes into the directory's tree. No file changes.
    pub fn integrate(&self, nodes: &[NodeChanges]) -> Result<IntegrationOutcome, WorkspaceError> {
        let base_tree = self.snapshot(None)?.tree;
        let mut merge = Merge::new(&self.repository, base_tree.clone())?;
        for node in nodes {
            merge.add_node(node)?;
        }
        if !merge.conflicts.is_empty() {
            return Ok(IntegrationOutcome::Conflicts(merge.conflicts));
        }
        Ok(IntegrationOutcome::Integrated(Integrated {
            base_tree,
            tree: merge.tree,
        }))
    }
}

/// The merge of several nodes.
struct Merge<'a> {
    repository: &'a Repository,
    tree: TreeName,
    /// All paths of the tree.
    paths: BTreeSet<Vec<u8>>,
    changed_by: BTreeMap<TreePath, Vec<String>>,
    conflicts: Vec<FileConflict>,
}

/// The new state of a path; `None` removes it.
type Edits = BTreeMap<TreePath, Option<TreeFile>>;

/// How one file merges.
enum Merged {
    Unchanged,
    Changed(Option<TreeFile>),
    Conflict,
}

impl<'a> Merge<'a> {
    fn new(repository: &'a Repository, tree: TreeName) -> Result<Self, WorkspaceError> {
        let call = repository.object_git();
        let call = call.args(["ls-tree", "-r", "-z", "--name-only", tree.as_str()]);
        let paths = split_records(&call.run()?.stdout)
            .map(<[u8]>::to_vec)
            .collect();
        Ok(Self {
            repository,
            tree,
            paths,
            changed_by: BTreeMap::new(),
            conflicts: Vec::new(),
        })
    }

    /// Merges one node's changes. Files in conflict keep the state that they had.
    fn add_node(&mut self, node: &NodeChanges) -> Result<(), WorkspaceError> {
        let theirs = self
            .repository
            .list_changes(&node.base_tree, &node.head_tree)?;
        let ours = self.repository.list_changes(&node.base_tree, &self.tree)?;
        let ours: BTreeMap<TreePath, Option<TreeFile>> = ours
            .into_iter()
            .map(|change| (change.path, change.after))
            .collect();
        let mut edits = Edits::new();
        for change in theirs {
            let current = ours.get(&change.path).unwrap_or(&change.before);
            match self.merge_file(&change, current.as_ref())? {
                Merged::Unchanged => {}
                Merged::Changed(file) => _ = edits.insert(change.path.clone(), file),
                Merged::Conflict => self.add_conflict(&change.path, &node.name),
            }
            let names = self.changed_by.entry(change.path).or_default();
            names.push(node.name.clone());
        }
        self.find_directory_conflicts(&edits, &node.name);
        // With a conflict there is no result, and the next nodes are merged only to find more.
        if self.conflicts.is_empty() {
            self.write_edits(&edits)?;
        }
        Ok(())
    }

    fn merge_file(
        &self,
        change: &TreeChange,
        current: Option<&TreeFile>,
    ) -> Result<Merged, WorkspaceError> {
        let (base, theirs) = (change.before.as_ref(), change.after.as_ref());
        if current == theirs {
            return Ok(Merged::Unchanged);
        }
        if current == base {
            return Ok(Merged::Changed(theirs.cloned()));
        }
        // One side removed what the other changed, or both added the file differently.
        let (Some(base), Some(ours), Some(theirs)) = (base, current, theirs) else {
            return Ok(Merged::Conflict);
        };
        // Two targets of a link, or two commits of a submodule, have no lines to merge.
        if ![base, ours, theirs].into_iter().all(is_mergeable) {
            return Ok(Merged::Conflict);
        }
        let Some(content) = self.merge_contents(base, ours, theirs)? else {
            return Ok(Merged::Conflict);
        };
        let mode = if ours.mode == base.mode {
            theirs.mode
        } else {
            ours.mode
        };
        Ok(Merged::Changed(Some(TreeFile { mode, content })))
    }

    /// The id of the merged content. `None` if the contents conflict.
    fn merge_contents(
        &self,
        base: &TreeFile,
        ours: &TreeFile,
        theirs: &TreeFile,
    ) -> Result<Option<String>, WorkspaceError> {
        // Only the mode changed on one side, or both have the same content.
        if base.content == theirs.content || ours.content == theirs.content {
            return Ok(Some(ours.content.clone()));
        }
        if base.content == ours.content {
            return Ok(Some(theirs.content.clone()));
        }
        let versions = Versions {
            base: &base.content,
            ours: &ours.content,
            theirs: &theirs.content,
        };
        let merged = self.repository.merge_contents(&versions)?;
        merged
            .map(|bytes| self.repository.write_content(bytes))
            .transpose()
    }

    /// Finds paths that would be a file and a directory at once.
    fn find_directory_conflicts(&mut self, edits: &Edits, name: &str) {
        for (path, file) in edits {
            if file.is_some() {
                self.paths.insert(path.as_bytes().to_vec());
            } else {
                self.paths.remove(path.as_bytes());
            }
        }
        // After all edits are in the set: a node may remove the directory `a` and add the file `a`.
        let added = edits.iter().filter(|(_, file)| file.is_some());
        let clashing: Vec<TreePath> = added
            .filter(|(path, _)| self.is_file_and_directory(path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in clashing {
            self.add_conflict(&path, name);
        }
    }

    fn is_file_and_directory(&self, path: &TreePath) -> bool {
        let as_directory = [path.as_bytes(), b"/"].concat();
        let first_below = self.paths.range(as_directory.clone()..).next();
        let has_files_below = first_below.is_some_and(|below| below.starts_with(&as_directory));
        has_files_below || path.ancestors().any(|above| self.paths.contains(above))
    }

    fn add_conflict(&mut self, path: &TreePath, name: &str) {
        let is_related =
            |other: &TreePath| other == path || is_below(other, path) || is_below(path, other);
        let related = self
            .changed_by
            .iter()
            .filter(|(other, _)| is_related(other));
        let mut nodes: Vec<String> = Vec::new();
        for node in related.flat_map(|(_, nodes)| nodes) {
            if node != name && !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes.push(name.to_owned());
        let path = path.clone();
        self.conflicts.push(FileConflict { path, nodes });
    }

    fn write_edits(&mut self, edits: &Edits) -> Result<(), WorkspaceError> {
        if edits.is_empty() {
            return Ok(());
        }
        let index = PrivateIndex::from_tree(self.repository, self.tree.as_str())?;
        index.edit(edits.iter().map(|(path, file)| IndexEdit {
            path: path.as_bytes(),
            file: file.as_ref(),
        }))?;
        self.tree = index.write_tree()?;
        Ok(())
    }
}

/// Whether a path is inside another one, taken as a directory.
fn is_below(below: &TreePath, above: &TreePath) -> bool {
    below
        .ancestors()
        .any(|ancestor| ancestor == above.as_bytes())
}

fn is_mergeable(file: &TreeFile) -> bool {
    matches!(file.mode, FileMode::Regular | FileMode::Executable)
}
