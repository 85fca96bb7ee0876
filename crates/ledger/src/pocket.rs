//! The pocket: clock, calendar and messages, all of them parts of visible entries.
//!
//! An item is visible where its entry is. A newer item replaces an older one only for readers who
//! see the newer one, so a hidden change leaves the calendars of all others as they were.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::fact::{ClockState, ItemKind, PocketItem, Span};
use crate::ids::ItemId;
use crate::staged::Staged;
use crate::time::WorldTime;
use crate::view::View;

/// Items per list; of more, the newest.
const ITEMS_MAX: usize = 1000;
/// Bytes of text per list.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// An item and its entry, both visible.
struct VisibleItem<'a> {
    item: &'a PocketItem,
    source: &'a Entry,
    number: Option<u32>,
}

/// The visible items that no visible item replaces, in ledger order.
fn current_items<'a>(view: &View<'a>, staged: &Staged<'a>) -> Vec<VisibleItem<'a>> {
    let committed = view.world.items(view.position()).filter_map(|row| {
        Some(VisibleItem {
            item: &row.item,
            source: view.entry_at(row.entry)?,
            number: Some(row.entry),
        })
    });
    let fresh = staged.items(view).map(|(item, source)| VisibleItem {
        item,
        source,
        number: None,
    });
    let visible: Vec<_> = committed.chain(fresh).collect();
    // Only visible items replace others, so a hidden change stays hidden.
    let replaced: HashSet<ItemId> = visible
        .iter()
        .filter_map(|shown| shown.item.supersedes)
        .collect();
    visible
        .into_iter()
        .filter(|shown| !replaced.contains(&shown.item.id))
        .collect()
}

/// The pocket of a view as JSON.
pub fn pocket_json(
    view: &View<'_>,
    staged: &Staged<'_>,
    clock: &ClockState,
    available: bool,
) -> Value {
    if !available {
        return json!({
            "is_available": false,
            "clock": { "world_time": null, "timezone": null },
            "calendar": { "items": [] },
            "messages": { "items": [] },
        });
    }
    let live = current_items(view, staged);
    let newest_of = |kind| {
        live.iter()
            .rev()
            .filter(move |shown| shown.item.kind == kind)
    };
    json!({
        "is_available": true,
        "clock": { "world_time": clock.time.as_str(), "timezone": clock.timezone.as_str() },
        "calendar": { "items": take_newest(newest_of(ItemKind::Calendar).filter_map(calendar_json)) },
        "messages": { "items": take_newest(newest_of(ItemKind::Message).map(message_json)) },
    })
}

/// A listed item and its entry.
#[derive(Debug, Clone)]
pub struct ListedItem<'a> {
    /// The item as JSON.
    pub value: Value,
    /// The entry that it is a part of.
    pub source: &'a Entry,
}

/// All visible items of a kind, in ledger order; none if the world shows no pocket.
pub fn list_items<'a>(view: &View<'a>, kind: ItemKind) -> Vec<ListedItem<'a>> {
    if !view.world.config.pocket_available {
        return Vec::new();
    }
    let live = current_items(view, &Staged::default());
    let of_kind = live.iter().filter(|shown| shown.item.kind == kind);
    let listed = of_kind.filter_map(|shown| {
        let value = match kind {
            ItemKind::Calendar => calendar_json(shown)?,
            ItemKind::Message => message_json(shown),
        };
        Some(ListedItem {
            value,
            source: shown.source,
        })
    });
    listed.collect()
}

/// Takes as many items as a list may have, and returns them in ledger order. The limits exist
/// because every answer contains the lists.
fn take_newest(newest_first: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut bytes = 0;
    let fits = |item: &Value| {
        let texts = item
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::values)
            .filter_map(Value::as_str);
        bytes += texts.map(str::len).sum::<usize>();
        bytes <= TEXT_BYTES_MAX
    };
    // Stops at the first item that does not fit, so the list has no gap.
    let mut items: Vec<Value> = newest_first.take(ITEMS_MAX).take_while(fits).collect();
    items.reverse();
    items
}

fn text_part<'a>(source: &'a Entry, span: Option<&Span>) -> Option<&'a str> {
    let span = span?;
    source.text.get(span.start as usize..span.end as usize)
}

/// A calendar item as JSON; `None` for one without a title, which only cancels another one.
fn calendar_json(shown: &VisibleItem<'_>) -> Option<Value> {
    let VisibleItem { item, source, .. } = shown;
    Some(json!({
        "title": text_part(source, item.title.as_ref())?,
        "time": item.time.as_ref().map(WorldTime::as_str),
        "location": text_part(source, item.location.as_ref()),
        "notes": text_part(source, item.notes.as_ref()),
        "item_id": item.id.to_string(),
        "entry_id": source.id.to_string(),
    }))
}

