//! Filters the bytes on their way to the emulator: a small tokenizer that limits, repairs and
//! reports.
//!
//! Everything that it does not name passes unchanged, and cutting the bytes differently changes
//! nothing. It cannot fail: invalid sequences are text.
//!
//! - Strings (OSC, DCS, APC, PM, SOS) are cut at [`STRING_BYTES_MAX`], because the emulator's
//!   parser would grow with them.
//! - Emoji joined by U+200D, and skin tones, become marks without width, because programs count
//!   such a cluster as one glyph of two cells and the emulator would count each part. So does
//!   U+FE0F, whose width programs disagree on.
//! - Characters of two cells are reported. A terminal that breaks a line before one leaves the last
//!   cell empty, and the emulator then forgets that it broke the line.
//! - Sequences that change how frames are compared (mode 2026, `CSI 3 J`, reset, all rows erased)
//!   are reported where they occur.

/// How much of an OSC, DCS, APC, PM or SOS string reaches the emulator.
pub const STRING_BYTES_MAX: usize = 64 * 1024;

/// How much of a control sequence is examined; longer ones pass, but are never reported.
const SEQUENCE_BYTES_MAX: usize = 64;

/// The first of 240 marks without width that stand for a joined character.
const MARK_FIRST: u32 = 0xE0100;
const MARK_LAST: u32 = 0xE01EF;
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Selects the emoji form of the character before it.
pub(super) const EMOJI_FORM: char = '\u{fe0f}';

/// A sequence that the emulator's owner must handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceNotice {
    /// A synchronized update begins.
    SyncBegin,
    /// A synchronized update ends: the screen is a whole frame.
    SyncEnd,
    /// The scrollback is erased: a repaint from the first row follows.
    Restart,
    /// A character of two cells comes next; it is not among the filtered bytes.
    Wide(char),
    /// The program may have switched screens.
    Screens,
    /// Every row is erased.
    Erased,
    /// This many rows are erased, one by one from the first, with nothing printed in between.
    RowsErased(u16),
    /// The cursor moves up this many rows; the last filtered byte moves it.
    Up(u16),
}

/// The result of [`SequenceFilter::filter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filtered {
    /// How many bytes were read.
    pub(super) used: usize,
    pub(super) notice: Option<SequenceNotice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    Control,
    String(StringState),
}

/// A string (OSC, DCS, APC, PM or SOS) that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StringState {
    bytes: usize,
    /// Whether the byte before was ESC.
    escaped: bool,
    bell_ends: bool,
}

impl StringState {
    fn new(bell_ends: bool) -> Self {
        Self {
            bytes: 0,
            escaped: false,
            bell_ends,
        }
    }
}

/// Whether a character surely takes two cells: the scripts without blanks between words, whose
/// lines the terminal breaks anywhere.
fn is_wide(code: u32) -> bool {
    matches!(code,
        0x3041..=0x3096 | 0x30a1..=0x30fa | 0x3001..=0x3011 | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xac00..=0xd7a3 | 0xf900..=0xfa6d | 0xff01..=0xff60 | 0x20000..=0x2fffd)
}

fn mode_notice(modes: &[u8], set: bool) -> Option<SequenceNotice> {
    let has = |mode: &[u8]| modes.split(|byte| *byte == b';').any(|other| other == mode);
    if has(b"2026") {
        Some(if set {
            SequenceNotice::SyncBegin
        } else {
            SequenceNotice::SyncEnd
        })
    } else {
        (has(b"1049") || has(b"47")).then_some(SequenceNotice::Screens)
    }
}

fn parse_count(digits: &[u8]) -> u16 {
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok());
    number.unwrap_or(1)
}

/// The filter. [`SequenceFilter::filter`] returns at the next notice.
#[derive(Debug)]
pub(super) struct SequenceFilter {
    state: State,
    sequence: Vec<u8>,
    partial: Vec<u8>,
    joins: bool,
    /// How many rows were erased since the cursor went to the first cell; `None` once something was
    /// printed.
    erased: Option<u16>,
    marks: Vec<char>,
}

impl SequenceFilter {
    pub(super) fn new() -> Self {
        Self {
            state: State::Ground,
            sequence: Vec::new(),
            partial: Vec::new(),
            joins: false,
            erased: None,
            marks: Vec::new(),
        }
    }

    /// Filters bytes into `out` until they end or there is a notice.
    pub(super) fn filter(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Filtered {
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(notice) = self.read_byte(*byte, out) {
                return Filtered {
                    used: at + 1,
                    notice: Some(notice),
                };
            }
        }
        Filtered {
            used: bytes.len(),
            notice: None,
        }
    }

    /// The character that a mark stands for; other characters stand for themselves.
    pub(super) fn restore_char(&self, c: char) -> char {
        match u32::from(c) {
            code @ MARK_FIRST..=MARK_LAST => self
                .marks
                .get((code - MARK_FIRST) as usize)
                .copied()
                .unwrap_or(c),
            _ => c,
        }
    }

