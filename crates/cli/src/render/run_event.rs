//! Events of a run as lines of text, for a terminal that is not repainted and for files.
//!
//! Each event is one line, `12:00:03 impl  Bash: make test`. Only an answer of several lines is
//! followed by them, indented. Pieces of answers are left out, because the whole answer follows.

use turnkeep_wire::runs::{
    ArtifactKind, ArtifactView, EnvelopeView, EventBody, FinalStatus, MessageRole, MessageView,
    NodePatch, ResolutionView, RunPatch, StallEvidence, ToolError, ToolResult, TurnStatus,
};

use super::run_text::{cost_text, one_line, place_words, tokens_text, tool_text};
use super::{printable, shorten_to_chars};
use crate::answer::text_of;
use crate::commands::run::events::RunEvent;

/// How much of a message or a log line is shown.
const TEXT_CHARS_MAX: usize = 300;

/// Finds what a person calls a node.
pub(crate) type NodeNames<'a> = &'a dyn Fn(&str) -> String;

/// An event as lines; none for one that says nothing new.
pub(crate) fn event_lines(event: &RunEvent, names: NodeNames<'_>) -> Vec<String> {
    let Some(view) = &event.view else {
        // A newer server knows more kinds of events. Their name still says something.
        return vec![format!(
            "{} {}",
            clock_text(event),
            printable(text_of(&event.json, "type"))
        )];
    };
    let Some(text) = body_text(&view.body, names) else {
        return Vec::new();
    };
    let node = view
        .node_id
        .as_ref()
        .map(|id| format!("{} ", printable(&names(&id.0))));
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let head = format!(
        "{} {}{}",
        clock_text(event),
        node.unwrap_or_default(),
        printable(first)
    );
    let rest = lines.map(|line| format!("    {}", printable(line)));
    std::iter::once(head).chain(rest).collect()
}

/// The time of day of an event.
fn clock_text(event: &RunEvent) -> String {
    let clock = text_of(&event.json, "ts").split_once('T');
    let clock = clock.and_then(|(_, clock)| clock.get(.."12:00:00".len()));
    printable(clock.unwrap_or("--:--:--"))
}

/// What an event says. May still hold control characters of agents.
fn body_text(body: &EventBody, names: NodeNames<'_>) -> Option<String> {
    Some(match body {
        EventBody::RunPatch { patch, .. } => run_patch_text(patch)?,
        EventBody::RunPhase { phase, .. } => format!("phase {}", phase.word()),
        EventBody::RunMode { mode, global_mode } => {
            format!("mode {}, {}", mode.word(), global_mode.word())
        }
        EventBody::RunStalled { evidence } => stall_text(evidence),
        EventBody::RunDeleted {} => "the run was deleted".to_owned(),
        EventBody::NodePatch { patch } => node_patch_text(patch)?,
        EventBody::NodeProgress { summary, .. } => one_line(summary),
        EventBody::NodeLog { text } => format!("log: {}", short(text)),
        EventBody::NodeDeleted { dropped } if !dropped.is_empty() => {
            format!(
                "was deleted, and {} of its inputs were never read",
                dropped.len()
            )
        }
        EventBody::NodeDeleted { .. } => "was deleted".to_owned(),
        EventBody::EdgeCreated { edge } => {
            let arrow = if edge.bidirectional { "<->" } else { "->" };
            format!("edge {} {arrow} {}", names(&edge.from.0), names(&edge.to.0))
        }
        EventBody::EdgeDeleted { .. } => "an edge was deleted".to_owned(),
        EventBody::HandoffSent { envelope } => handoff_text(envelope, names),
        EventBody::HandoffHeld { envelope } => {
            format!("verifies first: {}", handoff_text(envelope, names))
        }
        EventBody::HandoffRefused { reason, .. } => {
            format!("handoff not delivered: {}", short(reason))
        }
        EventBody::MessageUser { message } => message_text(message),
        EventBody::AnswerFinal { content, status } => answer_text(content, *status),
        EventBody::ToolStarted { tool } => tool_text(tool),
        EventBody::ToolCompleted { result, error, .. } => failed_tool_text(result, error.as_ref())?,
        EventBody::ApprovalRequested {
            approval_id,
            context,
            tool,
            ..
        } => {
            let context = if context.is_empty() {
                tool_text(tool)
            } else {
                one_line(context)
            };
            format!("waits for you: {context} (approval {})", approval_id.0)
        }
        EventBody::ApprovalResolved { resolution, .. } => resolution_text(resolution),
        EventBody::ArtifactCreated { artifact } => diff_text(artifact)?,
        EventBody::TurnStatus { status, detail, .. } => turn_text(*status, detail.as_deref())?,
        EventBody::TelemetryUsage {
            usage, cost_usd, ..
        } => {
            let cost = cost_text(cost_usd.unwrap_or_default());
            format!("used {} tokens {cost}", tokens_text(usage.total_tokens))
                .trim_end()
                .to_owned()
        }
        // A proposed call is followed by an approval or a start.
        EventBody::NodeHeartbeat { .. }
        | EventBody::AnswerDelta { .. }
        | EventBody::ThinkingDelta { .. }
        | EventBody::ThinkingFinal { .. }
        | EventBody::ToolProposed { .. } => return None,
    })
}

