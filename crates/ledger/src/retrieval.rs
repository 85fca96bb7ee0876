//! Retrieval: finds evidence in what a view may see, quoted verbatim with its source.
//!
//! Hidden, unknown and foreign entries are all simply missing, by the same code path. An excerpt is
//! a contiguous piece of its entry's text; nothing is joined, elided or explained. An empty result
//! is not an error.

#[cfg(any(test, feature = "dev"))]
mod check;

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::fault::{Code, Fault};
use crate::ids::{BundleId, EntryId};
use crate::search::{Excerpts, Hit, Query, Scope, Texts, Window, can_be_searched};
use crate::time::{WorldTime, Zone};
use crate::tools::{RequestIds, ToolRequest};
use crate::view::View;

#[cfg(any(test, feature = "dev"))]
pub use check::validate_pack;

/// The number of results unless the request says otherwise.
pub const LIMIT_DEFAULT: u32 = 10;
/// The maximal number of results.
pub const LIMIT_MAX: u32 = 200;

/// The note on a query that cannot find anything.
const UNSEARCHABLE_NOTE: &str =
    "the query has no word that is searched for: name one, or quote the exact words";

/// A field that is present, and true, when the entry does not match but stands beside a match.
/// Packs of earlier versions never have it.
const CONTEXT_FIELD: &str = "context";

/// An interval of world time; a missing bound is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first instant inside.
    pub from: Option<WorldTime>,
    /// The first instant behind it.
    pub to: Option<WorldTime>,
}

impl TimeWindow {
    fn contains(&self, time: &WorldTime) -> bool {
        self.from.as_ref().is_none_or(|from| from <= time)
            && self.to.as_ref().is_none_or(|to| time < to)
    }

    fn in_milliseconds(&self) -> Window {
        let ms = |time: &Option<WorldTime>| time.as_ref().map(WorldTime::unix_ms);
        Window {
            from: ms(&self.from),
            to: ms(&self.to),
        }
    }
}

/// A time window as a request gives it, and the paths of its parts for faults.
#[derive(Debug, Clone, Copy)]
pub struct WindowText<'a> {
    /// The start, if it is given.
    pub from: Option<&'a str>,
    /// The end, if it is given.
    pub to: Option<&'a str>,
    /// The path of the start.
    pub from_path: &'a str,
    /// The path of the end.
    pub to_path: &'a str,
    /// The path of the window as a whole.
    pub window_path: &'a str,
}

impl WindowText<'_> {
    /// Parses the window. Local times are in this zone.
    pub fn parse(&self, zone: &Zone) -> Result<TimeWindow, Fault> {
        let parse = |given: Option<&str>, path| {
            let time = given.map(|text| WorldTime::parse_in(text, zone, path));
            time.transpose()
        };
        let from = parse(self.from, self.from_path)?;
        let to = parse(self.to, self.to_path)?;
        if let (Some(from), Some(to)) = (&from, &to)
            && from > to
        {
            let message = "ends before it begins";
            return Err(Fault::new(Code::BadWindow, self.window_path, message));
        }
        Ok(TimeWindow { from, to })
    }
}

/// Gives search the texts of a view, so that it can check phrases.
struct VisibleTexts<'v, 'a>(&'v View<'a>);

impl Texts for VisibleTexts<'_, '_> {
    type Error = Infallible;

    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Infallible> {
        Ok(Cow::Borrowed(
            self.0.entry_at(entry).map_or("", |entry| &*entry.text),
        ))
    }
}

/// What a search looks for.
#[derive(Debug, Clone, Copy)]
pub struct SearchRequest<'a> {
    /// Words to match. Never interpreted as an instruction.
    pub text: &'a str,
    /// The author of the results.
    pub author: Option<&'a str>,
    /// The world time of the results.
    pub window: &'a TimeWindow,
    /// The maximal number of results; [`LIMIT_DEFAULT`] unless given.
    pub limit: Option<u32>,
    /// The maximal number of context entries among them; as many as results unless given.
    pub context_max: Option<u32>,
}

/// A piece of a visible entry, quoted verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The bytes of its text that are quoted.
    pub range: Range<usize>,
    /// Whether the entry does not match but stands beside a match.
    pub is_context: bool,
}

impl Evidence<'_> {
    /// The form in a pack.
    pub fn to_json(&self) -> Value {
        let Self { entry, range, .. } = self;
        let mut form = json!({
            "entry_id": entry.id.to_string(),
            "bundle_id": entry.bundle.to_string(),
            "created_at_world": entry.time.as_str(),
            "visibility_scope": entry.scope(),
            "verbatim_excerpt": entry.text.get(range.clone()).unwrap_or_default(),
            "author_id": entry.author.id.as_str(),
            "range": [range.start, range.end],
        });
        if self.is_context {
            form[CONTEXT_FIELD] = true.into();
        }
        form
    }
}

