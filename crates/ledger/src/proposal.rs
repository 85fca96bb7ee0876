//! A bundle of writes: as it was accepted, and the forms in which it is answered.
//!
//! A [`Proposal`] is made by acceptance and by nothing else, so whoever holds one may commit it.
//! The forms are the same for the same request, whatever order its keys came in: an answer can be
//! made again.

use serde_json::{Map, Number, Value, json};

use crate::entry::{Author, Channel, Entry};
use crate::fact::{BundleCommit, ItemKind, PocketItem, ProposedBy, Span};
use crate::ids::{EntryId, ItemId, Name};
use crate::time::WorldTime;

/// An accepted bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Who proposed it.
    pub proposed_by: ProposedBy,
    /// What is to be written, in order.
    pub entries: Vec<ProposedEntry>,
    /// What is to be put into the pocket.
    pub items: Vec<ProposedItem>,
    /// The scene set anew.
    pub scene: Option<ProposedScene>,
    /// What is noted about persons.
    pub notes: Vec<ProposedNote>,
}

/// An accepted entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedEntry {
    /// Who writes it.
    pub author: Author,
    /// Whom it is addressed to; none means everyone.
    pub visible_to: Option<Box<[Name]>>,
    /// Where it is shown.
    pub channel: Channel,
    /// When, in the world; none takes the commit's time.
    pub time: Option<WorldTime>,
    /// The words, to the byte.
    pub text: String,
    /// The entry that this one answers.
    pub reply_to: Option<EntryId>,
}

/// An accepted pocket item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedItem {
    /// Which of the proposal's entries it comes from.
    pub entry_index: usize,
    /// What it is.
    pub kind: ItemKind,
    /// Its title; a calendar item without one cancels what it supersedes.
    pub title: Option<Span>,
    /// When it is.
    pub time: Option<WorldTime>,
    /// Where it is.
    pub location: Option<Span>,
    /// More about it.
    pub notes: Option<Span>,
    /// The item that it replaces.
    pub supersedes: Option<ItemId>,
}

/// An accepted scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedScene {
    /// The words.
    pub text: String,
    /// What they are made from; never empty.
    pub cited: Vec<EntryId>,
}

/// An accepted note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedNote {
    /// About whom.
    pub person: Name,
    /// The words.
    pub text: String,
    /// What they are made from; never empty.
    pub cited: Vec<EntryId>,
}

fn rejection(reason: Option<&str>) -> Value {
    json!({ "rejected": reason.is_some(), "reason": reason })
}

/// A bundle that was committed, with its items if it has any.
pub fn committed_form<'a>(
    commit: &BundleCommit,
    entries: impl Iterator<Item = &'a Entry>,
    items: impl Iterator<Item = &'a PocketItem>,
) -> Value {
    let mut form = json!({
        "bundle_id": commit.id.to_string(),
        "request_id": &*commit.request,
        "proposed_by": proposed_by(&commit.proposed_by),
        "entries": entries.map(Entry::to_json).collect::<Vec<_>>(),
        "wrote": true,
        "rejection": rejection(None),
    });
    let items: Vec<_> = items.map(item_form).collect();
    if let (false, Some(fields)) = (items.is_empty(), form.as_object_mut()) {
        fields.insert("pocket_items".to_owned(), items.into());
    }
    form
}

/// A bundle that was accepted and wrote nothing.
pub fn unwritten_form(request: &str, by: &ProposedBy) -> Value {
    json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": proposed_by(by),
        "entries": [],
        "wrote": false,
        "rejection": rejection(None),
    })
}

fn proposed_by(by: &ProposedBy) -> Value {
    json!({ "engine": by.engine, "actor": by.actor })
}

fn item_form(item: &PocketItem) -> Value {
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

/// A bundle that was refused: as it came, but it wrote nothing and has no ids. What came may be any
/// JSON; a field that is missing or of another type is empty in the answer, so that it can be read
/// as a bundle.
pub fn rejected_form(bundle: &Value, reason: &str) -> Value {
    let mut rest = match ordered(bundle) {
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
        .for_each(forget_ids);
    let mut form = json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": proposed_by,
        "entries": entries,
        "wrote": false,
        "rejection": rejection(Some(reason)),
    });
    if let Some(fields) = form.as_object_mut() {
        for (key, value) in rest {
            fields.entry(key).or_insert(value);
        }
    }
    form
}

/// No entry of a refused bundle has an id, whatever its writer claimed.
fn forget_ids(entry: &mut Value) {
    for key in ["entry_id", "bundle_id"] {
        if let Some(id) = entry.get_mut(key) {
            *id = Value::Null;
        }
    }
}

/// The value with its keys sorted and its numbers in one form, so that requests that are the same
/// are answered the same.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(ordered).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key.clone(), ordered(value)))
                    .collect(),
            )
        }
        Value::Number(number) => Value::Number(one_form(number)),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// A number as the double that the canonical form takes it for; a whole one without a point.
fn one_form(number: &Number) -> Number {
    let double = number.as_f64().unwrap_or_default();
    // Up to here every whole number is a double of its own.
    let whole = double.fract() == 0.0 && double.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
    let exact = whole.then_some(double as i64);
    exact
        .map(Number::from)
        .or_else(|| Number::from_f64(double))
        .unwrap_or_else(|| number.clone())
}
