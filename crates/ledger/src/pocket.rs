//! The pocket: the clock, what is planned and what was told, all of it parts of visible entries.
//!
//! An item is visible where its source is. A newer item replaces an older one only for those who see the
//! newer one, so a hidden change leaves everybody else's calendar as it was.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::fact::{ClockState, ItemKind, PocketItem, Span};
use crate::ids::ItemId;
use crate::staged::Staged;
use crate::time::WorldTime;
use crate::view::View;

/// An item with its source, both visible.
struct Shown<'a> {
    item: &'a PocketItem,
    source: &'a Entry,
    number: Option<u32>,
}

/// The items that the view sees and that no visible item replaces, in ledger order.
fn live<'a>(view: &View<'a>, staged: &Staged<'a>) -> Vec<Shown<'a>> {
    let committed = view.world.items(view.at()).filter_map(|row| {
        Some(Shown { item: &row.item, source: view.numbered(row.entry)?, number: Some(row.entry) })
    });
    let fresh = staged.items(view).map(|(item, source)| Shown { item, source, number: None });
    let visible: Vec<_> = committed.chain(fresh).collect();
    let replaced: HashSet<ItemId> = visible.iter().filter_map(|shown| shown.item.supersedes).collect();
    visible.into_iter().filter(|shown| !replaced.contains(&shown.item.id)).collect()
}

/// The pocket as the view sees it.
pub fn show(view: &View<'_>, staged: &Staged<'_>, clock: &ClockState, available: bool) -> Value {
    if !available {
        return json!({
            "is_available": false,
            "clock": { "world_time": null, "timezone": null },
            "calendar": { "items": [] },
            "messages": { "items": [] },
        });
    }
    let live = live(view, staged);
    let of = |kind| live.iter().filter(move |shown| shown.item.kind == kind);
    json!({
        "is_available": true,
        "clock": { "world_time": clock.time.as_str(), "timezone": clock.timezone.as_str() },
        "calendar": { "items": of(ItemKind::Calendar).filter_map(calendar).collect::<Vec<_>>() },
        "messages": { "items": of(ItemKind::Message).map(message).collect::<Vec<_>>() },
    })
}

fn part<'a>(source: &'a Entry, span: Option<&Span>) -> Option<&'a str> {
    let span = span?;
    source.text.get(span.start as usize..span.end as usize)
}

/// An item of the calendar; one without a title only takes another one away.
fn calendar(shown: &Shown<'_>) -> Option<Value> {
    let Shown { item, source, .. } = shown;
    Some(json!({
        "title": part(source, item.title.as_ref())?,
        "time": item.time.as_ref().map(WorldTime::as_str),
        "location": part(source, item.location.as_ref()),
        "notes": part(source, item.notes.as_ref()),
        "item_id": item.id.to_string(),
        "entry_id": source.id.to_string(),
    }))
}

fn message(shown: &Shown<'_>) -> Value {
    let Shown { item, source, .. } = shown;
    json!({
        "from": &*source.label,
        "text": part(source, item.title.as_ref()).unwrap_or(&source.text),
        "time": source.time.as_str(),
        "item_id": item.id.to_string(),
        "entry_id": source.id.to_string(),
    })
}

/// The numbers of the entries from which open calendar items come: neither replaced nor past.
pub fn open_calendar(view: &View<'_>, now: &WorldTime) -> Vec<u32> {
    let open = |shown: &&Shown<'_>| {
        let item = shown.item;
        let past = item.time.as_ref().is_some_and(|time| time < now);
        item.kind == ItemKind::Calendar && item.title.is_some() && !past
    };
    let mut numbers: Vec<u32> =
        live(view, &Staged::default()).iter().filter(open).filter_map(|shown| shown.number).collect();
    numbers.dedup();
    numbers
}

/// Whether the view sees an item of this id, so that it may be replaced.
pub fn sees_item(view: &View<'_>, id: ItemId) -> bool {
    view.world.item(id).is_some_and(|row| view.sees(row.entry))
}
