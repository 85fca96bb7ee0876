//! The emulated screen of a session with a screen profile, and the text that is gathered from it.
//!
//! Bytes wait until time moves on (or [`PENDING_BYTES_MAX`] of them came). So a frame is what the
//! screen shows between two moments, never what it shows between two reads of the same moment, and
//! cutting the bytes changes nothing. It never fails; without valid text rules the text is empty.

use super::profile::{Profile, RowsRule};
use super::typed_line::TypedLine;
use crate::pattern::{Pattern, matches_optional};
use crate::screen::{Colour, Ending, Gathered, Gatherer, Row, Screen, Size, Submitted};

/// How many bytes wait for the screen; more are painted in pieces of this size.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// A screen and the text that is gathered from it.
pub(super) struct ProfileScreen {
    screen: Screen,
    gatherer: Option<Gatherer>,
    /// The submitted text, where it is known and is not a command.
    submitted: Option<String>,
    pending: Vec<u8>,
    /// The cached result of [`ProfileScreen::interrupt_row`], until the screen changes.
    interrupt_row: Option<Option<usize>>,
}

/// The signs that a profile's patterns find on the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowSigns {
    pub(super) busy: bool,
    pub(super) ready: bool,
    pub(super) dialog: bool,
}

impl ProfileScreen {
    pub(super) fn new(profile: &Profile, size: Size) -> Self {
        // The rules were checked when the profile was compiled; without a gatherer the text is
        // empty.
        let gatherer = Gatherer::new(&profile.text).ok();
        Self {
            screen: Screen::new(size),
            gatherer,
            submitted: None,
            pending: Vec::new(),
            interrupt_row: None,
        }
    }

    /// Takes output; it is painted when time moves on.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while self.pending.len() + rest.len() >= PENDING_BYTES_MAX {
            let (now, later) = rest.split_at(PENDING_BYTES_MAX - self.pending.len());
            self.pending.extend_from_slice(now);
            self.paint();
            rest = later;
        }
        self.pending.extend_from_slice(rest);
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Paints the waiting bytes.
    pub(super) fn paint(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let gatherer = &mut self.gatherer;
        self.screen.feed(&self.pending, |screen| {
            if let Some(gatherer) = gatherer {
                gatherer.apply_frame(screen);
            }
        });
        self.pending.clear();
        self.interrupt_row = None;
    }

    /// Begins a turn with the screen as it is now.
    pub(super) fn begin_turn(&mut self, typed: &TypedLine, is_command: bool) {
        self.paint();
        self.submitted = typed.known_text();
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.begin_turn(&self.screen);
            gatherer.set_submitted(Submitted {
                text: self.submitted.clone().unwrap_or_default(),
                is_command,
            });
        }
        // A repeated command may print nothing new, so its old answer must not be returned again.
        self.submitted.take_if(|_| is_command);
    }

    /// The text of the row that the cursor is on.
    pub(super) fn cursor_row(&mut self) -> String {
        self.paint();
        let row = self
            .screen
            .rows()
            .into_iter()
            .nth(self.screen.cursor().row.into());
        row.map(|row| row.text).unwrap_or_default()
    }

    /// Ends the turn and returns its text.
    pub(super) fn finish_turn(&mut self, ending: Ending) -> Gathered {
        self.paint();
        let empty = Gathered {
            text: String::new(),
            incomplete: true,
            followed: true,
        };
        let mut gathered = self
            .gatherer
            .as_ref()
            .map_or(empty, |gatherer| gatherer.text(ending));
        // The same question again may leave the same page, on which nothing is new.
        if gathered.text.is_empty() && ending == Ending::Complete {
            gathered.text = self.answer_again();
        }
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.end_turn();
        }
        gathered
    }

    /// Ends the turn and returns its text, where the next one has already begun.
    pub(super) fn hand_over(&mut self, ending: Ending) -> Gathered {
        self.paint();
        let handed = self
            .gatherer
            .as_mut()
            .and_then(|gatherer| gatherer.hand_over(ending));
        handed.unwrap_or_else(|| self.finish_turn(ending))
    }

    /// Whether a turn is gathered.
    pub(super) fn is_open(&self) -> bool {
        self.gatherer.as_ref().is_some_and(Gatherer::is_open)
    }

    /// The text below the prompt of a turn that repeats the submit before it, where nothing is new.
    pub(super) fn answer_again(&self) -> String {
        let submitted = self.submitted.as_deref().zip(self.gatherer.as_ref());
        submitted
            .map(|(submitted, gatherer)| gatherer.answer_again(submitted))
            .unwrap_or_default()
    }

    /// Whether nothing was said in the turn so far.
    pub(super) fn is_silent(&mut self) -> bool {
        self.paint();
        self.gatherer
            .as_ref()
            .is_some_and(|gatherer| gatherer.text(Ending::Complete).text.is_empty())
    }

    /// Whether words of the turn are still to be painted.
    pub(super) fn awaits_words(&mut self) -> bool {
        self.paint();
        self.gatherer.as_ref().is_some_and(Gatherer::awaits_words)
    }

    /// Handles lost output: the screen is unknown until the program repaints it.
    pub(super) fn note_gap(&mut self) {
        self.paint();
        self.screen.reset();
        self.interrupt_row = None;
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.note_gap();
        }
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.paint();
        self.screen.resize(size);
        self.interrupt_row = None;
    }

    /// Whether a synchronized update is open, so that the screen is half painted.
    pub(super) fn is_half_painted(&self) -> bool {
        self.screen.sync_open()
    }

    /// The text left of the cursor.
    pub(super) fn left_of_cursor(&mut self) -> String {
        self.paint();
        self.screen.left_of_cursor()
    }

    /// The signs on the rows.
    pub(super) fn read_signs(&mut self, profile: &Profile) -> RowSigns {
        self.paint();
        let Some(rule) = &profile.rows else {
            return RowSigns::default();
        };
        let rows = self.screen.rows();
        let edge = rows.iter().position(|row| self.is_edge(rule, row));
        let is_prompt = |row: &Row| rule.ready.matches(&row.text);
        // While a box is visible, only the row below its edge is a prompt: the transcript may show
        // others.
        let ready = if edge.is_some() {
            rows.windows(2).any(
                |pair| matches!(pair, [above, row] if self.is_edge(rule, above) && is_prompt(row)),
            )
        } else {
            rows.iter().any(is_prompt)
        };
        RowSigns {
            busy: shows_sign(&rows, edge, rule.busy.as_ref(), Indented::No),
            ready,
            dialog: shows_sign(&rows, edge, rule.dialog.as_ref(), Indented::Yes),
        }
    }

    /// Whether a row is the upper edge of a box that spans the window.
    fn is_edge(&self, rule: &RowsRule, row: &Row) -> bool {
        matches_optional(rule.edge.as_ref(), &row.text)
            && row.text.chars().count() >= usize::from(self.screen.size().cols)
    }

    /// The lowest row by which the program shows that it was interrupted, as painted so far.
    pub(super) fn interrupt_row(&mut self, profile: &Profile) -> Option<usize> {
        let row = profile.interrupt.as_ref()?.row.as_ref()?;
        let screen = &self.screen;
        let find = || {
            screen
                .rows()
                .iter()
                .rposition(|shown| row.matches(&shown.text))
        };
        *self.interrupt_row.get_or_insert_with(find)
    }
}

