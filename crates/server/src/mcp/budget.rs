//! How many bytes an answer may take.
//!
//! An answer is put together from values that are each taken while they fit. What does not fit is
//! left for the next call; the first value always gets in, its longest text cut if need be, so that
//! every call goes on.

use serde_json::Value;
use turnkeep_ledger::{Code, Fault};

use super::arguments::Arguments;

/// An answer's bytes unless the caller says otherwise.
pub(super) const ANSWER_BYTES_DEFAULT: usize = 32 << 10;
/// What one entry takes with everything but its text, and a little of that.
pub(super) const ANSWER_BYTES_MIN: usize = 4 << 10;
/// The most that a caller may ask for.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// What cursors and the names of fields take.
const FRAME_BYTES: usize = 1 << 10;

/// The bytes that are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    /// The budget that a caller asks for with `max_bytes`.
    pub(super) fn of(arguments: &Arguments<'_>) -> Result<Self, Fault> {
        let asked = arguments
            .optional_count("max_bytes")?
            .unwrap_or(ANSWER_BYTES_DEFAULT);
        if !(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX).contains(&asked) {
            let message = format!("must be {ANSWER_BYTES_MIN} to {ANSWER_BYTES_MAX}");
            return Err(Fault::new(Code::BadLimit, "max_bytes", message));
        }
        Ok(Self {
            left: asked - FRAME_BYTES,
        })
    }

    /// Takes a value and the comma behind it, if it fits.
    pub(super) fn take(&mut self, value: &Value) -> bool {
        let left = self.left.checked_sub(value.to_string().len() + 1);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// How many bytes of a text fit beside a value that has none of it yet, up to the end of a
    /// character.
    pub(super) fn piece_of(self, text: &str, rest: &Value) -> usize {
        let left = self.left.saturating_sub(rest.to_string().len() + 1);
        prefix_within(text, left)
    }
}

/// The longest beginning of a text that takes no more than so many bytes inside a JSON string.
fn prefix_within(text: &str, json_bytes_max: usize) -> usize {
    let mut taken = 0;
    for (place, character) in text.char_indices() {
        taken += json_width(character);
        if taken > json_bytes_max {
            return place;
        }
    }
    text.len()
}

fn json_width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_takes_what_it_takes_in_json() {
        let text = "a\"\n\u{1}é🦀";
        for max in 0..20 {
            let piece = &text[..prefix_within(text, max)];
            let width = json!(piece).to_string().len() - 2;
            assert!(width <= max, "{piece:?} in {max}");
            let next = text[piece.len()..].chars().next();
            let longer = next.map(|next| width + json!(next.to_string()).to_string().len() - 2);
            assert!(
                longer.is_none_or(|longer| longer > max),
                "{piece:?} in {max}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut budget = Budget { left: 10 };
        assert!(!budget.take(&json!("0123456789")) && budget.left == 10);
        assert!(budget.take(&json!("0123456")) && budget.left == 0);
    }
}
