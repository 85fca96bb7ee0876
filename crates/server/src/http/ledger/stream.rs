//! The entries that a caller may see: pages of a stream, and single entries.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::projection::PageRequest;
use turnkeep_ledger::{Code, Fault, World, as_of};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{ReadingQuery, StreamQuery};
use super::acting_caller::{ActingCaller, Named};
use super::shapes::{audit_stream_shape, entry_with_reply};
use crate::error::ApiError;
use crate::shared::Shared;

/// The request id in a projection for a request that has none.
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
    acting: ActingCaller,
) -> Result<Response, ApiError> {
    let read = move || {
        if acting.audit {
            let page = acting
                .handle
                .read_long(|world| read_everything(world, &query))?;
            return Ok(Json(page).into_response());
        }
        Ok(Json(read_visible(&acting, &query)?).into_response())
    };
    shared.blocking(read).await
}

fn read_visible(acting: &ActingCaller, query: &StreamQuery) -> Result<Value, Fault> {
    acting.handle.read_long(|world| {
        let view = world.view(acting.viewer());
        let request = PageRequest {
            request: UNNAMED_REQUEST,
            cursor: query.cursor.as_deref(),
            limit: query.limit,
            audiences: query.audience,
        };
        let page = request
            .read(&view)
            .map_err(|fault| with_path(fault, "cursor"))?;
        Ok(page.value)
    })
}

/// The same fault with the path of the parameter that has the cursor.
pub(crate) fn with_path(fault: Fault, path: &str) -> Fault {
    Fault {
        path: path.to_owned(),
        ..fault
    }
}

fn read_everything(world: &World, query: &StreamQuery) -> Result<wire::ledger::AuditStream, Fault> {
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
    let page = as_of::everything(world, from, query.limit);
    // Position 0 is no cursor: a reader that starts there leaves it out.
    let next = Some(page.next).filter(|next| *next > 0);
    Ok(audit_stream_shape(
        query.cursor.clone(),
        next,
        &page.entries,
    ))
}

/// One entry, if it is visible. A hidden entry and a missing one get the same answer.
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
    acting: ActingCaller,
    named: Named,
) -> Result<Json<wire::ledger::WriteEntry>, ApiError> {
    let text = named.segment("entry");
    // A reference such as `entry:e_…` is accepted too.
    let id = text
        .strip_prefix("entry:")
        .unwrap_or(text)
        .parse::<EntryId>()
        .ok();
    let found = id.and_then(|id| acting.handle.read(|world| find_visible(world, &acting, id)));
    let missing = || Fault::new(Code::NotFound, "", "there is no such entry");
    found.map(Json).ok_or_else(|| missing().into())
}

fn find_visible(
    world: &World,
    acting: &ActingCaller,
    id: EntryId,
) -> Option<wire::ledger::WriteEntry> {
    if acting.audit {
        let entry = world.any_entry(id)?;
        return Some(entry_with_reply(entry, entry.reply_to));
    }
    let view = world.view(acting.viewer());
    let entry = view.entry(id)?;
    // The view hides a reply to an entry that the reader may not see.
    let reply_to = view.replied_to(entry).map(|answered| answered.id);
    Some(entry_with_reply(entry, reply_to))
}
