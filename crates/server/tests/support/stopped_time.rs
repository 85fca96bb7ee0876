//! Tokio's clock in the hands of a test: it moves only when the test says so.
//!
//! A paused tokio clock jumps to the next timer whenever the runtime is idle, and a runtime that
//! waits for a socket is idle. It never jumps while a blocking task runs, so [`StoppedTime`] keeps
//! one waiting until it is dropped. Time-outs of the test itself stand still as well: the same
//! blocking task ends the process when the test takes longer than [`REAL_TIME_MAX`].

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// The longest that a test with a stopped clock may take.
const REAL_TIME_MAX: Duration = Duration::from_mins(2);

/// Stops the clock of the current runtime, which must be of the kind `current_thread`, until it is
/// dropped.
pub(crate) struct StoppedTime {
    _test_goes_on: SyncSender<()>,
}

impl StoppedTime {
    pub(crate) fn begin() -> Self {
        let (sender, receiver) = sync_channel(0);
        tokio::task::spawn_blocking(move || {
            if receiver.recv_timeout(REAL_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                eprintln!("a test with a stopped clock hangs: what it waits for never came");
                std::process::abort();
            }
        });
        tokio::time::pause();
        Self {
            _test_goes_on: sender,
        }
    }

    /// Moves the clock, and lets every timer fire that is due by then.
    pub(crate) async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }

    /// Moves the clock step by step until something happens.
    #[allow(dead_code, reason = "not every group of tests needs it")]
    pub(crate) async fn advance_until<T>(
        &self,
        step: Duration,
        event: impl Future<Output = T>,
    ) -> T {
        let mut event = std::pin::pin!(event);
        loop {
            tokio::select! {
                biased;
                value = &mut event => return value,
                () = tokio::task::yield_now() => self.advance(step).await,
            }
        }
    }
}
