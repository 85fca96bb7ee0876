//! The JSON of requests to the ledger: parsed strictly, within bounds of size and depth.
//!
//! The bound of size is that of all bodies, which lets the largest bundle through with every letter
//! escaped.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use serde_json::Value;
use turnkeep_ledger::{Code, json};

use super::super::extract::{body_within, permit_for_values};
use crate::error::ApiError;
use crate::memory::MemoryPermit;
use crate::shared::Shared;

/// A request's JSON, and the permit of one with much text or many values.
pub(crate) struct Json {
    pub(crate) document: Value,
    _permit: Option<MemoryPermit>,
}

impl FromRequest<Arc<Shared>> for Json {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let bytes = body_within(request, shared, usize::MAX).await?;
        let Some(permit) = permit_for_values(shared, &bytes, 0).await? else {
            return Ok(Self {
                document: json::parse(&bytes)?,
                _permit: None,
            });
        };
        let document = shared
            .work_on_large(move || json::parse(&bytes).map_err(ApiError::from))
            .await?;
        Ok(Self {
            document,
            _permit: Some(permit),
        })
    }
}

impl Json {
    /// The document with its path, for complaints; `code` is the word of those about its shape.
    pub(crate) fn root(&self, code: Code) -> json::Node<'_> {
        json::Node::root(&self.document, code)
    }

    /// Takes a part out of the document; null if it is not there.
    pub(crate) fn take(&mut self, key: &str) -> Value {
        self.document
            .get_mut(key)
            .map(Value::take)
            .unwrap_or_default()
    }
}
