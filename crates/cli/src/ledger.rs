//! What the commands of the ledger share: paths of a world, envelopes, the people of a world, and
//! how entries are printed.

use anyhow::Result;
use serde_json::{Value, json};

use crate::answer::{list_at, text_of};
use crate::data_dir::random_bytes;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::output::{Output, Style};
use crate::render::printable;
use crate::render::turn::date_text;

/// The fixed id of the operator, which people see by the operator's label.
pub(crate) const OPERATOR: &str = "GEORGE";
/// The name of this program in envelopes.
const INVOKER: &str = "turnkeep-cli";

/// The path of a resource of a world.
pub(crate) fn world_path(world: &str, tail: &str) -> String {
    format!("/v1/worlds/{}{tail}", turnkeep_wire::percent_encode(world))
}

/// The call in a person's name, if one is given.
pub(crate) fn call_as(call: Call, person: Option<&str>) -> Call {
    call.query_if("as", person)
}

/// A new random id for a request.
pub(crate) fn fresh_id() -> Result<String> {
    // 128 bits cannot collide by accident.
    Ok(format!("cli-{}", hex::encode(random_bytes::<16>()?)))
}

/// An envelope with the operator's words, which may be empty.
pub(crate) fn beat_envelope(request: &str, words: &str) -> Value {
    json!({
        "request_id": request,
        "invoker": { "invoker_id": INVOKER, "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": OPERATOR, "input_text": words },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

/// A tool request in a person's name. It sees what that person may see.
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

/// The people of a world, as every reader of it may know them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cast {
    /// The person whose view the caller has without `--as`.
    pub(crate) view: String,
    operator_label: String,
    persons: Vec<String>,
    /// Whether only added persons exist in this world.
    is_closed: bool,
}

/// How many people an error message lists.
const NAMED_MAX: usize = 20;

impl Cast {
    /// Asks the server for the people of a world.
    pub(crate) async fn load(http: &mut Http, world: &str) -> Result<Self> {
        let seat = http.json(Call::get(world_path(world, "/seat"))).await?;
        let person = |person: &Value| text_of(person, "person_id").to_owned();
        Ok(Self {
            view: text_of(&seat, "view").to_owned(),
            operator_label: text_of(&seat, "operator_label").to_owned(),
            persons: list_at(&seat, "/persons").iter().map(person).collect(),
            is_closed: text_of(&seat, "registry") == "CLOSED",
        })
    }

    /// Whether this is the operator's id.
    pub(crate) fn is_operator(id: &str) -> bool {
        id == OPERATOR
    }

    /// The name that people see: the operator's label for the operator, else the id.
    pub(crate) fn display_name<'a>(&'a self, id: &'a str) -> &'a str {
        if id == OPERATOR && !self.operator_label.is_empty() {
            &self.operator_label
        } else {
            id
        }
    }

    /// The id of the person whom the command line names. The operator may be named by id or label.
    /// A closed world refuses an unknown person; the hint lists the persons that it has.
    pub(crate) fn resolve_name(&self, named: &str) -> Result<String> {
        // An id wins over a label: a label may be anything, also somebody's id.
        if named == OPERATOR || self.persons.iter().any(|person| person == named) {
            return Ok(named.to_owned());
        }
        if !named.is_empty() && named == self.operator_label {
            return Ok(OPERATOR.to_owned());
        }
        // In an open world, a person exists as soon as somebody is addressed by that name.
        if !self.is_closed {
            return Ok(named.to_owned());
        }
        let named = printable(named);
        Failure::usage(format!("there is no person `{named}` in this world"))
            .hint(format!("there are: {}", self.names_text()))
            .fail()
    }

    fn names_text(&self) -> String {
        let mut names: Vec<String> = self.persons.iter().take(NAMED_MAX).cloned().collect();
        let more = self.persons.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.push(printable(self.display_name(OPERATOR)));
        names.join(", ")
    }
}

pub(crate) fn print_entries(entries: &[Value], cast: &Cast, out: &mut Output) -> Result<()> {
    entries
        .iter()
        .try_for_each(|entry| print_entry(entry, cast, out))
}

/// Prints an entry: its id, its time, its author, its audience, and its text.
pub(crate) fn print_entry(entry: &Value, cast: &Cast, out: &mut Output) -> Result<()> {
    let id = out.paint(Style::Id, text_of(entry, "entry_id"));
    let when = out.paint(Style::Faint, &date_text(text_of(entry, "created_at_world")));
    let who = match author_text(entry, cast).as_str() {
        "" => String::new(),
        who => format!(" {}", out.paint(Style::Name, &printable(who))),
    };
    out.line(format!("{id} {when}{who}{}", audience_text(entry, cast)))?;
    for line in text_of(entry, "text").lines() {
        out.line(format!("    {}", printable(line)))?;
    }
    Ok(())
}

/// The author's name. A stream has a label; a committed entry has an author's id; the operator's
/// own words have neither, and are recognised by their channel.
fn author_text(entry: &Value, cast: &Cast) -> String {
    if let Some(label) = entry.get("author_label").and_then(Value::as_str) {
        return label.to_owned();
    }
    let author = entry.pointer("/author/author_id").and_then(Value::as_str);
    match (author, text_of(entry, "channel")) {
        (Some(author), _) => cast.display_name(author).to_owned(),
        (None, "USER") => cast.display_name(OPERATOR).to_owned(),
        (None, _) => String::new(),
    }
}

/// Who may see an entry, if the answer contains that.
fn audience_text(entry: &Value, cast: &Cast) -> String {
    let Some(visibility) = entry.get("visibility") else {
        return String::new();
    };
    let readers = list_at(visibility, "/visible_to").iter();
    let readers = readers.filter_map(Value::as_str);
    let readers: Vec<_> = readers
        .map(|reader| printable(cast.display_name(reader)))
        .collect();
    if readers.is_empty() {
        " to everyone".to_owned()
    } else {
        format!(" to {} only", readers.join(", "))
    }
}
