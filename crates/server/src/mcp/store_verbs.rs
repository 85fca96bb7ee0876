//! The store's read operations as tools for the owner, by the same functions that HTTP uses. Pages
//! and turns get the limit of an answer, so a page ends where it does not fit.

use std::sync::Arc;

use serde_json::Value;

use super::arguments::Arguments;
use super::budget::ANSWER_BYTES_MAX;
use crate::error::ApiError;
use crate::http::extract::{Segment, permit_for_values};
use crate::http::query::{ContextsQuery, FromQuery, Pairs};
use crate::http::{contexts, turns};
use crate::shared::Shared;

/// Lists contexts; those of worlds only if the caller asks for them, as `turnkeep ctx list` does.
pub(super) async fn list_contexts(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let mut query: ContextsQuery = read_query(arguments, &["label", "cursor", "limit", "worlds"])?;
    query.worlds &= !arguments.value("worlds").is_null();
    let page = contexts::read_page(shared, query).await?;
    let text = serde_json::to_vec(&page).map_err(ApiError::internal)?;
    parse_text(shared, &text).await
}

/// Reads a page of turns of a context.
pub(super) async fn read_turns(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let context = Segment::parse(arguments.text("context_id")?)?;
    let query = read_query(arguments, &["before_turn_id", "limit"])?;
    let page = turns::page_json(shared, context, query, ANSWER_BYTES_MAX);
    parse_text(shared, &page.await?).await
}

/// Reads one turn.
pub(super) async fn read_turn(
    shared: &Arc<Shared>,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let turn = Segment::parse(arguments.text("turn_id")?)?;
    let query = read_query(arguments, &[])?;
    let turn = turns::turn_json(shared, turn, query, ANSWER_BYTES_MAX);
    parse_text(shared, &turn.await?).await
}

/// Reads the parameters of a store operation from the arguments of these names.
fn read_query<T: FromQuery>(arguments: &Arguments<'_>, names: &[&str]) -> Result<T, ApiError> {
    let mut pairs = Vec::new();
    for name in names {
        let value = match arguments.value(name) {
            Value::Null => continue,
            Value::String(text) => text,
            other => other.to_string(),
        };
        pairs.push(((*name).to_owned(), value));
    }
    Ok(T::from_query(Pairs::from_decoded(pairs))?)
}

/// A tool's answer is a value, but typed payloads exist as JSON text only. The text also says how
/// much memory the values take; labels and payloads may be many short values.
async fn parse_text(shared: &Shared, text: &[u8]) -> Result<Value, ApiError> {
    let _permit = permit_for_values(shared, text, 0).await?;
    serde_json::from_slice(text).map_err(ApiError::internal)
}
