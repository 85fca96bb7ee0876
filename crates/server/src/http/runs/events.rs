//! The history of a run, page by page.
//!
//! Without a cursor the newest page comes. `before` and `after` are numbers of events; inside a page
//! the order is always ascending. With a filter, a page may need several reads of the log: each
//! reads a bounded number of events, and the cursor goes on from there.
//!
//! A page is written under the same rules as a page of turns: a long one on a worker thread with a
//! memory permit. A page that would be too long ends early, and `hasMore` says so.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use turnkeep_runtime::Event;
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_wire::runs as wire;

use super::super::content::respond_with_json_text;
use super::super::extract::Query;
use super::super::page::{RenderError, TextLimit};
use super::super::query::{EventDirection, EventQuery};
use super::super::turns::{TextSize, render_text};
use super::parts::{RunAt, Viewer};
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::runs::RunHandle;
use crate::runs::json;
use crate::shared::Shared;

/// How many events a request with a filter looks at, at most.
const SCANNED_EVENTS_MAX: u64 = 20_000;
/// How many events are read from the log at once.
const READ_EVENTS: u64 = 64;
/// About how long the text of an event is.
const EVENT_TEXT_BYTES: usize = 512;
/// The longest page, about.
const PAGE_TEXT_BYTES_MAX: usize = 32 << 20;
/// Pages of more events than this are made on a worker thread.
const BLOCKING_FROM_EVENTS: usize = 256;

/// A page of a run's events.
#[utoipa::path(get, path = "/api/runs/{run_id}/events", tag = "run_events",
    params(("run_id" = String, Path), ("limit" = Option<u32>, Query, description = "1 to 2000; 200 unless given"),
        ("before" = Option<u64>, Query, description = "The page that ends just before this number"),
        ("after" = Option<u64>, Query, description = "The page that begins just after this number"),
        ("types" = Option<String>, Query, description = "Event types, separated by commas"),
        ("nodeId" = Option<String>, Query, description = "Events of this node: its id or alias")),
    responses((status = 200, description = "Events in ascending order", body = wire::EventPage)))]
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<EventQuery>,
    RunAt(handle): RunAt,
) -> Result<Response, ApiError> {
    let filter = Filter::of(&query, &handle)?;
    let last_seq = handle.read_live(|run| run.last_seq);
    let size = expected_size(&query);
    let text = render_text(&shared, size, move |_, limit| {
        render_page(&handle, &query, &filter, last_seq, limit)
    });
    Ok(respond_with_json_text(text.await?))
}

/// Which events belong on a page.
struct Filter {
    /// All types if the list is empty.
    types: Vec<String>,
    node: Option<NodeId>,
}

impl Filter {
    fn of(query: &EventQuery, handle: &RunHandle) -> Result<Self, ApiError> {
        let node = query.node.as_deref();
        let node = node.map(|name| find_node(handle, name)).transpose()?;
        Ok(Self {
            types: query.types.clone(),
            node,
        })
    }

    fn admits(&self, event: &Event) -> bool {
        let name = event.fact.wire_name();
        let has_type = self.types.is_empty() || self.types.iter().any(|wanted| wanted == name);
        has_type && (self.node.is_none() || self.node == event.node)
    }
}

/// The node of this id or alias. The history of a deleted node is found by its id.
fn find_node(handle: &RunHandle, name: &str) -> Result<NodeId, ApiError> {
    let live = handle.read_live(|run| json::find_node_id(run, name));
    let deleted = || {
        let id = name.parse().ok()?;
        handle.read(|run| run.archive.added_node(id).map(|node| node.id))
    };
    let found = live.or_else(deleted);
    found.ok_or_else(|| Rejection::UnknownNode(name.to_owned()).into())
}

fn expected_size(query: &EventQuery) -> TextSize {
    let is_long = query.is_filtered() || query.limit > BLOCKING_FROM_EVENTS;
    let expected = query.limit * EVENT_TEXT_BYTES;
    TextSize {
        expected: if is_long {
            expected.max(LARGE_FROM_BYTES)
        } else {
            expected.min(LARGE_FROM_BYTES - 1)
        },
        max: PAGE_TEXT_BYTES_MAX,
        payload_bytes: 0,
    }
}

/// Writes a page within a limit. It may block.
fn render_page(
    handle: &Arc<RunHandle>,
    query: &EventQuery,
    filter: &Filter,
    last_seq: u64,
    limit: TextLimit,
) -> Result<String, RenderError> {
    let mut scan = Scan::new(query, last_seq, limit);
    while scan.wants_more() {
        let range = scan.next_range();
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let events = handle
            .read_events_blocking(range.start, count)
            .map_err(ApiError::from)?;
        scan.add(handle, &events, range, filter)?;
    }
    Ok(scan.into_text())
}

