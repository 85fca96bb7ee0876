//! Compares the rows around the input area with those of an idle program.
//!
//! A dialog may look like the input area, but it has another footer. And nearly every agent shows
//! beside its spinner which key stops it (`esc to interrupt`, `ctrl+c to cancel`): where an idle
//! screen shows no such hint, a screen that does is at work, even when nothing on it moves.

use crate::screen::Row;
use regex::Regex;
use std::collections::HashSet;
use std::sync::OnceLock;

/// The shortest word that counts, in characters.
const WORD_CHARS_MIN: usize = 3;

/// One of this many idle words must be there again. Hints come and go, and a dialog has hardly any
/// of them.
const WORDS_SHARE: usize = 4;

/// How many rows above the input area may show which key stops the program.
const HINT_ROWS: usize = 4;

/// The rows near an idle input area.
#[derive(Debug, Default)]
pub(super) struct Footer {
    /// The words below the area.
    below: HashSet<String>,
    /// Whether the idle screen itself shows a key that stops something.
    hints: bool,
}

/// The first and the last row of the input area.
#[derive(Debug, Clone, Copy)]
pub(super) struct AreaRows {
    pub(super) top: usize,
    pub(super) row: usize,
}

impl Footer {
    /// Learns the rows near an idle input area.
    pub(super) fn learn(rows: &[Row], area: AreaRows) -> Self {
        Self {
            below: words_below(rows, area),
            hints: shows_hint(rows, area),
        }
    }

    /// Whether enough of the idle words are below the area again.
    pub(super) fn is_idle(&self, rows: &[Row], area: AreaRows) -> bool {
        let now = words_below(rows, area);
        let known = self.below.intersection(&now).count();
        known * WORDS_SHARE >= self.below.len()
    }

    /// Whether the screen shows which key stops the program, and did not while it was idle.
    pub(super) fn says_busy(&self, rows: &[Row], area: AreaRows) -> bool {
        !self.hints && shows_hint(rows, area)
    }
}

fn words_below(rows: &[Row], area: AreaRows) -> HashSet<String> {
    let below = rows.get(area.row + 1..).unwrap_or_default();
    let words = below
        .iter()
        .flat_map(|row| row.text.split(|c: char| !c.is_alphabetic()));
    words
        .filter(|word| word.chars().count() >= WORD_CHARS_MIN)
        .map(str::to_owned)
        .collect()
}

fn shows_hint(rows: &[Row], area: AreaRows) -> bool {
    let above = rows
        .get(area.top.saturating_sub(HINT_ROWS)..area.top)
        .unwrap_or_default();
    let below = rows.get(area.row + 1..).unwrap_or_default();
    let Some(pattern) = stop_hint_pattern() else {
        return false;
    };
    above
        .iter()
        .chain(below)
        .any(|row| pattern.is_match(&row.text))
}

/// A pattern for a key followed by a word for stopping.
fn stop_hint_pattern() -> Option<&'static Regex> {
    static HINT: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = r"(?i)\b(?:esc|escape|ctrl[+-]c|\^c)\b.{0,12}\b(?:interrupt|cancel|stop|abort)\b";
    HINT.get_or_init(|| Regex::new(pattern).ok()).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[&str]) -> Vec<Row> {
        texts
            .iter()
            .map(|text| Row {
                text: (*text).to_owned(),
                ..Row::default()
            })
            .collect()
    }

    const AREA: AreaRows = AreaRows { top: 1, row: 2 };

    #[test]
    fn a_key_that_stops_the_program_is_named_while_it_works() {
        let idle = rows(&["words", "────", "> ", "────", "model"]);
        let footer = Footer::learn(&idle, AREA);
        assert!(footer.is_idle(&idle, AREA) && !footer.says_busy(&idle, AREA));
        for busy in [
            "⠋ Working (esc to interrupt)",
            "(3s · Esc/Ctrl+C to interrupt)",
            "press ctrl-c to stop",
        ] {
            let working = rows(&[busy, "────", "> ", "────", "model"]);
            assert!(footer.says_busy(&working, AREA), "{busy}");
        }
        let named = rows(&["words", "────", "> ", "────", "esc to cancel"]);
        assert!(
            !Footer::learn(&named, AREA).says_busy(&named, AREA),
            "it always stands there"
        );
    }

    #[test]
    fn a_dialog_has_another_footer() {
        let footer = Footer::learn(
            &rows(&["words", "────", "> ", "────", "model", "mode"]),
            AREA,
        );
        assert!(!footer.is_idle(
            &rows(&["words", "────", "> ", "────", "enter to confirm"]),
            AREA
        ));
    }
}
