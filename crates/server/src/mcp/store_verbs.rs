//! The store's read verbs as tools, for the owner: what the gateway's routes answer.

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
pub(super) async fn contexts(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let query = query(arguments, &["label", "cursor", "limit"])?;
    json_of(
        contexts::list(State(Arc::clone(shared)), query)
            .await?
            .into_response(),
    )
    .await
}

/// Reads turns of a context.
pub(super) async fn turns(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let context = At(Segment::parse(arguments.text("context_id")?)?);
    let query = query(arguments, &["before_turn_id", "limit"])?;
    json_of(turns::page(State(Arc::clone(shared)), context, query).await?).await
}

/// Reads a turn.
pub(super) async fn turn(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let turn = At(Segment::parse(arguments.text("turn_id")?)?);
    json_of(turns::show(State(Arc::clone(shared)), turn, query(arguments, &[])?).await?).await
}

/// The query that a route would have been asked with.
fn query<T: FromQuery>(arguments: &Arguments<'_>, names: &[&str]) -> Result<Query<T>, ApiError> {
    let pair = |name: &&str| match arguments.given(name) {
        Value::Null => None,
        Value::String(text) => Some(format!("{name}={}", percent_encode(&text))),
        other => Some(format!("{name}={}", percent_encode(&other.to_string()))),
    };
    let pairs: Vec<String> = names.iter().filter_map(pair).collect();
    Ok(Query(T::from_query(Pairs::parse(&pairs.join("&"))?)?))
}

async fn json_of(response: Response) -> Result<Value, ApiError> {
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(ApiError::internal)?
        .to_bytes();
    serde_json::from_slice(&body).map_err(ApiError::internal)
}