/// The numbers from `start` up to, but not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeqRange {
    start: u64,
    end: u64,
}

/// A walk through the log that collects a page.
struct Scan {
    is_forward: bool,
    limit: usize,
    text_limit: TextLimit,
    /// What is not read yet.
    rest: SeqRange,
    scanned: u64,
    /// The events as text, in the order of the walk.
    found: Vec<String>,
    text_bytes: usize,
    /// Whether the next event does not fit any more.
    is_full: bool,
}

impl Scan {
    fn new(query: &EventQuery, last_seq: u64, text_limit: TextLimit) -> Self {
        let mut rest = SeqRange {
            start: 1,
            end: last_seq + 1,
        };
        match query.direction {
            EventDirection::Newest => {}
            EventDirection::Before(seq) => rest.end = seq.clamp(1, rest.end),
            EventDirection::After(seq) => rest.start = seq.saturating_add(1).min(rest.end),
        }
        Self {
            is_forward: matches!(query.direction, EventDirection::After(_)),
            limit: query.limit,
            text_limit,
            rest,
            scanned: 0,
            found: Vec::new(),
            text_bytes: 0,
            is_full: false,
        }
    }

    fn wants_more(&self) -> bool {
        let has_rest = self.rest.start < self.rest.end;
        has_rest && !self.is_full && self.scanned < SCANNED_EVENTS_MAX
    }

    fn next_range(&self) -> SeqRange {
        let SeqRange { start, end } = self.rest;
        if self.is_forward {
            SeqRange {
                start,
                end: end.min(start + READ_EVENTS),
            }
        } else {
            SeqRange {
                start: start.max(end.saturating_sub(READ_EVENTS)),
                end,
            }
        }
    }

    /// Takes the events of a range, up to the limits.
    fn add(
        &mut self,
        handle: &Arc<RunHandle>,
        events: &[Event],
        range: SeqRange,
        filter: &Filter,
    ) -> Result<(), RenderError> {
        self.scanned += range.end - range.start;
        let admitted = events.iter().filter(|event| filter.admits(event));
        let mut admitted: Vec<&Event> = admitted.collect();
        if !self.is_forward {
            admitted.reverse();
        }
        for event in admitted {
            // The event that does not fit is the first one of the next page.
            if self.found.len() == self.limit || !self.try_add(handle, event)? {
                self.is_full = true;
                self.leave_from(event.seq);
                return Ok(());
            }
        }
        if self.is_forward {
            self.rest.start = range.end;
        } else {
            self.rest.end = range.start;
        }
        Ok(())
    }

    /// Adds an event if its text fits. The first one always fits: a page without events would lead
    /// nowhere.
    fn try_add(&mut self, handle: &Arc<RunHandle>, event: &Event) -> Result<bool, RenderError> {
        let text = event_text(handle, event)?;
        let bytes = self.text_bytes + text.len() + 1;
        if bytes > self.text_limit.bytes_max {
            if !self.text_limit.is_last {
                return Err(RenderError::NeedsMemory);
            }
            if !self.found.is_empty() {
                return Ok(false);
            }
        }
        self.text_bytes = bytes;
        self.found.push(text);
        Ok(true)
    }

    /// Leaves this event and those behind it to the next page.
    fn leave_from(&mut self, seq: u64) {
        if self.is_forward {
            self.rest.start = seq;
        } else {
            self.rest.end = seq + 1;
        }
    }

    fn into_text(mut self) -> String {
        let has_more = self.rest.start < self.rest.end;
        let next_cursor = has_more.then_some(if self.is_forward {
            self.rest.start - 1
        } else {
            self.rest.end
        });
        let info = wire::EventPageInfo {
            has_more,
            next_cursor,
        };
        if !self.is_forward {
            self.found.reverse();
        }
        let info = serde_json::to_string(&info).unwrap_or_default();
        format!("{{\"events\":[{}],\"page\":{info}}}", self.found.join(","))
    }
}

fn event_text(handle: &Arc<RunHandle>, event: &Event) -> Result<String, ApiError> {
    let viewer = Viewer::of(handle);
    let view = handle.read(|run| json::event_view(viewer.place(run), event));
    serde_json::to_string(&view).map_err(ApiError::internal)
}
