//! The asynchronous runtime of commands that need one. It has one thread, which the command shares
//! with its own server: on few cores one thread that moves bytes is faster than several.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// How long the end of a command waits for blocked threads, for example on a dead file server or a
/// desktop that does not answer.
const END_PAUSE: Duration = Duration::from_secs(1);

/// Runs a command, or a part of one, to its end.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = single_thread()?;
    let done = runtime.block_on(command);
    runtime.shutdown_timeout(END_PAUSE);
    done
}

/// A runtime that works on the thread that waits for it.
pub(crate) fn single_thread() -> Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")
}
