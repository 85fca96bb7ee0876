//! The HTTP gateway as a client sees it: over real sockets, on a store in memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blobs;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../broker/support.rs"]
mod broker_support;
mod client;
mod contexts;
mod damage;
mod documents;
mod events;
mod faults;
mod fs;
mod gate;
mod interop;
mod ledger;
mod limits;
#[path = "../support/memory_server.rs"]
mod memory_server;
mod notices;
mod projection;
mod registry;
mod runs;
mod server;
mod sessions;
#[path = "../support/stopped_time.rs"]
mod stopped_time;
mod tls;
mod turns;
mod ui;
