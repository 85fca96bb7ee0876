//! One turn as a block of lines, as one line, or beside a graph.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};
use turnkeep_types::Timestamp;

use super::transcript::SpokenLine;
use super::{captured, msgpack, printable, shorten_to_chars, shorten_to_columns, text_columns};
use crate::answer::{list_at, number_of, text_of};
use crate::http::NO_TURN;
use crate::output::{Output, Style, bytes_text};

/// How much of a turn fits in one line.
const SUMMARY_CHARS_MAX: usize = 100;

/// A turn as the server returns it, with the contexts whose head it is.
pub(crate) struct ShownTurn<'a> {
    pub(crate) turn: &'a Value,
    /// The contexts whose head it is.
    pub(crate) heads: &'a [String],
}

impl ShownTurn<'_> {
    /// The turn's id as text.
    pub(crate) fn id(&self) -> &str {
        text_of(self.turn, "turn_id")
    }

    /// The turn as one line; its summary is cut where so many columns end.
    pub(crate) fn one_line(&self, columns: Option<usize>, out: &Output) -> String {
        let (id, type_name) = (self.id(), type_text(self.turn));
        // Without colours, which take no columns.
        let heads = match self.heads {
            [] => String::new(),
            heads => format!(" ({})", heads.join(", ")),
        };
        let taken = text_columns(&format!("{id}{heads} {type_name} "));
        // Bounded first: a summary can be megabytes, and measuring columns walks over all of it.
        let summary = shorten_to_chars(&self.summary_text(), SUMMARY_CHARS_MAX);
        let summary = match columns {
            Some(columns) => shorten_to_columns(&summary, columns.saturating_sub(taken)),
            None => summary,
        };
        let id = out.paint(Style::Id, id);
        let type_name = out.paint(Style::Faint, &type_name);
        format!("{id}{} {type_name} {summary}", self.heads_text(out))
    }

    /// The turn as a block: its head lines, an empty line, its content indented.
    pub(crate) fn block_lines(&self, out: &Output) -> Vec<String> {
        let id = out.paint(Style::Id, &format!("turn {}", self.id()));
        let mut lines = vec![format!("{id}{}", self.heads_text(out))];
        for (name, value) in self.fact_pairs() {
            lines.push(format!("{:9}{value}", format!("{name}:")));
        }
        lines.push(String::new());
        for line in self.content_lines() {
            lines.push(format!("    {line}").trim_end().to_owned());
        }
        lines
    }

    fn fact_pairs(&self) -> Vec<(&'static str, String)> {
        let turn = self.turn;
        let mut facts = vec![
            ("Type", type_text(turn)),
            ("Context", format!("ctx:{}", text_of(turn, "context_id"))),
        ];
        let parent = text_of(turn, "parent_turn_id");
        if parent != NO_TURN {
            facts.push(("Parent", format!("turn:{parent}")));
        }
        facts.push(("Date", date_text(text_of(turn, "created_at"))));
        facts.extend(payload_text(turn).map(|payload| ("Payload", payload)));
        let root = text_of(turn, "fs_root_hash");
        if !root.is_empty() {
            facts.push(("Files", format!("blob:{root}")));
        }
        facts
    }

    /// The turn's content: its fields by name, or its msgpack if its type is unknown.
    fn content_lines(&self) -> Vec<String> {
        let mut lines = self.data_lines();
        for (tag, value) in self.object("unknown").into_iter().flatten() {
            lines.push(format!("?{}: {}", printable(tag), inline_text(value)));
        }
        for warning in list_at(self.turn, "/warnings") {
            let message = printable(text_of(warning, "message"));
            lines.push(format!("warning: {message}"));
        }
        if let Some(error) = self.projection_error() {
            let message = printable(text_of(error, "message"));
            lines.push(format!("error: {message}"));
        }
        lines
    }

    fn data_lines(&self) -> Vec<String> {
        match (self.object("data"), payload_bytes(self.turn)) {
            (Some(data), _) if self.is_captured() => captured::turn_lines(data),
            (Some(data), _) => match self.spoken_line(data) {
                Some(line) => line.block_lines(),
                None => all_field_lines(data),
            },
            (None, Some(payload)) => vec![msgpack::show_payload(&payload)],
            (None, None) => Vec::new(),
        }
    }

    fn summary_text(&self) -> String {
        match (self.object("data"), payload_bytes(self.turn)) {
            (Some(data), _) if self.is_captured() => captured::summary_line(data),
            (Some(data), _) => match self.spoken_line(data) {
                Some(line) => line.summary(),
                None => fields_line(data),
            },
            (None, Some(payload)) => msgpack::show_payload(&payload),
            (None, None) if self.projection_error().is_some() => "(payload damaged)".to_owned(),
            (None, None) => String::new(),
        }
    }

    fn object(&self, field: &str) -> Option<&Map<String, Value>> {
        self.turn.get(field)?.as_object()
    }

    /// Why the turn could not be projected, unless only its type is missing.
    fn projection_error(&self) -> Option<&Value> {
        self.turn.get("error").filter(|error| !lacks_type(error))
    }

    fn declared_type(&self) -> &str {
        let declared = self.turn.get("declared_type").unwrap_or(&Value::Null);
        text_of(declared, "type_id")
    }

    fn is_captured(&self) -> bool {
        captured::is_captured(self.declared_type())
    }

    /// The turn as a line of an agent's transcript, if it is one.
    fn spoken_line(&self, data: &Map<String, Value>) -> Option<SpokenLine> {
        SpokenLine::of_turn(self.declared_type(), data)
    }

    fn heads_text(&self, out: &Output) -> String {
        if self.heads.is_empty() {
            return String::new();
        }
        format!(" ({})", out.paint(Style::Name, &self.heads.join(", ")))
    }
}

