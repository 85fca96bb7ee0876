//! What wrappers and clients ask.

use bytes::Bytes;

use super::Refusal;
use crate::Timestamp;

/// Who is on the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A wrapper, which owns a session.
    Wrapper,
    /// Anybody else: the command line, hotkeys, a user interface.
    Client,
}

/// The first message of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The version that the peer speaks.
    pub version: u64,
    /// What the peer is.
    pub role: Role,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Opens the conversation.
    Hello(Hello),
    /// Wrapper: announces its session.
    Register(Register),
    /// Wrapper: a turn is complete.
    TurnCompleted(Box<CompletedTurn>),
    /// Wrapper: what the agent does now.
    State(StateChange),
    /// Wrapper: what its terminal shows, while somebody watches.
    Screen(Shown),
    /// Wrapper: its session ends.
    Deregister {
        /// The session.
        session: String,
    },
    /// Which sessions there are.
    ListSessions(ListSessions),
    /// Client: wants to see a shared session's terminal, until the connection ends.
    Watch {
        /// The session.
        session: String,
    },
    /// Takes a session's latest turn into the relay buffer.
    Capture {
        /// The session.
        session: String,
    },
    /// Takes any turn that is still kept into the relay buffer.
    CaptureById {
        /// The turn.
        turn_id: String,
    },
    /// Injects the relay buffer into a session.
    Paste(Paste),
    /// Reads a turn.
    GetTurn(GetTurn),
    /// The turns of a session, newest first.
    ListTurns(ListTurns),
    /// Hands the relay buffer to a sink.
    Deliver(Deliver),
}

/// A message that could be read but is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// Whether it was meant as a hello, which is answered in its own form.
    pub hello: bool,
    /// What is wrong with it.
    pub refusal: Refusal,
}

/// A session, as its wrapper announces it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Register {
    /// The session's id.
    pub session: String,
    /// The wrapper's process.
    pub pid: u32,
    /// The prompt pattern; empty for a profile that has none.
    pub pattern: String,
    /// What the person calls it.
    pub name: Option<String>,
    /// The profile in use.
    pub preset: Option<String>,
    /// The wrapped process.
    pub child_pid: Option<u32>,
    /// Whether the terminal may be watched.
    pub shared: bool,
    /// Whether every paste is framed, so that content that could leave its frame is refused.
    pub bracketed: bool,
    /// Whether the program paints dialogs, so that it may show one before its first prompt.
    pub dialogs: bool,
}

/// A completed turn, as its wrapper found it.
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
    /// The readable text, where the wrapper knows it.
    pub text: Option<String>,
    /// The terminal bytes of the turn, where the wrapper was told to keep them.
    pub raw: Option<Bytes>,
    /// Whether the wrapper has cut `content` already.
    pub truncated: bool,
    /// Whether the wrapper has cut `raw` already.
    pub raw_truncated: bool,
    /// The wrapper's own number of the turn, from 1 on.
    pub seq: Option<u64>,
    /// When it was completed; now when none.
    pub timestamp: Option<Timestamp>,
    /// Whether something of it was missed.
    pub incomplete: bool,
    /// Where the text comes from: `stream`, `screen` or `hook`.
    pub text_source: Option<String>,
    /// Whether the program said it although nothing was submitted: it is kept, but it is no turn.
    pub unprompted: bool,
}

/// What an agent does.
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

/// A change of what an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// The session.
    pub session: String,
    /// What it does now.
    pub state: AgentState,
    /// Since when.
    pub since: Timestamp,
    /// The signal by which the wrapper knows, such as `title`.
    pub signal: Option<String>,
    /// How often Enter was pressed since the last turn.
    pub unanswered: u32,
}

/// A piece of what a shared terminal shows.
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
    /// How the bytes follow what was shown before.
    pub paint: Paint,
}

/// How a piece follows what was shown before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// The program's next bytes.
    #[default]
    Bytes,
    /// The whole screen, for those who have seen nothing yet; the others have it already.
    Repaint,
    /// The whole screen, because bytes before it are missing.
    Lost,
}

impl Paint {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Repaint, Self::Lost];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Repaint => "repaint",
            Self::Lost => "lost",
        }
    }

    /// The way with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|paint| paint.word() == word)
    }
}

/// Which sessions are listed, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListSessions {
    /// Also those whose wrapper has gone and whose turns are still kept.
    pub gone: bool,
    /// With the first words of each session's latest turn.
    pub preview: bool,
    /// Right after the broker's start, wait until every wrapper had the time to connect again.
    pub settled: bool,
}

/// Which turns of a session are listed, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListTurns {
    /// The session.
    pub session: String,
    /// At most so many; all when none.
    pub limit: Option<u32>,
    /// With the first words of each turn.
    pub preview: bool,
    /// Also what the program said although nothing was submitted.
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
    /// The raw terminal bytes, where they were kept.
    Raw,
}

/// Injects the relay buffer into a session's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paste {
    /// The session.
    pub session: String,
    /// Which bytes of the turn.
    pub form: TurnForm,
    /// Framed as a bracketed paste where the program asked for that.
    pub bracketed: bool,
    /// Refuse while the program shows a dialog, which the bytes would answer.
    pub unless_blocked: bool,
}

/// Reads a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetTurn {
    /// The turn.
    pub turn_id: String,
    /// With the raw terminal bytes, where they were kept, instead of the text.
    pub raw: bool,
}

/// Hands the relay buffer to a sink. Which fields a sink needs is the broker's to check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deliver {
    /// The sink's name.
    pub sink: String,
    /// `inject`: the session.
    pub session: Option<String>,
    /// `file`: where to.
    pub path: Option<String>,
    /// `node`: the run.
    pub run: Option<String>,
    /// `node`: the node.
    pub node: Option<String>,
    /// Which bytes of the turn.
    pub form: TurnForm,
    /// `inject`: framed as a bracketed paste where the program asked for that.
    pub bracketed: bool,
    /// `inject`: refuse while the program shows a dialog, which the bytes would answer.
    pub unless_blocked: bool,
}
