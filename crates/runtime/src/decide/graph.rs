//! Nodes and edges: adding, changing and deleting them.
//!
//! A node that another node spawns is never freer than its parent: its permissions are tightened by
//! the parent's, and a parent that does not lead the run cannot give a right that it lacks.

use crate::approval::Resolution;
use crate::edge::Edge;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange};
use crate::ids::{ApprovalId, EdgeId, NodeId};
use crate::input::{Envelope, EnvelopeStatus, Input};
use crate::live::LiveRun;
use crate::node::{Capabilities, NewNode, Node, NodeSettings};
use crate::rejection::Rejection;
use crate::run::Run;
use crate::words::{EdgeKind, Expectation};

use super::{Decision, Draft, Surroundings, approvals, find_node, schedule, turns, verification};

const ALIAS_CHARACTERS_MAX: usize = 40;

/// A node to add.
#[derive(Debug, Clone)]
pub struct NodeRequest {
    pub settings: NodeSettings,
    /// The node that spawns it; `None` if a person adds it.
    pub parent: Option<NodeId>,
}

/// Adds a node.
pub fn add_node(
    run: &Run,
    around: Surroundings<'_>,
    request: NodeRequest,
) -> Result<Decision<NodeId>, Rejection> {
    let mut draft = Draft::new(run, around);
    let id = record_node(&mut draft, request)?;
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(id))
}

/// Rejects a node that the run must not have. Returns its depth.
pub(super) fn check_request(run: &LiveRun, request: &NodeRequest) -> Result<u32, Rejection> {
    check_settings(run, None, &request.settings)?;
    let nodes_max = run.settings.limits.nodes_max;
    if run.nodes().len() >= nodes_max as usize {
        return Err(Rejection::TooManyNodes(nodes_max));
    }
    let Some(parent) = request.parent else {
        return Ok(0);
    };
    let parent = run.node(parent).ok_or(Rejection::NodeGone(parent))?;
    check_parent(run, parent, &request.settings)
}

pub(super) fn record_node(
    draft: &mut Draft<'_>,
    request: NodeRequest,
) -> Result<NodeId, Rejection> {
    let depth = check_request(&draft.run, &request)?;
    let NodeRequest {
        mut settings,
        parent,
    } = request;
    if let Some(parent) = parent.and_then(|parent| draft.run.node(parent)) {
        settings.permissions = settings
            .permissions
            .tightened_by(parent.settings.permissions);
    }
    let id = draft.draw_id();
    let new = NewNode {
        id,
        settings,
        parent,
        depth,
    };
    draft.record_for(id, Fact::NodeAdded(Box::new(new)));
    Ok(id)
}

/// Checks that a parent may spawn such a node. Returns the depth of the child.
fn check_parent(run: &LiveRun, parent: &Node, child: &NodeSettings) -> Result<u32, Rejection> {
    if parent.depth >= run.settings.limits.spawn_depth_max {
        return Err(Rejection::TooDeep(parent.depth));
    }
    if !parent.is_orchestrator() {
        let missing = right_not_held(parent.settings.capabilities, child.capabilities);
        if let Some(right) = missing {
            return Err(Rejection::RightNotHeld(right));
        }
    }
    Ok(parent.depth + 1)
}

/// The first right that the child would have and the parent lacks.
fn right_not_held(parent: Capabilities, child: Capabilities) -> Option<&'static str> {
    [
        ("spawnNodes", parent.spawn_nodes, child.spawn_nodes),
        ("writeCode", parent.write_code, child.write_code),
        ("writeDocs", parent.write_docs, child.write_docs),
        ("runCommands", parent.run_commands, child.run_commands),
    ]
    .into_iter()
    .find(|(_, parent, child)| *child && !parent)
    .map(|(right, ..)| right)
}

