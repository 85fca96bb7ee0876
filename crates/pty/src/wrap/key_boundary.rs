//! Knows whether the user's input is between two keys, so that nothing is inserted into the middle
//! of one.
//!
//! It follows escape sequences, UTF-8 characters and bracketed pastes in the bytes of the user's
//! terminal. Bytes that may be a key by themselves (a lone Esc, Alt-]) count as complete after
//! [`SEQUENCE_PAUSE`], a sequence or a character that can only be half of one after [`HALF_PAUSE`].
//! Only its end mark ends a paste. Any bytes are valid.

use std::time::{Duration, Instant};

/// A terminal sends an escape sequence in one piece: after this pause it is complete.
pub(super) const SEQUENCE_PAUSE: Duration = Duration::from_millis(50);

/// How long the rest of a sequence may take over a slow link before it is given up.
const HALF_PAUSE: Duration = Duration::from_secs(2);

const ESC: u8 = 0x1b;
/// The parameter of the sequence that begins a bracketed paste.
const PASTE_PARAMETER: &[u8] = b"200";
/// The bytes that begin a bracketed paste.
pub(super) const PASTE_START: &[u8] = b"\x1b[200~";
/// The bytes that end a bracketed paste.
pub(super) const PASTE_END: &[u8] = b"\x1b[201~";
/// How many parameter bytes of a sequence are remembered: enough to recognise the start of a paste.
const PARAMETERS_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    /// After Esc and this byte, which begin a sequence or are Alt and a key.
    Begun(u8),
    Csi,
    /// In a mouse report of the oldest kind, with the number of bytes still to come.
    Mouse(u8),
    /// OSC, DCS, APC: an answer of the terminal.
    Text,
    TextEscape,
    /// In a character, with the number of bytes still to come.
    Character(u8),
    /// In a paste, with the number of bytes of its end mark seen so far.
    Paste(usize),
}

/// The position in the user's input.
#[derive(Debug)]
pub(super) struct KeyBoundary {
    state: State,
    parameters: Vec<u8>,
    last: Option<Instant>,
}

impl KeyBoundary {
    pub(super) fn new() -> Self {
        Self {
            state: State::Ground,
            parameters: Vec::with_capacity(PARAMETERS_MAX),
            last: None,
        }
    }

    /// Follows bytes that the user's terminal sent.
    pub(super) fn feed(&mut self, now: Instant, bytes: &[u8]) {
        if self.has_broken_off(now) {
            self.state = State::Ground;
        }
        self.last = Some(now);
        for byte in bytes {
            self.state = self.next_state(*byte);
        }
    }

    /// Whether other bytes may be inserted here.
    pub(super) fn is_between_keys(&self, now: Instant) -> bool {
        self.state == State::Ground || self.has_broken_off(now)
    }

    fn has_broken_off(&self, now: Instant) -> bool {
        let pause = match self.state {
            // A paste may pause for long, and text inserted into it would be pasted too.
            State::Paste(_) => return false,
            // These may be a key by themselves, so a short pause ends them.
            State::Ground | State::Escape | State::Begun(_) => SEQUENCE_PAUSE,
            _ => HALF_PAUSE,
        };
        self.last
            .is_none_or(|last| now.duration_since(last) >= pause)
    }

    fn next_state(&mut self, byte: u8) -> State {
        match self.state {
            State::Ground => from_ground(byte),
            State::Begun(first) => self.after_begin(first, byte),
            State::Csi => self.in_csi(byte),
            State::Mouse(left) | State::Character(left) if left <= 1 => State::Ground,
            State::Mouse(left) => State::Mouse(left - 1),
            State::Character(left) => State::Character(left - 1),
            State::Text => in_text(byte),
            State::TextEscape if byte == b'\\' => State::Ground,
            State::Escape | State::TextEscape => after_escape(byte),
            State::Paste(seen) => in_paste(seen, byte),
        }
    }

    fn after_begin(&mut self, first: u8, byte: u8) -> State {
        match first {
            b'[' => {
                self.parameters.clear();
                self.in_csi(byte)
            }
            // `ESC O` takes exactly one more byte.
            b'O' => State::Ground,
            _ => in_text(byte),
        }
    }

