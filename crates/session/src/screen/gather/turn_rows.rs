//! The rows of one turn, frame by frame, on both screens.
//!
//! Invariant: the texts of `rows[..top]` have left the screen and never change again, and
//! `rows[top..]` is the transcript as the last frame showed it. On the main screen the emulator
//! reports what scrolled off, so `top` is exact; on the alternate screen it is found by comparing
//! frames. When two frames share nothing, a gap row separates them and the turn is incomplete. When
//! the screen starts anew (an erased scrollback, a reset), so do the rows. Each of the two screens
//! has its own rows; those of the hidden one wait.
//!
//! Worked example, the alternate screen of a window with three rows of transcript:
//!
//! ```text
//! frame 1     rows            frame 2     rows
//! > hi      ^ > hi            one two       > hi          `one` was half written: known again;
//! one         one             three       ^ one two       `> hi` has left for good (`^` is `top`)
//!                             four          three
//!                                           four
//! ```

use super::super::Screen;
use super::super::align::{Reflowed, align, find_reflowed, is_inside, letters_of};
use super::super::row::{Row, letters};

/// How many bytes of rows a turn may gather; later rows are left out and the turn is marked
/// incomplete.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many rows from before the turn are remembered, to find its beginning again after a repaint.
const ROWS_BEFORE_MAX: usize = 12;

/// How many frames after a resize the program may take to paint everything anew.
const REPAINT_FRAMES: u8 = 32;

/// How many letters at the end of a frame may differ from the rows before a resize: its last row
/// may be half written, or say what the program does now.
const CHANGED_LETTERS_MAX: usize = 60;

/// How many letters at its beginning must be the same.
const SAME_LETTERS_MIN: usize = 10;

/// How many letters a row must show to be recognised as the beginning of the submitted text.
const BEGINNING_LETTERS_MIN: usize = 3;

/// The text of the row that stands for missing rows.
const GAP: &str = "[…]";

/// The rows of a turn on both screens, and what is needed to find its beginning.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else about the turn"
)]
pub(super) struct TurnRows {
    pub(super) submitted: Submitted,
    /// The rows of the screen when the turn began.
    pub(super) begun_with: Vec<Row>,
    /// The last printed rows from before the turn, newest last.
    pub(super) rows_before: Vec<String>,
    /// The last prompt of the user from before the turn, where it was shown.
    pub(super) prompt: Option<String>,
    /// Whether a row ended the transcript when the turn began.
    pub(super) had_end: bool,
    /// The rows of the screen that is shown now.
    pub(super) shown: ScreenRows,
    /// The rows of the other screen.
    pub(super) other: Option<ScreenRows>,
    /// The rows from before a resize, until the program has painted everything anew. Frames in
    /// between are still laid out for the old size.
    pub(super) before_resize: Option<BeforeResize>,
    pub(super) alternate: bool,
    pub(super) resizes: u64,
    pub(super) erasures: u64,
    pub(super) scrolled: u64,
    pub(super) rows_lost: bool,
    /// Whether bytes are missing, perhaps with the rows that mark the beginning of the turn.
    pub(super) bytes_missed: bool,
    /// Whether the screen was empty before the first rows of the turn, so that these begin it.
    pub(super) began_blank: bool,
    /// Whether the alternate screen started anew, and its first frame is still to come.
    pub(super) starts_anew: bool,
    /// Whether the window changed its size in the turn.
    pub(super) was_resized: bool,
}

/// The input that the user submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Submitted {
    /// The text; empty where it is unknown.
    pub text: String,
    /// Whether it is a command of the program's own, which the assistant need not answer.
    pub is_command: bool,
}

impl Submitted {
    /// Whether a row may be one of its lines, or a piece of one that the program broke.
    pub(super) fn has_row(&self, row: &Row) -> bool {
        let shown = row.text.trim();
        !shown.is_empty() && self.text.lines().any(|line| line.contains(shown))
    }

    /// Whether a row shows the beginning of the text.
    pub(super) fn begins_with(&self, row: &Row) -> bool {
        let shown = letters(row.left_column());
        let count = shown.clone().count();
        count >= BEGINNING_LETTERS_MIN && letters(&self.text).take(count).eq(shown)
    }
}

