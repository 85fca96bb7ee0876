//! The invocation envelope: the one shape in which something is asked of a world.
//!
//! [`Envelope::parse`] checks in a fixed order and stops at the first fault: the sections are there and
//! are objects, then `request_id`, `invoker`, `operator`, `mode`, `declared_overrides`, `ui`. Unknown fields
//! are ignored. A refused envelope leaves no trace; whether the caller may speak as the operator is for
//! whoever knows the caller ([`Envelope::speaks_as_operator`]).

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::config::{Config, People};
use crate::fault::{Code, Fault};
use crate::ids::OPERATOR;
use crate::json::{self, Node};
use crate::time::{WorldTime, Zone};

/// The characters of a request id.
pub const REQUEST_ID_CHARACTERS_MAX: usize = 200;
/// The bytes of what the operator says at once.
pub const INPUT_TEXT_BYTES_MAX: usize = 1 << 20;
/// The bytes of an invoker's id.
pub const INVOKER_ID_BYTES_MAX: usize = 1024;

const ROLE: &str = "INVOKER";
const DECLARED_TIME_PATH: &str = "declared_overrides.time.declared_world_time";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something may be written.
    Beat,
    /// Nothing is written: only look.
    NoOp,
}

impl Kind {
    fn from_word(word: &str) -> Option<Self> {
        match word {
            "BEAT" => Some(Self::Beat),
            "NO_OP" => Some(Self::NoOp),
            _ => None,
        }
    }
}

/// A valid envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The caller's id of the request.
    pub request_id: Arc<str>,
    /// Who carries the request; never the operator or a human.
    pub invoker_id: String,
    /// For the audit only.
    pub notes: Option<String>,
    /// The operator's words, to the byte; empty says nothing.
    pub input_text: String,
    /// What is asked for.
    pub kind: Kind,
    /// For the audit only.
    pub client_intent: Option<String>,
    /// The declared time as it was given; [`Envelope::declared_instant`] says when that is.
    pub declared_time: Option<String>,
    /// The declared zone.
    pub timezone: Option<Zone>,
    /// Pause, or go on.
    pub pause: Option<bool>,
    /// Where the reader's stream is to go on.
    pub cursor: Option<String>,
}

/// What is declared about time.
#[derive(Default)]
struct Overrides {
    declared_time: Option<String>,
    timezone: Option<Zone>,
    pause: Option<bool>,
}

/// The sections of an envelope; those that may be absent are none then.
struct Sections<'a> {
    root: Node<'a>,
    invoker: Node<'a>,
    operator: Node<'a>,
    mode: Node<'a>,
    overrides: Option<Node<'a>>,
    ui: Option<Node<'a>>,
}

impl Envelope {
    /// Reads an envelope that came to the world of this configuration and these people.
    pub fn parse(value: &Value, config: &Config, people: &People) -> Result<Self, Fault> {
        let sections = Sections::of(Node::root(value, Code::EnvelopeInvalid))?;
        let request_id = request_id(&sections.root)?;
        let (invoker_id, notes) = invoker(&sections.invoker, config, people)?;
        let input_text = operator(&sections.operator)?;
        let (kind, client_intent) = mode(&sections.mode)?;
        let overrides = sections.overrides.as_ref().map(overrides).transpose()?.unwrap_or_default();
        let cursor = sections.ui.as_ref().map(|ui| nullable_text(ui, "stream_cursor")).transpose()?.flatten();
        Ok(Self {
            request_id,
            invoker_id,
            notes,
            input_text,
            kind,
            client_intent,
            declared_time: overrides.declared_time,
            timezone: overrides.timezone,
            pause: overrides.pause,
            cursor,
        })
    }

    /// Whether it does what only the operator may: say something, or declare a time, a zone or a pause.
    pub fn speaks_as_operator(&self) -> bool {
        !self.input_text.is_empty() || self.declares()
    }

    /// Whether anything is declared about time.
    pub fn declares(&self) -> bool {
        self.declared_time.is_some() || self.timezone.is_some() || self.pause.is_some()
    }

    /// The declared time; a local one is meant in the declared zone, else in the world's.
    pub fn declared_instant(&self, world_zone: &Zone) -> Result<Option<WorldTime>, Fault> {
        let zone = self.timezone.as_ref().unwrap_or(world_zone);
        let resolve = |text: &String| WorldTime::parse_in(text, zone, DECLARED_TIME_PATH);
        self.declared_time.as_ref().map(resolve).transpose()
    }
}

impl<'a> Sections<'a> {
    fn of(root: Node<'a>) -> Result<Self, Fault> {
        let object = |node: Node<'a>| node.fields().map(|_| node.clone());
        let required = |key: &str| object(root.field(key)?);
        let optional = |key: &str| root.optional(key)?.map(object).transpose();
        let (invoker, operator, mode) = (required("invoker")?, required("operator")?, required("mode")?);
        let (overrides, ui) = (optional("declared_overrides")?, optional("ui")?);
        Ok(Self { root, invoker, operator, mode, overrides, ui })
    }
}