    fn in_csi(&mut self, byte: u8) -> State {
        match byte {
            b'~' if self.parameters == PASTE_PARAMETER => State::Paste(0),
            b'M' if self.parameters.is_empty() => State::Mouse(3),
            0x40..=0x7e => State::Ground,
            ESC => State::Escape,
            _ => {
                if self.parameters.len() < PARAMETERS_MAX {
                    self.parameters.push(byte);
                }
                State::Csi
            }
        }
    }
}

fn after_escape(byte: u8) -> State {
    match byte {
        b'[' | b'O' | b']' | b'P' | b'_' | b'^' | b'X' => State::Begun(byte),
        // Alt with a key is Esc and that key.
        _ => from_ground(byte),
    }
}

fn from_ground(byte: u8) -> State {
    match byte {
        ESC => State::Escape,
        0xc2..=0xdf => State::Character(1),
        0xe0..=0xef => State::Character(2),
        0xf0..=0xf4 => State::Character(3),
        _ => State::Ground,
    }
}

fn in_text(byte: u8) -> State {
    match byte {
        0x07 => State::Ground,
        ESC => State::TextEscape,
        _ => State::Text,
    }
}

fn in_paste(seen: usize, byte: u8) -> State {
    match PASTE_END.get(seen) {
        Some(expected) if *expected == byte && seen + 1 == PASTE_END.len() => State::Ground,
        Some(expected) if *expected == byte => State::Paste(seen + 1),
        // A broken end mark may be followed directly by a real one.
        _ => State::Paste(usize::from(byte == ESC)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between_after(bytes: &[u8], pause: Duration) -> bool {
        let now = Instant::now();
        let mut typed = KeyBoundary::new();
        for byte in bytes {
            typed.feed(now, &[*byte]);
        }
        typed.is_between_keys(now + pause)
    }

    #[test]
    fn only_complete_keys_leave_a_gap() {
        let check = |bytes: &[u8], expect: bool| {
            assert_eq!(
                between_after(bytes, Duration::ZERO),
                expect,
                "{}",
                bytes.escape_ascii()
            );
        };
        check(b"", true);
        check(b"a", true);
        check(b"\x1b", false);
        check(b"\x1b[", false);
        check(b"\x1b[1;5", false);
        check(b"\x1b[1;5A", true);
        check(b"\x1bO", false);
        check(b"\x1bOA", true);
        check(b"\x1bx", true);
        check("\x1b\u{e9}".as_bytes(), true);
        check(b"\xc3", false);
        check(b"\xe2\x82", false);
        check("\u{20ac}".as_bytes(), true);
        check(b"\x1b[M !", false);
        check(b"\x1b[M !!", true);
        check(b"\x1b[<35;1;2", false);
        check(b"\x1b[<35;1;2M", true);
        check(b"\x1b]11;rgb:00/00/00", false);
        check(b"\x1b]11;rgb:00/00/00\x1b\\", true);
        check(b"\x1b]11;rgb:00/00/00\x07", true);
        check(b"\x1b[200~", false);
        check(b"\x1b[200~text\r\x1b[A", false);
        check(b"\x1b[200~text\x1b[20\x1b[201~", true);
        check(b"\x1b[2000~", true);
    }

    #[test]
    fn a_sequence_that_breaks_off_is_over_after_a_pause_but_a_paste_is_not() {
        let check = |bytes: &[u8], expect: bool| {
            assert_eq!(
                between_after(bytes, SEQUENCE_PAUSE),
                expect,
                "{}",
                bytes.escape_ascii()
            );
        };
        check(b"\x1b", true);
        check(b"\x1b]", true);
        check(b"\x1bO", true);
        check(b"\x1b[1;5", false);
        check(b"\x1b]11;rgb", false);
        check(b"\xe2", false);
        check(b"\x1b[200~half", false);
        for half in [&b"\x1b[1;5"[..], b"\x1b]11;rgb", b"\xe2"] {
            assert!(
                between_after(half, HALF_PAUSE),
                "{} is never given up",
                half.escape_ascii()
            );
        }
    }
}
