//! The rules for session names: a name must not look like another way to refer to a session.

use super::NAME_BYTES_MAX;

/// Why a text cannot be a session's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSessionName {
    /// The name has no bytes.
    #[error("is empty")]
    Empty,
    /// A table of sessions could not show the name.
    #[error("is longer than {NAME_BYTES_MAX} bytes")]
    TooLong,
    /// `NAME:3` is the third turn of a session and `@last` the latest session.
    #[error("holds `:` or begins with `@`")]
    MeansElse,
}

/// Returns an error if a name is not allowed.
pub fn check_session_name(name: &str) -> Result<(), BadSessionName> {
    match name {
        "" => Err(BadSessionName::Empty),
        _ if name.len() > NAME_BYTES_MAX => Err(BadSessionName::TooLong),
        _ if name.contains(':') || name.starts_with('@') => Err(BadSessionName::MeansElse),
        _ => Ok(()),
    }
}
