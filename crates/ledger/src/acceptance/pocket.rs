//! The check of pocket items: every word of an item is a part of its entry's text.

use super::Terms;
use crate::draft::{EntryDraft, ItemDraft, RangeDraft};
use crate::fact::{ItemKind, Span};
use crate::fault::{Code, Fault};
use crate::ids::ItemId;
use crate::proposal::ProposedItem;
use crate::time::WorldTime;

/// Accepts an item of a bundle with these entries.
pub(super) fn accept(
    draft: &ItemDraft<'_>,
    entries: &[EntryDraft<'_>],
    terms: &Terms<'_>,
) -> Result<ProposedItem, Fault> {
    let kind = kind(draft)?;
    let (entry_index, source) = source(draft, entries)?;
    let item = ProposedItem {
        entry_index,
        kind,
        title: span(draft, "title", draft.title, source)?,
        time: time(draft, terms)?,
        location: span(draft, "location", draft.location, source)?,
        notes: span(draft, "notes", draft.notes, source)?,
        supersedes: supersedes(draft, terms)?,
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

fn kind(draft: &ItemDraft<'_>) -> Result<ItemKind, Fault> {
    match draft.kind {
        "CALENDAR" => Ok(ItemKind::Calendar),
        "MESSAGE" => Ok(ItemKind::Message),
        _ => Err(invalid(draft, "kind", "must be CALENDAR or MESSAGE")),
    }
}

fn source<'a>(
    draft: &ItemDraft<'_>,
    entries: &[EntryDraft<'a>],
) -> Result<(usize, &'a str), Fault> {
    let index = usize::try_from(draft.entry_index).ok();
    let found = index.and_then(|index| Some((index, entries.get(index)?.text)));
    found.ok_or_else(|| invalid(draft, "entry_index", "is no entry of this bundle"))
}

/// A part of the text: inside it, not empty, on character boundaries.
fn span(
    draft: &ItemDraft<'_>,
    field: &str,
    given: Option<RangeDraft>,
    text: &str,
) -> Result<Option<Span>, Fault> {
    let Some((start, end)) = given else {
        return Ok(None);
    };
    let part = || {
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        let words = text.get(start as usize..end as usize)?;
        (!words.is_empty()).then_some(start..end)
    };
    let message = "must be the bytes of a part of the entry's text, from character to character";
    part()
        .map(Some)
        .ok_or_else(|| invalid(draft, field, message))
}

fn time(draft: &ItemDraft<'_>, terms: &Terms<'_>) -> Result<Option<WorldTime>, Fault> {
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

/// The item that is replaced. One that is unknown and one that is hidden get the same answer.
fn supersedes(draft: &ItemDraft<'_>, terms: &Terms<'_>) -> Result<Option<ItemId>, Fault> {
    let Some(given) = draft.supersedes else {
        return Ok(None);
    };
    let found = given.parse().ok().filter(|&id| (terms.item)(id));
    found
        .map(Some)
        .ok_or_else(|| invalid(draft, "supersedes", "is no item that could be replaced"))
}
