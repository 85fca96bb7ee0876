//! Notes: what the server has to say about a node and what is no output of its program.

use crate::fact::Fact;
use crate::ids::NodeId;
use crate::rejection::Rejection;
use crate::run::Run;

use super::{Decision, Draft, Surroundings};

/// Records a note about a node. Nothing else changes. The node may be deleted: its worktree can
/// outlive it.
pub fn note_node(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    text: &str,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    draft.record_for(node, Fact::NodeLogged(text.to_owned()));
    Ok(draft.finish(()))
}
