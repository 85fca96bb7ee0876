//! A line of an agent's transcript, as it lies in the store: who did what, then the words.
//!
//! The types `turnkeep.agent.*` have many fields for programs. A person wants to read the
//! conversation, so only the words and the calls are shown; `--json` has everything.

use serde_json::{Map, Value};

use super::printable;

/// The beginning of the types' ids.
const NAMESPACE: &str = "turnkeep.agent.";
/// How many characters of an id are shown. The nodes of one run differ within fewer.
const SHORT_ID_CHARS: usize = 8;
const MICRO_PER_DOLLAR: u64 = 1_000_000;

/// What a line of a transcript says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpokenLine {
    /// Who did what, such as `assistant` or `call Bash`.
    head: String,
    /// The words.
    text: String,
}

impl SpokenLine {
    /// The line of a turn with this declared type; `None` if the type is no line of a transcript.
    pub(super) fn of_turn(declared_type: &str, data: &Map<String, Value>) -> Option<Self> {
        let fields = Fields(data);
        Some(match declared_type.strip_prefix(NAMESPACE)? {
            "UserMessage" => Self::new(fields.text("role"), fields.text("text")),
            "AssistantMessage" if fields.is_set("interrupted") => {
                Self::new("assistant (interrupted)", fields.text("text"))
            }
            "AssistantMessage" => Self::new("assistant", fields.text("text")),
            "Thinking" => Self::new("thinking", fields.text("text")),
            "ToolCall" => {
                let head = format!("call {}", fields.text("name"));
                Self::new(head, fields.text("args"))
            }
            "ToolResult" => tool_result(&fields),
            "Handoff" => handoff(&fields),
            "Usage" => Self::new("usage", usage(&fields)),
            _ => return None,
        })
    }

    fn new(head: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            text: text.into(),
        }
    }

    /// The turn as lines: a head, an empty line, the words.
    pub(super) fn block_lines(&self) -> Vec<String> {
        let mut lines = vec![printable(&self.head)];
        if !self.text.trim().is_empty() {
            lines.push(String::new());
            lines.extend(self.text.lines().map(printable));
        }
        lines
    }

    /// The turn in one line: the head, and the first line that says something.
    pub(super) fn summary(&self) -> String {
        let mut lines = self.text.lines();
        let said = lines.find(|line| !line.trim().is_empty());
        let head = printable(&self.head);
        said.map_or_else(
            || head.clone(),
            |said| format!("{head}: {}", printable(said)),
        )
    }
}

/// The fields of a turn.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    fn text(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// A number. The projection writes those that JSON cannot hold exactly as text.
    fn number(&self, name: &str) -> u64 {
        let value = self.0.get(name);
        let written = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        value
            .and_then(|value| value.as_u64().or_else(|| written(value)))
            .unwrap_or_default()
    }
}

fn tool_result(fields: &Fields<'_>) -> SpokenLine {
    let head = match (fields.is_set("ok"), fields.is_set("truncated")) {
        (true, false) => "result",
        (true, true) => "result (its beginning)",
        (false, _) => "result (failed)",
    };
    let output = fields.find("error").or_else(|| fields.find("output"));
    SpokenLine::new(head, output.unwrap_or_default())
}

fn handoff(fields: &Fields<'_>) -> SpokenLine {
    let short = |id: &str| id.chars().take(SHORT_ID_CHARS).collect::<String>();
    let from = short(fields.text("from"));
    let to = short(fields.text("to"));
    let mut head = format!("handoff {from} to {to}");
    if let Some(Value::Bool(false)) = fields.0.get("ok") {
        head.push_str(" (failed)");
    }
    SpokenLine::new(head, fields.text("message"))
}

fn usage(fields: &Fields<'_>) -> String {
    let (sent, received) = (
        fields.number("prompt_tokens"),
        fields.number("completion_tokens"),
    );
    let micro = fields.number("cost_micro_usd");
    let (dollars, rest) = (micro / MICRO_PER_DOLLAR, micro % MICRO_PER_DOLLAR);
    format!("{sent} tokens sent, {received} received, ${dollars}.{rest:06}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: &str, data: &Value, summary: &str, block: &[&str]) {
        let declared = format!("turnkeep.agent.{kind}");
        let line = SpokenLine::of_turn(&declared, data.as_object().unwrap()).unwrap();
        assert_eq!(line.summary(), summary);
        assert_eq!(line.block_lines(), block);
    }

    #[test]
    fn a_transcript_reads_like_the_conversation() {
        check(
            "UserMessage",
            &json!({"at": 1, "id": "x", "text": "Fix it\nsoon\u{1b}", "role": "user"}),
            "user: Fix it",
            &["user", "", "Fix it", "soon\\u{1b}"],
        );
        check(
            "AssistantMessage",
            &json!({"text": "Done.", "interrupted": true}),
            "assistant (interrupted): Done.",
            &["assistant (interrupted)", "", "Done."],
        );
        check(
            "ToolCall",
            &json!({"tool_id": "t", "name": "Bash", "args": "{\"cmd\":\"ls\"}"}),
            "call Bash: {\"cmd\":\"ls\"}",
            &["call Bash", "", "{\"cmd\":\"ls\"}"],
        );
        check(
            "ToolResult",
            &json!({"tool_id": "t", "ok": true}),
            "result",
            &["result"],
        );
        check(
            "ToolResult",
            &json!({"tool_id": "t", "error": "denied", "output": "x"}),
            "result (failed): denied",
            &["result (failed)", "", "denied"],
        );
        check(
            "Handoff",
            &json!({"from": "0123456789ab", "to": "ba9876543210", "message": "Test it", "ok": false}),
            "handoff 01234567 to ba987654 (failed): Test it",
            &["handoff 01234567 to ba987654 (failed)", "", "Test it"],
        );
        check(
            "Usage",
            &json!({"prompt_tokens": 100, "completion_tokens": "50", "cost_micro_usd": 1_250_000}),
            "usage: 100 tokens sent, 50 received, $1.250000",
            &["usage", "", "100 tokens sent, 50 received, $1.250000"],
        );
    }

    #[test]
    fn another_type_is_no_line_of_a_transcript() {
        let data = Map::new();
        for declared in ["com.example.Message", "turnkeep.agent.Later"] {
            assert_eq!(SpokenLine::of_turn(declared, &data), None);
        }
    }
}