fn message_json(shown: &VisibleItem<'_>) -> Value {
    let VisibleItem { item, source, .. } = shown;
    json!({
        "from": &*source.label,
        "text": text_part(source, item.title.as_ref()).unwrap_or(&source.text),
        "time": source.time.as_str(),
        "item_id": item.id.to_string(),
        "entry_id": source.id.to_string(),
    })
}

/// The entries of open calendar items, which are neither replaced nor past.
pub fn open_calendar(view: &View<'_>, now: &WorldTime) -> Vec<u32> {
    let open = |shown: &&VisibleItem<'_>| {
        let item = shown.item;
        // An appointment without a time never becomes past.
        let past = item.time.as_ref().is_some_and(|time| time < now);
        item.kind == ItemKind::Calendar && item.title.is_some() && !past
    };
    let mut numbers: Vec<u32> = current_items(view, &Staged::default())
        .iter()
        .filter(open)
        .filter_map(|shown| shown.number)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnkeep_types::Timestamp;

    use super::*;
    use crate::config::{Config, Profile};
    use crate::entry::{Author, AuthorClass, Channel};
    use crate::fact::Fact;
    use crate::ids::{BundleId, EntryId, Name};
    use crate::{Viewer, World};
    use turnkeep_teamworld::Random;

    const PEOPLE: [&str; 3] = ["ANN", "BOB", "CAT"];

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// An entry of ANN, for all or for some.
    fn entry(number: u128, random: &mut Random) -> Entry {
        let readers = PEOPLE
            .iter()
            .filter(|_| random.percent(50))
            .map(|reader| name(reader))
            .collect();
        Entry {
            id: EntryId(number),
            bundle: BundleId(1),
            request: Arc::from("r"),
            time: WorldTime::from_timestamp(Timestamp(1)),
            author: Author {
                class: AuthorClass::Person,
                id: name("ANN"),
            },
            label: "Ann".into(),
            visible_to: random.percent(60).then_some(readers),
            channel: Channel::People,
            text: "Lunch".into(),
            reply_to: None,
        }
    }

    /// One that may replace an earlier one, seen or not, and may only take it away.
    fn item(number: u128, random: &mut Random) -> PocketItem {
        let before = usize::try_from(number).unwrap();
        let supersedes =
            (before > 0 && random.percent(60)).then(|| ItemId(random.below(before) as u128));
        PocketItem {
            id: ItemId(number),
            kind: if random.percent(80) {
                ItemKind::Calendar
            } else {
                ItemKind::Message
            },
            entry: EntryId(number),
            title: random.percent(70).then_some(0..5),
            time: None,
            location: None,
            notes: None,
            supersedes,
        }
    }

    /// The expected items, computed from all items of the world one by one.
    fn expected(view: &View<'_>, items: &[PocketItem], kind: ItemKind) -> Vec<String> {
        let visible = || items.iter().filter(|item| view.entry(item.entry).is_some());
        let replaced: HashSet<ItemId> = visible().filter_map(|item| item.supersedes).collect();
        let shown = |item: &&PocketItem| {
            item.kind == kind
                && !replaced.contains(&item.id)
                && (kind == ItemKind::Message || item.title.is_some())
        };
        visible()
            .filter(shown)
            .map(|item| item.id.to_string())
            .collect()
    }

    fn shown(pocket: &Value, part: &str) -> Vec<String> {
        let items = pocket[part]["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["item_id"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn an_answer_carries_no_more_than_a_list_holds() {
        let long = || json!({ "text": "x".repeat(300 << 10) });
        assert_eq!(take_newest(std::iter::repeat_with(long).take(64)).len(), 3);
        let numbered = take_newest((0..5000).rev().map(|number| json!(number)));
        assert_eq!((numbered.len(), &numbered[999]), (ITEMS_MAX, &json!(4999)));
    }

    #[test]
    fn p15_what_is_passed_over_is_what_nobody_is_shown_at_any_position() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let start = WorldTime::from_timestamp(Timestamp(1));
            let mut world = World::new(Config::new(name("w"), Profile::Narrative, start));
            let mut items = Vec::new();
            for number in 0..24 {
                world.apply(Fact::Entry(entry(number, &mut random)));
                items.push(item(number, &mut random));
                world.apply(Fact::Item(items[items.len() - 1].clone()));
            }
            let viewers = PEOPLE
                .map(|reader| Viewer::Reader(name(reader)))
                .into_iter();
            for (viewer, at) in viewers
                .chain([Viewer::Public])
                .flat_map(|v| (0..=24).map(move |at| (v.clone(), at)))
            {
                let view = world.view_at(viewer.clone(), at);
                let pocket = pocket_json(&view, &Staged::default(), &world.clock, true);
                for (part, kind) in [
                    ("calendar", ItemKind::Calendar),
                    ("messages", ItemKind::Message),
                ] {
                    let expect = expected(&view, &items, kind);
                    assert_eq!(
                        shown(&pocket, part),
                        expect,
                        "seed {seed}, {viewer:?} at {at}, {part}"
                    );
                }
            }
        }
    }
}
