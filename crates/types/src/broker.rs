//! The requests and replies of the broker.
//!
//! These are plain values: `wire` has their format, `session` their meaning. Ids of sessions and
//! turns in requests are strings, not typed ids: an id that names nothing gets an ordinary error
//! reply and does not make the request malformed.

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

/// The version of the protocol.
pub const VERSION: u64 = 1;
/// The longest message, without its length field.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The most bytes that wait to be injected into one session.
pub const INJECT_BYTES_MAX: usize = 16 << 20;
/// The highest configurable limit of a turn's content, text or raw bytes. Two of them fit in a
/// message.
pub const TURN_BYTES_CEILING: usize = 7 << 20;
/// The longest name, path or pattern.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The longest preview of a turn in a list.
pub const PREVIEW_BYTES_MAX: usize = 160;
/// The longest pause between two attempts of a wrapper to reach the broker.
pub const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// The longest session name, preset or signal: a table of sessions shows them.
pub const NAME_BYTES_MAX: usize = 256;

/// Whether the content contains the end sequence of a bracketed paste. A terminal would end the
/// paste there and run the rest as typed input.
pub fn ends_paste(content: &[u8]) -> bool {
    let holds = |end: &[u8]| content.windows(end.len()).any(|window| window == end);
    holds(b"\x1b[201~") || holds(b"\x9b201~")
}
