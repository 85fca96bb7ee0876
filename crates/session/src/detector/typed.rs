//! What was typed since the last Enter, as far as it can be known from the keys.
//!
//! It is used only to tell the echo of an input from an answer. Once a key edits the line in a way
//! that only the program knows (completion, history, arrows), the line is unknown until the next Enter.

use super::keys::Key;

/// How much of a typed line is remembered; a longer one is unknown.
const TYPED_BYTES_MAX: usize = 64 * 1024;

/// The line that is being typed.
#[derive(Debug, Clone, Default)]
pub(super) struct Typed {
    bytes: Vec<u8>,
    unknown: bool,
}

impl Typed {
    /// Takes a key.
    pub(super) fn key(&mut self, key: Key) {
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

    /// Whether text stands in the line.
    pub(super) fn has_text(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Whether any key was pressed since the last Enter.
    pub(super) fn is_touched(&self) -> bool {
        self.unknown || self.has_text()
    }

    /// Whether the text of a line may end with what was typed.
    pub(super) fn may_end(&self, line: &str) -> bool {
        self.unknown || squeezed(line).ends_with(&squeezed(&String::from_utf8_lossy(&self.bytes)))
    }

    /// The lines without blanks; none when they are not known.
    pub(super) fn lines(&self) -> Option<Vec<String>> {
        let text = String::from_utf8_lossy(&self.bytes);
        (!self.unknown).then(|| text.split('\n').map(squeezed).collect())
    }

    fn push(&mut self, byte: u8) {
        if self.bytes.len() < TYPED_BYTES_MAX {
            self.bytes.push(byte);
        } else {
            self.unknown = true;
        }
    }

    fn pop(&mut self) {
        while self.bytes.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
}

/// The text without white space: what survives any wrapping and repainting of a line.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect()
}
