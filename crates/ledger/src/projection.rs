//! Projections: what a screen shows, which is the visible entries after a cursor and the pocket.
//!
//! A projection is made from written reality and nothing else. Texts are the ledger's, byte for
//! byte; nothing is joined, softened or inserted.

use serde_json::{Value, json};

use crate::cursor;
use crate::entry::Entry;
use crate::fact::ClockState;
use crate::fault::Fault;
use crate::ids::BundleId;
use crate::pocket;
use crate::staged::Staged;
use crate::view::View;

/// The version of the projection's rules. It is recorded with each outcome; released rules never
/// change.
pub const VERSION: u32 = 1;
/// Entries per page.
pub const PAGE_ENTRIES_MAX: usize = 500;
/// Bytes of text per page. A page always has at least one entry.
pub const PAGE_TEXT_BYTES_MAX: usize = 1 << 20;

/// The parameters of a projection, besides the view.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// The request's id, which the answer repeats.
    pub request: &'a str,
    /// The request's cursor, which the answer repeats.
    pub cursor_before: Option<&'a str>,
    /// How many visible entries come before the page.
    pub start: u64,
    /// The world's time at this position.
    pub clock: &'a ClockState,
    /// Whether the pocket is shown.
    pub pocket_available: bool,
    /// The bundle that this beat committed.
    pub bundle: Option<BundleId>,
    /// Entries that this beat commits and that are not in the world yet.
    pub staged: Staged<'a>,
    /// The maximal number of entries on the page.
    pub limit: usize,
    /// Whether each entry says who may see it. Answers to beats never have it, because a repeated
    /// request must get the same bytes.
    pub audiences: bool,
}

/// A projection with its cursor.
#[derive(Debug, Clone)]
pub struct Projection {
    /// The projection's JSON.
    pub value: Value,
    /// Where the next page begins; `None` if no entry was ever visible.
    pub cursor_after: Option<String>,
}

/// Makes the projection of a view.
pub fn project(view: &View<'_>, frame: &Frame<'_>) -> Projection {
    let page = read_entries(view, frame);
    let end = frame.start + page.len() as u64;
    let cursor_after = (end > 0).then(|| cursor::write(view, end));
    let value = assemble(view, frame, &page, cursor_after.as_deref());
    Projection {
        value,
        cursor_after,
    }
}

/// Makes a recorded projection again, with the cursor of that time.
pub fn project_again(view: &View<'_>, frame: &Frame<'_>, cursor_after: Option<&str>) -> Value {
    assemble(view, frame, &read_entries(view, frame), cursor_after)
}

fn read_entries<'a>(view: &View<'a>, frame: &Frame<'a>) -> Vec<&'a Entry> {
    let committed = view.count();
    let first = view.number_at(frame.start);
    let behind = usize::try_from(frame.start.saturating_sub(committed)).unwrap_or(usize::MAX);
    let rest = view.entries_from(first).map(|(_, entry)| entry);
    let entries = rest.chain(frame.staged.visible(view).skip(behind));
    let mut bytes = 0;
    // The first entry always fits; otherwise a page could never get past it.
    let fits = |(index, entry): &(usize, &Entry)| {
        bytes += entry.text.len();
        *index == 0 || bytes <= PAGE_TEXT_BYTES_MAX
    };
    let limit = frame.limit.min(PAGE_ENTRIES_MAX);
    entries
        .take(limit)
        .enumerate()
        .take_while(fits)
        .map(|(_, entry)| entry)
        .collect()
}

fn assemble(
    view: &View<'_>,
    frame: &Frame<'_>,
    page: &[&Entry],
    cursor_after: Option<&str>,
) -> Value {
    // A reader who sees no entry of the bundle must not learn that one was written.
    let bundle = frame
        .bundle
        .filter(|&id| shows_bundle(view, &frame.staged, id));
    let entries: Vec<Value> = page
        .iter()
        .map(|entry| {
            let mut shown = stream_entry(entry);
            if frame.audiences {
                shown["visibility"] = entry.visibility();
            }
            shown
        })
        .collect();
    json!({
        "request_id": frame.request,
        "stream": {
            "cursor_before": frame.cursor_before,
            "cursor_after": cursor_after,
            "entries": entries,
        },
        "pocket": pocket::pocket_json(view, &frame.staged, frame.clock, frame.pocket_available),
        "debug": { "wrote": bundle.is_some(), "bundle_id": bundle.map(|id| id.to_string()) },
    })
}

/// Whether the reader may see any entry of a bundle. `debug.wrote` must not reveal hidden writes.
fn shows_bundle(view: &View<'_>, staged: &Staged<'_>, id: BundleId) -> bool {
    view.entries_of_bundle(id).next().is_some()
        || staged.visible(view).any(|entry| entry.bundle == id)
}

/// The form of an entry in the stream.
pub fn stream_entry(entry: &Entry) -> Value {
    json!({
        "entry_id": entry.id.to_string(),
        "created_at_world": entry.time.as_str(),
        "channel": entry.channel.word(),
        "author_label": entry.shown_label(),
        "text": &*entry.text,
    })
}

/// Makes the page that answers a request that only reads.
pub fn read_page(
    view: &View<'_>,
    request: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Projection, Fault> {
    PageRequest {
        request,
        cursor,
        limit,
        audiences: false,
    }
    .read(view)
}

/// A request for a page.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// The request's id, which the answer repeats.
    pub request: &'a str,
    /// Where the page begins; `None` for the first entry.
    pub cursor: Option<&'a str>,
    /// The maximal number of entries.
    pub limit: usize,
    /// Whether each entry says who may see it.
    pub audiences: bool,
}

impl PageRequest<'_> {
    /// Makes the page from a view.
    pub fn read(self, view: &View<'_>) -> Result<Projection, Fault> {
        let start = match self.cursor {
            Some(given) => cursor::read(view, given, "ui.stream_cursor")?,
            None => 0,
        };
        let frame = Frame {
            request: self.request,
            cursor_before: self.cursor,
            start,
            clock: &view.world.clock,
            pocket_available: view.world.config.pocket_available,
            bundle: None,
            staged: Staged::default(),
            limit: self.limit,
            audiences: self.audiences,
        };
        Ok(project(view, &frame))
    }
}
