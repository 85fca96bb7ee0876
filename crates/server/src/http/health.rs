//! Health. These routes need no token, so they show nothing but the version and whether the server
//! can write.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use turnkeep_wire::json;

use super::extract::Query;
use super::query::NoQuery;
use crate::shared::Shared;

/// Whether the server can do its work. Needs no token.
#[utoipa::path(get, path = "/healthz", tag = "server",
    responses(
        (status = 200, description = "It can", body = json::Health),
        (status = 503, description = "It can read but not write until it is restarted", body = json::Health),
    ))]
pub(crate) async fn healthz(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> (StatusCode, Json<json::Health>) {
    read_health(&shared)
}

/// Whether the server can do its work; an alias of `GET /healthz`. Needs no token.
#[utoipa::path(get, path = "/health", tag = "server",
    responses(
        (status = 200, description = "It can", body = json::Health),
        (status = 503, description = "It can read but not write until it is restarted", body = json::Health),
    ))]
pub(crate) async fn health_alias(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> (StatusCode, Json<json::Health>) {
    read_health(&shared)
}

fn read_health(shared: &Shared) -> (StatusCode, Json<json::Health>) {
    let (code, status) = if shared.store.stats().poisoned {
        (StatusCode::SERVICE_UNAVAILABLE, "read_only")
    } else {
        (StatusCode::OK, "ok")
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    (
        code,
        Json(json::Health {
            status: status.to_owned(),
            version,
        }),
    )
}
