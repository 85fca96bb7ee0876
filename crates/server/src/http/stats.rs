//! Counters: as JSON for people and programs, as `OpenMetrics` for scrapers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use turnkeep_wire::json;

use super::extract::Query;
use super::query::NoQuery;
use crate::error::ApiError;
use crate::shared::Shared;

/// Counters of the store and the server.
#[utoipa::path(get, path = "/v1/stats", tag = "server",
    responses((status = 200, description = "The counters now", body = json::Stats)))]
pub(crate) async fn stats(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Json<json::Stats> {
    Json(read_stats(&shared))
}

/// The counters now.
pub(crate) fn read_stats(shared: &Shared) -> json::Stats {
    let stats = shared.store.stats();
    json::Stats {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tcp_addr: shared.addrs.tcp.to_string(),
        turns: stats.turns,
        contexts: stats.contexts,
        world_contexts: shared.worlds.context_count(),
        blobs: stats.blobs,
        blob_raw_bytes: stats.blob_raw_bytes,
        blob_stored_bytes: stats.blob_stored_bytes,
        lost_turns: stats.lost_turns,
        lost_contexts: stats.lost_contexts,
        bundles: stats.bundles,
        types: stats.types,
        events: stats.events,
        log_position: stats.log_position,
        log_bytes: stats.log_bytes,
        index_bytes: stats.index_bytes,
        groups: stats.groups,
        commands: stats.commands,
        poisoned: stats.poisoned,
        connections: shared.connections.open_count() as u64,
    }
}

/// Counters for a scraper.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Response, ApiError> {
    metrics_text(&shared)
}

/// Counters for a scraper; an alias of `GET /metrics`.
#[utoipa::path(get, path = "/v1/metrics", tag = "server",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics_alias(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Response, ApiError> {
    metrics_text(&shared)
}

fn metrics_text(shared: &Shared) -> Result<Response, ApiError> {
    let text = shared.metrics.text().map_err(ApiError::internal)?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, media_type)], text).into_response())
}
