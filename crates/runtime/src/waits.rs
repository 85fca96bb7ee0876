//! Why a run does not go on: every wait with its reason, its age and who can end it.
//!
//! [`explain`] asks [`find_hold`], the same function that starts turns. A circle of nodes that wait
//! for each other's replies is a deadlock. Worked example: A asked B and waits for all replies; B
//! asked A before it read A's question, and waits for all replies too. Each question lies in the
//! inbox of a node that will not look into it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turnkeep_types::Timestamp;

use crate::decide::Capacity;
use crate::hold::{Hold, find_hold};
use crate::ids::{AgentTurnId, ApprovalId, EnvelopeId, NodeId};
use crate::input::InputId;
use crate::live::LiveRun;
use crate::node::{BlockReason, Node};
use crate::turn::TurnStage;
use crate::words::{NodeStatus, PausedReason, RunStatus};

/// Who can end a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A person.
    Person,
    /// Another node.
    Node(NodeId),
    /// The program behind a node, or its provider.
    Program(String),
    /// The server itself, which is at work or waits for a time to come.
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
    /// The last turn of the node failed. A retry or a message lets it go on.
    Failure {
        /// The failed turn.
        turn: AgentTurnId,
        /// Why it failed, in words.
        text: String,
    },
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

/// Nodes that wait for each other's replies. Only a person ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for the next one, and the last one for the first.
    pub nodes: Vec<NodeId>,
    /// When the last of them began to wait.
    pub since: Timestamp,
}

