//! The protocols of agent programs: lines in, events out; requests in, lines out.
//!
//! Each protocol is a machine behind [`AgentProtocol`]. It does no I/O and reads no clock: the
//! server starts the program that [`launch::plan_launch`] describes, passes every line of its output
//! to the machine and carries out the [`Action`]s that the machine returns.
//!
//! A worked example, `claude` with one approved command:
//!
//! ```text
//! Request::Start     → Write(initialize)
//! Request::Send      → Write(user record)
//! line: system/init  → Emit(Session)
//! line: tool_use     → Emit(ToolProposed)
//! line: can_use_tool → Emit(PermissionAsked)
//! Request::Answer    → Write(control response: allow)
//! line: tool_result  → Emit(ToolCompleted)
//! line: result       → Emit(AnswerFinal), Emit(Usage), Emit(TurnEnded(Completed))
//! ```
//!
//! Three rules hold for every machine, whatever the program prints:
//!
//! - A turn that [`Request::Send`] opened ends exactly once, at the latest in
//!   [`AgentProtocol::receive_end`].
//! - Every proposed tool is completed exactly once before its turn ends.
//! - No line is fatal. A machine ignores messages that it does not know, and logs lines that are
//!   not JSON.

#![expect(
    missing_docs,
    reason = "a field whose name says everything has no comment"
)]

pub mod acp;
pub mod claude;
pub mod codex;
mod context;
pub mod event;
pub mod failure;
mod field;
mod json_rpc;
pub mod jsonl;
pub mod launch;
mod message_text;
pub mod protocol;
pub mod raw;
pub mod request;
pub mod tool_line;
mod turn;

pub use event::{Action, AgentEvent, LimitReset, TurnEnd};
pub use protocol::{AgentProtocol, Exit, Features};
pub use request::{Answer, Request, RequestError};
