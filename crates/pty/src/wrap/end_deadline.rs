//! The deadline for everything beside the byte path when the wrapper ends: a limited time, and none
//! after a signal that requests our end.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::signals::{Signals, requests_end};

/// How long everything may take together. The store and the broker have less each.
const END_WAIT_MAX: Duration = Duration::from_secs(14);
/// How often the signals are checked meanwhile.
const CHECK_PAUSE: Duration = Duration::from_millis(20);

/// The time that is left. Ctrl-C and other signals that request our end use it up.
#[derive(Debug)]
pub(super) struct EndDeadline {
    signals: Signals,
    until: Instant,
}

impl EndDeadline {
    pub(super) fn new(signals: Signals) -> Self {
        Self {
            signals,
            until: Instant::now() + END_WAIT_MAX,
        }
    }

    /// Waits for the result of a thread.
    pub(super) fn wait_for<T>(&mut self, result: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        loop {
            // The user does not want to wait any longer.
            if self.signals.take_received().into_iter().any(requests_end) {
                self.until = Instant::now();
            }
            let left = self.until.saturating_duration_since(Instant::now());
            match result.recv_timeout(left.min(CHECK_PAUSE)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                received => return received,
            }
        }
    }
}
