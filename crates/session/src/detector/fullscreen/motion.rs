//! Tracks what moves on the screen: when a row last changed, and which rows are spinners, timers or
//! decoration.
//!
//! A row that changes while its letters stay the same (`⠋ Working 3s`, then `⠙ Working 4s`)
//! *ticks*. A row that ticks in a turn is a sign of work, and when it is gone the work is done. A
//! row that ticks while nothing was asked (an animated logo) is decoration, and its changes mean
//! nothing. Rows are recognised by their letters and keep their first classification. At most
//! [`KEYS_MAX`] rows are remembered.

use super::footer::AreaRows;
use crate::screen::Row;
use std::collections::HashMap;
use std::time::Duration;

/// How many ticking rows are remembered.
const KEYS_MAX: usize = 64;

/// How often a row ticks before it counts as a spinner.
const SPINNER_TICKS: u32 = 3;

/// How often a row ticks while nothing was asked before it counts as decoration.
const DECORATION_TICKS: u32 = 8;

/// The cells of which scroll bars and boxes are made: they come and go at the end of a row.
const BARS: [char; 8] = [' ', '│', '┃', '█', '▐', '▓', '░', '▕'];

/// The classification of a ticking row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    /// The row has not ticked often enough; counts its ticks in turns and outside of them.
    Unknown {
        asked: u32,
        unasked: u32,
    },
    Spinner,
    Decoration,
}

impl RowKind {
    fn count_tick(self, is_asked: bool) -> Self {
        match self {
            Self::Unknown { asked, .. } if is_asked && asked + 1 >= SPINNER_TICKS => Self::Spinner,
            Self::Unknown { unasked, .. } if !is_asked && unasked + 1 >= DECORATION_TICKS => {
                Self::Decoration
            }
            Self::Unknown { asked, unasked } if is_asked => Self::Unknown {
                asked: asked + 1,
                unasked,
            },
            Self::Unknown { asked, unasked } => Self::Unknown {
                asked,
                unasked: unasked + 1,
            },
            known => known,
        }
    }
}

/// The movement on a screen.
#[derive(Debug, Default)]
pub(super) struct Motion {
    rows: Vec<String>,
    kinds: HashMap<String, RowKind>,
    /// When something meaningful last changed.
    pub(super) changed_at: Duration,
    /// Whether a spinner turned since the turn began.
    pub(super) spinner_seen: bool,
}

/// The circumstances of a frame that decide what its changes mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameContext {
    pub(super) now: Duration,
    /// Whether a turn is open.
    pub(super) asked: bool,
    /// The rows of the input area, which change by typing.
    pub(super) input: Option<AreaRows>,
}

impl Motion {
    /// Compares the rows of a frame with those of the last one. Returns whether a meaningful row
    /// changed.
    pub(super) fn observe_rows(&mut self, frame: FrameContext, rows: &[Row]) -> bool {
        let rows = rows
            .iter()
            // Scroll bars move while the text stays, so they must not count as changes.
            .map(|row| row.text.trim_end_matches(BARS).to_owned())
            .collect();
        let before = std::mem::replace(&mut self.rows, rows);
        let is_input = |at: usize| {
            frame
                .input
                .is_some_and(|area| (area.top..=area.row).contains(&at))
        };
        let resized = before.len() != self.rows.len();
        let mut moved = resized;
        for (at, old) in before.iter().enumerate() {
            let Some(new) = self.rows.get(at).cloned() else {
                break;
            };
            if *old != new && !is_input(at) {
                moved |= self.note_row_change(frame, old, &new);
            }
        }
        if moved {
            self.changed_at = frame.now;
        }
        moved
    }

    /// Classifies the change of one row. Returns whether it is meaningful.
    fn note_row_change(&mut self, frame: FrameContext, before: &str, now: &str) -> bool {
        let key = letters_of(now);
        if key != letters_of(before) {
            return !(self.is_decoration(&key) && self.is_decoration(&letters_of(before)));
        }
        if key.is_empty() {
            // Rows without letters all look alike, so such a row cannot be recognised again.
            return true;
        }
        // A full table learns no new rows, but those in it go on.
        if self.kinds.len() < KEYS_MAX || self.kinds.contains_key(&key) {
            let kind = self.kinds.entry(key.clone()).or_insert(RowKind::Unknown {
                asked: 0,
                unasked: 0,
            });
            *kind = kind.count_tick(frame.asked);
        }
        self.spinner_seen |= frame.asked && self.is_spinner(&key);
        !self.is_decoration(&key)
    }

    /// Notes a change of the title: programs turn spinners there too.
    pub(super) fn title_changed(&mut self, now: Duration) {
        self.changed_at = now;
    }

    /// Begins a turn.
    pub(super) fn begin(&mut self, now: Duration) {
        self.changed_at = now;
        self.spinner_seen = false;
        // Rows that ticked only now and then are forgotten: a spinner ticks often within one turn.
        self.kinds
            .retain(|_, kind| !matches!(kind, RowKind::Unknown { unasked: 0, .. }));
    }

    /// Whether a spinner is on the screen, turning or not.
    pub(super) fn shows_spinner(&self) -> bool {
        self.rows
            .iter()
            .any(|row| self.is_spinner(&letters_of(row)))
    }

    pub(super) fn is_spinner_row(&self, row: &str) -> bool {
        self.is_spinner(&letters_of(row))
    }

    fn is_spinner(&self, key: &str) -> bool {
        self.kinds.get(key) == Some(&RowKind::Spinner)
    }

    fn is_decoration(&self, key: &str) -> bool {
        self.kinds.get(key) == Some(&RowKind::Decoration)
    }
}

/// The letters of a row, by which it is recognised while it ticks.
fn letters_of(row: &str) -> String {
    row.chars().filter(|c| c.is_alphabetic()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(motion: &mut Motion, ms: u64, asked: bool, rows: &[&str]) -> bool {
        let row = |text: &&str| Row {
            text: (*text).to_owned(),
            ..Row::default()
        };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        motion.observe_rows(
            FrameContext {
                now: Duration::from_millis(ms),
                asked,
                input: None,
            },
            &rows,
        )
    }

    #[test]
    fn a_row_whose_letters_stay_while_it_changes_is_a_spinner() {
        let mut motion = Motion::default();
        motion.begin(Duration::ZERO);
        for (ms, row) in [
            (0, "⠋ Working 1s"),
            (80, "⠙ Working 1s"),
            (160, "⠹ Working 2s"),
            (240, "⠸ Working 2s"),
        ] {
            frame(&mut motion, ms, true, &[row]);
        }
        assert!(motion.spinner_seen && motion.shows_spinner());
        assert!(frame(&mut motion, 300, true, &["Done."]));
        assert!(!motion.shows_spinner());
        assert_eq!(motion.changed_at, Duration::from_millis(300));
    }

    #[test]
    fn what_moves_while_nothing_was_asked_is_decoration() {
        let mut motion = Motion::default();
        for tick in 0..20 {
            let row = if tick % 2 == 0 {
                "⠋ logo"
            } else {
                "⠙ logo"
            };
            frame(&mut motion, tick * 100, false, &[row]);
        }
        motion.begin(Duration::from_secs(2));
        assert!(!frame(&mut motion, 2100, true, &["⠋ logo"]));
        assert_eq!(motion.changed_at, Duration::from_secs(2));
        assert!(!motion.spinner_seen);
    }
}
