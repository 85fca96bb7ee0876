//! What stops a run by itself: a node that goes in circles, a budget that is used up, and nodes that
//! have all failed. A run that is paused for one reason keeps that reason.

use crate::fact::{Fact, NodeChange, StallEvidence};
use crate::ids::NodeId;
use crate::node::{BlockReason, Node};
use crate::stall::Stall;
use crate::usage::BudgetLevel;
use crate::words::{NodeStatus, PausedReason, RunStatus};

use super::Draft;

/// Checks a node and its run after a turn of the node.
pub(super) fn check_limits(draft: &mut Draft<'_>, id: NodeId) {
    // The stall first: it names a node, and the run keeps the first reason for which it is paused.
    if let Some(stall) = find_stall(draft, id) {
        stop_stalled(draft, id, stall);
    }
    fail_if_all_failed(draft);
    pause_if_used_up(draft, id);
}

fn find_stall(draft: &Draft<'_>, id: NodeId) -> Option<Stall> {
    let node = draft.run.node(id)?;
    // A violation is the older reason, and its files would be forgotten.
    if node.block.is_some() {
        return None;
    }
    let stall_after = draft.run.settings.limits.stall_after;
    node.stalls.find_stall(stall_after)
}

fn stop_stalled(draft: &mut Draft<'_>, id: NodeId, stall: Stall) {
    let summary = format!("goes in circles: {}", stall.reason);
    let evidence = gather_evidence(draft, id, stall);
    draft.record_for(id, Fact::Stalled(evidence));
    let reason = BlockReason::Stall;
    draft.change_node(id, NodeChange::Blocked { reason, summary });
    pause(draft, PausedReason::Stall);
}

/// Everything that a person needs to judge a stall, whatever its reason is.
fn gather_evidence(draft: &Draft<'_>, id: NodeId, stall: Stall) -> StallEvidence {
    let node = draft.run.node(id);
    let last = node.map_or_else(Default::default, |node| node.stalls.last_turns.clone());
    StallEvidence {
        stall,
        summaries: last.summaries,
        verification_failure: last.verification_failure,
        output: last.output,
        diff: last.diff,
    }
}

/// A run in which every node has failed and nothing waits cannot go on by itself.
fn fail_if_all_failed(draft: &mut Draft<'_>) {
    let has_failed = |node: &Node| node.status == NodeStatus::Failed && node.inbox.is_empty();
    if draft.run.status == RunStatus::Running && draft.run.nodes().all(has_failed) {
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Failed,
            paused_reason: None,
        });
    }
}

/// Pauses the run when its budget, or the budget of a node, is used up.
pub(super) fn pause_if_used_up(draft: &mut Draft<'_>, id: NodeId) {
    let node = draft.run.node(id);
    let of_node = node.map_or(BudgetLevel::Fine, Node::budget_level);
    let level = of_node.max(draft.run.budget_level());
    if level == BudgetLevel::UsedUp {
        pause(draft, PausedReason::Budget);
    }
}

/// Pauses a run that is running.
fn pause(draft: &mut Draft<'_>, reason: PausedReason) {
    if draft.run.status == RunStatus::Running {
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Paused,
            paused_reason: Some(reason),
        });
    }
}
