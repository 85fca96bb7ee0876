//! The JSON of entries for agents: with author, audience in words, and the entry that they reply
//! to.
//!
//! Every function takes the caller's view, so that a reply to a hidden entry is left out.

use serde_json::{Value, json};
use turnkeep_ledger::audience_text::audience_text;
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::{View, projection};

use super::budget::Budget;

/// A stream entry without its text.
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
    shown["text"] = "".into();
    shown["text_bytes"] = whole.into();
    shown["next_offset"] = whole.into();
    let end = budget.text_bytes_beside(&entry.text, &shown);
    shown["text"] = entry.text.get(..end).unwrap_or_default().into();
    shown["next_offset"] = end.into();
    budget.try_take(&shown);
    Some(shown)
}

/// Adds author, audience and reply to the JSON of an entry or of a part of it.
pub(super) fn add_description(view: &View<'_>, entry: &Entry, shown: &mut Value) {
    shown["author_label"] = entry.shown_label().into();
    shown["audience"] = audience_text(view, entry).into();
    if let Some(answered) = view.replied_to(entry) {
        shown["reply_to"] = answered.id.to_string().into();
    }
}

/// The entries that a pack quotes, each with author and audience.
pub(super) fn sources_json(view: &View<'_>, ids: impl Iterator<Item = EntryId>) -> Value {
    let entries = ids.filter_map(|id| view.entry(id));
    let source = |entry: &Entry| {
        let mut source = json!({
            "entry_id": entry.id.to_string(),
            "created_at_world": entry.time.as_str(),
            "author_id": entry.author.id.as_str(),
        });
        add_description(view, entry, &mut source);
        source
    };
    entries.map(source).collect::<Vec<_>>().into()
}
