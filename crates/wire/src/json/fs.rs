//! Filesystem trees: directories as listings, symlinks as their targets.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Hash, Id};

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FsKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// What a path leads to. A file is sent as its bytes unless the request has `format=json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum FsNode {
    /// A directory.
    Directory(FsListing),
    /// A symbolic link.
    Symlink(FsSymlink),
    /// A file, with `format=json`.
    File(FsFile),
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FsListing {
    /// The turn.
    pub turn_id: Id,
    /// The ancestor whose filesystem this is, if the turn has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inherited_from: Option<Id>,
    /// The directory's path from the root, empty for the root.
    pub path: String,
    /// The tree blob of the root directory.
    pub fs_root_hash: Hash,
    /// The tree blob of this directory.
    pub hash: Hash,
    /// What it holds, by name.
    pub entries: Vec<FsEntry>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FsEntry {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The name's bytes, only when they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name_b64: Option<String>,
    /// The kind of the entry.
    pub kind: FsKind,
    /// The permission bits.
    pub mode: u32,
    /// The size that its writer recorded.
    pub size: u64,
    /// Its blob.
    pub hash: Hash,
}

/// A symbolic link. Links are shown, never followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FsSymlink {
    /// The turn.
    pub turn_id: Id,
    /// The ancestor whose filesystem this is, if the turn has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inherited_from: Option<Id>,
    /// The link's path from the root.
    pub path: String,
    /// Always `symlink`.
    pub kind: FsKind,
    /// Where it points; bytes that are not UTF-8 are replaced.
    pub target: String,
    /// The blob that holds the target.
    pub hash: Hash,
}

/// A file as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FsFile {
    /// The turn.
    pub turn_id: Id,
    /// The ancestor whose filesystem this is, if the turn has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inherited_from: Option<Id>,
    /// The file's path from the root.
    pub path: String,
    /// The last element of the path; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Always `file`.
    pub kind: FsKind,
    /// The permission bits.
    pub mode: u32,
    /// The size that its writer recorded.
    pub size: u64,
    /// Its blob.
    pub hash: Hash,
    /// Its content as base64.
    pub content_base64: String,
}
