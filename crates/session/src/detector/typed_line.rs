//! The text typed since the last Enter, as far as the keys show it.
//!
//! It serves only to distinguish the echo of an input from an answer. Once a key edits the line in
//! a way that only the program knows (completion, history, arrows), the line is unknown until the
//! next Enter. Text typed before the last prompt may have been for the program that ran then, or
//! for this prompt. A line longer than [`TYPED_BYTES_MAX`] is unknown.

use super::keys::Key;
use std::collections::VecDeque;

/// The longest typed line that is remembered.
const TYPED_BYTES_MAX: usize = 64 * 1024;

/// The line that is being typed.
#[derive(Debug, Clone, Default)]
pub(super) struct TypedLine {
    bytes: Vec<u8>,
    unknown: bool,
    /// How many bytes were typed before the prompt was shown.
    ahead_len: usize,
}

/// The lines whose echo is expected, without blanks.
#[derive(Debug, Clone, Default)]
pub(super) struct ExpectedEcho {
    pub(super) lines: VecDeque<String>,
    /// How much of the first line another program may have read.
    pub(super) ahead_len: usize,
}

impl TypedLine {
    /// Applies a key to the line.
    pub(super) fn apply_key(&mut self, key: Key) {
        match key {
            Key::Text(byte) | Key::Pasted(byte) => self.push(byte),
            Key::Backspace => self.pop(),
            Key::Kill | Key::Interrupt => *self = Self::default(),
            Key::Edit => self.unknown = true,
            Key::Enter | Key::LineFeed | Key::Escape => {}
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn has_text(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Whether nothing was typed since the prompt was shown.
    pub(super) fn is_fresh(&self) -> bool {
        !self.unknown && self.bytes.len() <= self.ahead_len
    }

    /// Notes a prompt: everything typed so far was typed ahead of it.
    pub(super) fn note_prompt(&mut self) {
        self.ahead_len = self.bytes.len();
    }

    /// The lines without blanks; `None` when the text is unknown.
    pub(super) fn expected_echo(&self) -> Option<ExpectedEcho> {
        let text = String::from_utf8_lossy(&self.bytes);
        let ahead = String::from_utf8_lossy(self.bytes.get(..self.ahead_len).unwrap_or_default());
        (!self.unknown).then(|| ExpectedEcho {
            lines: text.split('\n').map(without_blanks).collect(),
            ahead_len: if ahead.contains('\n') {
                0
            } else {
                without_blanks(&ahead).len()
            },
        })
    }

    /// The typed bytes, which a tty echoes at once; `None` when they are unknown.
    pub(super) fn known_bytes(&self) -> Option<&[u8]> {
        (!self.unknown).then_some(self.bytes.as_slice())
    }

    /// The typed text; `None` when it is unknown.
    pub(super) fn known_text(&self) -> Option<String> {
        let typed = self.known_bytes()?;
        Some(String::from_utf8_lossy(typed).into_owned())
    }

    /// The same line, unknown when it is longer than `bytes_max`.
    pub(super) fn limited_to(self, bytes_max: usize) -> Self {
        if self.bytes.len() <= bytes_max {
            self
        } else {
            Self {
                unknown: true,
                ..Self::default()
            }
        }
    }

    fn push(&mut self, byte: u8) {
        if self.bytes.len() < TYPED_BYTES_MAX {
            self.bytes.push(byte);
        } else {
            self.unknown = true;
        }
    }

    fn pop(&mut self) {
        // Backspace removes a whole character, so continuation bytes of UTF-8 go with it.
        while self.bytes.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
        self.ahead_len = self.ahead_len.min(self.bytes.len());
    }
}

/// The text without white space, which survives any wrapping and repainting of a line.
pub(super) fn without_blanks(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .collect()
}
