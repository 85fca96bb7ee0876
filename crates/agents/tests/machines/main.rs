//! The machines through their public face: recordings of real programs, the answers and interrupts
//! of each protocol, and lines that no program should print.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` without an ampersand reads better at the call"
)]

mod acp;
mod claude;
mod codex;
mod conversation;
mod hostile;
mod jsonl;
mod raw;
mod recordings;
