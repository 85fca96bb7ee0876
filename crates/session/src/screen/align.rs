//! Where a frame belongs in the rows that were gathered before it.
//!
//! A screen that repaints itself gives no scroll event: the only evidence is that rows of the new
//! frame equal rows of the old ones. Blank rows are no evidence. Rows near the top count more than
//! rows near the bottom, because the top is what is about to leave for good and the bottom is what
//! is still being written. A program may also lay out a message anew when it is complete: then rows
//! were inserted and removed in the middle, no single shift explains the frame, and the longest common
//! subsequence is taken instead.

use super::row::Row;

/// How far above the last frame's place a frame is looked for, in frames.
const FRAMES_BACK: usize = 4;

/// The tallest frame for which a new layout is looked for: the work grows with its square.
const LAYOUT_ROWS_MAX: usize = 400;

/// The place of `frame` in `rows`, `near` being where the last frame was. None when they share too
/// little to tell.
pub(super) fn align(rows: &[Row], frame: &[Row], near: usize) -> Option<usize> {
    let from = near.saturating_sub(frame.len().saturating_mul(FRAMES_BACK));
    let window = rows.get(from..).unwrap_or_default();
    shifted(window, frame, near - from).or_else(|| laid_out_anew(window, frame)).map(|at| from + at)
}

/// The shift at which most of the frame agrees with the rows: at least half of what overlaps, or a
/// quarter on a screen that did not scroll.
fn shifted(rows: &[Row], frame: &[Row], near: usize) -> Option<usize> {
    (0..rows.len())
        .filter_map(|at| Some((at, score(rows.get(at..)?, frame, at == near)?)))
        .max_by_key(|(at, score)| (*score, std::cmp::Reverse(at.abs_diff(near))))
        .map(|(at, _)| at)
}

fn score(rows: &[Row], frame: &[Row], stays: bool) -> Option<usize> {
    let height = frame.len();
    let (mut shared, mut written, mut score) = (0, 0, 0);
    for (at, (old, new)) in rows.iter().zip(frame).enumerate() {
        if new.is_blank() && old.is_blank() {
            continue;
        }
        written += 1;
        if old == new {
            shared += 1;
            score += 2 * height - at;
        }
    }
    let enough = if stays { shared * 4 >= written } else { shared * 2 >= written };
    (shared > 0 && enough).then_some(score)
}

/// Where the frame begins when a third of it stands in the rows in the same order.
fn laid_out_anew(rows: &[Row], frame: &[Row]) -> Option<usize> {
    if frame.len() > LAYOUT_ROWS_MAX {
        return None;
    }
    let printed = frame.iter().filter(|row| !row.is_blank()).count();
    let common = common_rows(rows, frame);
    let (old, new) = common.last()?;
    (common.len() >= 2 && common.len() * 3 >= printed).then(|| old.saturating_sub(*new))
}

/// The longest common subsequence of printed rows, as pairs of places, last pair first and each as
/// near to the one below it as it can be.
fn common_rows(rows: &[Row], frame: &[Row]) -> Vec<(usize, usize)> {
    let width = frame.len() + 1;
    let mut lengths = vec![0u32; (rows.len() + 1) * width];
    let length =
        |lengths: &[u32], old: usize, new: usize| lengths.get(old * width + new).copied().unwrap_or_default();
    for (old, row) in rows.iter().enumerate() {
        for (new, other) in frame.iter().enumerate() {
            let best = if row == other && !row.is_blank() {
                length(&lengths, old, new) + 1
            } else {
                length(&lengths, old, new + 1).max(length(&lengths, old + 1, new))
            };
            if let Some(cell) = lengths.get_mut((old + 1) * width + new + 1) {
                *cell = best;
            }
        }
    }
    let (mut old, mut new) = (rows.len(), frame.len());
    let mut pairs = Vec::new();
    while old > 0 && new > 0 {
        let here = length(&lengths, old, new);
        if length(&lengths, old - 1, new) == here && !agree(rows, frame, old - 1, new - 1) {
            old -= 1;
        } else if length(&lengths, old, new - 1) == here && !agree(rows, frame, old - 1, new - 1) {
            new -= 1;
        } else {
            (old, new) = (old - 1, new - 1);
            pairs.push((old, new));
        }
    }
    pairs
}

fn agree(rows: &[Row], frame: &[Row], old: usize, new: usize) -> bool {
    rows.get(old).is_some_and(|row| !row.is_blank() && frame.get(new) == Some(row))
}

/// Whether all of `frame` stands in `rows` at `at`, and more below it.
pub(super) fn is_inside(rows: &[Row], frame: &[Row], at: usize) -> bool {
    rows.get(at..).is_some_and(|tail| tail.len() > frame.len() && tail.starts_with(frame))
}
