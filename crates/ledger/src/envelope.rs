//! The invocation envelope: the one shape of requests to a world.
//!
//! [`Envelope::parse`] checks in a fixed order and stops at the first fault: the sections must be
//! present and objects, then come `request_id`, `invoker`, `operator`, `mode`, `declared_overrides`
//! and `ui`. Unknown fields are ignored. Parsing does not depend on a world, so a request that was
//! answered once stays readable for ever. The world checks the invoker's name
//! ([`Envelope::check_invoker`]). The edge, which knows the caller, checks whether the caller may
//! speak as the operator ([`Envelope::speaks_as_operator`]). A rejected envelope leaves no trace.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::config::{Config, People};
use crate::fault::{Code, Fault};
use crate::ids::OPERATOR;
use crate::json::{self, Node};
use crate::time::{self, WorldTime, Zone};

/// Characters of a request id.
pub const REQUEST_ID_CHARACTERS_MAX: usize = 200;
/// Bytes of the operator's text.
pub const INPUT_TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes that are kept of a remark for the audit.
const REMARK_BYTES_MAX: usize = 16 << 10;
/// Bytes of an invoker's id.
pub const INVOKER_ID_BYTES_MAX: usize = 1024;

const ROLE: &str = "INVOKER";
const DECLARED_TIME_PATH: &str = "declared_overrides.time.declared_world_time";

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvelopeKind {
    /// The request may write.
    Beat,
    /// The request only reads.
    NoOp,
}

impl EnvelopeKind {
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
    /// The program that sends the request; never the operator or a human.
    pub invoker_id: String,
    /// For the audit only.
    pub notes: Option<String>,
    /// The operator's text, byte for byte; empty if the operator says nothing.
    pub input_text: String,
    /// The kind of request.
    pub kind: EnvelopeKind,
    /// For the audit only.
    pub client_intent: Option<String>,
    /// The declared time as it was sent; [`Envelope::declared_instant`] resolves it.
    pub declared_time: Option<String>,
    /// The declared zone.
    pub timezone: Option<Zone>,
    /// Whether the clock pauses after the beat.
    pub pause: Option<bool>,
    /// Where the page of the answer begins.
    pub cursor: Option<String>,
    /// For the audit only, in any format.
    pub client_timestamp: Option<String>,
}

/// The path at which an envelope, valid or not, does what only the operator may do; `None` if it
/// does not.
pub fn operator_path(value: &Value) -> Option<&'static str> {
    // Works on an envelope that was not parsed, so that a person's token is rejected before any
    // fault of the envelope is reported.
    let declared = ["time/declared_world_time", "time/timezone", "pause_time"];
    let said = |name: &&str| {
        value
            .pointer(&format!("/declared_overrides/{name}"))
            .is_some_and(|v| !v.is_null())
    };
    if declared.iter().any(said) {
        return Some("declared_overrides");
    }
    let words = value
        .pointer("/operator/input_text")
        .and_then(Value::as_str);
    words
        .filter(|words| !words.is_empty())
        .map(|_| "operator.input_text")
}

/// The declarations about time.
#[derive(Default)]
struct Overrides {
    declared_time: Option<String>,
    timezone: Option<Zone>,
    pause: Option<bool>,
}

/// What the client's user interface says.
#[derive(Default)]
struct Ui {
    cursor: Option<String>,
    client_timestamp: Option<String>,
}

/// The sections of an envelope.
struct Sections<'a> {
    root: Node<'a>,
    invoker: Node<'a>,
    operator: Node<'a>,
    mode: Node<'a>,
    overrides: Option<Node<'a>>,
    ui: Option<Node<'a>>,
}

