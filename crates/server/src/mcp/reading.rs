//! The tools that read a world.
//!
//! Each answer is made from one view at one position and within a budget of bytes. What is hidden
//! from the caller changes no byte of it, and wakes nobody who waits: a wait ends when something
//! visible comes, when its time is over, or when the server stops.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::fact::ItemKind;
use turnkeep_ledger::ids::{BundleId, EntryId};
use turnkeep_ledger::known_persons::{Refusal, find_person};
use turnkeep_ledger::{Code, Fault, View, World, cursor, pocket, projection};

use super::arguments::Arguments;
use super::budget::Budget;
use super::{introduction, shown};
use crate::error::ApiError;
use crate::http::ledger::tools::Asker;
use crate::shared::Shared;

/// The longest wait for news. Clients give up on an answer after a minute.
pub(super) const WAIT_SECONDS_MAX: usize = 50;
/// Pocket items in one answer.
pub(super) const ITEMS_MAX: usize = 200;
/// Entries that may be asked for by id in one call.
pub(super) const IDS_MAX: usize = 200;
/// Bytes of an id; those of entries and bundles have 28.
const ID_BYTES_MAX: usize = 64;
/// Bytes of each entry where several are asked for.
const PIECE_BYTES_MAX: usize = 2 << 10;

/// Reads a world on a thread of its own.
async fn look<T: Send + 'static>(
    shared: &Shared,
    asker: &Asker,
    look: impl FnOnce(&View<'_>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, ApiError> {
    let (handle, viewer) = (Arc::clone(&asker.handle), asker.who.viewer());
    shared
        .blocking(move || {
            handle
                .read_long(|world| look(&world.view(viewer)))
                .map_err(ApiError::from)
        })
        .await
}

/// `whoami`
pub(super) async fn whoami(
    shared: &Shared,
    asker: Asker,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    asker.count(shared)?;
    let after = arguments.optional_text("after")?.map(str::to_owned);
    let work = move || {
        let answer = |world: &World| introduction::whoami(world, &asker, after.as_deref());
        Ok(asker.handle.read_long(answer))
    };
    shared.blocking(work).await
}

/// `ledger_search`
pub(super) async fn search(
    shared: &Arc<Shared>,
    asker: &Asker,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let budget = Budget::of(arguments)?;
    let person = person_named(shared, asker, arguments).await?;
    let mut constraints = json!({
        "time_window": { "from": arguments.given("from"), "to": arguments.given("to") },
        "person_id": person,
    });
    if let Some(limit) = arguments.optional_count("limit")? {
        constraints["limit"] = limit.into();
    }
    let request = asker.request("LEDGER_SEARCH", arguments.text("query")?, &constraints);
    let mut pack = asker.ask(shared, request).await?;
    look(shared, asker, move |view| {
        shown::with_audiences(view, &mut pack);
        keep_what_fits(&mut pack, budget);
        Ok(pack)
    })
    .await
}

/// The person whom an argument names, if it names one.
async fn person_named(
    shared: &Shared,
    asker: &Asker,
    arguments: &Arguments<'_>,
) -> Result<Option<String>, ApiError> {
    let Some(given) = arguments.optional_text("person_id")?.map(str::to_owned) else {
        return Ok(None);
    };
    let refusal = Refusal {
        code: Code::NotFound,
        path: "person_id",
    };
    look(shared, asker, move |view| {
        find_person(view, &given, refusal).map(|id| Some(id.to_string()))
    })
    .await
}

/// Leaves out the last results that are too much, and says so.
fn keep_what_fits(pack: &mut Value, mut budget: Budget) {
    let Some(results) = pack.get_mut("results").and_then(Value::as_array_mut) else {
        return;
    };
    let fit = results
        .iter()
        .take_while(|result| budget.take(result))
        .count();
    let all = results.len();
    results.truncate(fit.max(1));
    let kept = results.len();
    if kept < all {
        pack["notes"] =
            format!("the first {kept} of {all} fit: a larger max_bytes shows more").into();
    }
}

