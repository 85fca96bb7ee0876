//! The JSON of entries for agents: with author, audience in words, and the entry that they reply
//! to.
//!
//! Every function takes the caller's view, so that a reply to a hidden entry is left out.

use serde_json::{Value, json};
use turnkeep_ledger::audience_text::audience_text;
use turnkeep_ledger::entry::{AuthorClass, Entry};
use turnkeep_ledger::{View, projection};

use super::budget::Budget;

/// A stream entry.
pub(super) fn stream_entry(view: &View<'_>, entry: &Entry) -> Value {
    let mut shown = projection::stream_entry(entry);
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

/// Cuts the text of a stream entry that is too large for an answer, and says where the rest begins.
pub(super) fn cut_stream_entry(shown: &mut Value, budget: Budget) {
    let text_bytes = |shown: &Value| shown["text"].as_str().map_or(0, str::len);
    let whole = text_bytes(shown);
    // `next_offset` gets its largest value while the text is measured, so that the real one fits
    // too.
    shown["text_bytes"] = whole.into();
    shown["next_offset"] = whole.into();
    budget.shorten_texts(shown, &["text"]);
    shown["next_offset"] = text_bytes(shown).into();
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
