//! The reasons for which the broker rejects a request: one closed list.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why the broker rejects a request. Programs compare the word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word on the wire.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

reasons! {
    /// Another request came before hello. Closes the connection.
    HelloRequired = "hello_required",
    /// Hello was sent twice.
    HelloRepeated = "hello_repeated",
    /// The broker does not support the version. Closes the connection.
    VersionMismatch = "version_mismatch",
    /// A message that is not a MessagePack map with a `type` and an `id`. Closes the connection.
    Malformed = "malformed",
    /// A message over the limit. Closes the connection.
    PayloadTooLarge = "payload_too_large",
    /// No message has this type.
    UnknownType = "unknown_type",
    /// A required field is missing.
    MissingField = "missing_field",
    /// A field has the wrong kind or an invalid value.
    BadField = "bad_field",
    /// The session is registered and its wrapper is connected.
    DuplicateSession = "duplicate_session",
    /// This connection has registered another session.
    AlreadyRegistered = "already_registered",
    /// The session belongs to another connection.
    NotOwner = "not_owner",
    /// The request is reserved for the other role.
    WrongRole = "wrong_role",
    /// The session's terminal was not shared when it was started.
    NotShared = "not_shared",
    /// This connection watches another session.
    AlreadyWatching = "already_watching",
    /// No such session.
    SessionNotFound = "session_not_found",
    /// The session's wrapper has gone.
    SessionDisconnected = "session_disconnected",
    /// The session has completed no turn.
    NoTurn = "no_turn",
    /// The turn does not exist or is no longer kept.
    TurnNotFound = "turn_not_found",
    /// The relay buffer is empty.
    BufferEmpty = "buffer_empty",
    /// No sink has this name.
    UnknownSink = "unknown_sink",
    /// Not an absolute path, or not that of a regular file.
    BadPath = "bad_path",
    /// The raw bytes of the turn were not kept.
    NoRaw = "no_raw",
    /// The content contains the end sequence of a bracketed paste and was to be pasted as one.
    UnsafeContent = "unsafe_content",
    /// The program shows a dialog, and the request excludes that.
    Blocked = "blocked",
    /// A queue is full; retry later.
    Busy = "busy",
    /// There is no clipboard.
    NoClipboard = "no_clipboard",
    /// There is no reachable turn store.
    NoStore = "no_store",
    /// There is no runtime.
    NoRuntime = "no_runtime",
    /// The sink failed.
    SinkFailed = "sink_failed",
    /// The process belongs to another user.
    NotPermitted = "not_permitted",
    /// An internal error, or a reason that this version does not know.
    Internal = "internal",
}

impl Reason {
    /// The reason with this word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.word() == word)
    }

    /// Whether the broker closes the connection after this reason.
    pub const fn closes(self) -> bool {
        matches!(
            self,
            Self::HelloRequired
                | Self::VersionMismatch
                | Self::Malformed
                | Self::PayloadTooLarge
                | Self::NotPermitted
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A rejection: the reason for programs and an optional text for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default())]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// What happened, for people.
    pub detail: Option<String>,
}

impl Refusal {
    /// A rejection with a text for people.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: Some(detail.into()),
        }
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            detail: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_word(reason.word()), Some(*reason));
        }
        assert_eq!(Reason::from_word("no_such_word"), None);
    }
}
