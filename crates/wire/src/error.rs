//! The dictionary of errors: every code with its word and its number, and the reasons that tell
//! errors with one code apart.
//!
//! No other file defines a word or a number of an error that leaves the server. Programs compare
//! the word. The number is the HTTP status, and the `code` of a binary ERROR frame. Two codes share
//! the word `DecodeError` and differ in their status: 422 for the caller's bytes, 500 for stored
//! bytes.
//!
//! Words in `CamelCase` apply to every interface. Words in `UPPER_CASE` are the ledger's: a rule of
//! worlds that has no general word. They equal the words that the ledger records with a rejected
//! bundle.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal $word:literal,)*) => {
        /// The kind of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word that programs compare.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// The number: the HTTP status, and the binary protocol's `code`.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                }
            }
        }
    };
}

error_codes! {
    /// The request cannot be understood.
    BadRequest = 400 "BadRequest",
    /// The token is missing or wrong.
    Unauthorized = 401 "Unauthorized",
    /// Not allowed from this origin or with this token.
    Forbidden = 403 "Forbidden",
    /// The object does not exist, or not for this caller.
    NotFound = 404 "NotFound",
    /// HTTP only: the route does not support the method.
    MethodNotAllowed = 405 "MethodNotAllowed",
    /// The request contradicts the current state.
    Conflict = 409 "Conflict",
    /// The server is strict and the type is unknown.
    PreconditionFailed = 412 "PreconditionFailed",
    /// The request or the response exceeds a limit.
    TooLarge = 413 "TooLarge",
    /// HTTP only: the body's encoding is unsupported.
    UnsupportedMediaType = 415 "UnsupportedMediaType",
    /// HTTP only: no byte of the range exists.
    RangeNotSatisfiable = 416 "RangeNotSatisfiable",
    /// The turn declares no type and the reader named none.
    MissingTypeHint = 422 "MissingTypeHint",
    /// Well-formed, but invalid.
    Unprocessable = 422 "Unprocessable",
    /// The bytes that the caller sent do not decode.
    Undecodable = 422 "DecodeError",
    /// The requested descriptor is not published.
    FailedDependency = 424 "FailedDependency",
    /// Too many requests at once; retry later.
    TooManyRequests = 429 "TooManyRequests",
    /// A fault of the server.
    Internal = 500 "Internal",
    /// Stored bytes do not decode.
    Corrupt = 500 "DecodeError",
    /// The log is poisoned, or the server is shutting down or overloaded; retry later.
    Unavailable = 503 "Unavailable",
    /// The disk is full; retry when there is space.
    InsufficientStorage = 507 "InsufficientStorage",

    /// The bytes are not JSON, have a duplicate key, or are nested too deeply.
    JsonInvalid = 400 "JSON_INVALID",
    /// A text has a NUL or is not UTF-8.
    TextInvalid = 400 "TEXT_INVALID",
    /// An envelope does not have the required shape.
    EnvelopeInvalid = 400 "ENVELOPE_INVALID",
    /// A request id is missing or malformed.
    RequestIdInvalid = 400 "REQUEST_ID_INVALID",
    /// The invoker claims to be the operator or a human.
    InvokerForbidden = 400 "INVOKER_FORBIDDEN",
    /// Only the operator may speak as the operator.
    OperatorForbidden = 403 "OPERATOR_FORBIDDEN",
    /// A text is not a time.
    TimeFormat = 400 "TIME_FORMAT",
    /// A local time does not exist or exists twice.
    TimeAmbiguous = 400 "TIME_AMBIGUOUS",
    /// A declared time is before the world's time.
    TimeRegression = 409 "TIME_REGRESSION",
    /// The id was used for another request.
    RequestIdReused = 409 "REQUEST_ID_REUSED",
    /// Another caller used the id.
    RequestIdForeign = 403 "REQUEST_ID_FOREIGN",
    /// A request with this id is still running; retry later.
    InProgress = 409 "IN_PROGRESS",
    /// A visible entry was written after the expected cursor.
    HeadMoved = 409 "HEAD_MOVED",
    /// A cursor is malformed, or of another world or view.
    BadCursor = 400 "BAD_CURSOR",
    /// A bundle does not have the required shape.
    Shape = 422 "SHAPE",
    /// A request id is not the beat's.
    RequestMismatch = 400 "REQUEST_MISMATCH",
    /// The actor is not the caller.
    ActorMismatch = 403 "ACTOR_MISMATCH",
    /// `wrote` and the number of entries disagree.
    WroteMismatch = 422 "WROTE_MISMATCH",
    /// The bundle is too large.
    BundleTooLarge = 422 "TOO_LARGE",
    /// An id is given that only the commit may give.
    IdPreset = 422 "ID_PRESET",
    /// A field is unknown.
    UnknownField = 400 "UNKNOWN_FIELD",
    /// The world does not know the author.
    AuthorUnknown = 422 "AUTHOR_UNKNOWN",
    /// The writer may not write in the author's name.
    AuthorForbidden = 403 "AUTHOR_FORBIDDEN",
    /// The channel does not fit the author.
    ChannelInvalid = 422 "CHANNEL_INVALID",
    /// The addressees are missing, too many, duplicate or unknown.
    VisibilityInvalid = 422 "VISIBILITY_INVALID",
    /// A time does not fit the world's time or the other entries.
    TimeInconsistent = 422 "TIME_INCONSISTENT",
    /// A text is only white space.
    TextEmpty = 422 "TEXT_EMPTY",
    /// A text is too long.
    TextTooLarge = 400 "TEXT_TOO_LARGE",
    /// A pocket item does not fit its entry.
    PocketInvalid = 422 "POCKET_INVALID",
    /// Cited entries are missing, unknown or hidden.
    ProvenanceInvalid = 422 "PROVENANCE_INVALID",
    /// A tool request does not have the required shape.
    ToolRequestInvalid = 400 "TOOL_REQUEST_INVALID",
    /// The tool is unknown.
    UnknownTool = 400 "UNKNOWN_TOOL",
    /// The caller may not use the view.
    ViewForbidden = 403 "VIEW_FORBIDDEN",
    /// The limit is out of range.
    BadLimit = 400 "BAD_LIMIT",
    /// The window ends before it begins.
    BadWindow = 400 "BAD_WINDOW",
    /// The tool request id was used for another request.
    DuplicateToolId = 409 "DUPLICATE_TOOL_ID",
    /// The beat made too many tool calls.
    LoopLimit = 429 "LOOP_LIMIT",
    /// A pack does not match its sources.
    PackInvalid = 422 "PACK_INVALID",
    /// A world's configuration is not valid.
    ConfigInvalid = 400 "CONFIG_INVALID",
    /// The name is taken.
    NameTaken = 409 "NAME_TAKEN",
}

