//! What the events of a run add to the transcripts of its nodes.
//!
//! A transcript has whatever was said to a node and by it, in the order of the events. Messages and
//! envelopes are added when they arrive, not when a turn consumes them: they arrive once, but may be
//! consumed again after a restart.

use turnkeep_runtime::fact::NodeChange;
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::input::{Envelope, InputId};
use turnkeep_runtime::tool::ToolOutcome;
use turnkeep_runtime::usage::UsageReport;
use turnkeep_runtime::words::MessageRole;
use turnkeep_runtime::{Event, Fact};
use turnkeep_wire::transcript::{
    AssistantMessage, Handoff, Origin, Thinking, ToolCall, ToolResult, TranscriptItem, Usage,
    UserMessage,
};

/// A line for the transcript of a node.
pub(super) struct TranscriptLine {
    pub(super) node: NodeId,
    pub(super) item: TranscriptItem,
}

/// The lines that an event adds. An envelope is in the transcripts of both of its nodes.
pub(super) fn lines_of(event: &Event) -> Vec<TranscriptLine> {
    if let Fact::EnvelopeSent(envelope) = &event.fact {
        let line = |node| TranscriptLine {
            node,
            item: TranscriptItem::Handoff(handoff(event, envelope)),
        };
        return vec![line(envelope.from), line(envelope.to)];
    }
    let line = event.node.zip(item_of(event));
    line.map(|(node, item)| TranscriptLine { node, item })
        .into_iter()
        .collect()
}

fn item_of(event: &Event) -> Option<TranscriptItem> {
    let origin = origin_of(event);
    Some(match &event.fact {
        Fact::MessageSent(message) => TranscriptItem::UserMessage(UserMessage {
            origin,
            text: message.content.clone(),
            role: message.role.word().to_owned(),
        }),
        Fact::AnswerFinal {
            content,
            interrupted,
        } => TranscriptItem::AssistantMessage(AssistantMessage {
            origin,
            text: content.clone(),
            interrupted: *interrupted,
            ..AssistantMessage::default()
        }),
        Fact::ThinkingFinal(text) => TranscriptItem::Thinking(Thinking {
            origin,
            text: text.clone(),
            ..Thinking::default()
        }),
        Fact::ToolProposed(call) => TranscriptItem::ToolCall(ToolCall {
            origin,
            tool_id: call.id.to_string(),
            name: call.name.clone(),
            args: call.args.to_string(),
            provider_tool_id: call.provider_id.clone(),
        }),
        Fact::ToolCompleted { tool, outcome } => {
            TranscriptItem::ToolResult(tool_result(origin, &tool.to_string(), outcome))
        }
        Fact::UsageReported(report) => TranscriptItem::Usage(usage(origin, report)),
        Fact::NodeChanged {
            change: NodeChange::SessionDropped { lost, .. },
            ..
        } => TranscriptItem::UserMessage(UserMessage {
            origin,
            text: session_marker(*lost).to_owned(),
            role: MessageRole::System.word().to_owned(),
        }),
        _ => return None,
    })
}

/// What separates two conversations in one transcript.
fn session_marker(lost: bool) -> &'static str {
    if lost {
        "(The program's session is gone. What follows is a new one, which begins with a recap.)"
    } else {
        "(The session was reset. What follows is a new one, which knows nothing of the above.)"
    }
}

fn origin_of(event: &Event) -> Origin {
    Origin {
        at: Some(event.at),
        id: Some(event.id.to_string()),
        node: event.node.map(|node| node.to_string()),
        turn: event.turn.map(|turn| turn.to_string()),
        ..Origin::default()
    }
}

fn tool_result(origin: Origin, tool_id: &str, outcome: &ToolOutcome) -> ToolResult {
    ToolResult {
        origin,
        tool_id: tool_id.to_owned(),
        name: None,
        ok: outcome.ok,
        output: outcome.output.clone(),
        truncated: outcome.truncated,
        artifact: outcome.artifact.map(|artifact| artifact.to_string()),
        error: outcome.error.clone(),
        duration_ms: Some(outcome.duration_ms),
    }
}

fn handoff(event: &Event, envelope: &Envelope) -> Handoff {
    let ids = envelope.artifacts.iter().map(ToString::to_string);
    let status = envelope.status.as_ref();
    Handoff {
        origin: origin_of(event),
        envelope: envelope.id.to_string(),
        from: envelope.from.to_string(),
        to: envelope.to.to_string(),
        message: envelope.message.clone(),
        structured: envelope.structured.as_ref().map(ToString::to_string),
        artifacts: ids.collect(),
        ok: status.map(|status| status.ok),
        reason: status.and_then(|status| status.reason.clone()),
        expectation: Some(envelope.expectation.word().to_owned()),
        reply_to: envelope.reply_to.map(|question| question.to_string()),
        synthesized: envelope.synthesized,
    }
}

fn usage(origin: Origin, report: &UsageReport) -> Usage {
    let cause = report.cause.as_ref().map(|cause| match cause {
        InputId::Message(id) => id.to_string(),
        InputId::Envelope(id) => id.to_string(),
    });
    Usage {
        origin,
        prompt_tokens: report.usage.prompt_tokens,
        completion_tokens: report.usage.completion_tokens,
        cached_tokens: Some(report.usage.cached_tokens),
        cost_micro_usd: Some(report.usage.cost_micro_usd),
        cause,
        ..Usage::default()
    }
}
