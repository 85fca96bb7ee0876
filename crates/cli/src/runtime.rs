//! The asynchronous runtime of commands that need one. The server and everything that a command asks
//! of it share it; on few cores one thread that moves bytes beats several.

use anyhow::{Context, Result};

/// Runs a command, or a part of one, to its end.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(command)
}
