//! How the conversation of an agent is stored: one turn for each message, thought, tool call, tool
//! result, handoff and usage report, each with a type `turnkeep.agent.*`.
//!
//! Nodes of runs and imported transcripts of other programs use the same types, so that one reader
//! shows them all. A captured turn of a terminal has a type of its own (`capture`): it is the text
//! between two prompts, and no field says which part is an answer. What a program said beyond these
//! fields is in `raw`. A payload is a msgpack map by tag, made from the tables below. Texts are inside the
//! payload, whatever their length: the store itself keeps equal payloads once.
//!
//! All types begin with the fields of [`Origin`]:
//!
//! | tag | field | |
//! |---|---|---|
//! | 1 | `at` | when it happened |
//! | 2 | `id` | the program's own id of the message or line |
//! | 3 | `parent_id` | the program's own id of the message before it, which branches share |
//! | 4 | `session` | the program's own name of the conversation |
//! | 5 | `program` | `claude`, `codex`, `gemini` or the name of another program |
//! | 6, 7, 8 | `run`, `node`, `turn` | where it belongs in a run |
//! | 9 | `raw` | the original line |
//!
//! | type | fields from tag 16 on |
//! |---|---|
//! | `UserMessage` | `text`; `role`: `user` for a person, else the program's word, such as `system` |
//! | `AssistantMessage` | `text`; `model`; `interrupted`: it was cut off; `stop_reason`: the model's word |
//! | `Thinking` | `text`; `model` |
//! | `ToolCall` | `tool_id`; `name`; `args`: JSON; `provider_tool_id`: the program's id, if `tool_id` is not |
//! | `ToolResult` | `tool_id`; `name`; `ok`; `output`; `truncated`: `output` is a beginning; `artifact`: the id of the whole; `error`; `duration_ms` |
//! | `Handoff` | `envelope`: its id; `from`, `to`: nodes; `message`; `structured`: JSON; `artifacts`: ids; `ok`, `reason`: how the work went; `expectation`: whether a reply is due; `reply_to`: an envelope; `synthesized`: the server wrote it |
//! | `Usage` | `prompt_tokens`; `completion_tokens`; of them `cached_tokens`, `cache_written_tokens`, `reasoning_tokens`; `cost_micro_usd`: millionths of a US dollar; `model`; `cause`: the message or envelope |
//!
//! Decoding ignores unknown tags, rejects unknown types and never panics.

use bytes::Bytes;
use turnkeep_types::record::{
    self, Binary, Bool, DamagedRecord, DurationMs, Flag, Flat, List, Markdown, Optional, Record,
    RecordBundle, Text, U64, UnixMs,
};
use turnkeep_types::{Timestamp, TypeRef, record_struct};

/// The bundles that describe transcripts, in publishing order.
pub const BUNDLES: [RecordBundle; 1] = [RecordBundle {
    id: "turnkeep.agent#1",
    json: include_str!("transcript.json"),
}];

/// The beginning of the types' ids.
const NAMESPACE: &str = "turnkeep.agent.";
const VERSION: u32 = 1;

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptItem {
    /// A person or the program itself told the agent something.
    UserMessage(UserMessage),
    /// The agent answered.
    AssistantMessage(AssistantMessage),
    /// The agent thought.
    Thinking(Thinking),
    /// The agent called a tool.
    ToolCall(ToolCall),
    /// The tool returned.
    ToolResult(ToolResult),
    /// A node handed work to another one.
    Handoff(Handoff),
    /// What a part of the conversation cost.
    Usage(Usage),
}

/// Where an entry comes from. An import fills in what the program recorded, a run the rest.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct Origin {
    pub at: Option<Timestamp>,
    pub id: Option<String>,
    pub parent_id: Option<String>,
    pub session: Option<String>,
    pub program: Option<String>,
    pub run: Option<String>,
    pub node: Option<String>,
    pub turn: Option<String>,
    pub raw: Option<Bytes>,
}

record_struct! {
    Origin {
        1 at: Optional<UnixMs>,
        2 id: Optional<Text>,
        3 parent_id: Optional<Text>,
        4 session: Optional<Text>,
        5 program: Optional<Text>,
        6 run: Optional<Text>,
        7 node: Optional<Text>,
        8 turn: Optional<Text>,
        9 raw: Optional<Binary>,
    }
}

/// What a person, or a program in its own name, told the agent.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct UserMessage {
    pub origin: Origin,
    pub text: String,
    pub role: String,
}

record_struct! {
    UserMessage {
        1 origin: Flat<Origin>,
        16 text: Markdown,
        17 role: Text,
    }
}

/// What the agent answered.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct AssistantMessage {
    pub origin: Origin,
    pub text: String,
    pub model: Option<String>,
    pub interrupted: bool,
    pub stop_reason: Option<String>,
}

record_struct! {
    AssistantMessage {
        1 origin: Flat<Origin>,
        16 text: Markdown,
        17 model: Optional<Text>,
        18 interrupted: Flag,
        19 stop_reason: Optional<Text>,
    }
}

/// What the agent thought before it answered, as far as its program shows it.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct Thinking {
    pub origin: Origin,
    pub text: String,
    pub model: Option<String>,
}

