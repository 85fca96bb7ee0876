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
        match (self.state, byte) {
            (ParserState::String, 0x1b) => self.state = ParserState::StringEscape,
            (ParserState::String, 0x07) | (ParserState::StringEscape, b'\\') => {
                self.state = ParserState::Ground;
            }
            (ParserState::String, _) => {}
            (_, 0x1b) => self.state = ParserState::Escape,
            (ParserState::StringEscape, _)
            | (ParserState::Escape, b']' | b'P' | b'_' | b'^' | b'X') => {
                self.state = ParserState::String;
            }
            (ParserState::Escape, b'[') => {
                self.sequence.clear();
                self.state = ParserState::Control;
            }
            (ParserState::Control, 0x40..=0x7e) => {
                self.state = ParserState::Ground;
                return self.finish_sequence(byte);
            }
            (ParserState::Control, _) if self.sequence.len() < SEQUENCE_BYTES_MAX => {
                self.sequence.push(byte);
            }
            // A sequence that is too long, or a key with Alt.
            (ParserState::Control | ParserState::Escape, _) => self.state = ParserState::Ground,
            (ParserState::Ground, 0x03 | b'q' | b'Q') => return !self.pasting,
            (ParserState::Ground, _) => {}
        }
        false
    }

    /// Handles a complete control sequence: the start or end of a paste, or a key in one of its long
    /// forms. Returns whether the key leaves.
    fn finish_sequence(&mut self, last: u8) -> bool {
        let sequence = String::from_utf8_lossy(&self.sequence).into_owned();
        match (sequence.as_str(), last) {
            ("200", b'~') => self.pasting = true,
            ("201", b'~') => self.pasting = false,
            // kitty: `code;modifiers:event u`; the third event is the key's release.
            (_, b'u') => return is_leave_key(&sequence.split(';').collect::<Vec<_>>()),
            // xterm: `27;modifiers;code ~`.
            (_, b'~') => {
                if let ["27", modifiers, code] = sequence.split(';').collect::<Vec<_>>()[..] {
                    return is_leave_key(&[code, modifiers]);
                }
            }
            _ => {}
        }
        false
    }
}

/// Whether a key's code and modifiers are those of q or Ctrl-C.
fn is_leave_key(parts: &[&str]) -> bool {
    const CTRL: u32 = 4;
    const SHIFT_AND_LOCKS: u32 = 1 | 64 | 128;
    let code = parts.first().and_then(|part| part.split(':').next());
    let mut modifiers = parts.get(1).copied().unwrap_or("1").split(':');
    let held = modifiers
        .next()
        .and_then(|held| held.parse::<u32>().ok())
        .unwrap_or(1)
        .saturating_sub(1);
    let is_release = modifiers.next() == Some("3");
    let held = held & !SHIFT_AND_LOCKS;
    let is_wanted = match code {
        Some("99") => held == CTRL,
        Some("113" | "81") => held == 0,
        _ => false,
    };
    is_wanted && !is_release
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
