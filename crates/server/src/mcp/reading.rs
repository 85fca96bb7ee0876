//! The tools that read a world.
//!
//! Each answer is made from one view at one position, within a byte budget. Entries that are hidden
//! from the caller change no byte of it and do not end a wait. A wait ends when a visible entry
//! comes, when its time is over, or when the server stops.

use std::time::Duration;

use serde_json::{Value, json};
use turnkeep_ledger::anchor::Anchor;
use turnkeep_ledger::capsule::Capsule;
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::fact::ItemKind;
use turnkeep_ledger::ids::{BundleId, EntryId};
use turnkeep_ledger::known_persons::{Refusal, find_person};
use turnkeep_ledger::retrieval::{self, RetrievalPack, SearchRequest, WindowText};
use turnkeep_ledger::tools::{self, RequestIds, Tool};
use turnkeep_ledger::{Code, Fault, View, World, cursor, pocket, projection};

use super::arguments::Arguments;
use super::budget::Budget;
use super::introduction::{self, PersonsRequest};
use super::{packs, shown};
use crate::error::ApiError;
use crate::shared::Shared;
use crate::world_caller::WorldCaller;

/// The longest wait for new entries. Clients give up on an answer after a minute.
pub(super) const WAIT_SECONDS_MAX: usize = 50;
/// Pocket items per answer.
pub(super) const ITEMS_MAX: usize = 200;
/// Ids per call of `ledger_get`.
pub(super) const IDS_MAX: usize = 200;
/// Bytes of an id; ids of entries and bundles have 28.
const ID_BYTES_MAX: usize = 64;
/// Bytes of each entry when several are asked for.
const PIECE_BYTES_MAX: usize = 2 << 10;

/// `whoami`
pub(super) async fn whoami(
    shared: &Shared,
    world_caller: WorldCaller,
    arguments: &Arguments,
) -> Result<Value, ApiError> {
    world_caller.count_call(shared)?;
    let request = PersonsRequest {
        after: arguments.optional_text("after")?.map(str::to_owned),
        budget: Budget::from_arguments(arguments)?,
    };
    let work = move || {
        let answer = |world: &World| introduction::whoami_json(world, &world_caller, request);
        Ok(world_caller.handle.read_long(answer))
    };
    shared.blocking(work).await
}

/// `ledger_search`
pub(super) async fn search(
    shared: &Shared,
    world_caller: &WorldCaller,
    arguments: &Arguments,
) -> Result<Value, ApiError> {
    let budget = Budget::from_arguments(arguments)?;
    let person = person_named(shared, world_caller, arguments).await?;
    // A call without a query or with a count of the wrong type is rejected before it is counted.
    arguments.optional_count("limit")?;
    arguments.optional_count("context")?;
    arguments.text("query")?;
    world_caller.count_call(shared)?;
    let text = SearchText::from_arguments(arguments, person)?;
    world_caller
        .read_view(shared, move |view| text.search(view, budget))
        .await
}

/// The parameters of `ledger_search`, as the caller gave them.
struct SearchText {
    query: String,
    from: Option<String>,
    to: Option<String>,
    limit: Option<u32>,
    context_max: Option<u32>,
    person: Option<String>,
}

impl SearchText {
    fn from_arguments(arguments: &Arguments, person: Option<String>) -> Result<Self, Fault> {
        let root = arguments.root();
        let count =
            |name: &str, least| root.read_optional(name, |node| tools::read_limit(&node, least));
        Ok(Self {
            query: tools::read_query(&root.field("query")?)?.to_owned(),
            from: arguments.optional_text("from")?.map(str::to_owned),
            to: arguments.optional_text("to")?.map(str::to_owned),
            limit: count("limit", 1)?,
            context_max: count("context", 0)?,
            person,
        })
    }

