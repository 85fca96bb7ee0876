//! Tokio's clock in the hands of a test: it moves only when the test says so.
//!
//! A paused tokio clock jumps to the next timer whenever the runtime is idle, and a runtime that
//! waits for a socket is idle. It never jumps while a blocking task runs, so [`StoppedTime`] keeps
//! one waiting until it is dropped. A test cannot limit its own waits with a stopped clock, so the
//! same blocking task ends the process when the test takes longer than [`REAL_TIME_MAX`].

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// The longest that a test with a stopped clock may take.
const REAL_TIME_MAX: Duration = Duration::from_mins(2);
/// The longest that a test waits for one thing while the clock runs.
const WAIT_MAX: Duration = Duration::from_mins(1);

thread_local! {
    /// Whether this thread's runtime has a stopped clock.
    static IS_STOPPED: Cell<bool> = const { Cell::new(false) };
}

/// Waits for something that happens soon, and fails when it does not happen within [`WAIT_MAX`].
///
/// While the clock is stopped there is no limit here: the test would reach it by moving the clock.
#[allow(dead_code, reason = "not every group of tests needs it")]
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    if IS_STOPPED.get() {
        return future.await;
    }
    tokio::time::timeout(WAIT_MAX, future)
        .await
        .expect("within a minute")
}

/// Waits for something while no timer fires, if the clock is still the one that a test has stopped.
///
/// Tokio moves a stopped clock to the next timer when every task waits. Without this, it would do so
/// whenever a socket has to be waited for.
#[allow(dead_code, reason = "not every group of tests needs it")]
pub(crate) async fn while_time_rests<T>(future: impl Future<Output = T>) -> T {
    let (sender, receiver) = sync_channel::<()>(0);
    let holds = tokio::task::spawn_blocking(move || receiver.recv());
    let value = future.await;
    drop(sender);
    drop(holds.await);
    value
}

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
        IS_STOPPED.set(true);
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

impl Drop for StoppedTime {
    fn drop(&mut self) {
        IS_STOPPED.set(false);
    }
}
