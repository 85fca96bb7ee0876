//! Decisions: what a command or a report adds to a run.
//!
//! Each function reads a run, changes nothing and returns a [`Decision`]: the events to append in
//! one batch and the effects to carry out once they are durable. A [`Rejection`] leaves no trace.
//!
//! Later parts of a decision depend on its earlier events: a message wakes a node, and the woken
//! node may start a turn. So a decision works on a [`Draft`], which applies each event to a copy of
//! the live state as it is recorded. It is the same `apply` that runs after the append.

mod actions;
mod approvals;
mod chat;
mod clock;
mod copies;
mod draft;
mod gates;
mod graph;
mod handoffs;
mod limits;
mod long_texts;
mod notes;
mod output;
mod prepare;
mod replies;
mod runs;
mod schedule;
#[cfg(test)]
mod tests;
mod tools;
mod turns;
mod verification;

use std::collections::BTreeMap;

use bytes::Bytes;
use turnkeep_types::Timestamp;

use crate::effect::Effect;
use crate::fact::{Event, RequestKey};
use crate::ids::{IdSource, NodeId};
use crate::live::LiveRun;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::secrets::Secrets;

pub use actions::{
    ResetInbox, interrupt_node, reset_node, retry_node, settle_violation, start_program,
    stop_program,
};
pub use approvals::{
    Permission, PermissionAnswer, WithdrawnPermission, ask_permission, check_changed_args,
    delete_rule, possible_scopes, resolve, resolve_and_interrupt, takes_changed_args,
    withdraw_permission,
};
pub use chat::{CHAT_BYTES_MAX, Chat, chat};
pub use clock::{next_deadline, pass_time};
pub use copies::{CopyOrigin, KeptByCopy, RunCopy, settle_copy};
pub(crate) use draft::Draft;
pub use graph::{
    EdgeRequest, NodeRequest, add_node, change_node, connect, delete_node, disconnect,
};
pub use handoffs::{Handoff, send_handoff};
pub use notes::{TurnReverted, note_node, note_revert};
pub use output::{Output, add_idle_output, add_output};
pub use prepare::send_prompt;
pub use runs::{
    LostChanges, Restart, RunChange, change_run, create_run, delete_run, dismiss_end, note_answer,
    note_request, restart,
};
pub use schedule::{set_branch, waits_for_capacity};
pub use tools::{ToolAnswer, ToolRequest, call_tool, deliver_outcome};
pub use turns::{DiffTaken, PrintedLines, ProgramEnd, end_turn};
pub use verification::{VerificationEnd, end_verification, hands_over_changes, verify};

/// What a decision reads besides the run.
pub struct Surroundings<'a> {
    pub now: Timestamp,
    pub ids: &'a mut IdSource,
    pub capacity: Capacity<'a>,
    /// Whether the run's directory is a git repository with a commit.
    pub has_repository: bool,
    pub heard: &'a LastHeard,
    /// What is masked in everything that the decision records.
    pub secrets: &'a Secrets,
    /// The caller's idempotency key.
    pub request: Option<RequestKey>,
}

/// When each program last printed a byte. Nothing records it: a program that prints something that
/// makes no event is not silent, and after a restart no program runs.
pub type LastHeard = BTreeMap<NodeId, Timestamp>;

/// What other runs leave for this one.
#[derive(Debug, Clone, Copy)]
pub struct Capacity<'a> {
    /// How many turns may start.
    pub turns: u32,
    /// Programs whose provider asked a node of some run to wait.
    pub parked_programs: &'a [String],
    /// Programs that already have as many open turns as they may.
    pub full_programs: &'a [String],
}

impl Capacity<'_> {
    /// Room for every turn.
    pub(crate) const UNLIMITED: Self = Self {
        turns: u32::MAX,
        parked_programs: &[],
        full_programs: &[],
    };
}

/// The result of a decision.
#[derive(Debug, Default, PartialEq)]
pub struct Decision<T> {
    /// To append in one batch, in this order.
    pub events: Vec<Event>,
    /// The contents of new artifacts, to append in the same batch.
    pub blobs: Vec<Bytes>,
    /// To carry out when the events are durable, in this order.
    pub effects: Vec<Effect>,
    /// For the caller.
    pub answer: T,
}

/// The node with this id or alias.
pub(crate) fn find_node<'a>(run: &'a LiveRun, name: &str) -> Result<&'a Node, Rejection> {
    let by_id = name.parse().ok().and_then(|id| run.node(id));
    let has_alias = |node: &&Node| {
        let alias = node.settings.alias.as_deref();
        alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
    };
    by_id
        .or_else(|| run.nodes().find(has_alias))
        .ok_or_else(|| Rejection::UnknownNode(name.to_owned()))
}
