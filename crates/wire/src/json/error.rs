//! Errors: one form for every route and every status.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ErrorBody;

/// The body of every response that is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorReply {
    /// The error.
    pub error: ErrorBody,
}
