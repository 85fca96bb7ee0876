//! Reads fields of messages whose shape nothing guarantees. A missing field and a field of the wrong
//! type are the same: absent.
//!
//! Paths are JSON pointers: `/delta/text` is the field `text` of the field `delta`.

use serde_json::Value;

/// Parses a line that must be a JSON object.
pub(crate) fn parse_object(line: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    value.is_object().then_some(value)
}

pub(crate) fn text_at<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path)?.as_str()
}

/// The text at the first of these paths that has one.
pub(crate) fn first_text<'a>(value: &'a Value, paths: &[&str]) -> Option<&'a str> {
    paths.iter().find_map(|path| text_at(value, path))
}

pub(crate) fn flag_at(value: &Value, path: &str) -> bool {
    value.pointer(path).and_then(Value::as_bool) == Some(true)
}

/// The number at a path. Zero stands for a missing number and for one that does not fit.
pub(crate) fn count_at(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

/// The elements of the list at a path; none if there is no list.
pub(crate) fn list_at<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    match value.pointer(path) {
        Some(Value::Array(elements)) => elements,
        _ => &[],
    }
}

/// A copy of the value at a path. An empty object stands for a missing value.
pub(crate) fn object_at(value: &Value, path: &str) -> Value {
    match value.pointer(path) {
        Some(found) if !found.is_null() => found.clone(),
        _ => Value::Object(serde_json::Map::new()),
    }
}

/// Millionths of the dollars at a path. A negative amount counts as nothing.
pub(crate) fn micro_usd_at(value: &Value, path: &str) -> Option<u64> {
    // Far beyond any bill, and small enough for the conversion to be exact.
    const DOLLARS_MAX: f64 = 1e9;
    let dollars = value.pointer(path)?.as_f64()?;
    let micro = (dollars.clamp(0.0, DOLLARS_MAX) * 1e6).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1e15 and rounded above"
    )]
    Some(micro as u64)
}

/// About how many bytes a value takes, so that remembered values can be bounded.
pub(crate) fn weight_of(value: &Value) -> usize {
    // Numbers and the like; also what a list or an object takes by itself.
    const NODE_BYTES: usize = 32;
    let inside: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(weight_of).sum(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(key, value)| key.len() + weight_of(value))
                .sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + NODE_BYTES
}

/// The end of a text, at most so many characters, marked if something is missing.
pub(crate) fn keep_end(text: &str, characters_max: usize) -> String {
    let kept = text.char_indices().rev().take(characters_max).last();
    match kept {
        Some((start, _)) if start > 0 => format!("…{}", text.get(start..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

/// The beginning of a text, at most so many characters, marked if something is missing.
pub(crate) fn shorten(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
