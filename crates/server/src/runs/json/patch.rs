//! Patches: the fields of a run or a node that an event may have changed, with their new values.
//!
//! Each value is the one that a snapshot right after the event has, or null if the snapshot has
//! none. So a client that assigns the fields of each patch gets the fields of the snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use turnkeep_runtime::Event;
use turnkeep_runtime::fact::{NodeChange, ShownNode};
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::node::{NewNode, Node, NodeSettings};
use turnkeep_runtime::run::{Run, RunSettings};
use turnkeep_runtime::words::{PausedReason, RunStatus};
use turnkeep_types::Timestamp;
use turnkeep_wire::json::Time;
use turnkeep_wire::runs::{self as wire, NodePatch, RunPatch};

use super::RunPlace;
use super::snapshot::{block_view, node_view, run_view, workspace_view};
use super::words::SameWord;

/// The fields of a run that its settings decide.
const RUN_SETTINGS: &[&str] = &[
    "title", "goal", "cwd", "world", "verify", "setup", "docsNode", "budget", "limits",
];
/// The fields of a node that its settings decide. The session is not one of them: the program
/// names it, so a change of settings does not know all of it.
const NODE_SETTINGS: &[&str] = &[
    "label",
    "roleTemplate",
    "provider",
    "providerName",
    "alias",
    "person",
    "capabilities",
    "permissions",
    "customSystemPrompt",
    "wakeOn",
    "position",
    "budget",
];

/// Fields with their new values.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    /// Sets a field; null for no value.
    fn set(&mut self, name: &str, value: impl Serialize) {
        // The views have text keys and finite numbers only, so this cannot fail.
        let value = serde_json::to_value(value).unwrap_or_default();
        self.0.insert(name.to_owned(), value);
    }

    /// Copies fields of a snapshot.
    fn copy(&mut self, snapshot: &Map<String, Value>, names: &[&str]) {
        for name in names {
            self.set(name, snapshot.get(*name));
        }
    }
}

fn object_of(view: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(view) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The whole run, as its first event makes it.
pub(super) fn whole_run(place: RunPlace<'_>, created: &Event) -> RunPatch {
    let mut run = Run::new(place.run);
    run.apply(created);
    RunPatch(object_of(&run_view(place, &run, &HashMap::new())))
}

pub(super) fn configured_run(
    place: RunPlace<'_>,
    at: Timestamp,
    settings: &RunSettings,
) -> RunPatch {
    let mut run = Run::new(place.run);
    run.live.settings = Arc::new(settings.clone());
    let snapshot = object_of(&run_view(place, &run, &HashMap::new()));
    let mut fields = updated_at(at);
    fields.copy(&snapshot, RUN_SETTINGS);
    RunPatch(fields.0)
}

pub(super) fn moved_run(
    at: Timestamp,
    status: RunStatus,
    paused_reason: Option<PausedReason>,
) -> RunPatch {
    let mut fields = updated_at(at);
    fields.set("status", status.to_wire());
    fields.set("pausedReason", paused_reason.map(SameWord::to_wire));
    RunPatch(fields.0)
}

/// A change of the rules, which are not part of the snapshot.
pub(super) fn touched_run(at: Timestamp) -> RunPatch {
    RunPatch(updated_at(at).0)
}

fn updated_at(at: Timestamp) -> Fields {
    let mut fields = Fields::default();
    fields.set("updatedAt", Time(at));
    fields
}

/// The whole node, as its first event makes it.
pub(super) fn whole_node(place: RunPlace<'_>, at: Timestamp, new: &NewNode) -> NodePatch {
    let node = Node::new(new.clone(), at);
    NodePatch(object_of(&node_view(place.run, &node, None)))
}

/// A change of a node. The status and the length of the inbox are always there.
pub(super) fn changed_node(
    place: RunPlace<'_>,
    event: &Event,
    change: &NodeChange,
    shown: ShownNode,
) -> NodePatch {
    let mut fields = Fields::default();
    fields.set("status", shown.status.to_wire());
    fields.set("inboxCount", shown.inbox_count);
    fields.set("lastActivityAt", Time(event.at));
    match change {
        NodeChange::Configured(settings) => {
            add_settings(&mut fields, place, event.node, settings);
        }
        NodeChange::InboxCounted | NodeChange::InboxCleared | NodeChange::Retried => {}
        // A turn that starts has waited long enough.
        NodeChange::TurnOpened => {
            fields.set("retryAt", ());
            fields.set("summary", "");
        }
        NodeChange::Blocked { reason, summary } => {
            fields.set("block", block_view(reason));
            fields.set("summary", summary);
        }
        NodeChange::Unblocked => {
            fields.set("block", ());
            fields.set("summary", "");
        }
        NodeChange::Rested { summary, .. } => {
            fields.set("block", ());
            fields.set("summary", summary);
        }
        NodeChange::Parked { retry_at, summary } => {
            fields.set("retryAt", Time(*retry_at));
            fields.set("summary", summary);
        }
        NodeChange::Interrupting { reason, .. } => fields.set("summary", reason),
        NodeChange::SessionNamed { id, reset_commands } => {
            fields.set("session", session_of(Some(id), reset_commands));
        }
        NodeChange::SessionDropped { reset_commands, .. } => {
            fields.set("session", session_of(None, reset_commands));
            fields.set("retryAt", ());
        }
        NodeChange::WorkspaceFixed(workspace) => {
            fields.set("workspace", workspace_view(workspace));
        }
        NodeChange::WorkspaceReleased => fields.set("workspace", ()),
    }
    NodePatch(fields.0)
}

fn session_of(id: Option<&String>, reset_commands: &[String]) -> wire::SessionView {
    wire::SessionView {
        reset_commands: reset_commands.to_vec(),
        session_id: id.cloned(),
    }
}

/// Adds what the settings decide, taken from a node that has nothing else.
fn add_settings(
    fields: &mut Fields,
    place: RunPlace<'_>,
    id: Option<NodeId>,
    settings: &NodeSettings,
) {
    let Some(id) = id else {
        return;
    };
    let new = NewNode {
        id,
        settings: settings.clone(),
        parent: None,
        depth: 0,
    };
    let snapshot = object_of(&node_view(place.run, &Node::new(new, Timestamp(0)), None));
    fields.copy(&snapshot, NODE_SETTINGS);
}
