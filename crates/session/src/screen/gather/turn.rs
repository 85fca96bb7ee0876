//! The rows of one turn, frame by frame, on both screens.
//!
//! Invariant: the texts of `rows[..top]` have left the screen and never change again, `rows[top..]`
//! is the transcript as the last frame showed it. On the main screen the emulator says what
//! scrolled off, so `top` is exact; on the alternate screen it is found by comparing frames. When
//! two frames share nothing, a gap stands between them and the turn is incomplete. When the screen
//! starts anew (an erased scrollback, a reset), the rows are taken anew. Each of the two screens
//! has rows of its own: those of the other one wait until it is shown again.
//!
//! Worked example, the alternate screen of a window with three rows of transcript:
//!
//! ```text
//! frame 1     rows            frame 2     rows
//! > hi      ^ > hi            one two       > hi          `one` was half written and is known again;
//! one         one             three       ^ one two       `> hi` has left for good (`^` is `top`)
//!                             four          three
//!                                           four
//! ```

use super::super::Screen;
use super::super::align::{Reflowed, align, is_inside, reflowed};
use super::super::row::Row;

/// How many bytes of rows a turn may gather; what comes later is left out and said so.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many rows from before the turn are remembered to find its beginning again.
const PAST_ROWS: usize = 12;

/// How many frames after a new size of the window the program may take to paint everything anew.
const REPAINT_FRAMES: u8 = 32;

/// The line that stands where rows are missing.
const GAP: &str = "[…]";

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else about the turn"
)]
pub(super) struct Turn {
    /// What was submitted, as far as it is known.
    pub(super) submitted: Submitted,
    /// The rows of the screen when the turn began.
    pub(super) begun_with: Vec<Row>,
    /// The last printed rows from before the turn, newest last.
    pub(super) past: Vec<String>,
    /// The last prompt of the user from before the turn, where it was shown.
    pub(super) prompt: Option<String>,
    /// Whether a row ended the transcript when the turn began.
    pub(super) ended: bool,
    /// The rows of the screen that is shown.
    pub(super) side: Side,
    /// The rows of the other screen.
    pub(super) aside: Option<Side>,
    /// What was gathered before the window changed its size, until the program has painted
    /// everything anew: what it shows meanwhile is laid out for the old size.
    pub(super) before: Option<Before>,
    pub(super) alternate: bool,
    pub(super) resizes: u64,
    pub(super) erasures: u64,
    pub(super) scrolled: u64,
    pub(super) lost: bool,
    /// Whether bytes were missed, and so perhaps the rows by which the turn's beginning is found.
    pub(super) missed: bool,
}

/// What was submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Its text; empty where it is not known.
    pub text: String,
    /// Whether it is a command of the program's own, which need not be answered.
    pub is_command: bool,
}

impl Submitted {
    /// Whether a row may be one of its lines, or a piece of one that the program broke.
    fn has_row(&self, row: &Row) -> bool {
        let shown = row.text.trim();
        !shown.is_empty() && self.text.lines().any(|line| line.contains(shown))
    }
}

/// What the rules of a profile say about a turn and a frame that shares nothing with it.
pub(super) struct Judge<'a> {
    /// Whether nothing was said in the turn so far.
    pub(super) is_silent: &'a dyn Fn(&Turn) -> bool,
    /// Whether a row begins something: a prompt, a message, a tool call.
    pub(super) begins_block: &'a dyn Fn(&Row) -> bool,
    /// Whether a row is a prompt of the user.
    pub(super) is_prompt: &'a dyn Fn(&Row) -> bool,
}

/// The rows as they were before the window changed its size, and for how many more frames they
/// count.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) side: Side,
    pub(super) frames: u8,
}

/// What was gathered from one of the two screens.
#[derive(Debug, Default, Clone)]
pub(super) struct Side {
    pub(super) rows: Vec<Row>,
    pub(super) bytes: usize,
    /// Where rows are missing.
    pub(super) gaps: Vec<usize>,
    /// Where the turn begins in `rows`; none when the screen started anew.
    pub(super) start: Option<usize>,
    /// Where the rows begin below the last prompt from before the turn.
    pub(super) asked: usize,
    pub(super) top: usize,
    /// The smallest number of rows since the turn began. The program painted all rows below it in
    /// the turn.
    pub(super) low: usize,
    /// Rows that stood below the last frame for a moment and may have scrolled away unseen.
    pub(super) tail: Vec<Row>,
    pub(super) epoch: u64,
    /// Whether `rows[..top]` is known to hold something that was said.
    pub(super) spoke: bool,
}

