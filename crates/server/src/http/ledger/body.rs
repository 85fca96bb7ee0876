//! The JSON of requests to the ledger: parsed strictly, within bounds of size and depth.
//!
//! The bound of size is that of all bodies, which lets the largest bundle through with every letter escaped.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use serde_json::Value;
use turnkeep_ledger::{Code, json};

use super::super::extract::body_within;
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// What parsing a large body takes besides it, about.
const PARSED_PER_BYTE: usize = 4;

/// A request's JSON.
pub(crate) struct Json(pub(crate) Value);

impl FromRequest<Arc<Shared>> for Json {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let bytes = body_within(request, shared, usize::MAX).await?;
        if bytes.len() < LARGE_FROM_BYTES {
            return Ok(Self(json::parse(&bytes)?));
        }
        let room = shared.memory.take(bytes.len() * PARSED_PER_BYTE).await?;
        let parse = move || room.during(|| json::parse(&bytes).map_err(ApiError::from));
        shared.blocking(parse).await.map(Self)
    }
}

impl Json {
    /// The document with its path, for complaints; `code` is the word of those about its shape.
    pub(crate) fn root(&self, code: Code) -> json::Node<'_> {
        json::Node::root(&self.0, code)
    }

    /// Takes a part out of the document; null if it is not there.
    pub(crate) fn take(&mut self, key: &str) -> Value {
        self.0.get_mut(key).map(Value::take).unwrap_or_default()
    }
}
