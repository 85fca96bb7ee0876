//! The broker over its real socket: what it promises, to whom it does not listen, and who cannot
//! disturb whom.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bytes_on_the_wire;
mod contract;
mod hostile;
mod lifecycle;
#[path = "../support/memory_server.rs"]
mod memory_server;
mod room;
mod sinks;
#[path = "../support/stopped_time.rs"]
mod stopped_time;
mod support;
mod watch;
