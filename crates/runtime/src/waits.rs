//! Why a run does not go on: every wait with its reason, its age and who can end it.
//!
//! [`explain`] asks [`find_hold`], the same function that starts turns. A circle of nodes that wait
//! for each other's replies is a deadlock. Worked example: A asked B and waits for all replies; B
//! asked A before it read A's question, and waits for all replies too. Each question lies in the
//! inbox of a node that will not look into it.

use std::collections::BTreeSet;

use turnkeep_types::Timestamp;

use crate::decide::Capacity;
use crate::hold::{Hold, find_hold};
use crate::ids::{ApprovalId, EnvelopeId, NodeId};
use crate::input::InputId;
use crate::live::LiveRun;
use crate::node::{BlockReason, Node};
use crate::turn::TurnStage;
use crate::words::{PausedReason, RunStatus};

/// Who can end a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A person.
    Person,
    /// Another node.
    Node(NodeId),
    /// The program behind a node, or its provider.
    Program(String),
    /// The daemon itself, which is at work or waits for a time to come.
    Daemon,
}

/// Why something does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// The run is not running.
    RunStopped {
        /// Its status.
        status: RunStatus,
        /// Why it is paused.
        paused: Option<PausedReason>,
    },
    /// Verification commands run.
    Verification,
    /// The run has no node.
    NoNodes,
    /// The node has nothing to do.
    NoInput,
    /// The workspace and the prompt are being prepared.
    Preparing,
    /// The program works.
    Working,
    /// The program is being stopped.
    Interrupting,
    /// A person must decide about a call.
    Approval(ApprovalId),
    /// A person should answer a question. The node goes on meanwhile.
    Question(ApprovalId),
    /// The node goes in circles.
    Stall,
    /// A person must decide about files that the node may not write.
    Violation(BTreeSet<String>),
    /// Another node owes a reply.
    Reply(EnvelopeId),
    /// The node waits for something that keeps it from starting.
    Held(Hold),
}

/// One wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The node that waits; the run as a whole without one.
    pub node: Option<NodeId>,
    pub reason: WaitReason,
    pub since: Timestamp,
    pub owner: Owner,
}

/// Why a run does not go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Every wait: those of the run, then those of its nodes in the order of their creation.
    pub waits: Vec<Wait>,
    /// Circles of nodes that wait for each other.
    pub deadlocks: Vec<Vec<NodeId>>,
}

/// Explains a run.
pub fn explain(run: &LiveRun, now: Timestamp, capacity: Capacity<'_>) -> Explanation {
    let mut waits = waits_of_run(run);
    for node in run.nodes() {
        waits.extend(waits_of_node(run, node, now, capacity));
    }
    Explanation {
        deadlocks: find_deadlocks(&waits),
        waits,
    }
}

fn waits_of_run(run: &LiveRun) -> Vec<Wait> {
    let wait = |reason, since, owner| Wait {
        node: None,
        reason,
        since,
        owner,
    };
    let mut waits = Vec::new();
    if run.status != RunStatus::Running {
        let status = run.status;
        let paused = run.paused_reason;
        let stopped = WaitReason::RunStopped { status, paused };
        waits.push(wait(stopped, run.status_since, Owner::Person));
    }
    if let Some(verification) = run.verification {
        let since = verification.since;
        waits.push(wait(WaitReason::Verification, since, Owner::Daemon));
    }
    if run.nodes().len() == 0 {
        waits.push(wait(WaitReason::NoNodes, run.empty_since, Owner::Person));
    }
    waits
}

fn waits_of_node(run: &LiveRun, node: &Node, now: Timestamp, capacity: Capacity<'_>) -> Vec<Wait> {
    let mut waits = approvals_of(run, node);
    waits.extend(gates_of(run, node));
    match &node.block {
        Some(BlockReason::Stall) => waits.push(wait_of(node, WaitReason::Stall, Owner::Person)),
        Some(BlockReason::Violation { paths, .. }) => {
            let reason = WaitReason::Violation(paths.clone());
            waits.push(wait_of(node, reason, Owner::Person));
        }
        Some(BlockReason::Approvals) | None => {}
    }
    // A blocked node waits for a person alone, whatever lies in its inbox.
    if node.block.is_none() {
        waits.extend(wait_for_turn(run, node, now, capacity));
    }
    waits
}

fn approvals_of(run: &LiveRun, node: &Node) -> Vec<Wait> {
    let open = run
        .approvals
        .values()
        .filter(|approval| approval.node == node.id);
    open.map(|approval| Wait {
        node: Some(node.id),
        reason: if approval.blocks_node() {
            WaitReason::Approval(approval.id)
        } else {
            WaitReason::Question(approval.id)
        },
        since: approval.created_at,
        owner: Owner::Person,
    })
    .collect()
}