impl Envelope {
    /// Parses an envelope.
    pub fn parse(value: &Value) -> Result<Self, Fault> {
        // All sections are checked before any field, so that a missing section is reported first.
        let sections = Sections::read(Node::root(value, Code::EnvelopeInvalid))?;
        let request_id = read_request_id(&sections.root)?;
        let (invoker_id, notes) = read_invoker(&sections.invoker)?;
        let input_text = read_operator(&sections.operator)?;
        let (kind, client_intent) = read_mode(&sections.mode)?;
        let overrides = match &sections.overrides {
            Some(overrides) => read_overrides(overrides)?,
            None => Overrides::default(),
        };
        let ui = match &sections.ui {
            Some(ui) => read_ui(ui)?,
            None => Ui::default(),
        };
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
            cursor: ui.cursor,
            client_timestamp: ui.client_timestamp,
        })
    }

    /// The remarks for the audit, if there are any. Long texts are cut.
    pub fn remarks(&self) -> Option<Value> {
        let said = [
            ("notes", &self.notes),
            ("client_intent", &self.client_intent),
            ("client_timestamp_utc", &self.client_timestamp),
        ];
        let said = said
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), cut_remark(text.as_deref()?).into())));
        let said: Map<_, _> = said.collect();
        (!said.is_empty()).then_some(Value::Object(said))
    }

    /// Rejects an invoker that claims to be the operator or a human of this world.
    pub fn check_invoker(&self, config: &Config, people: &People) -> Result<(), Fault> {
        if !people.claims_to_be_human(&self.invoker_id, &config.operator_label) {
            return Ok(());
        }
        let message =
            "names the operator or a human: an invoker is the program that carries the request";
        Err(Fault::new(
            Code::InvokerForbidden,
            "invoker.invoker_id",
            message,
        ))
    }

    /// Whether it does what only the operator may do: write a text, or declare a time, a zone or a
    /// pause.
    pub fn speaks_as_operator(&self) -> bool {
        !self.input_text.is_empty() || self.declares()
    }

    /// Whether it declares anything about time.
    pub fn declares(&self) -> bool {
        self.declared_time.is_some() || self.timezone.is_some() || self.pause.is_some()
    }

    /// The declared time. A local time is resolved in the declared zone, or else in the world's.
    pub fn declared_instant(&self, world_zone: &Zone) -> Result<Option<WorldTime>, Fault> {
        // Not in `parse`, which knows no world: its zone may change until the beat is decided.
        let zone = self.timezone.as_ref().unwrap_or(world_zone);
        let resolve = |text: &String| WorldTime::parse_in(text, zone, DECLARED_TIME_PATH);
        self.declared_time.as_ref().map(resolve).transpose()
    }
}

impl<'a> Sections<'a> {
    fn read(root: Node<'a>) -> Result<Self, Fault> {
        let object = |node: Node<'a>| node.fields().map(|_| node.clone());
        let required = |key: &str| object(root.field(key)?);
        let optional = |key: &str| root.read_optional(key, object);
        // The order of these lines is the order of their faults.
        Ok(Self {
            invoker: required("invoker")?,
            operator: required("operator")?,
            mode: required("mode")?,
            overrides: optional("declared_overrides")?,
            ui: optional("ui")?,
            root,
        })
    }
}

fn cut_remark(remark: &str) -> &str {
    remark
        .get(..remark.floor_char_boundary(REMARK_BYTES_MAX))
        .unwrap_or_default()
}

fn nullable_text(node: &Node<'_>, key: &str) -> Result<Option<String>, Fault> {
    Ok(node.optional_text(key)?.map(str::to_owned))
}

/// Whether a text may be a request id.
pub fn is_request_id(text: &str) -> bool {
    // One more than allowed suffices to reject a text, however long it is.
    let characters = text.chars().take(REQUEST_ID_CHARACTERS_MAX + 1).count();
    (1..=REQUEST_ID_CHARACTERS_MAX).contains(&characters) && !text.chars().any(char::is_control)
}

fn read_request_id(root: &Node<'_>) -> Result<Arc<str>, Fault> {
    let given = root
        .value
        .get("request_id")
        .and_then(Value::as_str)
        .filter(|text| is_request_id(text));
    given.map(Arc::from).ok_or_else(|| {
        let message = "must be a string of 1 to 200 characters, none of them a control character";
        Fault::new(Code::RequestIdInvalid, "request_id", message)
    })
}

fn read_invoker(node: &Node<'_>) -> Result<(String, Option<String>), Fault> {
    let role = node.field("invoker_role")?;
    if role.text()? != ROLE {
        return Err(role.fault("must be INVOKER"));
    }
    let given = node.field("invoker_id")?;
    let id = given.text()?;
    // The id is recorded with every bundle, so its length is bounded.
    if id.trim().is_empty() || id.len() > INVOKER_ID_BYTES_MAX {
        return Err(given.fault("must be 1 to 1024 bytes that name the program that asks"));
    }
    Ok((id.to_owned(), nullable_text(node, "notes")?))
}