/// Whether a sign above the box may be indented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indented {
    Yes,
    No,
}

/// Whether a printed row shows the sign that a pattern describes. `edge` is the row of the box.
fn shows_sign(
    rows: &[Row],
    edge: Option<usize>,
    pattern: Option<&Pattern>,
    indented: Indented,
) -> bool {
    let Some(pattern) = pattern else { return false };
    // Above the box are the assistant's words. They are indented and mostly have no colour of their
    // own, so only other rows there can be signs of the program.
    let may_be_sign = |at: usize, row: &Row| {
        let is_coloured = row.lead.foreground != Colour::Default;
        edge.is_none_or(|edge| at > edge)
            || (is_coloured && (indented == Indented::Yes || !row.text.starts_with(' ')))
    };
    rows.iter()
        .enumerate()
        .filter(|(_, row)| !row.is_blank())
        .any(|(at, row)| pattern.matches(&row.text) && may_be_sign(at, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_read_for_an_interruption_once_until_the_screen_changes() {
        let profile = crate::detector::presets().get("codex").unwrap();
        let mut screen = ProfileScreen::new(&profile, Size { cols: 40, rows: 6 });
        assert_eq!(screen.interrupt_row(&profile), None);
        screen.push("\r\n■ Conversation interrupted".as_bytes());
        assert_eq!(
            screen.interrupt_row,
            Some(None),
            "what waits is not on the screen yet"
        );
        screen.paint();
        assert_eq!(screen.interrupt_row, None);
        assert_eq!(screen.interrupt_row(&profile), Some(1));
        screen.push(b"\x1b[2J");
        screen.paint();
        assert_eq!(screen.interrupt_row(&profile), None);
        screen.interrupt_row(&profile);
        screen.resize(Size { cols: 30, rows: 5 });
        assert_eq!(screen.interrupt_row, None);
    }
}
