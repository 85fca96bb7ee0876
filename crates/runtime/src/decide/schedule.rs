//! Starting turns: which nodes are ready, and in which order they start.
//!
//! Worked example, a run that may have two open turns: node A has waited since 10:00, B since 10:02
//! and C since 10:01. A and C start; B starts when one of them has ended.

use turnkeep_types::Timestamp;

use crate::artifact::Workspace;
use crate::branch_name::branch_name;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::hold::{Hold, find_capacity_hold, find_hold};
use crate::ids::{AgentTurnId, NodeId};
use crate::input::InputId;
use crate::live::LiveRun;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::words::{GlobalMode, Mode, Phase, RunStatus, TurnCause, WorkspaceKind};

use super::{Capacity, Decision, Draft, Surroundings};

/// Starts turns until no node is ready. A quiet run in AUTO mode prompts its orchestrators.
pub(super) fn start_ready_turns(draft: &mut Draft<'_>) {
    leave_queue(draft);
    // One after the other: each start takes room that the next node may have needed.
    while let Some(node) = next_ready_node(draft) {
        let consumed = draft.run.node(node).map(|node| node.inbox.ids());
        start_turn(draft, node, TurnCause::Inputs, consumed.unwrap_or_default());
    }
    if is_quiet(&draft.run, draft.now()) {
        start_auto_turns(draft);
    }
}

/// A queued run begins to work when a turn is free.
fn leave_queue(draft: &mut Draft<'_>) {
    if draft.run.status == RunStatus::Queued && draft.capacity().turns > 0 {
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Running,
            paused_reason: None,
        });
    }
}

/// The ready node whose oldest input has waited longest. Nodes that have waited equally long start
/// in the order of their creation.
fn next_ready_node(draft: &Draft<'_>) -> Option<NodeId> {
    let is_ready =
        |node: &&Node| find_hold(&draft.run, node, draft.now(), draft.capacity()).is_none();
    let ready = draft.run.nodes().filter(is_ready);
    ready
        .min_by_key(|node| node.inbox.oldest())
        .map(|node| node.id)
}

/// Whether nothing happens in a run that should go on by itself, and nothing will without a prompt.
/// Capacity is not looked at: a quiet run that finds none is quiet until there is some. A node that
/// waits for a person, because of its files or because the person has stopped it, keeps no other
/// node from going on.
fn is_quiet(run: &LiveRun, now: Timestamp) -> bool {
    let may_go_on = run.mode == Mode::Auto
        && run.status == RunStatus::Running
        && matches!(run.phase, Phase::Boot | Phase::Execute)
        && run.approvals.is_empty()
        && run.gates.is_empty();
    let is_waiting = |node: &Node| {
        let is_parked = node.retry_at.is_some_and(|retry_at| now < retry_at);
        // With room for every turn, only the node itself can hold it.
        let hold = find_hold(run, node, now, Capacity::UNLIMITED);
        let is_still = matches!(
            hold,
            Some(Hold::NoInput | Hold::AwaitsReplies(_) | Hold::Blocked | Hold::Interrupted)
        );
        is_still && !is_parked
    };
    may_go_on && run.nodes().all(is_waiting)
}

/// Prompts the orchestrators of a quiet run that find room. The one that has rested longest comes
/// first, so that each gets its turn where only one fits at a time.
fn start_auto_turns(draft: &mut Draft<'_>) {
    // A provider that takes nothing now may be the one that a worker needs for the next step.
    let parked = draft.capacity().parked_programs;
    let is_parked = |node: &Node| parked.iter().any(|program| program == node.program());
    if draft.run.nodes().any(is_parked) {
        return;
    }
    for node in orchestrators(&draft.run) {
        let known = draft.run.node(node);
        let hold = known
            .and_then(|node| find_capacity_hold(&draft.run, node, draft.now(), draft.capacity()));
        if hold.is_none() {
            start_turn(draft, node, TurnCause::Auto, Vec::new());
        }
    }
}

/// The orchestrators that may get an automatic turn. One that a person has stopped, or must decide
/// about, does not begin by itself.
fn orchestrators(run: &LiveRun) -> Vec<NodeId> {
    let may_begin = |node: &&Node| node.block.is_none() && !node.inputs_held;
    let leads = run.nodes().filter(|node| node.is_orchestrator());
    let mut leads: Vec<&Node> = leads.filter(may_begin).collect();
    // The sort is stable, so equal ones keep the order of their creation.
    leads.sort_by_key(|node| node.last_turn.as_ref().map(|turn| turn.ended_at));
    leads.into_iter().map(|node| node.id).collect()
}

