//! Errors of a request to the broker.

use std::io;
use std::path::PathBuf;

use turnkeep_types::broker::{Reason, Refusal};
use turnkeep_wire::broker::{Malformed, MessageTooLong};

/// Why a request to the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// No process listens on the socket.
    #[error("cannot reach the broker at {path}: {source}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The socket or its directory may belong to another user.
    #[error(
        "{path} {why}, so it may not be your broker's: remove it, or set XDG_RUNTIME_DIR to a directory \
             of your own with mode 0700"
    )]
    Untrusted {
        /// The socket or its directory.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// The broker rejected the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The broker closed the connection.
    #[error("the broker closed the connection")]
    Closed,
    /// The broker did not answer in time.
    #[error("the broker did not answer in time")]
    TimedOut,
    /// The request exceeds the limit of a message.
    #[error(transparent)]
    TooLong(#[from] MessageTooLong),
    /// The received bytes are not a message.
    #[error("the broker sent bytes that are not a message")]
    Malformed,
    /// The response does not fit the request.
    #[error("the broker's answer does not fit the request")]
    Unexpected,
    /// The queue of notifications is full.
    #[error("the broker sent more notifications than the queue holds")]
    Overrun,
    /// Reading or writing failed.
    #[error("the connection to the broker failed: {0}")]
    Io(io::Error),
}

impl BrokerError {
    /// The broker's reason, if the broker rejected the request.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused(refusal) => Some(refusal.reason),
            _ => None,
        }
    }

    /// Whether the connection cannot be used again.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.reason.closes(),
            Self::TooLong(_) => false,
            _ => true,
        }
    }
}

impl From<Malformed> for BrokerError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<io::Error> for BrokerError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