/// Questions about a turn or a row that only the rules of the profile can answer.
pub(super) struct ProfileQueries<'a> {
    /// Whether nothing was said in the turn so far.
    pub(super) is_silent: &'a dyn Fn(&TurnRows) -> bool,
    /// Whether a row begins a prompt, a message, a tool call or a notice.
    pub(super) begins_block: &'a dyn Fn(&Row) -> bool,
    /// Whether a row is a prompt of the user.
    pub(super) is_prompt: &'a dyn Fn(&Row) -> bool,
}

/// The rows from before a resize, and for how many more frames they count.
#[derive(Debug)]
pub(super) struct BeforeResize {
    pub(super) rows: ScreenRows,
    /// Whether rows were lost before the resize.
    pub(super) rows_lost: bool,
    pub(super) frames: u8,
}

/// The rows of one of the two screens.
#[derive(Debug, Default, Clone)]
pub(super) struct ScreenRows {
    pub(super) rows: Vec<Row>,
    pub(super) text_bytes: usize,
    /// The indices at which rows are missing.
    pub(super) gaps: Vec<usize>,
    /// The index at which the turn begins; `None` after the screen started anew.
    pub(super) start: Option<usize>,
    /// The index of the first row below the last prompt from before the turn.
    pub(super) below_prompt: usize,
    pub(super) top: usize,
    /// The smallest number of rows since the turn began. The program painted all rows behind it in
    /// the turn.
    pub(super) lowest_len: usize,
    /// Rows that were below the last frame for a moment and may have scrolled away unseen.
    pub(super) below: Vec<Row>,
    pub(super) epoch: u64,
    /// Whether `rows[..top]` is known to hold the assistant's words.
    pub(super) has_words: bool,
}

impl TurnRows {
    /// Whether all rows of a frame of the alternate screen are known, with more below them.
    pub(super) fn contains_frame(&self, screen: &Screen, visible: &[Row]) -> bool {
        let visible = visible.get(leading_blanks(visible)..).unwrap_or_default();
        let is_comparable =
            screen.is_alternate() && self.alternate && screen.resizes() == self.resizes;
        is_comparable
            && align(&self.shown.rows, visible, self.shown.top)
                .is_some_and(|at| is_inside(&self.shown.rows, visible, at))
    }

    /// Begins the next turn at a row, with everything above it as earlier rows.
    pub(super) fn begin_at(&mut self, at: usize) {
        self.shown.start = Some(at);
        self.shown.below_prompt = at;
        self.shown.lowest_len = at;
        self.begun_with.clear();
        self.bytes_missed = false;
        self.before_resize = None;
        self.rows_before = last_printed(self.shown.rows.get(..at).unwrap_or_default());
    }

    /// Applies a frame: finds what left the screen since the last one, and replaces the visible
    /// rows.
    pub(super) fn apply_frame(
        &mut self,
        screen: &Screen,
        visible: Vec<Row>,
        queries: &ProfileQueries<'_>,
    ) {
        let resized = screen.resizes() != self.resizes;
        self.was_resized |= resized;
        self.resizes = screen.resizes();
        self.take_back_scrolled(screen.scrolled_low());
        self.switch_screen(screen);
        self.remember_before_resize(resized);
        let erased = screen.erasures() != self.erasures;
        // The program erased the screen and has not painted yet: the frame says nothing.
        if erased && visible.iter().all(Row::is_blank) {
            return;
        }
        self.erasures = screen.erasures();
        let before = self
            .before_resize
            .take_if(|before| erased || before.frames == 0)
            .filter(|_| erased);
        // The repaint after a resize continues the rows from before it, because the frames in
        // between may be laid out for the old size.
        let resized = resized || before.is_some();
        if let Some(before) = before {
            self.shown = before.rows;
            self.rows_lost = before.rows_lost;
        }
        if screen.is_alternate() {
            self.replace_by_comparison(visible, resized, queries);
        } else if erased {
            self.replace_by_repaint(screen, visible, resized);
        } else {
            let scrolled = self.read_scrolled(screen, self.scrolled);
            self.scrolled = screen.scrolled_total();
            self.replace_exactly(scrolled, visible);
        }
    }

