//! The programs that nodes can use.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use crate::shared::Shared;

/// Lists the programs: whether each is installed, and what it can do.
#[utoipa::path(get, path = "/api/providers", tag = "providers",
    responses((status = 200, description = "The programs", body = wire::ProviderList)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Json<wire::ProviderList> {
    let providers = shared.runs.check_providers().await;
    Json(wire::ProviderList { providers })
}
