//! Limits the bytes of an answer.
//!
//! An answer adds values one by one while they fit, and leaves the others for the next call. The
//! first value is always included, with its longest text cut if necessary, so that every call makes
//! progress.

use serde_json::Value;
use turnkeep_ledger::{Code, Fault};

use super::arguments::Arguments;

/// The bytes of an answer unless the caller says otherwise.
pub(super) const ANSWER_BYTES_DEFAULT: usize = 32 << 10;
/// The bytes of one entry without its text, and a little of the text.
pub(super) const ANSWER_BYTES_MIN: usize = 4 << 10;
/// The most bytes that a caller may ask for.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The bytes of cursors and field names around the values.
const FRAME_BYTES: usize = 1 << 10;

/// The remaining bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    /// The budget that the caller asks for with `max_bytes`.
    pub(super) fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Fault> {
        let asked = arguments
            .optional_count("max_bytes")?
            .unwrap_or(ANSWER_BYTES_DEFAULT);
        // Below the minimum not even one entry without its text would fit.
        if !(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX).contains(&asked) {
            let message = format!("must be {ANSWER_BYTES_MIN} to {ANSWER_BYTES_MAX}");
            return Err(Fault::new(Code::BadLimit, "max_bytes", message));
        }
        Ok(Self {
            left: asked - FRAME_BYTES,
        })
    }

    /// Uses up the bytes of a value and a comma, if they fit.
    pub(super) fn try_take(&mut self, value: &Value) -> bool {
        let left = self.left.checked_sub(value.to_string().len() + 1);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// How many bytes of a text fit beside `rest`, the value without that text. Ends on a character
    /// boundary.
    pub(super) fn text_bytes_beside(self, text: &str, rest: &Value) -> usize {
        let left = self.left.saturating_sub(rest.to_string().len() + 1);
        prefix_within(text, left)
    }
}

/// The longest beginning of a text that takes at most so many bytes in a JSON string.
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
        assert!(!budget.try_take(&json!("0123456789")) && budget.left == 10);
        assert!(budget.try_take(&json!("0123456")) && budget.left == 0);
    }
}
