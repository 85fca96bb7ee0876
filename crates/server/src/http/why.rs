//! Why something is as it is.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::json;

use super::extract::{At, Query, Segment};
use super::query::NoQuery;
use crate::error::ApiError;
use crate::provenance::{self, CausedRef};
use crate::shared::Shared;

impl Segment for CausedRef {
    fn parse(text: &str) -> Result<Self, ApiError> {
        text.parse()
            .map_err(|error| ApiError::bad_request(format!("this is no ref: {error}")))
    }
}

/// Why a thing is there: its cause, the cause of that, and so on up to a person.
#[utoipa::path(get, path = "/v1/refs/{ref}/why", tag = "refs",
    params(("ref" = String, Path, description = "`artifact://ID#PATH:LINE` (a line that a diff added), `artifact://ID`, \
        `turn:ID`, `envelope:ID`, `message:ID`, `run:ID`, `entry:ID`, `turn:N` or `ctx:N`, percent-encoded")),
    responses((status = 200, description = "The chain, from the thing itself on", body = json::Why)))]
pub(crate) async fn why(
    State(shared): State<Arc<Shared>>,
    At(reference): At<CausedRef>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Json<json::Why>, ApiError> {
    Ok(Json(provenance::explain(&shared, &reference).await?))
}
