//! The `text` part of a profile: which rows of a screen are the assistant's words, as data.
//!
//! A screen is read in two steps. *Transcript*: the rows above the program's own input area (`end`,
//! `end_last`), without a pinned copy of the prompt. *Blocks*: in the rows of a turn, a row may
//! begin the user's prompt (`user`), a message (`message`) or something else (`chrome`). A row that
//! begins nothing continues the block above it, and a `drop` row is left out anywhere. A program
//! whose messages carry no mark has an empty `message`: every row that no other mark claims is then
//! a message, and a chrome block ends at the next blank row.
//!
//! Only compiling can fail; the error names the field that holds the pattern.

use super::row::{Colour, Row};
use crate::pattern::{Pattern, PatternError};
use regex::Regex;
use serde::Deserialize;

/// Which rows of a program's screen the assistant said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextRules {
    /// The transcript ends above the first row that matches one of these.
    pub end: Vec<Mark>,
    /// The transcript ends above the last row that matches one of these.
    pub end_last: Vec<Mark>,
    /// The input row, right below the row that matches `end`. A frame without it shows a dialog or
    /// another view, and rows that it lacks were not erased.
    pub input: Vec<Mark>,
    /// The transcript ends above the last row that matches one of these, if no row below it matches
    /// `end`; else the row is the assistant's.
    pub end_alone: Vec<Mark>,
    /// Rows right above the end of the transcript that the program paints over it.
    pub floats: Vec<Mark>,
    /// The transcript is as wide as the match of this pattern on the last row that has one.
    /// Everything to the right is a column of its own.
    pub edge: Option<String>,
    /// The characters of a scroll bar in the last column of the alternate screen.
    pub scrollbar: String,
    /// Rows at the top of the transcript that are a pinned copy of the prompt.
    pub pinned: Vec<Mark>,
    /// Rows that are left out anywhere.
    pub drop: Vec<Mark>,
    /// Rows that begin the user's prompt.
    pub user: Vec<Mark>,
    /// Rows that begin tool calls, dialogs and notices.
    pub chrome: Vec<Mark>,
    /// Parts of a message that are not addressed to the user.
    pub hidden: Vec<Hidden>,
    /// Rows that begin a message.
    pub message: Vec<Mark>,
    /// Rows of a message whose words are still to be painted.
    pub unfinished: Vec<Mark>,
    /// How many leading blanks the rows of a message carry, where messages have no mark.
    pub indent: usize,
    /// A gutter of line numbers beside code: group 1 of the pattern is the number, and the whole
    /// match is removed. Only numbers that count from 1 are a gutter.
    pub gutter: Vec<Mark>,
    /// Rows of a message whose text is replaced.
    pub rewrite: Vec<Rewrite>,
    /// Where a turn begins.
    pub begin: Begin,
    /// Whether the program prints its last rows again when it is interrupted.
    pub repeats: bool,
}

/// Where the rows of a turn begin, seen from the submit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// Below the transcript: the program moves the prompt there itself.
    #[default]
    Transcript,
    /// Below everything on the screen: the input line stays where it was typed.
    Screen,
}

/// A row with a meaning: a pattern and, where that is not enough, how the row looks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "MarkForm")]
pub struct Mark {
    /// A pattern for the row without trailing blanks. In `message`, the match is a prefix and is
    /// removed.
    pub row: String,
    /// How many leading blanks the rows below carry (`message` only).
    pub indent: usize,
    /// How the row must look.
    pub look: Look,
}

