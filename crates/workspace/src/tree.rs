//! Names and contents of trees, for both kinds of workspace.
//!
//! A tree is a set of files with a mode and a content. Directories exist only as parts of paths, so
//! an empty directory is no change. Of the permissions only the executable bit counts.

use std::fmt;
use std::str::FromStr;

use crate::error::WorkspaceError;
use crate::tree_path::TreePath;

/// The name of a tree: lower-case hex digits. In a repository it is a git object id, elsewhere the
/// hash of a blob of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeName(String);

impl TreeName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TreeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TreeName {
    type Err = WorkspaceError;

    fn from_str(text: &str) -> Result<Self, WorkspaceError> {
        if is_object_id(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(WorkspaceError::BadName(text.to_owned(), "tree"))
        }
    }
}

/// Whether a text is a whole object id. Names are arguments of git, so nothing else may pass.
pub(crate) fn is_object_id(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    matches!(text.len(), 40 | 64) && text.bytes().all(is_hex)
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileMode {
    Regular,
    Executable,
    Symlink,
    /// The commit of a submodule. It is carried along and never written.
    Submodule,
}

impl FileMode {
    /// The mode as git writes it.
    pub(crate) fn as_git_text(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        }
    }

    /// Reads a mode of git. `None` for the zero mode, which means that the file is absent.
    pub(crate) fn from_git_text(text: &[u8]) -> Option<Self> {
        match text {
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Symlink),
            b"160000" => Some(Self::Submodule),
            // Very old repositories have other permissions, which git reads as this.
            text if text.starts_with(b"100") => Some(Self::Regular),
            _ => None,
        }
    }
}

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) mode: FileMode,
    /// Where the content is: a git object id, or the hash of a blob.
    pub(crate) content: String,
}

/// One path at which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub(crate) path: TreePath,
    pub(crate) before: Option<TreeFile>,
    pub(crate) after: Option<TreeFile>,
}

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileContent {
    pub(crate) mode: FileMode,
    /// The target, if the file is a symbolic link.
    pub(crate) bytes: Vec<u8>,
}

/// Where trees are kept: git's object database, or the store.
pub(crate) trait Trees {
    /// The paths at which two trees differ, sorted. A rename is a removal and an addition.
    fn list_changes(
        &self,
        base: &TreeName,
        head: &TreeName,
    ) -> Result<Vec<TreeChange>, WorkspaceError>;

    /// Reads contents in the given order, a few at a time.
    fn read_contents(
        &self,
        contents: &[&str],
        visit: &mut dyn FnMut(Vec<u8>) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError>;
}

/// A change with the contents of both sides.
pub(crate) struct ChangeContents<'a> {
    pub(crate) change: &'a TreeChange,
    pub(crate) before: Option<FileContent>,
    pub(crate) after: Option<FileContent>,
}

/// Reads the contents of changes, one change after the other.
pub(crate) fn read_changes(
    trees: &dyn Trees,
    changes: &[TreeChange],
    visit: &mut dyn FnMut(&ChangeContents<'_>) -> Result<(), WorkspaceError>,
) -> Result<(), WorkspaceError> {
    let sides = changes
        .iter()
        .flat_map(|change| [&change.before, &change.after]);
    let contents: Vec<&str> = sides.flatten().map(|file| file.content.as_str()).collect();
    let mut next_changes = changes.iter();
    // The contents come one by one. A change with two sides waits for its second one.
    let mut waiting: Option<ChangeContents<'_>> = None;
    trees.read_contents(&contents, &mut |bytes| {
        let begin_next = || next_changes.next().map(ChangeContents::new);
        let Some(mut current) = waiting.take().or_else(begin_next) else {
            return Ok(());
        };
        current.add(bytes);
        if current.is_complete() {
            return visit(&current);
        }
        waiting = Some(current);
        Ok(())
    })
}

impl<'a> ChangeContents<'a> {
    fn new(change: &'a TreeChange) -> Self {
        Self {
            change,
            before: None,
            after: None,
        }
    }

    /// Adds the next content; the old one comes first.
    fn add(&mut self, bytes: Vec<u8>) {
        let content = |file: &TreeFile| FileContent {
            mode: file.mode,
            bytes,
        };
        match (&self.change.before, &self.before) {
            (Some(file), None) => self.before = Some(content(file)),
            _ => self.after = self.change.after.as_ref().map(content),
        }
    }

    fn is_complete(&self) -> bool {
        self.before.is_some() == self.change.before.is_some()
            && self.after.is_some() == self.change.after.is_some()
    }
}

/// The state of a workspace at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub tree: TreeName,
    /// Files that the tree does not show as they are.
    pub skipped: Vec<SkippedFile>,
}

/// A file that a snapshot leaves out. If the file is part of the last commit, the tree has it as it
/// was there, so that it does not look deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// The path as text; it may be a path that no tree accepts.
    pub path: String,
    pub reason: SkipReason,
}

/// Why a snapshot leaves a file out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// The file is larger than the limit.
    TooLarge,
    /// The file cannot be read.
    Unreadable,
    /// The directory is a repository of its own.
    NestedRepository,
    /// The name could be read as a part of a repository.
    UnsafeName,
}

/// Under which name a tree is kept from garbage collection: `refs/turnkeep/<run>/<turn>`.
///
/// The snapshot after a turn has the snapshot before it as its parent, so one name keeps both.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotName<'a> {
    pub run: &'a str,
    pub turn: &'a str,
}

/// Checks an id that becomes a part of a file or reference name.
pub(crate) fn check_id<'a>(id: &'a str, what: &'static str) -> Result<&'a str, WorkspaceError> {
    const ID_BYTES_MAX: usize = 64;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let starts_plain = id.bytes().next().is_some_and(|byte| byte != b'-');
    if id.len() <= ID_BYTES_MAX && starts_plain && id.bytes().all(is_plain) {
        Ok(id)
    } else {
        Err(WorkspaceError::BadName(id.to_owned(), what))
    }
}
