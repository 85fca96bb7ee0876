//! Accepted bundles, and the JSON forms of bundles in answers.
//!
//! Only acceptance makes a [`Proposal`], so a proposal may always be committed. The forms do not
//! depend on the key order of the request, so that a repeated request gets the same bytes.

use serde_json::{Map, Number, Value, json};

use crate::entry::{Author, Channel, Entry};
use crate::fact::{BundleCommit, ItemKind, PocketItem, ProposedBy, Span};
use crate::ids::{EntryId, ItemId, Name};
use crate::time::WorldTime;

/// An accepted bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The proposer.
    pub proposed_by: ProposedBy,
    /// The entries to write, in order.
    pub entries: Vec<ProposedEntry>,
    /// The pocket items to add.
    pub items: Vec<ProposedItem>,
    /// The new scene, if the writer sets one.
    pub scene: Option<ProposedScene>,
    /// Notes about persons.
    pub notes: Vec<ProposedNote>,
}

/// An accepted entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedEntry {
    /// The author.
    pub author: Author,
    /// The addressees; `None` means everyone.
    pub visible_to: Option<Box<[Name]>>,
    /// The channel that shows it.
    pub channel: Channel,
    /// The world time; `None` means the commit's time.
    pub time: Option<WorldTime>,
    /// The text, byte for byte.
    pub text: String,
    /// The entry that this one replies to.
    pub reply_to: Option<EntryId>,
}

/// An accepted pocket item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedItem {
    /// The index of its entry in the proposal.
    pub entry_index: usize,
    /// The kind of item.
    pub kind: ItemKind,
    /// Its title; a calendar item without one cancels what it supersedes.
    pub title: Option<Span>,
    /// The time of the appointment.
    pub time: Option<WorldTime>,
    /// The place of the appointment.
    pub location: Option<Span>,
    /// Further words.
    pub notes: Option<Span>,
    /// The item that it replaces.
    pub supersedes: Option<ItemId>,
}

/// An accepted scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedScene {
    /// The text.
    pub text: String,
    /// The entries that it is made from; never empty.
    pub cited: Vec<EntryId>,
}

/// An accepted note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedNote {
    /// The person.
    pub person: Name,
    /// The text.
    pub text: String,
    /// The entries that it is made from; never empty.
    pub cited: Vec<EntryId>,
}

fn rejection_json(reason: Option<&str>) -> Value {
    json!({ "rejected": reason.is_some(), "reason": reason })
}

/// The form of a committed bundle, with its items if it has any.
pub fn committed_form<'a>(
    commit: &BundleCommit,
    entries: impl Iterator<Item = &'a Entry>,
    items: impl Iterator<Item = &'a PocketItem>,
) -> Value {
    let mut form = json!({
        "bundle_id": commit.id.to_string(),
        "request_id": &*commit.request,
        "proposed_by": proposed_by_json(&commit.proposed_by),
        "entries": entries.map(Entry::to_json).collect::<Vec<_>>(),
        "wrote": true,
        "rejection": rejection_json(None),
    });
    let items: Vec<_> = items.map(item_json).collect();
    // The field is optional: a bundle without items does not have it.
    if let (false, Some(fields)) = (items.is_empty(), form.as_object_mut()) {
        fields.insert("pocket_items".to_owned(), items.into());
    }
    form
}

/// The form of a bundle that was accepted without entries.
pub fn unwritten_form(request: &str, by: &ProposedBy) -> Value {
    json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": proposed_by_json(by),
        "entries": [],
        "wrote": false,
        "rejection": rejection_json(None),
    })
}

fn proposed_by_json(by: &ProposedBy) -> Value {
    json!({ "engine": by.engine, "actor": by.actor })
}

fn item_json(item: &PocketItem) -> Value {
    let span = |span: &Option<Span>| span.as_ref().map(|span| [span.start, span.end]);
    let kind = match item.kind {
        ItemKind::Calendar => "CALENDAR",
        ItemKind::Message => "MESSAGE",
    };
    json!({
        "item_id": item.id.to_string(),
        "entry_id": item.entry.to_string(),
        "kind": kind,
        "title": span(&item.title),
        "time": item.time.as_ref().map(WorldTime::as_str),
        "location": span(&item.location),
        "notes": span(&item.notes),
        "supersedes": item.supersedes.map(|id| id.to_string()),
    })
}

/// The form of a rejected bundle: as it was sent, but without ids and with `wrote` false. The
/// bundle may be any JSON. A missing field or one of the wrong type is empty in the form, so that
/// clients can always read it as a bundle.
pub fn rejected_form(bundle: &Value, reason: &str) -> Value {
    let mut rest = match normalize(bundle) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut take = |key: &str, fits: fn(&Value) -> bool, empty: Value| {
        rest.shift_remove(key).filter(fits).unwrap_or(empty)
    };
    let request = take("request_id", Value::is_string, "".into());
    let proposed_by = take(
        "proposed_by",
        Value::is_object,
        json!({ "engine": "", "actor": "" }),
    );
    let mut entries = take("entries", Value::is_array, json!([]));
    entries
        .as_array_mut()
        .into_iter()
        .flatten()
        .for_each(clear_ids);
    let mut form = json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": proposed_by,
        "entries": entries,
        "wrote": false,
        "rejection": rejection_json(Some(reason)),
    });
    if let Some(fields) = form.as_object_mut() {
        for (key, value) in rest {
            // Fields of the form itself win over what the writer sent.
            fields.entry(key).or_insert(value);
        }
    }
    form
}

/// Removes the ids that the writer claimed.
fn clear_ids(entry: &mut Value) {
    for key in ["entry_id", "bundle_id"] {
        if let Some(id) = entry.get_mut(key) {
            *id = Value::Null;
        }
    }
}

/// Sorts keys and normalizes numbers, so that equal requests get equal answers.
fn normalize(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(normalize).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key.clone(), normalize(value)))
                    .collect(),
            )
        }
        Value::Number(number) => Value::Number(normalize_number(number)),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Normalizes a number to a double, and a whole double to an integer.
fn normalize_number(number: &Number) -> Number {
    let double = number.as_f64().unwrap_or_default();
    // Up to 2^53 every whole number has its own double.
    let whole = double.fract() == 0.0 && double.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
    let exact = whole.then_some(double as i64);
    exact
        .map(Number::from)
        .or_else(|| Number::from_f64(double))
        .unwrap_or_else(|| number.clone())
}
