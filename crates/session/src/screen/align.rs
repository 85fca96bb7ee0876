//! Where a frame belongs in the rows that were gathered before it.
//!
//! A screen that repaints itself gives no scroll event: the only evidence is that rows of the new
//! frame equal rows of the old ones. Blank rows are no evidence. Rows near the top count more than
//! rows near the bottom, because the top is what is about to leave for good and the bottom is what
//! is still being written.

use super::row::Row;

/// How far above the last frame's place a frame is looked for, in frames.
const FRAMES_BACK: usize = 4;

/// The place at which most of `frame` agrees with `rows`, `near` being where the last frame was.
/// None when they share no row, or too few of those that overlap: a half, or a quarter for a screen
/// that did not scroll.
pub(super) fn align(rows: &[Row], frame: &[Row], near: usize) -> Option<usize> {
    let from = near.saturating_sub(frame.len().saturating_mul(FRAMES_BACK));
    (from..rows.len())
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

/// Whether all of `frame` stands in `rows` at `at`, and more below it.
pub(super) fn is_inside(rows: &[Row], frame: &[Row], at: usize) -> bool {
    rows.get(at..).is_some_and(|tail| tail.len() > frame.len() && tail.starts_with(frame))
}
