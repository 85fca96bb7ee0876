//! Recognises the keys by which a watcher leaves: q and Ctrl-C.
//!
//! The keyboard's bytes also contain the terminal's answers to the watched program's queries, mouse
//! reports and pastes. Their letters are not keys. So the bytes are parsed as control sequences,
//! which may be cut anywhere.

/// The parser's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ParserState {
    #[default]
    Ground,
    /// Behind an escape.
    Escape,
    /// Inside a control sequence.
    Control,
    /// Inside a string, which a bell or an escape and a backslash end.
    String,
    /// Behind an escape in a string.
    StringEscape,
}

const CTRL_C: u8 = 0x03;
const BELL: u8 = 0x07;
const ESCAPE: u8 = 0x1b;
/// The longest control sequence that is read; no key has a longer one.
const SEQUENCE_BYTES_MAX: usize = 64;

/// Reads what is typed.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    state: ParserState,
    /// The control sequence so far, without its beginning.
    sequence: Vec<u8>,
    /// Between the marks of a bracketed paste.
    pasting: bool,
}

impl KeyReader {
    /// Reads typed bytes, and says whether q or Ctrl-C was pressed.
    pub(super) fn want_to_leave(&mut self, typed: &[u8]) -> bool {
        let mut leaves = false;
        for byte in typed {
            leaves |= self.read_byte(*byte);
        }
        leaves
    }

    fn read_byte(&mut self, byte: u8) -> bool {
        // Inside a string an escape may begin its end. Everywhere else it begins a new sequence,
        // also where the one before it is not complete.
        if byte == ESCAPE && self.state != ParserState::String {
            self.state = ParserState::Escape;
            return false;
        }
        match self.state {
            ParserState::Ground => return matches!(byte, CTRL_C | b'q' | b'Q') && !self.pasting,
            ParserState::Escape => self.start_sequence(byte),
            ParserState::Control => return self.continue_sequence(byte),
            ParserState::String => self.state = state_in_string(byte),
            ParserState::StringEscape if byte == b'\\' => self.state = ParserState::Ground,
            ParserState::StringEscape => self.state = ParserState::String,
        }
        false
    }

    /// Reads the byte after an escape.
    fn start_sequence(&mut self, byte: u8) {
        self.sequence.clear();
        self.state = match byte {
            b'[' => ParserState::Control,
            // The strings that terminals answer with: OSC, DCS, APC, PM and SOS.
            b']' | b'P' | b'_' | b'^' | b'X' => ParserState::String,
            // A key with Alt.
            _ => ParserState::Ground,
        };
    }

    fn continue_sequence(&mut self, byte: u8) -> bool {
        let is_last = matches!(byte, 0x40..=0x7e);
        if is_last {
            self.state = ParserState::Ground;
            return self.finish_sequence(byte);
        }
        if self.sequence.len() < SEQUENCE_BYTES_MAX {
            self.sequence.push(byte);
        } else {
            self.state = ParserState::Ground;
        }
        false
    }

    /// Handles a complete control sequence: the start or end of a paste, or a key in one of its long
    /// forms. Returns whether the key leaves.
    fn finish_sequence(&mut self, last: u8) -> bool {
        let sequence = String::from_utf8_lossy(&self.sequence).into_owned();
        let parts: Vec<&str> = sequence.split(';').collect();
        match (last, &parts[..]) {
            (b'~', ["200"]) => self.pasting = true,
            (b'~', ["201"]) => self.pasting = false,
            // kitty: `code;modifiers:event u`.
            (b'u', [code]) => return is_leave_key(code, "1"),
            // xterm: `27;modifiers;code ~`.
            (b'u', [code, modifiers, ..]) | (b'~', ["27", modifiers, code]) => {
                return is_leave_key(code, modifiers);
            }
            _ => {}
        }
        false
    }
}

fn state_in_string(byte: u8) -> ParserState {
    match byte {
        ESCAPE => ParserState::StringEscape,
        BELL => ParserState::Ground,
        _ => ParserState::String,
    }
}

/// Whether a key is q or Ctrl-C. The number of the modifiers is 1 plus a bit for each key that is
/// held, so `99;5` is c (99) with Ctrl (4). Alternatives of the code follow it after a colon, as the
/// kind of the event follows the modifiers.
fn is_leave_key(code: &str, modifiers: &str) -> bool {
    const CTRL: u32 = 4;
    // A q with Shift or with a lock such as Num Lock is a q.
    const SHIFT_AND_LOCKS: u32 = 1 | 64 | 128;
    const RELEASE: &str = "3";
    let mut modifiers = modifiers.split(':');
    let held = modifiers.next().and_then(|held| held.parse::<u32>().ok());
    // A key that was pressed before the watch began is released during it.
    if modifiers.next() == Some(RELEASE) {
        return false;
    }
    let held = held.unwrap_or(1).saturating_sub(1) & !SHIFT_AND_LOCKS;
    match code.split(':').next() {
        Some("99") => held == CTRL,
        Some("113" | "81") => held == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_ctrl_c_leave_in_every_form_and_nothing_else_does() {
        for (typed, expect) in [
            (&b"\x03"[..], true),
            (b"abc\x03", true),
            (b"q", true),
            (b"Q", true),
            (b"\x1b[Iq", true),
            (b"\x1b[99;5u", true),
            (b"\x1b[99;5:1u", true),
            (b"\x1b[113u", true),
            (b"\x1b[113;1:1u", true),
            (b"\x1b[27;5;99~", true),
            (b"c", false),
            (b"\x1bq", false),
            (b"\x1b[99;1u", false),
            (b"\x1b[113;1:3u", false),
            (b"\x1b[113;3u", false),
            (b"\x1b[?1;2q", false),
            (b"\x1b[I\x1b[<0;3;5M\r", false),
            (b"\x1bP>|terminal (q)\x1b\\", false),
            (b"\x1b]11;rgb:q/\x07", false),
            (b"\x1b[200~quit\x1b[201~", false),
            (b"\x1b[200~quit\x1b[201~q", true),
        ] {
            assert_eq!(
                KeyReader::default().want_to_leave(typed),
                expect,
                "{}",
                typed.escape_ascii()
            );
            let mut bytewise = KeyReader::default();
            let leaves = typed.iter().any(|byte| bytewise.want_to_leave(&[*byte]));
            assert_eq!(leaves, expect, "cut everywhere: {}", typed.escape_ascii());
        }
    }
}
