//! Capture and relay as a person does it: the real binary in real terminals, by keys and by
//! commands.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;
mod hotkey;
#[allow(dead_code, reason = "each crate's tests use a part of it")]
#[path = "../../../pty/tests/desktop/program.rs"]
mod program;
mod relay;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../sandbox/mod.rs"]
mod sandbox;
#[allow(dead_code, reason = "each crate's tests use a part of it")]
#[path = "../../../pty/tests/desktop/tmux_server.rs"]
mod tmux_server;
#[path = "../../../pty/tests/desktop/x_server.rs"]
mod x_server;
