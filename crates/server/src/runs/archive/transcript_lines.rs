//! The entries of a transcript as JSON, one a line.

use serde_json::{Map, Value};
use turnkeep_wire::json::Time;
use turnkeep_wire::transcript::{Origin, TranscriptItem};

/// Where an entry comes from.
pub(super) fn origin_of(item: &TranscriptItem) -> &Origin {
    match item {
        TranscriptItem::UserMessage(message) => &message.origin,
        TranscriptItem::AssistantMessage(message) => &message.origin,
        TranscriptItem::Thinking(thinking) => &thinking.origin,
        TranscriptItem::ToolCall(call) => &call.origin,
        TranscriptItem::ToolResult(result) => &result.origin,
        TranscriptItem::Handoff(handoff) => &handoff.origin,
        TranscriptItem::Usage(usage) => &usage.origin,
    }
}

/// The fields of a line. What an entry does not have is left out.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        if !value.is_null() {
            self.0.insert(name.to_owned(), value);
        }
        self
    }
}

/// An entry as one object.
pub(super) fn to_json(item: &TranscriptItem) -> Value {
    let mut fields = Fields::default();
    let origin = origin_of(item);
    let at = origin.at.and_then(|at| serde_json::to_value(Time(at)).ok());
    fields.set("type", name_of(item));
    fields.set("ts", at);
    fields.set("eventId", origin.id.clone());
    fields.set("turnId", origin.turn.clone());
    add_content(&mut fields, item);
    Value::Object(fields.0)
}

fn name_of(item: &TranscriptItem) -> &'static str {
    match item {
        TranscriptItem::UserMessage(_) => "userMessage",
        TranscriptItem::AssistantMessage(_) => "assistantMessage",
        TranscriptItem::Thinking(_) => "thinking",
        TranscriptItem::ToolCall(_) => "toolCall",
        TranscriptItem::ToolResult(_) => "toolResult",
        TranscriptItem::Handoff(_) => "handoff",
        TranscriptItem::Usage(_) => "usage",
    }
}

fn add_content(fields: &mut Fields, item: &TranscriptItem) {
    match item {
        TranscriptItem::UserMessage(message) => fields
            .set("role", message.role.as_str())
            .set("text", message.text.as_str()),
        TranscriptItem::AssistantMessage(message) => fields
            .set("text", message.text.as_str())
            .set("interrupted", message.interrupted),
        TranscriptItem::Thinking(thinking) => fields.set("text", thinking.text.as_str()),
        TranscriptItem::ToolCall(call) => fields
            .set("toolId", call.tool_id.as_str())
            .set("name", call.name.as_str())
            .set("args", parse_or_text(&call.args)),
        TranscriptItem::ToolResult(result) => fields
            .set("toolId", result.tool_id.as_str())
            .set("ok", result.ok)
            .set("output", result.output.clone())
            .set("error", result.error.clone())
            .set("durationMs", result.duration_ms),
        TranscriptItem::Handoff(handoff) => fields
            .set("envelopeId", handoff.envelope.as_str())
            .set("from", handoff.from.as_str())
            .set("to", handoff.to.as_str())
            .set("message", handoff.message.as_str())
            .set("ok", handoff.ok)
            .set("reason", handoff.reason.clone())
            .set("replyTo", handoff.reply_to.clone()),
        TranscriptItem::Usage(usage) => fields
            .set("promptTokens", usage.prompt_tokens)
            .set("completionTokens", usage.completion_tokens)
            .set("cachedTokens", usage.cached_tokens)
            .set("costMicroUsd", usage.cost_micro_usd),
    };
}

/// Parses arguments, which are JSON as text. A text that is not JSON becomes a string.
fn parse_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
