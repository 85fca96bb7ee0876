//! The broker's limits. [`Settings::check`] rejects impossible ones before the broker starts.

use std::time::Duration;

use turnkeep_types::broker::{FRAME_BYTES_MAX, TURN_BYTES_CEILING};

/// How much the broker keeps, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The number of turns of one session.
    pub ring_turns_max: usize,
    /// The size of a turn's content, and of its text and its raw bytes each.
    pub turn_bytes_max: usize,
    /// The size of all turns together.
    pub memory_bytes_max: usize,
    /// How long the turns of a session that is gone are kept.
    pub linger: Duration,
    /// The number of sessions, those that are gone included.
    pub sessions_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ring_turns_max: 32,
            turn_bytes_max: 4 << 20,
            memory_bytes_max: 512 << 20,
            linger: Duration::from_mins(10),
            sessions_max: 4096,
        }
    }
}

/// The longest list of turns that still fits in one message.
const RING_TURNS_CEILING: usize = 10_000;

/// An impossible limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// A ring of no turns, or of more than a list can hold.
    #[error("a ring holds 1 to {RING_TURNS_CEILING} turns, not {0}")]
    Ring(usize),
    /// Turns of no bytes, or larger than a message with its text can hold.
    #[error("a turn holds 1 to {TURN_BYTES_CEILING} bytes, not {0}")]
    TurnBytes(usize),
    /// Less memory than one message takes.
    #[error("memory for turns is at least {FRAME_BYTES_MAX} bytes, not {0}")]
    Memory(usize),
}

impl Settings {
    /// Rejects impossible limits.
    pub fn check(&self) -> Result<(), BadSettings> {
        if !(1..=RING_TURNS_CEILING).contains(&self.ring_turns_max) {
            return Err(BadSettings::Ring(self.ring_turns_max));
        }
        if !(1..=TURN_BYTES_CEILING).contains(&self.turn_bytes_max) {
            return Err(BadSettings::TurnBytes(self.turn_bytes_max));
        }
        if self.memory_bytes_max < FRAME_BYTES_MAX {
            return Err(BadSettings::Memory(self.memory_bytes_max));
        }
        Ok(())
    }
}