    fn search(&self, view: &View<'_>, budget: Budget) -> Result<Value, Fault> {
        let window = WindowText {
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            from_path: "from",
            to_path: "to",
            window_path: "time_window",
        };
        let window = window.parse(&view.world.clock.timezone)?;
        let request = SearchRequest {
            text: &self.query,
            author: self.person.as_deref(),
            window: &window,
            limit: self.limit,
            context_max: self.context_max,
        };
        Ok(search_json(
            view,
            &retrieval::search(view, &request),
            budget,
        ))
    }
}

/// The person that the argument `person_id` names, if it is given.
async fn person_named(
    shared: &Shared,
    world_caller: &WorldCaller,
    arguments: &Arguments,
) -> Result<Option<String>, ApiError> {
    let Some(given) = arguments.optional_text("person_id")?.map(str::to_owned) else {
        return Ok(None);
    };
    let refusal = Refusal {
        code: Code::NotFound,
        path: "person_id",
    };
    world_caller
        .read_view(shared, move |view| {
            find_person(view, &given, refusal).map(|id| Some(id.to_string()))
        })
        .await
}

/// The results of a search, each with author and audience, as far as they fit.
fn search_json(view: &View<'_>, found: &RetrievalPack<'_>, mut budget: Budget) -> Value {
    let results = found.results.iter().map(|evidence| {
        let mut result = evidence.to_json();
        shown::add_description(view, evidence.entry, &mut result);
        result
    });
    let shown = budget.take_fitting(results, shorten_excerpt);
    let (kept, all) = (shown.len(), found.results.len());
    let cut = (kept < all)
        .then(|| format!("the first {kept} of {all} fit: a larger max_bytes shows more"));
    let notes = cut.as_deref().or(found.notes.as_deref());
    retrieval::pack_json(request_ids(Tool::LedgerSearch), &shown, notes)
}

/// The ids in a pack. A call has no ids of its own, so the tool's name stands for both.
fn request_ids(tool: Tool) -> RequestIds<'static> {
    RequestIds {
        tool_request_id: tool.word(),
        request_id: tool.word(),
    }
}

/// Shortens a result's excerpt until the result fits. `ledger_get` has the rest.
fn shorten_excerpt(result: &mut Value, budget: Budget) {
    budget.shorten_texts(result, &["verbatim_excerpt"]);
    let bytes = result["verbatim_excerpt"].as_str().map_or(0, str::len);
    let start = result["range"][0].as_u64().unwrap_or_default();
    result["range"][1] = (start + bytes as u64).into();
}

/// `ledger_get`
pub(super) async fn get_entries(
    shared: &Shared,
    world_caller: &WorldCaller,
    arguments: &Arguments,
) -> Result<Value, ApiError> {
    world_caller.count_call(shared)?;
    let request = GetRequest::from_arguments(arguments)?;
    world_caller
        .read_view(shared, move |view| request.pack(view))
        .await
}

/// The parameters of `ledger_get`.
struct GetRequest {
    ids: Vec<String>,
    limit: usize,
    offset: Option<usize>,
    budget: Budget,
}

impl GetRequest {
    fn from_arguments(arguments: &Arguments) -> Result<Self, Fault> {
        let ids = read_ids(arguments)?;
        let limit = arguments.optional_count("limit")?.unwrap_or(IDS_MAX);
        if !(1..=IDS_MAX).contains(&limit) {
            let message = format!("must be 1 to {IDS_MAX}");
            return Err(Fault::new(Code::BadLimit, "limit", message));
        }
        Ok(Self {
            ids,
            limit,
            offset: arguments.optional_count("offset")?,
            budget: Budget::from_arguments(arguments)?,
        })
    }

