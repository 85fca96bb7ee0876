//! Profiles: which signals show a program's turns, as data.
//!
//! A [`ProfileSpec`] is what people write (the shipped ones are TOML files beside this module). A
//! [`Profile`] is a spec whose patterns compiled. It is immutable: a session keeps the one that it
//! was started with. Compiling fails on a bad pattern, on bad text rules, and on a profile without
//! any signal.

use crate::pattern::{Pattern, PatternError};
use crate::screen::TextRules;
use serde::Deserialize;
use std::time::Duration;

/// The source of a turn's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    /// The bytes between the submitted input and the prompt line.
    #[default]
    Stream,
    /// The text that is gathered from an emulated screen.
    Screen,
}

/// Patterns for the window title.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TitleSpec {
    /// Matches while the program works.
    pub busy: String,
    /// Matches while the program waits for a prompt.
    pub ready: String,
    /// Matches while the program waits for a decision.
    pub blocked: Option<String>,
}

/// Patterns for single rows of the screen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsSpec {
    /// Matches some row while the program works.
    pub busy: Option<String>,
    /// Matches some row while the program waits for a prompt.
    pub ready: String,
    /// The upper edge of the prompt's box, from side to side of the window. While such a row is
    /// visible, a `ready` row must be right below it.
    pub edge: Option<String>,
    /// Matches some row while a dialog is open.
    pub dialog: Option<String>,
    /// Whether a draft that is typed meanwhile hides the busy row, so that rows alone prove
    /// nothing.
    #[serde(default)]
    pub draft_hides_busy: bool,
    /// How long `ready` must hold when rows are the only signal.
    #[serde(default = "rows_hold")]
    pub hold_ms: u64,
}

/// The prompt of a line program: the text left of the cursor, and the terminal's modes at the
/// prompt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    /// The text left of the cursor at the prompt.
    pub cursor: String,
    /// The text left of the cursor when the program wants the rest of an input.
    pub continuation: Option<String>,
    /// Submitted lines that are commands of the program's own and make no turn …
    pub command: Option<String>,
    /// … except for these.
    pub asks: Option<String>,
    /// The tty is raw at the prompt and canonical while the program works.
    #[serde(default)]
    pub tty: bool,
    /// Bracketed paste is on at the prompt and off while the program works.
    #[serde(default)]
    pub paste: bool,
    /// Whether the program fills the row in front of its prompt with blanks, as zsh and fish do.
    #[serde(default)]
    pub fill: bool,
}

/// How a program interrupts a turn by Esc.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptSpec {
    /// How many presses of Esc it takes.
    pub escapes: u8,
    /// The row by which the program confirms it, where its status does not.
    pub row: Option<String>,
}

/// A profile as people write it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    /// Base names of the programs that get this profile by default; a `*` at the end matches
    /// anything.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Where the content comes from.
    #[serde(default)]
    pub content: ContentKind,
    /// Whether the program reports its state by OSC 7501.
    #[serde(default)]
    pub status: bool,
    /// Whether the program marks its prompts by OSC 133.
    #[serde(default)]
    pub marks: bool,
    /// Whether to find turns without rules when the program turns out to paint the whole screen.
    #[serde(default)]
    pub full_screen: bool,
    /// The window title.
    pub title: Option<TitleSpec>,
    /// The rows of the screen.
    pub rows: Option<RowsSpec>,
    /// The prompt of a line program.
    pub prompt: Option<PromptSpec>,
    /// Submitted lines that are commands of the program's own, in a screen profile: they make a
    /// turn only where the assistant answers. Tested on the typed text, or on the row of the cursor
    /// where that is unknown.
    pub command: Option<String>,
    /// The commands that never make a turn, whatever the program prints for them.
    pub no_turn: Option<String>,
    /// The line rule: a pattern that is tested on every complete line, and on the last line at
    /// rest.
    pub line: Option<String>,
    /// How long the output must rest before an unfinished line counts as a prompt.
    pub settle_ms: Option<u64>,
    /// Interruption by Esc.
    pub interrupt: Option<InterruptSpec>,
    /// Which rows are the assistant's words (`content = "screen"`); by default the shipped rules of
    /// the profile's name.
    pub text: Option<TextRules>,
}

fn rows_hold() -> u64 {
    150
}

