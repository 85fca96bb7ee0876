//! The one form in which a request fails, on both ports.
//!
//! Errors of the core crates know no codes. `mapping` gives each of them its code, with one
//! exhaustive match per error type; the words and numbers of the codes are in
//! [`turnkeep_wire::ErrorCode`]. The message and the details are for the caller, the source is for
//! the log. An `Internal` error tells the caller nothing about the server.

mod mapping;

use serde_json::{Map, Value};
use turnkeep_wire::{ErrorBody, ErrorCode, ErrorReason};

pub(crate) use mapping::{bad_tree, ledger_error_code};

/// A failed request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of error.
    pub code: ErrorCode,
    /// For the caller.
    pub message: String,
    /// Values for the caller's program.
    pub details: Map<String, Value>,
    /// For the log.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ApiError {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
            source: None,
        }
    }

    /// A request that cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    /// An object that does not exist, or not for this caller.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// Something over a limit.
    pub fn too_large(what: &str, limit: u64, actual: u64) -> Self {
        Self::new(
            ErrorCode::TooLarge,
            format!("{what}: {actual} is over the limit of {limit}"),
        )
        .with("limit", limit)
        .with("actual", actual)
    }

    /// A fault of the server. The source goes to the log and not to the caller.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let message = "the server failed; its log says why";
        Self::new(ErrorCode::Internal, message).with_source(source)
    }

    /// The answer to requests while the server stops.
    pub fn shutting_down() -> Self {
        Self::new(ErrorCode::Unavailable, "the server is shutting down")
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Adds the reason, for programs that react to it.
    #[must_use]
    pub fn with_reason(self, reason: ErrorReason) -> Self {
        self.with(ErrorReason::KEY, reason.word())
    }

    fn with_source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            source: Some(source.into()),
            ..self
        }
    }

    /// The error's JSON.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            code: self.code.word().to_owned(),
            message: self.message.clone(),
            details: self.details.clone(),
        }
    }

    /// Logs a fault of the server. The caller of this function answers the request, so each error
    /// is logged once.
    pub fn log(&self) {
        if matches!(self.code, ErrorCode::Internal | ErrorCode::Corrupt) {
            let source = self.source.as_ref().map(tracing::field::display);
            tracing::error!(code = self.code.word(), source, "{}", self.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnkeep_ledger::Code;
    use turnkeep_store::{BlobError, ReadError, Refusal};
    use turnkeep_types::{BlobHash, ContextId, TurnId};
    use turnkeep_wire::DecodeError;

    use super::*;

    fn check(error: impl Into<ApiError>, status: u16, word: &str, details: &Value) {
        let error = error.into();
        assert_eq!(
            (error.code.status(), error.code.word()),
            (status, word),
            "{error}"
        );
        assert_eq!(&Value::Object(error.details), details);
    }

    #[test]
    fn a_moved_head_tells_the_actual_one() {
        let context = ContextId::new(3).unwrap();
        let refusal = Refusal::HeadMoved {
            context,
            expected: None,
            actual: TurnId::new(9),
        };
        let details =
            json!({"context_id": "3", "expected_head_turn_id": "0", "actual_head_turn_id": "9"});
        check(refusal, 409, "Conflict", &details);
    }

    #[test]
    fn sent_bytes_that_contradict_themselves_are_a_conflict_and_garbage_is_undecodable() {
        let (expected, actual) = (BlobHash([1; 32]), BlobHash([2; 32]));
        let both = json!({"expected": expected.to_string(), "actual": actual.to_string()});
        check(
            BlobError::HashMismatch { expected, actual },
            409,
            "Conflict",
            &both,
        );
        let lengths = json!({"expected": 4, "actual": 5});
        check(
            BlobError::LengthMismatch {
                expected: 4,
                actual: 5,
            },
            409,
            "Conflict",
            &lengths,
        );
        check(
            BlobError::NotZstd("x".into()),
            422,
            "DecodeError",
            &json!({}),
        );
    }

    #[test]
    fn held_bytes_that_are_damaged_are_our_fault() {
        let hash = BlobHash([1; 32]);
        let details = json!({"hash": hash.to_string(), "what": "x"});
        check(
            ReadError::Corrupt {
                hash,
                what: "x".into(),
            },
            500,
            "DecodeError",
            &details,
        );
    }

    #[test]
    fn an_id_of_zero_names_nothing() {
        check(
            DecodeError::ZeroId {
                field: "context_id",
            },
            404,
            "NotFound",
            &json!({"context_id": "0"}),
        );
    }

    #[test]
    fn limits_tell_limit_and_actual() {
        let many = DecodeError::TooMany {
            field: "count",
            limit: 2,
            actual: 3,
        };
        check(many, 413, "TooLarge", &json!({"limit": 2, "actual": 3}));
    }

    #[test]
    fn a_ledger_error_keeps_its_word_unless_a_general_code_says_the_same() {
        for code in Code::ALL {
            let word = ledger_error_code(*code).word();
            let general = match code {
                Code::NotFound => Some("NotFound"),
                Code::Forbidden => Some("Forbidden"),
                Code::TooManyRequests => Some("TooManyRequests"),
                Code::Corrupt => Some("DecodeError"),
                _ => None,
            };
            assert_eq!(word, general.unwrap_or(code.word()));
        }
    }
}
