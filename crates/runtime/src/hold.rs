//! Why a node does not start a turn now.
//!
//! [`find_hold`] is the one place that decides whether a node is ready. The scheduler starts the
//! nodes that nothing holds, and the explanation of a run shows the others with what holds them, so
//! that both can never disagree.

use std::collections::BTreeSet;

use turnkeep_types::Timestamp;

use crate::decide::Capacity;
use crate::ids::EnvelopeId;
use crate::input::Input;
use crate::live::LiveRun;
use crate::node::Node;
use crate::words::{NodeStatus, RunStatus, WakeOn};

/// What keeps a node from starting a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// The run is not running.
    RunStopped,
    /// A turn is open already.
    TurnOpen,
    /// A person must decide something first.
    Blocked,
    /// Nothing waits for it.
    NoInput,
    /// A person stopped its turn before the program had seen the inputs. They wait until something
    /// new arrives.
    Interrupted,
    /// It waits for all replies to its questions.
    AwaitsReplies(BTreeSet<EnvelopeId>),
    /// It waits a moment for further envelopes.
    FanIn {
        /// Until when.
        until: Timestamp,
    },
    /// It tries again later.
    RetryAt(Timestamp),
    /// Its provider asked a node of this or another run to wait.
    ProgramParked,
    /// The run has as many open turns as it may.
    RunFull,
    /// All runs together have as many open turns as they may.
    ServerFull,
    /// The program has as many open turns as it may.
    ProgramFull,
}

/// What keeps a node from starting a turn; `None` if it is ready.
pub fn find_hold(
    run: &LiveRun,
    node: &Node,
    now: Timestamp,
    capacity: Capacity<'_>,
) -> Option<Hold> {
    if !matches!(run.status, RunStatus::Running | RunStatus::Queued) || run.is_deleted {
        return Some(Hold::RunStopped);
    }
    if node.turn.is_some() {
        return Some(Hold::TurnOpen);
    }
    if node.status == NodeStatus::Blocked {
        return Some(Hold::Blocked);
    }
    // Input first: a node without any does not wait for room.
    find_input_hold(run, node, now).or_else(|| find_capacity_hold(run, node, now, capacity))
}

/// What is missing from the inbox.
fn find_input_hold(run: &LiveRun, node: &Node, now: Timestamp) -> Option<Hold> {
    if node.inbox.is_empty() {
        return Some(Hold::NoInput);
    }
    if node.inputs_held {
        return Some(Hold::Interrupted);
    }
    // A person never waits for other agents, and neither does a note of the server.
    let has_message = |input: &Input| matches!(input, Input::Message(_));
    if node.inbox.inputs().iter().any(has_message) {
        return None;
    }
    if node.settings.wake_on == WakeOn::All && !node.awaited_replies.is_empty() {
        return Some(Hold::AwaitsReplies(node.awaited_replies.clone()));
    }
    let until = Timestamp(node.woken_at?.0 + run.settings.limits.fan_in_ms);
    (now < until).then_some(Hold::FanIn { until })
}

/// Whether another node of the run waits for the same program. The capacity was read before the
/// decision, which may have parked that node only now.
fn is_parked_here(run: &LiveRun, node: &Node, now: Timestamp) -> bool {
    let mut others = run
        .nodes()
        .filter(|other| other.program() == node.program());
    others.any(|other| other.retry_at.is_some_and(|retry_at| now < retry_at))
}

/// What is missing besides input. An automatic turn needs no input, and asks only this.
pub(crate) fn find_capacity_hold(
    run: &LiveRun,
    node: &Node,
    now: Timestamp,
    capacity: Capacity<'_>,
) -> Option<Hold> {
    let is_listed = |programs: &[String]| programs.iter().any(|program| program == node.program());
    // The longest waits come first, so that the explanation names what ends last.
    let open_turns = run.nodes().filter(|node| node.turn.is_some()).count();
    if let Some(retry_at) = node.retry_at.filter(|retry_at| now < *retry_at) {
        Some(Hold::RetryAt(retry_at))
    } else if is_listed(capacity.parked_programs) || is_parked_here(run, node, now) {
        Some(Hold::ProgramParked)
    } else if open_turns >= run.settings.limits.open_turns_max as usize {
        Some(Hold::RunFull)
    } else if is_listed(capacity.full_programs) {
        Some(Hold::ProgramFull)
    } else if capacity.turns == 0 || run.status == RunStatus::Queued {
        Some(Hold::ServerFull)
    } else {
        None
    }
}
