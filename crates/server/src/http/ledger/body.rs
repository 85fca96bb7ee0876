//! The JSON of requests to the ledger, parsed strictly and within limits of size and depth.
//!
//! The size limit is that of all bodies. It admits the largest bundle with every character escaped.

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
        // The values copy the text of their strings, which may be as long as the body.
        let permit = permit_for_values(&shared.memory, &bytes, bytes.len()).await?;
        let Some(permit) = permit else {
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
    /// The document as a node, whose faults have paths. Faults about its shape have this code.
    pub(crate) fn root(&self, code: Code) -> json::Node<'_> {
        json::Node::root(&self.document, code)
    }

    /// Takes a part out of the document; null if it is missing.
    pub(crate) fn take(&mut self, key: &str) -> Value {
        self.document
            .get_mut(key)
            .map(Value::take)
            .unwrap_or_default()
    }
}