/// `2026-01-31T12:00:00.000Z` as `2026-01-31 12:00:00 UTC`; any other text as it is.
pub(crate) fn date_text(time: &str) -> String {
    if let Some((date, clock)) = time.split_once('T')
        && let Some(seconds) = clock.get(.."12:00:00".len())
        && time.ends_with('Z')
    {
        return format!("{date} {seconds} UTC");
    }
    printable(time)
}

/// How long ago something was, in its largest unit.
pub(crate) fn age_since(then: Timestamp, now: Timestamp) -> String {
    // A clock that was set back must not show a huge age.
    let seconds = now.0.saturating_sub(then.0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn type_text(turn: &Value) -> String {
    let declared = turn.get("declared_type").unwrap_or(&Value::Null);
    match text_of(declared, "type_id") {
        "" => "(no type)".to_owned(),
        id => format!("{}@{}", printable(id), number_of(declared, "type_version")),
    }
}

/// Whether a projection failed only because the type is not published. Then the turn is sound.
fn lacks_type(error: &Value) -> bool {
    matches!(
        text_of(error, "code"),
        "FailedDependency" | "MissingTypeHint"
    )
}

/// The payload's length and hash. A typed view leaves them out.
fn payload_text(turn: &Value) -> Option<String> {
    let hash = text_of(turn, "content_hash_b3");
    let length = turn.get("uncompressed_len")?.as_u64()?;
    (!hash.is_empty()).then(|| format!("{}, blob:{hash}", bytes_text(length)))
}

fn payload_bytes(turn: &Value) -> Option<Vec<u8>> {
    BASE64_STANDARD
        .decode(turn.get("bytes_b64")?.as_str()?)
        .ok()
}

/// All fields in one line.
fn fields_line(data: &Map<String, Value>) -> String {
    let fields = data.iter();
    let texts = fields.map(|(name, value)| format!("{}={}", printable(name), inline_text(value)));
    texts.collect::<Vec<_>>().join(" ")
}

/// All fields, one below the other.
fn all_field_lines(data: &Map<String, Value>) -> Vec<String> {
    let fields = data.iter();
    fields
        .flat_map(|(name, value)| field_lines(name, value))
        .collect()
}

/// A field as lines: a text of several lines stands indented below its name.
fn field_lines(name: &str, value: &Value) -> Vec<String> {
    let name = printable(name);
    match value {
        // A text of one line with a newline at its end still fits on the name's line.
        Value::String(text) if text.trim_end_matches('\n').contains('\n') => {
            let lines = text.lines().map(|line| format!("    {}", printable(line)));
            std::iter::once(format!("{name}:")).chain(lines).collect()
        }
        value => vec![format!("{name}: {}", inline_text(value))],
    }
}

/// A value in one line: a text as it is, anything else as JSON.
fn inline_text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text.trim_end_matches('\n')),
        value => printable(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::ColorChoice;

    fn check(turn: &Value, line: &str, block: &[&str]) {
        let out = Output::stdout(false, ColorChoice::Never, false);
        let shown = ShownTurn {
            turn,
            heads: &["ctx:1".to_owned()],
        };
        assert_eq!(shown.one_line(None, &out), line);
        for columns in [line.chars().count(), 40, 60] {
            let cut = shown.one_line(Some(columns), &out);
            assert!(
                cut.chars().count() <= columns.max(33) && cut.starts_with(&line[..10]),
                "{cut}"
            );
        }
        assert_eq!(shown.block_lines(&out), block);
    }

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        for (seconds, expect) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m"),
            (3660, "1h01m"),
            (172_800, "2d"),
        ] {
            assert_eq!(
                age_since(Timestamp(5_000), Timestamp(5_000 + seconds * 1000)),
                expect
            );
        }
        assert_eq!(
            age_since(Timestamp(9), Timestamp(0)),
            "0s",
            "a clock that was set back"
        );
    }

    #[test]
    fn a_typed_turn_shows_its_fields() {
        let turn = json!({
            "turn_id": "7", "parent_turn_id": "6", "depth": 6, "context_id": "1", "created_at": "2026-01-31T12:00:00.123Z",
            "declared_type": {"type_id": "com.example.Message", "type_version": 1},
            "data": {"role": "user", "text": "two\nlines\n", "count": 3}, "unknown": {"9": [1, 2]},
        });
        check(
            &turn,
            "7 (ctx:1) com.example.Message@1 role=user text=two\\u{a}lines count=3",
            &[
                "turn 7 (ctx:1)",
                "Type:    com.example.Message@1",
                "Context: ctx:1",
                "Parent:  turn:6",
                "Date:    2026-01-31 12:00:00 UTC",
                "",
                "    role: user",
                "    text:",
                "        two",
                "        lines",
                "    count: 3",
                "    ?9: [1,2]",
            ],
        );
    }

    #[test]
    fn a_turn_of_an_unknown_type_shows_its_msgpack() {
        let turn = json!({
            "turn_id": "1", "parent_turn_id": "0", "depth": 0, "context_id": "1", "created_at": "2026-01-31T12:00:00.123Z",
            "declared_type": {"type_id": "", "type_version": 0}, "content_hash_b3": "ab", "uncompressed_len": 3,
            "bytes_b64": "gQEC", "error": {"code": "MissingTypeHint", "status": 422, "message": "no type"},
        });
        check(
            &turn,
            "1 (ctx:1) (no type) {1: 2}",
            &[
                "turn 1 (ctx:1)",
                "Type:    (no type)",
                "Context: ctx:1",
                "Date:    2026-01-31 12:00:00 UTC",
                "Payload: 3 B, blob:ab",
                "",
                "    {1: 2}",
            ],
        );
    }
}
