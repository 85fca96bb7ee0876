//! Counts how often Enter was pressed since the last turn, whether or not a turn came of it.
//!
//! Nothing else shows a wrong or missing profile: the program answers, and no turn is found. Enter
//! inside a paste does not count.

use super::keys::{Key, KeyParser};
use std::time::Duration;

/// Counts presses of Enter.
#[derive(Debug)]
pub(super) struct EnterCounter {
    keys: KeyParser,
    count: u32,
}

impl EnterCounter {
    pub(super) fn new() -> Self {
        Self {
            keys: KeyParser::new(),
            count: 0,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Counts the Enters in this input.
    pub(super) fn count_in(&mut self, now: Duration, input: &[u8]) {
        // A lone ESC that has timed out is a key of its own, so it must not swallow the next byte.
        self.keys.expire(now);
        let keys = input
            .iter()
            .filter_map(|byte| self.keys.push_byte(now, *byte));
        let entered = keys
            .filter(|key| matches!(key, Key::Enter | Key::LineFeed))
            .count();
        self.count = self
            .count
            .saturating_add(u32::try_from(entered).unwrap_or(u32::MAX));
    }

    /// Starts again from zero, because a turn was found.
    pub(super) fn reset(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_is_counted_outside_of_pastes_until_a_turn_comes() {
        let mut enters = EnterCounter::new();
        enters.count_in(Duration::ZERO, b"hello\r\x1b[200~a\rb\x1b[201~\r");
        assert_eq!(enters.count(), 2);
        enters.reset();
        assert_eq!(enters.count(), 0);
    }
}