fn check_settings(
    run: &LiveRun,
    changed: Option<NodeId>,
    settings: &NodeSettings,
) -> Result<(), Rejection> {
    if settings.label.trim().is_empty() {
        return Err(Rejection::Empty("the label"));
    }
    let Some(alias) = &settings.alias else {
        return Ok(());
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    // An alias that looks like an id could never be told apart from one.
    let is_good = !alias.is_empty()
        && alias.len() <= ALIAS_CHARACTERS_MAX
        && alias.chars().all(is_name)
        && alias.parse::<NodeId>().is_err();
    if !is_good {
        return Err(Rejection::BadAlias(alias.clone()));
    }
    match find_node(run, alias) {
        Ok(other) if Some(other.id) != changed => Err(Rejection::AliasTaken(alias.clone())),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Changes the settings of a node. Another provider cannot go on with the session of the old one.
pub fn change_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
    settings: NodeSettings,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let node = draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    check_settings(&draft.run, Some(id), &settings)?;
    let switches = (node.settings.provider, &node.settings.provider_name)
        != (settings.provider, &settings.provider_name);
    let has_turn = node.turn.is_some();
    if node.settings == settings {
        return Ok(draft.finish(()));
    }
    draft.change_node(id, NodeChange::Configured(Box::new(settings)));
    if switches {
        if has_turn {
            turns::interrupt(&mut draft, id, "the provider was changed");
        }
        // The new program gets a recap, because it was not part of the conversation.
        draft.change_node(id, NodeChange::SessionDropped { lost: true });
        draft.perform(Effect::ResetProgram(id));
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Deletes a node. Its mail goes back to the senders, so that they do not wait for it.
pub fn delete_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    // First of the effects: the program must not act between its deletion and its end.
    draft.perform(Effect::EndProgram(id));
    let edges = draft.run.edges.values().filter(|edge| edge.touches(id));
    for edge in edges.map(|edge| edge.id).collect::<Vec<EdgeId>>() {
        draft.record(Fact::EdgeDeleted(edge));
    }
    let approvals = draft
        .run
        .approvals
        .values()
        .filter(|approval| approval.node == id);
    for approval in approvals
        .map(|approval| approval.id)
        .collect::<Vec<ApprovalId>>()
    {
        approvals::close(&mut draft, approval, Resolution::denied("node deleted"));
    }
    return_mail(&mut draft, id);
    draft.record_for(id, Fact::NodeDeleted);
    verification::finish_docs(&mut draft, id);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Sends every envelope that the node has, or is working on, back to its sender.
fn return_mail(draft: &mut Draft<'_>, id: NodeId) {
    let Some(node) = draft.run.node(id) else {
        return;
    };
    let in_turn = node
        .turn
        .as_ref()
        .map_or(&[][..], |turn| turn.consumed.as_slice());
    // A consumed envelope was read; only its question may still be open.
    let is_open = |input: &&Input| match input {
        Input::Envelope(envelope) => draft
            .run
            .node(envelope.from)
            .is_some_and(|asker| asker.unanswered.contains(&envelope.id)),
        Input::Message(_) => false,
    };
    let mail: Vec<Envelope> = in_turn
        .iter()
        .filter(is_open)
        .chain(node.inbox.inputs())
        .filter_map(|input| match input {
            Input::Envelope(envelope) => Some((**envelope).clone()),
            Input::Message(_) => None,
        })
        .collect();
    for envelope in mail {
        // A deleted sender, or the daemon's mail to the node itself, has no inbox to return to.
        if envelope.from == id || draft.run.node(envelope.from).is_none() {
            continue;
        }
        let returned = Envelope {
            id: draft.draw_id(),
            from: id,
            to: envelope.from,
            created_at: draft.now(),
            status: Some(EnvelopeStatus {
                ok: false,
                reason: Some("the node was deleted".to_owned()),
            }),
            expectation: Expectation::None,
            reply_to: Some(envelope.id),
            synthesized: true,
            ..envelope
        };
        let to = returned.to;
        draft.record_for(id, Fact::EnvelopeSent(Box::new(returned)));
        draft.change_node(to, NodeChange::InboxCounted);
    }
}

/// An edge to create. Names are ids or aliases.
#[derive(Debug, Clone, Copy)]
pub struct EdgeRequest<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub kind: Option<EdgeKind>,
    pub label: Option<&'a str>,
    pub bidirectional: Option<bool>,
    pub gate: bool,
}

/// Connects two nodes. Returns the existing edge if there is one of the same kind.
pub fn connect(
    run: &Run,
    around: Surroundings<'_>,
    request: EdgeRequest<'_>,
) -> Result<Decision<EdgeId>, Rejection> {
    let mut draft = Draft::new(run, around);
    let id = record_edge(&mut draft, &request)?;
    Ok(draft.finish(id))
}

pub(super) fn record_edge(
    draft: &mut Draft<'_>,
    request: &EdgeRequest<'_>,
) -> Result<EdgeId, Rejection> {
    let from = find_node(&draft.run, request.from)?;
    let to = find_node(&draft.run, request.to)?;
    if from.id == to.id {
        return Err(Rejection::EdgeToItself);
    }
    // What goes to the node that leads is a report; everything else is a task.
    let reports = to.is_orchestrator() && !from.is_orchestrator();
    let usual = if reports {
        EdgeKind::Report
    } else {
        EdgeKind::Handoff
    };
    let kind = request.kind.unwrap_or(usual);
    let (from, to) = (from.id, to.id);
    let mut edges = draft.run.edges.values();
    let same = edges.find(|edge| edge.from == from && edge.to == to && edge.kind == kind);
    if let Some(id) = same.map(|edge| edge.id) {
        return Ok(id);
    }
    let usual_label = match kind {
        EdgeKind::Handoff => "task",
        EdgeKind::Report => "report",
    };
    let edge = Edge {
        id: draft.draw_id(),
        from,
        to,
        bidirectional: request.bidirectional.unwrap_or(true),
        kind,
        label: request.label.unwrap_or(usual_label).to_owned(),
        gate: request.gate,
    };
    let id = edge.id;
    draft.record(Fact::EdgeCreated(edge));
    Ok(id)
}

/// Deletes an edge. Envelopes that it carried stay in their inboxes.
pub fn disconnect(
    run: &Run,
    around: Surroundings<'_>,
    edge: EdgeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    if !draft.run.edges.contains_key(&edge) {
        return Err(Rejection::UnknownEdge(edge));
    }
    draft.record(Fact::EdgeDeleted(edge));
    Ok(draft.finish(()))
}
