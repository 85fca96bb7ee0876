//! Parses the input into keys, so that a key press is not confused with a report of the terminal.
//!
//! Arrow keys, mouse and focus reports, answers to queries, key releases and the contents of a
//! paste are never Enter, Esc or Ctrl-C. A lone ESC byte is the key Esc only when nothing follows
//! it for [`ESCAPE_WAIT`] or when another ESC does. The beginning of a terminal's answer (`ESC ]`)
//! that goes no further is a key with Alt. Nothing stays open forever: a string or a paste whose
//! end does not come is given up, so that later keys count again. Of a sequence,
//! [`SEQUENCE_BYTES_MAX`] bytes are kept and the rest is skipped. No input fails.

use std::time::Duration;

/// How long a lone ESC byte may still become a sequence.
pub(super) const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// How long a string may pause. A terminal sends an answer in one piece, so this is generous.
const STRING_WAIT: Duration = Duration::from_secs(1);

/// How long a paste may pause. The program waits for its end as well, and slow links stall.
const PASTE_WAIT: Duration = Duration::from_secs(10);

/// How much of a sequence is kept.
const SEQUENCE_BYTES_MAX: usize = 64;

const ENTER: u32 = 13;
const KEYPAD_ENTER: u32 = 57_414;
const ESCAPE: u32 = 27;
const BACKSPACE: u32 = 127;
const CTRL: u32 = 4;
const SHIFT: u32 = 1;
/// Shift, alt, ctrl, super, hyper and meta; the lock keys above them are not modifiers.
const MODIFIERS: u32 = 0x3f;

/// A key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Enter alone.
    Enter,
    /// Ctrl-J, which line editors read as Enter.
    LineFeed,
    /// Esc alone.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// A byte of text, typed.
    Text(u8),
    /// A byte of text, pasted (a carriage return comes as a line feed).
    Pasted(u8),
    /// The character before the cursor is erased.
    Backspace,
    /// The whole line is erased (Ctrl-U).
    Kill,
    /// Another key, which may change the line in ways that only the program knows.
    Edit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    Csi,
    /// After `ESC O`.
    SingleShift,
    /// An old mouse report, with the number of bytes still to come.
    Mouse(u8),
    /// Right after the introducer of a string.
    StringStart,
    String,
    StringEscape,
    Paste,
}

/// Splits input into keys.
#[derive(Debug)]
pub(super) struct KeyParser {
    state: State,
    sequence: Vec<u8>,
    last: Duration,
}

impl KeyParser {
    pub(super) fn new() -> Self {
        Self {
            state: State::Ground,
            sequence: Vec::new(),
            last: Duration::ZERO,
        }
    }