    fn pack(mut self, view: &View<'_>) -> Result<Value, Fault> {
        let found = self.find_entries(view);
        if self.offset.is_some() && (self.ids.len() != 1 || found.len() > 1) {
            return Err(Fault::new(
                Code::ToolRequestInvalid,
                "offset",
                "needs the id of one entry",
            ));
        }
        // A single entry may use the whole budget; several entries share it.
        let is_alone = found.len() == 1;
        let mut results = Vec::new();
        for entry in found.iter().take(self.limit) {
            let result = self.entry_part(view, entry, is_alone)?;
            if !self.budget.try_take(&result) && !results.is_empty() {
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

    /// The visible entries of the ids, each once, in the order of the request. Unknown and hidden
    /// ids are both simply missing.
    fn find_entries<'a>(&self, view: &View<'a>) -> Vec<&'a Entry> {
        let mut met = std::collections::HashSet::new();
        let entries = self
            .ids
            .iter()
            .flat_map(|id| entries_of_id(view, id.trim()));
        entries.filter(|entry| met.insert(entry.id)).collect()
    }

    /// A part of an entry: from the offset on, as much as fits. Of one entry among several, its
    /// beginning.
    fn entry_part(&self, view: &View<'_>, entry: &Entry, is_alone: bool) -> Result<Value, Fault> {
        let text = &*entry.text;
        let offset = self.offset.unwrap_or(0);
        if offset > text.len() {
            let message = format!("is behind the end: the text has {} bytes", text.len());
            return Err(Fault::new(Code::BadLimit, "offset", message));
        }
        // A caller may have computed the offset itself, so it need not be at a character's start.
        let start = text.floor_char_boundary(offset);
        let mut result = entry_without_text(view, entry);
        let end_max = if is_alone {
            text.len()
        } else {
            text.floor_char_boundary(start + PIECE_BYTES_MAX)
        };
        let rest = text.get(start..end_max).unwrap_or_default();
        let end = start + self.budget.text_bytes_beside(rest, &result);
        result["verbatim_excerpt"] = text.get(start..end).unwrap_or_default().into();
        result["range"] = json!([start, end]);
        result["next_offset"] = (end < text.len()).then_some(end).into();
        Ok(result)
    }
}

/// The ids that a call of `ledger_get` asks for.
fn read_ids(arguments: &Arguments) -> Result<Vec<String>, Fault> {
    let ids = arguments.optional_texts("ids")?;
    let ids = ids.ok_or_else(|| Fault::new(Code::ToolRequestInvalid, "ids", "is missing"))?;
    if ids.is_empty() || ids.len() > IDS_MAX || ids.iter().any(|id| id.len() > ID_BYTES_MAX) {
        let message = format!("must be 1 to {IDS_MAX} ids of entries or bundles");
        return Err(Fault::new(Code::ToolRequestInvalid, "ids", message));
    }
    Ok(ids.into_iter().map(str::to_owned).collect())
}

/// A result of `ledger_get` before its text is chosen. The numbers have their largest values, so
/// that the measured size is an upper bound.
fn entry_without_text(view: &View<'_>, entry: &Entry) -> Value {
    let text_bytes = entry.text.len();
    let mut result = json!({
        "entry_id": entry.id.to_string(),
        "bundle_id": entry.bundle.to_string(),
        "created_at_world": entry.time.as_str(),
        "visibility_scope": entry.scope(),
        "verbatim_excerpt": "",
        "author_id": entry.author.id.as_str(),
        "range": [text_bytes, text_bytes],
        "text_bytes": text_bytes,
        "next_offset": text_bytes,
    });
    shown::add_description(view, entry, &mut result);
    result
}

fn entries_of_id<'a>(view: &View<'a>, id: &str) -> Vec<&'a Entry> {
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
pub(super) async fn get_capsule(
    shared: &Shared,
    world_caller: &WorldCaller,
    arguments: &Arguments,
) -> Result<Value, ApiError> {
    arguments.text("person_id")?;
    let budget = Budget::from_arguments(arguments)?;
    // An unknown name is rejected before the call is counted, so that a typo costs nothing.
    let person = person_named(shared, world_caller, arguments).await?;
    world_caller.count_call(shared)?;
    world_caller
        .read_view(shared, move |view| {
            let capsule = Capsule::build(view, person.as_deref().unwrap_or_default());
            let ids = request_ids(Tool::CapsuleGet);
            Ok(packs::fit_capsule(view, &capsule, ids, budget))
        })
        .await
}

