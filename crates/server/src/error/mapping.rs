//! Converts every error of another crate or module to an [`ApiError`].
//!
//! There is one exhaustive match per type, without a catch-all arm: a new variant does not compile
//! until it has a code here. The details carry the values that a program needs to react, such as the
//! actual head of a conflict.

use serde_json::{Value, json};
use turnkeep_ledger::log::Unrecordable;
use turnkeep_ledger::{Code, Fault};
use turnkeep_store::projection::{EncodeError, HintError, ProjectionError};
use turnkeep_store::registry::BundleError;
use turnkeep_store::{BlobError, LostTurn, ReadError, Refusal, SubmitError};
use turnkeep_types::broker::{self, Reason};
use turnkeep_types::{BlobHash, TurnId, TypeRef};
use turnkeep_wire::fs_tree::TreeError;
use turnkeep_wire::{DecodeError, ErrorCode, ErrorReason, FrameTooLong};

use super::ApiError;
use crate::auth::Denied;
use crate::http::query::QueryError;
use crate::ledger::LedgerError;
use crate::nesting::NESTING_MAX;

/// A head as JSON shows it: 0 for a context without turns.
fn head_value(turn: Option<TurnId>) -> Value {
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
                .with("expected_head_turn_id", head_value(expected))
                .with("actual_head_turn_id", head_value(actual)),
            Refusal::HeadLost(context) => {
                error(ErrorCode::Conflict).with("context_id", context.to_string())
            }
            Refusal::KeyReused => error(ErrorCode::Conflict).with_reason(ErrorReason::KeyReused),
            Refusal::FsRootSet { turn, actual } => error(ErrorCode::Conflict)
                .with("turn_id", turn.to_string())
                .with("actual_fs_root_hash", actual.to_string()),
            Refusal::UnknownType(declared) => {
                with_type(error(ErrorCode::PreconditionFailed), &declared)
            }
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
            // The system's memory, not the budget. The request may succeed later.
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
            // No object has the id 0, so this is the answer that any unknown id gets.
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
        let code = ledger_error_code(fault.code);
        if fault.path.is_empty() {
            return Self::new(code, fault.message);
        }
        let message = format!("{} {}", fault.path, fault.message);
        Self::new(code, message).with("path", fault.path)
    }
}

