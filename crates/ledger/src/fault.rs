//! Faults: why the ledger rejects a request, with a stable code, a path and advice.
//!
//! Codes are never renamed, only added. The edge decides which status a code has on its wire.

use std::borrow::Cow;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The stable codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code's text.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    /// The bytes are not JSON, have a duplicate key, or are nested too deeply.
    JsonInvalid = "JSON_INVALID",
    /// A text has a NUL or is not UTF-8.
    TextInvalid = "TEXT_INVALID",
    /// An envelope does not have the required shape.
    EnvelopeInvalid = "ENVELOPE_INVALID",
    /// A request id is missing or is not 1 to 200 characters without control characters.
    RequestIdInvalid = "REQUEST_ID_INVALID",
    /// The invoker claims to be the operator or a human.
    InvokerForbidden = "INVOKER_FORBIDDEN",
    /// Only the operator may speak as the operator.
    OperatorForbidden = "OPERATOR_FORBIDDEN",
    /// A text is not a time.
    TimeFormat = "TIME_FORMAT",
    /// A local time does not exist or exists twice.
    TimeAmbiguous = "TIME_AMBIGUOUS",
    /// A declared time is before the world's time.
    TimeRegression = "TIME_REGRESSION",
    /// The id was used for another request.
    RequestIdReused = "REQUEST_ID_REUSED",
    /// Another caller used the id.
    RequestIdForeign = "REQUEST_ID_FOREIGN",
    /// A request with this id is still running.
    InProgress = "IN_PROGRESS",
    /// A visible entry was written after the expected cursor.
    HeadMoved = "HEAD_MOVED",
    /// Too many requests wait for the writer, or there were too many calls.
    TooManyRequests = "TOO_MANY_REQUESTS",
    /// A cursor is malformed, or of another world or view.
    BadCursor = "BAD_CURSOR",
    /// A bundle does not have the required shape.
    Shape = "SHAPE",
    /// A request id is not the beat's.
    RequestMismatch = "REQUEST_MISMATCH",
    /// The actor is not the caller.
    ActorMismatch = "ACTOR_MISMATCH",
    /// `wrote` and the number of entries disagree.
    WroteMismatch = "WROTE_MISMATCH",
    /// The bundle is too large.
    TooLarge = "TOO_LARGE",
    /// An id is given that only the commit may give.
    IdPreset = "ID_PRESET",
    /// A field is unknown.
    UnknownField = "UNKNOWN_FIELD",
    /// The world does not know the author.
    AuthorUnknown = "AUTHOR_UNKNOWN",
    /// The writer may not write in the author's name.
    AuthorForbidden = "AUTHOR_FORBIDDEN",
    /// The channel does not fit the author.
    ChannelInvalid = "CHANNEL_INVALID",
    /// The addressees are missing, too many, duplicate or unknown.
    VisibilityInvalid = "VISIBILITY_INVALID",
    /// A time does not fit the world's time or the other entries.
    TimeInconsistent = "TIME_INCONSISTENT",
    /// A text is only white space.
    TextEmpty = "TEXT_EMPTY",
    /// A text is too long.
    TextTooLarge = "TEXT_TOO_LARGE",
    /// A pocket item does not fit its entry.
    PocketInvalid = "POCKET_INVALID",
    /// Cited entries are missing, unknown or hidden.
    ProvenanceInvalid = "PROVENANCE_INVALID",
    /// A tool request does not have the required shape.
    ToolRequestInvalid = "TOOL_REQUEST_INVALID",
    /// The tool is unknown.
    UnknownTool = "UNKNOWN_TOOL",
    /// The caller may not use the view.
    ViewForbidden = "VIEW_FORBIDDEN",
    /// The limit is not from 1 to 200.
    BadLimit = "BAD_LIMIT",
    /// The window ends before it begins.
    BadWindow = "BAD_WINDOW",
    /// The tool request id was used for another request.
    DuplicateToolId = "DUPLICATE_TOOL_ID",
    /// The beat made too many tool calls.
    LoopLimit = "LOOP_LIMIT",
    /// A pack does not match its sources.
    PackInvalid = "PACK_INVALID",
    /// A world's configuration is not valid.
    ConfigInvalid = "CONFIG_INVALID",
    /// The name is taken.
    NameTaken = "NAME_TAKEN",
    /// The object does not exist, or not for this reader.
    NotFound = "NOT_FOUND",
    /// The caller may not do this.
    Forbidden = "FORBIDDEN",
    /// The world's records do not fit together.
    Corrupt = "CORRUPT",
}

impl Code {
    /// Describes why a bundle was rejected with this code, for people. The recorded reason stays
    /// `CODE: path`, because a repeated request must get the same bytes.
    pub fn sentence(self) -> Option<&'static str> {
        Some(match self {
            Self::Shape => "the bundle does not have the required shape",
            Self::RequestMismatch => {
                "the bundle carries another request id than the request that it came with"
            }
            Self::ActorMismatch => "the bundle was proposed in another name than the caller's",
            Self::WroteMismatch => "`wrote` does not agree with the entries",
            Self::TooLarge => "the bundle is larger than a bundle may be",
            Self::IdPreset => "an id was given that only the commit may give",
            Self::UnknownField => "there is a field that the ledger does not know",
            Self::AuthorUnknown => "the author is not a person of this world",
            Self::AuthorForbidden => "the caller may not write in that author's name",
            Self::ChannelInvalid => "the channel does not fit the author",
            Self::VisibilityInvalid => {
                "the audience names somebody who is not a person of this world, or does not fit the scope"
            }
            Self::TimeFormat => "the time is not written like 2026-11-15T09:00:00Z",
            Self::TimeInconsistent => {
                "the time is before the world's time, before the entry above it, or too far ahead"
            }
            Self::TextEmpty => "the text holds nothing but white space",
            Self::TextTooLarge => "the text is longer than an entry may be",
            Self::PocketInvalid => "a calendar item or a message does not fit its entry",
            Self::ProvenanceInvalid => "an entry is cited that does not exist for this writer",
            _ => return None,
        })
    }
}

/// Turns the reason of a rejected bundle, `CODE: path`, into a sentence with the reason behind it.
pub fn explain_rejection(reason: &str) -> String {
    let word = reason.split(':').next().unwrap_or(reason);
    let code = Code::ALL.iter().find(|code| code.word() == word);
    match code.and_then(|code| code.sentence()) {
        Some(sentence) => format!("{sentence} ({reason})"),
        None => reason.to_owned(),
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A rejected request: the code, the place and the advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {path}: {message}")]
pub struct Fault {
    /// The stable code.
    pub code: Code,
    /// The JSON path of the fault, such as `entries[2].text`; empty for the whole document.
    pub path: String,
    /// What is wrong and what to do, for a person.
    pub message: Cow<'static, str>,
}

impl Fault {
    /// Makes a fault.
    pub fn new(code: Code, path: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            path: path.into(),
            message: message.into(),
        }
    }

    /// The reason in a rejected bundle: code and path.
    pub fn reason(&self) -> String {
        format!("{}: {}", self.code, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_rejection_is_a_sentence_with_the_code_behind_it() {
        assert_eq!(
            explain_rejection("TEXT_EMPTY: entries[0].text"),
            "the text holds nothing but white space (TEXT_EMPTY: entries[0].text)"
        );
        assert_eq!(explain_rejection("LATER_CODE: x"), "LATER_CODE: x");
    }

    #[test]
    fn no_two_codes_share_a_word() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.word()).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
