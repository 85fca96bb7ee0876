//! The network shell: the binary protocol and the HTTP gateway in front of one store.
//!
//! Read `run` first: it starts the server and lists the modules. `convert` checks requests against
//! the limits and turns them into commands. `guarded_store` is the handlers' way to the store and
//! protects the contexts of worlds. `error` gives every failure its code, the same on both ports.
//!
//! Bytes from a peer never panic the server. The memory of one connection is bounded, and so is the
//! memory of all connections together (`memory`). Long work runs on worker threads, so a connection
//! waits for others only where they share the log, the disk or the memory budget. It waits for the
//! memory budget no longer than `Timeouts::memory`.

mod accept;
pub mod auth;
pub mod broker;
mod child_process;
pub mod config;
mod connections;
pub mod convert;
mod durable_state;
pub mod error;
mod guarded_store;
pub mod handle;
pub mod http;
mod ledger;
mod mcp;
mod memory;
mod metrics;
mod nesting;
mod principal;
mod provenance;
mod publish;
pub mod run;
mod runs;
mod shared;
#[cfg(test)]
#[path = "../tests/support/stopped_time.rs"]
mod stopped_time;
mod tcp;
pub mod tls;
mod tool_rate;
mod ui_files;
mod unauthenticated;
mod workers;
mod world_caller;
mod write_rate;

pub use auth::{Auth, Token};
pub use config::{ServerConfig, Timeouts, TlsFiles};
pub use http::openapi_json;
pub use memory::MemoryBudget;
pub use run::{Running, ServeError, serve};
pub use runs::{CapacityLimits, NotifyConfig, RunsConfig, WebhookError, WebhookTarget};
pub use turnkeep_agents::launch as agent_launch;
pub use turnkeep_runtime::words::CliPermissions;
pub use ui_files::UiFiles;
