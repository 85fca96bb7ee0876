//! Finds where a frame belongs in the rows that were gathered before it.
//!
//! A screen that repaints itself reports no scrolling. The only evidence is that rows of the new
//! frame equal earlier rows; blank rows are no evidence. Rows near the top count more than rows
//! near the bottom, because the top is about to leave for good and the bottom is still being
//! written. A program may also lay out a complete message anew: rows were inserted and removed in
//! the middle, no single shift explains the frame, and the longest common subsequence is used
//! instead.
//!
//! Worked example. A finished list gets a blank row below its items, so two rows left the top while
//! the rows further down moved by only one:
//!
//! ```text
//! rows            frame           A shift by one agrees in all rows but the first, and would put
//! 0 morning       low water       `low water` in the place of `high water`. The first row of the
//! 1 high water                    frame is at 2 in the common subsequence: rows 0 and 1 have left
//! 2 low water     evening         for good, and the frame begins at 2.
//! 3 evening       remarks
//! ```

use super::row::Row;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

/// How far above the last frame's place a frame is searched, in frames.
const FRAMES_BACK: usize = 4;

/// The weight of a rare row that agrees.
const RARE_WEIGHT: i64 = 8;

/// The weight of a row that differs.
const MISS_WEIGHT: i64 = 6;

/// How many letters of a half-written row are needed to recognise it when it is complete.
const BEGUN_LETTERS_MIN: usize = 4;

/// How many letters of a frame are searched after the window changed its width; fewer where the
/// rest of the frame is new.
const REFLOW_LETTERS: [usize; 3] = [24, 16, 10];

/// The tallest frame for which a new layout is searched: the work grows with its square.
const LAYOUT_ROWS_MAX: usize = 400;

/// The index of `frame` in `rows`, where `near` is the index of the last frame. `None` when they
/// share too little.
pub(super) fn align(rows: &[Row], frame: &[Row], near: usize) -> Option<usize> {
    let from = near.saturating_sub(frame.len().saturating_mul(FRAMES_BACK));
    let window = rows.get(from..).unwrap_or_default();
    let shift = find_shift(window, frame, near - from).map(|at| adjust_top(window, frame, at));
    shift
        .or_else(|| find_new_layout(window, frame))
        .map(|at| from + at)
}

/// The index of the frame's first row, which a shift puts at `at`: further down where rows were
/// inserted below it. A match above `at` would be an earlier row with the same words.
fn adjust_top(rows: &[Row], frame: &[Row], at: usize) -> usize {
    if frame.len() > LAYOUT_ROWS_MAX || rows.get(at) == frame.first() {
        return at;
    }
    let below = rows.get(at..).unwrap_or_default();
    let below = below.get(..frame.len()).unwrap_or(below);
    match find_common_rows(below, frame).last() {
        Some(CommonRow { old, new: 0 }) => at + old,
        _ => at,
    }
}

/// The shift at which the frame agrees best with the rows. At least half of the overlap must agree,
/// or a quarter on a screen that did not scroll. A rare row must be among them, because pages of
/// code agree in all others.
fn find_shift(rows: &[Row], frame: &[Row], near: usize) -> Option<usize> {
    let rare = find_rare_rows(rows, frame);
    let mut best = None;
    for at in 0..rows.len() {
        let below = rows.get(at..).unwrap_or_default();
        let agreement = Agreement::new(below, frame, &rare);
        if !agreement.is_enough(at == near) {
            continue;
        }
        // Of equal scores the nearer shift wins, and of two at the same distance the lower one:
        // text moves up.
        let rank = (agreement.score, Reverse(at.abs_diff(near)));
        if best.is_none_or(|(best_rank, _)| rank >= best_rank) {
            best = Some((rank, at));
        }
    }
    best.map(|(_, at)| at)
}

/// Which rows of the frame occur once in it and at most once in the rows. Code repeats its small
/// rows, and a shift by one repetition agrees in all rows but the rare ones.
fn find_rare_rows(rows: &[Row], frame: &[Row]) -> Vec<bool> {
    let mut seen: HashMap<Cow<'_, str>, Occurrences> = HashMap::new();
    for row in rows {
        seen.entry(row.comparison_key()).or_default().before += 1;
    }
    for row in frame {
        seen.entry(row.comparison_key()).or_default().now += 1;
    }
    let rare = |row: &Row| {
        seen.get(&row.comparison_key())
            .is_some_and(|seen| seen.before <= 1 && seen.now == 1)
    };
    frame
        .iter()
        .map(|row| !row.is_blank() && rare(row))
        .collect()
}

