//! The broker's bounds.

use std::time::Duration;

use turnkeep_types::broker::{FRAME_BYTES_MAX, TURN_BYTES_CEILING};

/// How much the broker keeps, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Turns of one session.
    pub ring_turns_max: usize,
    /// A turn's content, and as much again for its text and for its raw bytes.
    pub turn_bytes_max: usize,
    /// All turns together.
    pub memory_bytes_max: usize,
    /// How long the turns of a session that has gone are kept.
    pub linger: Duration,
    /// Sessions, those that have gone included.
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

/// The longest list of turns that still fits in one message with room to spare.
const RING_TURNS_CEILING: usize = 10_000;

/// A bound that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// A ring of no turns, or of more than can be listed.
    #[error("a ring holds 1 to {RING_TURNS_CEILING} turns, not {0}")]
    Ring(usize),
    /// Turns of no bytes, or larger than fits in a message with its text.
    #[error("a turn holds 1 to {TURN_BYTES_CEILING} bytes, not {0}")]
    TurnBytes(usize),
    /// Less memory than one message takes.
    #[error("memory for turns is at least {FRAME_BYTES_MAX} bytes, not {0}")]
    Memory(usize),
}

impl Settings {
    /// Refuses what cannot be.
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
