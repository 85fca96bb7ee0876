//! Turns: a page of a context's turns, and a single turn.
//!
//! A long answer is rendered on a worker thread, under a permit for about the memory that it takes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use turnkeep_store::Turn;
use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::json;

use super::content::respond_with_json_text;
use super::extract::{At, Query};
use super::page::{JsonPage, RenderError, Renderer, TextLimit};
use super::query::{TurnQuery, TurnsQuery};
use crate::error::ApiError;
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};
use crate::shared::Shared;

/// Pages of more turns than this are made on a thread of their own.
const BLOCKING_FROM_TURNS: usize = 512;
/// About how many bytes of memory it takes to write one byte of text: the text of a turn and of the
/// page, each as it grows.
const MEMORY_PER_TEXT_BYTE: usize = 4;
/// About how long the text of a turn is besides its payload.
const TURN_TEXT_BYTES: usize = 512;
/// How much more memory a text gets when it needs more: each time it is written from the start.
const NEXT_LIMIT_FACTOR: usize = 4;

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
    let text = page_json(&shared, context, query, usize::MAX).await?;
    Ok(respond_with_json_text(text))
}

/// A page of turns as JSON text of at most about `text_bytes_max`. The text is the only form of a
/// page: typed payloads are written straight into it.
pub(crate) async fn page_json(
    shared: &Arc<Shared>,
    context: ContextId,
    query: TurnsQuery,
    text_bytes_max: usize,
) -> Result<Bytes, ApiError> {
    let store = &shared.store;
    let context = store.context(context)?;
    let limit = query.limit.min(shared.config.limits.page_turns_max);
    let turns = match query.before {
        Some(turn) => store.turns_before(turn, limit)?,
        None => head_turns(shared, &context, limit)?,
    };
    let written_in = turns.iter().map(|turn| turn.context);
    let content = store.open_turns(written_in, "turns").await?;
    let size = TextSize::of(&turns, text_bytes_max);
    let page = JsonPage {
        context,
        turns,
        options: query.options,
        content,
    };
    render_text(shared, size, move |shared, limit| {
        page.render(shared, limit)
    })
    .await
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

/// How long a text will be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextSize {
    /// About, if the payloads are ordinary.
    pub(crate) expected: usize,
    /// At most; a longer one is cut or an error.
    pub(crate) max: usize,
    /// The largest payload, which is unpacked while its text is written.
    pub(crate) payload_bytes: usize,
}

impl TextSize {
    fn of(turns: &[Turn], max: usize) -> Self {
        let payloads: usize = turns.iter().map(|turn| turn.raw_len as usize).sum();
        let mut expected = payloads + payloads / 2 + turns.len() * TURN_TEXT_BYTES;
        if turns.len() > BLOCKING_FROM_TURNS {
            expected = expected.max(LARGE_FROM_BYTES);
        }
        let largest = turns.iter().map(|turn| turn.raw_len).max();
        Self {
            expected,
            max,
            payload_bytes: largest.unwrap_or(0) as usize,
        }
    }
}

/// Makes a text that `render` writes within a limit. A text that turns out to be longer is written
/// again with more memory, because its length is known only after it has been written.
pub(crate) async fn render_text<F>(
    shared: &Arc<Shared>,
    size: TextSize,
    render: F,
) -> Result<Bytes, ApiError>
where
    F: Fn(&Shared, TextLimit) -> Result<String, RenderError> + Send + Sync + 'static,
{
    let expected = size.expected.min(shared.config.limits.page_bytes_max);
    let mut limits = GrowingLimit::new(expected, size.max, shared.memory.total_bytes());
    // Most answers are small. They are written right here, without a permit.
    if expected < LARGE_FROM_BYTES {
        match render(shared, limits.current()) {
            Ok(text) => return Ok(text.into()),
            Err(RenderError::Failed(error)) => return Err(error),
            Err(RenderError::NeedsMemory) => limits.grow(),
        }
    }
    let render = Arc::new(render);
    loop {
        let limit = limits.current();
        let bytes = size.payload_bytes + MEMORY_PER_TEXT_BYTE * limit.bytes_max;
        let permit = shared.memory.acquire(bytes).await?;
        if let Some(text) = render_large(shared, limit, permit, Arc::clone(&render)).await? {
            return Ok(text);
        }
        limits.grow();
    }
}

/// The limits under which a text is tried, from its expected size up to the largest one.
struct GrowingLimit {
    bytes_max: usize,
    largest: usize,
}

impl GrowingLimit {
    /// Starts at the expected size. The largest limit is what the whole memory budget admits, but at
    /// least twice the first, so that a wrong estimate gets a second try under a small budget too.
    fn new(expected: usize, text_bytes_max: usize, memory_bytes: usize) -> Self {
        let first = expected.max(LARGE_FROM_BYTES);
        let largest = (memory_bytes / MEMORY_PER_TEXT_BYTE).max(2 * first);
        let largest = largest.min(text_bytes_max);
        Self {
            bytes_max: first.min(largest),
            largest,
        }
    }

    fn current(&self) -> TextLimit {
        TextLimit {
            bytes_max: self.bytes_max,
            is_last: self.bytes_max == self.largest,
        }
    }

    fn grow(&mut self) {
        self.bytes_max = (self.bytes_max * NEXT_LIMIT_FACTOR).min(self.largest);
    }
}

/// Writes a text on another thread, under a permit for all that the limit allows. The text keeps
/// the part of it that it needs until it has been sent. None if it needs a larger limit; then the
/// permit is free again, so that requests that wait for more never wait for each other.
async fn render_large<F>(
    shared: &Arc<Shared>,
    limit: TextLimit,
    permit: MemoryPermit,
    render: Arc<F>,
) -> Result<Option<Bytes>, ApiError>
where
    F: Fn(&Shared, TextLimit) -> Result<String, RenderError> + Send + Sync + 'static,
{
    let reader = Arc::clone(shared);
    let write = move || {
        let text = match render(&reader, limit) {
            Ok(text) => text,
            Err(RenderError::NeedsMemory) => return Ok(None),
            Err(RenderError::Failed(error)) => return Err(error),
        };
        permit.hold_copy(text).map(Some)
    };
    shared.work_on_large(write).await
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
    let text = turn_json(&shared, id, query, usize::MAX).await?;
    Ok(respond_with_json_text(text))
}

/// One turn as JSON text of at most about `text_bytes_max`.
pub(crate) async fn turn_json(
    shared: &Arc<Shared>,
    id: TurnId,
    query: TurnQuery,
    text_bytes_max: usize,
) -> Result<Bytes, ApiError> {
    let turn = shared.store.turn(id)?;
    let written_in = [turn.context].into_iter();
    let content = shared.store.open_turns(written_in, "turn").await?;
    let size = TextSize::of(std::slice::from_ref(&turn), text_bytes_max);
    render_text(shared, size, move |shared, limit| {
        Renderer::new(shared, &content, &query.options, limit)?.render_turn(&turn)
    })
    .await
}
