//! Sessions of wrapped terminals and their captured turns, as the broker holds them in memory.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::SentId;
use super::{Id, Time};

/// The sessions that the broker knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SessionList {
    /// The sessions. One that has ended is listed while its turns are kept.
    pub sessions: Vec<Session>,
}

/// A program in a wrapped terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Session {
    /// Its id.
    pub session: String,
    /// The name that it was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// The profile that detects its turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub preset: Option<String>,
    /// The wrapper's process.
    pub pid: u32,
    /// The program's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub child_pid: Option<u32>,
    /// `working`, `blocked` or `ready`; absent before the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<String>,
    /// Since when it has this state; of an ended session, since when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub since: Option<Time>,
    /// What the state was derived from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub signal: Option<String>,
    /// How often Enter was pressed since the last turn.
    pub unanswered: u32,
    /// Whether a turn can be captured.
    pub has_turn: bool,
    /// How many turns are kept.
    pub turns: u32,
    /// When the latest turn was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_turn_at: Option<Time>,
    /// Whether its wrapper is connected. Otherwise the session has ended.
    pub connected: bool,
    /// Whether its terminal may be watched.
    pub shared: bool,
    /// The first words of its latest turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub preview: Option<String>,
}

/// The turns of a session that are still kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CapturedTurnList {
    /// The session's id.
    pub session: String,
    /// Newest first.
    pub turns: Vec<CapturedTurnInfo>,
}

/// A captured turn without its content.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each a field of the broker's message"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CapturedTurnInfo {
    /// Its id, `SESSION:NUMBER`.
    pub turn_id: String,
    /// Its number in the session.
    pub seq: Id,
    /// When it was completed.
    pub timestamp: Time,
    /// The length of its content, as kept.
    pub byte_length: u32,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether its end was cut off, because it was too long.
    pub truncated: bool,
    /// Whether a part of it was missed.
    pub incomplete: bool,
    /// Whether the program printed it without a submitted prompt. It then counts as no turn.
    pub unprompted: bool,
    /// Its first words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub preview: Option<String>,
}

/// A captured turn with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CapturedTurn {
    /// What is known about it.
    #[serde(flatten)]
    pub info: CapturedTurnInfo,
    /// The session's id.
    pub session: String,
    /// The name that the session was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// The profile that detected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub preset: Option<String>,
    /// Its readable text, without the terminal's control sequences.
    pub text: String,
    /// Where the text comes from: `stream`, `screen` or `hook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub text_source: Option<String>,
    /// With `raw`: the content, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content_b64: Option<String>,
    /// With `raw`: the terminal's own bytes, if `wrap --keep-raw` kept them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub raw_b64: Option<String>,
    /// Whether the terminal's own bytes were cut off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raw_truncated: bool,
}

/// Which turn of the session to capture or keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChooseCapturedTurn {
    /// Its number; the latest unless given.
    #[serde(default)]
    #[schema(value_type = Option<SentId>)]
    pub seq: Option<Id>,
}

/// The turn that is in the relay buffer now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Captured {
    /// Its id, `SESSION:NUMBER`.
    pub turn_id: String,
    /// The length of its content.
    pub size: u64,
}

/// How to paste into the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasteCaptured {
    /// The turn to capture first, such as `review:3`, or a session, which means its latest turn. The
    /// relay buffer is pasted as it is unless given.
    #[serde(default)]
    pub turn: Option<String>,
    /// Paste the captured bytes instead of the text; the terminal's own where they were kept.
    #[serde(default)]
    pub raw: bool,
    /// Frame it as a bracketed paste if the program has enabled that.
    #[serde(default)]
    pub bracketed: bool,
    /// Paste also into a program that shows a dialog. It takes the text as its answer.
    #[serde(default)]
    pub force: bool,
}

/// Where to deliver a turn of the session. It is captured first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverCaptured {
    /// `inject`, `clipboard`, `file`, `store` or `node`.
    pub sink: String,
    /// The turn's number; the latest unless given.
    #[serde(default)]
    #[schema(value_type = Option<SentId>)]
    pub seq: Option<Id>,
    /// `inject`: the session that gets it.
    #[serde(default)]
    pub session: Option<String>,
    /// `file`: the absolute path.
    #[serde(default)]
    pub path: Option<String>,
    /// `node`: the run's id.
    #[serde(default)]
    pub run: Option<String>,
    /// `node`: the node's id or alias.
    #[serde(default)]
    pub node: Option<String>,
    /// Deliver the captured bytes instead of the text; the terminal's own where they were kept.
    #[serde(default)]
    pub raw: bool,
    /// `inject`: frame it as a bracketed paste if the program has enabled that.
    #[serde(default)]
    pub bracketed: bool,
    /// `inject`: also into a program that shows a dialog.
    #[serde(default)]
    pub force: bool,
}

/// What was pasted or delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Delivered {
    /// The sink.
    pub sink: String,
    /// The session that got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session: Option<String>,
    /// `store`: the context of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub context_id: Option<Id>,
    /// `store`: the turn there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub turn_id: Option<Id>,
}

/// A captured turn that is in the store now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Kept {
    /// The captured turn's id, `SESSION:NUMBER`.
    pub captured: String,
    /// The context of its session.
    pub context_id: Id,
    /// The turn there.
    pub turn_id: Id,
}
