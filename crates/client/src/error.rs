//! Errors of the client, and whether a retry may help.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use turnkeep_types::BlobHash;
use turnkeep_wire::fs_tree::TreeError;
use turnkeep_wire::message::Failure;
use turnkeep_wire::{DecodeError, ErrorCode, FrameTooLong};

/// Why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The client cannot connect.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// The server's address.
        addr: String,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// TLS cannot be set up with the given files or names.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// The connection ended before the response arrived. The request is safe to repeat.
    #[error("the connection was lost: {0}")]
    Lost(Lost),
    /// A write without an idempotency key was sent, and then the connection was lost or the server
    /// was unavailable. Whether the server carried it out is unknown.
    #[error(
        "{0}; the request had been sent and may or may not have been carried out: an idempotency key makes it safe to repeat"
    )]
    OutcomeUnknown(Box<Error>),
    /// The server rejected the request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server's response violates the protocol.
    #[error("the server's answer does not follow the protocol: {0}")]
    Protocol(#[from] DecodeError),
    /// The response has another type than the request.
    #[error("the server answered with message type {0}, which does not belong to the request")]
    WrongAnswer(u16),
    /// The positions of events do not ascend, or the turns of pages do not descend.
    #[error("the server's answer is out of order: {what} {number} cannot follow {after}")]
    OutOfOrder {
        /// What the numbers count.
        what: &'static str,
        /// The received number.
        number: u64,
        /// The number before it.
        after: u64,
    },
    /// A payload does not decompress to the declared length.
    #[error("the payload of blob {hash} does not decompress: {what}")]
    BadPayload {
        /// The payload's name.
        hash: BlobHash,
        /// What is wrong.
        what: String,
    },
    /// A blob is not a directory.
    #[error(transparent)]
    BadTree(#[from] TreeError),
    /// The received bytes have another hash than the requested blob.
    #[error("the bytes received hash to {actual}, not to {expected}")]
    HashMismatch {
        /// The requested hash.
        expected: BlobHash,
        /// The hash of the received bytes.
        actual: BlobHash,
    },
    /// The request is larger than the server's limit or this client's limit in flight. It was not
    /// sent.
    #[error("a request of {bytes} bytes or more is over the limit of {max}")]
    TooLarge {
        /// The size of its large parts.
        bytes: usize,
        /// The limit.
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
    /// The server announced a frame over the limit.
    #[error("the server sent {0}")]
    FrameTooLong(#[from] FrameTooLong),
    /// The server sent the reason and closed the connection.
    #[error("the server closed it: {0}")]
    Refused(ServerError),
}

impl Lost {
    pub(crate) fn from_io(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// An error response of the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({status})")]
pub struct ServerError {
    /// The number, which is the HTTP status.
    pub status: u32,
    /// The canonical code, if this client knows it.
    pub code: Option<ErrorCode>,
    /// The message for people.
    pub message: String,
    /// Values, such as the actual head of a conflict.
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl ServerError {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        // A newer server may send a code that this client does not know. Its status still tells.
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
    /// Whether the same request may succeed later, and a repeat cannot be carried out twice.
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

    /// The server's error code, if the server responded.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Server(error) | Self::Lost(Lost::Refused(error)) => error.code,
            Self::OutcomeUnknown(error) => error.code(),
            _ => None,
        }
    }
}
