//! What is visible: pages of a stream, and single entries.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::projection::PageRequest;
use turnkeep_ledger::{Code, Fault, World, as_of};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{ReadingQuery, StreamQuery};
use super::seat::{Named, Seat};
use crate::error::ApiError;
use crate::shared::Shared;

/// What a request without an id of its own is called in a projection.
pub(crate) const UNNAMED_REQUEST: &str = "";

/// A page of the stream. It reads only.
#[utoipa::path(get, path = "/v1/worlds/{world}/stream", tag = "ledger",
    params(
        ("world" = String, Path),
        ("cursor" = Option<String>, Query, description = "A page's `cursor_after`; none starts at the beginning"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "At most so many entries; clamped to 500"),
        ("audience" = Option<String>, Query, description = "`1` adds `visibility` to each entry: who may see it"),
        ("as" = Option<String>, Query, description = "Owner: as this person"),
        ("audit" = Option<String>, Query, description = "Owner: `1` shows every entry, as it was committed"),
    ),
    responses((status = 200, description = "The visible entries after the cursor", body = wire::ledger::StreamAnswer)))]
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<StreamQuery>,
    seat: Seat,
) -> Result<Json<Value>, ApiError> {
    shared
        .blocking(move || Ok(Json(read(&seat, &query)?)))
        .await
}

fn read(seat: &Seat, query: &StreamQuery) -> Result<Value, Fault> {
    if seat.audit {
        return seat.handle.read_long(|world| everything(world, query));
    }
    seat.handle.read_long(|world| {
        let view = world.view(seat.viewer());
        let request = PageRequest {
            request: UNNAMED_REQUEST,
            cursor: query.cursor.as_deref(),
            limit: query.limit,
            audiences: query.audience,
        };
        let page = request.read(&view).map_err(|fault| at(fault, "cursor"))?;
        Ok(page.value)
    })
}

/// The same fault, about the parameter that the cursor came in.
pub(crate) fn at(fault: Fault, path: &str) -> Fault {
    Fault {
        path: path.to_owned(),
        ..fault
    }
}

fn everything(world: &World, query: &StreamQuery) -> Result<Value, Fault> {
    let from = match query.cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|from| *from <= world.position())
            .ok_or_else(|| {
                Fault::new(
                    Code::BadCursor,
                    "cursor",
                    "is no cursor of an audit: leave it out to start anew",
                )
            })?,
    };
    let (entries, next) = as_of::everything(world, from, query.limit);
    let next = (next > 0).then(|| next.to_string());
    Ok(
        json!({ "stream": { "cursor_before": query.cursor, "cursor_after": next, "entries": entries } }),
    )
}

/// One entry, if it is visible. An entry that is hidden and one that there is not are one answer.
#[utoipa::path(get, path = "/v1/worlds/{world}/entries/{entry}", tag = "ledger",
    params(
        ("world" = String, Path),
        ("entry" = String, Path),
        ("as" = Option<String>, Query, description = "Owner: as this person"),
        ("audit" = Option<String>, Query, description = "Owner: `1` shows any entry"),
    ),
    responses((status = 200, description = "The entry as it was committed", body = wire::ledger::WriteEntry)))]
pub(crate) async fn entry(
    Query(ReadingQuery): Query<ReadingQuery>,
    seat: Seat,
    Named(named): Named,
) -> Result<Json<Value>, ApiError> {
    let text = named.get("entry").map(String::as_str).unwrap_or_default();
    // A ref names it as well.
    let id = text
        .strip_prefix("entry:")
        .unwrap_or(text)
        .parse::<EntryId>()
        .ok();
    let found = id.and_then(|id| seat.handle.read(|world| find(world, &seat, id)));
    let missing = || Fault::new(Code::NotFound, "", "there is no such entry");
    found.map(Json).ok_or_else(|| missing().into())
}

fn find(world: &World, seat: &Seat, id: EntryId) -> Option<Value> {
    if seat.audit {
        let entry = world.any_entry(id)?;
        return Some(with_reply_to(entry, entry.reply_to));
    }
    let view = world.view(seat.viewer());
    let entry = view.entry(id)?;
    Some(with_reply_to(
        entry,
        view.replied_to(entry).map(|answered| answered.id),
    ))
}

/// An entry with the entry that it answers, where the reader may know of that one.
fn with_reply_to(entry: &Entry, answered: Option<EntryId>) -> Value {
    let mut shown = entry.to_json();
    if let Some(answered) = answered {
        shown["reply_to"] = answered.to_string().into();
    }
    shown
}