/// `ledger_get`
pub(super) async fn get(
    shared: &Arc<Shared>,
    asker: &Asker,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    asker.count(shared)?;
    let ids = arguments.optional_texts("ids")?;
    let ids = ids.ok_or_else(|| Fault::new(Code::ToolRequestInvalid, "ids", "is missing"))?;
    if ids.is_empty() || ids.len() > IDS_MAX || ids.iter().any(|id| id.len() > ID_BYTES_MAX) {
        let message = format!("must be 1 to {IDS_MAX} ids of entries or bundles");
        return Err(Fault::new(Code::ToolRequestInvalid, "ids", message).into());
    }
    let limit = arguments.optional_count("limit")?.unwrap_or(IDS_MAX);
    if !(1..=IDS_MAX).contains(&limit) {
        return Err(Fault::new(Code::BadLimit, "limit", format!("must be 1 to {IDS_MAX}")).into());
    }
    let wanted = Wanted {
        ids: ids.into_iter().map(str::to_owned).collect(),
        limit,
        offset: arguments.optional_count("offset")?,
        budget: Budget::of(arguments)?,
    };
    look(shared, asker, move |view| wanted.pack(view)).await
}

/// Entries that are asked for by id.
struct Wanted {
    ids: Vec<String>,
    limit: usize,
    offset: Option<usize>,
    budget: Budget,
}

impl Wanted {
    fn pack(mut self, view: &View<'_>) -> Result<Value, Fault> {
        let found = self.found(view);
        if self.offset.is_some() && (self.ids.len() != 1 || found.len() > 1) {
            return Err(Fault::new(
                Code::ToolRequestInvalid,
                "offset",
                "needs the id of one entry",
            ));
        }
        let is_alone = found.len() == 1;
        let mut results = Vec::new();
        for entry in found.iter().take(self.limit) {
            let result = self.piece(view, entry, is_alone)?;
            if !self.budget.take(&result) && !results.is_empty() {
                break;
            }
            results.push(result);
        }
        let notes = (results.len() < found.len()).then(|| {
            format!(
                "the first {} of {} are shown: ask for fewer at a time",
                results.len(),
                found.len()
            )
        });
        let empty = results.is_empty();
        Ok(json!({ "results": results, "empty": empty, "notes": notes }))
    }

    /// The visible entries of the ids, each once, in the order in which they were asked for. An
    /// unknown id and a hidden one are both simply absent.
    fn found<'a>(&self, view: &View<'a>) -> Vec<&'a Entry> {
        let mut met = std::collections::HashSet::new();
        let entries = self.ids.iter().flat_map(|id| entries_of(view, id.trim()));
        entries.filter(|entry| met.insert(entry.id)).collect()
    }

    /// A part of an entry: from the offset on, as much as fits; of one among several, its
    /// beginning.
    fn piece(&self, view: &View<'_>, entry: &Entry, is_alone: bool) -> Result<Value, Fault> {
        let text = &*entry.text;
        let start = text.floor_char_boundary(self.offset.unwrap_or(0));
        if self.offset.is_some_and(|offset| offset > text.len()) {
            let message = format!("is behind the end: the text has {} bytes", text.len());
            return Err(Fault::new(Code::BadLimit, "offset", message));
        }
        let mut result = json!({
            "entry_id": entry.id.to_string(),
            "bundle_id": entry.bundle.to_string(),
            "created_at_world": entry.time.as_str(),
            "visibility_scope": entry.scope(),
            "verbatim_excerpt": "",
            "author_id": entry.author.id.as_str(),
            "range": [text.len(), text.len()],
            "text_bytes": text.len(),
            "next_offset": text.len(),
        });
        shown::describe(view, entry, &mut result);
        let rest = text.get(start..).unwrap_or_default();
        let most = if is_alone {
            rest.len()
        } else {
            rest.floor_char_boundary(PIECE_BYTES_MAX)
        };
        let rest = rest.get(..most).unwrap_or_default();
        let end = start + self.budget.piece_of(rest, &result);
        result["verbatim_excerpt"] = text.get(start..end).unwrap_or_default().into();
        result["range"] = json!([start, end]);
        result["next_offset"] = (end < text.len()).then_some(end).into();
        Ok(result)
    }
}

fn entries_of<'a>(view: &View<'a>, id: &str) -> Vec<&'a Entry> {
    if let Ok(id) = id.parse::<BundleId>() {
        return view.entries_of_bundle(id).map(|(_, entry)| entry).collect();
    }
    id.parse::<EntryId>()
        .ok()
        .and_then(|id| view.entry(id))
        .into_iter()
        .collect()
}

