//! The JSON Schemas of the ledger's shapes.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use turnkeep_ledger::{Code, Fault};

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::acting_caller::{ActingCaller, Named};
use crate::error::ApiError;

/// The JSON Schema of a shape, such as `write_bundle`.
#[utoipa::path(get, path = "/v1/worlds/{world}/schemas/{name}", tag = "ledger",
    params(("world" = String, Path), ("name" = String, Path)),
    responses((status = 200, description = "The schema", body = Object, content_type = "application/schema+json")))]
pub(crate) async fn schema(
    Query(NoQuery): Query<NoQuery>,
    _: ActingCaller,
    named: Named,
) -> Result<Response, ApiError> {
    let name = named.segment("name");
    let schema = turnkeep_ledger::schema::schema(name.strip_suffix(".json").unwrap_or(name))
        .ok_or_else(|| {
            let message = format!(
                "there is no shape `{name}`; these are: {}",
                turnkeep_ledger::schema::NAMES.join(", ")
            );
            Fault::new(Code::NotFound, "", message)
        })?;
    Ok(([(CONTENT_TYPE, "application/schema+json")], schema).into_response())
}
