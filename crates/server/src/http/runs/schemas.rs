//! The JSON Schemas of events and bodies.

use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use turnkeep_wire::runs::schemas;

use super::super::extract::{At, Query};
use super::super::query::NoQuery;
use crate::error::ApiError;

/// Lists the schemas.
#[utoipa::path(get, path = "/api/schemas", tag = "schemas",
    responses((status = 200, description = "Their names", body = Object)))]
pub(crate) async fn list(Query(NoQuery): Query<NoQuery>) -> Json<Value> {
    let names: Vec<String> = schemas().into_keys().collect();
    Json(json!({"schemas": names}))
}

/// The JSON Schema of an event, such as `run.patch`, or of a body, such as `CreateRun`.
#[utoipa::path(get, path = "/api/schemas/{name}", tag = "schemas", params(("name" = String, Path)),
    responses((status = 200, description = "The schema", body = Object, content_type = "application/schema+json")))]
pub(crate) async fn show(
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
) -> Result<Response, ApiError> {
    let schemas = schemas();
    let name = name.strip_suffix(".json").unwrap_or(&name);
    let Some((_, schema)) = schemas.get(name) else {
        let message = format!("there is no shape `{name}`: GET /api/schemas lists them");
        return Err(ApiError::not_found(message));
    };
    let headers = [(CONTENT_TYPE, "application/schema+json")];
    Ok((headers, schema.to_string()).into_response())
}