/// `capsule_get`
pub(super) async fn capsule(
    shared: &Arc<Shared>,
    asker: &Asker,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    arguments.text("person_id")?;
    let person = person_named(shared, asker, arguments).await?;
    let pack = asker
        .ask(
            shared,
            asker.request("CAPSULE_GET", "", &json!({ "person_id": person })),
        )
        .await?;
    with_sources(shared, asker, pack).await
}

/// `scene_pack_build`
pub(super) async fn scene(shared: &Arc<Shared>, asker: &Asker) -> Result<Value, ApiError> {
    let pack = asker
        .ask(shared, asker.request("SCENE_PACK_BUILD", "", &json!({})))
        .await?;
    with_sources(shared, asker, pack).await
}

/// A pack with the authors and audiences of what it quotes.
async fn with_sources(shared: &Shared, asker: &Asker, mut pack: Value) -> Result<Value, ApiError> {
    look(shared, asker, move |view| {
        let sources = shown::sources(view, used_entries(&pack));
        pack["sources"] = sources;
        Ok(pack)
    })
    .await
}

/// The entries that a pack, or one of its sections, says that it was made from.
fn used_entries(pack: &Value) -> impl Iterator<Item = &str> {
    let sections = pack
        .get("sections")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let lists = std::iter::once(pack)
        .chain(sections)
        .filter_map(|part| part.pointer("/provenance/used_entry_ids"));
    lists
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str)
}

/// `ledger_read`
pub(super) async fn read(
    shared: &Shared,
    asker: Asker,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    asker.count(shared)?;
    let wanted = Page::wanted(arguments)?;
    if let Some(wait) = wait_of(arguments)? {
        let viewer = asker.who.viewer();
        let place = asker
            .handle
            .read(|world| wanted.place(&world.view(viewer.clone())))?;
        let end = Instant::now() + wait;
        tokio::select! {
            () = asker.handle.wait_for_entries(&viewer, place) => {}
            () = tokio::time::sleep_until(end) => {}
            () = shared.stopping.cancelled() => {}
        }
        asker.refuse_ended_token()?;
    }
    look(shared, &asker, move |view| wanted.show(view)).await
}

fn wait_of(arguments: &Arguments<'_>) -> Result<Option<Duration>, Fault> {
    let seconds = arguments.optional_count("wait_seconds")?.unwrap_or(0);
    if seconds > WAIT_SECONDS_MAX {
        let message = format!("must be 0 to {WAIT_SECONDS_MAX}: call again to wait longer");
        return Err(Fault::new(Code::BadLimit, "wait_seconds", message));
    }
    Ok((seconds > 0).then(|| Duration::from_secs(seconds as u64)))
}

/// A page of the stream that is asked for.
struct Page {
    cursor: Option<String>,
    newest: Option<usize>,
    limit: usize,
    budget: Budget,
}

impl Page {
    fn wanted(arguments: &Arguments<'_>) -> Result<Self, Fault> {
        let cursor = arguments.optional_text("cursor")?.map(str::to_owned);
        let newest = arguments.optional_count("newest")?;
        if newest.is_some() && cursor.is_some() {
            let message = "cannot be given with a cursor: newest starts at the end, a cursor where you left off";
            return Err(Fault::new(Code::BadLimit, "newest", message));
        }
        let limit = arguments
            .optional_count("limit")?
            .unwrap_or(projection::PAGE_ENTRIES_MAX);
        for (name, count) in [("limit", limit), ("newest", newest.unwrap_or(1))] {
            if count == 0 {
                return Err(Fault::new(Code::BadLimit, name, "must be at least 1"));
            }
        }
        let limit = limit.min(projection::PAGE_ENTRIES_MAX);
        Ok(Self {
            cursor,
            newest,
            limit,
            budget: Budget::of(arguments)?,
        })
    }

    /// How many visible entries lie before the page.
    fn place(&self, view: &View<'_>) -> Result<u64, Fault> {
        self.cursor
            .as_deref()
            .map_or(Ok(0), |given| cursor::read(view, given, "cursor"))
    }

