//! What moves on the screen: when a row last changed, and which rows are spinners, timers or
//! decoration.
//!
//! A row that changes while its letters_of stay the same (`⠋ Working 3s`, then `⠙ Working 4s`)
//! *ticks*. What ticks in a turn is a sign of work, and when it is gone the work is done. What
//! ticks while nothing was asked (an animated logo) is decoration, and its changes mean nothing.
//! Both are known by their letters_of, and a row is what it was first: a spinner stays one, whatever
//! it does later. Nothing here grows: [`KEYS_MAX`] rows are remembered.

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

/// What a ticking row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    /// It has not ticked often enough to tell: so often in turns, and so often while nothing was
    /// asked.
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
    /// When something changed that means something.
    pub(super) changed_at: Duration,
    /// Whether a spinner turned since the turn began.
    pub(super) spinner_seen: bool,
}

/// A frame, as far as movement is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameContext {
    pub(super) now: Duration,
    /// Whether a turn is open.
    pub(super) asked: bool,
    /// The rows of the input area, which change by typing.
    pub(super) input: Option<AreaRows>,
}

impl Motion {
    /// Takes the rows of a frame; says whether something changed that means something.
    pub(super) fn observe_rows(&mut self, frame: FrameContext, rows: &[Row]) -> bool {
        let rows = rows
            .iter()
            .map(|row| row.text.trim_end_matches(BARS).to_owned())
            .collect();
        let before = std::mem::replace(&mut self.rows, rows);
        let is_input = |at: usize| {
            frame
                .input
                .is_some_and(|area| (area.top..=area.row).contains(&at))
        };
        let changed: Vec<(String, String)> = (0..before.len().max(self.rows.len()))
            .filter(|at| !is_input(*at))
            .filter_map(|at| Some((before.get(at)?.clone(), self.rows.get(at)?.clone())))
            .filter(|(before, now)| before != now)
            .collect();
        let resized = before.len() != self.rows.len();
        let mut moved = resized;
        for (before, now) in changed {
            moved |= self.note_row_change(frame, &before, &now);
        }
        if moved {
            self.changed_at = frame.now;
        }
        moved
    }

    /// Takes the change of one row; says whether it means something.
    fn note_row_change(&mut self, frame: FrameContext, before: &str, now: &str) -> bool {
        let key = letters_of(now);
        if key != letters_of(before) {
            return !(self.is_decoration(&key) && self.is_decoration(&letters_of(before)));
        }
        if key.is_empty() {
            // A row without letters_of is like any other of its kind: it is not known again.
            return true;
        }
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

    /// The title changed: programs turn spinners there too.
    pub(super) fn title_changed(&mut self, now: Duration) {
        self.changed_at = now;
    }

    /// A turn begins.
    pub(super) fn begin(&mut self, now: Duration) {
        self.changed_at = now;
        self.spinner_seen = false;
        // What ticked now and then is forgotten: a spinner ticks often in one turn.
        self.kinds
            .retain(|_, kind| !matches!(kind, RowKind::Unknown { unasked: 0, .. }));
    }

    /// Whether a spinner stands on the screen, turning or not.
    pub(super) fn shows_spinner(&self) -> bool {
        self.rows
            .iter()
            .any(|row| self.is_spinner(&letters_of(row)))
    }

    /// Whether a row is a spinner.
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

/// The letters_of of a row, by which it is known while it ticks.
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