/// The code of a request that the ledger rejects.
pub(crate) fn ledger_error_code(code: Code) -> ErrorCode {
    match code {
        // General codes say the same as these four of the ledger's.
        Code::NotFound => ErrorCode::NotFound,
        Code::Forbidden => ErrorCode::Forbidden,
        Code::TooManyRequests => ErrorCode::TooManyRequests,
        Code::Corrupt => ErrorCode::Corrupt,
        Code::JsonInvalid => ErrorCode::JsonInvalid,
        Code::TextInvalid => ErrorCode::TextInvalid,
        Code::EnvelopeInvalid => ErrorCode::EnvelopeInvalid,
        Code::RequestIdInvalid => ErrorCode::RequestIdInvalid,
        Code::InvokerForbidden => ErrorCode::InvokerForbidden,
        Code::OperatorForbidden => ErrorCode::OperatorForbidden,
        Code::TimeFormat => ErrorCode::TimeFormat,
        Code::TimeAmbiguous => ErrorCode::TimeAmbiguous,
        Code::TimeRegression => ErrorCode::TimeRegression,
        Code::RequestIdReused => ErrorCode::RequestIdReused,
        Code::RequestIdForeign => ErrorCode::RequestIdForeign,
        Code::InProgress => ErrorCode::InProgress,
        Code::HeadMoved => ErrorCode::HeadMoved,
        Code::BadCursor => ErrorCode::BadCursor,
        Code::Shape => ErrorCode::Shape,
        Code::RequestMismatch => ErrorCode::RequestMismatch,
        Code::ActorMismatch => ErrorCode::ActorMismatch,
        Code::WroteMismatch => ErrorCode::WroteMismatch,
        Code::TooLarge => ErrorCode::BundleTooLarge,
        Code::IdPreset => ErrorCode::IdPreset,
        Code::UnknownField => ErrorCode::UnknownField,
        Code::AuthorUnknown => ErrorCode::AuthorUnknown,
        Code::AuthorForbidden => ErrorCode::AuthorForbidden,
        Code::ChannelInvalid => ErrorCode::ChannelInvalid,
        Code::VisibilityInvalid => ErrorCode::VisibilityInvalid,
        Code::TimeInconsistent => ErrorCode::TimeInconsistent,
        Code::TextEmpty => ErrorCode::TextEmpty,
        Code::TextTooLarge => ErrorCode::TextTooLarge,
        Code::PocketInvalid => ErrorCode::PocketInvalid,
        Code::ProvenanceInvalid => ErrorCode::ProvenanceInvalid,
        Code::ToolRequestInvalid => ErrorCode::ToolRequestInvalid,
        Code::UnknownTool => ErrorCode::UnknownTool,
        Code::ViewForbidden => ErrorCode::ViewForbidden,
        Code::BadLimit => ErrorCode::BadLimit,
        Code::BadWindow => ErrorCode::BadWindow,
        Code::DuplicateToolId => ErrorCode::DuplicateToolId,
        Code::LoopLimit => ErrorCode::LoopLimit,
        Code::PackInvalid => ErrorCode::PackInvalid,
        Code::ConfigInvalid => ErrorCode::ConfigInvalid,
        Code::NameTaken => ErrorCode::NameTaken,
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Fault(fault) => fault.into(),
            LedgerError::Refusal(refusal) => refusal.into(),
            LedgerError::Load(error) => {
                let message = "the world cannot be read; `turnkeep verify` says more";
                Self::new(ErrorCode::Corrupt, message).with_source(error)
            }
            LedgerError::Unrecordable(error @ Unrecordable::TooLarge { .. }) => {
                Self::new(ErrorCode::TooLarge, error.to_string())
            }
            // The other kinds are faults of ours: the request was checked before.
            LedgerError::Unrecordable(error) => Self::internal(error),
            LedgerError::Unreadable(error) => {
                let message = "this world cannot be read, the others can: `turnkeep world verify` and `turnkeep verify` tell its owner what is damaged; restore a backup of the data directory";
                Self::new(ErrorCode::Unavailable, message)
                    .with_reason(ErrorReason::WorldUnreadable)
                    .with_source(error)
            }
            LedgerError::OverRate(over) => over.into(),
            LedgerError::Abandoned(why) => Self::internal(why),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(query: QueryError) -> Self {
        let message = query.to_string();
        let bad = Self::bad_request(message.clone());
        match query {
            QueryError::Unknown { name, legal } => {
                bad.with("parameter", name).with("legal", legal.to_vec())
            }
            QueryError::Illegal(unknown) | QueryError::Hint(HintError::UnknownMode(unknown)) => bad
                .with("parameter", unknown.option)
                .with("value", unknown.given)
                .with("legal", unknown.legal.to_vec()),
            QueryError::Kind {
                name,
                value,
                expected,
            } => bad
                .with("parameter", name)
                .with("value", value)
                .with("legal", vec![expected]),
            QueryError::Limit(value) => Self::new(ErrorCode::BadLimit, message)
                .with("parameter", "limit")
                .with("value", value)
                .with("legal", vec!["a whole number from 1 on"]),
            QueryError::Twice(name) => bad.with("parameter", name),
            QueryError::Encoding(_) | QueryError::Hint(HintError::NotExplicit) => bad,
            QueryError::Hint(HintError::Incomplete) => {
                Self::new(ErrorCode::MissingTypeHint, message)
            }
        }
    }
}

impl From<ProjectionError> for ApiError {
    fn from(projection: ProjectionError) -> Self {
        let message = projection.to_string();
        let error = |code| Self::new(code, message);
        match projection {
            ProjectionError::Conflict {
                declared,
                requested,
            } => error(ErrorCode::Conflict)
                .with("declared", declared.to_string())
                .with("requested", requested.to_string()),
            ProjectionError::MissingTypeHint => error(ErrorCode::MissingTypeHint),
            ProjectionError::FailedDependency(wanted) => {
                with_type(error(ErrorCode::FailedDependency), &wanted)
            }
            ProjectionError::Decode(_) => error(ErrorCode::Corrupt),
            ProjectionError::TooLarge { max } => error(ErrorCode::TooLarge).with("limit", max),
        }
    }
}

impl From<EncodeError> for ApiError {
    fn from(encode: EncodeError) -> Self {
        let message = encode.to_string();
        let error = |code| Self::new(code, message);
        match encode {
            EncodeError::MissingType => error(ErrorCode::MissingTypeHint),
            EncodeError::Unpublished(wanted) => {
                with_type(error(ErrorCode::FailedDependency), &wanted)
            }
            EncodeError::UnknownField { path, .. } => error(ErrorCode::Unprocessable)
                .with("path", path)
                .with_reason(ErrorReason::FieldUnknown),
            EncodeError::MissingField { path, .. } => error(ErrorCode::Unprocessable)
                .with("path", path)
                .with_reason(ErrorReason::FieldMissing),
            EncodeError::WrongValue { path, .. } | EncodeError::TooDeep { path } => {
                error(ErrorCode::Unprocessable).with("path", path)
            }
        }
    }
}

/// Adds which type an error is about.
fn with_type(error: ApiError, name: &TypeRef) -> ApiError {
    error
        .with("type_id", &*name.id)
        .with("type_version", name.version)
}

impl From<broker::Refusal> for ApiError {
    fn from(refusal: broker::Refusal) -> Self {
        let (code, message) = broker_error(refusal.reason);
        let message = refusal.detail.unwrap_or_else(|| message.to_owned());
        Self::new(code, message).with(ErrorReason::KEY, refusal.reason.word())
    }
}

/// The code for a refusal of the broker, and what to say about it.
fn broker_error(reason: Reason) -> (ErrorCode, &'static str) {
    match reason {
        Reason::SessionNotFound => (ErrorCode::NotFound, "there is no such session"),
        Reason::NoTurn => (ErrorCode::NotFound, "the session has completed no turn yet"),
        Reason::TurnNotFound => (
            ErrorCode::NotFound,
            "the turn does not exist or is not kept any more",
        ),
        Reason::NoRaw => (
            ErrorCode::NotFound,
            "the terminal's own bytes were not kept: start the session with `wrap --keep-raw`",
        ),
        Reason::SessionDisconnected => (ErrorCode::Conflict, "the session has ended"),
        Reason::BufferEmpty => (
            ErrorCode::Conflict,
            "the relay buffer is empty: capture a turn first",
        ),
        Reason::Blocked => (ErrorCode::Conflict, "the program shows a dialog"),
        Reason::UnsafeContent => (
            ErrorCode::Conflict,
            "the content holds the end of a bracketed paste",
        ),
        Reason::NoClipboard => (
            ErrorCode::Conflict,
            "the broker was not started in a desktop",
        ),
        Reason::NoStore => (ErrorCode::Conflict, "the broker reaches no turn store"),
        Reason::NoRuntime => (ErrorCode::Conflict, "the broker reaches no runs"),
        Reason::NotShared => (
            ErrorCode::Forbidden,
            "the session was not started with `wrap --share`",
        ),
        Reason::UnknownSink => (ErrorCode::BadRequest, "there is no such sink"),
        Reason::MissingField | Reason::BadField | Reason::BadPath => {
            (ErrorCode::BadRequest, "the request is not complete")
        }
        Reason::PayloadTooLarge => (ErrorCode::TooLarge, "the turn is too large"),
        Reason::Busy => (ErrorCode::TooManyRequests, "too much is waiting"),
        Reason::SinkFailed => (ErrorCode::Unavailable, "the sink failed"),
        // These are about the socket's connections. The server opens its own as it should.
        Reason::HelloRequired
        | Reason::HelloRepeated
        | Reason::VersionMismatch
        | Reason::Malformed
        | Reason::UnknownType
        | Reason::DuplicateSession
        | Reason::AlreadyRegistered
        | Reason::NotOwner
        | Reason::WrongRole
        | Reason::AlreadyWatching
        | Reason::NotPermitted
        | Reason::Internal => (ErrorCode::Internal, "the broker failed"),
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let message = denied.to_string();
        match denied {
            Denied::NoHost => Self::bad_request(message),
            Denied::Host(_) => {
                Self::new(ErrorCode::Forbidden, message).with_reason(ErrorReason::HostNotAllowed)
            }
            Denied::Origin(_) | Denied::CrossSite(_) | Denied::CookieAlone => {
                Self::new(ErrorCode::Forbidden, message)
            }
            Denied::NoCredentials | Denied::WrongCredentials => {
                Self::new(ErrorCode::Unauthorized, message)
            }
        }
    }
}

/// The error for a path through a blob that is not a directory.
pub(crate) fn bad_tree(error: &TreeError, hash: BlobHash) -> ApiError {
    let code = match error {
        TreeError::TooMany { .. } => ErrorCode::TooLarge,
        TreeError::NotMsgpack | TreeError::Missing(_) | TreeError::Bad(_) | TreeError::LeftOver => {
            ErrorCode::Corrupt
        }
    };
    ApiError::new(code, format!("blob {hash} is not a directory: {error}"))
        .with("hash", hash.to_string())
}
