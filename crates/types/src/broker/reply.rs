//! What the broker answers, and what it says unasked.

use bytes::Bytes;

use super::{AgentState, Reason, Refusal, Shown};
use crate::{ContextId, Timestamp, TurnId};

/// A message from the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMessage {
    /// The answer to hello.
    HelloAck(Result<(), Refusal>),
    /// The answer to any other request.
    Response {
        /// The request's id.
        id: u32,
        /// What came of it.
        outcome: Result<Reply, Refusal>,
    },
    /// To a wrapper: bytes for its child.
    Inject(Inject),
    /// To a wrapper: somebody watches from now on and needs the whole screen first, or nobody does.
    Show {
        /// Whether somebody watches.
        on: bool,
    },
    /// To a client that watches: what the terminal shows.
    Screen(Shown),
    /// To a client that watches: nothing more will be shown.
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
    /// The bytes, none added and none removed.
    pub content: Bytes,
    /// Whether to frame them as a bracketed paste when the child has asked for that.
    pub bracketed: bool,
}

/// What a request gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
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

/// Where a captured turn is in the turn store.
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
    /// What the person calls it.
    pub name: Option<String>,
    /// The profile in use.
    pub preset: Option<String>,
    /// The wrapped process.
    pub child_pid: Option<u32>,
    /// What the agent does; none while no prompt was seen.
    pub state: Option<AgentState>,
    /// Since when it does that; for a session that has gone, since when it is gone.
    pub since: Option<Timestamp>,
    /// The signal by which the wrapper knows.
    pub signal: Option<String>,
    /// How often Enter was pressed since the last turn, when the wrapper last told.
    pub unanswered: u32,
    /// Turns that are kept.
    pub turns: u32,
    /// When the latest one was completed.
    pub last_turn_at: Option<Timestamp>,
    /// Whether its wrapper is there.
    pub connected: bool,
    /// Whether its terminal may be watched.
    pub shared: bool,
    /// The first words of its latest turn, when they were asked for.
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
    /// Bytes of its content, as kept.
    pub byte_length: u32,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether its content was cut.
    pub truncated: bool,
    /// Whether something of it was missed.
    pub incomplete: bool,
    /// Whether the program said it although nothing was submitted.
    pub unprompted: bool,
    /// Its first words, when they were asked for.
    pub preview: Option<String>,
}

/// A turn with its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundTurn {
    /// Its metadata.
    pub info: TurnInfo,
    /// Its session.
    pub session: String,
    /// What the person calls that session.
    pub name: Option<String>,
    /// That session's profile.
    pub preset: Option<String>,
    /// The content, byte for byte.
    pub content: Bytes,
    /// The readable text, where the wrapper sent one and `raw` was not asked for.
    pub text: Option<String>,
    /// Where the text comes from.
    pub text_source: Option<String>,
    /// The raw terminal bytes, when they were asked for and kept.
    pub raw: Option<Bytes>,
    /// Whether the raw bytes were cut.
    pub raw_truncated: bool,
}

impl FoundTurn {
    /// The readable text, or nothing when there is only content that is no text.
    pub fn readable(&self) -> Option<&str> {
        self.text
            .as_deref()
            .or_else(|| std::str::from_utf8(&self.content).ok())
    }
}