/// Whether a turn would start if other runs used less, or if a program took more.
///
/// The server asks this when a turn of another run ends or a pause of a provider is over, and then
/// calls [`super::pass_time`]. A quiet run in AUTO mode waits like a node with input.
pub fn waits_for_capacity(run: &LiveRun, now: Timestamp, capacity: Capacity<'_>) -> bool {
    let waits = |node: &Node| {
        let hold = find_hold(run, node, now, capacity);
        // A hold that has just gone counts too: nothing has started the node yet.
        matches!(
            hold,
            None | Some(Hold::ServerFull | Hold::ProgramFull | Hold::ProgramParked)
        )
    };
    run.status == RunStatus::Queued
        || run.nodes().any(waits)
        || (is_quiet(run, now) && !orchestrators(run).is_empty())
}

fn start_turn(draft: &mut Draft<'_>, node: NodeId, cause: TurnCause, consumed: Vec<InputId>) {
    let Some(workspace) = fix_workspace(draft, node) else {
        return;
    };
    // Failed attempts are counted in the state, so that a restart does not begin anew.
    let attempt = draft.run.node(node).map_or(0, |node| node.failed_attempts) + 1;
    let turn: AgentTurnId = draft.draw_id();
    let started = TurnStep::Started {
        cause,
        consumed,
        mode: draft.run.mode,
        global_mode: draft.run.global_mode,
        attempt,
    };
    draft.step_turn(node, turn, started);
    draft.change_node(node, NodeChange::TurnOpened);
    // The first turn ends the start-up. A docs node works in its own phase.
    if matches!(draft.run.phase, Phase::Boot | Phase::Done) {
        draft.record(Fact::PhaseChanged(Phase::Execute));
    }
    // The capacity was counted before this decision.
    draft.around.capacity.turns = draft.around.capacity.turns.saturating_sub(1);
    draft.perform(Effect::PrepareTurn {
        node,
        turn,
        workspace,
    });
}

/// Where a node works. It is chosen at the node's first turn and never changes: a program that was
/// moved would look for its files in the wrong place. Only the branch of a worktree may be another
/// one, when the worktree was removed and is made again.
fn fix_workspace(draft: &mut Draft<'_>, id: NodeId) -> Option<Workspace> {
    let node = draft.run.node(id)?;
    let kind = match &node.workspace {
        Some(workspace)
            if workspace.kind == WorkspaceKind::Shared || workspace.branch.is_some() =>
        {
            return Some(workspace.clone());
        }
        // The worktree was removed. The node keeps the kind and gets a branch again.
        Some(workspace) => workspace.kind,
        None if needs_worktree(draft, node) => WorkspaceKind::Worktree,
        None => WorkspaceKind::Shared,
    };
    let workspace = Workspace {
        kind,
        branch: (kind == WorkspaceKind::Worktree).then(|| branch_name(draft.run.id, node)),
    };
    draft.change_node(id, NodeChange::WorkspaceFixed(workspace.clone()));
    Some(workspace)
}

/// Records the branch of a node's worktree, as the repository has it: another one than the wanted one
/// if that was taken, and none while the worktree is gone.
pub fn set_branch(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
    branch: Option<&str>,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    let worktree = node.workspace.as_ref();
    let worktree = worktree.filter(|workspace| workspace.kind == WorkspaceKind::Worktree);
    if worktree.is_some_and(|workspace| workspace.branch.as_deref() != branch) {
        let workspace = Workspace {
            kind: WorkspaceKind::Worktree,
            branch: branch.map(str::to_owned),
        };
        draft.change_node(id, NodeChange::WorkspaceFixed(workspace));
    }
    Ok(draft.finish(()))
}

fn needs_worktree(draft: &Draft<'_>, node: &Node) -> bool {
    let capabilities = node.settings.capabilities;
    // Whatever a node writes that it may not write can be undone in a worktree of its own.
    let is_restricted = draft.run.global_mode == GlobalMode::Planning || capabilities.delegate_only;
    let mut others = draft.run.nodes().filter(|other| other.id != node.id);
    let has_other_writer = others.any(|other| other.settings.capabilities.write_code);
    draft.around.has_repository && (is_restricted || (capabilities.write_code && has_other_writer))
}
