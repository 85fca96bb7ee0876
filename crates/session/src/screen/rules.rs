//! The `text` part of a profile: which rows of the transcript are the assistant's words, as data.

use serde::Deserialize;

/// Which rows of a program's screen are what the assistant said. All patterns are regular
/// expressions, matched against single rows without trailing blanks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextRules {}

/// Why text rules are refused.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A pattern does not compile.
    #[error("{field}: {source}")]
    Pattern {
        /// The field of the rules that holds the pattern.
        field: &'static str,
        /// What the regex compiler says.
        source: Box<regex::Error>,
    },
}
