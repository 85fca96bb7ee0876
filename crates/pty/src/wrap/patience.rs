//! How long the wrapper's end waits for what goes on beside the byte path: not for ever, and no
//! longer than the user does.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::signals::{Signals, ends};

/// How long everything may take together. A store and a broker have less each.
const PATIENCE: Duration = Duration::from_secs(14);
/// How often it is looked whether the user still waits.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// What is left of it. Ctrl-C and other signals that ask to end take it all.
#[derive(Debug)]
pub(super) struct Patience {
    signals: Signals,
    until: Instant,
}

impl Patience {
    pub(super) fn new(signals: Signals) -> Self {
        Self {
            signals,
            until: Instant::now() + PATIENCE,
        }
    }

    /// Waits for a thread's last word.
    pub(super) fn wait_for<T>(&mut self, word: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        loop {
            if self.signals.take().into_iter().any(ends) {
                self.until = Instant::now();
            }
            let left = self.until.saturating_duration_since(Instant::now());
            match word.recv_timeout(left.min(LOOK_PAUSE)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                heard => return heard,
            }
        }
    }
}