/// How often a row occurs in the rows before a frame, and in the frame.
#[derive(Default)]
struct Occurrences {
    before: u32,
    now: u32,
}

/// How well a frame agrees with the rows from one index on.
#[derive(Default)]
struct Agreement {
    written: u32,
    shared: u32,
    rare_shared: u32,
    rare_missed: u32,
    score: i64,
}

impl Agreement {
    fn new(rows: &[Row], frame: &[Row], rare: &[bool]) -> Self {
        let mut agreement = Self::default();
        let mut height = 2 * i64::try_from(frame.len()).unwrap_or(i64::MAX / 2);
        // Only the last printed row may have been half written.
        let last = rows.iter().rposition(|row| !row.is_blank());
        let mut pairs = rows.iter().zip(frame).zip(rare).enumerate().peekable();
        while let Some((at, ((old, new), rare))) = pairs.next() {
            height -= 1;
            if new.is_blank() && old.is_blank() {
                continue;
            }
            agreement.written += 1;
            let is_same = old == new || is_filled(old, new) || new.completes_cells_of(old);
            if is_same || (last == Some(at) && is_begun(old, new)) {
                agreement.shared += 1;
                agreement.rare_shared += u32::from(*rare);
                agreement.score += height * if *rare { RARE_WEIGHT } else { 1 };
            } else {
                // The frame's last row may still be in the middle of being written.
                agreement.rare_missed += u32::from(*rare && pairs.peek().is_some());
                agreement.score -= height * MISS_WEIGHT;
            }
        }
        agreement
    }

    /// Whether the agreement is evidence enough; `stays` means that the screen did not scroll.
    fn is_enough(&self, stays: bool) -> bool {
        let share = if stays { 4 } else { 2 };
        let has_evidence = self.rare_shared > 0 || (stays && self.rare_missed == 0);
        self.shared > 0 && self.shared * share >= self.written && has_evidence
    }
}

/// Whether a row was the bare number of a list item and has its words now.
fn is_filled(old: &Row, new: &Row) -> bool {
    let mark = old.comparison_key();
    let number = mark.strip_suffix('.').unwrap_or(&mark);
    let is_numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let has_words = |row: &str| {
        row.strip_prefix(number)
            .is_some_and(|words| words.starts_with(". "))
    };
    is_numbered && has_words(&new.comparison_key())
}

/// Whether a row was half written and has more words now: `On tides and the` and `On tides and the
/// people`.
fn is_begun(old: &Row, new: &Row) -> bool {
    let begun = old.comparison_key();
    begun.chars().filter(|c| c.is_alphanumeric()).count() >= BEGUN_LETTERS_MIN
        && new.comparison_key().starts_with(&*begun)
}

/// The place at which a frame begins in rows that were broken for another width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reflowed {
    /// The row that holds the first letter of the frame …
    pub(super) row: usize,
    /// … and how many of its letters come before that one.
    pub(super) letters_before: usize,
}

impl Reflowed {
    /// The place at the beginning of a row.
    pub(super) fn at_row(row: usize) -> Self {
        Self {
            row,
            letters_before: 0,
        }
    }
}

/// Finds the first letters of a frame in rows that had another width, from `near` on.
///
/// Worked example, a window narrowed from 30 to 16 columns:
///
/// ```text
/// rows                            frame            The letters `laterhistorians…` are in row 1,
/// 0 There is a gap of eleven      Later            behind 12 letters of `weeks of paper`: row 0
/// 1 weeks of paper. Later         historians       and the head of row 1 have left the screen.
/// 2 historians blamed a strike.   blamed a strike.
/// ```
pub(super) fn find_reflowed(rows: &[Row], frame: &[Row], near: usize) -> Option<Reflowed> {
    let wanted: Vec<char> = letters_of(frame).collect();
    let from = near.saturating_sub(frame.len().saturating_mul(FRAMES_BACK));
    let known = rows.get(from..).unwrap_or_default();
    let all: Vec<char> = letters_of(known).collect();
    let place_of = |letters: usize| {
        let wanted = wanted.get(..letters)?;
        all.windows(letters).rposition(|place| place == wanted)
    };
    let mut before = REFLOW_LETTERS.into_iter().find_map(place_of)?;
    for (at, row) in known.iter().enumerate() {
        let letters = letters_of(std::slice::from_ref(row)).count();
        if before < letters {
            return Some(Reflowed {
                row: from + at,
                letters_before: before,
            });
        }
        before -= letters;
    }
    None
}