    /// The rows that scrolled off the main screen after the `since`-th. Notes when some of them are
    /// no longer kept.
    fn read_scrolled(&mut self, screen: &Screen, since: u64) -> Vec<Row> {
        let (scrolled, lost) = screen.scrolled_since(since);
        self.rows_lost |= lost;
        scrolled.cloned().collect()
    }

    /// Replaces the visible rows by exactly what scrolled off and what is shown.
    fn replace_exactly(&mut self, scrolled: Vec<Row>, visible: Vec<Row>) {
        let bytes_max = self.bytes_limit();
        self.rows_lost |= self.shown.replace_exactly(scrolled, visible, bytes_max);
    }

    /// Adds a row that stands for missing rows.
    pub(super) fn push_gap(&mut self) {
        let bytes_max = self.bytes_limit();
        self.rows_lost |= self.shown.push_gap(bytes_max);
    }

    /// Keeps a copy of the rows at a resize, and counts down how long it is valid.
    pub(super) fn remember_before_resize(&mut self, resized: bool) {
        match &mut self.before_resize {
            Some(before) if resized => before.frames = REPAINT_FRAMES,
            Some(before) => before.frames = before.frames.saturating_sub(1),
            None if resized => {
                self.before_resize = Some(BeforeResize {
                    rows: self.shown.clone(),
                    rows_lost: self.rows_lost,
                    frames: REPAINT_FRAMES,
                });
            }
            None => {}
        }
    }

    /// Applies a repaint of the main screen: the program erased it and painted its last rows anew,
    /// some of which are known.
    pub(super) fn replace_by_repaint(&mut self, screen: &Screen, visible: Vec<Row>, resized: bool) {
        // Rows that scrolled after the erasure are part of the repaint, those before it are not.
        let since = screen.erased_scrolled().max(self.scrolled);
        let (above, _) = screen.scrolled_since(self.scrolled);
        let above: Vec<Row> = above.cloned().collect();
        let mut page = self.read_scrolled(screen, since);
        self.scrolled = screen.scrolled_total();
        let visible_len = visible.len();
        // If the repaint scrolled, the page begins with the rows that scrolled off, so the blank
        // rows are in its middle and stay.
        let blanks = if page.is_empty() {
            leading_blanks(&visible)
        } else {
            0
        };
        page.extend(visible);
        let known = page.get(blanks..).unwrap_or_default();
        // Without a common row the repaint follows what is known. After a resize that may be a
        // loss.
        let Some(at) = align(&self.shown.rows, known, self.shown.top) else {
            self.rows_lost |= resized && !self.shown.rows.is_empty();
            let visible = page.split_off(page.len() - visible_len);
            self.replace_exactly(if resized { page } else { above }, visible);
            return;
        };
        // Blank rows above the first known row would push it down.
        if let Some(extra) = blanks.checked_sub(at) {
            page.drain(..extra);
        }
        let bytes_max = self.bytes_limit();
        let from = at.saturating_sub(blanks);
        self.rows_lost |= self.shown.replace_from(from, page, resized, bytes_max);
        self.shown.top = self.shown.rows.len().saturating_sub(visible_len);
    }

    /// Takes back rows that had left the main screen and are printed again.
    pub(super) fn take_back_scrolled(&mut self, scrolled: u64) {
        let again = self.scrolled.saturating_sub(scrolled);
        self.scrolled -= again;
        let main = if self.alternate {
            self.other.as_mut()
        } else {
            Some(&mut self.shown)
        };
        if let Some(main) = main {
            main.top = main
                .top
                .saturating_sub(usize::try_from(again).unwrap_or(usize::MAX));
        }
    }

    /// Switches to the rows of the screen that is shown now; they restart where the screen started
    /// anew.
    pub(super) fn switch_screen(&mut self, screen: &Screen) {
        if screen.is_alternate() != self.alternate {
            self.alternate = screen.is_alternate();
            let known = self.other.take().unwrap_or(ScreenRows {
                epoch: screen.epoch(),
                ..ScreenRows::default()
            });
            self.other = Some(std::mem::replace(&mut self.shown, known));
            self.before_resize = None;
        }
        if screen.epoch() != self.shown.epoch {
            self.before_resize = None;
            self.shown.epoch = screen.epoch();
            // The alternate screen has no scrollback that could be erased: its next frame may go on
            // where the last one ended. Where bytes are missing, the last one is not known.
            if self.alternate && !self.bytes_missed {
                self.starts_anew = true;
            } else {
                self.shown.restart();
            }
        }
        if !self.alternate {
            self.scrolled = self.scrolled.max(screen.epoch_scrolled());
        }
    }