/// The envelopes of a node that wait for the verification of its work.
fn gates_of(run: &LiveRun, node: &Node) -> Vec<Wait> {
    let held = run.gates.values();
    held.filter(|held| held.envelope.from == node.id)
        .map(|held| Wait {
            since: held.since,
            ..wait_of(node, WaitReason::Verification, Owner::Daemon)
        })
        .collect()
}

fn wait_of(node: &Node, reason: WaitReason, owner: Owner) -> Wait {
    Wait {
        node: Some(node.id),
        reason,
        since: node.status_since,
        owner,
    }
}

/// What the node's open turn waits for, or what its next turn waits for.
fn wait_for_turn(run: &LiveRun, node: &Node, now: Timestamp, capacity: Capacity<'_>) -> Vec<Wait> {
    let program = || Owner::Program(node.program().to_owned());
    if let Some(turn) = &node.turn {
        let (reason, owner) = match turn.stage {
            TurnStage::Preparing => (WaitReason::Preparing, Owner::Daemon),
            TurnStage::Working => (WaitReason::Working, program()),
            TurnStage::Interrupting { .. } => (WaitReason::Interrupting, program()),
        };
        // A program that prints is not silent, however long its turn is.
        let since = turn.last_output_at;
        return vec![Wait {
            since,
            ..wait_of(node, reason, owner)
        }];
    }
    let Some(hold) = find_hold(run, node, now, capacity) else {
        return Vec::new();
    };
    let since = node.inbox.oldest().unwrap_or(node.status_since);
    let (reason, owner) = match hold {
        // The run as a whole says so already.
        Hold::RunStopped | Hold::TurnOpen | Hold::Blocked => return Vec::new(),
        Hold::AwaitsReplies(questions) => return waits_for_replies(run, node, &questions, since),
        // It has asked others, and goes on when one of them replies.
        Hold::NoInput if !node.unanswered.is_empty() => {
            return waits_for_replies(run, node, &node.unanswered, since);
        }
        Hold::NoInput => (WaitReason::NoInput, Owner::Person),
        Hold::Interrupted => (WaitReason::Held(hold), Owner::Person),
        Hold::RetryAt(_) | Hold::ProgramParked | Hold::ProgramFull => {
            (WaitReason::Held(hold), program())
        }
        Hold::FanIn { .. } | Hold::RunFull | Hold::ServerFull => {
            (WaitReason::Held(hold), Owner::Daemon)
        }
    };
    vec![Wait {
        since,
        ..wait_of(node, reason, owner)
    }]
}

fn waits_for_replies(
    run: &LiveRun,
    node: &Node,
    questions: &BTreeSet<EnvelopeId>,
    since: Timestamp,
) -> Vec<Wait> {
    let wait = |question: &EnvelopeId| Wait {
        since,
        ..wait_of(
            node,
            WaitReason::Reply(*question),
            find_holder(run, *question).map_or(Owner::Daemon, Owner::Node),
        )
    };
    questions.iter().map(wait).collect()
}

/// The node that has an envelope in its inbox, works on it, or owes the reply from an earlier turn.
fn find_holder(run: &LiveRun, envelope: EnvelopeId) -> Option<NodeId> {
    let id = InputId::Envelope(envelope);
    let has_it = |node: &&Node| {
        let in_turn = node.turn.iter().flat_map(|turn| &turn.consumed);
        let mut inputs = node.inbox.inputs().iter().chain(in_turn);
        inputs.any(|input| input.id() == id) || node.owed.iter().any(|owed| owed.id == envelope)
    };
    // A reply at a gate is the daemon's to deliver.
    if run.holds_reply_to(envelope) {
        return None;
    }
    run.nodes().find(has_it).map(|node| node.id)
}

/// Follows each node's waits for replies. A walk that comes back to its start is a circle; each
/// circle is reported once, from its smallest id.
fn find_deadlocks(waits: &[Wait]) -> Vec<Vec<NodeId>> {
    let mut found = BTreeSet::new();
    let waiting: BTreeSet<NodeId> = waits.iter().filter_map(|wait| wait.node).collect();
    for start in waiting {
        let mut circle = vec![start];
        if walk_back_to(start, start, waits, &mut circle) {
            let smallest = circle.iter().min().copied();
            let place = circle.iter().position(|node| Some(*node) == smallest);
            circle.rotate_left(place.unwrap_or(0));
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Extends `path` by nodes that wait for each other until it comes back to `start`.
fn walk_back_to(start: NodeId, from: NodeId, waits: &[Wait], path: &mut Vec<NodeId>) -> bool {
    for wait in waits.iter().filter(|wait| wait.node == Some(from)) {
        let (WaitReason::Reply(_), Owner::Node(next)) = (&wait.reason, &wait.owner) else {
            continue;
        };
        if *next == start {
            return true;
        }
        // A smaller circle that does not lead back to the start is found from its own nodes.
        if path.contains(next) {
            continue;
        }
        path.push(*next);
        if walk_back_to(start, *next, waits, path) {
            return true;
        }
        path.pop();
    }
    false
}
