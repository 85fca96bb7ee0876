//! The network shell: the binary protocol and the HTTP gateway in front of one store.
//!
//! [`serve`] is the composition root. What arrives is held against the limits in `convert`, runs in
//! the store, and what comes back is encoded for its surface; errors have the same words on both.
//! Nothing here decides what the store means. Nothing that a peer sends may panic; what a
//! connection holds is bounded, and so is what all of them hold together (`memory`). Work that
//! takes long leaves the runtime's thread, so that a peer waits for others only where they share
//! the log, the disk or the room for large requests, and for that room only so long as
//! `Timeouts::room` says.

mod accept;
pub mod auth;
pub mod broker;
pub mod config;
mod connections;
pub mod convert;
pub mod error;
pub mod handle;
pub mod http;
mod ledger;
mod mcp;
mod memory;
mod metrics;
mod nesting;
mod principal;
mod publish;
mod raw_reads;
pub mod run;
mod shared;
mod tcp;
pub mod tls;
mod tool_rate;
mod unauthenticated;
mod write_rate;

pub use auth::{Auth, Token};
pub use config::{ServerConfig, Timeouts, TlsFiles};
pub use http::openapi_json;
pub use memory::MemoryBudget;
pub use run::{Running, ServeError, serve};
