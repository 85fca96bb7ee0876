//! Calls of tools as lines of text, for agents without MCP.
//!
//! An agent calls a tool by a line that is one JSON object and nothing else:
//!
//! ```text
//! I will ask the reviewer.
//! {"tool_call": {"name": "send_handoff", "args": {"to": "reviewer", "message": "please look"}}}
//! ```
//!
//! Lines inside code fences are never calls, so an agent can quote one. A line that begins like a
//! call but is not one is malformed; the agent reads about it together with the results. The results
//! come as the next input of the same turn, one JSON object per line.

use serde_json::{Map, Value, json};

use crate::event::{AgentEvent, LineCall};
use crate::field::{parse_object, shorten};
use crate::request::LineResult;

/// A longer line is malformed.
const CALL_BYTES_MAX: usize = 256 * 1024;
/// How much of a malformed line a report quotes.
const QUOTED_CHARACTERS_MAX: usize = 200;
/// The calls of one answer that are carried out.
const CALLS_MAX: usize = 64;
/// The malformed calls of one answer that are reported to the agent.
const MALFORMED_CALLS_MAX: usize = 16;
const MALFORMED_NOTE: &str = "This line is not a tool call. A call is one line with the JSON object \
                              {\"tool_call\": {\"name\": …, \"args\": {…}}}";
/// Markdown's shortest fence.
const FENCE_LENGTH_MIN: usize = 3;

/// What a line of an answer is.
#[derive(Debug, Clone, PartialEq)]
pub enum ScannedLine {
    /// A line of the answer.
    Text,
    /// A call of a tool.
    Call(LineCall),
    /// Begins like a call but is not one; the beginning of the line.
    Malformed(String),
}

/// Reads an answer line by line and finds the calls in it.
#[derive(Debug, Default)]
pub struct ToolLineScanner {
    /// The open code fence.
    fence: Option<Fence>,
}

#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl ToolLineScanner {
    /// Reads the next line, without its line break.
    pub fn scan(&mut self, line: &str) -> ScannedLine {
        if self.update_fence(line) || self.fence.is_some() {
            return ScannedLine::Text;
        }
        scan_outside_fences(line.trim())
    }

    /// Opens or closes a fence. Returns whether the line is one.
    fn update_fence(&mut self, line: &str) -> bool {
        let Some(found) = find_fence(line) else {
            return false;
        };
        match self.fence {
            None => self.fence = Some(found),
            Some(open) => {
                // As in Markdown: "```" does not close "````", and "```json" opens a fence but never
                // closes one. Without this rule the rest of a quoted answer could become calls.
                let rest = line.trim_start().trim_start_matches(open.mark);
                let closes = found.mark == open.mark
                    && found.length >= open.length
                    && rest.trim().is_empty();
                if closes {
                    self.fence = None;
                }
            }
        }
        true
    }
}

/// The fence at the beginning of a line. Four spaces make it an indented block, as in Markdown.
fn find_fence(line: &str) -> Option<Fence> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let mark = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    (length >= FENCE_LENGTH_MIN).then_some(Fence { mark, length })
}

fn scan_outside_fences(line: &str) -> ScannedLine {
    if !line.starts_with('{') {
        return ScannedLine::Text;
    }
    // Before parsing: a program may print megabytes of JSON on one line.
    if line.len() > CALL_BYTES_MAX {
        return text_or_malformed(line);
    }
    let Some(mut object) = parse_object(line.as_bytes()) else {
        return text_or_malformed(line);
    };
    match object.get_mut("tool_call").map(Value::take) {
        // Other JSON is part of the answer.
        None => ScannedLine::Text,
        Some(call) => match read_call(call) {
            Some(call) => ScannedLine::Call(call),
            None => malformed(line),
        },
    }
}

/// A line that is not a JSON object is malformed if it was meant as a call.
fn text_or_malformed(line: &str) -> ScannedLine {
    let inside = line.trim_start_matches('{').trim_start();
    if inside.starts_with("\"tool_call\"") {
        malformed(line)
    } else {
        ScannedLine::Text
    }
}

