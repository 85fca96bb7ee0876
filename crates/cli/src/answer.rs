//! Reads fields of the server's JSON answers.
//!
//! A field that is missing or of another type counts as empty. So a command still shows the rest
//! of an answer from a server of another version.

use serde_json::Value;

/// The text of a field, or the empty text.
pub(crate) fn text_of<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number of a field, or 0.
pub(crate) fn number_of(answer: &Value, field: &str) -> u64 {
    answer
        .get(field)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

/// Whether a field is `true`.
pub(crate) fn is_true(answer: &Value, field: &str) -> bool {
    answer.get(field).and_then(Value::as_bool) == Some(true)
}

/// The text at a JSON pointer, if there is one.
pub(crate) fn text_at(answer: &Value, pointer: &str) -> Option<String> {
    answer.pointer(pointer)?.as_str().map(str::to_owned)
}

/// The list at a JSON pointer, or an empty list.
pub(crate) fn list_at<'a>(answer: &'a Value, pointer: &str) -> &'a [Value] {
    answer
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
