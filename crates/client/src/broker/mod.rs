//! The client of the broker's socket, for wrappers, the command line and hotkeys.
//!
//! [`Connection`] blocks, [`AsyncConnection`] awaits; both say hello when they open and have the same
//! verbs. A connection asks one thing at a time and waits for its answer, at most as long as it was
//! told; what the broker says unasked meanwhile is kept for [`Connection::next_unasked`]. A
//! connection that failed is not revived: open another one, register again (`duplicate_session`
//! right after a loss means that the broker has not noticed it yet: try again), and send what was
//! not answered with its `seq`, which makes repeating safe.

mod async_connection;
mod connection;
mod error;
mod hearing;
mod trust;
mod verbs;

use std::path::{Path, PathBuf};

pub use async_connection::AsyncConnection;
pub use connection::Connection;
pub use error::Error;

/// Where the broker listens, below the user's runtime directory (`XDG_RUNTIME_DIR`).
pub fn socket_path(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("turnkeep").join("broker.sock")
}
