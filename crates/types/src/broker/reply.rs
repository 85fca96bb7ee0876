//! Responses and notifications of the broker.

use bytes::Bytes;

use super::{AgentState, Reason, Refusal, Shown};
use crate::{ContextId, Timestamp, TurnId};

/// A message from the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMessage {
    /// The response to hello.
    HelloAck(Result<(), Refusal>),
    /// The response to any other request.
    Response {
        /// The request's id.
        id: u32,
        /// The result.
        outcome: Result<Reply, Refusal>,
    },
    /// To a wrapper: bytes for its child.
    Inject(Inject),
    /// To a wrapper: watching starts, and the watcher needs the whole screen first; or it stops.
    Show {
        /// Whether at least one client watches.
        on: bool,
    },
    /// To a client that watches: a part of the screen.
    Screen(Shown),
    /// To a client that watches: the last message of this watch.
    WatchEnded {
        /// The session.
        session: String,
        /// Why.
        reason: Reason,
    },
}

/// Bytes for the child of a wrapper, to be written as if they were typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inject {
    /// The bytes, unchanged.
    pub content: Bytes,
    /// Whether to send them as a bracketed paste if the child has enabled that.
    pub bracketed: bool,
}

/// The result of a request that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The request has no other result.
    Done,
    /// A completed turn is kept under this id.
    Kept {
        /// The turn.
        turn_id: String,
    },
    /// A turn is in the relay buffer.
    Captured {
        /// The turn.
        turn_id: String,
        /// Bytes of its content.
        size: u64,
    },
    /// A turn is in the turn store.
    Stored(Stored),
    /// The sessions.
    Sessions(Vec<SessionInfo>),
    /// A session's turns, newest first.
    Turns(Vec<TurnInfo>),
    /// A turn with its content.
    Turn(Box<FoundTurn>),
}

/// The place of a captured turn in the turn store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The context of its session.
    pub context: ContextId,
    /// The turn there.
    pub turn: TurnId,
}

/// A session, as the broker lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionInfo {
    /// Its id.
    pub session: String,
    /// The wrapper's process.
    pub pid: u32,
    /// Whether a turn can be captured.
    pub has_turn: bool,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// The profile in use.
    pub preset: Option<String>,
    /// The wrapped process.
    pub child_pid: Option<u32>,
    /// The agent's state; `None` before the first prompt.
    pub state: Option<AgentState>,
    /// Since when it has this state or, for a session that has ended, since when it has ended.
    pub since: Option<Timestamp>,
    /// The signal from which the wrapper derived the state.
    pub signal: Option<String>,
    /// How often Enter was pressed since the last turn, by the wrapper's last report.
    pub unanswered: u32,
    /// The number of turns that are kept.
    pub turns: u32,
    /// When the latest turn was completed.
    pub last_turn_at: Option<Timestamp>,
    /// Whether its wrapper is connected.
    pub connected: bool,
    /// Whether clients may watch its terminal.
    pub shared: bool,
    /// The beginning of its latest turn, if the request includes previews.
    pub preview: Option<String>,
}

/// A turn's metadata. Never changes.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each a field of the message"
)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnInfo {
    /// Its id.
    pub turn_id: String,
    /// When it was completed.
    pub timestamp: Timestamp,
    /// The length of its content, as kept.
    pub byte_length: u32,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether its content was cut.
    pub truncated: bool,
    /// Whether a part of it was missed.
    pub incomplete: bool,
    /// Whether the program printed it without a submitted prompt.
    pub unprompted: bool,
    /// Its beginning, if the request includes previews.
    pub preview: Option<String>,
}

/// A turn with its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundTurn {
    /// Its metadata.
    pub info: TurnInfo,
    /// Its session.
    pub session: String,
    /// The name that the user gave the session.
    pub name: Option<String>,
    /// That session's profile.
    pub preset: Option<String>,
    /// The content, byte for byte.
    pub content: Bytes,
    /// The readable text, if the wrapper sent one and the request does not include raw bytes.
    pub text: Option<String>,
    /// Where the text comes from.
    pub text_source: Option<String>,
    /// The raw terminal bytes, if the request includes them and they were kept.
    pub raw: Option<Bytes>,
    /// Whether the raw bytes were cut.
    pub raw_truncated: bool,
}

impl FoundTurn {
    /// The readable text, or the content if that is UTF-8.
    pub fn readable(&self) -> Option<&str> {
        self.text
            .as_deref()
            .or_else(|| std::str::from_utf8(&self.content).ok())
    }
}