record_struct! {
    Thinking {
        1 origin: Flat<Origin>,
        16 text: Markdown,
        17 model: Optional<Text>,
    }
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct ToolCall {
    pub origin: Origin,
    pub tool_id: String,
    pub name: String,
    pub args: String,
    pub provider_tool_id: Option<String>,
}

record_struct! {
    ToolCall {
        1 origin: Flat<Origin>,
        16 tool_id: Text,
        17 name: Text,
        18 args: Text,
        19 provider_tool_id: Optional<Text>,
    }
}

/// The result of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct ToolResult {
    pub origin: Origin,
    pub tool_id: String,
    pub name: Option<String>,
    pub ok: bool,
    pub output: Option<String>,
    pub truncated: bool,
    pub artifact: Option<String>,
    pub error: Option<String>,
    pub duration_ms: Option<u64>,
}

record_struct! {
    ToolResult {
        1 origin: Flat<Origin>,
        16 tool_id: Text,
        17 name: Optional<Text>,
        18 ok: Flag,
        19 output: Optional<Text>,
        20 truncated: Flag,
        21 artifact: Optional<Text>,
        22 error: Optional<Text>,
        23 duration_ms: Optional<DurationMs>,
    }
}

/// Work that one node handed to another. It is in the transcripts of both.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct Handoff {
    pub origin: Origin,
    pub envelope: String,
    pub from: String,
    pub to: String,
    pub message: String,
    pub structured: Option<String>,
    pub artifacts: Vec<String>,
    pub ok: Option<bool>,
    pub reason: Option<String>,
    pub expectation: Option<String>,
    pub reply_to: Option<String>,
    pub synthesized: bool,
}

record_struct! {
    Handoff {
        1 origin: Flat<Origin>,
        16 envelope: Text,
        17 from: Text,
        18 to: Text,
        19 message: Markdown,
        20 structured: Optional<Text>,
        21 artifacts: List,
        22 ok: Optional<Bool>,
        23 reason: Optional<Text>,
        24 expectation: Optional<Text>,
        25 reply_to: Optional<Text>,
        26 synthesized: Flag,
    }
}

/// Tokens and money.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the header has a table of the fields")]
pub struct Usage {
    pub origin: Origin,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: Option<u64>,
    pub cache_written_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub cost_micro_usd: Option<u64>,
    pub model: Option<String>,
    pub cause: Option<String>,
}

record_struct! {
    Usage {
        1 origin: Flat<Origin>,
        16 prompt_tokens: U64,
        17 completion_tokens: U64,
        18 cached_tokens: Optional<U64>,
        19 cache_written_tokens: Optional<U64>,
        20 reasoning_tokens: Optional<U64>,
        21 cost_micro_usd: Optional<U64>,
        22 model: Optional<Text>,
        23 cause: Optional<Text>,
    }
}

/// An encoded entry: the type and payload of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedItem {
    /// The declared type.
    pub declared: TypeRef,
    /// The payload.
    pub payload: Bytes,
}

/// Why a turn is not an entry of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The type is another one.
    #[error("a turn of type {0} is not an entry of a transcript")]
    UnknownType(TypeRef),
    /// The bytes do not fit the type.
    #[error(transparent)]
    Damaged(#[from] DamagedRecord),
}

/// Encodes an entry. Equal entries have equal bytes.
pub fn encode_item(item: &TranscriptItem) -> EncodedItem {
    match item {
        TranscriptItem::UserMessage(message) => encode_as_turn(message),
        TranscriptItem::AssistantMessage(message) => encode_as_turn(message),
        TranscriptItem::Thinking(thinking) => encode_as_turn(thinking),
        TranscriptItem::ToolCall(call) => encode_as_turn(call),
        TranscriptItem::ToolResult(result) => encode_as_turn(result),
        TranscriptItem::Handoff(handoff) => encode_as_turn(handoff),
        TranscriptItem::Usage(usage) => encode_as_turn(usage),
    }
}

fn encode_as_turn<R: Record>(entry: &R) -> EncodedItem {
    EncodedItem {
        declared: TypeRef::new(format!("{NAMESPACE}{}", R::NAME), VERSION),
        // The tables have no shape that makes blobs.
        payload: record::encode(entry).payload,
    }
}

/// Decodes an entry. A later version of a type only adds fields, so it is decoded as well.
pub fn decode_item(declared: &TypeRef, payload: &[u8]) -> Result<TranscriptItem, TranscriptError> {
    let item = match declared.id.strip_prefix(NAMESPACE) {
        Some("UserMessage") => TranscriptItem::UserMessage(decode_as(payload)?),
        Some("AssistantMessage") => TranscriptItem::AssistantMessage(decode_as(payload)?),
        Some("Thinking") => TranscriptItem::Thinking(decode_as(payload)?),
        Some("ToolCall") => TranscriptItem::ToolCall(decode_as(payload)?),
        Some("ToolResult") => TranscriptItem::ToolResult(decode_as(payload)?),
        Some("Handoff") => TranscriptItem::Handoff(decode_as(payload)?),
        Some("Usage") => TranscriptItem::Usage(decode_as(payload)?),
        _ => return Err(TranscriptError::UnknownType(declared.clone())),
    };
    Ok(item)
}

fn decode_as<R: Record>(payload: &[u8]) -> Result<R, DamagedRecord> {
    record::decode(payload, &|_| None)
}

#[cfg(test)]
mod tests;