/// How a row must look; a missing field does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Look {
    /// The first printed cell is dim.
    pub dim: Option<bool>,
    /// The first printed cell is bold.
    pub bold: Option<bool>,
    /// The second word is bold.
    pub word_bold: Option<bool>,
    /// The second word is dim.
    pub word_dim: Option<bool>,
    /// The first printed cell has the foreground of the text in front of the user's prompt.
    pub quiet: Option<bool>,
    /// The first printed cell has a foreground of its own, not the terminal's.
    pub coloured: Option<bool>,
    /// The first printed cell is grey, neither black nor white.
    pub grey: Option<bool>,
    /// The first printed cell has a background of its own, not the terminal's.
    pub shaded: Option<bool>,
    /// The colours of the first printed cell are reversed.
    pub inverse: Option<bool>,
    /// The cursor is on the row (`end` and `end_last` only).
    pub cursor: Option<bool>,
    /// The row reaches the right edge of the window (`floats` only).
    pub right: Option<bool>,
    /// The first two words have one foreground, which is not the terminal's.
    pub uniform: Option<bool>,
    /// The row above is blank (`drop`, `user`, `chrome` and `message` only).
    pub apart: Option<bool>,
}

/// A part of a message that is left out, from one row to another, both included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hidden {
    /// The first row.
    pub from: Mark,
    /// The last row.
    pub to: Mark,
}

/// A row of a message whose text is replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewrite {
    /// The row.
    pub row: Mark,
    /// The replacement of the match; `$1` is group 1.
    pub with: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MarkForm {
    Pattern(String),
    Full(FullMark),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullMark {
    row: String,
    #[serde(default)]
    indent: usize,
    #[serde(default)]
    look: Look,
}

impl From<MarkForm> for Mark {
    fn from(form: MarkForm) -> Self {
        match form {
            MarkForm::Pattern(row) => Self {
                row,
                ..Self::default()
            },
            MarkForm::Full(full) => Self {
                row: full.row,
                indent: full.indent,
                look: full.look,
            },
        }
    }
}

/// The reason why text rules are rejected.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A pattern is wrong.
    #[error("text.{field}: {source}")]
    Pattern {
        /// The field of the rules that holds the pattern.
        field: &'static str,
        /// What is wrong, with the place.
        source: PatternError,
    },
}

/// The circumstances of a row that marks may depend on, beside its own style.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent circumstance of a row"
)]
pub(super) struct RowContext {
    /// The foreground in front of the user's prompt, once seen.
    pub(super) prompt_colour: Option<Colour>,
    /// Whether the cursor is on the row.
    pub(super) cursor: bool,
    /// Whether the row reaches the right edge of the window.
    pub(super) right: bool,
    /// Whether the row above it is blank.
    pub(super) apart: bool,
    /// Whether the program shows no colours at all, so that marks must not require any.
    pub(super) plain: bool,
}

/// A mark, compiled.
#[derive(Debug)]
pub(super) struct CompiledMark {
    pub(super) pattern: Regex,
    pub(super) indent: usize,
    look: Look,
}

impl CompiledMark {
    pub(super) fn matches(&self, row: &Row, context: RowContext) -> bool {
        self.look.matches_row(row, context) && self.pattern.is_match(&row.text)
    }
}

impl Look {
    fn matches_row(self, row: &Row, context: RowContext) -> bool {
        let wants = |want: Option<bool>, has: bool| want.is_none_or(|want| want == has);
        let foreground = row.lead.foreground;
        wants(self.dim, row.lead.dim)
            && wants(self.bold, row.lead.bold)
            && wants(self.word_bold, row.second_word.bold)
            && wants(self.word_dim, row.second_word.dim)
            && (context.plain || wants(self.coloured, foreground != Colour::Default))
            && wants(self.grey, foreground.is_grey())
            && (context.plain || wants(self.shaded, row.lead.background != Colour::Default))
            && wants(self.inverse, row.lead.inverse)
            && wants(self.cursor, context.cursor)
            && wants(self.right, context.right)
            && wants(self.apart, context.apart)
            && wants(
                self.uniform,
                foreground != Colour::Default && row.second_word.foreground == foreground,
            )
            && wants(
                self.quiet,
                foreground != Colour::Default && context.prompt_colour == Some(foreground),
            )
    }
}

/// A hidden part of a message, compiled.
#[derive(Debug)]
pub(super) struct CompiledHidden {
    pub(super) from: CompiledMark,
    pub(super) to: CompiledMark,
}

