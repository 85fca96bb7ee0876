//! What a caller is told when a request fails, on either surface.
//!
//! Core errors know no codes: each of them is mapped here, once, by an exhaustive match. The
//! message and the details are for the caller, the source is for the log; an `Internal` error tells
//! the caller nothing about us.

use serde_json::{Map, Value, json};
use turnkeep_ledger::log::Unrecordable;
use turnkeep_ledger::{Code, Fault};
use turnkeep_store::registry::BundleError;
use turnkeep_store::{BlobError, LostTurn, ReadError, Refusal, SubmitError};
use turnkeep_types::TurnId;
use turnkeep_wire::{DecodeError, ErrorBody, ErrorCode, FrameTooLong};

use crate::ledger::LedgerError;
use crate::nesting::NESTING_MAX;

/// A failed request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of error.
    pub code: ErrorCode,
    /// The ledger's word, where the error is the ledger's; it is what the caller is told.
    pub word: Option<Code>,
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
            word: None,
            message: message.into(),
            details: Map::new(),
            source: None,
        }
    }

    /// A request that cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
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

    /// A fault of ours; the source goes to the log and not to the caller.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let error = Self::new(ErrorCode::Internal, "the server failed; its log says why");
        Self {
            source: Some(source.into()),
            ..error
        }
    }

    /// What comes while the server stops.
    pub fn shutting_down() -> Self {
        Self::new(ErrorCode::Unavailable, "the server is shutting down")
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Names the error by a word of the ledger.
    #[must_use]
    pub fn word(mut self, word: Code) -> Self {
        self.word = Some(word);
        self
    }

    /// Whether the same request may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        self.code.is_retryable() || self.word == Some(Code::InProgress)
    }

    /// The error's JSON.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            code: self.word.map_or(self.code.word(), Code::word).to_owned(),
            message: self.message.clone(),
            details: self.details.clone(),
        }
    }

    /// Logs the error if it is ours, where it is answered and nowhere else.
    pub fn log(&self) {
        if matches!(self.code, ErrorCode::Internal | ErrorCode::Corrupt) {
            let source = self.source.as_ref().map(tracing::field::display);
            tracing::error!(code = self.code.word(), source, "{}", self.message);
        }
    }
}

fn head(turn: Option<TurnId>) -> Value {
    TurnId::to_wire(turn).to_string().into()
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let error = |code| Self::new(code, message);
        match refusal {
            Refusal::UnknownContext(id) => {
                error(ErrorCode::NotFound).with("context_id", id.to_string())
            }
            Refusal::UnknownTurn(id) => error(ErrorCode::NotFound).with("turn_id", id.to_string()),
            Refusal::UnknownBlob(hash) => error(ErrorCode::NotFound).with("hash", hash.to_string()),
            Refusal::HeadMoved {
                context,
                expected,
                actual,
            } => error(ErrorCode::Conflict)
                .with("context_id", context.to_string())
                .with("expected_head_turn_id", head(expected))
                .with("actual_head_turn_id", head(actual)),
            Refusal::HeadLost(context) => {
                error(ErrorCode::Conflict).with("context_id", context.to_string())
            }
            Refusal::KeyReused => error(ErrorCode::Conflict),
            Refusal::FsRootSet { turn, actual } => error(ErrorCode::Conflict)
                .with("turn_id", turn.to_string())
                .with("actual_fs_root_hash", actual.to_string()),
            Refusal::UnknownType(declared) => error(ErrorCode::PreconditionFailed)
                .with("type_id", &*declared.id)
                .with("type_version", declared.version),
            Refusal::TooDeep => error(ErrorCode::Unprocessable),
            Refusal::Bundle(bundle) => Self::from(&*bundle),
            Refusal::NoSpace { needed_bytes } => {
                error(ErrorCode::InsufficientStorage).with("needed_bytes", needed_bytes)
            }
            Refusal::ReadOnly => error(ErrorCode::Forbidden),
            Refusal::Poisoned(_) | Refusal::Closed => error(ErrorCode::Unavailable),
        }
    }
}

