//! What a person does to a single node: stop its turn, reset it, or let it try again.

use crate::effect::Effect;
use crate::fact::NodeChange;
use crate::ids::{AgentTurnId, NodeId};
use crate::node::BlockReason;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::turn::TurnStage;

use super::turns::AfterStop;
use super::{Decision, Draft, Surroundings, chat, replies, schedule, turns, verification};

/// Stops the open turn of a node. A node without one stays as it is.
pub fn interrupt_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    if node.turn.is_some() {
        turns::interrupt(&mut draft, id, "interrupted by the user", AfterStop::Hold);
    }
    Ok(draft.finish(()))
}

/// Starts the program of a node before its first prompt needs it. A program that runs is left alone.
pub fn start_program(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    draft.perform(Effect::StartProgram(id));
    Ok(draft.finish(()))
}

/// Ends the program of a node. An open turn is stopped first. The next prompt starts the program
/// again.
pub fn stop_program(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    let open = node.turn.as_ref();
    // A turn that is being stopped already keeps its reason.
    let is_working = open.is_some_and(|turn| !matches!(turn.stage, TurnStage::Interrupting { .. }));
    if is_working {
        turns::interrupt(&mut draft, id, "stopped by the user", AfterStop::Hold);
    }
    draft.perform(Effect::StopProgram(id));
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
    // Files that a node must not write stay for a person to decide, whatever its session is.
    let is_violation = matches!(node.block, Some(BlockReason::Violation { .. }));
    let has_turn = node.turn.is_some();
    let is_blocked = node.block.is_some() && !is_violation;
    if has_turn {
        turns::interrupt(&mut draft, id, "reset by the user", AfterStop::Restart);
    } else if is_blocked {
        draft.change_node(id, NodeChange::Unblocked);
    }
    if inbox == ResetInbox::Clear {
        replies::refuse_waiting_questions(&mut draft, id);
        draft.change_node(id, NodeChange::InboxCleared);
        verification::finish_docs(&mut draft, id);
    }
    // Not as lost: whoever resets a node does not want the old conversation in its prompt.
    draft.drop_session(id, false);
    draft.perform(Effect::ResetProgram(id));
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Takes files off the list of those that a node wrote and may not write: a person has kept or
/// reverted them. The node goes on when none is left.
pub fn settle_violation(
    run: &Run,
    around: Surroundings<'_>,
    turn: AgentTurnId,
    settled: &[String],
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let found = draft.run.nodes().find_map(|node| match &node.block {
        Some(BlockReason::Violation { turn: of, paths }) if *of == turn => {
            Some((node.id, paths.clone()))
        }
        _ => None,
    });
    let Some((node, mut paths)) = found else {
        return Err(Rejection::NoViolation(turn));
    };
    // Path by path: a person may keep one file and take back another.
    paths.retain(|path| !settled.contains(path));
    if paths.is_empty() {
        draft.change_node(node, NodeChange::Unblocked);
    } else {
        let summary = turns::describe_violation(&paths);
        let reason = BlockReason::Violation { turn, paths };
        draft.change_node(node, NodeChange::Blocked { reason, summary });
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Lets a node try again: with the inputs of its failed turn, or with those that a person stopped
/// before its program had seen them.
pub fn retry_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    let has_failed = node.last_turn.as_ref().is_some_and(|turn| turn.may_retry);
    let may_retry = has_failed || node.inputs_held;
    if !may_retry || node.turn.is_some() {
        return Err(Rejection::NothingToRetry);
    }
    // The failure of its last node may have ended the run. In a completed one nothing would start
    // either, and the inputs would wait unseen.
    chat::reopen(&mut draft);
    draft.change_node(id, NodeChange::Retried);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}