fn read_operator(node: &Node<'_>) -> Result<String, Fault> {
    let id = node.field("operator_id")?;
    if id.text()? != OPERATOR {
        return Err(id.fault("must be GEORGE, the operator's seat in every world"));
    }
    let input = node.field("input_text")?;
    let text = input.text()?;
    if text.len() > INPUT_TEXT_BYTES_MAX {
        let message = format!(
            "has {} bytes; at most {INPUT_TEXT_BYTES_MAX} fit",
            text.len()
        );
        return Err(Fault::new(Code::TextTooLarge, input.path, message));
    }
    Ok(text.to_owned())
}

fn read_mode(node: &Node<'_>) -> Result<(EnvelopeKind, Option<String>), Fault> {
    let kind = node.field("kind")?;
    let parsed =
        EnvelopeKind::from_word(kind.text()?).ok_or_else(|| kind.fault("must be BEAT or NO_OP"))?;
    Ok((parsed, nullable_text(node, "client_intent")?))
}

fn read_overrides(node: &Node<'_>) -> Result<Overrides, Fault> {
    let mut overrides = Overrides::default();
    if let Some(time) = node.optional("time")? {
        overrides.declared_time = time.read_optional("declared_world_time", read_declared_time)?;
        overrides.timezone = time.read_optional("timezone", |node| read_timezone(&node))?;
    }
    overrides.pause = node.read_optional("pause_time", |node| node.boolean())?;
    Ok(overrides)
}

fn read_ui(node: &Node<'_>) -> Result<Ui, Fault> {
    // Any value is accepted: a clock of the client proves nothing and is only audited.
    let timestamp = node.value.get("client_timestamp_utc");
    Ok(Ui {
        cursor: nullable_text(node, "stream_cursor")?,
        client_timestamp: timestamp.and_then(Value::as_str).map(str::to_owned),
    })
}

fn read_declared_time(node: Node<'_>) -> Result<String, Fault> {
    let given = node.value.as_str().filter(|text| WorldTime::is_time(text));
    given
        .map(str::to_owned)
        .ok_or_else(|| time::not_a_time(node.path))
}

fn read_timezone(node: &Node<'_>) -> Result<Zone, Fault> {
    Zone::named(node.text()?).ok_or_else(|| node.fault("is not a time zone of the IANA list"))
}

/// A part of an envelope that identifies a request.
enum IdentityPart {
    /// A value.
    Value,
    /// An object of these.
    Fields(&'static [(&'static str, IdentityPart)]),
}

/// Everything in an envelope that identifies the request: all known fields except `ui` and
/// `invoker.notes`.
const IDENTITY: IdentityPart = IdentityPart::Fields(&[
    ("request_id", IdentityPart::Value),
    (
        "invoker",
        IdentityPart::Fields(&[
            ("invoker_id", IdentityPart::Value),
            ("invoker_role", IdentityPart::Value),
        ]),
    ),
    (
        "operator",
        IdentityPart::Fields(&[
            ("operator_id", IdentityPart::Value),
            ("input_text", IdentityPart::Value),
        ]),
    ),
    (
        "mode",
        IdentityPart::Fields(&[
            ("kind", IdentityPart::Value),
            ("client_intent", IdentityPart::Value),
        ]),
    ),
    (
        "declared_overrides",
        IdentityPart::Fields(&[("time", DECLARED_TIME), ("pause_time", IdentityPart::Value)]),
    ),
]);
const DECLARED_TIME: IdentityPart = IdentityPart::Fields(&[
    ("declared_world_time", IdentityPart::Value),
    ("timezone", IdentityPart::Value),
]);

/// The fingerprint by which a repeated request is recognized: the BLAKE3 hash of the canonical form
/// of the envelope's known fields and of the whole bundle. Unknown fields are ignored and null
/// equals missing, so that a newer client may repeat the request of an older one. `ui` and
/// `invoker.notes` do not count. The answer repeats the bundle, so all of it counts.
pub fn fingerprint(envelope: &Value, bundle: Option<&Value>) -> [u8; 32] {
    let mut parts = vec![known_part(envelope, &IDENTITY).unwrap_or_default()];
    parts.extend(bundle.cloned());
    json::fingerprint(&Value::Array(parts))
}

fn known_part(value: &Value, part: &IdentityPart) -> Option<Value> {
    match part {
        IdentityPart::Value => (!value.is_null()).then(|| value.clone()),
        IdentityPart::Fields(fields) => {
            let field = |(key, part): &(&str, IdentityPart)| {
                known_part(value.get(key)?, part).map(|value| ((*key).to_owned(), value))
            };
            let fields: Map<_, _> = fields.iter().filter_map(field).collect();
            // An object without known fields equals a missing one.
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
    }
}
