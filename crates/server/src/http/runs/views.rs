//! What waits, and why.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::parts::RunAt;
use crate::runs::json;
use crate::shared::Shared;

/// Lists everything that waits for a person, oldest first.
#[utoipa::path(get, path = "/api/attention", tag = "runs",
    responses((status = 200, description = "What waits", body = wire::AttentionList)))]
pub(crate) async fn attention(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Json<wire::AttentionList> {
    let handles = shared.runs.list();
    let items = handles
        .iter()
        .flat_map(|handle| handle.read(json::attention_items));
    let mut items: Vec<wire::AttentionItem> = items.collect();
    items.sort_by_key(|item| item.since.0);
    Json(wire::AttentionList { items })
}

/// Explains why a run does not go on.
#[utoipa::path(get, path = "/api/runs/{run_id}/why", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "Every wait with its reason, age and owner", body = wire::WhyGraph)))]
pub(crate) async fn why(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
) -> Json<wire::WhyGraph> {
    Json(handle.explain())
}