/// The letters and digits of rows, which survive any breaking of lines.
pub(super) fn letters_of(rows: &[Row]) -> impl Iterator<Item = char> {
    rows.iter()
        .flat_map(|row| row.text.chars())
        .filter(|c| c.is_alphanumeric())
}

/// The index at which the frame begins, when a third of its rows occur in the rows in the same
/// order.
fn find_new_layout(rows: &[Row], frame: &[Row]) -> Option<usize> {
    if frame.len() > LAYOUT_ROWS_MAX {
        return None;
    }
    let printed = frame.iter().filter(|row| !row.is_blank()).count();
    let common = find_common_rows(rows, frame);
    let rare = find_rare_rows(rows, frame);
    // Small rows such as `}` agree by chance. At least one row must be unlike all others.
    let telling = common.iter().any(|row| rare.get(row.new) == Some(&true));
    // The pairs come from the end to the start.
    let first = common.last()?;
    (telling && common.len() * 3 >= printed).then(|| first.old.saturating_sub(first.new))
}

/// A row that the rows and a frame have in common, by its index in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommonRow {
    old: usize,
    new: usize,
}

/// The longest common subsequence of printed rows, last pair first, each pair as near as possible
/// to the one below it.
fn find_common_rows(rows: &[Row], frame: &[Row]) -> Vec<CommonRow> {
    let lengths = CommonLengths::new(rows, frame);
    // Read back from the end, so that a row that occurs twice is matched at its lower place.
    let (mut old, mut new) = (rows.len(), frame.len());
    let mut pairs = Vec::new();
    while old > 0 && new > 0 {
        let here = lengths.get(old, new);
        let is_common = is_common_row(rows, frame, old - 1, new - 1);
        if !is_common && lengths.get(old - 1, new) == here {
            old -= 1;
        } else if !is_common && lengths.get(old, new - 1) == here {
            new -= 1;
        } else {
            (old, new) = (old - 1, new - 1);
            pairs.push(CommonRow { old, new });
        }
    }
    pairs
}

/// The lengths of the longest common subsequences of `rows[..old]` and `frame[..new]`, for all
/// `old` and `new`.
struct CommonLengths {
    lengths: Vec<u32>,
    width: usize,
}

impl CommonLengths {
    fn new(rows: &[Row], frame: &[Row]) -> Self {
        let width = frame.len() + 1;
        // Row 0 and column 0 stay 0: nothing is common with no rows. Each further cell needs only the
        // cells above and to the left of it.
        let mut table = Self {
            lengths: vec![0; (rows.len() + 1) * width],
            width,
        };
        for (old, row) in rows.iter().enumerate() {
            for (new, other) in frame.iter().enumerate() {
                let best = if row == other && !row.is_blank() {
                    table.get(old, new) + 1
                } else {
                    table.get(old, new + 1).max(table.get(old + 1, new))
                };
                if let Some(cell) = table.lengths.get_mut((old + 1) * width + new + 1) {
                    *cell = best;
                }
            }
        }
        table
    }

    fn get(&self, old: usize, new: usize) -> u32 {
        self.lengths
            .get(old * self.width + new)
            .copied()
            .unwrap_or_default()
    }
}

fn is_common_row(rows: &[Row], frame: &[Row], old: usize, new: usize) -> bool {
    rows.get(old)
        .is_some_and(|row| !row.is_blank() && frame.get(new) == Some(row))
}

/// Whether `rows` contain all of `frame` at `at`, with more rows below it.
pub(super) fn is_inside(rows: &[Row], frame: &[Row], at: usize) -> bool {
    rows.get(at..)
        .is_some_and(|tail| tail.len() > frame.len() && tail.starts_with(frame))
}
