//! Gathering: the rows of a turn, each once and in order, from frame to frame.

use super::{RulesError, Screen, TextRules};

/// How many bytes of rows a turn may gather; what comes later is left out and said so.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What the assistant said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The assistant's messages, separated by one blank line.
    pub text: String,
    /// Whether rows are missing.
    pub incomplete: bool,
}

/// Gathers the text of a turn from the frames of a screen.
#[derive(Debug)]
pub struct Gatherer {}

impl Gatherer {
    /// A gatherer with a profile's rules.
    pub fn new(_rules: &TextRules) -> Result<Self, RulesError> {
        Ok(Self {})
    }

    /// Begins a turn: what is on the screen now belongs to the past. Call it at the submit, before
    /// the output that follows it.
    pub fn begin(&mut self, _screen: &Screen) {}

    /// Takes a whole frame. Call it from [`Screen::feed`], also between turns (it is cheap then).
    pub fn frame(&mut self, _screen: &Screen) {}

    /// The bytes had a gap (the reader lagged and dropped some): the turn is incomplete.
    pub fn gap(&mut self) {}

    /// What was said since [`Gatherer::begin`].
    pub fn text(&self) -> Gathered {
        Gathered { text: String::new(), incomplete: false }
    }
}
