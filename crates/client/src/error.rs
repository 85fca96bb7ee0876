//! What can go wrong for a caller, and whether asking again can help.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use turnkeep_types::BlobHash;
use turnkeep_wire::{DecodeError, ErrorBody, ErrorCode};

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
    /// The connection ended before the answer to a write without an idempotency key: it may have been carried out.
    #[error("the connection was lost ({0}) after the request was sent: it may or may not have been carried out; an idempotency key makes it safe to repeat")]
    OutcomeUnknown(Lost),
    /// The server refused the request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server's answer is not what the protocol says.
    #[error("the server's answer does not follow the protocol: {0}")]
    Protocol(String),
    /// The bytes that came are not the bytes that were asked for.
    #[error("the bytes received hash to {actual}, not to {expected}")]
    HashMismatch {
        /// What was asked for.
        expected: BlobHash,
        /// What came.
        actual: BlobHash,
    },
    /// The request is larger than this client may hold in flight.
    #[error("the request has {bytes} bytes, more than the {max} that may be in flight")]
    TooLarge {
        /// Its size.
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
    #[error("the server announced a frame of {bytes} bytes, more than the {max} that are accepted")]
    FrameTooLong {
        /// As announced.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// The server said why it closes the connection.
    #[error(transparent)]
    Refused(ServerError),
    /// The server spoke something else.
    #[error("{0}")]
    Protocol(String),
}

/// An error as the server gave it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ServerError {
    /// The canonical word and status.
    pub code: ErrorCode,
    /// What to tell a person.
    pub message: String,
    /// Values, such as the actual head of a conflict.
    pub details: serde_json::Value,
}

impl Error {
    /// Whether the same request may succeed later. A lost connection counts only where repeating is safe.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Lost(_) => true,
            Self::Server(error) => error.code.is_retryable(),
            Self::Tls(_)
            | Self::OutcomeUnknown(_)
            | Self::Protocol(_)
            | Self::HashMismatch { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// The server's code, when the server answered.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Server(error) | Self::Lost(Lost::Refused(error)) => Some(error.code),
            _ => None,
        }
    }
}