    /// How many bytes the rows of the visible screen may take.
    pub(super) fn bytes_limit(&self) -> usize {
        GATHERED_BYTES_MAX.saturating_sub(self.other.as_ref().map_or(0, ScreenRows::held_bytes))
    }

    /// Finds where a frame of the alternate screen belongs, and applies it. Blank rows at the top
    /// of a frame may hide earlier rows, so they never replace anything.
    pub(super) fn replace_by_comparison(
        &mut self,
        mut visible: Vec<Row>,
        resized: bool,
        queries: &ProfileQueries<'_>,
    ) {
        visible.drain(..leading_blanks(&visible));
        if visible.is_empty() {
            return;
        }
        let top = self.shown.top;
        let starts_anew = std::mem::take(&mut self.starts_anew);
        let may_be_rebroken = resized || (starts_anew && self.was_resized);
        match align(&self.shown.rows, &visible, top)
            .or_else(|| self.shown.align_with_rows_below(&visible))
        {
            // The user scrolled back: the frame shows only known rows, and nothing is new.
            Some(at) if at < top && is_inside(&self.shown.rows, &visible, at) => {
                self.shown.update_styles(at, &visible);
                return;
            }
            // The lines were broken anew, so rows agree by luck where their letters do not.
            Some(at)
                if may_be_rebroken && !self.shown.continues_at(Reflowed::at_row(at), &visible) =>
            {
                self.reflow_near(at, &visible);
            }
            Some(at) => self.shown.move_top(at),
            None if starts_anew => self.shown.restart(),
            // Checked before `resized`: where nothing was said yet, nothing can be lost. The result
            // is cached in `has_words`, because reading the text is expensive.
            None if !self.shown.has_words && (queries.is_silent)(self) => {
                self.restart_without_words(&visible, resized, queries);
            }
            None if resized => self.reflow(&visible),
            None => {
                self.push_gap();
                self.shown.has_words = true;
            }
        }
        let bytes_max = self.bytes_limit();
        self.rows_lost |= self.shown.replace_visible(visible, bytes_max);
    }

    /// Restarts the rows at a frame that shares no row with the frames before it, in a turn without
    /// a word so far. If the frame begins in the middle of a message, the beginning was never
    /// painted: an answer of a hundred lines may come in one piece.
    fn restart_without_words(
        &mut self,
        visible: &[Row],
        resized: bool,
        queries: &ProfileQueries<'_>,
    ) {
        let was_blank = self.shown.rows.iter().all(Row::is_blank);
        self.began_blank |= was_blank;
        self.shown.restart();
        if resized {
            return;
        }
        // The old rows are not in this frame, so an answer with the same words as the last one is
        // new.
        self.rows_before.clear();
        let Some(first) = visible.first() else { return };
        let is_users = first.is_shaded() || self.submitted.has_row(first);
        let begins =
            (queries.begins_block)(first) || is_users || visible.iter().any(queries.is_prompt);
        // On an empty screen the first frame is the beginning, whatever it shows.
        if !begins && !was_blank {
            self.push_gap();
        }
    }

    /// Applies a frame of a window with another width, for which the program broke its lines anew.
    /// Rows that scrolled away meanwhile are found by their letters; the rest is missing.
    fn reflow(&mut self, visible: &[Row]) {
        match find_reflowed(&self.shown.rows, visible, self.shown.top) {
            Some(place) => {
                self.rows_lost |= !self.shown.continues_at(place, visible);
                self.shown.cut_at_reflow(place, visible);
            }
            None => self.rows_lost |= self.shown.rows.len() > self.shown.top,
        }
    }

