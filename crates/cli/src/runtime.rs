//! The asynchronous runtime of commands that need one. The server and everything that a command
//! asks of it share it; on few cores one thread that moves bytes beats several.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// How long a command's end waits for work that hangs on a thread of its own: a dead file server, a
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