fn short(text: &str) -> String {
    shorten_to_chars(&one_line(text), TEXT_CHARS_MAX)
}

/// The new status of the run. Other fields are shown by `run show`.
fn run_patch_text(patch: &RunPatch) -> Option<String> {
    let status = patch.0.get("status")?.as_str()?;
    let reason = patch
        .0
        .get("pausedReason")
        .and_then(|reason| reason.as_str());
    Some(match reason {
        Some(reason) => format!("the run is {status} ({reason})"),
        None => format!("the run is {status}"),
    })
}

/// A new node, or a state in which a person may have to do something.
fn node_patch_text(patch: &NodePatch) -> Option<String> {
    let text = |name: &str| patch.0.get(name).and_then(|value| value.as_str());
    if patch.0.contains_key("createdAt") {
        let role = text("roleTemplate").unwrap_or_default();
        let program = text("providerName").or_else(|| text("provider"));
        return Some(format!("joined as {role}, {}", program.unwrap_or_default()));
    }
    let status = text("status").filter(|status| matches!(*status, "blocked" | "failed"))?;
    let summary = text("summary").filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| format!(": {}", one_line(summary)));
    Some(format!("is {status}{}", summary.unwrap_or_default()))
}

fn stall_text(evidence: &StallEvidence) -> String {
    let StallEvidence { reason, count, .. } = evidence;
    format!("goes in circles: {} {count} times in a row", reason.word())
}

fn handoff_text(envelope: &EnvelopeView, names: NodeNames<'_>) -> String {
    let to = names(&envelope.to_node_id.0);
    format!("hands over to {to}: {}", short(&envelope.payload.message))
}

fn message_text(message: &MessageView) -> String {
    let speaker = match message.role {
        MessageRole::User => "you",
        MessageRole::Assistant => "agent",
        MessageRole::System => "note",
    };
    format!("<- {speaker}: {}", short(&message.content))
}

fn answer_text(content: &str, status: FinalStatus) -> String {
    let cut = match status {
        FinalStatus::Final => "",
        FinalStatus::Interrupted => " (interrupted)",
    };
    match content.trim().lines().collect::<Vec<_>>()[..] {
        [] => format!("says nothing{cut}"),
        [line] => format!("says: {line}{cut}"),
        _ => format!("says:{cut}\n{}", content.trim()),
    }
}

/// Only failures: a call that worked was announced when it started.
fn failed_tool_text(result: &ToolResult, error: Option<&ToolError>) -> Option<String> {
    if result.ok {
        return None;
    }
    let why = error.map(|error| error.message.as_str());
    Some(format!(
        "the tool failed: {}",
        short(why.unwrap_or("no reason given"))
    ))
}