    /// Applies a frame of another width whose rows agree at an index although its letters do not.
    /// If the letters are found elsewhere, that is its place.
    fn reflow_near(&mut self, at: usize, visible: &[Row]) {
        let place = find_reflowed(&self.shown.rows, visible, self.shown.top)
            .filter(|place| self.shown.continues_at(*place, visible));
        if let Some(place) = place {
            self.shown.cut_at_reflow(place, visible);
        } else {
            self.rows_lost = true;
            self.shown.move_top(at);
        }
    }
}

impl ScreenRows {
    /// The memory that the rows take; an empty row costs some too.
    pub(super) fn held_bytes(&self) -> usize {
        self.text_bytes + 64 * self.rows.len()
    }

    pub(super) fn restart(&mut self) {
        self.truncate(0);
        self.start = None;
        self.below.clear();
        self.move_top(0);
    }

    /// Moves `top`. Rows that are about to be replaced prove nothing about what was said.
    pub(super) fn move_top(&mut self, top: usize) {
        self.has_words &= top >= self.top;
        self.top = top;
    }

    /// Replaces the visible rows by exactly what scrolled off and what is shown. Returns whether
    /// some rows did not fit.
    pub(super) fn replace_exactly(
        &mut self,
        scrolled: Vec<Row>,
        visible: Vec<Row>,
        bytes_max: usize,
    ) -> bool {
        self.truncate(self.top);
        let lost = self.append_rows(scrolled, bytes_max);
        self.top = self.rows.len();
        lost | self.append_rows(visible, bytes_max)
    }

    /// Replaces the rows from an index on by a page that was painted anew, perhaps for another
    /// window size. Returns whether some rows did not fit.
    pub(super) fn replace_from(
        &mut self,
        at: usize,
        page: Vec<Row>,
        resized: bool,
        bytes_max: usize,
    ) -> bool {
        // After a resize the beginning of the turn is known only if the rows before it are
        // unchanged.
        let is_same = |start: &usize| {
            !resized || page.starts_with(self.rows.get(at..*start).unwrap_or_default())
        };
        self.start = self.start.filter(is_same);
        self.truncate(at);
        self.append_rows(page, bytes_max)
    }

    /// Replaces the visible rows by those of a frame. Returns whether some rows did not fit.
    pub(super) fn replace_visible(&mut self, visible: Vec<Row>, bytes_max: usize) -> bool {
        let end = self.top + visible.len();
        let below = self.rows.get(end..).unwrap_or_default();
        if !below.is_empty() {
            self.below = below.to_vec();
        } else if self.rows.len() < end {
            self.below.clear();
        }
        self.truncate(self.top);
        let lost = self.append_rows(visible, bytes_max);
        self.lowest_len = self.lowest_len.min(self.rows.len());
        lost
    }

    /// Finds a frame in the rows followed by those that were below them before. Where it begins
    /// among the latter, these have scrolled away and are kept.
    fn align_with_rows_below(&mut self, frame: &[Row]) -> Option<usize> {
        if self.below.is_empty() {
            return None;
        }
        let known: Vec<Row> = self.rows.iter().chain(&self.below).cloned().collect();
        let at = align(&known, frame, self.top)?;
        for row in std::mem::take(&mut self.below) {
            self.text_bytes += row.text.len();
            self.rows.push(row);
        }
        Some(at)
    }

    /// Whether the rows from a place on and a frame are the same text, as far as both go.
    fn continues_at(&self, place: Reflowed, frame: &[Row]) -> bool {
        let known = self.rows.get(place.row..).unwrap_or_default();
        let known: Vec<char> = letters_of(known).skip(place.letters_before).collect();
        let shown: Vec<char> = letters_of(frame).collect();
        let pairs = known.iter().zip(&shown);
        let same = pairs.take_while(|(known, shown)| known == shown).count();
        let both = known.len().min(shown.len());
        same >= both.min(SAME_LETTERS_MIN) && same + CHANGED_LETTERS_MAX >= both
    }

