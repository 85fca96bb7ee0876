//! The binary port over real sockets: what a client sees, byte by byte.

#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

mod auth;
mod gaps;
mod malformed;
mod order;
mod pages;
mod races;
mod room;
mod shutdown;
mod subscribe;
mod support;
mod timeouts;
mod tls;
