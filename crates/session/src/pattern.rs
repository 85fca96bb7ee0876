//! Patterns: regular expressions that match one line or row at a time.
//!
//! A pattern that contains a newline could never match, so it is rejected when it is configured,
//! with a message that shows the position. So is one that does not compile.

use regex::Regex;
use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Class, HirKind};

/// A regular expression for one line.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if let Some(at) = find_newline(pattern) {
            return Err(PatternError::Newline {
                shown: show_position(pattern, at),
                column: column_of(pattern, at),
            });
        }
        Regex::new(pattern)
            .map(Self)
            .map_err(|source| PatternError::Syntax {
                source: Box::new(source),
            })
    }

    pub(crate) fn into_regex(self) -> Regex {
        self.0
    }

    /// Whether the pattern matches anywhere in the line.
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

/// Whether an optional pattern is present and matches the line.
pub(crate) fn matches_optional(pattern: Option<&Pattern>, line: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.matches(line))
}

/// The reason why a pattern is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The pattern contains a newline: literally, as an escape, or as a class that holds nothing
    /// else.
    #[error(
        "a pattern is matched line by line and must not hold a newline (column {column})\n{shown}"
    )]
    Newline {
        /// The pattern with a mark below the newline.
        shown: String,
        /// The position of the newline, in characters from 1.
        column: usize,
    },
    /// The pattern does not compile; the message shows the pattern and the position.
    #[error("{source}")]
    Syntax {
        /// The compiler's error.
        source: Box<regex::Error>,
    },
}

/// The index of a newline: a literal one anywhere, an escape that means one, or a class that holds
/// nothing else (`[^\n]` and `\s` are fine).
fn find_newline(pattern: &str) -> Option<usize> {
    let literal = pattern.find(['\n', '\r']);
    let parsed = || ast::parse::Parser::new().parse(pattern).ok();
    literal.or_else(|| {
        ast::visit(
            &parsed()?,
            NewlineSearch {
                pattern,
                found: None,
            },
        )
        .ok()
        .flatten()
    })
}

/// Searches a parsed pattern for the first newline.
struct NewlineSearch<'a> {
    pattern: &'a str,
    found: Option<usize>,
}

impl ast::Visitor for NewlineSearch<'_> {
    type Output = Option<usize>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, part: &Ast) -> Result<(), Self::Err> {
        let is_newline = match part {
            Ast::Literal(literal) => is_end_of_line(literal.c),
            Ast::ClassBracketed(_) => self.holds_only_newlines(part),
            _ => false,
        };
        if is_newline {
            self.found.get_or_insert(part.span().start.offset);
        }
        Ok(())
    }
}

impl NewlineSearch<'_> {
    fn holds_only_newlines(&self, class: &Ast) -> bool {
        let Ok(meaning) = Translator::new().translate(self.pattern, class) else {
            return false;
        };
        match meaning.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                class
                    .ranges()
                    .iter()
                    .all(|range| is_end_of_line(range.start()) && is_end_of_line(range.end()))
                    && !class.ranges().is_empty()
            }
            HirKind::Literal(literal) => literal
                .0
                .iter()
                .all(|byte| is_end_of_line(char::from(*byte))),
            _ => false,
        }
    }
}

fn is_end_of_line(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

fn column_of(pattern: &str, at: usize) -> usize {
    pattern.get(..at).map_or(0, |before| before.chars().count()) + 1
}

fn show_position(pattern: &str, at: usize) -> String {
    let before = pattern.get(..at).unwrap_or_default();
    let line: String = pattern
        .chars()
        .map(|c| if c.is_control() { '⏎' } else { c })
        .collect();
    format!("    {line}\n    {}^", " ".repeat(before.chars().count()))
}
