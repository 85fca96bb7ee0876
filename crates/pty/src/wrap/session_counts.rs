//! The counts of a session: how many turns were found, and how often Enter was pressed without one.
//!
//! The observer counts on its own thread; the caller that started the session reads the result at
//! its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The counts of one session.
#[derive(Debug, Clone, Default)]
pub struct SessionCounts {
    turns: Arc<AtomicU32>,
    unanswered: Arc<AtomicU32>,
}

impl SessionCounts {
    /// How many turns were found.
    pub fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// How often Enter was pressed since the last turn.
    pub fn unanswered(&self) -> u32 {
        self.unanswered.load(Ordering::Relaxed)
    }

    pub(super) fn count_turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_unanswered(&self, count: u32) {
        self.unanswered.store(count, Ordering::Relaxed);
    }
}