fn resolution_text(resolution: &ResolutionView) -> String {
    let reason = resolution
        .reason
        .as_deref()
        .map(|reason| format!(": {}", one_line(reason)));
    let place = resolution.by.map_or("", place_words);
    let status = resolution.status.word();
    format!("{status}{place}{}", reason.unwrap_or_default())
}

/// The files that a turn changed. Other artifacts are only of interest when somebody looks for them.
fn diff_text(artifact: &ArtifactView) -> Option<String> {
    let diff = artifact
        .metadata
        .as_ref()
        .filter(|_| artifact.kind == ArtifactKind::Diff)?;
    if diff.files_changed.is_empty() {
        return None;
    }
    let files = shorten_to_chars(&diff.files_changed.join(", "), TEXT_CHARS_MAX);
    Some(format!(
        "changed {files} (+{} -{})",
        diff.added, diff.removed
    ))
}

fn turn_text(status: TurnStatus, detail: Option<&str>) -> Option<String> {
    let text = match status {
        TurnStatus::Started => "begins a turn",
        TurnStatus::Completed => "ends its turn",
        TurnStatus::Interrupted => "was interrupted",
        TurnStatus::Failed => "failed",
        // Other events say the same with more words.
        TurnStatus::WaitingForModel | TurnStatus::ToolPending | TurnStatus::AwaitingApproval => {
            return None;
        }
    };
    let detail = detail.map(|detail| format!(": {}", short(detail)));
    Some(format!("{text}{}", detail.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::run::samples::{event, node_json, tool};

    fn check(kind: &str, body: &Value, expect: &[&str]) {
        let names = |id: &str| {
            if id == "n2" {
                "impl".to_owned()
            } else {
                id.to_owned()
            }
        };
        assert_eq!(
            event_lines(&event(1, "n2", kind, body), &names),
            expect,
            "{kind}"
        );
    }

    #[test]
    fn each_event_is_one_line_or_none() {
        let call = tool("Bash", &json!({ "command": "make test" }));
        check(
            "tool.started",
            &json!({ "tool": call }),
            &["12:00:00 impl Bash: make test"],
        );
        check("tool.proposed", &json!({ "tool": call }), &[]);
        check("message.assistant.delta", &json!({ "delta": "He" }), &[]);
        check(
            "turn.status",
            &json!({ "status": "turn.failed", "detail": "exit 1" }),
            &["12:00:00 impl failed: exit 1"],
        );
        check(
            "node.patch",
            &json!({ "patch": node_json("n2", "impl", "implementer") }),
            &["12:00:00 impl joined as implementer, claude"],
        );
        let mut configured = node_json("n2", "impl", "implementer");
        configured["provider"] = json!("custom");
        configured["providerName"] = json!("mine");
        check(
            "node.patch",
            &json!({ "patch": configured }),
            &["12:00:00 impl joined as implementer, mine"],
        );
        check("node.patch", &json!({ "patch": { "inboxCount": 1 } }), &[]);
        check(
            "run.patch",
            &json!({ "patch": { "status": "paused", "pausedReason": "stall" } }),
            &["12:00:00 impl the run is paused (stall)"],
        );
        let usage = json!({ "promptTokens": 1, "completionTokens": 2, "totalTokens": 3 });
        check(
            "telemetry.usage",
            &json!({ "usage": usage, "costUsd": 0.5 }),
            &["12:00:00 impl used 3 tokens $0.50"],
        );
    }

    #[test]
    fn an_answer_keeps_its_lines_and_loses_its_escapes() {
        check(
            "message.assistant.final",
            &json!({ "content": "One\n\u{1b}[31mTwo", "status": "final" }),
            &["12:00:00 impl says:", "    One", "    \\u{1b}[31mTwo"],
        );
        check(
            "message.assistant.final",
            &json!({ "content": "One\n", "status": "interrupted" }),
            &["12:00:00 impl says: One (interrupted)"],
        );
    }

    #[test]
    fn an_unknown_event_shows_its_name() {
        let event = RunEvent::new(json!({ "type": "run.danced", "ts": "2026-01-01T08:30:00Z" }));
        assert_eq!(event_lines(&event, &str::to_owned), ["08:30:00 run.danced"]);
    }
}
