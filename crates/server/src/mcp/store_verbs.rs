//! The store's read operations as tools for the owner. They call the HTTP handlers and parse their
//! JSON again.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::Value;
use turnkeep_wire::percent_encode;

use super::arguments::Arguments;
use crate::error::ApiError;
use crate::http::extract::{At, Query, Segment};
use crate::http::query::{FromQuery, Pairs};
use crate::http::{contexts, turns};
use crate::shared::Shared;

/// Lists contexts.
pub(super) async fn list_contexts(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let query = build_query(arguments, &["label", "cursor", "limit"])?;
    read_json(
        contexts::list(State(Arc::clone(shared)), query)
            .await?
            .into_response(),
    )
    .await
}

/// Reads a page of turns of a context.
pub(super) async fn read_turns(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let context = At(Segment::parse(arguments.text("context_id")?)?);
    let query = build_query(arguments, &["before_turn_id", "limit"])?;
    read_json(turns::page(State(Arc::clone(shared)), context, query).await?).await
}

/// Reads one turn.
pub(super) async fn read_turn(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let turn = At(Segment::parse(arguments.text("turn_id")?)?);
    let query = build_query(arguments, &[])?;
    read_json(turns::show(State(Arc::clone(shared)), turn, query).await?).await
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

async fn read_json(response: Response) -> Result<Value, ApiError> {
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(ApiError::internal)?
        .to_bytes();
    serde_json::from_slice(&body).map_err(ApiError::internal)
}