fn malformed(line: &str) -> ScannedLine {
    ScannedLine::Malformed(shorten(line, QUOTED_CHARACTERS_MAX))
}

/// A call needs a name; its arguments may be missing.
pub(crate) fn read_call(mut call: Value) -> Option<LineCall> {
    let name = call.get("name")?.as_str()?.trim().to_owned();
    let args = match call.get_mut("args").map(Value::take) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(args) => args,
    };
    let is_valid = !name.is_empty() && args.is_object();
    is_valid.then_some(LineCall { name, args })
}

/// The calls of an answer that wait for their results.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls {
    count: usize,
    malformed: Vec<String>,
}

impl PendingCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.malformed.is_empty()
    }

    /// Counts a call. Returns false if the answer has too many.
    pub(crate) fn add_call(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.count <= CALLS_MAX
    }

    /// Keeps a malformed call. Returns false if the answer has too many.
    pub(crate) fn add_malformed(&mut self, line: &str) -> bool {
        let fits = self.malformed.len() < MALFORMED_CALLS_MAX;
        if fits {
            self.malformed.push(line.to_owned());
        }
        fits
    }

    /// The events of a whole message: its calls, and its text without them.
    pub(crate) fn read_message(&mut self, content: &str) -> Vec<AgentEvent> {
        // Each message has its own fences: an open one must not hide the calls of the next.
        let mut scanner = ToolLineScanner::default();
        let mut events = Vec::new();
        let mut text_lines = Vec::new();
        for line in content.lines() {
            match scanner.scan(line) {
                ScannedLine::Text => text_lines.push(line),
                ScannedLine::Call(call) => events.extend(self.take_call(call)),
                ScannedLine::Malformed(line) => events.extend(self.take_malformed(line)),
            }
        }
        let text = text_lines.join("\n");
        if !text.trim().is_empty() {
            events.push(AgentEvent::AnswerFinal(text));
        }
        events
    }

    /// The event of a call. One too many has none.
    pub(crate) fn take_call(&mut self, call: LineCall) -> Option<AgentEvent> {
        self.add_call()
            .then_some(AgentEvent::ToolCallRequested(call))
    }

    /// The event of a malformed call. One too many has none.
    pub(crate) fn take_malformed(&mut self, line: String) -> Option<AgentEvent> {
        self.add_malformed(&line)
            .then_some(AgentEvent::MalformedToolCall(line))
    }

    /// Forgets the calls and returns what the agent must know about those without a result.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        let taken = std::mem::take(self);
        let mut notes: Vec<String> = taken
            .malformed
            .iter()
            .map(|line| format!("{MALFORMED_NOTE}: {line}"))
            .collect();
        if taken.count > CALLS_MAX {
            notes.push(format!(
                "Only the first {CALLS_MAX} calls were carried out."
            ));
        }
        notes
    }
}

/// The results and notes as the agent reads them.
pub(crate) fn render_results(results: &[LineResult], notes: &[String]) -> String {
    let mut lines = vec!["The results of your tool calls, in order:".to_owned()];
    for result in results {
        let result = json!({"tool_result": result_record(result)});
        lines.push(result.to_string());
    }
    lines.extend_from_slice(notes);
    lines.join("\n")
}

