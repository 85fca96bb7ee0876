//! Limits the bytes of an answer, as they are sent.
//!
//! A tool's result holds every value twice: in `structuredContent`, and again as a text in
//! `content`, because older clients read only texts. Both copies count. For example, the value
//! `"a"` takes 3 bytes in the first copy and 5 in the second, where its quotes are escaped.
//!
//! An answer adds values one by one while they fit, and leaves the others for the next call. The
//! first value is always included, with its longest text cut if necessary, so that every call makes
//! progress.

use serde_json::Value;
use turnkeep_ledger::{Code, Fault};

use super::arguments::Arguments;

/// The bytes of an answer unless the caller says otherwise.
pub(super) const ANSWER_BYTES_DEFAULT: usize = 32 << 10;
/// One entry without its text needs up to 5 KiB, if every character of its labels is escaped. The
/// rest is for a little of the text.
pub(super) const ANSWER_BYTES_MIN: usize = 8 << 10;
/// The most bytes that a caller may ask for.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The bytes around the values: the JSON-RPC message, and both copies of cursors and field names.
const FRAME_BYTES: usize = 3 << 9;

/// The remaining bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    /// The budget that the caller asks for with `max_bytes`.
    pub(super) fn from_arguments(arguments: &Arguments) -> Result<Self, Fault> {
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

    /// A budget of so many bytes.
    #[cfg(test)]
    pub(super) fn of(answer_bytes: usize) -> Self {
        Self {
            left: answer_bytes - FRAME_BYTES,
        }
    }

    /// Half of the remaining bytes.
    pub(super) fn half(self) -> Self {
        Self {
            left: self.left / 2,
        }
    }

    /// Uses up the bytes of a value and a comma, if they fit.
    pub(super) fn try_take(&mut self, value: &Value) -> bool {
        let left = self.left.checked_sub(sent_bytes(value));
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Takes values in order while they fit. `shorten` cuts the first one if it does not fit, so that
    /// every answer has at least one.
    pub(super) fn take_fitting(
        &mut self,
        values: impl Iterator<Item = Value>,
        shorten: impl Fn(&mut Value, Self),
    ) -> Vec<Value> {
        let mut taken = Vec::new();
        for mut value in values {
            if !self.try_take(&value) {
                if !taken.is_empty() {
                    break;
                }
                shorten(&mut value, *self);
                self.try_take(&value);
            }
            taken.push(value);
        }
        taken
    }

    /// How many bytes of a text fit beside `rest`, the value without that text. Ends on a character
    /// boundary.
    pub(super) fn text_bytes_beside(self, text: &str, rest: &Value) -> usize {
        let left = self.left.saturating_sub(sent_bytes(rest));
        prefix_within(text, left)
    }

    /// Shortens the named texts of a value until it fits. The first text gets what fits beside the
    /// value without the texts, the next one gets what is left, and so on.
    pub(super) fn shorten_texts(self, value: &mut Value, names: &[&str]) {
        // All texts leave the value first, so that the value without them can be measured.
        let mut texts = Vec::new();
        for name in names {
            if let Some(Value::String(text)) = value.get_mut(name) {
                texts.push((*name, std::mem::take(text)));
            }
        }
        for (name, text) in texts {
            let end = self.text_bytes_beside(&text, value);
            value[name] = text.get(..end).unwrap_or_default().into();
        }
    }
}

/// The bytes that a value and a comma take in both copies.
fn sent_bytes(value: &Value) -> usize {
    let json = value.to_string();
    // JSON has no raw control characters, so the second copy escapes only these.
    let escaped = json.bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
    2 * (json.len() + 1) + escaped.count()
}

/// The longest beginning of a text that takes at most so many bytes in both copies.
fn prefix_within(text: &str, bytes_max: usize) -> usize {
    let mut taken = 0;
    for (place, character) in text.char_indices() {
        taken += sent_width(character);
        if taken > bytes_max {
            return place;
        }
    }
    text.len()
}

/// The bytes of a character in both copies. A backslash that the first copy adds is doubled in the
/// second one.
fn sent_width(character: char) -> usize {
    match character {
        '"' | '\\' => 2 + 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
        '\0'..='\u{1f}' => 6 + 7,
        other => 2 * other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The bytes inside the quotes of a text, in both copies.
    fn text_width(text: &str) -> usize {
        let once = json!(text).to_string();
        let again = json!(once).to_string();
        (once.len() - 2) + (again.len() - 2 - 2 * r#"\""#.len())
    }

    #[test]
    fn a_piece_takes_what_it_takes_in_both_copies() {
        let text = "a\"\n\u{1}é🦀\\";
        for max in 0..50 {
            let piece = &text[..prefix_within(text, max)];
            let width = text_width(piece);
            assert!(width <= max, "{piece:?} in {max}");
            let next = text[piece.len()..].chars().next();
            let longer = next.map(|next| width + text_width(&next.to_string()));
            assert!(
                longer.is_none_or(|longer| longer > max),
                "{piece:?} in {max}"
            );
        }
    }

    #[test]
    fn a_value_takes_what_it_takes_in_both_copies() {
        for value in [json!("a\"\n"), json!({ "a": [1, null, "\\"] }), json!([])] {
            let once = value.to_string();
            // The text in the second copy has no quotes of its own in a list.
            let again = json!(once).to_string().len() - 2;
            assert_eq!(sent_bytes(&value), once.len() + again + 2, "{value}");
        }
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut budget = Budget { left: 24 };
        assert!(!budget.try_take(&json!("0123456789")) && budget.left == 24);
        assert!(budget.try_take(&json!("01234567")) && budget.left == 0);
    }

    #[test]
    fn texts_are_shortened_in_the_order_of_their_names() {
        let value = json!({ "a": "aaaa", "b": "bbbb", "c": 7 });
        let mut budget = Budget {
            left: sent_bytes(&json!({ "a": "aaaa", "b": "b", "c": 7 })),
        };
        let mut shortened = value.clone();
        budget.shorten_texts(&mut shortened, &["a", "b", "c", "missing"]);
        assert_eq!(shortened, json!({ "a": "aaaa", "b": "b", "c": 7 }));
        assert!(budget.try_take(&shortened));
    }
}