impl ErrorCode {
    /// The code with this status and word, if there is one. The word alone is not enough:
    /// `DecodeError` has two statuses.
    pub fn from_wire(status: u32, word: &str) -> Option<Self> {
        let mut codes = Self::ALL.iter().copied();
        codes.find(|code| u32::from(code.status()) == status && code.word() == word)
    }

    /// Whether the same request may succeed later, unchanged.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::TooManyRequests
                | Self::Unavailable
                | Self::InsufficientStorage
                | Self::InProgress
                | Self::LoopLimit
        )
    }
}

/// Why an error happened, where its code does not say enough for a program to react.
///
/// The value of the detail [`ErrorReason::KEY`]. Reasons are never renamed, only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorReason {
    /// `Forbidden`: the server does not accept the request's host name.
    HostNotAllowed,
    /// `Conflict`: the idempotency key was used for another request.
    KeyReused,
    /// `Unprocessable`: the data lacks a field that its type does not mark optional.
    FieldMissing,
    /// `Unprocessable`: the data has a field that its type does not have.
    FieldUnknown,
    /// `Unavailable`: the server could not read this world when it started.
    WorldUnreadable,
    /// `NotFound`: there is no such world, or not for this caller.
    WorldUnknown,
    /// `NotFound`: the world has no such person.
    PersonUnknown,
    /// `BadRequest`: the run has no node that could be meant.
    NoNodes,
}

impl ErrorReason {
    /// The detail that holds the reason.
    pub const KEY: &str = "reason";

    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::HostNotAllowed,
        Self::KeyReused,
        Self::FieldMissing,
        Self::FieldUnknown,
        Self::WorldUnreadable,
        Self::WorldUnknown,
        Self::PersonUnknown,
        Self::NoNodes,
    ];

    /// The word that programs compare.
    pub const fn word(self) -> &'static str {
        match self {
            Self::HostNotAllowed => "host_not_allowed",
            Self::KeyReused => "key_reused",
            Self::FieldMissing => "field_missing",
            Self::FieldUnknown => "field_unknown",
            Self::WorldUnreadable => "world_unreadable",
            Self::WorldUnknown => "world_unknown",
            Self::PersonUnknown => "person_unknown",
            Self::NoNodes => "no_nodes",
        }
    }

    /// The reason among an error's details, if there is a known one.
    pub fn from_details(details: &Map<String, Value>) -> Option<Self> {
        let word = details.get(Self::KEY)?.as_str()?;
        Self::ALL.into_iter().find(|reason| reason.word() == word)
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
                Some(*code)
            );
        }
        assert_eq!(ErrorCode::from_wire(404, "Conflict"), None);
    }

    #[test]
    fn only_what_may_pass_by_itself_is_retryable() {
        let retryable = ErrorCode::ALL.iter().filter(|code| code.is_retryable());
        let words: Vec<_> = retryable.map(|code| (code.status(), code.word())).collect();
        assert_eq!(
            words,
            [
                (429, "TooManyRequests"),
                (503, "Unavailable"),
                (507, "InsufficientStorage"),
                (409, "IN_PROGRESS"),
                (429, "LOOP_LIMIT"),
            ]
        );
    }

    #[test]
    fn a_word_has_one_spelling() {
        let plain = |code: &ErrorCode| code.word().replace('_', "").to_lowercase();
        for code in ErrorCode::ALL {
            let same: Vec<_> = ErrorCode::ALL
                .iter()
                .filter(|other| plain(other) == plain(code))
                .map(|other| other.word())
                .collect();
            // A bundle over the ledger's limits is 422 `TOO_LARGE`; the word is on record. A
            // request over the server's limits is 413 `TooLarge`.
            let is_known_pair = plain(code) == "toolarge";
            assert!(
                is_known_pair || same.iter().all(|word| *word == same[0]),
                "{same:?}"
            );
        }
    }

    #[test]
    fn a_reason_is_found_among_the_details() {
        for reason in ErrorReason::ALL {
            let details = Map::from_iter([(ErrorReason::KEY.to_owned(), reason.word().into())]);
            assert_eq!(ErrorReason::from_details(&details), Some(reason));
        }
        assert_eq!(ErrorReason::from_details(&Map::new()), None);
    }
}
