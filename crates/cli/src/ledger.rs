//! What the commands of the ledger share: how a world is addressed, envelopes, and entries for
//! people's eyes.

use anyhow::Result;
use serde_json::{Value, json};

use crate::data_dir::random_bytes;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::output::{Output, Style};
use crate::render::printable;
use crate::render::turn::{date_text, text_of};

/// The operator's seat.
pub(crate) const OPERATOR: &str = "GEORGE";
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
    Ok(format!(
        "cli-{}",
        hex::encode(random.get(..16).unwrap_or(&random))
    ))
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
pub(crate) fn tool_request(
    actor: &str,
    tool: &str,
    query_text: &str,
    constraints: &Value,
) -> Result<Value> {
    let id = fresh_id()?;
    Ok(json!({
        "tool_request_id": id,
        "request_id": id,
        "requested_by": { "engine": INVOKER, "actor": actor, "knowledge_view": actor },
        "tool": { "name": tool, "query_text": query_text, "constraints": constraints },
    }))
}

/// Who is who in a world, as everybody there may know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cast {
    /// With whose eyes the caller looks without `--as`.
    pub(crate) view: String,
    operator_label: String,
    persons: Vec<String>,
    is_closed: bool,
}

/// So many people are named to whoever named nobody.
const NAMED_MAX: usize = 20;

impl Cast {
    /// Of a world.
    pub(crate) async fn of(http: &mut Http, world: &str) -> Result<Self> {
        let seat = http.json(Call::get(path(world, "/seat"))).await?;
        let person = |person: &Value| text_of(person, "person_id").to_owned();
        Ok(Self {
            view: text_of(&seat, "view").to_owned(),
            operator_label: text_of(&seat, "operator_label").to_owned(),
            persons: entries(&seat, "/persons").iter().map(person).collect(),
            is_closed: text_of(&seat, "registry") == "CLOSED",
        })
    }

    /// Whether this is the operator's seat.
    pub(crate) fn is_operator(id: &str) -> bool {
        id == OPERATOR
    }

    /// What somebody is called for people's eyes: the operator has one name in all outputs.
    pub(crate) fn name<'a>(&'a self, id: &'a str) -> &'a str {
        if id == OPERATOR && !self.operator_label.is_empty() {
            &self.operator_label
        } else {
            id
        }
    }

    /// The id of whoever is named on the command line: a person's id, or the operator by seat or
    /// label. Somebody whom a closed world does not have is refused with the list of those whom it
    /// has.
    pub(crate) fn resolve(&self, named: &str) -> Result<String> {
        if named == OPERATOR || self.persons.iter().any(|person| person == named) {
            return Ok(named.to_owned());
        }
        if !named.is_empty() && named == self.operator_label {
            return Ok(OPERATOR.to_owned());
        }
        if !self.is_closed {
            return Ok(named.to_owned());
        }
        let failure = Failure::usage(format!(
            "there is no person `{}` in this world",
            printable(named)
        ));
        Err(failure
            .hint(format!("there are: {}", self.in_words()))
            .into())
    }

    fn in_words(&self) -> String {
        let persons = self.persons.iter().take(NAMED_MAX).map(String::as_str);
        let mut names: Vec<String> = persons.map(str::to_owned).collect();
        if let Some(more) = self
            .persons
            .len()
            .checked_sub(NAMED_MAX)
            .filter(|more| *more > 0)
        {
            names.push(format!("{more} more"));
        }
        names.push(printable(self.name(OPERATOR)));
        names.join(", ")
    }
}

/// Shows an entry: when, who, for whom, and the words.
pub(crate) fn print_entry(entry: &Value, cast: &Cast, out: &mut Output) -> Result<()> {
    let id = out.paint(Style::Id, text_of(entry, "entry_id"));
    let when = out.paint(Style::Faint, &date_text(text_of(entry, "created_at_world")));
    let who = match who(entry, cast).as_str() {
        "" => String::new(),
        who => format!(" {}", out.paint(Style::Name, &printable(who))),
    };
    out.line(format!("{id} {when}{who}{}", audience(entry, cast)))?;
    for line in text_of(entry, "text").lines() {
        out.line(format!("    {}", printable(line)))?;
    }
    Ok(())
}

/// The label that a stream shows, or the author of a committed entry.
fn who(entry: &Value, cast: &Cast) -> String {
    if let Some(label) = entry.get("author_label").and_then(Value::as_str) {
        return label.to_owned();
    }
    let author = entry.pointer("/author/author_id").and_then(Value::as_str);
    match (author, text_of(entry, "channel")) {
        (Some(author), _) => cast.name(author).to_owned(),
        (None, "USER") => cast.name(OPERATOR).to_owned(),
        (None, _) => String::new(),
    }
}

/// Who may see an entry, where the answer says so.
fn audience(entry: &Value, cast: &Cast) -> String {
    let Some(visibility) = entry.get("visibility") else {
        return String::new();
    };
    let readers = entries(visibility, "/visible_to")
        .iter()
        .filter_map(Value::as_str);
    let readers: Vec<_> = readers.map(|reader| printable(cast.name(reader))).collect();
    if readers.is_empty() {
        " to everyone".to_owned()
    } else {
        format!(" to {} only", readers.join(", "))
    }
}

/// The entries of a list in an answer.
pub(crate) fn entries<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
