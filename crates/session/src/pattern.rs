//! Patterns: regular expressions that are matched against one line or row at a time.
//!
//! A pattern that holds a newline could never match and is refused when it is configured, with a
//! diagnostic that shows where; so is one that does not compile.

use regex::Regex;

/// A pattern that can be matched against a line.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if let Some(at) = newline(pattern) {
            return Err(PatternError::Newline { shown: shown(pattern, at), column: column(pattern, at) });
        }
        Regex::new(pattern).map(Self).map_err(|source| PatternError::Syntax { source: Box::new(source) })
    }

    /// The expression itself.
    pub(crate) fn into_regex(self) -> Regex {
        self.0
    }

    /// Whether it matches anywhere in the line.
    pub fn matches(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// Where the first match ends in the line.
    pub(crate) fn match_end(&self, line: &str) -> Option<usize> {
        self.0.find(line).map(|found| found.end())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Why a pattern is refused.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It holds a newline, literally or as an escape outside of a character class.
    #[error("a pattern is matched line by line and must not hold a newline (column {column})\n{shown}")]
    Newline {
        /// The pattern and a mark below the newline.
        shown: String,
        /// Where the newline is, in characters from 1.
        column: usize,
    },
    /// It does not compile; the message shows the pattern and the place.
    #[error("{source}")]
    Syntax {
        /// What the compiler says.
        source: Box<regex::Error>,
    },
}

/// Where a newline is: a literal one anywhere, or the escape outside of a class (`[^\n]` is fine).
fn newline(pattern: &str) -> Option<usize> {
    let mut in_class = false;
    let mut escaped = false;
    for (at, c) in pattern.char_indices() {
        match (escaped, c) {
            (_, '\n' | '\r') => return Some(at),
            (true, 'n' | 'r') if !in_class => return Some(at - 1),
            (true, 'x' | 'u' | 'U') if !in_class && is_newline_code(pattern.get(at + 1..)) => {
                return Some(at - 1);
            }
            (true, _) => escaped = false,
            (false, '\\') => escaped = true,
            (false, '[') => in_class = true,
            (false, ']') => in_class = false,
            (false, _) => {}
        }
    }
    None
}

/// Whether the digits of a coded character, with or without braces, are those of a newline.
fn is_newline_code(rest: Option<&str>) -> bool {
    let rest = rest.unwrap_or_default();
    let digits = match rest.strip_prefix('{') {
        Some(braced) => braced.split('}').next().unwrap_or_default(),
        None => rest.get(..2).filter(|digits| *digits != "00").or(rest.get(..4)).unwrap_or_default(),
    };
    matches!(u32::from_str_radix(digits, 16), Ok(0x0a | 0x0d))
}

fn column(pattern: &str, at: usize) -> usize {
    pattern.get(..at).map_or(0, |before| before.chars().count()) + 1
}

fn shown(pattern: &str, at: usize) -> String {
    let before = pattern.get(..at).unwrap_or_default();
    let line: String = pattern.chars().map(|c| if c.is_control() { '⏎' } else { c }).collect();
    format!("    {line}\n    {}^", " ".repeat(before.chars().count()))
}
