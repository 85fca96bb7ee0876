//! What the passing of time does to a run: turns that are silent or too long, approvals that
//! expire, and nodes whose pause is over.
//!
//! The server calls [`pass_time`] at [`next_deadline`] and at every other decision's end. Nothing
//! polls.

use turnkeep_types::Timestamp;

use crate::approval::Resolution;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange};
use crate::hold::{Hold, find_hold};
use crate::ids::{ApprovalId, NodeId};
use crate::live::LiveRun;
use crate::node::Node;
use crate::run::{Run, RunLimits};
use crate::turn::{OpenTurn, TurnStage};

use super::turns::AfterStop;
use super::{Capacity, Decision, Draft, LastHeard, Surroundings, approvals, schedule, turns};

/// How the reason of a turn begins that took too long.
pub(super) const TIMED_OUT: &str = "timed out";
/// How the reason of a turn ends whose program did not stop.
const KILLED: &str = ", and it was killed because it did not stop";
/// How long a program may take to stop before it is killed.
const KILL_AFTER_MS: u64 = 20_000;

/// Does what is due, then starts the turns that may start.
pub fn pass_time(run: &Run, around: Surroundings<'_>) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    // Before turns start: a denial may let a node go on.
    for approval in expired_approvals(&draft) {
        approvals::close(
            &mut draft,
            approval,
            Resolution::denied("nobody answered in time"),
        );
    }
    for (node, overdue) in overdue_turns(&draft) {
        act_on_overdue(&mut draft, node, overdue);
    }
    schedule::start_ready_turns(&mut draft);
    draft.finish(())
}

fn expired_approvals(draft: &Draft<'_>) -> Vec<ApprovalId> {
    let approvals = draft.run.approvals.values();
    let is_expired = |expires_at: Timestamp| expires_at <= draft.now();
    approvals
        .filter(|approval| approval.expires_at.is_some_and(is_expired))
        .map(|approval| approval.id)
        .collect()
}

/// What is wrong with a turn that takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overdue {
    /// It printed nothing for a while: clients show a warning.
    Warn,
    /// It printed nothing for too long: it is ended.
    Silent,
    /// It takes too long: it is ended.
    TooLong,
    /// It was asked to stop and did not: its program is killed.
    Unstoppable,
}

fn overdue_turns(draft: &Draft<'_>) -> Vec<(NodeId, Overdue)> {
    let limits = draft.run.settings.limits;
    // Only the most severe thing happens to a turn at a time.
    let overdue = |node: &Node| {
        let turn = node.turn.as_ref()?;
        let due = turn_deadlines(node, turn, limits, draft.heard()).into_iter();
        let mut passed = due.filter(|(at, _)| *at <= draft.now());
        passed.next().map(|(_, overdue)| (node.id, overdue))
    };
    draft.run.nodes().filter_map(overdue).collect()
}

/// The times at which something happens to a turn, the most severe first. A turn that the server still
/// prepares, or that waits for a person or a tool, is never overdue for silence.
fn turn_deadlines(
    node: &Node,
    turn: &OpenTurn,
    limits: RunLimits,
    heard: &LastHeard,
) -> Vec<(Timestamp, Overdue)> {
    if let TurnStage::Interrupting { since, .. } = turn.stage {
        let kill_at = Timestamp(since.0.saturating_add(KILL_AFTER_MS));
        return vec![(kill_at, Overdue::Unstoppable)];
    }
    // While the server prepares the turn (setup commands may take minutes), no program can print.
    let is_preparing = matches!(turn.stage, TurnStage::Preparing);
    // A program need not say that it started a tool, so a proposed one counts as running.
    let may_be_silent =
        is_preparing || !turn.open_tools.is_empty() || !node.open_approvals.is_empty();
    let after = |from: Timestamp, ms: u64, is_on: bool, overdue: Overdue| {
        (ms > 0 && is_on).then(|| (Timestamp(from.0.saturating_add(ms)), overdue))
    };
    // Output from before the prompt does not count: `last_output_at` begins at the prompt.
    let last_byte_at = heard.get(&node.id).copied();
    let silent_from = turn.last_output_at.max(last_byte_at.unwrap_or_default());
    // Each silence is warned about once.
    let is_warned = turn.silence_warned_at.is_some_and(|at| silent_from < at);
    let warn = !may_be_silent && !is_warned;
    [
        after(turn.started_at, limits.turn_end_ms, true, Overdue::TooLong),
        after(
            silent_from,
            limits.silence_end_ms,
            !may_be_silent,
            Overdue::Silent,
        ),
        after(silent_from, limits.silence_warn_ms, warn, Overdue::Warn),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn act_on_overdue(draft: &mut Draft<'_>, node: NodeId, overdue: Overdue) {
    match overdue {
        Overdue::Warn => {
            let turn = draft.run.node(node).and_then(|node| node.turn.as_ref());
            if let Some(turn) = turn.map(|turn| turn.id) {
                draft.record_in(node, turn, Fact::SilenceNoticed);
            }
        }
        Overdue::Silent => {
            let reason = "timed out: it printed nothing";
            turns::interrupt(draft, node, reason, AfterStop::Restart);
        }
        Overdue::TooLong => {
            let reason = "timed out: the turn took too long";
            turns::interrupt(draft, node, reason, AfterStop::Restart);
        }
        Overdue::Unstoppable => kill_program(draft, node),
    }
}

/// Ends the program of a turn that does not stop. The turn keeps the reason for which it was stopped.
fn kill_program(draft: &mut Draft<'_>, node: NodeId) {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    let Some(TurnStage::Interrupting {
        reason,
        continues,
        holds,
        ..
    }) = open.map(|open| open.stage.clone())
    else {
        return;
    };
    // Recorded, so that the next attempt has a deadline of its own.
    let first = reason.strip_suffix(KILLED).unwrap_or(&reason);
    let interrupting = NodeChange::Interrupting {
        reason: format!("{first}{KILLED}"),
        continues,
        holds,
    };
    draft.change_node(node, interrupting);
    draft.perform(Effect::EndProgram(node));
}

/// When [`pass_time`] has something to do next.
pub fn next_deadline(
    run: &LiveRun,
    now: Timestamp,
    capacity: Capacity<'_>,
    heard: &LastHeard,
) -> Option<Timestamp> {
    let approvals = run
        .approvals
        .values()
        .filter_map(|approval| approval.expires_at);
    let nodes = run.nodes().flat_map(|node| {
        let of_turn = node.turn.iter().flat_map(|turn| {
            let deadlines = turn_deadlines(node, turn, run.settings.limits, heard);
            deadlines.into_iter().map(|(at, _)| at)
        });
        let of_hold = match find_hold(run, node, now, capacity) {
            Some(Hold::FanIn { until } | Hold::RetryAt(until)) => Some(until),
            _ => None,
        };
        // A pause counts without waiting inputs too: it keeps an automatic run quiet.
        let retry_at = node.retry_at.filter(|retry_at| now < *retry_at);
        of_turn.chain(of_hold).chain(retry_at).collect::<Vec<_>>()
    });
    approvals.chain(nodes).min()
}
