//! Requests of wrappers and clients.

use bytes::Bytes;

use super::Refusal;
use crate::Timestamp;

/// The role of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A wrapper, which owns a session.
    Wrapper,
    /// Any other program: the command line, hotkeys, a user interface.
    Client,
}

/// The first message of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The peer's protocol version.
    pub version: u64,
    /// The peer's role.
    pub role: Role,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Opens the connection.
    Hello(Hello),
    /// Wrapper: announces its session.
    Register(Register),
    /// Wrapper: a turn is complete.
    TurnCompleted(Box<CompletedTurn>),
    /// Wrapper: the agent's state changed.
    State(StateChange),
    /// Wrapper: a part of its screen, while a client watches.
    Screen(Shown),
    /// Wrapper: its session ends.
    Deregister {
        /// The session.
        session: String,
    },
    /// Lists the sessions.
    ListSessions(ListSessions),
    /// Client: watches a shared session's terminal until the connection ends.
    Watch {
        /// The session.
        session: String,
    },
    /// Captures a session's latest turn into the relay buffer.
    Capture {
        /// The session.
        session: String,
    },
    /// Captures a turn that is still kept into the relay buffer.
    CaptureById {
        /// The turn.
        turn_id: String,
    },
    /// Injects the relay buffer into a session.
    Paste(Paste),
    /// Reads a turn.
    GetTurn(GetTurn),
    /// Lists a session's turns, newest first.
    ListTurns(ListTurns),
    /// Delivers the relay buffer to a sink.
    Deliver(Deliver),
}

/// A well-formed message that is not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// Whether its type is hello, which has its own form of response.
    pub hello: bool,
    /// What is wrong with it.
    pub refusal: Refusal,
}

/// A session that its wrapper announces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Register {
    /// The session's id.
    pub session: String,
    /// The wrapper's process.
    pub pid: u32,
    /// The prompt pattern; empty for a profile that has none.
    pub pattern: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// The profile in use.
    pub preset: Option<String>,
    /// The wrapped process.
    pub child_pid: Option<u32>,
    /// Whether clients may watch the terminal.
    pub shared: bool,
    /// Whether every paste is a bracketed paste. The broker then rejects content that contains the
    /// end sequence.
    pub bracketed: bool,
    /// Whether the program shows dialogs, possibly before its first prompt.
    pub dialogs: bool,
}

/// A completed turn that a wrapper detected.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each a field of the message"
)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompletedTurn {
    /// The session.
    pub session: String,
    /// The content, byte for byte.
    pub content: Bytes,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// The readable text, if the wrapper knows it.
    pub text: Option<String>,
    /// The terminal bytes of the turn, if the wrapper is configured to keep them.
    pub raw: Option<Bytes>,
    /// Whether the wrapper has cut `content` already.
    pub truncated: bool,
    /// Whether the wrapper has cut `raw` already.
    pub raw_truncated: bool,
    /// The wrapper's own number of the turn, from 1 on.
    pub seq: Option<u64>,
    /// When it was completed; `None` means now.
    pub timestamp: Option<Timestamp>,
    /// Whether a part of it was missed.
    pub incomplete: bool,
    /// Where the text comes from: `stream`, `screen` or `hook`.
    pub text_source: Option<String>,
    /// Whether the program printed it without a submitted prompt. The broker keeps it, but it does
    /// not count as a turn.
    pub unprompted: bool,
}

/// The state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    /// It works on a turn.
    Working,
    /// It waits for an answer inside a turn.
    Blocked,
    /// It waits for input.
    Ready,
}

impl AgentState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Working, Self::Blocked, Self::Ready];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Ready => "ready",
        }
    }

    /// The state with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// A change of an agent's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// The session.
    pub session: String,
    /// The new state.
    pub state: AgentState,
    /// Since when.
    pub since: Timestamp,
    /// The signal from which the wrapper derived the state, such as `title`.
    pub signal: Option<String>,
    /// How often Enter was pressed since the last turn.
    pub unanswered: u32,
}

/// A part of the screen of a shared terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// The session.
    pub session: String,
    /// Bytes for a terminal.
    pub content: Bytes,
    /// The terminal's width from here on.
    pub cols: u16,
    /// Its height.
    pub rows: u16,
    /// How the bytes relate to the parts before.
    pub paint: Paint,
}

/// How a part of the screen relates to the parts before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// The program's next bytes.
    #[default]
    Bytes,
    /// The whole screen, for new watchers. The others have it already.
    Repaint,
    /// The whole screen, because bytes before it are missing.
    Lost,
}

impl Paint {
    /// Every variant.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Repaint, Self::Lost];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Repaint => "repaint",
            Self::Lost => "lost",
        }
    }

    /// The variant with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|paint| paint.word() == word)
    }
}

/// Which sessions to list, and with which fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListSessions {
    /// Includes sessions that have ended and whose turns are still kept.
    pub gone: bool,
    /// Includes the beginning of each session's latest turn.
    pub preview: bool,
    /// Right after the broker's start: waits until every wrapper had time to connect again.
    pub settled: bool,
}

/// Which turns of a session to list, and with which fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListTurns {
    /// The session.
    pub session: String,
    /// The most turns; `None` means all.
    pub limit: Option<u32>,
    /// Includes the beginning of each turn.
    pub preview: bool,
    /// Includes output that the program printed without a submitted prompt.
    pub all: bool,
}

/// Which bytes of a captured turn are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnForm {
    /// The content, byte for byte.
    #[default]
    Content,
    /// The readable text, without the terminal's control sequences.
    Text,
    /// The raw terminal bytes, if they were kept.
    Raw,
}

/// Injects the relay buffer into a session's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paste {
    /// The session.
    pub session: String,
    /// Which bytes of the turn.
    pub form: TurnForm,
    /// As a bracketed paste, if the program has enabled that.
    pub bracketed: bool,
    /// Reject while the program shows a dialog: the bytes would answer it.
    pub unless_blocked: bool,
}

/// Reads a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetTurn {
    /// The turn.
    pub turn_id: String,
    /// Includes the raw terminal bytes, if they were kept, instead of the text.
    pub raw: bool,
}

/// Delivers the relay buffer to a sink. The broker checks the fields that the sink needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deliver {
    /// The sink's name.
    pub sink: String,
    /// `inject`: the session.
    pub session: Option<String>,
    /// `file`: the path.
    pub path: Option<String>,
    /// `node`: the run.
    pub run: Option<String>,
    /// `node`: the node.
    pub node: Option<String>,
    /// Which bytes of the turn.
    pub form: TurnForm,
    /// `inject`: as a bracketed paste, if the program has enabled that.
    pub bracketed: bool,
    /// `inject`: reject while the program shows a dialog: the bytes would answer it.
    pub unless_blocked: bool,
}
