//! Fits capsules and scenes into the bytes of an answer.
//!
//! A pack quotes entries. The answer adds `sources`: the author, audience and time of every entry
//! that it quotes. Quotations that do not fit together with their sources are left out, the oldest
//! first, and `notes` says so. The id of a pack stays that of the whole pack.

use serde_json::{Value, json};
use turnkeep_ledger::View;
use turnkeep_ledger::anchor::Anchor;
use turnkeep_ledger::capsule::Capsule;
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::quotation::QUOTATION_BYTES_MAX;
use turnkeep_ledger::tools::RequestIds;

use super::budget::Budget;
use super::shown::source_json;

/// A verbatim piece of an entry, as a pack quotes it.
struct Quoted<'a> {
    entry: &'a Entry,
    text: &'a str,
    /// The byte range, for packs that give it.
    excerpt: Option<Value>,
}

impl Quoted<'_> {
    /// Everything that the answer shows of it. The budget measures this value, and the lists of the
    /// pack get its parts.
    fn to_json(&self, view: &View<'_>) -> Value {
        json!({
            "text": self.text,
            "id": self.entry.id.to_string(),
            "excerpt": self.excerpt,
            "source": source_json(view, self.entry),
        })
    }
}

/// The lists of a pack, in ledger order.
#[derive(Default)]
struct Lists {
    texts: Vec<String>,
    ids: Vec<Value>,
    excerpts: Vec<Value>,
    sources: Vec<Value>,
}

impl Lists {
    /// Takes quotations, the newest first, as long as they fit with their sources. The first one
    /// is shortened if necessary.
    fn take_newest(view: &View<'_>, quoted: &[Quoted<'_>], budget: &mut Budget) -> Self {
        let newest_first = quoted.iter().rev();
        let values = newest_first.map(|quotation| quotation.to_json(view));
        let taken = budget.take_fitting(values, shorten_quotation);
        let mut lists = Self::default();
        for value in taken.into_iter().rev() {
            lists.push(value);
        }
        lists
    }

    fn push(&mut self, mut value: Value) {
        let text = value["text"].as_str().unwrap_or_default();
        self.texts.push(text.to_owned());
        self.ids.push(value["id"].take());
        self.excerpts.push(value["excerpt"].take());
        self.sources.push(value["source"].take());
    }
}

fn shorten_quotation(value: &mut Value, budget: Budget) {
    budget.shorten_texts(value, &["text"]);
    let bytes = value["text"].as_str().map_or(0, str::len);
    if let Some(start) = value["excerpt"]["start"].as_u64() {
        value["excerpt"]["end"] = (start + bytes as u64).into();
    }
}

/// Says what was left out.
fn left_out_note(kept: usize, all: usize) -> Option<String> {
    (kept < all).then(|| {
        format!("the newest {kept} of {all} quotations fit: a larger max_bytes shows more")
    })
}

/// The pack of a capsule that fits into a budget, with the sources of its quotations.
pub(super) fn fit_capsule(
    view: &View<'_>,
    capsule: &Capsule<'_>,
    ids: RequestIds<'_>,
    mut budget: Budget,
) -> Value {
    let mut pack = ids.add_to(capsule.pack());
    // A capsule has its evidence first, then the note that a writer set, if any.
    let mut sections = take_list(&mut pack, "/sections").into_iter();
    let mut evidence = sections.next().unwrap_or_default();
    let excerpts = take_list(&mut evidence, "/excerpts");
    evidence["text"] = "".into();
    evidence["provenance"]["used_entry_ids"] = json!([]);
    // The bytes around the quotations come off the budget first, so that the whole pack fits.
    reserve_frame(&mut pack, &mut budget);
    budget.try_take(&evidence);
    // A note may be long. It gets at most half, so that evidence is always shown.
    let note = sections.next();
    let note = note.filter(|note| budget.half().try_take(note) && budget.try_take(note));
    let quoted = quoted_excerpts(capsule, excerpts);
    let mut lists = Lists::take_newest(view, &quoted, &mut budget);
    pack["notes"] = left_out_note(lists.ids.len(), quoted.len()).into();
    if let Some(shown) = capsule.note.filter(|_| note.is_some()) {
        let cited = shown.cited.iter().copied();
        add_sources(view, cited, &mut lists.sources, &mut budget);
    }
    evidence["text"] = lists.texts.join("\n").into();
    evidence["provenance"]["used_entry_ids"] = lists.ids.into();
    evidence["excerpts"] = lists.excerpts.into();
    pack["sections"] = std::iter::once(evidence).chain(note).collect();
    pack["sources"] = lists.sources.into();
    pack
}

