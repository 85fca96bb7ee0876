//! What the tour of a demo points at.
//!
//! An ordinary server answers 404. A demo answers when it is filled: a browser asks once, usually
//! before that, so the request waits. The wait is bounded, and a demo that could not be filled
//! answers 404 as well.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::json;

use super::extract::Query;
use super::query::NoQuery;
use crate::error::ApiError;
use crate::shared::Shared;

/// How long a request waits for a demo that is being filled. Filling takes a few seconds, or much
/// longer on a busy machine. The web UI gives up after two minutes.
const FILL_MAX: Duration = Duration::from_secs(110);

/// The things of this demo, once it is filled; 404 on every other server.
#[utoipa::path(get, path = "/v1/demo", tag = "server",
    responses((status = 200, description = "What the tour of the demo points at", body = json::Demo)))]
pub(crate) async fn demo(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Json<json::Demo>, ApiError> {
    if !shared.config.is_demo {
        return Err(ApiError::not_found("this server is no demo"));
    }
    let filled = tokio::select! {
        filled = tokio::time::timeout(FILL_MAX, shared.demo.wait()) => filled.ok().cloned(),
        () = shared.stopping.cancelled() => return Err(ApiError::shutting_down()),
    };
    let message = "the demo is not filled: its server printed why";
    let demo = filled
        .flatten()
        .ok_or_else(|| ApiError::not_found(message))?;
    Ok(Json(demo))
}