/// What a retrieval found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrievalPack<'a> {
    /// The evidence, each entry once.
    pub results: Vec<Evidence<'a>>,
    /// A mechanical remark, such as that the limit left something out.
    pub notes: Option<String>,
}

impl RetrievalPack<'_> {
    /// The form of the pack in the answer to a tool request.
    pub fn to_json(&self, ids: RequestIds<'_>) -> Value {
        let results: Vec<Value> = self.results.iter().map(Evidence::to_json).collect();
        pack_json(ids, &results, self.notes.as_deref())
    }
}

/// The form of a pack with these results, which may have more fields than [`Evidence`] has.
pub fn pack_json(ids: RequestIds<'_>, results: &[Value], notes: Option<&str>) -> Value {
    json!({
        "tool_request_id": ids.tool_request_id,
        "request_id": ids.request_id,
        "results": results,
        "empty": results.is_empty(),
        "notes": notes,
    })
}

/// Finds the entries that match a text best.
pub fn search<'a>(view: &View<'a>, request: &SearchRequest<'_>) -> RetrievalPack<'a> {
    let limit = request.limit.unwrap_or(LIMIT_DEFAULT);
    let query = Query {
        text: request.text,
        author: request.author,
        window: request.window.in_milliseconds(),
        limit: limit as usize,
        context_max: request.context_max.unwrap_or(limit) as usize,
    };
    let scope = Scope {
        classes: view.classes(),
        at: view.position(),
    };
    // The texts are in memory, so reading one cannot fail.
    let Ok(hits) = view
        .world
        .index()
        .search(&scope, &query, &VisibleTexts(view));
    let excerpts = Excerpts::new(query.text);
    let evidence = |hit: Hit| {
        let entry = view.entry_at(hit.entry)?;
        Some(Evidence {
            entry,
            range: excerpts.range(&entry.text),
            is_context: hit.context,
        })
    };
    RetrievalPack {
        results: hits.into_iter().filter_map(evidence).collect(),
        notes: (!can_be_searched(query.text)).then(|| UNSEARCHABLE_NOTE.to_owned()),
    }
}

/// Looks up entries by entry ids and bundle ids, in ledger order, each once. Notes in the pack say
/// when the limit or an excerpt left something out.
pub fn get<'a>(view: &View<'a>, request: &ToolRequest, window: &TimeWindow) -> RetrievalPack<'a> {
    let found = find_by_id(view, request, window);
    let limit = request.limit.unwrap_or(LIMIT_DEFAULT) as usize;
    let excerpts = Excerpts::new("");
    let mut results = Vec::new();
    let mut cut_notes = Vec::new();
    for entry in found.iter().take(limit) {
        let range = excerpts.range(&entry.text);
        let (shown, whole) = (range.len(), entry.text.len());
        if shown < whole {
            cut_notes.push(format!(
                "{} is cut: {shown} of {whole} bytes; the stream has it whole",
                entry.id
            ));
        }
        results.push(Evidence {
            entry,
            range,
            is_context: false,
        });
    }
    let mut notes = Vec::new();
    if results.len() < found.len() {
        notes.push(format!(
            "the first {} of {}: a larger limit shows more",
            results.len(),
            found.len()
        ));
    }
    notes.append(&mut cut_notes);
    let notes = (!notes.is_empty()).then(|| notes.join("; "));
    RetrievalPack { results, notes }
}

/// The visible entries that the ids of a request name, within its constraints, in ledger order.
fn find_by_id<'a>(view: &View<'a>, request: &ToolRequest, window: &TimeWindow) -> Vec<&'a Entry> {
    let mut numbers: Vec<u32> = Vec::new();
    for id in request.query_text.split([' ', ',', '\n', '\r', '\t']) {
        numbers.extend(resolve_id(view, id));
    }
    // A bundle and one of its entries may both be named.
    numbers.sort_unstable();
    numbers.dedup();
    let mut found = Vec::new();
    for entry in numbers
        .into_iter()
        .filter_map(|number| view.entry_at(number))
    {
        let is_author = request
            .person_id
            .as_deref()
            .is_none_or(|person| person == entry.author.id.as_str());
        if is_author && window.contains(&entry.time) {
            found.push(entry);
        }
    }
    found
}

/// The visible entries that an id names; none for an unknown or hidden one.
fn resolve_id(view: &View<'_>, id: &str) -> Vec<u32> {
    let entry = id.parse::<EntryId>().ok().and_then(|id| view.number_of(id));
    let bundle = id.parse::<BundleId>().ok().into_iter();
    let members = bundle.flat_map(|id| {
        view.entries_of_bundle(id)
            .map(|(number, _)| number)
            .collect::<Vec<_>>()
    });
    entry.into_iter().chain(members).collect()
}
