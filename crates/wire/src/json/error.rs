//! Errors: one form for every route and every status.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The body of every response that is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorObject,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorObject {
    /// The canonical word, such as `NotFound`.
    pub code: String,
    /// What is wrong, for a person.
    pub message: String,
    /// What is wrong, for a program.
    #[schema(value_type = Object)]
    pub details: Value,
}
