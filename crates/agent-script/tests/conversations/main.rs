//! Whole conversations with the real program over each protocol.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acp;
mod app_server;
mod examples;
mod harness;
mod jsonl;
mod mcp_server;
mod raw;
mod shapes;
mod start;
mod stream_json;
mod terminal;
mod tools;
mod trouble;