/// One result as a record.
pub(crate) fn result_record(result: &LineResult) -> Value {
    match &result.result {
        Ok(value) => json!({"name": result.name, "ok": true, "result": value}),
        Err(error) => json!({"name": result.name, "ok": false, "error": error}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter per line: text, call or malformed.
    fn check(answer: &str, expect: &str) {
        let mut scanner = ToolLineScanner::default();
        let kind = |line| match scanner.scan(line) {
            ScannedLine::Text => 't',
            ScannedLine::Call(_) => 'c',
            ScannedLine::Malformed(_) => 'm',
        };
        let kinds: String = answer.lines().map(kind).collect();
        assert_eq!(kinds, expect, "{answer}");
    }

    const CALL: &str = r#"{"tool_call":{"name":"n","args":{}}}"#;

    #[test]
    fn a_call_is_alone_on_its_line() {
        check(CALL, "c");
        check(&format!("  {CALL}  "), "c");
        check(&format!("text {CALL}"), "t");
        check(&format!("{CALL} text"), "m");
        check(&format!("`{CALL}`"), "t");
        check(&format!("- {CALL}"), "t");
        check(&format!("{CALL}\n{CALL}"), "cc");
    }

    #[test]
    fn the_shape_of_a_call_is_checked() {
        let rows = [
            (r#"{"tool_call":{"name":"n"}}"#, "c"),
            (r#"{"tool_call":{"name":"n","args":null}}"#, "c"),
            (r#"{ "tool_call" : {"name":"n","args":{"a":[1]}} }"#, "c"),
            (r#"{"tool_call":{"name":" "}}"#, "m"),
            (r#"{"tool_call":{"name":5}}"#, "m"),
            (r#"{"tool_call":{"args":{}}}"#, "m"),
            (r#"{"tool_call":{"name":"n","args":[]}}"#, "m"),
            (r#"{"tool_call":"n"}"#, "m"),
            (r#"{"tool_call":{"name":"n","#, "m"),
            (r#"{"tool_call"#, "t"),
            (r#"{"other":{"tool_call":{}}}"#, "t"),
            ("{ this is prose", "t"),
            ("{}", "t"),
            ("", ""),
        ];
        for (line, expect) in rows {
            check(line, expect);
        }
        let deep = format!("{{\"tool_call\":{}", "[".repeat(10_000));
        check(&deep, "m");
        let long = format!("{{\"tool_call\":\"{}", "x".repeat(CALL_BYTES_MAX));
        check(&long, "m");
    }

    #[test]
    fn lines_in_code_fences_are_text() {
        check(&format!("```\n{CALL}\n```\n{CALL}"), "tttc");
        check(&format!("```json\n{CALL}\n```\n{CALL}"), "tttc");
        check(&format!("~~~\n{CALL}\n```\n{CALL}\n~~~\n{CALL}"), "tttttc");
        check(&format!("````\n```\n{CALL}\n```\n````\n{CALL}"), "tttttc");
        check(&format!("```\n{CALL}\n``` not a close\n{CALL}"), "tttt");
        check(&format!("   ```\n{CALL}\n   ```\n{CALL}"), "tttc");
        check(&format!("    ```\n{CALL}"), "tc");
        check(&format!("``\n{CALL}"), "tc");
    }

    #[test]
    fn notes_explain_the_calls_without_a_result() {
        let mut pending = PendingCalls::default();
        assert!(pending.is_empty());
        assert!(pending.add_malformed("{\"tool_call\""));
        assert!(!pending.is_empty());
        let accepted = (0..100).filter(|_| pending.add_call()).count();
        assert_eq!(accepted, CALLS_MAX);
        let notes = pending.take_notes();
        assert!(notes[0].ends_with(": {\"tool_call\""), "{notes:?}");
        assert_eq!(notes[1..], ["Only the first 64 calls were carried out."]);
        assert!(pending.is_empty());
    }

    #[test]
    fn results_are_lines_that_an_agent_can_read() {
        let results = [
            LineResult {
                name: "a".to_owned(),
                result: Ok(json!({"id": 1})),
            },
            LineResult {
                name: "b".to_owned(),
                result: Err("no edge to `x`".to_owned()),
            },
        ];
        let text = render_results(&results, &["a note".to_owned()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..3],
            [
                r#"{"tool_result":{"name":"a","ok":true,"result":{"id":1}}}"#,
                r#"{"tool_result":{"name":"b","ok":false,"error":"no edge to `x`"}}"#,
            ]
        );
        assert_eq!(lines[3..], ["a note"]);
    }
}
