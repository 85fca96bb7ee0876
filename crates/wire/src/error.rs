//! Errors as every surface names them: one closed list of codes, each with its word and its status.
//!
//! The word is what programs compare; two codes share the word `DecodeError`, told apart by status
//! (422: the caller's bytes, 500: bytes that the store holds).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// 400: the request cannot be understood.
    BadRequest,
    /// 401: no token, or a wrong one.
    Unauthorized,
    /// 403: not from here, or not with this token.
    Forbidden,
    /// 404: a context, turn, blob, bundle or type that does not exist.
    NotFound,
    /// 405: HTTP only: the route has no such method.
    MethodNotAllowed,
    /// 409: contradicts what is there.
    Conflict,
    /// 412: strict mode and an unknown type.
    PreconditionFailed,
    /// 413: over a limit.
    TooLarge,
    /// 415: HTTP only: the body is encoded in a way that is not read.
    UnsupportedMediaType,
    /// 416: HTTP only: no byte of the range exists.
    RangeNotSatisfiable,
    /// 422: the turn declares no type and the reader named none.
    MissingTypeHint,
    /// 422: understood, but meaningless.
    Unprocessable,
    /// 422 `DecodeError`: the bytes that the caller sent do not decode.
    Undecodable,
    /// 424: the descriptor that the reader asked for was never published.
    FailedDependency,
    /// 429: too much at once; try again.
    TooManyRequests,
    /// 500: our fault.
    Internal,
    /// 500 `DecodeError`: the bytes that the store holds do not decode.
    Corrupt,
    /// 503: the writer is poisoned, or the server is shutting down or full; try again.
    Unavailable,
    /// 507: no room on the disk; try again when there is.
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

    /// The canonical word.
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
    /// The canonical word.
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
