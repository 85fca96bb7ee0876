//! The client of the broker's socket, for wrappers, the command line and hotkeys.
//!
//! [`Connection`] blocks, [`AsyncConnection`] is asynchronous; both have the same methods. A
//! connection sends one request at a time and waits for the response up to a time-out.
//! Notifications of the broker that arrive meanwhile are queued for
//! [`Connection::next_notification`].
//!
//! A connection that failed is of no more use. Open another one and register again. The error
//! `duplicate_session` right after a loss means that the broker has not noticed the loss yet: try
//! again. Then repeat the unanswered requests with their `seq`, which makes repeating safe.

mod async_connection;
mod connection;
mod error;
mod incoming;
mod trust;
mod verbs;

use std::path::{Path, PathBuf};

pub use async_connection::AsyncConnection;
pub use connection::Connection;
pub use error::BrokerError;

/// The broker's socket below the user's runtime directory (`XDG_RUNTIME_DIR`).
pub fn socket_path(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("turnkeep").join("broker.sock")
}
