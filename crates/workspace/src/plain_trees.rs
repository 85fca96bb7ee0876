//! Compares and reads trees of the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnkeep_types::BlobHash;

use crate::error::WorkspaceError;
use crate::plain_format::{DirectoryEntry, EntryKind, decode_directory};
use crate::plain_snapshot::BlobStore;
use crate::tree::{TreeChange, TreeFile, TreeName, Trees};
use crate::tree_path::{PathError, TreePath};

/// How deep directories may be nested.
pub(crate) const DEPTH_MAX: usize = 128;

/// The trees of a store.
#[derive(Clone)]
pub(crate) struct PlainTrees {
    pub(crate) blobs: Arc<dyn BlobStore>,
}

impl Trees for PlainTrees {
    fn list_changes(
        &self,
        base: &TreeName,
        head: &TreeName,
    ) -> Result<Vec<TreeChange>, WorkspaceError> {
        let mut changes = Vec::new();
        let pair = Pair {
            base: Some(tree_hash(base)?),
            head: Some(tree_hash(head)?),
        };
        self.compare(&mut Vec::new(), 0, pair, &mut changes)?;
        changes.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(changes)
    }

    fn read_contents(
        &self,
        contents: &[&str],
        visit: &mut dyn FnMut(Vec<u8>) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        for content in contents {
            visit(self.read_content(content)?)?;
        }
        Ok(())
    }
}

/// The same directory in two trees; `None` where it is absent.
#[derive(Clone, Copy)]
struct Pair {
    base: Option<BlobHash>,
    head: Option<BlobHash>,
}

impl PlainTrees {
    pub(crate) fn read_content(&self, content: &str) -> Result<Vec<u8>, WorkspaceError> {
        let bad = |_| WorkspaceError::BadName(content.to_owned(), "blob");
        self.read_blob(content.parse().map_err(bad)?)
    }

    fn read_blob(&self, hash: BlobHash) -> Result<Vec<u8>, WorkspaceError> {
        let found = self.blobs.get(&hash).map_err(WorkspaceError::Blobs)?;
        found.ok_or(WorkspaceError::MissingBlob(hash))
    }

    fn read_directory(
        &self,
        hash: Option<BlobHash>,
    ) -> Result<BTreeMap<Vec<u8>, DirectoryEntry>, WorkspaceError> {
        let Some(hash) = hash else {
            return Ok(BTreeMap::new());
        };
        let entries = decode_directory(&self.read_blob(hash)?);
        let entries = entries.ok_or(WorkspaceError::DamagedTree(hash))?;
        let by_name = |entry: DirectoryEntry| (entry.name.clone(), entry);
        Ok(entries.into_iter().map(by_name).collect())
    }

    fn compare(
        &self,
        prefix: &mut Vec<u8>,
        depth: usize,
        pair: Pair,
        changes: &mut Vec<TreeChange>,
    ) -> Result<(), WorkspaceError> {
        // Equal directories have equal hashes, so an unchanged part of a large tree is never read.
        if pair.base == pair.head {
            return Ok(());
        }
        // A tree may come from another program, which could have written a very deep one.
        if depth > DEPTH_MAX {
            return Err(PathError(String::from_utf8_lossy(prefix).into_owned()).into());
        }
        let mut base = self.read_directory(pair.base)?;
        let head = self.read_directory(pair.head)?;
        let prefix_len = prefix.len();
        for (name, after) in head {
            let before = base.remove(&name);
            prefix.extend(&name);
            self.compare_entry(prefix, depth, before.as_ref(), Some(&after), changes)?;
            prefix.truncate(prefix_len);
        }
        for (name, before) in base {
            prefix.extend(&name);
            self.compare_entry(prefix, depth, Some(&before), None, changes)?;
            prefix.truncate(prefix_len);
        }
        Ok(())
    }

    fn compare_entry(
        &self,
        path: &mut Vec<u8>,
        depth: usize,
        before: Option<&DirectoryEntry>,
        after: Option<&DirectoryEntry>,
        changes: &mut Vec<TreeChange>,
    ) -> Result<(), WorkspaceError> {
        let change = TreeChange {
            path: TreePath::new(path.clone())?,
            before: before.and_then(as_file),
            after: after.and_then(as_file),
        };
        if change.before != change.after {
            changes.push(change);
        }
        // A file that became a directory is both: a removed file, and a new directory.
        path.push(b'/');
        let pair = Pair {
            base: before.and_then(as_directory),
            head: after.and_then(as_directory),
        };
        self.compare(path, depth + 1, pair, changes)
    }
}

fn as_file(entry: &DirectoryEntry) -> Option<TreeFile> {
    match entry.kind {
        EntryKind::File(mode) => Some(TreeFile {
            mode,
            content: entry.hash.to_string(),
        }),
        EntryKind::Directory => None,
    }
}

fn as_directory(entry: &DirectoryEntry) -> Option<BlobHash> {
    (entry.kind == EntryKind::Directory).then_some(entry.hash)
}

fn tree_hash(tree: &TreeName) -> Result<BlobHash, WorkspaceError> {
    let bad = |_| WorkspaceError::BadName(tree.to_string(), "tree of the store");
    tree.as_str().parse().map_err(bad)
}