impl Turn {
    /// Whether all of a frame of the alternate screen is known, and more below it.
    pub(super) fn knows(&self, screen: &Screen, region: &[Row]) -> bool {
        let region = region.get(blank_above(region)..).unwrap_or_default();
        let place = || align(&self.side.rows, region, self.side.top);
        let same = screen.alternate() && self.alternate && screen.resizes() == self.resizes;
        same && place().is_some_and(|at| is_inside(&self.side.rows, region, at))
    }

    /// Takes a frame.
    pub(super) fn take_frame(&mut self, screen: &Screen, region: Vec<Row>, judge: &Judge<'_>) {
        let resized = screen.resizes() != self.resizes;
        self.resizes = screen.resizes();
        self.take_back(screen.scrolled_low());
        self.turn_to(screen);
        self.remember(resized);
        let erased = screen.erasures() != self.erasures;
        if erased && region.iter().all(Row::is_blank) {
            return;
        }
        self.erasures = screen.erasures();
        let before = self
            .before
            .take_if(|before| erased || before.frames == 0)
            .filter(|_| erased);
        let resized = resized || before.is_some();
        if let Some(before) = before {
            self.side = before.side;
        }
        if screen.alternate() {
            self.replace_by_comparison(region, resized, judge);
        } else if erased {
            self.replace_by_repaint(screen, region, resized);
        } else {
            let (scrolled, lost) = screen.scrolled_since(self.scrolled);
            let scrolled: Vec<Row> = scrolled.cloned().collect();
            self.scrolled = screen.scrolled_total();
            let room = self.room();
            self.lost |= lost | self.side.replace_exactly(scrolled, region, room);
        }
    }

    pub(super) fn remember(&mut self, resized: bool) {
        match &mut self.before {
            Some(before) if resized => before.frames = REPAINT_FRAMES,
            Some(before) => before.frames = before.frames.saturating_sub(1),
            None if resized => {
                self.before = Some(Before {
                    side: self.side.clone(),
                    frames: REPAINT_FRAMES,
                });
            }
            None => {}
        }
    }

    /// The program erased the main screen and painted its last rows anew, some of which were known.
    pub(super) fn replace_by_repaint(&mut self, screen: &Screen, region: Vec<Row>, resized: bool) {
        let since = screen.erased_scrolled().max(self.scrolled);
        let (above, _) = screen.scrolled_since(self.scrolled);
        let above: Vec<Row> = above.cloned().collect();
        let (scrolled, lost) = screen.scrolled_since(since);
        let (mut page, room): (Vec<Row>, usize) = (scrolled.cloned().collect(), self.room());
        self.scrolled = screen.scrolled_total();
        let (shown, printed) = (region.len(), blank_above(&region));
        page.extend(region);
        let printed = if page.len() == shown { printed } else { 0 };
        let known = page.get(printed..).unwrap_or_default();
        let Some(at) = align(&self.side.rows, known, self.side.top) else {
            self.lost |= lost | (resized && !self.side.rows.is_empty());
            let region = page.split_off(page.len() - shown);
            self.lost |=
                self.side
                    .replace_exactly(if resized { page } else { above }, region, room);
            return;
        };
        if let Some(more) = printed.checked_sub(at) {
            page.drain(..more);
        }
        self.lost |= lost
            | self
                .side
                .repaint(at.saturating_sub(printed), page, resized, room);
        self.side.top = self.side.rows.len().saturating_sub(shown);
    }

    /// Rows that had left the main screen are printed again.
    pub(super) fn take_back(&mut self, scrolled: u64) {
        let again = self.scrolled.saturating_sub(scrolled);
        self.scrolled -= again;
        let main = if self.alternate {
            self.aside.as_mut()
        } else {
            Some(&mut self.side)
        };
        if let Some(main) = main {
            main.top = main
                .top
                .saturating_sub(usize::try_from(again).unwrap_or(usize::MAX));
        }
    }

    /// Takes up the rows of the screen that is shown now, anew when it started anew.
    pub(super) fn turn_to(&mut self, screen: &Screen) {
        if screen.alternate() != self.alternate {
            self.alternate = screen.alternate();
            let known = self.aside.take().unwrap_or(Side {
                epoch: screen.epoch(),
                ..Side::default()
            });
            self.aside = Some(std::mem::replace(&mut self.side, known));
            self.before = None;
        }
        if screen.epoch() != self.side.epoch {
            self.before = None;
            self.side.start_anew();
            self.side.epoch = screen.epoch();
        }
        if !self.alternate {
            self.scrolled = self.scrolled.max(screen.epoch_scrolled());
        }
    }

