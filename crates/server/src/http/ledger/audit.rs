//! What was done with a world, and whether it is sound. It is the owner's.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{LinesQuery, VerifyQuery};
use super::seat::{Seat, leave_line};
use crate::error::ApiError;
use crate::shared::Shared;

/// The lines of the audit: rejections, tool calls, changes of configuration, acting as a person, audit reads.
#[utoipa::path(get, path = "/v1/worlds/{world}/audit/lines", tag = "ledger",
    params(
        ("world" = String, Path),
        ("cursor" = Option<String>, Query, description = "A page's `next_cursor`"),
        ("limit" = Option<u64>, Query, description = "At most so many; clamped to 500"),
    ),
    responses((status = 200, description = "Oldest first", body = wire::ledger::AuditPage)))]
pub(crate) async fn lines(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<LinesQuery>,
    seat: Seat,
) -> Result<Json<Value>, ApiError> {
    leave_line(&shared, &seat.room, "audit-read", &json!({ "path": "audit/lines" })).await?;
    let reader = Arc::clone(&shared);
    shared.blocking(move || page(&reader, &seat, &query).map(Json)).await
}

/// Checks everything that a world recorded against itself.
#[utoipa::path(get, path = "/v1/worlds/{world}/verify", tag = "ledger",
    params(
        ("world" = String, Path),
        ("leaks" = Option<String>, Query, description = "`1` also lists verbatim runs that an author could not have seen"),
    ),
    responses((status = 200, description = "What was checked, and what is wrong", body = wire::ledger::Verification)))]
pub(crate) async fn verify(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<VerifyQuery>,
    seat: Seat,
) -> Result<Json<Value>, ApiError> {
    leave_line(&shared, &seat.room, "audit-read", &json!({ "path": "verify" })).await?;
    todo!()
}
