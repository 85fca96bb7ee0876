//! The settings that the server started with.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::json;

use super::extract::Query;
use super::query::NoQuery;
use crate::shared::Shared;

/// The settings, with the source of each value. Secrets are left out.
#[utoipa::path(get, path = "/v1/settings", tag = "server",
    responses((status = 200, description = "The settings that the server started with", body = json::ServerSettings)))]
pub(crate) async fn settings(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Json<json::ServerSettings> {
    Json(shared.config.settings.clone())
}