    /// How many bytes the rows of the screen that is shown may take.
    pub(super) fn room(&self) -> usize {
        GATHERED_BYTES_MAX.saturating_sub(self.aside.as_ref().map_or(0, Side::held_bytes))
    }

    /// Finds where a frame of the alternate screen belongs, and takes it. Blank rows at the top of
    /// a frame may hide what was there: they never replace anything.
    pub(super) fn replace_by_comparison(
        &mut self,
        mut region: Vec<Row>,
        resized: bool,
        judge: &Judge<'_>,
    ) {
        region.drain(..blank_above(&region));
        if region.is_empty() {
            return;
        }
        let top = self.side.top;
        match align(&self.side.rows, &region, top).or_else(|| self.side.align_below(&region)) {
            Some(at) if at < top && is_inside(&self.side.rows, &region, at) => {
                self.side.look_again(at, &region);
                return;
            }
            Some(at) => self.side.move_top(at),
            None if !self.side.spoke && (judge.is_silent)(self) => {
                self.begin_anew(&region, resized, judge);
            }
            None if resized => self.reflow(&region),
            None => {
                let room = self.room();
                self.lost |= self.side.push_gap(room);
                self.side.spoke = true;
            }
        }
        let room = self.room();
        self.lost |= self.side.replace(region, room);
    }

    /// Takes a frame that shares no row with the frames before it, in a turn without a word so far:
    /// all earlier rows are dropped. If the frame begins in the middle of a message, the beginning
    /// was never painted: an answer of a hundred lines may come in one piece.
    fn begin_anew(&mut self, region: &[Row], resized: bool, judge: &Judge<'_>) {
        let was_blank = self.side.rows.iter().all(Row::is_blank);
        self.side.start_anew();
        if resized {
            return;
        }
        // The old rows are not in this frame. So an answer with the same words as the last one is
        // new.
        self.past.clear();
        let Some(first) = region.first() else { return };
        let is_users = first.is_shaded() || self.submitted.has_row(first);
        let begins = (judge.begins_block)(first) || is_users || region.iter().any(judge.is_prompt);
        // On an empty screen the first frame is the beginning, whatever it shows.
        if !begins && !was_blank {
            let room = self.room();
            self.lost |= self.side.push_gap(room);
        }
    }

    /// The window has another width and the program broke its lines anew: rows that scrolled away
    /// meanwhile are told by their letters. What cannot be found again is missing.
    fn reflow(&mut self, region: &[Row]) {
        match reflowed(&self.side.rows, region, self.side.top) {
            Some(place) => self.side.cut_at(place, region),
            None => self.lost |= self.side.rows.len() > self.side.top,
        }
    }
}

