//! What a person may call a session: nothing that would name something else where a session is
//! named.

use super::NAME_BYTES_MAX;

/// Why a text cannot be a session's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSessionName {
    /// There is nothing to name it by.
    #[error("is empty")]
    Empty,
    /// A table of sessions could not show it.
    #[error("is longer than {NAME_BYTES_MAX} bytes")]
    TooLong,
    /// `NAME:3` is the third turn of a session and `@last` the latest session.
    #[error("holds `:` or begins with `@`")]
    MeansElse,
}

/// Refuses a name by which the session could not be called.
pub fn check_session_name(name: &str) -> Result<(), BadSessionName> {
    match name {
        "" => Err(BadSessionName::Empty),
        _ if name.len() > NAME_BYTES_MAX => Err(BadSessionName::TooLong),
        _ if name.contains(':') || name.starts_with('@') => Err(BadSessionName::MeansElse),
        _ => Ok(()),
    }
}
