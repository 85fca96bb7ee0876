//! Runs with the real binary: the scripted agent speaks each protocol, and the tests drive the run
//! over HTTP as any client would.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod api;
mod approvals;
mod archive;
mod changes;
mod command_line;
mod deleted_worktrees;
mod demo;
mod docs_node;
mod failures;
mod gated_children;
mod gates;
mod kept_files;
mod kills;
mod landing;
mod line_calls;
mod links;
mod long_answers;
mod no_commands;
mod overlapping_writes;
mod processes;
mod protocols;
mod provider_lines;
mod reaping;
mod restart;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../sandbox/mod.rs"]
mod sandbox;
mod secrets;
mod shared_directory;
mod story_a;
mod story_b;
mod story_c;
mod supervision;
mod team;
mod terminal;
mod timelines;
mod tool_calls;
mod turns;
mod worktrees;
