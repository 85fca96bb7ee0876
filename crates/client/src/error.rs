//! What can go wrong for a caller, and whether asking again can help.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use turnkeep_types::BlobHash;
use turnkeep_wire::fs_tree::TreeError;
use turnkeep_wire::message::Failure;
use turnkeep_wire::{DecodeError, ErrorCode, FrameTooLong};

/// Why a request gave no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No connection could be made.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// Where to.
        addr: String,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// TLS cannot be set up with the given files or names.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// The connection ended before the answer came. The request is safe to repeat.
    #[error("the connection was lost: {0}")]
    Lost(Lost),
    /// A write without an idempotency key was sent, and what came back, a lost connection or a
    /// server that is unavailable, does not tell whether it was carried out.
    #[error(
        "{0}; the request had been sent and may or may not have been carried out: an idempotency key makes it safe to repeat"
    )]
    OutcomeUnknown(Box<Error>),
    /// The server refused the request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server's answer is not what the protocol says.
    #[error("the server's answer does not follow the protocol: {0}")]
    Protocol(#[from] DecodeError),
    /// The server answered another request than the one it was asked.
    #[error("the server answered with message type {0}, which does not belong to the request")]
    WrongAnswer(u16),
    /// The server's events do not go forward, or its pages do not lead back.
    #[error("the server's answer is out of order: {what} {number} cannot follow {after}")]
    OutOfOrder {
        /// What has numbers.
        what: &'static str,
        /// The one that came.
        number: u64,
        /// The one before it.
        after: u64,
    },
    /// A payload that does not decompress to what its item says.
    #[error("the payload of blob {hash} does not decompress: {what}")]
    BadPayload {
        /// The payload's name.
        hash: BlobHash,
        /// What is wrong.
        what: String,
    },
    /// A blob that is read as a directory and is none.
    #[error(transparent)]
    BadTree(#[from] TreeError),
    /// The bytes that came are not the bytes that were asked for.
    #[error("the bytes received hash to {actual}, not to {expected}")]
    HashMismatch {
        /// What was asked for.
        expected: BlobHash,
        /// What came.
        actual: BlobHash,
    },
    /// The request is larger than one that the server takes, or than this client may hold in
    /// flight. It was not sent.
    #[error("a request of {bytes} bytes or more is over the limit of {max}")]
    TooLarge {
        /// Its size, as far as it was counted.
        bytes: usize,
        /// The bound.
        max: usize,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Lost {
    /// This side closed it.
    #[error("the client was closed")]
    Closed,
    /// The server closed it.
    #[error("the server closed it")]
    Ended,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(Arc<io::Error>),
    /// The server sent nothing while requests waited.
    #[error("no answer for {} ms", .0.as_millis())]
    Silent(Duration),
    /// The server announced a frame over the bound.
    #[error("the server sent {0}")]
    FrameTooLong(#[from] FrameTooLong),
    /// The server said why it closes the connection.
    #[error("the server closed it: {0}")]
    Refused(ServerError),
}

impl Lost {
    pub(crate) fn io(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// An error as the server gave it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({status})")]
pub struct ServerError {
    /// The number, which is the HTTP status.
    pub status: u32,
    /// The canonical code, if this client knows it.
    pub code: Option<ErrorCode>,
    /// What to tell a person.
    pub message: String,
    /// Values, such as the actual head of a conflict.
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl ServerError {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.code.map_or(
            matches!(self.status, 429 | 503 | 507),
            ErrorCode::is_retryable,
        )
    }
}

impl From<&Failure> for ServerError {
    fn from(failure: &Failure) -> Self {
        let body = failure.body();
        Self {
            status: failure.status,
            code: failure.code(),
            message: body.message,
            details: body.details,
        }
    }
}

impl Error {
    /// Whether the same request may succeed later, and sending it again cannot carry it out twice.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Lost(_) => true,
            Self::Server(error) => error.is_retryable(),
            Self::Tls(_)
            | Self::OutcomeUnknown(_)
            | Self::Protocol(_)
            | Self::WrongAnswer(_)
            | Self::OutOfOrder { .. }
            | Self::BadPayload { .. }
            | Self::BadTree(_)
            | Self::HashMismatch { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// The server's code, when the server answered.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Server(error) | Self::Lost(Lost::Refused(error)) => error.code,
            Self::OutcomeUnknown(error) => error.code(),
            _ => None,
        }
    }
}