/// `scene_pack_build`
pub(super) async fn build_scene(
    shared: &Shared,
    world_caller: &WorldCaller,
    arguments: &Arguments,
) -> Result<Value, ApiError> {
    let budget = Budget::from_arguments(arguments)?;
    world_caller.count_call(shared)?;
    world_caller
        .read_view(shared, move |view| {
            let ids = request_ids(Tool::ScenePackBuild);
            Ok(packs::fit_scene(view, &Anchor::build(view), ids, budget))
        })
        .await
}

/// `ledger_read`
pub(super) async fn read_stream(
    shared: &Shared,
    world_caller: WorldCaller,
    arguments: Arguments,
) -> Result<Value, ApiError> {
    world_caller.count_call(shared)?;
    let request = StreamRequest::from_arguments(&arguments)?;
    let wait = read_wait(&arguments)?;
    // Ends the permit of the arguments. Waiting calls would otherwise use up the memory budget, and
    // other callers would get 429.
    drop(arguments);
    if let Some(wait) = wait {
        wait_for_news(shared, &world_caller, &request, wait).await?;
        // The token may have been revoked while the call waited.
        world_caller.check_token()?;
    }
    world_caller
        .read_view(shared, move |view| request.show(view))
        .await
}

/// Waits until an entry that the caller may see stands behind the cursor. A wait that times out or
/// meets the end of the server is no error: the answer then has no new entries.
async fn wait_for_news(
    shared: &Shared,
    world_caller: &WorldCaller,
    request: &StreamRequest,
    wait: Duration,
) -> Result<(), Fault> {
    let WorldCaller { handle, who, .. } = world_caller;
    let viewer = who.viewer();
    let place = handle.read(|world| request.first_place(&world.view(viewer.clone())))?;
    tokio::select! {
        () = handle.wait_for_entries(&viewer, place) => {}
        () = tokio::time::sleep(wait) => {}
        () = shared.stopping.cancelled() => {}
    }
    Ok(())
}

fn read_wait(arguments: &Arguments) -> Result<Option<Duration>, Fault> {
    let seconds = arguments.optional_count("wait_seconds")?.unwrap_or(0);
    if seconds > WAIT_SECONDS_MAX {
        let message = format!("must be 0 to {WAIT_SECONDS_MAX}: call again to wait longer");
        return Err(Fault::new(Code::BadLimit, "wait_seconds", message));
    }
    Ok((seconds > 0).then(|| Duration::from_secs(seconds as u64)))
}

/// The parameters of `ledger_read`.
struct StreamRequest {
    cursor: Option<String>,
    newest: Option<usize>,
    limit: usize,
    budget: Budget,
}

