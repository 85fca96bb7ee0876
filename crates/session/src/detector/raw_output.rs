//! The program's output of a turn, kept beside its text where that is asked for.
//!
//! It holds at most `bytes_max` bytes and says when there were more.

/// The program's output of a turn.
#[derive(Debug)]
pub(super) struct RawOutput {
    pub(super) bytes: Vec<u8>,
    bytes_max: usize,
    pub(super) truncated: bool,
}

impl RawOutput {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max,
            truncated: false,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes output, as far as there is room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes_max.saturating_sub(self.bytes.len());
        self.truncated |= bytes.len() > room;
        self.bytes
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Forgets what was kept.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    /// Hands out what was kept, and begins anew.
    pub(super) fn take_kept(&mut self) -> Self {
        let empty = Self::new(self.bytes_max);
        std::mem::replace(self, empty)
    }
}
