//! The program's output during a turn, kept beside its text where the caller asked for it.
//!
//! It holds at most `bytes_max` bytes and marks itself truncated when there were more.

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

    /// Adds output up to the limit.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let free = self.bytes_max.saturating_sub(self.bytes.len());
        self.truncated |= bytes.len() > free;
        self.bytes
            .extend_from_slice(bytes.get(..free).unwrap_or(bytes));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    /// Returns the kept output and starts again empty.
    pub(super) fn take_kept(&mut self) -> Self {
        let empty = Self::new(self.bytes_max);
        std::mem::replace(self, empty)
    }
}
