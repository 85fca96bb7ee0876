//! The JSON of runs: the state and the events of `turnkeep_runtime` as the shapes of
//! `turnkeep_wire::runs`, and requests the other way.
//!
//! Everything here is a pure function. An event's JSON depends on the event alone, plus what never
//! changes about a run: its id, its directory, and the kinds of artifacts that the event names. So
//! it is the same live, in `events.jsonl`, on an old page and over `/ws`. Folding the patches of a
//! log gives the fields of the snapshot.
//!
//! A request that does not have the right shape fails with a [`BodyError`], which says where.

mod attention;
mod body;
mod defaults;
mod event;
mod patch;
mod path_reader;
mod rejection;
mod request;
mod snapshot;
#[cfg(test)]
mod tests;
mod tool_call;
mod why;
mod words;

use std::path::Path;

use turnkeep_runtime::ids::RunId;
use turnkeep_runtime::run::Archive;

/// What never changes about a run, and what its JSON needs besides the state or the event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunPlace<'a> {
    pub(crate) run: RunId,
    /// Artifacts are never removed or changed, so a later archive gives the same answers.
    pub(crate) archive: &'a Archive,
    /// The directory that has the copies of the artifacts.
    pub(crate) artifacts_dir: &'a Path,
}

pub(crate) use attention::attention_items;
pub(crate) use body::{BodyError, RequestBody, read_body};
pub(crate) use defaults::NodeDefaults;
pub(crate) use event::event_view;
pub(crate) use request::{
    NewRun, change_node_settings, change_of_run, chat_of, edge_request, find_node_id, handoff_of,
    new_run, node_settings, parse_artifact_ref, reset_inbox, resolution_of,
};
pub(crate) use snapshot::{
    ConnectionViews, approval_view, artifact_view, capabilities_view, edge_view, node_view,
    resolution_view, rule_view, run_summary, run_view, scopes_of,
};
pub(crate) use tool_call::{NewNodeKind, read_tool_call, spawned_role};
pub(crate) use why::why_graph;
pub(crate) use words::SameWord;