/// The deadlocks of a run. A pause that ends by itself, or a lack of room, makes none and hides none.
pub fn list_deadlocks(run: &LiveRun) -> Vec<Deadlock> {
    let Explanation { waits, deadlocks } = explain(run, Timestamp(u64::MAX), Capacity::UNLIMITED);
    let since_of = |nodes: &[NodeId]| {
        let of_circle = |wait: &&Wait| wait.node.is_some_and(|node| nodes.contains(&node));
        let since = waits.iter().filter(of_circle).map(|wait| wait.since);
        since.max().unwrap_or_default()
    };
    let found = deadlocks.into_iter();
    found
        .map(|nodes| Deadlock {
            since: since_of(&nodes),
            nodes,
        })
        .collect()
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
        let owner = match run.status {
            // It begins when a turn is free.
            RunStatus::Queued => Owner::Daemon,
            _ => Owner::Person,
        };
        waits.push(wait(stopped, run.status_since, owner));
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
        Hold::RunStopped => return wait_for_retry(run, node).into_iter().collect(),
        Hold::TurnOpen | Hold::Blocked => return Vec::new(),
        Hold::AwaitsReplies(questions) => return waits_for_replies(run, node, &questions, since),
        Hold::NoInput => return wait_for_input(run, node, since),
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

/// What a node with an empty inbox waits for.
fn wait_for_input(run: &LiveRun, node: &Node, since: Timestamp) -> Vec<Wait> {
    // If it has asked others, it goes on when one of them replies, also after a failure.
    let replies = waits_for_replies(run, node, &node.unanswered, since);
    let waits: Vec<Wait> = wait_for_retry(run, node)
        .into_iter()
        .chain(replies)
        .collect();
    if waits.is_empty() {
        let idle = wait_of(node, WaitReason::NoInput, Owner::Person);
        return vec![Wait { since, ..idle }];
    }
    waits
}

/// The wait of a node whose last turn failed. In a completed run nothing is left to try again.
fn wait_for_retry(run: &LiveRun, node: &Node) -> Option<Wait> {
    let has_failed = node.status == NodeStatus::Failed && run.status != RunStatus::Completed;
    let failed = node.last_turn.as_ref().filter(|_| has_failed)?;
    let reason = WaitReason::Failure {
        turn: failed.id,
        text: node.summary.clone(),
    };
    Some(wait_of(node, reason, Owner::Person))
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
    // A reply at a gate is the server's to deliver.
    if run.holds_reply_to(envelope) {
        return None;
    }
    run.nodes().find(has_it).map(|node| node.id)
}

/// The circles of nodes that wait for each other's replies.
fn find_deadlocks(waits: &[Wait]) -> Vec<Vec<NodeId>> {
    let mut awaited: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for wait in waits {
        if let (WaitReason::Reply(_), Owner::Node(owner), Some(node)) =
            (&wait.reason, &wait.owner, wait.node)
        {
            awaited.entry(node).or_default().push(*owner);
        }
    }
    let waiting: Vec<NodeId> = awaited.keys().copied().collect();
    find_circles(&waiting, |node| {
        awaited.get(&node).cloned().unwrap_or_default()
    })
}

/// The shortest circle through each of these nodes, if there is one. Each circle is reported once,
/// from its smallest id.
fn find_circles(
    nodes: &[NodeId],
    mut next_of: impl FnMut(NodeId) -> Vec<NodeId>,
) -> Vec<Vec<NodeId>> {
    let mut found = BTreeSet::new();
    for start in nodes {
        if let Some(mut circle) = find_circle_through(*start, &mut next_of) {
            let smallest = circle.iter().min().copied();
            let place = circle.iter().position(|node| Some(*node) == smallest);
            circle.rotate_left(place.unwrap_or(0));
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Walks from a node in all directions, one step further at a time, until it comes back. It looks at
/// each node once: the number of ways through a graph may be exponential in its size.
fn find_circle_through(
    start: NodeId,
    next_of: &mut impl FnMut(NodeId) -> Vec<NodeId>,
) -> Option<Vec<NodeId>> {
    let mut reached_from: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(node) = waiting.pop_front() {
        // The first way that comes back is a shortest one, because all ways grow by one step at a time.
        for next in next_of(node) {
            if next == start {
                return Some(walk_back(&reached_from, node));
            }
            if let Entry::Vacant(entry) = reached_from.entry(next) {
                entry.insert(node);
                waiting.push_back(next);
            }
        }
    }
    None
}

/// The way from the start to a node.
fn walk_back(reached_from: &BTreeMap<NodeId, NodeId>, end: NodeId) -> Vec<NodeId> {
    let mut path = vec![end];
    let mut node = end;
    while let Some(before) = reached_from.get(&node) {
        path.push(*before);
        node = *before;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid as _;

    fn id(number: u128) -> NodeId {
        NodeId::from_bits(number)
    }

    fn circles_of(edges: &[(u128, u128)]) -> Vec<Vec<NodeId>> {
        let nodes: BTreeSet<NodeId> = edges.iter().map(|(from, _)| id(*from)).collect();
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        find_circles(&nodes, |node| {
            let of_node = edges.iter().filter(|(from, _)| id(*from) == node);
            of_node.map(|(_, to)| id(*to)).collect()
        })
    }

    #[test]
    fn each_circle_is_found_once_from_its_smallest_id() {
        let check = |edges: &[(u128, u128)], expect: &[&[u128]]| {
            let ids = |circle: &&[u128]| circle.iter().copied().map(id).collect::<Vec<_>>();
            let expect: Vec<Vec<NodeId>> = expect.iter().map(ids).collect();
            assert_eq!(circles_of(edges), expect, "{edges:?}");
        };
        check(&[], &[]);
        check(&[(1, 2), (2, 3)], &[]);
        check(&[(2, 1), (1, 2)], &[&[1, 2]]);
        check(&[(3, 1), (1, 2), (2, 3)], &[&[1, 2, 3]]);
        check(&[(1, 2), (2, 1), (2, 3), (3, 2)], &[&[1, 2], &[2, 3]]);
        // A node that only waits for a circle is in none.
        check(&[(9, 1), (1, 2), (2, 1)], &[&[1, 2]]);
    }

    #[test]
    fn a_graph_with_very_many_ways_is_searched_in_few_steps() {
        // Each node of a layer waits for all nodes of the next one: 4^20 ways, and no way back.
        const LAYERS: u128 = 20;
        const WIDTH: u128 = 4;
        let nodes: Vec<NodeId> = (0..LAYERS * WIDTH).map(id).collect();
        let mut looked_at = 0;
        let circles = find_circles(&nodes, |node| {
            looked_at += 1;
            let layer = node.bits() / WIDTH + 1;
            let next = layer * WIDTH..(layer + 1) * WIDTH;
            next.filter(|node| *node < LAYERS * WIDTH).map(id).collect()
        });
        assert_eq!(circles, Vec::<Vec<NodeId>>::new());
        assert!(looked_at <= nodes.len() * nodes.len(), "{looked_at}");
    }
}
