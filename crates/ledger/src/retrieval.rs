//! Retrieval: finds evidence in what a view may see, quoted verbatim with its source.
//!
//! Hidden, unknown and foreign entries are all simply missing, by the same code path. An excerpt is
//! a contiguous piece of its entry's text; nothing is joined, elided or explained. An empty result
//! is not an error.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::fault::{Code, Fault};
use crate::ids::{BundleId, EntryId};
use crate::json::Node;
use crate::search::{Excerpts, Hit, Query, Scope, Texts, Window, can_be_searched};
use crate::time::WorldTime;
use crate::tools::ToolRequest;
use crate::view::View;

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

/// Finds the entries that match a text best.
pub fn search(view: &View<'_>, request: &ToolRequest, window: &TimeWindow) -> Value {
    let limit = request.limit.unwrap_or(LIMIT_DEFAULT);
    let query = Query {
        text: &request.query_text,
        author: request.person_id.as_deref(),
        window: window.in_milliseconds(),
        limit: limit as usize,
        context_max: request.context.unwrap_or(limit) as usize,
    };
    let scope = Scope {
        classes: view.classes(),
        at: view.position(),
    };
    let Ok(hits) = view
        .world
        .index()
        .search(&scope, &query, &VisibleTexts(view));
    let excerpts = Excerpts::new(query.text);
    let found = |hit: Hit| {
        let entry = view.entry_at(hit.entry)?;
        let mut found = result_json(entry, excerpts.range(&entry.text));
        if hit.context {
            found[CONTEXT_FIELD] = Value::from(true);
        }
        Some(found)
    };
    let results: Vec<_> = hits.into_iter().filter_map(found).collect();
    pack_json(
        request,
        &results,
        (!can_be_searched(query.text)).then_some(UNSEARCHABLE_NOTE),
    )
}

/// Looks up entries by entry ids and bundle ids, in ledger order, each once. Notes in the pack say
/// when the limit or an excerpt left something out.
pub fn get(view: &View<'_>, request: &ToolRequest, window: &TimeWindow) -> Value {
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
        results.push(result_json(entry, range));
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
    pack_json(request, &results, notes.as_deref())
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

fn result_json(entry: &Entry, range: Range<usize>) -> Value {
    json!({
        "entry_id": entry.id.to_string(),
        "bundle_id": entry.bundle.to_string(),
        "created_at_world": entry.time.as_str(),
        "visibility_scope": entry.scope(),
        "verbatim_excerpt": entry.text.get(range.clone()).unwrap_or_default(),
        "author_id": entry.author.id.as_str(),
        "range": [range.start, range.end],
    })
}

fn pack_json(request: &ToolRequest, results: &[Value], notes: Option<&str>) -> Value {
    let empty = results.is_empty();
    json!({
        "tool_request_id": request.tool_request_id,
        "request_id": request.request_id,
        "results": results,
        "empty": empty,
        "notes": notes,
    })
}

/// Rejects a pack that is not evidence of the view: its entries must be visible, distinct and
/// described correctly, and its excerpts must be pieces of their texts.
pub fn validate_pack(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let results = root.field("results")?.items()?;
    let mut met = std::collections::HashSet::new();
    for node in &results {
        let entry = validate_result(view, node)?;
        if !met.insert(entry.id) {
            return Err(node.fault("is there twice"));
        }
    }
    let empty = root.field("empty")?;
    if empty.boolean()? == results.is_empty() {
        Ok(())
    } else {
        Err(empty.fault("must say whether there are results"))
    }
}

fn validate_result<'a>(view: &View<'a>, node: &Node<'_>) -> Result<&'a Entry, Fault> {
    let id = node.field("entry_id")?;
    let entry = id.text()?.parse().ok().and_then(|id| view.entry(id));
    let entry = entry.ok_or_else(|| id.fault("is no entry of this view"))?;
    let range = node.field("range")?;
    let bounds = range
        .items()?
        .iter()
        .map(Node::count)
        .collect::<Result<Vec<_>, _>>()?;
    let bounds: Vec<usize> = bounds
        .into_iter()
        .filter_map(|bound| usize::try_from(bound).ok())
        .collect();
    let [start, end] = bounds[..] else {
        return Err(range.fault("must be two places in the text"));
    };
    if entry.text.get(start..end).is_none() {
        return Err(range.fault("is no piece of the entry's text"));
    }
    // The pack must be what this ledger itself would return for the range.
    let expected = result_json(entry, start..end);
    let fields = expected.as_object().into_iter().flatten();
    for (key, value) in fields {
        let given = node.field(key)?;
        if given.value != value {
            return Err(given.fault("is not what the entry says"));
        }
    }
    if let Some(context) = node.optional(CONTEXT_FIELD)? {
        context.boolean()?;
    }
    Ok(entry)
}
