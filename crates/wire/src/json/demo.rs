//! What the tour of a demo points at.

use serde::Serialize;
use utoipa::ToSchema;

use super::Id;

/// The things of a demo that its tour shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Demo {
    /// The run.
    pub run: String,
    /// The node that waits for an approval.
    pub approval_node: String,
    /// The node that stalled.
    pub node_stalled: String,
    /// A file that a node changed, as the diffs name it.
    pub file: String,
    /// The number of a changed line of the file; the first line is 1.
    #[schema(minimum = 1)]
    pub line: u32,
    /// The world that is linked to the run.
    pub world: String,
    /// Two persons of the world who do not see the same entries.
    pub persons: [String; 2],
    /// A context to fork.
    pub context: Id,
}