    /// Keeps the rows before a place, and the head of the row that holds it; the frame follows.
    fn cut_at_reflow(&mut self, place: Reflowed, frame: &[Row]) {
        // The beginning of the turn moves with the text: it is found again by counting letters.
        let start = self.start.filter(|start| *start > place.row);
        let letters_to_start =
            start.map(|start| count_letters(self.rows.get(place.row..start).unwrap_or_default()));
        let head = self.rows.get(place.row).cloned().unwrap_or_default();
        self.truncate(place.row);
        if place.letters_before > 0 {
            let text = first_letters(&head.text, place.letters_before).to_owned();
            self.text_bytes += text.len();
            self.rows.push(Row {
                text,
                wrapped: false,
                ..head
            });
        }
        self.move_top(self.rows.len());
        if let Some(letters) = letters_to_start {
            let letters_in_frame = letters.saturating_sub(place.letters_before);
            self.start = Some(self.top + rows_with_letters(frame, letters_in_frame));
            self.below_prompt = self.below_prompt.min(self.top);
        }
        self.lowest_len = self.lowest_len.min(self.top);
    }

    /// Updates the styles of known rows from a frame that shows them again.
    fn update_styles(&mut self, at: usize, visible: &[Row]) {
        for (known, shown) in self.rows.iter_mut().skip(at).zip(visible) {
            (known.lead, known.second_word) = (shown.lead, shown.second_word);
        }
    }

    pub(super) fn push_gap(&mut self, bytes_max: usize) -> bool {
        let row = |text: &str| Row {
            text: text.to_owned(),
            ..Row::default()
        };
        self.gaps.push(self.rows.len());
        let gap = Row {
            gap: true,
            ..row(GAP)
        };
        let lost = self.append_rows(vec![row(""), gap, row("")], bytes_max);
        self.top = self.rows.len();
        lost
    }

    pub(super) fn truncate(&mut self, len: usize) {
        let gone = self.rows.get(len..).unwrap_or_default();
        self.text_bytes -= gone.iter().map(|row| row.text.len()).sum::<usize>();
        self.rows.truncate(len);
        self.gaps.retain(|at| *at < len);
    }

    /// Forgets the first rows, which belong to former turns.
    pub(super) fn forget_first(&mut self, rows: usize) {
        let rows = rows.min(self.rows.len());
        self.text_bytes -= self
            .rows
            .drain(..rows)
            .map(|row| row.text.len())
            .sum::<usize>();
        self.gaps = self
            .gaps
            .iter()
            .filter_map(|at| at.checked_sub(rows))
            .collect();
        self.start = self.start.map(|at| at.saturating_sub(rows));
        self.below_prompt = self.below_prompt.saturating_sub(rows);
        self.lowest_len = self.lowest_len.saturating_sub(rows);
        self.top = self.top.saturating_sub(rows);
    }

    pub(super) fn append_rows(&mut self, rows: Vec<Row>, bytes_max: usize) -> bool {
        for row in rows {
            if self.held_bytes() > bytes_max {
                return true;
            }
            self.text_bytes += row.text.len();
            self.rows.push(row);
        }
        false
    }
}

/// How many letters and digits the rows hold. Breaking lines for another width does not change it.
fn count_letters(rows: &[Row]) -> usize {
    letters_of(rows).count()
}

/// The beginning of a text that holds its first `count` letters.
fn first_letters(text: &str, count: usize) -> &str {
    let mut places = text.char_indices().filter(|(_, c)| c.is_alphanumeric());
    let end = places.nth(count).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default().trim_end()
}

/// How many rows of a frame it takes to hold `count` letters; all of them if they hold fewer.
fn rows_with_letters(frame: &[Row], count: usize) -> usize {
    (0..=frame.len())
        .find(|rows| count_letters(frame.get(..*rows).unwrap_or_default()) >= count)
        .unwrap_or(frame.len())
}

/// The last printed rows, oldest first.
pub(super) fn last_printed(rows: &[Row]) -> Vec<String> {
    let printed = rows.iter().rev().filter(|row| !row.is_blank());
    let mut last: Vec<String> = printed
        .take(ROWS_BEFORE_MAX)
        .map(|row| row.text.clone())
        .collect();
    last.reverse();
    last
}

/// How many blank rows are at the top.
pub(super) fn leading_blanks(rows: &[Row]) -> usize {
    rows.iter().take_while(|row| row.is_blank()).count()
}

/// How many rows there are up to the last printed one.
pub(super) fn printed_len(rows: &[Row]) -> usize {
    rows.iter()
        .rposition(|row| !row.is_blank())
        .map_or(0, |last| last + 1)
}