impl From<&BundleError> for ApiError {
    fn from(error: &BundleError) -> Self {
        let message = error.to_string();
        match error {
            BundleError::Malformed(_) => Self::new(ErrorCode::Unprocessable, message),
            BundleError::Conflict(_) => Self::new(ErrorCode::Conflict, message),
            BundleError::TooDeep { offset } => {
                let levels = NESTING_MAX as u64;
                let error = Self::new(ErrorCode::TooLarge, message).with("offset", *offset as u64);
                error.with("limit", levels).with("actual", levels + 1)
            }
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(read: ReadError) -> Self {
        let message = read.to_string();
        let error = |code| Self::new(code, message);
        match read {
            ReadError::UnknownContext(id) => {
                error(ErrorCode::NotFound).with("context_id", id.to_string())
            }
            ReadError::UnknownTurn(id) => {
                error(ErrorCode::NotFound).with("turn_id", id.to_string())
            }
            ReadError::UnknownBlob(hash) => {
                error(ErrorCode::NotFound).with("hash", hash.to_string())
            }
            ReadError::LostTurn(lost) => lost_turn(error(ErrorCode::Corrupt), lost),
            ReadError::LostContext(id) => {
                error(ErrorCode::Corrupt).with("context_id", id.to_string())
            }
            ReadError::Corrupt { hash, what } => error(ErrorCode::Corrupt)
                .with("hash", hash.to_string())
                .with("what", what),
            ReadError::NoMemory(_) => error(ErrorCode::TooManyRequests),
        }
    }
}

/// Adds which turn is lost and how to get past it.
fn lost_turn(mut error: ApiError, lost: LostTurn) -> ApiError {
    if let Some(earlier) = lost.earlier {
        error = error.with("earlier_turn_id", earlier.to_string());
    }
    if let Some(depth) = lost.next_depth {
        error = error.with("next_depth", depth);
    }
    error.with("turn_id", lost.turn.to_string())
}

impl From<BlobError> for ApiError {
    fn from(blob: BlobError) -> Self {
        let error = Self::new(ErrorCode::Conflict, blob.to_string());
        match blob {
            BlobError::HashMismatch { expected, actual } => error
                .with("expected", expected.to_string())
                .with("actual", actual.to_string()),
            BlobError::LengthMismatch { expected, actual } => {
                error.with("expected", expected).with("actual", actual)
            }
            BlobError::NotZstd(_) => Self {
                code: ErrorCode::Undecodable,
                ..error
            },
            BlobError::NoMemory(_) => Self {
                code: ErrorCode::TooManyRequests,
                ..error
            },
            BlobError::TooLarge { limit, actual } => {
                Self::too_large("payload bytes", limit, actual)
            }
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(submit: SubmitError) -> Self {
        let code = match submit {
            SubmitError::Full => ErrorCode::TooManyRequests,
            SubmitError::Closed => ErrorCode::Unavailable,
        };
        Self::new(code, submit.to_string())
    }
}

impl From<DecodeError> for ApiError {
    fn from(decode: DecodeError) -> Self {
        let message = decode.to_string();
        match decode {
            DecodeError::UnknownType(_)
            | DecodeError::UndefinedFlags { .. }
            | DecodeError::Truncated { .. }
            | DecodeError::LeftOver { .. }
            | DecodeError::BadValue { .. }
            | DecodeError::NotUtf8 { .. } => Self::bad_request(message),
            DecodeError::ZeroId { field } => {
                Self::new(ErrorCode::NotFound, message).with(field, json!("0"))
            }
            DecodeError::TooMany {
                field,
                limit,
                actual,
            } => Self::too_large(field, limit, actual),
        }
    }
}

impl From<FrameTooLong> for ApiError {
    fn from(long: FrameTooLong) -> Self {
        Self::too_large("frame bytes", long.limit as u64, long.header.len.into())
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let message = match fault.path.as_str() {
            "" => fault.message.into_owned(),
            path => format!("{path} {}", fault.message),
        };
        let error = Self::new(kind_of(fault.code), message).word(fault.code);
        if fault.path.is_empty() {
            error
        } else {
            error.with("path", fault.path)
        }
    }
}

/// What kind of error a word of the ledger is, where it is not the verdict on a bundle.
fn kind_of(code: Code) -> ErrorCode {
    match code {
        Code::JsonInvalid
        | Code::TextInvalid
        | Code::EnvelopeInvalid
        | Code::RequestIdInvalid
        | Code::InvokerForbidden
        | Code::TimeFormat
        | Code::TimeAmbiguous
        | Code::BadCursor
        | Code::RequestMismatch
        | Code::UnknownField
        | Code::TextTooLarge
        | Code::ToolRequestInvalid
        | Code::UnknownTool
        | Code::BadLimit
        | Code::BadWindow
        | Code::ConfigInvalid => ErrorCode::BadRequest,
        Code::OperatorForbidden
        | Code::RequestIdForeign
        | Code::ActorMismatch
        | Code::AuthorForbidden
        | Code::ViewForbidden
        | Code::Forbidden => ErrorCode::Forbidden,
        Code::NotFound => ErrorCode::NotFound,
        Code::TimeRegression
        | Code::RequestIdReused
        | Code::InProgress
        | Code::HeadMoved
        | Code::DuplicateToolId
        | Code::NameTaken => ErrorCode::Conflict,
        Code::Shape
        | Code::WroteMismatch
        | Code::TooLarge
        | Code::IdPreset
        | Code::AuthorUnknown
        | Code::ChannelInvalid
        | Code::VisibilityInvalid
        | Code::TimeInconsistent
        | Code::TextEmpty
        | Code::PocketInvalid
        | Code::ProvenanceInvalid
        | Code::PackInvalid => ErrorCode::Unprocessable,
        Code::TooManyRequests | Code::LoopLimit => ErrorCode::TooManyRequests,
        Code::Corrupt => ErrorCode::Corrupt,
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Fault(fault) => fault.into(),
            LedgerError::Refusal(refusal) => refusal.into(),
            LedgerError::Load(error) => {
                let message = "the world cannot be read; `turnkeep verify` says more";
                Self {
                    source: Some(error.into()),
                    ..Self::new(ErrorCode::Corrupt, message)
                }
            }
            LedgerError::Unrecordable(error @ Unrecordable::TooLarge { .. }) => {
                Self::new(ErrorCode::TooLarge, error.to_string())
            }
            LedgerError::Unrecordable(error) => Self::internal(error),
            LedgerError::Unreadable(error) => {
                let message = "this world cannot be read, the others can: `turnkeep world verify` and `turnkeep verify` tell its owner what is damaged; restore a backup of the data directory";
                Self {
                    source: Some(error.into()),
                    ..Self::new(ErrorCode::Unavailable, message)
                }
            }
            LedgerError::OverRate(over) => over.into(),
            LedgerError::Abandoned(why) => Self::internal(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_types::{BlobHash, ContextId};

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
}