/// A rewritten row, compiled.
#[derive(Debug)]
pub(super) struct CompiledRewrite {
    pub(super) row: CompiledMark,
    pub(super) with: String,
}

/// All rules, compiled.
#[derive(Debug)]
pub(super) struct CompiledRules {
    pub(super) end: Vec<CompiledMark>,
    pub(super) end_last: Vec<CompiledMark>,
    pub(super) end_alone: Vec<CompiledMark>,
    pub(super) input: Vec<CompiledMark>,
    pub(super) floats: Vec<CompiledMark>,
    pub(super) edge: Option<Regex>,
    pub(super) scrollbar: String,
    pub(super) pinned: Vec<CompiledMark>,
    pub(super) drop: Vec<CompiledMark>,
    pub(super) user: Vec<CompiledMark>,
    pub(super) chrome: Vec<CompiledMark>,
    pub(super) hidden: Vec<CompiledHidden>,
    pub(super) message: Vec<CompiledMark>,
    pub(super) unfinished: Vec<CompiledMark>,
    pub(super) rewrite: Vec<CompiledRewrite>,
    pub(super) gutter: Vec<CompiledMark>,
    pub(super) indent: usize,
    pub(super) begin: Begin,
    pub(super) repeats: bool,
}

impl CompiledRules {
    pub(super) fn new(rules: &TextRules) -> Result<Self, RulesError> {
        let edge = rules.edge.as_deref();
        Ok(Self {
            end: compile_marks("end", &rules.end)?,
            end_last: compile_marks("end_last", &rules.end_last)?,
            input: compile_marks("input", &rules.input)?,
            end_alone: compile_marks("end_alone", &rules.end_alone)?,
            floats: compile_marks("floats", &rules.floats)?,
            edge: edge.map(|edge| compile_regex("edge", edge)).transpose()?,
            scrollbar: rules.scrollbar.clone(),
            hidden: rules
                .hidden
                .iter()
                .map(compile_hidden)
                .collect::<Result<_, _>>()?,
            pinned: compile_marks("pinned", &rules.pinned)?,
            drop: compile_marks("drop", &rules.drop)?,
            user: compile_marks("user", &rules.user)?,
            chrome: compile_marks("chrome", &rules.chrome)?,
            message: compile_marks("message", &rules.message)?,
            unfinished: compile_marks("unfinished", &rules.unfinished)?,
            rewrite: rules
                .rewrite
                .iter()
                .map(compile_rewrite)
                .collect::<Result<_, _>>()?,
            gutter: compile_marks("gutter", &rules.gutter)?,
            indent: rules.indent,
            begin: rules.begin,
            repeats: rules.repeats,
        })
    }
}

fn compile_hidden(part: &Hidden) -> Result<CompiledHidden, RulesError> {
    Ok(CompiledHidden {
        from: compile_mark("hidden", &part.from)?,
        to: compile_mark("hidden", &part.to)?,
    })
}

fn compile_rewrite(rule: &Rewrite) -> Result<CompiledRewrite, RulesError> {
    Ok(CompiledRewrite {
        row: compile_mark("rewrite", &rule.row)?,
        with: rule.with.clone(),
    })
}

fn compile_marks(field: &'static str, marks: &[Mark]) -> Result<Vec<CompiledMark>, RulesError> {
    marks.iter().map(|mark| compile_mark(field, mark)).collect()
}

fn compile_mark(field: &'static str, mark: &Mark) -> Result<CompiledMark, RulesError> {
    Ok(CompiledMark {
        pattern: compile_regex(field, &mark.row)?,
        indent: mark.indent,
        look: mark.look,
    })
}

fn compile_regex(field: &'static str, pattern: &str) -> Result<Regex, RulesError> {
    Pattern::new(pattern)
        .map(Pattern::into_regex)
        .map_err(|source| RulesError::Pattern { field, source })
}
