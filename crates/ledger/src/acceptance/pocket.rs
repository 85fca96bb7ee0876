//! The check of pocket items: every text of an item is a part of its entry's text.
//!
//! So a calendar or message can never say what no entry says, and is visible exactly where its
//! entry is.

use super::Terms;
use crate::draft::{EntryDraft, ItemDraft, RangeDraft};
use crate::fact::{ItemKind, Span};
use crate::fault::{Code, Fault};
use crate::ids::ItemId;
use crate::proposal::ProposedItem;
use crate::time::WorldTime;

/// Accepts one item of a bundle with these entries.
pub(super) fn accept(
    draft: &ItemDraft<'_>,
    entries: &[EntryDraft<'_>],
    terms: &Terms<'_>,
) -> Result<ProposedItem, Fault> {
    let kind = parse_kind(draft)?;
    let (entry_index, source) = find_source(draft, entries)?;
    let item = ProposedItem {
        entry_index,
        kind,
        title: accept_span(draft, "title", draft.title, source)?,
        time: parse_time(draft, terms)?,
        location: accept_span(draft, "location", draft.location, source)?,
        notes: accept_span(draft, "notes", draft.notes, source)?,
        supersedes: accept_supersedes(draft, terms)?,
    };
    if kind == ItemKind::Calendar && item.title.is_none() && item.supersedes.is_none() {
        return Err(invalid(
            draft,
            "title",
            "is needed, unless the item cancels the one that it supersedes",
        ));
    }
    Ok(item)
}

fn invalid(draft: &ItemDraft<'_>, field: &str, message: &'static str) -> Fault {
    Fault::new(
        Code::PocketInvalid,
        format!("{}.{field}", draft.node.path),
        message,
    )
}

fn parse_kind(draft: &ItemDraft<'_>) -> Result<ItemKind, Fault> {
    match draft.kind {
        "CALENDAR" => Ok(ItemKind::Calendar),
        "MESSAGE" => Ok(ItemKind::Message),
        _ => Err(invalid(draft, "kind", "must be CALENDAR or MESSAGE")),
    }
}

fn find_source<'a>(
    draft: &ItemDraft<'_>,
    entries: &[EntryDraft<'a>],
) -> Result<(usize, &'a str), Fault> {
    let index = usize::try_from(draft.entry_index).ok();
    let found = index.and_then(|index| Some((index, entries.get(index)?.text)));
    found.ok_or_else(|| invalid(draft, "entry_index", "is no entry of this bundle"))
}

/// Accepts a part of the text: inside it, not empty, on character boundaries.
fn accept_span(
    draft: &ItemDraft<'_>,
    field: &str,
    given: Option<RangeDraft>,
    text: &str,
) -> Result<Option<Span>, Fault> {
    let Some(RangeDraft { start, end }) = given else {
        return Ok(None);
    };
    let part = || {
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        // `get` fails outside the text and inside a character.
        let words = text.get(start as usize..end as usize)?;
        (!words.is_empty()).then_some(start..end)
    };
    let message = "must be the bytes of a part of the entry's text, from character to character";
    part()
        .map(Some)
        .ok_or_else(|| invalid(draft, field, message))
}

fn parse_time(draft: &ItemDraft<'_>, terms: &Terms<'_>) -> Result<Option<WorldTime>, Fault> {
    let Some(given) = draft.time else {
        return Ok(None);
    };
    let parsed = given
        .as_str()
        .and_then(|text| WorldTime::parse_in(text, terms.zone, "").ok());
    let message = "must be a time that exists once, such as 2026-11-15T15:00:00Z";
    parsed
        .map(Some)
        .ok_or_else(|| invalid(draft, "time", message))
}

/// Accepts the item that is replaced. An unknown and a hidden one get the same fault.
fn accept_supersedes(draft: &ItemDraft<'_>, terms: &Terms<'_>) -> Result<Option<ItemId>, Fault> {
    let Some(given) = draft.supersedes else {
        return Ok(None);
    };
    let found = given.parse().ok().filter(|&id| (terms.item)(id));
    found
        .map(Some)
        .ok_or_else(|| invalid(draft, "supersedes", "is no item that could be replaced"))
}
