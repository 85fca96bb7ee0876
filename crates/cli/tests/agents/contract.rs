//! Checks everything that the server says against the JSON Schemas that it publishes.
//!
//! The harness calls these checks for every event and every answer, so each test is also a test of
//! the schemas.

use serde_json::Value;
use turnkeep_wire::runs::schema_check;

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

/// An answer of the server, by the request that it answers.
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) answer: &'a Value,
}

/// An event fits the schema of its type.
pub(crate) fn check_event(event: &Value) {
    if let Err(error) = schema_check::check_event(event) {
        panic!("{error}: {event:#}");
    }
}

/// The answer to a successful request fits its schema.
pub(crate) fn check_answer(exchange: &Exchange<'_>) {
    let Some(schema) = schema_of(exchange.method, exchange.path) else {
        return;
    };
    if let Err(error) = schema_check::check_schema(schema, exchange.answer) {
        let Exchange {
            method,
            path,
            answer,
        } = exchange;
        panic!("{method} {path}: {error}: {answer:#}");
    }
}

/// The name of the schema of an answer. Files and pages of other parts have none.
fn schema_of(method: &str, path: &str) -> Option<&'static str> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.strip_prefix("/api/")?.split('/').collect();
    let schema = match (method, parts.as_slice()) {
        ("GET", ["runs"]) if query.contains("summary=1") => "RunSummaryList",
        ("GET", ["runs"]) => "RunList",
        ("POST", ["runs"]) | ("GET" | "PATCH", ["runs", _]) => "RunAnswer",
        ("DELETE", ["runs", _]) => "RunGone",
        ("GET", ["runs", _, "events"]) => "EventPage",
        ("POST", ["runs", _, "nodes"] | ["runs", _, "nodes", _, _])
        | ("PATCH", ["runs", _, "nodes", _]) => "NodeAnswer",
        ("DELETE", ["runs", _, "nodes", _]) => "NodeGone",
        ("POST", ["runs", _, "edges"]) => "EdgeAnswer",
        ("DELETE", ["runs", _, "edges", _]) => "EdgeGone",
        ("POST", ["runs", _, "chat"]) => "ChatAccepted",
        ("POST", ["runs", _, "handoffs"]) => "HandoffAccepted",
        ("POST", ["runs", _, "apply"]) => "AppliedChanges",
        ("POST", ["runs", _, "turns", _, _]) => "TurnFilesAnswer",
        ("GET", ["runs", _, "why"]) => "WhyGraph",
        ("GET", ["runs", _, "artifacts"]) => "ArtifactList",
        ("GET", ["runs", _, "artifacts", _]) if query.is_empty() => "ArtifactAnswer",
        ("GET", ["approvals"]) => "ApprovalList",
        ("POST", ["approvals", _, "resolve"]) => "ApprovalResolvedAnswer",
        ("GET", ["rules"]) => "RuleList",
        ("DELETE", ["rules", _]) => "RuleGone",
        ("GET", ["attention"]) => "AttentionList",
        ("GET", ["providers"]) => "ProviderList",
        ("GET", ["teams"]) => "TeamList",
        _ => return None,
    };
    Some(schema)
}
