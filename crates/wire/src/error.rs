//! The error codes of all interfaces: one closed list, each with a word and a status.
//!
//! Programs compare the word. Two codes share the word `DecodeError` and differ in their status:
//! 422 for the caller's bytes, 500 for stored bytes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// 400: the request cannot be understood.
    BadRequest,
    /// 401: the token is missing or wrong.
    Unauthorized,
    /// 403: not allowed from this origin or with this token.
    Forbidden,
    /// 404: the context, turn, blob, bundle or type does not exist.
    NotFound,
    /// 405, HTTP only: the route does not support the method.
    MethodNotAllowed,
    /// 409: the request contradicts the current state.
    Conflict,
    /// 412: the server is strict and the type is unknown.
    PreconditionFailed,
    /// 413: the request or the response exceeds a limit.
    TooLarge,
    /// 415, HTTP only: the body's encoding is unsupported.
    UnsupportedMediaType,
    /// 416, HTTP only: no byte of the range exists.
    RangeNotSatisfiable,
    /// 422: the turn declares no type and the reader named none.
    MissingTypeHint,
    /// 422: well-formed, but invalid.
    Unprocessable,
    /// 422 `DecodeError`: the bytes that the caller sent do not decode.
    Undecodable,
    /// 424: the requested descriptor is not published.
    FailedDependency,
    /// 429: too many requests at once; retry later.
    TooManyRequests,
    /// 500: a fault of the server.
    Internal,
    /// 500 `DecodeError`: stored bytes do not decode.
    Corrupt,
    /// 503: the log is poisoned, or the server is shutting down or overloaded; retry later.
    Unavailable,
    /// 507: the disk is full; retry when there is space.
    InsufficientStorage,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 19] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::PreconditionFailed,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::RangeNotSatisfiable,
        Self::MissingTypeHint,
        Self::Unprocessable,
        Self::Undecodable,
        Self::FailedDependency,
        Self::TooManyRequests,
        Self::Internal,
        Self::Corrupt,
        Self::Unavailable,
        Self::InsufficientStorage,
    ];

    /// The word that programs compare.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::Conflict => "Conflict",
            Self::PreconditionFailed => "PreconditionFailed",
            Self::TooLarge => "TooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::RangeNotSatisfiable => "RangeNotSatisfiable",
            Self::MissingTypeHint => "MissingTypeHint",
            Self::Unprocessable => "Unprocessable",
            Self::Undecodable | Self::Corrupt => "DecodeError",
            Self::FailedDependency => "FailedDependency",
            Self::TooManyRequests => "TooManyRequests",
            Self::Internal => "Internal",
            Self::Unavailable => "Unavailable",
            Self::InsufficientStorage => "InsufficientStorage",
        }
    }

    /// The number: the HTTP status, and the binary protocol's `code`.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::PreconditionFailed => 412,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RangeNotSatisfiable => 416,
            Self::MissingTypeHint | Self::Unprocessable | Self::Undecodable => 422,
            Self::FailedDependency => 424,
            Self::TooManyRequests => 429,
            Self::Internal | Self::Corrupt => 500,
            Self::Unavailable => 503,
            Self::InsufficientStorage => 507,
        }
    }

    /// The code with this status and word, if there is one.
    pub fn from_wire(status: u32, word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|code| u32::from(code.status()) == status && code.word() == word)
    }

    /// Whether the same request may succeed later, unchanged.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::TooManyRequests | Self::Unavailable | Self::InsufficientStorage
        )
    }
}

/// An error's JSON: the detail of a binary `ERROR` frame and the inside of HTTP's `{"error": …}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The word that programs compare.
    #[schema(example = "NotFound")]
    pub code: String,
    /// What happened, for people.
    #[schema(example = "context 12 does not exist")]
    pub message: String,
    /// Values that belong to the error, for programs.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_word_together_name_one_code() {
        for code in ErrorCode::ALL {
            assert_eq!(
                ErrorCode::from_wire(code.status().into(), code.word()),
                Some(code)
            );
        }
        assert_eq!(ErrorCode::from_wire(404, "Conflict"), None);
    }

    #[test]
    fn only_what_may_pass_by_itself_is_retryable() {
        let retryable: Vec<_> = ErrorCode::ALL
            .into_iter()
            .filter(|c| c.is_retryable())
            .collect();
        assert_eq!(
            retryable.iter().map(|c| c.status()).collect::<Vec<_>>(),
            [429, 503, 507]
        );
    }
}
