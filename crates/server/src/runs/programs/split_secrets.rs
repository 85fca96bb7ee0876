//! Masks secrets that a program printed in pieces.
//!
//! A program that streams its answer prints a record for every few letters, so no line has the whole
//! secret. Worked example, with the secret `key-12345`:
//!
//! ```text
//! {"type":"delta","text":"It is key-"}      {"type":"delta","text":"It is ****"}
//! {"type":"ping"}                       →   {"type":"ping"}
//! {"type":"delta","text":"12345."}          {"type":"delta","text":"*****."}
//! ```
//!
//! The texts of one field, one after the other, are what the pieces were cut from. They are joined,
//! masked, which changes no length, and cut again at the same places. A line with no piece of a secret
//! stays as it is, byte for byte; one that is no JSON cannot have a piece of a text.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use bytes::Bytes;
use serde_json::Value;
use turnkeep_runtime::secrets::Secrets;

/// The texts of one field, by a hash of its path: the paths themselves might be long.
type FieldTexts = HashMap<u64, String>;

/// The lines without the secrets whose pieces are in different lines.
pub(super) fn mask_split_secrets(content: Bytes, secrets: &Secrets) -> Bytes {
    if secrets.is_empty() {
        return content;
    }
    let fields = FieldHasher::default();
    let mut masked = join_fields(&content, &fields);
    masked.retain(|_, text| mask_text(text, secrets));
    if masked.is_empty() {
        return content;
    }
    Bytes::from(cut_fields(&content, &fields, &masked))
}

/// Masks a text. Returns whether it had a secret.
fn mask_text(text: &mut String, secrets: &Secrets) -> bool {
    let masked = secrets.mask(Bytes::copy_from_slice(text.as_bytes()));
    if masked == text.as_bytes() {
        return false;
    }
    *text = String::from_utf8_lossy(&masked).into_owned();
    true
}

/// The texts of each field, in the order of the lines.
fn join_fields(content: &[u8], fields: &FieldHasher) -> FieldTexts {
    let mut texts = FieldTexts::new();
    for line in content.split(|byte| *byte == b'\n') {
        if let Some(mut record) = read_record(line) {
            fields.visit(&mut record, 0, &mut |field, text| {
                texts.entry(field).or_default().push_str(text);
            });
        }
    }
    texts
}

/// The lines with the pieces of the masked texts in them.
fn cut_fields(content: &[u8], fields: &FieldHasher, masked: &FieldTexts) -> Vec<u8> {
    // What is left of each text. The lines are read in the order in which their texts were joined,
    // so the next piece of a field is the head of its rest.
    let mut rests: HashMap<u64, &str> = masked
        .iter()
        .map(|(field, text)| (*field, text.as_str()))
        .collect();
    let mut lines = Vec::with_capacity(content.len());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let mut was_masked = false;
        let mut record = read_record(line);
        if let Some(record) = &mut record {
            fields.visit(record, 0, &mut |field, text| {
                let Some((piece, rest)) = rests
                    .get(&field)
                    .and_then(|rest| rest.split_at_checked(text.len()))
                else {
                    return;
                };
                rests.insert(field, rest);
                if piece != text {
                    piece.clone_into(text);
                    was_masked = true;
                }
            });
        }
        match record.filter(|_| was_masked) {
            Some(record) => lines.extend_from_slice(format!("{record}\n").as_bytes()),
            None => lines.extend_from_slice(line),
        }
    }
    lines
}

fn read_record(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line).ok()
}

/// Gives every field of a record a number that is the same in all records.
#[derive(Default)]
struct FieldHasher(RandomState);

impl FieldHasher {
    /// Visits the texts of a value. The items of a list count as one field.
    fn visit(&self, value: &mut Value, field: u64, visit: &mut impl FnMut(u64, &mut String)) {
        match value {
            Value::String(text) => visit(field, text),
            Value::Array(items) => {
                for item in items {
                    self.visit(item, field, visit);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.visit(member, self.0.hash_one((field, name)), visit);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], expect: &[&str]) {
        let secrets = Secrets::new(["key-12345".to_owned(), "schlüssel-1".to_owned()]);
        let content = lines.join("\n") + "\n";
        let masked = mask_split_secrets(Bytes::from(content), &secrets);
        let masked = String::from_utf8(masked.to_vec()).unwrap();
        assert_eq!(masked.lines().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn a_secret_in_pieces_is_masked_in_each_of_its_lines() {
        check(
            &[
                r#"{"event": {"delta": {"text": "It is ke"}}, "n": 1.50}"#,
                r#"{"event": {"delta": {"other": "y-9"}}}"#,
                "no JSON",
                r#"{"event": {"delta": {"text": ""}}}"#,
                r#"{"event": {"delta": {"text": "y-123"}}, "n": 1.50}"#,
                r#"{"event": {"delta": {"text": "45. Keep it."}}}"#,
                r#"{"event": {"delta": {"text": "Yes."}}, "n": 1.50}"#,
            ],
            &[
                r#"{"event":{"delta":{"text":"It is **"}},"n":1.5}"#,
                r#"{"event": {"delta": {"other": "y-9"}}}"#,
                "no JSON",
                r#"{"event": {"delta": {"text": ""}}}"#,
                r#"{"event":{"delta":{"text":"*****"}},"n":1.5}"#,
                r#"{"event":{"delta":{"text":"**. Keep it."}}}"#,
                r#"{"event": {"delta": {"text": "Yes."}}, "n": 1.50}"#,
            ],
        );
    }

    #[test]
    fn texts_of_different_fields_and_unlike_texts_stay_as_they_are() {
        let lines = [
            r#"{"a": "key-"}"#,
            r#"{"b": "12345"}"#,
            r#"["key-1", 2]"#,
            r#"{"a": "123"}"#,
        ];
        check(&lines, &lines);
    }

    #[test]
    fn a_secret_is_cut_between_its_letters() {
        check(
            &[r#"{"t":"ä schlü"}"#, r#"{"t":"ssel-1 ö"}"#],
            &[r#"{"t":"ä ******"}"#, r#"{"t":"****** ö"}"#],
        );
    }
}