/// The quotations of a capsule, with the byte ranges that its pack gives.
fn quoted_excerpts<'a>(capsule: &Capsule<'a>, excerpts: Vec<Value>) -> Vec<Quoted<'a>> {
    let mut quoted = Vec::new();
    for (quotation, excerpt) in capsule.quotations.iter().zip(excerpts) {
        quoted.push(Quoted {
            entry: quotation.entry,
            text: quotation.text(),
            excerpt: Some(excerpt),
        });
    }
    quoted
}

/// Takes the bytes of a pack without quotations. The longest note is measured, because the real one
/// is known only when the quotations have been taken.
fn reserve_frame(pack: &mut Value, budget: &mut Budget) {
    pack["notes"] = left_out_note(0, usize::MAX).into();
    budget.try_take(pack);
}

/// The pack of a scene that fits into a budget, with its sources.
pub(super) fn fit_scene(
    view: &View<'_>,
    anchor: &Anchor,
    ids: RequestIds<'_>,
    mut budget: Budget,
) -> Value {
    let mut pack = ids.add_to(anchor.pack(ids.request_id));
    pack["text"] = "".into();
    pack["provenance"]["used_entry_ids"] = json!([]);
    reserve_frame(&mut pack, &mut budget);
    match quoted_beginnings(view, anchor) {
        Some(quoted) => {
            let lists = Lists::take_newest(view, &quoted, &mut budget);
            pack["text"] = lists.texts.join("\n").into();
            pack["notes"] = left_out_note(lists.ids.len(), quoted.len()).into();
            pack["provenance"]["used_entry_ids"] = lists.ids.into();
            pack["sources"] = lists.sources.into();
        }
        None => fit_set_scene(view, &mut pack, anchor, budget),
    }
    pack
}

/// Fits a scene that a writer set in its own words. The words come first, then as many of the cited
/// entries as fit, the newest first.
fn fit_set_scene(view: &View<'_>, pack: &mut Value, scene: &Anchor, mut budget: Budget) {
    let Anchor { text, used, .. } = scene;
    let end = budget.text_bytes_beside(text, &json!(""));
    let shown = text.get(..end).unwrap_or_default();
    budget.try_take(&json!(shown));
    let mut sources = Vec::new();
    let cited = used.iter().rev().copied();
    add_sources(view, cited, &mut sources, &mut budget);
    sources.reverse();
    let kept = sources.iter().map(|source| source["entry_id"].clone());
    pack["provenance"]["used_entry_ids"] = kept.collect();
    let is_cut = end < text.len() || sources.len() < used.len();
    let note = format!(
        "{end} of {} bytes and {} of {} sources fit: a larger max_bytes shows more",
        text.len(),
        sources.len(),
        used.len()
    );
    pack["notes"] = is_cut.then_some(note).into();
    pack["text"] = shown.into();
    pack["sources"] = sources.into();
}

/// The quotations of a scene that is made of the beginnings of entries. `None` if a writer set the
/// scene in other words.
fn quoted_beginnings<'a>(view: &View<'a>, anchor: &Anchor) -> Option<Vec<Quoted<'a>>> {
    let text = anchor.text.as_str();
    let mut rest = Some(text);
    let mut quoted = Vec::new();
    for id in &anchor.used {
        let entry = view.entry(*id)?;
        // A single quotation may be shorter than usual; several are all as long as usual.
        let most = entry.text.floor_char_boundary(QUOTATION_BYTES_MAX);
        let bytes = if anchor.used.len() == 1 {
            text.len()
        } else {
            most
        };
        let piece = entry.text.get(..bytes)?;
        rest = match rest?.strip_prefix(piece)? {
            "" => None,
            more => Some(more.strip_prefix('\n')?),
        };
        quoted.push(Quoted {
            entry,
            text: piece,
            excerpt: None,
        });
    }
    (rest.is_none() || text.is_empty()).then_some(quoted)
}

