//! The lines between the server and an attached writer: JSON objects with a `type`.
//!
//! The server sends `beat`. The writer answers with any number of `tool` lines, each of which the
//! server answers with `result`, and then with `proposal` or `no_write`. Texts of the ledger are
//! only ever values of JSON fields. Nothing here does I/O.

use serde_json::{Value, json};
use turnkeep_ledger::Fault;
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::epoch::AnchorUpdate;
use turnkeep_ledger::fact::ClockState;
use turnkeep_ledger::json;

use super::failure::WriterFailure;
use super::{ACTOR, WriterAssignment};

/// How much of an unreadable line goes into the audit.
const GARBAGE_CHARACTERS_MAX: usize = 200;

/// A line from the writer.
pub(super) enum WriterLine {
    /// A tool request.
    Tool(Value),
    /// The bundle that it proposes.
    Proposal(Value),
    /// It adds nothing.
    NoWrite,
}

impl WriterLine {
    /// Parses a line.
    pub(super) fn parse(line: &[u8]) -> Result<Self, WriterFailure> {
        let mut value = json::parse(line).map_err(|_| garbage(line))?;
        let mut take = |field: &str| {
            let part = value.get_mut(field).map(Value::take);
            part.ok_or_else(|| garbage(line))
        };
        let kind = take("type")?;
        match kind.as_str() {
            Some("tool") => take("request").map(Self::Tool),
            Some("proposal") => take("bundle").map(Self::Proposal),
            Some("no_write") => Ok(Self::NoWrite),
            _ => Err(garbage(line)),
        }
    }
}

/// The failure for a line that the protocol does not know. The audit gets the start of the line.
pub(super) fn garbage(line: &[u8]) -> WriterFailure {
    let shown = match std::str::from_utf8(line) {
        Ok(text) => text.chars().take(GARBAGE_CHARACTERS_MAX).collect(),
        Err(_) => "no UTF-8".to_owned(),
    };
    WriterFailure::Garbage(shown)
}

/// The first line that the writer gets for a beat.
pub(super) fn beat_line(
    clock: &ClockState,
    envelope: &Envelope,
    assignment: &WriterAssignment,
    update: &AnchorUpdate,
) -> String {
    let persons = assignment.persons.as_ref();
    let persons = persons.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let mut message = json!({
        "type": "beat",
        "request_id": &*envelope.request_id,
        "world_time": clock.time.as_str(),
        "timezone": clock.timezone.as_str(),
        "operator_text": envelope.input_text,
        "actor": ACTOR,
        "may_author": persons,
        "view": assignment.viewer().as_str(),
    });
    match update {
        // The writer has this anchor already, so its id is enough.
        AnchorUpdate::Unchanged(anchor) => message["scene_anchor_id"] = anchor.to_string().into(),
        AnchorUpdate::New(new) => {
            let pack = |text: &str| json::parse(text.as_bytes()).unwrap_or_default();
            message["scene_anchor"] = pack(&new.epoch.anchor);
            if let Some(rehydration) = &new.epoch.rehydration {
                message["rehydration"] = pack(rehydration);
            }
        }
    }
    message.to_string()
}

/// The line that answers a tool request. A pack is JSON already; parsing it again would only cost
/// time.
pub(super) fn result_line(answered: &Result<impl AsRef<str>, Fault>) -> String {
    match answered {
        Ok(pack) => format!("{{\"type\":\"result\",\"pack\":{}}}", pack.as_ref()),
        Err(fault) => {
            let error =
                json!({ "code": fault.code.word(), "path": fault.path, "message": fault.message });
            json!({ "type": "result", "error": error }).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8]) -> String {
        match WriterLine::parse(line) {
            Ok(WriterLine::Tool(request)) => format!("tool {request}"),
            Ok(WriterLine::Proposal(bundle)) => format!("proposal {bundle}"),
            Ok(WriterLine::NoWrite) => "no_write".to_owned(),
            Err(WriterFailure::Garbage(text)) => format!("garbage {text}"),
            Err(other) => other.to_string(),
        }
    }

    #[test]
    fn a_line_is_a_tool_request_a_proposal_or_no_write() {
        for (line, expect) in [
            (
                &br#"{"type":"tool","request":{"a":1}}"#[..],
                r#"tool {"a":1}"#,
            ),
            (br#"{"type":"proposal","bundle":[]}"#, "proposal []"),
            (br#"{"type":"no_write","more":1}"#, "no_write"),
            (br#"{"type":"tool"}"#, r#"garbage {"type":"tool"}"#),
            (br#"{"request":1}"#, r#"garbage {"request":1}"#),
            (br#"{"type":"beat"}"#, r#"garbage {"type":"beat"}"#),
            (b"hello", "garbage hello"),
            (b"\xff", "garbage no UTF-8"),
        ] {
            assert_eq!(shown(line), expect);
        }
    }
}
