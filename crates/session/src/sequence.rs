//! Splits the output into tokens: text runs, controls, escape sequences and operating system
//! commands. The detector reads signals from them, and the screen filters what its emulator gets.
//!
//! Cutting the bytes into calls differently changes no token, except that a run of text may come in
//! pieces. Memory is limited: of an OSC the first [`OSC_BYTES_MAX`] bytes are kept, of DCS, APC, PM
//! and SOS none, of a control sequence [`PARAMS_MAX`] numbers. It cannot fail: invalid sequences
//! are dropped as a terminal would drop them.

/// How much of an operating system command is kept; titles and states are short.
pub(crate) const OSC_BYTES_MAX: usize = 4096;

/// How many numbers of a control sequence are kept.
const PARAMS_MAX: usize = 16;

/// The meaning of the bytes that one step used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// Text.
    Text,
    /// A control character. Inside a sequence it acts all the same.
    Control(u8),
    /// A control sequence: see [`Tokenizer::csi`].
    Csi,
    /// An operating system command: see [`Tokenizer::osc`].
    Osc,
    /// `ESC` and one more byte.
    Escape(u8),
    /// Part of an unfinished sequence.
    Nothing,
}

/// A control sequence.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Csi {
    /// `?`, `>`, `<`, `=` after the introducer, else 0.
    pub(crate) private: u8,
    /// The last byte.
    pub(crate) last: u8,
    intermediate: bool,
    params: [u16; PARAMS_MAX],
    count: usize,
}

/// The modes that a control sequence switches on or off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModeSwitch<'a> {
    pub(crate) modes: &'a [u16],
    pub(crate) on: bool,
}

impl Csi {
    /// The number at an index; `default` where it is missing or zero.
    pub(crate) fn param(&self, at: usize, default: u16) -> u16 {
        self.params()
            .get(at)
            .copied()
            .filter(|value| *value != 0)
            .unwrap_or(default)
    }

    /// All numbers.
    pub(crate) fn params(&self) -> &[u16] {
        self.params.get(..self.count).unwrap_or_default()
    }

    /// Whether the sequence has neither a private mark nor an intermediate byte.
    pub(crate) fn is_plain(&self) -> bool {
        self.private == 0 && !self.intermediate
    }

    /// The modes that this sequence switches (`CSI ? … h` or `l`); `None` for other sequences.
    pub(crate) fn mode_switch(&self) -> Option<ModeSwitch<'_>> {
        let on = match self.last {
            b'h' => true,
            b'l' => false,
            _ => return None,
        };
        (self.private == b'?' && !self.intermediate).then(|| ModeSwitch {
            modes: self.params(),
            on,
        })
    }

    fn push_digit(&mut self, digit: u8) {
        self.count = self.count.max(1);
        if let Some(value) = self.params.get_mut(self.count - 1) {
            *value = value
                .saturating_mul(10)
                .saturating_add(u16::from(digit - b'0'));
        }
    }

    fn start_next_param(&mut self) {
        self.count = self.count.max(1);
        if self.count < PARAMS_MAX {
            self.count += 1;
        } else if let Some(last) = self.params.last_mut() {
            // A seventeenth number and those after it share the last place, which no caller reads.
            *last = 0;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    /// In a string; the content of an OSC is kept.
    String {
        osc: bool,
    },
    /// After ESC in a string.
    StringEscape {
        osc: bool,
    },
}

/// The result of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenStep {
    /// How many bytes the step used.
    pub(crate) used: usize,
    pub(crate) token: Token,
}

/// Splits output into tokens.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    state: State,
    csi: Csi,
    osc: Vec<u8>,
}

