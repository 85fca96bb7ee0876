//! A captured turn, as it lies in the store: who said it, then what was said.

use serde_json::{Map, Value};

use super::printable;

/// The type of captured turns, whatever its version.
pub(super) fn is_captured(declared_type: &str) -> bool {
    declared_type == turnkeep_wire::capture::TURN_TYPE
}

/// The turn as lines: a head, an empty line, its text.
pub(super) fn lines(data: &Map<String, Value>) -> Vec<String> {
    let mut lines = vec![head(data), String::new()];
    match text(data, "text") {
        Some(text) => lines.extend(text.lines().map(printable)),
        None => lines.push("(bytes that are no text)".to_owned()),
    }
    lines
}

/// The turn in one line: who, and the first line that says something.
pub(super) fn summary(data: &Map<String, Value>) -> String {
    let said =
        text(data, "text").and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    format!(
        "{}: {}",
        head(data),
        said.map_or_else(|| "(no text)".to_owned(), printable)
    )
}

/// Name, program and flags, such as `review (claude, interrupted)`.
fn head(data: &Map<String, Value>) -> String {
    let name = text(data, "name")
        .or_else(|| text(data, "turn_id"))
        .unwrap_or_default();
    let flags = ["interrupted", "truncated", "incomplete"].into_iter();
    let set = flags.filter(|flag| data.get(*flag).and_then(Value::as_bool).unwrap_or_default());
    let about: Vec<&str> = text(data, "preset").into_iter().chain(set).collect();
    if about.is_empty() {
        printable(name)
    } else {
        format!("{} ({})", printable(name), printable(&about.join(", ")))
    }
}

fn text<'a>(data: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    data.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_captured_turn_reads_like_what_was_said() {
        let said = json!({
            "turn_id": "ab:1", "name": "review", "preset": "claude", "interrupted": true,
            "text": "\n  First line.\n\u{1b}[2J\n", "content": "AAAA",
        });
        let said = said.as_object().unwrap();
        assert_eq!(summary(said), "review (claude, interrupted):   First line.");
        assert_eq!(
            lines(said),
            [
                "review (claude, interrupted)",
                "",
                "",
                "  First line.",
                "\\u{1b}[2J"
            ]
        );
        let bytes = json!({ "turn_id": "ab:1", "content": "AAAA" });
        assert_eq!(summary(bytes.as_object().unwrap()), "ab:1: (no text)");
        assert_eq!(
            lines(bytes.as_object().unwrap()),
            ["ab:1", "", "(bytes that are no text)"]
        );
    }
}
