//! Turns: a page of them, and one.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use turnkeep_store::{LargeBuffer, ReadError, Turn};
use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::json;

use super::extract::{At, Query};
use super::page::{Page, Renderer};
use super::query::{TurnQuery, TurnsQuery};
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// Pages of more turns than this are made on a thread of their own.
const BLOCKING_FROM_TURNS: usize = 512;
/// What showing a byte of payload takes, about: the byte unpacked, its text as the text grows, and
/// the copy.
const RENDERED_PER_BYTE: usize = 4;
/// What a turn's text has besides its payload, about.
const TURN_TEXT_BYTES: usize = 512;

/// A page of turns, oldest first, ending at the head or before a turn.
#[utoipa::path(get, path = "/v1/contexts/{context_id}/turns", tag = "turns",
    params(
        ("context_id" = json::Id, Path),
        ("limit" = Option<u64>, Query, description = "At most so many, 64 unless given; clamped to 10000"),
        ("before_turn_id" = Option<json::Id>, Query, description = "Ancestors of this turn; 0 starts at the head"),
        super::openapi::ViewParams,
    ),
    responses((status = 200, description = "The page. A turn that cannot be shown has `error`", body = json::TurnPage)))]
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    At(context): At<ContextId>,
    Query(query): Query<TurnsQuery>,
) -> Result<Response, ApiError> {
    Ok(reply(page_json(&shared, context, query).await?))
}

/// A page of turns as JSON text. The text is the only form of a page: typed payloads are written
/// straight into it.
pub(crate) async fn page_json(
    shared: &Arc<Shared>,
    context: ContextId,
    query: TurnsQuery,
) -> Result<Bytes, ApiError> {
    let store = shared.store.store();
    let context = store.context(context)?;
    let limit = query.limit.min(shared.config.limits.page_turns_max);
    let turns = match query.before {
        Some(turn) => store.before(turn, limit)?,
        None => head_turns(shared, &context, limit)?,
    };
    let worlds = shared.worlds_of(turns.iter().map(|turn| turn.context));
    shared.note_raw_read(&worlds, "turns").await?;
    let long = long(&turns);
    let page = Page {
        context,
        turns,
        options: query.options,
    };
    let Some(bytes) = long else {
        return Ok(page.render(shared)?.into());
    };
    render_long(shared, bytes, move |shared| page.render(shared)).await
}

/// The turns that end at the head as the page's `meta` shows it, though the head may have moved
/// since.
fn head_turns(
    shared: &Shared,
    context: &turnkeep_store::Context,
    limit: usize,
) -> Result<Vec<Turn>, ApiError> {
    context.check_head()?;
    let Some(head) = context.head else {
        return Ok(Vec::new());
    };
    Ok(shared.store.store().up_to(head, limit)?)
}

/// About what it takes to show turns whose page is long: their payloads, their text, and its copy.
fn long(turns: &[Turn]) -> Option<usize> {
    let bytes: usize = turns.iter().map(|turn| turn.raw_len as usize).sum();
    let is_long = turns.len() > BLOCKING_FROM_TURNS || bytes >= LARGE_FROM_BYTES;
    is_long.then_some(RENDERED_PER_BYTE * (bytes + turns.len() * TURN_TEXT_BYTES))
}

/// Makes a long answer on another thread; its permit is free when it has been sent.
async fn render_long<F>(shared: &Arc<Shared>, bytes: usize, render: F) -> Result<Bytes, ApiError>
where
    F: FnOnce(&Shared) -> Result<String, ApiError> + Send + 'static,
{
    let permit = shared
        .memory
        .acquire(bytes.min(RENDERED_PER_BYTE * shared.config.limits.page_bytes_max))
        .await?;
    let reader = Arc::clone(shared);
    // The text is copied so that its own memory is freed where it was made. See `LargeBuffer`.
    let text = shared.work_on_large(move || {
        let text = render(&reader)?;
        Ok(LargeBuffer::copy_of(text.as_bytes())
            .map_err(|_| ReadError::NoMemory(text.len() as u64))?)
    });
    Ok(permit.hold(text.await?))
}

/// One turn. What a page shows as a turn's `error` is here the status.
#[utoipa::path(get, path = "/v1/turns/{turn_id}", tag = "turns",
    params(("turn_id" = json::Id, Path), super::openapi::ViewParams),
    responses((status = 200, description = "The turn", body = json::Turn)))]
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    At(id): At<TurnId>,
    Query(query): Query<TurnQuery>,
) -> Result<Response, ApiError> {
    Ok(reply(turn_json(&shared, id, query).await?))
}

/// One turn as JSON text.
pub(crate) async fn turn_json(
    shared: &Arc<Shared>,
    id: TurnId,
    query: TurnQuery,
) -> Result<Bytes, ApiError> {
    let turn = shared.store.store().turn(id)?;
    shared
        .note_raw_read(&shared.worlds_of([turn.context].into_iter()), "turn")
        .await?;
    let Some(bytes) = long(std::slice::from_ref(&turn)) else {
        return Ok(Renderer::new(shared, &query.options)?.one(&turn)?.into());
    };
    render_long(shared, bytes, move |shared| {
        Renderer::new(shared, &query.options)?.one(&turn)
    })
    .await
}

fn reply(json: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, "application/json")], json.into()).into_response()
}
