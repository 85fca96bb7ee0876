//! Runs with the real agent programs: Claude Code, Codex and Gemini CLI, whose model is a script on
//! a loopback port.
//!
//! The tests need the programs, so a plain `cargo test` ignores them. `./x real-agents` installs
//! the programs and runs the tests. `TURNKEEP_REAL_AGENTS` names the directory that has `claude`,
//! `codex` and `gemini`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod anthropic;
mod gemini;
mod limits;
mod model;
mod office;
mod openai;
mod programs;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../sandbox/mod.rs"]
mod sandbox;
mod story;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "../agents/team.rs"]
mod team;
mod team_story;