    fn show(mut self, view: &View<'_>) -> Result<Value, Fault> {
        match self.newest {
            Some(newest) => Ok(self.show_newest(view, newest)),
            None => self.show_from_cursor(view),
        }
    }

    fn show_from_cursor(&mut self, view: &View<'_>) -> Result<Value, Fault> {
        let place = self.place(view)?;
        let entries = self.fill(view, view.entries_after(place).take(self.limit));
        let end = place + entries.len() as u64;
        Ok(json!({ "stream": {
            "cursor_before": self.cursor,
            "cursor_after": cursor_at(view, end),
            "entries": entries,
            "more": end < view.count(),
        } }))
    }

    /// The newest entries, in ledger order. Where they are too much, the oldest of them are left
    /// out.
    fn show_newest(&mut self, view: &View<'_>, newest: usize) -> Value {
        let wanted = newest.min(self.limit);
        let mut entries = self.fill(
            view,
            view.newest_first().map(|(_, entry)| entry).take(wanted),
        );
        entries.reverse();
        let first = view.count().saturating_sub(entries.len() as u64);
        json!({ "stream": {
            "cursor_before": null,
            "cursor_after": cursor_at(view, view.count()),
            "entries": entries,
            "more": false,
            "older": first,
        } })
    }

    fn fill<'a>(
        &mut self,
        view: &View<'_>,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Vec<Value> {
        let mut shown: Vec<Value> = Vec::new();
        for entry in entries {
            match shown::entry(view, entry, &mut self.budget, shown.is_empty()) {
                Some(value) => shown.push(value),
                None => break,
            }
        }
        shown
    }
}

fn cursor_at(view: &View<'_>, place: u64) -> Option<String> {
    (place > 0).then(|| cursor::write(view, place))
}

/// `ledger_pocket`
pub(super) async fn pocket(
    shared: &Shared,
    asker: &Asker,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    asker.count(shared)?;
    let kind = match arguments.text("part")? {
        "calendar" => ItemKind::Calendar,
        "messages" => ItemKind::Message,
        _ => {
            return Err(Fault::new(
                Code::ToolRequestInvalid,
                "part",
                "must be calendar or messages",
            )
            .into());
        }
    };
    let skip = arguments.optional_count("skip")?.unwrap_or(0);
    let limit = arguments
        .optional_count("limit")?
        .unwrap_or(ITEMS_MAX)
        .clamp(1, ITEMS_MAX);
    let budget = Budget::of(arguments)?;
    look(shared, asker, move |view| {
        Ok(items(
            view,
            kind,
            Slice {
                skip,
                limit,
                budget,
            },
        ))
    })
    .await
}

/// Which part of a list is asked for.
#[derive(Clone, Copy)]
struct Slice {
    skip: usize,
    limit: usize,
    budget: Budget,
}

fn items(view: &View<'_>, kind: ItemKind, slice: Slice) -> Value {
    let Slice {
        skip,
        limit,
        mut budget,
    } = slice;
    let all = pocket::list_items(view, kind);
    let mut shown: Vec<Value> = Vec::new();
    for item in all.iter().skip(skip).take(limit) {
        let mut value = item.value.clone();
        shown::describe(view, item.source, &mut value);
        if !budget.take(&value) {
            if !shown.is_empty() {
                break;
            }
            cut_texts(&mut value);
            budget.take(&value);
        }
        shown.push(value);
    }
    let end = skip.saturating_add(shown.len());
    let available = view.world.config.pocket_available;
    let clock = &view.world.clock;
    json!({
        "is_available": available,
        "world_time": available.then(|| clock.time.as_str()),
        "timezone": available.then(|| clock.timezone.as_str()),
        "items": shown,
        "total": all.len(),
        "next_skip": (end < all.len()).then_some(end),
    })
}

/// Bytes of a text that is left of an item which is too large for an answer.
const ITEM_TEXT_BYTES_MAX: usize = 128;

/// Cuts the long texts of an item; its entry has them whole.
fn cut_texts(item: &mut Value) {
    for text in ["title", "location", "notes", "text"] {
        let Some(whole) = item.get(text).and_then(Value::as_str) else {
            continue;
        };
        let end = whole.floor_char_boundary(ITEM_TEXT_BYTES_MAX);
        item[text] = whole.get(..end).unwrap_or_default().into();
    }
    item["cut"] = true.into();
}
