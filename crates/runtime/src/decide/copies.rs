//! A run that was copied from another one: a fork, or an import from another server.
//!
//! A copy begins with the events of its origin and their ids. [`settle_copy`] records, as its first
//! own events, what a copy cannot share with its origin: programs and their sessions, directories,
//! questions to a person, and rules. After them no open turn or approval is left, so no id of an
//! approval is open in two runs.

use std::sync::Arc;

use crate::approval::Resolution;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{ApprovalId, NodeId, RuleId};
use crate::input::Input;
use crate::live::LiveRun;
use crate::node::BlockReason;
use crate::run::{Run, RunSettings};
use crate::words::{MessageRole, NodeStatus, PausedReason, Phase, RunStatus};

use super::{Decision, Draft, Surroundings, approvals, gates, turns, verification};

/// Where a copy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyOrigin {
    /// A run of this server. The copy is made to go on another way, so it is always paused.
    Fork,
    /// A file. A run that had ended stays ended.
    Import,
}

/// How a copy begins.
#[derive(Debug, Clone)]
pub struct RunCopy {
    pub origin: CopyOrigin,
    /// Its title, if it is not the same.
    pub title: Option<String>,
    /// Its directory, if it is not the same.
    pub cwd: Option<String>,
    /// What it may keep of its origin.
    pub keeps: KeptByCopy,
}

/// The world and the rules that a copy may keep.
///
/// A fork keeps no more than its origin has now: one that begins at an earlier event must not bring back
/// a rule that a person has deleted, or what an import has left behind. An import keeps nothing: persons
/// of another machine made the rules, and a world of this server may only happen to have the same name.
#[derive(Debug, Clone, Default)]
pub struct KeptByCopy {
    pub world: Option<String>,
    pub rules: Vec<RuleId>,
}

impl KeptByCopy {
    /// Everything that a run has now.
    pub fn all_of(run: &LiveRun) -> Self {
        Self {
            world: run.settings.world.clone(),
            rules: run.rules.iter().map(|rule| rule.id).collect(),
        }
    }
}

/// Ends everything in a copy that belongs to its origin.
///
/// The answer has no effects: no program of the copy runs yet.
pub fn settle_copy(run: &Run, around: Surroundings<'_>, copy: &RunCopy) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    pause(&mut draft, copy.origin);
    change_settings(&mut draft, copy);
    let nodes: Vec<NodeId> = draft.run.nodes().map(|node| node.id).collect();
    for node in &nodes {
        end_open_turn(&mut draft, *node);
    }
    close_approvals(&mut draft);
    // A verification runs in the directories of the origin.
    if draft.run.phase == Phase::Verify {
        verification::leave_verify_phase(&mut draft);
    }
    gates::give_up_all(&mut draft, "the run was copied");
    for node in nodes {
        detach_node(&mut draft, node);
    }
    replace_rules(&mut draft, &copy.keeps.rules);
    let mut decision = draft.finish(());
    decision.effects.clear();
    decision
}

/// Recorded even if nothing changes: the first own event has the key of the caller's request.
fn pause(draft: &mut Draft<'_>, origin: CopyOrigin) {
    let status = draft.run.status;
    let has_ended = matches!(status, RunStatus::Completed | RunStatus::Failed);
    // An import shows a run as it was. A fork is made to go on from there.
    let stays_ended = has_ended && origin == CopyOrigin::Import;
    let fact = if stays_ended {
        Fact::RunStatusChanged {
            status,
            paused_reason: None,
        }
    } else {
        Fact::RunStatusChanged {
            status: RunStatus::Paused,
            paused_reason: Some(PausedReason::User),
        }
    };
    draft.record(fact);
    if has_ended && !stays_ended {
        draft.record(Fact::PhaseChanged(Phase::Execute));
    }
}

fn change_settings(draft: &mut Draft<'_>, copy: &RunCopy) {
    let before = Arc::clone(&draft.run.settings);
    let mut settings = RunSettings::clone(&before);
    if let Some(title) = &copy.title {
        settings.title.clone_from(title);
    }
    if let Some(cwd) = &copy.cwd {
        settings.cwd = Some(cwd.clone());
    }
    if settings.world != copy.keeps.world {
        settings.world = None;
    }
    if settings != *before {
        draft.record(Fact::RunConfigured(Box::new(settings)));
    }
}

fn end_open_turn(draft: &mut Draft<'_>, id: NodeId) {
    const REASON: &str = "the run was copied";
    let Some(node) = draft.run.node(id) else {
        return;
    };
    let Some(open) = node.turn.clone() else {
        return;
    };
    let waiting: Vec<ApprovalId> = node.open_approvals.iter().copied().collect();
    turns::close_text(draft, id, &open, true);
    turns::close_tools(draft, id, open.id, REASON);
    let interrupted = TurnStep::Interrupted {
        detail: REASON.to_owned(),
        // All of them: the copy's program has a new session, which has read nothing.
        requeued: open.consumed.iter().map(Input::id).collect(),
        holds: false,
    };
    draft.step_turn(id, open.id, interrupted);
    for approval in waiting {
        approvals::close(draft, approval, Resolution::denied(REASON));
    }
    let rested = NodeChange::Rested {
        status: NodeStatus::Idle,
        summary: "interrupted: the run was copied".to_owned(),
    };
    draft.change_node(id, rested);
}

/// Closes what is still open: questions of turns that have ended. An answer to one of them goes to
/// the origin.
fn close_approvals(draft: &mut Draft<'_>) {
    let open: Vec<_> = draft.run.approvals.values().cloned().collect();
    for approval in open {
        let fact = Fact::ApprovalResolved {
            approval: approval.id,
            resolution: Resolution::denied("the run was copied"),
        };
        draft.record_in(approval.node, approval.turn, fact);
        if !approval.blocks_node() {
            let note = format!("Your question got no answer: {}", approval.context);
            turns::send_message(draft, approval.node, MessageRole::System, note);
        }
    }
}

/// Takes the session and the workspace of the origin from a node.
fn detach_node(draft: &mut Draft<'_>, id: NodeId) {
    let Some(node) = draft.run.node(id) else {
        return;
    };
    let has_session = node.session.id.is_some() || node.session.prompt_hash.is_some();
    let has_workspace = node.workspace.is_some();
    // The files in question are in a directory of the origin, where they are kept or reverted.
    let has_violation = matches!(node.block, Some(BlockReason::Violation { .. }));
    if has_session {
        // As lost: the first prompt of the new session recalls the last turns.
        draft.drop_session(id, true);
    }
    if has_workspace {
        draft.change_node(id, NodeChange::WorkspaceReleased);
    }
    if has_violation {
        draft.change_node(id, NodeChange::Unblocked);
    }
}

/// Gives the rules that a copy keeps ids of their own, so that deleting one leaves the origin's.
fn replace_rules(draft: &mut Draft<'_>, kept: &[RuleId]) {
    for rule in draft.run.rules.clone() {
        draft.record(Fact::RuleDeleted(rule.id));
        if kept.contains(&rule.id) {
            let mut own = rule;
            own.id = draft.draw_id();
            draft.record(Fact::RuleAdded(own));
        }
    }
}
