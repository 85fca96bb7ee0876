//! Entries as an agent is shown them: with their author, their audience in words, and what they
//! answer.

use serde_json::{Value, json};
use turnkeep_ledger::audience_text::audience_text;
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::{View, projection};

use super::budget::Budget;

/// An entry of the stream without its text.
fn without_text(view: &View<'_>, entry: &Entry) -> Value {
    let mut shown = projection::stream_entry(entry);
    shown["text"] = "".into();
    shown["author_id"] = entry.author.id.as_str().into();
    shown["audience"] = audience_text(view, entry).into();
    if let Some(answered) = view.replied_to(entry) {
        shown["reply_to"] = answered.id.to_string().into();
    }
    shown
}

/// An entry of the stream, if it fits. The first of an answer always does: its text is cut where it
/// must be.
pub(super) fn entry(
    view: &View<'_>,
    entry: &Entry,
    budget: &mut Budget,
    is_first: bool,
) -> Option<Value> {
    let mut shown = without_text(view, entry);
    let whole = entry.text.len();
    shown["text"] = (*entry.text).into();
    if budget.take(&shown) {
        return Some(shown);
    }
    if !is_first {
        return None;
    }
    shown["text"] = "".into();
    shown["text_bytes"] = whole.into();
    shown["next_offset"] = whole.into();
    let end = budget.piece_of(&entry.text, &shown);
    shown["text"] = entry.text.get(..end).unwrap_or_default().into();
    shown["next_offset"] = end.into();
    budget.take(&shown);
    Some(shown)
}

/// Adds to the results of a search who wrote them and who can see them.
pub(super) fn with_audiences(view: &View<'_>, pack: &mut Value) {
    let results = pack.get_mut("results").and_then(Value::as_array_mut);
    for result in results.into_iter().flatten() {
        let id = result
            .get("entry_id")
            .and_then(Value::as_str)
            .and_then(|id| id.parse::<EntryId>().ok());
        if let Some(entry) = id.and_then(|id| view.entry(id)) {
            describe(view, entry, result);
        }
    }
}

/// Adds to something that was made from an entry who wrote it and who can see it.
pub(super) fn describe(view: &View<'_>, entry: &Entry, shown: &mut Value) {
    shown["author_label"] = entry.shown_label().into();
    shown["audience"] = audience_text(view, entry).into();
    if let Some(answered) = view.replied_to(entry) {
        shown["reply_to"] = answered.id.to_string().into();
    }
}

/// The entries that a pack quotes, each with its author and audience.
pub(super) fn sources<'a>(view: &View<'_>, ids: impl Iterator<Item = &'a str>) -> Value {
    let entries = ids.filter_map(|id| view.entry(id.parse().ok()?));
    let source = |entry: &Entry| {
        let mut source = json!({
            "entry_id": entry.id.to_string(),
            "created_at_world": entry.time.as_str(),
            "author_id": entry.author.id.as_str(),
        });
        describe(view, entry, &mut source);
        source
    };
    entries.map(source).collect::<Vec<_>>().into()
}
