//! The store's read operations as tools for the owner. They call the HTTP handlers and parse their
//! JSON again, so the handlers get the limit of an answer: a page ends where it does not fit.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::Value;
use turnkeep_wire::percent_encode;

use super::arguments::Arguments;
use super::budget::ANSWER_BYTES_MAX;
use crate::error::ApiError;
use crate::http::extract::{Query, Segment, permit_for_values};
use crate::http::query::{ContextsQuery, FromQuery, Pairs};
use crate::http::{contexts, turns};
use crate::shared::Shared;

/// Lists contexts; those of worlds only if the caller asks for them, as `turnkeep ctx list` does.
pub(super) async fn list_contexts(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let names = ["label", "cursor", "limit", "worlds"];
    let Query(mut query) = build_query::<ContextsQuery>(arguments, &names)?;
    query.worlds &= !arguments.value("worlds").is_null();
    let page = contexts::list(State(Arc::clone(shared)), Query(query)).await?;
    read_json(shared, page.into_response()).await
}

/// Reads a page of turns of a context.
pub(super) async fn read_turns(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let context = Segment::parse(arguments.text("context_id")?)?;
    let Query(query) = build_query(arguments, &["before_turn_id", "limit"])?;
    let page = turns::page_within(Arc::clone(shared), context, query, ANSWER_BYTES_MAX);
    read_json(shared, page.await?).await
}

/// Reads one turn.
pub(super) async fn read_turn(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let turn = Segment::parse(arguments.text("turn_id")?)?;
    let Query(query) = build_query(arguments, &[])?;
    let shown = turns::show_within(Arc::clone(shared), turn, query, ANSWER_BYTES_MAX);
    read_json(shared, shown.await?).await
}

/// Builds the query of the HTTP route from the arguments.
fn build_query<T: FromQuery>(
    arguments: &Arguments<'_>,
    names: &[&str],
) -> Result<Query<T>, ApiError> {
    let pair = |name: &&str| match arguments.value(name) {
        Value::Null => None,
        Value::String(text) => Some(format!("{name}={}", percent_encode(&text))),
        other => Some(format!("{name}={}", percent_encode(&other.to_string()))),
    };
    let pairs: Vec<String> = names.iter().filter_map(pair).collect();
    Ok(Query(T::from_query(Pairs::parse(&pairs.join("&"))?)?))
}

async fn read_json(shared: &Shared, response: Response) -> Result<Value, ApiError> {
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(ApiError::internal)?
        .to_bytes();
    let _permit = permit_for_values(shared, &body, 0).await?;
    serde_json::from_slice(&body).map_err(ApiError::internal)
}
