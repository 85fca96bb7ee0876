//! Turns: a page of a context's turns, and a single turn.
//!
//! A long answer is rendered on a worker thread, under a permit for about the memory that it takes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use turnkeep_store::{LargeBuffer, ReadError, Turn};
use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::json;

use super::extract::{At, Query};
use super::page::{JsonPage, Renderer};
use super::query::{TurnQuery, TurnsQuery};
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// Pages of more turns than this are made on a thread of their own.
const BLOCKING_FROM_TURNS: usize = 512;
/// About how many bytes of memory it takes to show one byte of payload: the unpacked byte, its text
/// as the text grows, and the copy.
const RENDERED_PER_BYTE: usize = 4;
/// About how long the text of a turn is besides its payload.
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
    let store = &shared.store;
    let context = store.context(context)?;
    let limit = query.limit.min(shared.config.limits.page_turns_max);
    let turns = match query.before {
        Some(turn) => store.turns_before(turn, limit)?,
        None => head_turns(&shared, &context, limit)?,
    };
    let written_in = turns.iter().map(|turn| turn.context);
    let content = store.open_turns(written_in, "turns").await?;
    let memory_bytes = memory_for_long(&turns);
    let page = JsonPage {
        context,
        turns,
        options: query.options,
        content,
    };
    let Some(bytes) = memory_bytes else {
        return Ok(json_response(page.render(&shared)?));
    };
    reply_long(&shared, bytes, move |shared| page.render(shared)).await
}

/// The turns up to the head that the page's `meta` shows. The head may have moved since then.
fn head_turns(
    shared: &Shared,
    context: &turnkeep_store::Context,
    limit: usize,
) -> Result<Vec<Turn>, ApiError> {
    context.check_head()?;
    let Some(head) = context.head else {
        return Ok(Vec::new());
    };
    Ok(shared.store.turns_up_to(head, limit)?)
}

/// About how much memory it takes to show turns whose page is long: their payloads, their text, and
/// its copy. A short page needs no permit.
fn memory_for_long(turns: &[Turn]) -> Option<usize> {
    let bytes: usize = turns.iter().map(|turn| turn.raw_len as usize).sum();
    let is_long = turns.len() > BLOCKING_FROM_TURNS || bytes >= LARGE_FROM_BYTES;
    is_long.then_some(RENDERED_PER_BYTE * (bytes + turns.len() * TURN_TEXT_BYTES))
}

/// Renders a long answer on a worker thread. Its permit is free when it has been sent.
async fn reply_long<F>(shared: &Arc<Shared>, bytes: usize, render: F) -> Result<Response, ApiError>
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
    Ok(json_response(permit.hold(text.await?)))
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
    let turn = shared.store.turn(id)?;
    let written_in = [turn.context].into_iter();
    let content = shared.store.open_turns(written_in, "turn").await?;
    let memory_bytes = memory_for_long(std::slice::from_ref(&turn));
    let render =
        move |shared: &Shared| Renderer::new(shared, &content, &query.options)?.render_turn(&turn);
    match memory_bytes {
        Some(bytes) => reply_long(&shared, bytes, render).await,
        None => Ok(json_response(render(&shared)?)),
    }
}

fn json_response(json: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, "application/json")], json.into()).into_response()
}