impl StreamRequest {
    fn from_arguments(arguments: &Arguments) -> Result<Self, Fault> {
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
            budget: Budget::from_arguments(arguments)?,
        })
    }

    /// How many visible entries come before the page.
    fn first_place(&self, view: &View<'_>) -> Result<u64, Fault> {
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
        let place = self.first_place(view)?;
        let entries = self.fill_page(view, view.entries_after(place));
        let end = place + entries.len() as u64;
        Ok(json!({ "stream": {
            "cursor_before": self.cursor,
            "cursor_after": cursor_at(view, end),
            "entries": entries,
            "more": end < view.count(),
        } }))
    }

    /// The newest entries, in ledger order. If they do not all fit, the oldest of them are left
    /// out, and reading from `cursor_before` begins with those. For example, of `newest: 50` only
    /// 20 fit: `cursor_before` is the place before the 50, and `more_before` is true.
    fn show_newest(&mut self, view: &View<'_>, newest: usize) -> Value {
        let wanted = newest.min(self.limit);
        let newest_first = view.newest_first().map(|(_, entry)| entry);
        let mut entries = self.fill_page(view, newest_first.take(wanted));
        entries.reverse();
        let before_shown = view.count().saturating_sub(entries.len() as u64);
        let before_wanted = view.count().saturating_sub(wanted as u64);
        let has_left_out = before_wanted < before_shown;
        let cursor_before = cursor_at(view, before_wanted).filter(|_| has_left_out);
        json!({ "stream": {
            "cursor_before": cursor_before,
            "cursor_after": cursor_at(view, view.count()),
            "entries": entries,
            "more": false,
            "more_before": has_left_out,
            "older": before_shown,
        } })
    }

    fn fill_page<'a>(
        &mut self,
        view: &View<'_>,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Vec<Value> {
        let values = entries
            .take(self.limit)
            .map(|entry| shown::stream_entry(view, entry));
        self.budget.take_fitting(values, shown::cut_stream_entry)
    }
}

fn cursor_at(view: &View<'_>, place: u64) -> Option<String> {
    (place > 0).then(|| cursor::write(view, place))
}

/// `ledger_pocket`
pub(super) async fn read_pocket(
    shared: &Shared,
    world_caller: &WorldCaller,
    arguments: &Arguments,
) -> Result<Value, ApiError> {
    world_caller.count_call(shared)?;
    let request = PocketRequest::from_arguments(arguments)?;
    world_caller
        .read_view(shared, move |view| Ok(request.show(view)))
        .await
}

/// The parameters of `ledger_pocket`.
struct PocketRequest {
    kind: ItemKind,
    skip: usize,
    limit: usize,
    budget: Budget,
}

impl PocketRequest {
    fn from_arguments(arguments: &Arguments) -> Result<Self, Fault> {
        let kind = read_item_kind(arguments)?;
        let skip = arguments.optional_count("skip")?;
        let limit = arguments.optional_count("limit")?;
        Ok(Self {
            kind,
            skip: skip.unwrap_or(0),
            limit: limit.unwrap_or(ITEMS_MAX).clamp(1, ITEMS_MAX),
            budget: Budget::from_arguments(arguments)?,
        })
    }

    fn show(mut self, view: &View<'_>) -> Value {
        let all = pocket::list_items(view, self.kind);
        let asked = all.iter().skip(self.skip).take(self.limit);
        let values = asked.map(|item| {
            let mut value = item.value.clone();
            shown::add_description(view, item.source, &mut value);
            value
        });
        // A cut item still counts, or `skip` could never get past it.
        let shown = self.budget.take_fitting(values, cut_texts);
        let end = self.skip.saturating_add(shown.len());
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
}

fn read_item_kind(arguments: &Arguments) -> Result<ItemKind, Fault> {
    match arguments.text("part")? {
        "calendar" => Ok(ItemKind::Calendar),
        "messages" => Ok(ItemKind::Message),
        _ => {
            let message = "must be calendar or messages";
            Err(Fault::new(Code::ToolRequestInvalid, "part", message))
        }
    }
}

/// Bytes that are kept of each text of an item that is too large for an answer.
const ITEM_TEXT_BYTES_MAX: usize = 128;

/// The texts of an item, the most important first.
const ITEM_TEXTS: [&str; 4] = ["title", "text", "location", "notes"];

/// Cuts the long texts of an item. The caller can read them in the item's entry.
fn cut_texts(item: &mut Value, budget: Budget) {
    item["cut"] = true.into();
    for name in ITEM_TEXTS {
        if let Some(Value::String(text)) = item.get_mut(name) {
            text.truncate(text.floor_char_boundary(ITEM_TEXT_BYTES_MAX));
        }
    }
    // Escapes may still make them too long.
    budget.shorten_texts(item, &ITEM_TEXTS);
}
