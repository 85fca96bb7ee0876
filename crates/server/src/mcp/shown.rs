//! The JSON of entries for agents: with author, audience in words, and the entry that they reply
//! to.
//!
//! Every function takes the caller's view, so that a reply to a hidden entry is left out.

use serde_json::{Value, json};
use turnkeep_ledger::audience_text::audience_text;
use turnkeep_ledger::entry::{AuthorClass, Entry};
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::{View, projection};

use super::budget::Budget;

/// A stream entry without its text.
fn without_text(view: &View<'_>, entry: &Entry) -> Value {
    let mut shown = projection::stream_entry(entry);
    shown["text"] = "".into();
    shown["author_id"] = entry.author.id.as_str().into();
    add_description(view, entry, &mut shown);
    shown
}

/// The label of an entry's author. The stream gives the operator none, but an agent needs the same
/// name here as in `audience` and `whoami`.
fn author_label<'a>(view: &View<'a>, entry: &'a Entry) -> Option<&'a str> {
    match entry.author.class {
        AuthorClass::Operator => Some(&view.world.config.operator_label),
        _ => entry.shown_label(),
    }
}

/// A stream entry, if it fits into the budget. The first entry of an answer always fits: its text
/// is cut if necessary.
pub(super) fn stream_entry_within(
    view: &View<'_>,
    entry: &Entry,
    budget: &mut Budget,
    is_first: bool,
) -> Option<Value> {
    let mut shown = without_text(view, entry);
    let whole = entry.text.len();
    shown["text"] = (*entry.text).into();
    if budget.try_take(&shown) {
        return Some(shown);
    }
    if !is_first {
        return None;
    }
    // `next_offset` gets its largest value while the text is measured, so that the real one fits
    // too.
    shown["text_bytes"] = whole.into();
    shown["next_offset"] = whole.into();
    budget.shorten_texts(&mut shown, &["text"]);
    let end = shown["text"].as_str().map_or(0, str::len);
    shown["next_offset"] = end.into();
    budget.try_take(&shown);
    Some(shown)
}

/// Adds authors and audiences to the results of a search.
pub(super) fn add_audiences(view: &View<'_>, pack: &mut Value) {
    let results = pack.get_mut("results").and_then(Value::as_array_mut);
    for result in results.into_iter().flatten() {
        let id = result
            .get("entry_id")
            .and_then(Value::as_str)
            .and_then(|id| id.parse::<EntryId>().ok());
        if let Some(entry) = id.and_then(|id| view.entry(id)) {
            add_description(view, entry, result);
        }
    }
}

/// Adds author, audience and reply to the JSON of an entry or of a part of it.
pub(super) fn add_description(view: &View<'_>, entry: &Entry, shown: &mut Value) {
    shown["author_label"] = author_label(view, entry).into();
    shown["audience"] = audience_text(view, entry).into();
    if let Some(answered) = view.replied_to(entry) {
        shown["reply_to"] = answered.id.to_string().into();
    }
}

/// An entry that a pack quotes, with author and audience and without its text.
pub(super) fn source_json(view: &View<'_>, entry: &Entry) -> Value {
    let mut source = json!({
        "entry_id": entry.id.to_string(),
        "created_at_world": entry.time.as_str(),
        "author_id": entry.author.id.as_str(),
    });
    add_description(view, entry, &mut source);
    source
}
