//! Finds two facts in the child's output that the byte path itself needs: whether bracketed paste
//! is on, and whether the child queries the status protocol.
//!
//! Sequences may be cut anywhere. Longer ones are skipped, so memory is fixed. Any bytes are valid.

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// How much of a sequence is kept.
const SEQUENCE_BYTES_MAX: usize = 64;
const STATUS_QUERY: &[u8] = b"7501;?";
/// The answer to a query of the status protocol: the query itself.
pub(super) const STATUS_ANSWER: &[u8] = b"\x1b]7501;?\x1b\\";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Ground,
    Escape,
    Csi,
    Osc,
    OscEscape,
}

/// Scans the child's output.
#[derive(Debug, Default)]
pub(super) struct OutputScanner {
    state: State,
    sequence: Vec<u8>,
    bracketed: bool,
    queries: usize,
}

impl OutputScanner {
    /// Scans bytes that the child wrote.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.state == State::Ground {
                // Plain text is skipped quickly: this runs on every byte of output.
                let Some(at) = bytes.iter().position(|byte| *byte == ESC) else {
                    return;
                };
                bytes = bytes.get(at..).unwrap_or_default();
            }
            let Some((byte, rest)) = bytes.split_first() else {
                return;
            };
            self.state = self.next_state(*byte);
            bytes = rest;
        }
    }

    /// Whether the child has bracketed paste on.
    pub(super) fn is_bracketed(&self) -> bool {
        self.bracketed
    }

    /// How many times the child asked for the status protocol since the last call.
    pub(super) fn take_queries(&mut self) -> usize {
        std::mem::take(&mut self.queries)
    }

    fn next_state(&mut self, byte: u8) -> State {
        match (self.state, byte) {
            (State::Osc, ESC) => State::OscEscape,
            (State::Osc, BEL) | (State::OscEscape, b'\\') => self.end_osc(),
            // As in a terminal, ESC begins a new sequence anywhere: a broken one swallows no other.
            (_, ESC) => State::Escape,
            (State::Ground, _) => State::Ground,
            (State::Escape | State::OscEscape, _) => self.after_escape(byte),
            (State::Csi, 0x40..=0x7e) => self.end_csi(byte),
            (state @ (State::Csi | State::Osc), _) => self.collect_byte(state, byte),
        }
    }

    fn after_escape(&mut self, byte: u8) -> State {
        self.sequence.clear();
        match byte {
            b'[' => State::Csi,
            b']' => State::Osc,
            // A terminal reset switches bracketed paste off.
            b'c' => {
                self.bracketed = false;
                State::Ground
            }
            _ => State::Ground,
        }
    }

    fn collect_byte(&mut self, state: State, byte: u8) -> State {
        if self.sequence.len() < SEQUENCE_BYTES_MAX {
            self.sequence.push(byte);
        }
        state
    }

    fn end_csi(&mut self, last: u8) -> State {
        let modes = self
            .sequence
            .strip_prefix(b"?")
            .filter(|_| matches!(last, b'h' | b'l'));
        if modes.is_some_and(|modes| {
            modes
                .split(|byte| *byte == b';')
                .any(|mode| mode == b"2004")
        }) {
            self.bracketed = last == b'h';
        }
        State::Ground
    }

    fn end_osc(&mut self) -> State {
        self.queries += usize::from(self.sequence == STATUS_QUERY);
        State::Ground
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], bracketed: bool, queries: usize) {
        for cut in 0..=bytes.len() {
            let mut scanner = OutputScanner::default();
            scanner.feed(&bytes[..cut]);
            scanner.feed(&bytes[cut..]);
            let found = (scanner.is_bracketed(), scanner.take_queries());
            assert_eq!(
                found,
                (bracketed, queries),
                "{} cut at {cut}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn both_facts_are_seen_wherever_the_bytes_are_cut() {
        check(b"plain", false, 0);
        check(b"\x1b[?2004h$ ", true, 0);
        check(b"\x1b[?25;2004h", true, 0);
        check(b"\x1b[?2004h\x1b[?2004l", false, 0);
        check(b"\x1b[?2004h\x1bc", false, 0);
        check(b"\x1b[2004h\x1b[?12004h", false, 0);
        check(b"\x1b]7501;?\x1b\\", false, 1);
        check(b"\x1b]7501;?\x07\x1b]7501;?\x07", false, 2);
        check(b"\x1b]7501;state=idle\x1b\\", false, 0);
        check(b"\x1b]0;title\x1b[?2004h", true, 0);
    }

    #[test]
    fn a_string_without_end_takes_no_memory() {
        let mut scanner = OutputScanner::default();
        scanner.feed(b"\x1b]");
        scanner.feed(&vec![b'x'; 1 << 20]);
        assert!(scanner.sequence.len() <= SEQUENCE_BYTES_MAX);
        scanner.feed(b"\x1b\\\x1b[?2004h");
        assert!(scanner.is_bracketed());
    }
}
