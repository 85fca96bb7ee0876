//! The binary port over real sockets: what a client sees, byte by byte.

#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

mod auth;
mod gaps;
mod malformed;
mod memory;
#[path = "../support/memory_server.rs"]
mod memory_server;
mod order;
mod pages;
mod races;
mod shutdown;
#[path = "../support/stopped_time.rs"]
mod stopped_time;
mod subscribe;
mod support;
mod timeouts;
mod tls;
