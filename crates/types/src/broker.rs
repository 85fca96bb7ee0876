//! The vocabulary of the broker: what wrappers and clients say to it, and what it answers.
//!
//! Values only: how they lie on the socket is in `wire`, what they do is in `session`. Names of
//! sessions and turns are texts here, because whoever asks must not read anything out of them; an
//! id that names nothing is an ordinary answer, not a malformed question.

mod reason;
mod reply;
mod request;
mod session_id;
mod session_name;

use std::time::Duration;

pub use reason::{Reason, Refusal};
pub use reply::{FoundTurn, Inject, Reply, ServerMessage, SessionInfo, Stored, TurnInfo};
pub use request::{
    AgentState, BadRequest, CompletedTurn, Deliver, GetTurn, Hello, ListSessions, ListTurns, Paint,
    Paste, Register, Request, Role, Shown, StateChange, TurnForm,
};
pub use session_id::{BadSessionId, SessionId};
pub use session_name::{BadSessionName, check_session_name};

/// The version of the protocol that is spoken here.
pub const VERSION: u64 = 1;
/// One message, without the four bytes of its length.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// What waits to be injected into one session.
pub const INJECT_BYTES_MAX: usize = 16 << 20;
/// The most that a turn's content, text or raw bytes may be configured to: two of them fit in a
/// message.
pub const TURN_BYTES_CEILING: usize = 7 << 20;
/// A name, a path, a pattern.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The first words of a turn, as lists show them.
pub const PREVIEW_BYTES_MAX: usize = 160;
/// A wrapper without a broker tries to reach one at least this often.
pub const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// A session's name, a preset, a signal: what a table of sessions shows.
pub const NAME_BYTES_MAX: usize = 256;

/// Whether a terminal would take some of these bytes for the end of a bracketed paste.
pub fn ends_paste(content: &[u8]) -> bool {
    let holds = |end: &[u8]| content.windows(end.len()).any(|window| window == end);
    holds(b"\x1b[201~") || holds(b"\x9b201~")
}