/// The reason why a profile is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A pattern is wrong.
    #[error("profile {profile}: {field}: {source}")]
    Pattern {
        /// The profile's name.
        profile: String,
        /// The field that holds the pattern.
        field: &'static str,
        /// What is wrong.
        source: PatternError,
    },
    /// The rules of its text are wrong.
    #[error("profile {profile}: {source}")]
    Text {
        /// The profile's name.
        profile: String,
        /// What is wrong.
        source: crate::screen::RulesError,
    },
    /// No field says when the program is ready.
    #[error("profile {0}: needs at least one of status, marks, title, rows, prompt or line")]
    NoSignal(String),
}

/// Compiled patterns of the title.
#[derive(Debug, Clone)]
pub(super) struct TitleRule {
    pub(super) busy: Pattern,
    pub(super) ready: Pattern,
    pub(super) blocked: Option<Pattern>,
}

/// Compiled patterns of rows.
#[derive(Debug, Clone)]
pub(super) struct RowsRule {
    pub(super) busy: Option<Pattern>,
    pub(super) ready: Pattern,
    pub(super) edge: Option<Pattern>,
    pub(super) dialog: Option<Pattern>,
    pub(super) draft_hides_busy: bool,
    pub(super) hold: Duration,
}

/// Compiled prompt of a line program.
#[derive(Debug, Clone)]
pub(super) struct PromptRule {
    pub(super) cursor: Pattern,
    pub(super) continuation: Option<Pattern>,
    pub(super) command: Option<Pattern>,
    pub(super) asks: Option<Pattern>,
    pub(super) tty: bool,
    pub(super) paste: bool,
    pub(super) fill: bool,
}

/// Compiled interruption by Esc.
#[derive(Debug, Clone)]
pub(super) struct InterruptRule {
    pub(super) escapes: u8,
    pub(super) row: Option<Pattern>,
}

/// A profile whose patterns compiled.
#[derive(Debug, Clone)]
pub struct Profile {
    name: String,
    pub(super) content: ContentKind,
    pub(super) status: bool,
    pub(super) marks: bool,
    pub(super) full_screen: bool,
    pub(super) title: Option<TitleRule>,
    pub(super) rows: Option<RowsRule>,
    pub(super) prompt: Option<PromptRule>,
    pub(super) command: Option<Pattern>,
    pub(super) no_turn: Option<Pattern>,
    pub(super) line: Option<Pattern>,
    pub(super) settle: Duration,
    pub(super) interrupt: Option<InterruptRule>,
    pub(super) text: TextRules,
}

/// How long the output must rest before the line rule examines an unfinished line.
pub const LINE_SETTLE: Duration = Duration::from_millis(100);

/// How long it must rest where the terminal's mode confirms the prompt.
const PROMPT_SETTLE: Duration = Duration::from_millis(50);

/// The shortest time that it must rest: with none, the bytes of one moment would be examined before
/// all of them are read.
const SETTLE_MIN: Duration = Duration::from_millis(1);

impl ProfileSpec {
    /// Whether a field says when the program is ready.
    fn has_signal(&self) -> bool {
        let is_reported = self.status || self.marks || self.title.is_some();
        is_reported || self.rows.is_some() || self.prompt.is_some() || self.line.is_some()
    }

    /// How long the output must rest before an unfinished line counts as a prompt.
    fn settle(&self) -> Duration {
        let default = if self.line.is_some() {
            LINE_SETTLE
        } else {
            PROMPT_SETTLE
        };
        let settle = self.settle_ms.map_or(default, Duration::from_millis);
        settle.max(SETTLE_MIN)
    }
}

impl Profile {
    /// Compiles a profile.
    pub fn new(name: &str, spec: &ProfileSpec) -> Result<Self, ProfileError> {
        let compile = SpecCompiler(name);
        if !spec.has_signal() {
            return Err(ProfileError::NoSignal(name.to_owned()));
        }
        let profile = Self {
            name: name.to_owned(),
            content: spec.content,
            status: spec.status,
            marks: spec.marks,
            full_screen: spec.full_screen,
            title: spec
                .title
                .as_ref()
                .map(|title| compile.title_rule(title))
                .transpose()?,
            rows: spec
                .rows
                .as_ref()
                .map(|rows| compile.rows_rule(rows))
                .transpose()?,
            prompt: spec
                .prompt
                .as_ref()
                .map(|prompt| compile.prompt_rule(prompt))
                .transpose()?,
            command: compile.optional_pattern("command", spec.command.as_deref())?,
            no_turn: compile.optional_pattern("no_turn", spec.no_turn.as_deref())?,
            line: compile.optional_pattern("line", spec.line.as_deref())?,
            settle: spec.settle(),
            interrupt: spec
                .interrupt
                .as_ref()
                .map(|interrupt| compile.interrupt_rule(interrupt))
                .transpose()?,
            text: spec
                .text
                .clone()
                .or_else(|| TextRules::preset(name))
                .unwrap_or_default(),
        };
        profile.check_text()
    }