    /// When an open ESC becomes a key, or an open sequence is given up.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let wait = match self.state {
            State::Ground => return None,
            State::String => STRING_WAIT,
            State::Paste => PASTE_WAIT,
            _ => ESCAPE_WAIT,
        };
        Some(self.last + wait)
    }

    /// Whether no sequence is open.
    pub(super) fn at_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// Lets time pass: an ESC that stood alone is a key, and so is `ESC [` or `ESC ]`, with Alt.
    pub(super) fn expire(&mut self, now: Duration) -> Option<Key> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Ground) {
            // Nothing followed the ESC in time, so it was the key.
            State::Escape => Some(Key::Escape),
            State::Csi | State::SingleShift | State::StringStart | State::String => Some(Key::Edit),
            State::Ground | State::Mouse(_) | State::StringEscape | State::Paste => None,
        }
    }

    /// Reads one byte; returns the key that it completes.
    pub(super) fn push_byte(&mut self, now: Duration, byte: u8) -> Option<Key> {
        self.last = now;
        match self.state {
            State::Ground => self.read_ground(byte),
            State::Escape => self.read_escape(byte),
            State::Csi => self.read_csi(byte),
            // `ESC O M` is the Enter of the number pad.
            State::SingleShift => {
                self.end_sequence(Some(if byte == b'M' { Key::Enter } else { Key::Edit }))
            }
            State::Mouse(left) => self.skip_mouse_byte(left),
            State::StringStart | State::String => self.read_string(byte),
            State::StringEscape => self.read_string_escape(byte),
            State::Paste => self.read_paste(byte),
        }
    }

    fn end_sequence(&mut self, key: Option<Key>) -> Option<Key> {
        self.state = State::Ground;
        key
    }

    fn read_ground(&mut self, byte: u8) -> Option<Key> {
        match byte {
            0x1b => {
                self.state = State::Escape;
                None
            }
            b'\r' => Some(Key::Enter),
            b'\n' => Some(Key::LineFeed),
            0x03 => Some(Key::Interrupt),
            0x08 | 0x7f => Some(Key::Backspace),
            0x15 => Some(Key::Kill),
            // Every other control key may edit the line in a way that only the program knows.
            0x00..=0x1f => Some(Key::Edit),
            _ => Some(Key::Text(byte)),
        }
    }

    fn read_escape(&mut self, byte: u8) -> Option<Key> {
        self.sequence.clear();
        self.state = match byte {
            b'[' => State::Csi,
            b'O' => State::SingleShift,
            b']' | b'P' | b'_' | b'^' | b'X' => State::StringStart,
            0x1b => {
                // Two in a row: the first was the key, the second may begin anything.
                return Some(Key::Escape);
            }
            _ => return self.end_sequence(Some(Key::Edit)),
        };
        None
    }

    fn read_csi(&mut self, byte: u8) -> Option<Key> {
        match byte {
            // An old mouse report carries three raw bytes that would otherwise look like text.
            b'M' if self.sequence.is_empty() => {
                self.state = State::Mouse(3);
                None
            }
            0x40..=0x7e => self.finish_csi(byte),
            0x1b => {
                self.state = State::Escape;
                None
            }
            _ => {
                // Bytes beyond the limit are skipped, not misread as keys.
                if self.sequence.len() < SEQUENCE_BYTES_MAX {
                    self.sequence.push(byte);
                }
                None
            }
        }
    }

    fn finish_csi(&mut self, last: u8) -> Option<Key> {
        self.state = State::Ground;
        match (self.sequence.as_slice(), last) {
            (b"200", b'~') => {
                self.state = State::Paste;
                self.sequence.clear();
                None
            }
            // Answers to queries, focus reports and SGR mouse reports are not keys.
            ([b'?' | b'<' | b'>' | b'=', ..], _)
            | ([], b'I' | b'O')
            | (_, b'R' | b'c' | b'n' | b't' | b'y') => None,
            // The kitty protocol (`u`) and xterm's modifyOtherKeys (`27;`) report keys as numbers.
            (sequence, b'u') => key_from_csi_u(&parse_numbers(sequence)),
            (sequence, b'~') if sequence.starts_with(b"27;") => {
                Some(key_from_csi_27(&parse_numbers(sequence)))
            }
            (sequence, _) => {
                (event_type(&parse_numbers(sequence), 1) != RELEASE).then_some(Key::Edit)
            }
        }
    }

    fn skip_mouse_byte(&mut self, left: u8) -> Option<Key> {
        self.state = if left > 1 {
            State::Mouse(left - 1)
        } else {
            State::Ground
        };
        None
    }

    fn read_string(&mut self, byte: u8) -> Option<Key> {
        self.state = match byte {
            0x07 | 0x18 | 0x1a => State::Ground,
            0x1b => State::StringEscape,
            // No answer of a terminal holds a line end, and none begins with Ctrl-C: this was a key
            // with Alt.
            b'\r' | b'\n' => return self.read_as_key(byte),
            0x03 if self.state == State::StringStart => return self.read_as_key(byte),
            _ => State::String,
        };
        None
    }

    fn read_as_key(&mut self, byte: u8) -> Option<Key> {
        self.state = State::Ground;
        self.read_ground(byte)
    }

    fn read_string_escape(&mut self, byte: u8) -> Option<Key> {
        if byte == b'\\' {
            return self.end_sequence(None);
        }
        self.read_escape(byte)
    }

    fn read_paste(&mut self, byte: u8) -> Option<Key> {
        const END: &[u8] = b"\x1b[201~";
        if END.get(self.sequence.len()) == Some(&byte) {
            self.sequence.push(byte);
            return if self.sequence == END {
                self.end_sequence(None)
            } else {
                None
            };
        }
        // The beginning of an end mark that turned out not to be one is dropped: a paste holds no
        // escape sequences.
        self.sequence.clear();
        match byte {
            0x1b => {
                self.sequence.push(byte);
                None
            }
            // Terminals send pasted line ends as CR, editors as LF; both are one line end here.
            b'\r' | b'\n' => Some(Key::Pasted(b'\n')),
            0x00..=0x1f => None,
            byte => Some(Key::Pasted(byte)),
        }
    }
}

/// The event type of a key release.
const RELEASE: u32 = 3;

/// The numbers of a sequence, each with its parts after colons.
fn parse_numbers(sequence: &[u8]) -> Vec<Vec<u32>> {
    let mut numbers = Vec::new();
    for parts in sequence.split(|byte| *byte == b';') {
        let parts = parts.split(|byte| *byte == b':');
        numbers.push(parts.map(parse_digits).collect());
    }
    numbers
}

fn parse_digits(digits: &[u8]) -> u32 {
    let mut number = 0_u32;
    for digit in digits {
        let value = u32::from(digit.saturating_sub(b'0'));
        number = number.saturating_mul(10).saturating_add(value);
    }
    number
}

fn number_at(numbers: &[Vec<u32>], at: usize, part: usize) -> u32 {
    numbers
        .get(at)
        .and_then(|parts| parts.get(part))
        .copied()
        .unwrap_or(0)
}

fn event_type(numbers: &[Vec<u32>], at: usize) -> u32 {
    number_at(numbers, at, 1)
}

/// Reads `CSI code ; modifiers : event u`.
fn key_from_csi_u(numbers: &[Vec<u32>]) -> Option<Key> {
    if event_type(numbers, 1) == RELEASE {
        return None;
    }
    Some(key_from_code(
        number_at(numbers, 0, 0),
        number_at(numbers, 1, 0),
    ))
}

/// Reads `CSI 27 ; modifiers ; code ~`.
fn key_from_csi_27(numbers: &[Vec<u32>]) -> Key {
    key_from_code(number_at(numbers, 2, 0), number_at(numbers, 1, 0))
}

fn key_from_code(code: u32, modifiers: u32) -> Key {
    match (code, modifiers.saturating_sub(1) & MODIFIERS) {
        (ENTER | KEYPAD_ENTER, 0) => Key::Enter,
        (ESCAPE, 0) => Key::Escape,
        (BACKSPACE, 0) => Key::Backspace,
        (99 | 67, CTRL) => Key::Interrupt,
        (106, CTRL) => Key::LineFeed,
        (117, CTRL) => Key::Kill,
        // Alt, Ctrl or Super with a letter is a command, not text.
        (0x20..=0x7e, 0 | SHIFT) => u8::try_from(code).map_or(Key::Edit, Key::Text),
        _ => Key::Edit,
    }
}