fn nullable_text(node: &Node<'_>, key: &str) -> Result<Option<String>, Fault> {
    node.optional(key)?.map(|node| node.text().map(str::to_owned)).transpose()
}

/// Whether a text may be a request's id.
pub fn is_request_id(text: &str) -> bool {
    let characters = text.chars().take(REQUEST_ID_CHARACTERS_MAX + 1).count();
    (1..=REQUEST_ID_CHARACTERS_MAX).contains(&characters) && !text.chars().any(char::is_control)
}

fn request_id(root: &Node<'_>) -> Result<Arc<str>, Fault> {
    let given = root.value.get("request_id").and_then(Value::as_str).filter(|text| is_request_id(text));
    given.map(Arc::from).ok_or_else(|| {
        let message = "must be a string of 1 to 200 characters, none of them a control character";
        Fault::new(Code::RequestIdInvalid, "request_id", message)
    })
}

fn invoker(node: &Node<'_>, config: &Config, people: &People) -> Result<(String, Option<String>), Fault> {
    let role = node.field("invoker_role")?;
    if role.text()? != ROLE {
        return Err(role.fault("must be INVOKER"));
    }
    let given = node.field("invoker_id")?;
    let id = given.text()?;
    if id.trim().is_empty() || id.len() > INVOKER_ID_BYTES_MAX {
        return Err(given.fault("must be 1 to 1024 bytes that name the program that asks"));
    }
    if people.claims_to_be_human(id, &config.operator_label) {
        let message = "names the operator or a human: an invoker is the program that carries the request";
        return Err(Fault::new(Code::InvokerForbidden, given.path, message));
    }
    Ok((id.to_owned(), nullable_text(node, "notes")?))
}

fn operator(node: &Node<'_>) -> Result<String, Fault> {
    let id = node.field("operator_id")?;
    if id.text()? != OPERATOR {
        return Err(id.fault("must be GEORGE, the operator's seat in every world"));
    }
    let input = node.field("input_text")?;
    let text = input.text()?;
    if text.len() > INPUT_TEXT_BYTES_MAX {
        let message = format!("has {} bytes; at most {INPUT_TEXT_BYTES_MAX} fit", text.len());
        return Err(Fault::new(Code::TextTooLarge, input.path, message));
    }
    Ok(text.to_owned())
}

fn mode(node: &Node<'_>) -> Result<(Kind, Option<String>), Fault> {
    let kind = node.field("kind")?;
    let parsed = Kind::from_word(kind.text()?).ok_or_else(|| kind.fault("must be BEAT or NO_OP"))?;
    Ok((parsed, nullable_text(node, "client_intent")?))
}

fn overrides(node: &Node<'_>) -> Result<Overrides, Fault> {
    let mut overrides = Overrides::default();
    if let Some(time) = node.optional("time")? {
        overrides.declared_time = time.optional("declared_world_time")?.map(declared_time).transpose()?;
        overrides.timezone = time.optional("timezone")?.map(|node| timezone(&node)).transpose()?;
    }
    overrides.pause = node.optional("pause_time")?.map(|node| node.boolean()).transpose()?;
    Ok(overrides)
}

fn declared_time(node: Node<'_>) -> Result<String, Fault> {
    let format =
        || Fault::new(Code::TimeFormat, node.path, "must be a time in text, such as 2026-11-15T09:00:00Z");
    node.value.as_str().map(str::to_owned).ok_or_else(format)
}

fn timezone(node: &Node<'_>) -> Result<Zone, Fault> {
    Zone::named(node.text()?).ok_or_else(|| node.fault("is not a time zone of the IANA list"))
}

/// By what two requests are the same: the BLAKE3 of the canonical form of the envelope, without `ui` and
/// `invoker.notes`, and of the bundle that came with it.
pub fn fingerprint(envelope: &Value, bundle: Option<&Value>) -> [u8; 32] {
    let mut parts = vec![essential(envelope)];
    parts.extend(bundle.cloned());
    json::fingerprint(&Value::Array(parts))
}

fn essential(envelope: &Value) -> Value {
    let Some(fields) = envelope.as_object() else { return envelope.clone() };
    let kept = fields.iter().filter(|(key, _)| *key != "ui").map(|(key, value)| match key.as_str() {
        "invoker" => (key.clone(), without(value, "notes")),
        _ => (key.clone(), value.clone()),
    });
    Value::Object(kept.collect())
}

fn without(value: &Value, unwanted: &str) -> Value {
    let Some(fields) = value.as_object() else { return value.clone() };
    let kept = fields.iter().filter(|(key, _)| *key != unwanted);
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
}
