//! Artifacts: the files that a run makes. The bytes are a blob of the store; the file is a copy.

use std::fmt;
use std::str::FromStr;

use turnkeep_types::{BlobHash, Timestamp};

use crate::ids::{AgentTurnId, ArtifactId, NodeId, ParseUuidError};
use crate::words::{ArtifactKind, WorkspaceKind};

/// A file that a run made.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub id: ArtifactId,
    pub node: Option<NodeId>,
    pub kind: ArtifactKind,
    /// The file's name, such as `diff.patch`.
    pub name: String,
    pub content: BlobHash,
    pub bytes: u64,
    pub created_at: Timestamp,
    /// What a diff says about itself.
    pub diff: Option<DiffSummary>,
}

/// The name of the file that says which files of a turn a person took back.
pub const REVERT_NAME: &str = "revert.json";

impl Artifact {
    /// The turn whose files a person took back, and those files.
    pub fn as_revert(&self) -> Option<(AgentTurnId, &[String])> {
        let is_revert = self.kind == ArtifactKind::Report && self.name == REVERT_NAME;
        let diff = self.diff.as_ref().filter(|_| is_revert)?;
        Some((diff.turn?, &diff.files_changed))
    }
}

/// What a diff changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffSummary {
    pub turn: Option<AgentTurnId>,
    pub files_changed: Vec<String>,
    pub summary: String,
    pub lines_added: u64,
    pub lines_removed: u64,
    /// The names of the trees before and after the turn.
    pub base_tree: String,
    pub head_tree: String,
    /// Files that the node may not write.
    pub violations: Vec<String>,
    /// Files that another turn may have changed at the same time.
    pub shared: Vec<String>,
    /// Those of them that both nodes probably wrote.
    pub conflicts: Vec<WriteConflict>,
}

/// A file that the node of another turn probably wrote at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteConflict {
    pub path: String,
    pub node: NodeId,
    pub turn: AgentTurnId,
}

/// The text form: the turn, the node and the path, which may contain spaces.
impl fmt::Display for WriteConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.turn, self.node, self.path)
    }
}

impl FromStr for WriteConflict {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().ok_or_else(|| ParseUuidError(text.to_owned()));
        Ok(Self {
            turn: next()?.parse()?,
            node: next()?.parse()?,
            path: next()?.to_owned(),
        })
    }
}

/// Where a node's program works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub kind: WorkspaceKind,
    /// The branch of a worktree, while there is one.
    pub branch: Option<String>,
}