    fn read_byte(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        match self.state {
            State::Ground => self.read_ground(byte, out),
            State::Escape => self.read_escape(byte, out),
            State::Control => self.read_control(byte, out),
            State::String(string) => self.read_string(byte, string, out),
        }
    }

    fn read_ground(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        if byte >= 0x80 {
            return self.read_utf8(byte, out);
        }
        self.flush_partial(out);
        self.joins = false;
        if byte == 0x1b {
            self.state = State::Escape;
        } else if byte >= b' ' {
            self.erased = None;
        }
        out.push(byte);
        None
    }

    fn read_escape(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        out.push(byte);
        self.sequence.clear();
        self.state = match byte {
            b'[' => State::Control,
            b']' => State::String(StringState::new(true)),
            b'P' | b'X' | b'^' | b'_' => State::String(StringState::new(false)),
            0x1b => State::Escape,
            _ => State::Ground,
        };
        (byte == b'c').then_some(SequenceNotice::Restart)
    }

    fn read_control(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        out.push(byte);
        match byte {
            0x40..=0x7e => {
                self.state = State::Ground;
                return self.notice_for_sequence(byte);
            }
            0x1b => self.state = State::Escape,
            0x18 | 0x1a => self.state = State::Ground,
            _ if self.sequence.len() < SEQUENCE_BYTES_MAX => self.sequence.push(byte),
            _ => {}
        }
        None
    }

    fn notice_for_sequence(&mut self, last: u8) -> Option<SequenceNotice> {
        match (self.sequence.as_slice(), last) {
            (b"3", b'J') => Some(SequenceNotice::Restart),
            (b"2", b'J') => Some(SequenceNotice::Erased),
            // Erasing from the first cell to the end erases everything.
            (b"" | b"0", b'J') if self.erased == Some(0) => Some(SequenceNotice::Erased),
            (b"" | b"1" | b"1;1", b'H') => {
                self.erased = Some(0);
                None
            }
            (b"2", b'K') => {
                self.erased = self.erased.map(|rows| rows.saturating_add(1));
                self.erased.map(SequenceNotice::RowsErased)
            }
            (count, b'A') => Some(SequenceNotice::Up(parse_count(count))),
            ([b'?', modes @ ..], b'h' | b'l') => mode_notice(modes, last == b'h'),
            _ => None,
        }
    }

    fn read_string(
        &mut self,
        byte: u8,
        string: StringState,
        out: &mut Vec<u8>,
    ) -> Option<SequenceNotice> {
        let ends = matches!(byte, 0x18 | 0x1a) || (byte == 0x07 && string.bell_ends);
        // ESC ends a string whatever follows it: the rest is a sequence of its own.
        if string.escaped && byte != b'\\' {
            out.push(0x1b);
            self.state = State::Escape;
            return self.read_escape(byte, out);
        }
        if ends || string.escaped {
            out.extend_from_slice(if string.escaped {
                b"\x1b\\"
            } else {
                std::slice::from_ref(&byte)
            });
            self.state = State::Ground;
            return None;
        }
        let escaped = byte == 0x1b;
        if !escaped && string.bytes < STRING_BYTES_MAX {
            out.push(byte);
        }
        self.state = State::String(StringState {
            bytes: string.bytes.saturating_add(1),
            escaped,
            ..string
        });
        None
    }

    fn read_utf8(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        self.erased = None;
        // A new character begins, so the one before was incomplete.
        if byte >= 0xc0 {
            self.flush_partial(out);
        }
        self.partial.push(byte);
        match std::str::from_utf8(&self.partial) {
            Ok(text) => {
                let c = text.chars().next();
                self.partial.clear();
                return self.read_char(c?, out);
            }
            Err(error) if error.error_len().is_some() => self.flush_partial(out),
            Err(_) => {}
        }
        None
    }

    fn flush_partial(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.partial);
    }

    fn read_char(&mut self, c: char, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        let code = u32::from(c);
        let tone = (0x1f3fb..=0x1f3ff).contains(&code);
        let mark = (MARK_FIRST..=MARK_LAST).contains(&code);
        // A joiner before ordinary text joins nothing.
        let joined = self.joins && code >= 0x2000;
        self.joins = c == ZERO_WIDTH_JOINER;
        if is_wide(code) && !joined {
            return Some(SequenceNotice::Wide(c));
        }
        let printed = if joined || tone || mark || c == EMOJI_FORM {
            self.mark_for(c)
        } else {
            Some(c)
        };
        if let Some(c) = printed {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None
    }

    /// The mark for a character; `None` when all are in use, and the glyph then lacks that part.
    fn mark_for(&mut self, c: char) -> Option<char> {
        let at = self
            .marks
            .iter()
            .position(|m| *m == c)
            .unwrap_or(self.marks.len());
        let code = MARK_FIRST + u32::try_from(at).ok()?;
        if code > MARK_LAST {
            return None;
        }
        if at == self.marks.len() {
            self.marks.push(c);
        }
        char::from_u32(code)
    }
}
