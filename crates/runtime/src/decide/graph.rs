//! Nodes and edges: adding, changing and deleting them.
//!
//! A node that another node spawns is never freer than its parent: its permissions are tightened by
//! the parent's, and a parent that does not lead the run cannot give a right that it lacks.

use crate::edge::Edge;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{EdgeId, NodeId};
use crate::input::Input;
use crate::live::LiveRun;
use crate::node::{Capabilities, NewNode, Node, NodeSettings};
use crate::rejection::Rejection;
use crate::request::MadeId;
use crate::run::Run;
use crate::words::{EdgeKind, NodeStatus, WorkspaceKind};

use super::turns::AfterStop;
use super::{
    Decision, Draft, Surroundings, approvals, find_node, gates, replies, schedule, turns,
    verification,
};

const ALIAS_CHARACTERS_MAX: usize = 40;
/// Labels and roles stand in prompts and in lists.
const NAME_CHARACTERS_MAX: usize = 80;
const NODE_DELETED: &str = "node deleted";

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
    draft.note_made(MadeId::Node(id));
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
        // Not rejected: a node that asks for more than its parent has gets what the parent has.
        settings.permissions = settings
            .permissions
            .tightened_by(parent.effective_permissions());
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
    let depth_max = run.settings.limits.spawn_depth_max;
    if parent.depth >= depth_max {
        return Err(Rejection::TooDeep(depth_max));
    }
    if !parent.is_orchestrator() {
        let missing = right_not_held(parent.settings.capabilities, child.capabilities);
        if let Some(right) = missing {
            return Err(Rejection::RightNotHeld(right));
        }
    }
    Ok(parent.depth + 1)
}

/// The first right that the child would have and the parent lacks. A node that only delegates has no
/// right to write, whatever its other capabilities say.
fn right_not_held(parent: Capabilities, child: Capabilities) -> Option<&'static str> {
    let (parent, child) = (parent.effective(), child.effective());
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

/// Rejects a name that could break out of its line in a prompt, or fill it.
fn check_name(field: &'static str, name: &str) -> Result<(), Rejection> {
    // Unicode has two line breaks of its own, which are no control characters.
    let breaks_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let is_good = !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARACTERS_MAX
        && !name.contains(breaks_line);
    if is_good {
        Ok(())
    } else {
        Err(Rejection::BadName {
            field,
            max: NAME_CHARACTERS_MAX,
        })
    }
}

