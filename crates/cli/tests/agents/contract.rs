//! Checks everything that the server says against the JSON Schemas that it publishes.
//!
//! The harness calls these checks for every event and every answer, so each test is also a test of
//! the schemas.

use serde_json::Value;
pub(crate) use turnkeep_wire::runs::exchange_check::Exchange;
use turnkeep_wire::runs::{exchange_check, schema_check};

/// The types of events that every client must support.
pub(crate) const EVENT_TYPES: [&str; 18] = [
    "run.patch",
    "run.phase",
    "run.mode",
    "run.stalled",
    "node.patch",
    "node.progress",
    "edge.created",
    "edge.deleted",
    "handoff.sent",
    "message.user",
    "message.assistant.delta",
    "message.assistant.final",
    "tool.proposed",
    "tool.started",
    "tool.completed",
    "approval.requested",
    "approval.resolved",
    "artifact.created",
];

/// An event fits the schema of its type.
pub(crate) fn check_event(event: &Value) {
    if let Err(error) = schema_check::check_event(event) {
        panic!("{error}: {event:#}");
    }
}

/// A request and its answer fit their schemas.
pub(crate) fn check_exchange(exchange: &Exchange<'_>) {
    if let Err(error) = exchange_check::check_exchange(exchange) {
        panic!("{error}: {exchange:#?}");
    }
}