impl Side {
    /// What the rows take; an empty one costs memory too.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes + 64 * self.rows.len()
    }

    pub(super) fn start_anew(&mut self) {
        self.truncate(0);
        self.start = None;
        self.tail.clear();
        self.move_top(0);
    }

    /// Rows that are about to be replaced prove nothing about what was said.
    pub(super) fn move_top(&mut self, top: usize) {
        self.spoke &= top >= self.top;
        self.top = top;
    }

    /// Takes exactly what scrolled off and what is shown; says whether some of it had no room.
    pub(super) fn replace_exactly(
        &mut self,
        scrolled: Vec<Row>,
        region: Vec<Row>,
        room: usize,
    ) -> bool {
        self.truncate(self.top);
        let lost = self.append(scrolled, room);
        self.top = self.rows.len();
        lost | self.append(region, room)
    }

    /// Takes a page that was painted anew from this place on, perhaps for a window of another size;
    /// says whether some of it had no room.
    pub(super) fn repaint(
        &mut self,
        at: usize,
        page: Vec<Row>,
        resized: bool,
        room: usize,
    ) -> bool {
        let is_same = |start: &usize| {
            !resized || page.starts_with(self.rows.get(at..*start).unwrap_or_default())
        };
        self.start = self.start.filter(is_same);
        self.truncate(at);
        self.append(page, room)
    }

    /// Takes a frame in the place of the last one; says whether some of it had no room.
    pub(super) fn replace(&mut self, region: Vec<Row>, room: usize) -> bool {
        let end = self.top + region.len();
        let below = self.rows.get(end..).unwrap_or_default();
        if !below.is_empty() {
            self.tail = below.to_vec();
        } else if self.rows.len() < end {
            self.tail.clear();
        }
        self.truncate(self.top);
        let lost = self.append(region, room);
        self.low = self.low.min(self.rows.len());
        lost
    }

    /// Finds a frame in the rows and those that stood below them before; where it begins among the
    /// latter, they have scrolled away and are kept.
    fn align_below(&mut self, frame: &[Row]) -> Option<usize> {
        if self.tail.is_empty() {
            return None;
        }
        let known: Vec<Row> = self.rows.iter().chain(&self.tail).cloned().collect();
        let at = align(&known, frame, self.top)?;
        for row in std::mem::take(&mut self.tail) {
            self.bytes += row.text.len();
            self.rows.push(row);
        }
        Some(at)
    }

    /// Keeps the rows before this place, and the head of the row that holds it; the frame follows.
    fn cut_at(&mut self, place: Reflowed, frame: &[Row]) {
        let is_letter = |c: &char| c.is_alphanumeric();
        let letters = |rows: &[Row]| {
            rows.iter()
                .flat_map(|row| row.text.chars())
                .filter(is_letter)
                .count()
        };
        // Where the turn begins, in letters of the frame.
        let until = self.start.filter(|start| *start > place.row);
        let before =
            until.map(|start| letters(self.rows.get(place.row..start).unwrap_or_default()));
        let head = self.rows.get(place.row).cloned().unwrap_or_default();
        self.truncate(place.row);
        if place.letters_before > 0 {
            let mut places = head.text.char_indices().filter(|(_, c)| is_letter(c));
            let end = places
                .nth(place.letters_before)
                .map_or(head.text.len(), |(at, _)| at);
            let text = head
                .text
                .get(..end)
                .unwrap_or_default()
                .trim_end()
                .to_owned();
            self.bytes += text.len();
            self.rows.push(Row {
                text,
                wrapped: false,
                ..head
            });
        }
        self.move_top(self.rows.len());
        if let Some(before) = before.map(|before| before.saturating_sub(place.letters_before)) {
            let rows = (0..=frame.len())
                .find(|rows| letters(frame.get(..*rows).unwrap_or_default()) >= before);
            self.start = Some(self.top + rows.unwrap_or(frame.len()));
            self.asked = self.asked.min(self.top);
        }
        self.low = self.low.min(self.top);
    }

    /// A frame shows the rows from this place on again: what counts is how they look now.
    fn look_again(&mut self, at: usize, region: &[Row]) {
        for (known, shown) in self.rows.iter_mut().skip(at).zip(region) {
            (known.lead, known.word) = (shown.lead, shown.word);
        }
    }

    pub(super) fn push_gap(&mut self, room: usize) -> bool {
        let row = |text: &str| Row {
            text: text.to_owned(),
            ..Row::default()
        };
        self.gaps.push(self.rows.len());
        let gap = Row {
            gap: true,
            ..row(GAP)
        };
        let lost = self.append(vec![row(""), gap, row("")], room);
        self.top = self.rows.len();
        lost
    }

    pub(super) fn truncate(&mut self, len: usize) {
        let gone = self.rows.get(len..).unwrap_or_default();
        self.bytes -= gone.iter().map(|row| row.text.len()).sum::<usize>();
        self.rows.truncate(len);
        self.gaps.retain(|at| *at < len);
    }

    /// Forgets rows at the beginning that belong to former turns.
    pub(super) fn forget(&mut self, rows: usize) {
        let rows = rows.min(self.rows.len());
        self.bytes -= self
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
        self.asked = self.asked.saturating_sub(rows);
        self.low = self.low.saturating_sub(rows);
        self.top = self.top.saturating_sub(rows);
    }

    pub(super) fn append(&mut self, rows: Vec<Row>, room: usize) -> bool {
        for row in rows {
            if self.held_bytes() > room {
                return true;
            }
            self.bytes += row.text.len();
            self.rows.push(row);
        }
        false
    }
}

/// The last printed ones of the rows before a turn.
pub(super) fn past(rows: &[Row]) -> Vec<String> {
    let printed = rows.iter().rev().filter(|row| !row.is_blank());
    let mut past: Vec<String> = printed
        .take(PAST_ROWS)
        .map(|row| row.text.clone())
        .collect();
    past.reverse();
    past
}

/// How many blank rows stand at the top.
pub(super) fn blank_above(rows: &[Row]) -> usize {
    rows.iter().take_while(|row| row.is_blank()).count()
}

pub(super) fn trimmed(rows: &[Row]) -> usize {
    rows.iter()
        .rposition(|row| !row.is_blank())
        .map_or(0, |last| last + 1)
}