fn check_settings(
    run: &LiveRun,
    changed: Option<NodeId>,
    settings: &NodeSettings,
) -> Result<(), Rejection> {
    check_name("label", &settings.label)?;
    check_name("roleTemplate", &settings.role)?;
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
    // A client that sends the same form twice must not fill the log.
    if node.settings == settings {
        return Ok(draft.finish(()));
    }
    draft.change_node(id, NodeChange::Configured(Box::new(settings)));
    if switches {
        if has_turn {
            let reason = "the provider was changed";
            turns::interrupt(&mut draft, id, reason, AfterStop::Restart);
        }
        // The new program gets a recap, because it was not part of the conversation.
        draft.drop_session(id, true);
        // The next prompt starts the new one.
        draft.perform(Effect::EndProgram(id));
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Deletes a node. Its turn ends, and its mail goes back, so that no sender waits for a reply.
/// The last event names the inputs that could not go back.
pub fn delete_node(
    run: &Run,
    around: Surroundings<'_>,
    id: NodeId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    draft.run.node(id).ok_or(Rejection::NodeGone(id))?;
    let worktree = worktree_removal(&draft.run, id);
    // First of the effects: the program must not act between its deletion and its end.
    draft.perform(Effect::EndProgram(id));
    let edges = draft.run.edges.values().filter(|edge| edge.touches(id));
    for edge in edges.map(|edge| edge.id).collect::<Vec<EdgeId>>() {
        draft.record(Fact::EdgeDeleted(edge));
    }
    // Before the turn ends: a result that came later would belong to no node.
    verification::cancel_claim_of_node(&mut draft, id);
    gates::cancel_of_node(&mut draft, id, "the node was deleted");
    approvals::withdraw_all(&mut draft, id, NODE_DELETED);
    end_turn_of_deleted(&mut draft, id);
    // After the turn: it has put back what its program never saw.
    let dropped = replies::return_mail(&mut draft, id);
    let dropped = dropped.iter().map(Input::id).collect();
    draft.record_for(id, Fact::NodeDeleted { dropped });
    if let Some(removal) = worktree {
        draft.perform(removal);
    }
    verification::finish_docs(&mut draft, id);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// The removal of a node's worktree, if the node has one.
fn worktree_removal(run: &LiveRun, id: NodeId) -> Option<Effect> {
    let node = run.node(id)?;
    let workspace = node.workspace.as_ref()?;
    (workspace.kind == WorkspaceKind::Worktree).then(|| Effect::RemoveWorktree {
        node: id,
        name: node.name().to_owned(),
        branch: workspace.branch.clone(),
    })
}

/// Ends the open turn of a node that is deleted. Inputs that its program never saw go back into the
/// inbox first, so that they are returned or named with the others.
fn end_turn_of_deleted(draft: &mut Draft<'_>, id: NodeId) {
    let Some(open) = draft.run.node(id).and_then(|node| node.turn.clone()) else {
        return;
    };
    turns::close_text(draft, id, &open, true);
    turns::close_tools(draft, id, open.id, NODE_DELETED);
    let unseen = open.consumed.iter().filter(|_| open.prompt.is_none());
    let interrupted = TurnStep::Interrupted {
        detail: NODE_DELETED.to_owned(),
        requeued: unseen.map(Input::id).collect(),
        holds: false,
    };
    draft.step_turn(id, open.id, interrupted);
    let rested = NodeChange::Rested {
        status: NodeStatus::Idle,
        summary: NODE_DELETED.to_owned(),
    };
    draft.change_node(id, rested);
}

/// An edge to create. Names are ids or aliases. A property that is `None` gets its default, or stays as
/// it is if the edge exists.
#[derive(Debug, Clone, Copy)]
pub struct EdgeRequest<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub kind: Option<EdgeKind>,
    pub label: Option<&'a str>,
    pub bidirectional: Option<bool>,
    pub gate: Option<bool>,
}

/// Connects two nodes for a person. If an edge of the same kind connects them already, it gets the
/// properties that the request names. Otherwise the edge would keep its lack of a gate.
pub fn connect(
    run: &Run,
    around: Surroundings<'_>,
    request: EdgeRequest<'_>,
) -> Result<Decision<EdgeId>, Rejection> {
    let mut draft = Draft::new(run, around);
    let id = record_edge(&mut draft, &request)?;
    change_edge(&mut draft, id, &request);
    draft.note_made(MadeId::Edge(id));
    Ok(draft.finish(id))
}

/// Gives an edge the properties that a request names.
fn change_edge(draft: &mut Draft<'_>, id: EdgeId, request: &EdgeRequest<'_>) {
    let Some(edge) = draft.run.edges.get(&id) else {
        return;
    };
    let changed = Edge {
        bidirectional: request.bidirectional.unwrap_or(edge.bidirectional),
        label: request.label.unwrap_or(&edge.label).to_owned(),
        gate: request.gate.unwrap_or(edge.gate),
        ..edge.clone()
    };
    if changed != *edge {
        draft.record(Fact::EdgeChanged(changed));
    }
}

/// What an edge will be.
pub(super) struct CheckedEdge<'a> {
    from: NodeId,
    to: NodeId,
    kind: EdgeKind,
    label: &'a str,
}

/// Rejects an edge that the run must not have.
pub(super) fn check_edge<'a>(
    run: &LiveRun,
    request: &EdgeRequest<'a>,
) -> Result<CheckedEdge<'a>, Rejection> {
    let from = find_node(run, request.from)?;
    let to = find_node(run, request.to)?;
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
    let usual_label = match kind {
        EdgeKind::Handoff => "task",
        EdgeKind::Report => "report",
    };
    let label = request.label.unwrap_or(usual_label);
    check_name("label", label)?;
    Ok(CheckedEdge {
        from: from.id,
        to: to.id,
        kind,
        label,
    })
}

/// Creates an edge, unless the run has one of the same kind between the nodes. That one stays as it is:
/// an agent must not change what a person chose, such as a gate on its own work.
pub(super) fn record_edge(
    draft: &mut Draft<'_>,
    request: &EdgeRequest<'_>,
) -> Result<EdgeId, Rejection> {
    let CheckedEdge {
        from,
        to,
        kind,
        label,
    } = check_edge(&draft.run, request)?;
    // Agents connect what is connected already. A second edge would only confuse people.
    let mut edges = draft.run.edges.values();
    let same = edges.find(|edge| edge.from == from && edge.to == to && edge.kind == kind);
    if let Some(id) = same.map(|edge| edge.id) {
        return Ok(id);
    }
    let edge = Edge {
        id: draft.draw_id(),
        from,
        to,
        bidirectional: request.bidirectional.unwrap_or(true),
        kind,
        label: label.to_owned(),
        gate: request.gate.unwrap_or(false),
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