impl Tokenizer {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Ground,
            csi: Csi::default(),
            osc: Vec::new(),
        }
    }

    /// Whether the next byte is content of a string: OSC, DCS, APC, PM or SOS.
    pub(crate) fn is_in_string(&self) -> bool {
        matches!(self.state, State::String { .. })
    }

    /// Whether no sequence is open.
    pub(crate) fn at_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// The control sequence that the last step completed.
    pub(crate) fn csi(&self) -> &Csi {
        &self.csi
    }

    /// The operating system command that the last step completed.
    pub(crate) fn osc(&self) -> &[u8] {
        &self.osc
    }

    /// Takes the next token off `bytes`, which must not be empty.
    pub(crate) fn next_token(&mut self, bytes: &[u8]) -> TokenStep {
        if self.state == State::Ground {
            let run = bytes
                .iter()
                .position(|byte| is_control(*byte))
                .unwrap_or(bytes.len());
            if run > 0 {
                return TokenStep {
                    used: run,
                    token: Token::Text,
                };
            }
        }
        let token = bytes
            .first()
            .map_or(Token::Nothing, |byte| self.read_byte(*byte));
        TokenStep { used: 1, token }
    }

    fn read_byte(&mut self, byte: u8) -> Token {
        match self.state {
            State::Ground => self.read_control(byte),
            State::Escape => self.read_escape(byte),
            State::EscapeIntermediate => self.read_escape_intermediate(byte),
            State::Csi => self.read_csi(byte),
            State::String { osc } => self.read_string(byte, osc),
            State::StringEscape { osc } => self.read_string_escape(byte, osc),
        }
    }

    fn read_control(&mut self, byte: u8) -> Token {
        if byte == 0x1b {
            self.state = State::Escape;
            return Token::Nothing;
        }
        Token::Control(byte)
    }

    fn read_escape(&mut self, byte: u8) -> Token {
        let (state, token) = match byte {
            b'[' => (State::Csi, Token::Nothing),
            b']' => (State::String { osc: true }, Token::Nothing),
            b'P' | b'X' | b'^' | b'_' => (State::String { osc: false }, Token::Nothing),
            0x20..=0x2f => (State::EscapeIntermediate, Token::Nothing),
            0x1b => (State::Escape, Token::Nothing),
            0x18 | 0x1a => (State::Ground, Token::Nothing),
            // A control character acts inside of a sequence, and the sequence goes on behind it.
            byte if is_control(byte) => (State::Escape, Token::Control(byte)),
            byte => (State::Ground, Token::Escape(byte)),
        };
        self.state = state;
        self.csi = Csi::default();
        if state != State::Ground {
            self.osc.clear();
        }
        token
    }

    fn read_escape_intermediate(&mut self, byte: u8) -> Token {
        match byte {
            0x20..=0x2f => {}
            0x1b => self.state = State::Escape,
            byte if is_control(byte) && !matches!(byte, 0x18 | 0x1a) => {
                return Token::Control(byte);
            }
            _ => self.state = State::Ground,
        }
        Token::Nothing
    }

    fn read_csi(&mut self, byte: u8) -> Token {
        match byte {
            b'0'..=b'9' => self.csi.push_digit(byte),
            // Parts of a number (after colons) count as numbers of their own; no sequence that
            // matters here has any.
            b';' | b':' => self.csi.start_next_param(),
            b'<'..=b'?' => self.csi.private = byte,
            0x20..=0x2f => self.csi.intermediate = true,
            0x40..=0x7e => {
                self.csi.last = byte;
                self.state = State::Ground;
                return Token::Csi;
            }
            0x1b => self.state = State::Escape,
            0x18 | 0x1a => self.state = State::Ground,
            0x00..=0x1f => return Token::Control(byte),
            _ => {}
        }
        Token::Nothing
    }

    fn read_string(&mut self, byte: u8, osc: bool) -> Token {
        match byte {
            0x1b => self.state = State::StringEscape { osc },
            // Only an OSC may end with BEL; in other strings BEL is content.
            0x07 if osc => return self.end_string(osc),
            0x18 | 0x1a => self.state = State::Ground,
            byte if osc && self.osc.len() < OSC_BYTES_MAX => self.osc.push(byte),
            _ => {}
        }
        Token::Nothing
    }

    fn read_string_escape(&mut self, byte: u8, osc: bool) -> Token {
        if byte == b'\\' {
            return self.end_string(osc);
        }
        // ESC ends a string whatever follows: the rest is a sequence of its own.
        self.state = State::Escape;
        self.read_escape(byte)
    }

    fn end_string(&mut self, osc: bool) -> Token {
        self.state = State::Ground;
        if osc { Token::Osc } else { Token::Nothing }
    }
}

/// Whether a mode shows the alternate screen. The three differ only in what they save and clear.
pub(crate) fn is_alternate_screen(mode: u16) -> bool {
    matches!(mode, 47 | 1047 | 1049)
}

/// Whether a byte is a control character. DEL is one; bytes of UTF-8 are not.
fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// The text of the bytes, without escape sequences and without controls other than the tabulator.
pub(crate) fn strip_sequences(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len());
    for_each_text(bytes, |_, piece| {
        text.extend_from_slice(piece);
        true
    });
    String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// How many of the bytes the first `length` bytes of their stripped text take.
pub(crate) fn unstripped_len(bytes: &[u8], length: usize) -> usize {
    let (mut left, mut end) = (length, 0);
    for_each_text(bytes, |at, piece| {
        let used = piece.len().min(left);
        left -= used;
        end = if used > 0 { at + used } else { end };
        left > 0
    });
    end
}

/// Calls `read` with each piece of the stripped text and its index in the bytes, until it returns
/// `false`.
fn for_each_text(bytes: &[u8], mut read: impl FnMut(usize, &[u8]) -> bool) {
    let mut tokens = Tokenizer::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let step = tokens.next_token(rest);
        let at = bytes.len() - rest.len();
        let (used, after) = rest.split_at(step.used.min(rest.len()));
        if matches!(step.token, Token::Text | Token::Control(b'\t')) && !read(at, used) {
            return;
        }
        rest = after;
    }
}