    /// Creates a profile with only the line rule, for a pattern of the user's own (`--pattern`).
    pub fn from_pattern(pattern: &str) -> Result<Self, PatternError> {
        let line = Pattern::new(pattern)?;
        Ok(Self {
            name: "pattern".to_owned(),
            content: ContentKind::Stream,
            status: false,
            marks: false,
            full_screen: false,
            title: None,
            rows: None,
            prompt: None,
            command: None,
            no_turn: None,
            line: Some(line),
            settle: LINE_SETTLE,
            interrupt: None,
            text: TextRules::default(),
        })
    }

    /// The name of the profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pattern of the prompt, for lists of sessions: of the line, the cursor or the row.
    pub fn pattern(&self) -> &str {
        let line = self
            .line
            .as_ref()
            .or(self.prompt.as_ref().map(|prompt| &prompt.cursor));
        let pattern = line.or(self.rows.as_ref().map(|rows| &rows.ready));
        pattern
            .or(self.title.as_ref().map(|title| &title.ready))
            .map_or("", Pattern::as_str)
    }

    /// The source of the turns' content.
    pub fn content(&self) -> ContentKind {
        self.content
    }

    /// Whether the profile needs an emulated screen.
    pub fn needs_screen(&self) -> bool {
        self.content == ContentKind::Screen || self.rows.is_some()
    }

    fn check_text(self) -> Result<Self, ProfileError> {
        match crate::screen::Gatherer::new(&self.text) {
            Ok(_) => Ok(self),
            Err(source) => Err(ProfileError::Text {
                profile: self.name,
                source,
            }),
        }
    }
}

/// Compiles the parts of the profile of this name.
struct SpecCompiler<'a>(&'a str);

impl SpecCompiler<'_> {
    fn pattern(&self, field: &'static str, pattern: &str) -> Result<Pattern, ProfileError> {
        Pattern::new(pattern).map_err(|source| ProfileError::Pattern {
            profile: self.0.to_owned(),
            field,
            source,
        })
    }

    fn optional_pattern(
        &self,
        field: &'static str,
        pattern: Option<&str>,
    ) -> Result<Option<Pattern>, ProfileError> {
        pattern
            .map(|pattern| self.pattern(field, pattern))
            .transpose()
    }

    fn title_rule(&self, spec: &TitleSpec) -> Result<TitleRule, ProfileError> {
        Ok(TitleRule {
            busy: self.pattern("title.busy", &spec.busy)?,
            ready: self.pattern("title.ready", &spec.ready)?,
            blocked: self.optional_pattern("title.blocked", spec.blocked.as_deref())?,
        })
    }

    fn rows_rule(&self, spec: &RowsSpec) -> Result<RowsRule, ProfileError> {
        Ok(RowsRule {
            busy: self.optional_pattern("rows.busy", spec.busy.as_deref())?,
            ready: self.pattern("rows.ready", &spec.ready)?,
            edge: self.optional_pattern("rows.edge", spec.edge.as_deref())?,
            dialog: self.optional_pattern("rows.dialog", spec.dialog.as_deref())?,
            draft_hides_busy: spec.draft_hides_busy,
            hold: Duration::from_millis(spec.hold_ms),
        })
    }

    fn prompt_rule(&self, spec: &PromptSpec) -> Result<PromptRule, ProfileError> {
        Ok(PromptRule {
            cursor: self.pattern("prompt.cursor", &spec.cursor)?,
            continuation: self
                .optional_pattern("prompt.continuation", spec.continuation.as_deref())?,
            command: self.optional_pattern("prompt.command", spec.command.as_deref())?,
            asks: self.optional_pattern("prompt.asks", spec.asks.as_deref())?,
            tty: spec.tty,
            paste: spec.paste,
            fill: spec.fill,
        })
    }

    fn interrupt_rule(&self, spec: &InterruptSpec) -> Result<InterruptRule, ProfileError> {
        let row = self.optional_pattern("interrupt.row", spec.row.as_deref())?;
        Ok(InterruptRule {
            escapes: spec.escapes,
            row,
        })
    }
}