/// Adds the sources that fit and are not listed yet.
fn add_sources(
    view: &View<'_>,
    ids: impl Iterator<Item = EntryId>,
    sources: &mut Vec<Value>,
    budget: &mut Budget,
) {
    for entry in ids.filter_map(|id| view.entry(id)) {
        let id = entry.id.to_string();
        if sources.iter().any(|source| source["entry_id"] == id) {
            continue;
        }
        let source = source_json(view, entry);
        // A pack lists the id as well.
        if !budget.try_take(&json!([id, source])) {
            break;
        }
        sources.push(source);
    }
}

/// Takes a list out of a value, and leaves an empty one.
fn take_list(value: &mut Value, pointer: &str) -> Vec<Value> {
    match value.pointer_mut(pointer) {
        Some(Value::Array(list)) => std::mem::take(list),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_ledger::config::Profile;
    use turnkeep_ledger::entry::{Author, AuthorClass, Channel};
    use turnkeep_ledger::fact::{Fact, Scene};
    use turnkeep_ledger::ids::{BundleId, Name};
    use turnkeep_ledger::time::WorldTime;
    use turnkeep_ledger::{Config, Viewer, World};
    use turnkeep_types::Timestamp;

    use super::*;

    fn entry(number: u128, text: &str) -> Entry {
        Entry {
            id: EntryId(number),
            bundle: BundleId(1),
            request: "r".into(),
            time: WorldTime::from_timestamp(Timestamp(1)),
            author: Author {
                class: AuthorClass::Person,
                id: Name::new("ANN").unwrap(),
            },
            label: "Ann".into(),
            visible_to: None,
            channel: Channel::People,
            text: text.into(),
            reply_to: None,
        }
    }

    fn world(texts: &[&str]) -> World {
        let name = Name::new("w").unwrap();
        let start = WorldTime::from_timestamp(Timestamp(1));
        let mut world = World::new(Config::new(name, Profile::Workspace, start));
        for (number, text) in (1..).zip(texts) {
            world.apply(Fact::Entry(entry(number, text)));
        }
        world
    }

    fn scene(world: &World, bytes: usize) -> Value {
        let view = world.view(Viewer::Reader(Name::new("ANN").unwrap()));
        let ids = RequestIds {
            tool_request_id: "r",
            request_id: "r",
        };
        fit_scene(&view, &Anchor::build(&view), ids, Budget::of(bytes))
    }

    /// The scene within the smallest budget that has room for so many sources.
    fn scene_with_sources(world: &World, count: usize) -> Value {
        let mut scenes = (2_000..32_000).step_by(50).map(|bytes| scene(world, bytes));
        let has_room = |scene: &Value| scene["sources"].as_array().unwrap().len() == count;
        scenes.find(has_room).unwrap()
    }

    #[test]
    fn a_scene_in_a_writer_s_words_keeps_its_beginning_and_its_newest_sources() {
        let mut world = world(&["one", "two", "three"]);
        world.apply(Fact::Scene(Scene {
            position: 3,
            text: "It rains. ".repeat(400),
            cited: vec![EntryId(1), EntryId(2), EntryId(3)],
        }));
        let whole = scene(&world, 32 << 10);
        assert_eq!(whole["text"], "It rains. ".repeat(400));
        assert_eq!(whole["sources"].as_array().unwrap().len(), 3);
        assert_eq!(whole["notes"], Value::Null);
        let cut = scene_with_sources(&world, 1);
        assert_eq!(cut["text"], "It rains. ".repeat(400));
        let id = EntryId(3).to_string();
        assert_eq!(cut["provenance"]["used_entry_ids"], json!([id]));
        assert_eq!(cut["sources"][0]["entry_id"], id);
        let short = scene(&world, 4000);
        assert!(short["text"].as_str().unwrap().starts_with("It rains. It"));
        assert_eq!(short["sources"], json!([]));
        let note = short["notes"].as_str().unwrap();
        assert!(note.contains("of 4000 bytes and 0 of 3 sources"), "{note}");
    }

    #[test]
    fn a_scene_of_entries_keeps_the_newest() {
        let world = world(&["one\ntwo", "two\n", "three"]);
        let whole = scene(&world, 32 << 10);
        assert_eq!(whole["text"], "one\ntwo\ntwo\n\nthree");
        assert_eq!(whole["sources"].as_array().unwrap().len(), 3);
        let cut = scene_with_sources(&world, 2);
        assert_eq!(cut["text"], "two\n\nthree");
    }
}
