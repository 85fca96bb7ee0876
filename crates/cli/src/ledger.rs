//! What the commands of the ledger share: how a world is addressed, envelopes, and entries for people's eyes.

use anyhow::Result;
use serde_json::{Value, json};

use crate::data_dir::random_bytes;
use crate::http::Call;
use crate::output::{Output, Style};
use crate::render::printable;
use crate::render::turn::{date_text, text_of};

/// The operator's seat.
const OPERATOR: &str = "GEORGE";
/// What the command line calls itself in envelopes.
const INVOKER: &str = "turnkeep-cli";

/// A path in a world.
pub(crate) fn path(world: &str, tail: &str) -> String {
    format!("/v1/worlds/{}{tail}", turnkeep_wire::percent_encode(world))
}

/// The call as somebody, if a person's seat is taken.
pub(crate) fn acting(call: Call, person: Option<&str>) -> Call {
    match person {
        Some(person) => call.query("as", person),
        None => call,
    }
}

/// An id that nobody used before.
pub(crate) fn fresh_id() -> Result<String> {
    let random = random_bytes()?;
    Ok(format!("cli-{}", hex::encode(random.get(..16).unwrap_or(&random))))
}

/// An envelope with the operator's words, or with none.
pub(crate) fn envelope(request: &str, words: &str) -> Value {
    json!({
        "request_id": request,
        "invoker": { "invoker_id": INVOKER, "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": OPERATOR, "input_text": words },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

/// A tool request in somebody's name, with that one's eyes.
pub(crate) fn tool_request(actor: &str, tool: &str, query_text: &str, constraints: &Value) -> Result<Value> {
    let id = fresh_id()?;
    Ok(json!({
        "tool_request_id": id,
        "request_id": id,
        "requested_by": { "engine": INVOKER, "actor": actor, "knowledge_view": actor },
        "tool": { "name": tool, "query_text": query_text, "constraints": constraints },
    }))
}

/// Shows an entry: when, who, and the words; `who` where the entry itself has no label.
pub(crate) fn print_entry(entry: &Value, out: &mut Output) -> Result<()> {
    let id = out.paint(Style::Id, text_of(entry, "entry_id"));
    let when = out.paint(Style::Faint, &date_text(text_of(entry, "created_at_world")));
    let who = match who(entry).as_str() {
        "" => String::new(),
        who => format!(" {}", out.paint(Style::Name, &printable(who))),
    };
    out.line(format!("{id} {when}{who}{}", audience(entry)))?;
    for line in text_of(entry, "text").lines() {
        out.line(format!("    {}", printable(line)))?;
    }
    Ok(())
}

/// The label that a stream shows, or the author of a committed entry.
fn who(entry: &Value) -> String {
    if let Some(label) = entry.get("author_label").and_then(Value::as_str) {
        return label.to_owned();
    }
    let author = entry.pointer("/author/author_id").and_then(Value::as_str);
    match (author, text_of(entry, "channel")) {
        (Some(author), _) => author.to_owned(),
        (None, "USER") => "(operator)".to_owned(),
        (None, _) => String::new(),
    }
}

fn audience(entry: &Value) -> String {
    let readers = entry.pointer("/visibility/visible_to").and_then(Value::as_array);
    let readers: Vec<_> = readers.into_iter().flatten().filter_map(Value::as_str).map(printable).collect();
    if readers.is_empty() { String::new() } else { format!(" to {} only", readers.join(", ")) }
}

/// The entries of a list in an answer.
pub(crate) fn entries<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
