//! Why the broker did not do it.

use std::io;
use std::path::PathBuf;

use turnkeep_types::broker::{Reason, Refusal};
use turnkeep_wire::broker::{FrameTooLong, Malformed};

/// Why a request to the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there.
    #[error("cannot reach the broker at {path}: {source}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The socket, or its directory, may be somebody else's.
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
    /// The broker refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The broker closed the connection.
    #[error("the broker closed the connection")]
    Closed,
    /// The broker did not answer in time.
    #[error("the broker did not answer in time")]
    TimedOut,
    /// The request is longer than a message may be.
    #[error(transparent)]
    TooLong(#[from] FrameTooLong),
    /// What came is not a message of the broker.
    #[error("the broker sent what is no message of it")]
    Malformed,
    /// The answer is that of another question.
    #[error("the broker answered something else than was asked")]
    Unexpected,
    /// More was said unasked than anybody took.
    #[error("the broker said more than was heard")]
    Overrun,
    /// Reading or writing failed.
    #[error("the connection to the broker failed: {0}")]
    Io(io::Error),
}

impl Error {
    /// The broker's reason, if it was the broker that refused.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused(refusal) => Some(refusal.reason),
            _ => None,
        }
    }

    /// Whether the connection is of no more use.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.reason.closes(),
            Self::TooLong(_) => false,
            _ => true,
        }
    }
}

impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<io::Error> for Error {
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
