//! The store's read operations as tools for the owner, by the same functions that HTTP uses. Pages
//! and turns get the limit of an answer, so a page ends where it does not fit.
//!
//! Typed payloads exist as JSON text only, and a tool's answer is a value, so each answer is parsed
//! from text.

use std::sync::Arc;

use serde_json::Value;

use super::arguments::Arguments;
use super::budget::ANSWER_BYTES_MAX;
use super::held_value::HeldValue;
use crate::error::ApiError;
use crate::http::extract::Segment;
use crate::http::query::{ContextsQuery, FromQuery, Pairs};
use crate::http::{contexts, turns};
use crate::shared::Shared;

/// Lists contexts; those of worlds only if the caller asks for them, as `turnkeep ctx list` does.
pub(super) async fn list_contexts(
    shared: &Arc<Shared>,
    arguments: &Arguments,
) -> Result<HeldValue, ApiError> {
    let mut query: ContextsQuery = read_query(arguments, &["label", "cursor", "limit", "worlds"])?;
    // The query shows the contexts of worlds unless told otherwise; the tool hides them.
    query.worlds &= arguments.optional_value("worlds").is_some();
    let page = contexts::read_page(shared, query).await?;
    let text = serde_json::to_vec(&page).map_err(ApiError::internal)?;
    HeldValue::parse(&text, &shared.memory).await
}

/// Reads a page of turns of a context.
pub(super) async fn read_turns(
    shared: &Arc<Shared>,
    arguments: &Arguments,
) -> Result<HeldValue, ApiError> {
    let context = Segment::parse(arguments.text("context_id")?)?;
    let query = read_query(arguments, &["before_turn_id", "limit"])?;
    let page = turns::page_json(shared, context, query, ANSWER_BYTES_MAX);
    HeldValue::parse(&page.await?, &shared.memory).await
}

/// Reads one turn.
pub(super) async fn read_turn(
    shared: &Arc<Shared>,
    arguments: &Arguments,
) -> Result<HeldValue, ApiError> {
    let turn = Segment::parse(arguments.text("turn_id")?)?;
    let query = read_query(arguments, &[])?;
    let turn = turns::turn_json(shared, turn, query, ANSWER_BYTES_MAX);
    HeldValue::parse(&turn.await?, &shared.memory).await
}

/// Reads the parameters of a store operation from the arguments of these names.
fn read_query<T: FromQuery>(arguments: &Arguments, names: &[&str]) -> Result<T, ApiError> {
    let mut pairs = Vec::new();
    for name in names {
        let text = match arguments.optional_value(name) {
            None => continue,
            Some(Value::String(text)) => text.clone(),
            // A query has only texts: the number 5 is given as `5`.
            Some(other) => other.to_string(),
        };
        pairs.push(((*name).to_owned(), text));
    }
    Ok(T::from_query(Pairs::from_decoded(pairs))?)
}
