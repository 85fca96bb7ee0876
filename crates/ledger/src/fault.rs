//! Why the ledger says no: a stable word, where in the input, and what to do about it.
//!
//! Words are never renamed, only added. What status a word has on a wire is the edge's business.

use std::borrow::Cow;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The stable words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every word there is.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    /// The bytes are no JSON, hold a key twice, or are nested too deeply.
    JsonInvalid = "JSON_INVALID",
    /// A text holds NUL or is no UTF-8.
    TextInvalid = "TEXT_INVALID",
    /// An envelope is not of the shape.
    EnvelopeInvalid = "ENVELOPE_INVALID",
    /// A request id is missing or not 1..200 characters without control characters.
    RequestIdInvalid = "REQUEST_ID_INVALID",
    /// The invoker claims to be the operator or a human.
    InvokerForbidden = "INVOKER_FORBIDDEN",
    /// Only the operator speaks as the operator.
    OperatorForbidden = "OPERATOR_FORBIDDEN",
    /// A time that is none.
    TimeFormat = "TIME_FORMAT",
    /// A local time that does not exist or exists twice.
    TimeAmbiguous = "TIME_AMBIGUOUS",
    /// A declared time before the world's.
    TimeRegression = "TIME_REGRESSION",
    /// The id was used for something else.
    RequestIdReused = "REQUEST_ID_REUSED",
    /// The id was used by somebody else.
    RequestIdForeign = "REQUEST_ID_FOREIGN",
    /// A request with this id still runs.
    InProgress = "IN_PROGRESS",
    /// Something visible was written after the expected cursor.
    HeadMoved = "HEAD_MOVED",
    /// Too many wait for the writer, or too many calls.
    TooManyRequests = "TOO_MANY_REQUESTS",
    /// A cursor of another world or view, or none at all.
    BadCursor = "BAD_CURSOR",
    /// A bundle is not of the shape.
    Shape = "SHAPE",
    /// A request id that is not the beat's.
    RequestMismatch = "REQUEST_MISMATCH",
    /// An actor that the caller is not.
    ActorMismatch = "ACTOR_MISMATCH",
    /// `wrote` and the number of entries disagree.
    WroteMismatch = "WROTE_MISMATCH",
    /// More than a bundle may hold.
    TooLarge = "TOO_LARGE",
    /// An id that only a commit gives.
    IdPreset = "ID_PRESET",
    /// A field that is not in the shape.
    UnknownField = "UNKNOWN_FIELD",
    /// An author whom the world does not know.
    AuthorUnknown = "AUTHOR_UNKNOWN",
    /// An author in whose name the writer may not write.
    AuthorForbidden = "AUTHOR_FORBIDDEN",
    /// A channel that does not fit the author.
    ChannelInvalid = "CHANNEL_INVALID",
    /// A visibility that names nobody, too many, somebody twice or somebody unknown.
    VisibilityInvalid = "VISIBILITY_INVALID",
    /// A time that does not fit the world's or the bundle's.
    TimeInconsistent = "TIME_INCONSISTENT",
    /// A text without a visible character.
    TextEmpty = "TEXT_EMPTY",
    /// A text that is too long.
    TextTooLarge = "TEXT_TOO_LARGE",
    /// A pocket item that does not fit its entry.
    PocketInvalid = "POCKET_INVALID",
    /// Cited entries that are unknown, invisible, or none.
    ProvenanceInvalid = "PROVENANCE_INVALID",
    /// A tool request is not of the shape.
    ToolRequestInvalid = "TOOL_REQUEST_INVALID",
    /// No tool of this name.
    UnknownTool = "UNKNOWN_TOOL",
    /// A view that the caller may not use.
    ViewForbidden = "VIEW_FORBIDDEN",
    /// A limit outside 1..200.
    BadLimit = "BAD_LIMIT",
    /// A window that ends before it begins.
    BadWindow = "BAD_WINDOW",
    /// A tool request id used for two requests.
    DuplicateToolId = "DUPLICATE_TOOL_ID",
    /// More tool calls than a beat may make.
    LoopLimit = "LOOP_LIMIT",
    /// A pack that is not what it says.
    PackInvalid = "PACK_INVALID",
    /// A world's configuration is not of the shape.
    ConfigInvalid = "CONFIG_INVALID",
    /// The name is taken.
    NameTaken = "NAME_TAKEN",
    /// No such thing, or not for this reader.
    NotFound = "NOT_FOUND",
    /// The caller may not do this.
    Forbidden = "FORBIDDEN",
    /// What the world recorded does not fit together.
    Corrupt = "CORRUPT",
}

impl Code {
    /// What is wrong with a bundle that was rejected with this code, as a sentence for people. The
    /// reason in the rejected form stays `CODE: path`, since what was answered once is answered
    /// again to the byte.
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

/// The reason of a rejected bundle, `CODE: path`, as a sentence with the code behind it.
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

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {path}: {message}")]
pub struct Fault {
    /// The stable word.
    pub code: Code,
    /// The JSON path of the fault, such as `entries[2].text`; empty for the whole.
    pub path: String,
    /// For a person: what is wrong and what to do.
    pub message: Cow<'static, str>,
}

impl Fault {
    /// A refusal.
    pub fn new(code: Code, path: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            path: path.into(),
            message: message.into(),
        }
    }

    /// What a rejected bundle says: the word and where.
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
