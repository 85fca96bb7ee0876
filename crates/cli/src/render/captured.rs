//! A captured turn, as it lies in the store: who said it, then what was said.

use serde_json::{Map, Value};

use super::printable;

/// The type of captured turns, whatever its version.
pub(super) fn is_captured(declared_type: &str) -> bool {
    declared_type == turnkeep_wire::capture::TURN_TYPE
}

/// The turn as lines: a head, an empty line, its text.
pub(super) fn turn_lines(data: &Map<String, Value>) -> Vec<String> {
    let mut lines = vec![head_line(data), String::new()];
    match text_field(data, "text") {
        Some(text) => lines.extend(text.lines().map(printable)),
        None => lines.push("(bytes that are no text)".to_owned()),
    }
    lines
}

/// The turn in one line: who, and the first line that says something.
pub(super) fn summary_line(data: &Map<String, Value>) -> String {
    let mut lines = text_field(data, "text").unwrap_or_default().lines();
    let said = lines.find(|line| !line.trim().is_empty());
    let said = said.map_or_else(|| "(no text)".to_owned(), printable);
    format!("{}: {said}", head_line(data))
}

/// Name, program and flags, such as `review (claude, interrupted)`.
fn head_line(data: &Map<String, Value>) -> String {
    // A session without a name is known by its turns' ids.
    let name = text_field(data, "name").or_else(|| text_field(data, "turn_id"));
    let name = printable(name.unwrap_or_default());
    let mut about: Vec<&str> = text_field(data, "preset").into_iter().collect();
    let is_set = |flag: &&str| data.get(*flag) == Some(&Value::Bool(true));
    about.extend(
        ["interrupted", "truncated", "incomplete"]
            .iter()
            .filter(|flag| is_set(flag)),
    );
    if about.is_empty() {
        return name;
    }
    format!("{name} ({})", printable(&about.join(", ")))
}

fn text_field<'a>(data: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
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
        assert_eq!(
            summary_line(said),
            "review (claude, interrupted):   First line."
        );
        assert_eq!(
            turn_lines(said),
            [
                "review (claude, interrupted)",
                "",
                "",
                "  First line.",
                "\\u{1b}[2J"
            ]
        );
        let bytes = json!({ "turn_id": "ab:1", "content": "AAAA" });
        assert_eq!(summary_line(bytes.as_object().unwrap()), "ab:1: (no text)");
        assert_eq!(
            turn_lines(bytes.as_object().unwrap()),
            ["ab:1", "", "(bytes that are no text)"]
        );
    }
}
