//! What a person does to a single node: stop its turn, reset it, or let it try again.

use crate::effect::Effect;
use crate::fact::{Fact, NodeChange};
use crate::ids::NodeId;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::words::RunStatus;

use super::{Decision, Draft, Surroundings, schedule, turns, verification};

/// Stops the open turn of a node. A node without one stays as it is.
pub fn interrupt_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    if node.turn.is_some() {
        turns::interrupt(&mut draft, id, "interrupted by the user");
    }
    Ok(draft.finish(()))
}

/// What a reset does to the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetInbox {
    /// Waiting inputs stay, and the next turn consumes them.
    Keep,
    /// Waiting inputs are dropped.
    Clear,
}

/// Ends a node's session and its open turn. The next prompt is a full one.
pub fn reset_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
    inbox: ResetInbox,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    let (has_turn, is_blocked) = (node.turn.is_some(), node.block.is_some());
    if has_turn {
        turns::interrupt(&mut draft, id, "reset by the user");
    } else if is_blocked {
        draft.change_node(id, NodeChange::Unblocked);
    }
    if inbox == ResetInbox::Clear {
        draft.change_node(id, NodeChange::InboxCleared);
        verification::finish_docs(&mut draft, id);
    }
    draft.change_node(id, NodeChange::SessionDropped { lost: false });
    draft.perform(Effect::ResetProgram(id));
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Puts the inputs of a failed turn back, so that the node tries again.
pub fn retry_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    let has_failed = node.last_turn.as_ref().is_some_and(|turn| turn.failed);
    if !has_failed || node.turn.is_some() {
        return Err(Rejection::NothingToRetry);
    }
    // The failure of its last node may have ended the run.
    if draft.run.status == RunStatus::Failed {
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Running,
            paused_reason: None,
        });
    }
    draft.change_node(id, NodeChange::Retried);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}
