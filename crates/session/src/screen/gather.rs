//! Gathers the text that the assistant says in a turn, from the frames of a screen.
//!
//! Three steps. `cut_transcript` removes everything around the transcript from a frame: the input
//! area, floating hints, pinned headers. [`TurnRows`] keeps the rows, each once and in order. At
//! the end `turn_start` finds where the turn begins in those rows, and [`extract`] reads the text
//! from there on. Where rows may be missing, the text is marked incomplete; nothing here fails.
//!
//! Worked example of `cut_transcript`, a claude-like profile with `end = '^─{20,}'`, `floats =
//! '^\s{20,}\S'` and `user = '^> '`:
//!
//! ```text
//! row  screen                      what becomes of it
//!  0   > Name a colour.            the user's prompt: kept, `extract` leaves it out
//!  1   ● Red.                      kept
//!  2                               blank at the end of the transcript: removed
//!  3              new version 2.1  a float right above the end: removed
//!  4   ──────────────────────────  the first `end` row: the transcript ends above it
//!  5   >                           the input row
//! ```

mod turn_rows;

use super::extract::{self, Ending, Extracted};
use super::row::{Colour, Row, letters};
use super::rules::{Begin, CompiledMark, CompiledRules, RowContext};
use super::{RulesError, Screen, Size, TextRules};
use std::collections::HashSet;
pub use turn_rows::{GATHERED_BYTES_MAX, Submitted};
use turn_rows::{ProfileQueries, ScreenRows, TurnRows, last_printed, leading_blanks, printed_len};

/// How many cells before the right edge a row may end and still reach it.
const RIGHT_MARGIN: usize = 3;

/// How many rows of former turns stay when a turn is handed over: a window that grows shows some
/// of them again.
const FORMER_ROWS_KEPT: usize = 1000;

/// How many letters two lines must share to count as the same one.
const REPEATED_LETTERS: usize = 24;

/// The text that the assistant said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The assistant's messages, separated by one blank line.
    pub text: String,
    /// Whether rows are missing.
    pub incomplete: bool,
    /// Whether the turn was followed from its beginning, and the rules know what its rows are. If
    /// not, an empty text does not mean that nothing was said.
    pub followed: bool,
}

/// Gathers the text of a turn from the frames of a screen.
#[derive(Debug)]
pub struct Gatherer {
    rules: CompiledRules,
    turn: Option<TurnRows>,
    /// The foreground in front of the user's prompts, as last seen.
    prompt_colour: Option<Colour>,
    /// Whether a row with a colour was ever seen.
    colour_seen: bool,
    /// Whether the program shows no colours, so that rules must not require any.
    is_plain: bool,
    width: Option<SeenWidth>,
    /// The end of the transcript, for a caller that knows it without rules.
    forced_end: Option<usize>,
}

/// The width of the transcript, as last seen in a window of this size.
#[derive(Debug, Clone, Copy)]
struct SeenWidth {
    window: Size,
    cols: u16,
}

/// The transcript's rows in one frame.
#[derive(Debug)]
struct Transcript {
    rows: Vec<Row>,
    /// Whether a row below ends it.
    has_end: bool,
    /// Whether something other than the input row is below its end.
    is_covered: bool,
}

/// Where the transcript ends in a frame.
#[derive(Debug, Clone, Copy)]
struct TranscriptEnd {
    row: Option<usize>,
    /// Whether an `end_alone` row ends it: the program is in its mode without a box.
    is_flat: bool,
    is_covered: bool,
}

impl Gatherer {
    /// Creates a gatherer with a profile's rules.
    pub fn new(rules: &TextRules) -> Result<Self, RulesError> {
        let rules = CompiledRules::new(rules)?;
        Ok(Self {
            rules,
            turn: None,
            prompt_colour: None,
            colour_seen: false,
            is_plain: false,
            width: None,
            forced_end: None,
        })
    }

    /// Ends the transcript of the next frames above this row, whatever the rules say.
    pub fn set_end(&mut self, end: Option<usize>) {
        self.forced_end = end;
    }

    /// Begins a turn: the rows that are visible now belong to earlier turns. Call it at the submit,
    /// before the output that follows it.
    pub fn begin_turn(&mut self, screen: &Screen) {
        let mut visible = self.read_rows(screen);
        let transcript = self.cut_transcript(screen, visible.clone());
        let rows = match self.rules.begin {
            Begin::Transcript => transcript.rows,
            Begin::Screen => {
                visible.truncate(printed_len(&visible));
                visible
            }
        };
        let start = rows.len();
        let last_prompt = self.last_prompt(&rows);
        let prompt = last_prompt.and_then(|at| Some(rows.get(at)?.text.clone()));
        // Frames of the alternate screen are compared without their leading blank rows, so those
        // count as gone.
        let top = if screen.is_alternate() {
            leading_blanks(&rows)
        } else {
            0
        };
        self.turn = Some(TurnRows {
            submitted: Submitted::default(),
            begun_with: rows.clone(),
            rows_before: last_printed(&rows),
            prompt,
            had_end: transcript.has_end,
            shown: ScreenRows {
                text_bytes: rows.iter().map(|row| row.text.len()).sum(),
                rows,
                start: Some(start),
                below_prompt: last_prompt.map_or(0, |at| at + 1),
                top,
                lowest_len: start,
                epoch: screen.epoch(),
                ..ScreenRows::default()
            },
            other: None,
            before_resize: None,
            alternate: screen.is_alternate(),
            resizes: screen.resizes(),
            erasures: screen.erasures(),
            scrolled: screen.scrolled_total(),
            rows_lost: false,
            bytes_missed: false,
            began_blank: false,
            starts_anew: false,
            was_resized: false,
        });
    }

    /// Sets the submitted text; call it after [`Gatherer::begin_turn`].
    pub fn set_submitted(&mut self, submitted: Submitted) {
        if let Some(turn) = &mut self.turn {
            turn.submitted = submitted;
        }
    }

    /// Applies a whole frame. Call it from [`Screen::feed`]; outside a turn it does nothing.
    pub fn apply_frame(&mut self, screen: &Screen) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        let rows = self.read_rows(screen);
        let transcript = self.cut_transcript(screen, rows);
        // A frame without an end, where the transcript had one, shows something else over it: a
        // tall dialog or another view. Its rows are not the transcript's.
        let has_end_rule = !self.rules.end.is_empty() || !self.rules.end_last.is_empty();
        let is_replaced =
            screen.is_alternate() && turn.had_end && !transcript.has_end && has_end_rule;
        let is_hidden =
            is_replaced || (transcript.is_covered && turn.contains_frame(screen, &transcript.rows));
        if !is_hidden {
            let queries = ProfileQueries {
                is_silent: &|turn: &TurnRows| {
                    self.read_turn(turn, Ending::Complete).text.is_empty()
                },
                begins_block: &|row: &Row| self.begins_block(row),
                is_prompt: &|row: &Row| self.is_prompt(row),
            };
            turn.apply_frame(screen, transcript.rows, &queries);
        }
        self.turn = Some(turn);
    }

    /// Notes a gap in the bytes (the reader lagged and dropped some): the turn is incomplete.
    pub fn note_gap(&mut self) {
        if let Some(turn) = &mut self.turn {
            (turn.rows_lost, turn.bytes_missed) = (true, true);
            turn.push_gap();
        }
    }

    /// The text since [`Gatherer::begin_turn`].
    pub fn text(&self, ending: Ending) -> Gathered {
        match &self.turn {
            Some(turn) => self.read_turn(turn, ending),
            None => Gathered {
                text: String::new(),
                incomplete: false,
                followed: true,
            },
        }
    }

    fn read_turn(&self, turn: &TurnRows, ending: Ending) -> Gathered {
        let shown = &turn.shown;
        let start = self.turn_start(turn, &shown.rows);
        let start = self.own_prompt(turn, start).unwrap_or(start);
        let Extracted {
            text,
            has_unclaimed_rows,
        } = self.extract_from(turn, start, ending);
        let text = if text.is_empty() {
            self.find_text_elsewhere(turn, start, ending)
        } else {
            text
        };
        let has_gap = shown.gaps.iter().any(|at| *at >= start);
        let rows = shown.rows.get(start..).unwrap_or_default();
        let has_unfinished = rows.iter().any(|row| self.is_unfinished(row));
        let has_prompt = rows.iter().any(|row| self.is_prompt(row));
        let misses_beginning = !text.is_empty() && self.misses_beginning(turn);
        // Rows of a frame that was half laid out for another width may stand twice.
        let may_repeat_rows = turn.was_resized && has_line_twice(&text);
        let misses_rows = turn.rows_lost || has_gap;
        Gathered {
            text,
            incomplete: misses_rows || has_unfinished || misses_beginning || may_repeat_rows,
            followed: !misses_rows
                && !has_unclaimed_rows
                && (has_prompt || self.rules.user.is_empty()),
        }
    }

    /// The text of a turn that has none below its beginning: the beginning may be another row.
    fn find_text_elsewhere(&self, turn: &TurnRows, start: usize, ending: Ending) -> String {
        let shown = &turn.shown;
        let text_from = |from: usize| self.extract_from(turn, from, ending).text;
        let mut text = String::new();
        // The beginning is a guess: the text below a new prompt is better than none.
        if shown.start.is_none() {
            text = self.new_prompt(turn).map_or(text, text_from);
        }
        // The program painted the same rows again in the same place, so it said them again. A
        // command may repaint the screen without saying anything, and so may a turn that was
        // interrupted: then the rows are those of the last turn.
        let was_repainted = shown.start.is_some() && shown.lowest_len < start;
        let may_repeat = !turn.submitted.is_command && ending != Ending::Interrupted;
        if was_repainted && may_repeat {
            text = text_from(shown.lowest_len);
        }
        // The rows that mark the beginning may be among the missing bytes.
        if text.is_empty() && turn.bytes_missed {
            text = text_from(0);
        }
        text
    }

    /// Reads the messages in the rows of a turn from an index on.
    fn extract_from(&self, turn: &TurnRows, from: usize, ending: Ending) -> Extracted {
        let rows = turn.shown.rows.get(from..).unwrap_or_default();
        self.extract_rows(rows, ending, &turn.submitted.text)
    }

    fn extract_rows(&self, rows: &[Row], ending: Ending, submitted: &str) -> Extracted {
        extract::extract_text(&self.rules, rows, self.row_context(), ending, submitted)
    }

    /// The text below the last prompt, where the user submitted the same text as before. A page of
    /// equal turns looks the same after it has scrolled by one of them, so nothing on it is new.
    /// Only the alternate screen needs this: the main screen reports what scrolled.
    pub fn answer_again(&self, asked: &str) -> String {
        self.find_answer_again(asked).unwrap_or_default()
    }

    fn find_answer_again(&self, asked: &str) -> Option<String> {
        let asked = asked.trim();
        let turn = self.turn.as_ref().filter(|turn| turn.alternate)?;
        let at = self.last_prompt(&turn.shown.rows)?;
        let rows = turn.shown.rows.get(at..)?;
        let prompt = &rows.first()?.text;
        let is_same = prompt.ends_with(asked) && turn.prompt.as_ref() == Some(prompt);
        if !is_same || asked.is_empty() {
            return None;
        }
        Some(self.extract_rows(rows, Ending::Complete, asked).text)
    }

    fn is_unfinished(&self, row: &Row) -> bool {
        matches_any(&self.rules.unfinished, row, self.row_context())
    }

    /// Whether words are still to be painted on the screen.
    pub fn awaits_words(&self) -> bool {
        let visible = self
            .turn
            .as_ref()
            .and_then(|turn| turn.shown.rows.get(turn.shown.top..));
        visible
            .unwrap_or_default()
            .iter()
            .any(|row| self.is_unfinished(row))
    }

    /// Ends the turn at the prompt of the next one, returns its text, and goes on with the next
    /// turn. Returns `None`, and changes nothing, when no such prompt is visible.
    pub fn hand_over(&mut self, ending: Ending) -> Option<Gathered> {
        let mut turn = self.turn.take()?;
        let until = self.last_prompt(&turn.shown.rows).unwrap_or(0);
        let before = turn.shown.rows.get(..until).unwrap_or_default();
        let start = self.turn_start(&turn, before);
        let rows = before.get(start..).unwrap_or_default();
        let text = self.extract_rows(rows, ending, &turn.submitted.text).text;
        if text.is_empty() {
            self.turn = Some(turn);
            return None;
        }
        let has_gap = turn.shown.gaps.iter().any(|at| (start..until).contains(at));
        let incomplete = std::mem::take(&mut turn.rows_lost) || has_gap;
        turn.begin_at(until);
        // Rows that are still visible must stay, however many there are.
        let former = until.min(turn.shown.top);
        turn.shown
            .forget_first(former.saturating_sub(FORMER_ROWS_KEPT));
        self.turn = Some(turn);
        Some(Gathered {
            text,
            incomplete,
            followed: true,
        })
    }

    /// Whether a turn is being gathered.
    pub fn is_open(&self) -> bool {
        self.turn.is_some()
    }

    /// Ends the turn and forgets its rows.
    pub fn end_turn(&mut self) {
        self.turn = None;
    }

    /// Reads the rows of the screen, only as wide as the transcript.
    fn read_rows(&mut self, screen: &Screen) -> Vec<Row> {
        let rows = screen.rows();
        let cols = self.transcript_width(screen.size(), &rows);
        let last_col = cols.saturating_sub(1);
        let cols = cols - u16::from(self.has_scrollbar(screen, last_col, &rows));
        // Reading rows is expensive, so they are read again only when something must be cut off.
        if cols < screen.size().cols {
            screen.rows_to(cols)
        } else {
            rows
        }
    }

    /// Whether a column of the alternate screen holds a scroll bar. The edge of the input area may
    /// end with the same character.
    fn has_scrollbar(&self, screen: &Screen, col: u16, rows: &[Row]) -> bool {
        let is_bar = |cell: Option<char>| cell.is_some_and(|c| self.rules.scrollbar.contains(c));
        screen.is_alternate()
            && screen
                .column(col)
                .zip(rows)
                .any(|(cell, row)| is_bar(cell) && self.edge_width(row).is_none())
    }

    /// The width of the transcript, which is that of the input area's edge. A dialog may replace
    /// the edge for a while, so the last width seen in this window counts.
    fn transcript_width(&mut self, size: Size, rows: &[Row]) -> u16 {
        let edge = rows.iter().rev().find_map(|row| self.edge_width(row));
        let seen = edge.map(|cols| SeenWidth { window: size, cols });
        self.width = seen.or(self.width).filter(|width| width.window == size);
        self.width
            .map_or(size.cols, |width| width.cols.min(size.cols))
    }

    /// The column at which the edge of the input area ends, if this row is one.
    fn edge_width(&self, row: &Row) -> Option<u16> {
        let end = self.rules.edge.as_ref()?.find(&row.text)?.end();
        u16::try_from(row.text.get(..end)?.chars().count()).ok()
    }

    /// Cuts the transcript out of a frame: the rows without the input area, the floats above it and
    /// a pinned header. See the example at the top of this file.
    fn cut_transcript(&mut self, screen: &Screen, mut rows: Vec<Row>) -> Transcript {
        self.colour_seen |= rows.iter().any(Row::is_coloured);
        let is_plain = !self.colour_seen;
        let end = self.find_end(&rows, usize::from(screen.cursor().row), is_plain);
        rows.truncate(end.row.unwrap_or(rows.len()));
        if end.row.is_some() {
            self.remove_floats(screen, &mut rows);
        }
        // `plain` is for programs that paint their boxes without colours. In the mode without a box
        // the rules still require them.
        let context = RowContext {
            plain: is_plain && !end.is_flat,
            ..RowContext::default()
        };
        let is_any = |marks: &[CompiledMark], row: &Row| matches_any(marks, row, context);
        // A dropped row may float above the input area. It would stay in place while the rows above
        // it scroll, and the comparison of frames would conclude that nothing scrolled.
        let is_kept = |row: &Row| !row.is_blank() && !is_any(&self.rules.drop, row);
        rows.truncate(rows.iter().rposition(is_kept).map_or(0, |last| last + 1));
        // The prompt's colour is read before the header goes: a pinned copy of the prompt has it.
        let prompt = rows.iter().rfind(|row| is_any(&self.rules.user, row));
        let prompt_colour = prompt.and_then(Row::distinct_lead_colour);
        if screen.is_alternate() {
            let is_unpinned = |row: &Row| !is_any(&self.rules.pinned, row);
            let header = rows.iter().position(is_unpinned).unwrap_or(rows.len());
            rows.drain(..header);
        }
        self.prompt_colour = prompt_colour.or(self.prompt_colour);
        self.is_plain = context.plain;
        Transcript {
            rows,
            has_end: end.row.is_some(),
            is_covered: end.is_covered,
        }
    }

    /// Finds the row above which the transcript ends.
    fn find_end(&self, rows: &[Row], cursor: usize, is_plain: bool) -> TranscriptEnd {
        let last_marked = |marks| marked_rows(marks, rows, cursor, is_plain).next_back();
        let first_end = marked_rows(&self.rules.end, rows, cursor, is_plain).next();
        // An `end` row below means that the program shows its box, and the `end_alone` row above it
        // is the assistant's.
        let alone = last_marked(&self.rules.end_alone)
            .filter(|at| Some(*at) > last_marked(&self.rules.end));
        let end_last = last_marked(&self.rules.end_last);
        let found = alone.or(first_end).into_iter().chain(end_last).min();
        TranscriptEnd {
            row: self.forced_end.or(found),
            is_flat: alone.is_some(),
            is_covered: alone.is_none()
                && first_end
                    .and_then(|at| rows.get(at + 1))
                    .is_some_and(|row| self.covers_input(row, is_plain)),
        }
    }

    /// Whether a row stands in the place of the input row and is another one.
    fn covers_input(&self, row: &Row, is_plain: bool) -> bool {
        let context = RowContext {
            plain: is_plain,
            ..RowContext::default()
        };
        !self.rules.input.is_empty() && !matches_any(&self.rules.input, row, context)
    }

    fn remove_floats(&self, screen: &Screen, rows: &mut Vec<Row>) {
        let cols = usize::from(screen.size().cols);
        let is_float = |row: &Row| {
            let context = RowContext {
                right: row.text.chars().count() + RIGHT_MARGIN >= cols,
                ..RowContext::default()
            };
            matches_any(&self.rules.floats, row, context)
        };
        while rows.last().is_some_and(is_float) {
            rows.pop();
        }
    }

    /// The row at which the turn begins: where the transcript ended at the submit, unless rows
    /// there are gone (a panel above the input area) and the prompt of the turn took their place.
    fn turn_start(&self, turn: &TurnRows, rows: &[Row]) -> usize {
        let Some(mut start) = turn.shown.start else {
            return self.find_start(turn, rows).unwrap_or(0);
        };
        // Earlier rows were painted over: a page of equal rows scrolled by, and the answer took
        // their place.
        let repainted = turn.shown.lowest_len..start;
        if rows.get(repainted.clone()) != turn.begun_with.get(repainted) {
            start = start.min(turn.shown.lowest_len);
        }
        let below_prompt = turn.shown.below_prompt;
        let above = rows
            .get(below_prompt..start.min(rows.len()))
            .unwrap_or_default();
        let prompt = above.iter().position(|row| self.is_prompt(row));
        prompt.map_or(start, |at| below_prompt + at)
    }

    fn is_prompt(&self, row: &Row) -> bool {
        matches_any(&self.rules.user, row, self.row_context())
    }

    /// Whether a row begins a prompt, a message, a tool call or a notice. Where messages have no
    /// mark, a tool call or a notice may stand in the middle of one, so only a prompt counts.
    fn begins_block(&self, row: &Row) -> bool {
        let rules = &self.rules;
        if rules.message.is_empty() && !rules.user.is_empty() {
            return self.is_prompt(row);
        }
        [&rules.user, &rules.message, &rules.chrome, &rules.drop]
            .into_iter()
            .any(|marks| matches_any(marks, row, self.row_context()))
    }

    /// Finds the beginning of the turn in rows that were painted anew: below the place where the
    /// rows from before the turn agree best, read upwards; else at the last prompt. `None` where
    /// neither is among the rows.
    fn find_start(&self, turn: &TurnRows, rows: &[Row]) -> Option<usize> {
        let mut printed = Vec::new();
        let (mut most_agreeing, mut start) = (0, None);
        for (at, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_blank()) {
            printed.push(row.text.as_str());
            let agreeing = common_suffix_len(&printed, &turn.rows_before);
            // Of equal places the lowest counts: the same rows may also be further up.
            if agreeing >= most_agreeing {
                (most_agreeing, start) = (agreeing, Some(at + 1));
            }
        }
        // Three rows are enough evidence; fewer only where there were fewer.
        let agreeing_min = turn.rows_before.len().clamp(1, 3);
        start
            .filter(|_| most_agreeing >= agreeing_min)
            .or_else(|| self.last_prompt(rows))
    }

    /// Whether the rows begin somewhere in the middle of the turn: they were painted anew, and
    /// nothing among them shows where the turn begins.
    fn misses_beginning(&self, turn: &TurnRows) -> bool {
        let rows = &turn.shown.rows;
        let is_known = turn.shown.start.is_some()
            || turn.began_blank
            || self.find_start(turn, rows).is_some()
            || rows.iter().any(|row| turn.submitted.has_row(row));
        // Without a mark for prompts, no row could show it.
        !self.rules.user.is_empty() && !is_known
    }

    /// The row from `start` on that shows the submitted text. Rows above it are older: a tall draft
    /// had pushed them off the screen, and they came back when it was submitted.
    fn own_prompt(&self, turn: &TurnRows, start: usize) -> Option<usize> {
        let rows = turn.shown.rows.get(start..)?;
        let is_own = |row: &Row| turn.submitted.begins_with(row) && self.is_prompt(row);
        rows.iter().position(is_own).map(|at| start + at)
    }

    /// The last prompt, if it is not the one from before the turn.
    fn new_prompt(&self, turn: &TurnRows) -> Option<usize> {
        let at = self.last_prompt(&turn.shown.rows)?;
        (turn.prompt.as_ref() != Some(&turn.shown.rows.get(at)?.text)).then_some(at)
    }

    fn row_context(&self) -> RowContext {
        RowContext {
            prompt_colour: self.prompt_colour,
            plain: self.is_plain,
            ..RowContext::default()
        }
    }

    fn last_prompt(&self, rows: &[Row]) -> Option<usize> {
        rows.iter().rposition(|row| self.is_prompt(row))
    }
}

/// Whether two lines of a text begin with the same letters.
fn has_line_twice(text: &str) -> bool {
    let mut seen = HashSet::new();
    text.lines()
        .map(|line| letters(line).take(REPEATED_LETTERS).collect::<String>())
        .filter(|letters| letters.chars().count() == REPEATED_LETTERS)
        .any(|letters| !seen.insert(letters))
}

/// How many texts at the end of both lists are equal.
fn common_suffix_len(texts: &[&str], others: &[String]) -> usize {
    let pairs = texts.iter().rev().zip(others.iter().rev());
    pairs.take_while(|(text, other)| *text == other).count()
}

/// The indices of the rows that one of the marks matches.
fn marked_rows<'a>(
    marks: &'a [CompiledMark],
    rows: &'a [Row],
    cursor: usize,
    is_plain: bool,
) -> impl DoubleEndedIterator<Item = usize> + 'a {
    let is_marked = move |at: &usize| {
        let context = RowContext {
            cursor: *at == cursor,
            plain: is_plain,
            ..RowContext::default()
        };
        rows.get(*at)
            .is_some_and(|row| matches_any(marks, row, context))
    };
    (0..rows.len()).filter(is_marked)
}

fn matches_any(marks: &[CompiledMark], row: &Row, context: RowContext) -> bool {
    marks.iter().any(|mark| mark.matches(row, context))
}

#[cfg(test)]
mod tests {
    use super::super::{Look, Mark};
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_long_chain_of_turns_that_are_handed_over_holds_the_rows_of_the_last_ones() {
        let mark = |row: &str| Mark {
            row: row.to_owned(),
            indent: 2,
            look: Look::default(),
        };
        let rules = TextRules {
            user: vec![mark("^> ")],
            message: vec![mark("^\\* ")],
            ..TextRules::default()
        };
        let mut screen = Screen::new(Size { cols: 20, rows: 4 });
        let mut gatherer = Gatherer::new(&rules).unwrap();
        gatherer.begin_turn(&screen);
        screen.feed(b"> 0\r\n", |screen| gatherer.apply_frame(screen));
        for turn in 0..40 {
            let said: Vec<String> = (0..100).map(|line| format!("{turn} {line}")).collect();
            let page = format!("* {}\r\n> {}\r\n", said.join("\r\n  "), turn + 1);
            screen.feed(page.as_bytes(), |screen| gatherer.apply_frame(screen));
            gatherer.apply_frame(&screen);
            let handed = Gathered {
                text: said.join("\n"),
                incomplete: false,
                followed: true,
            };
            assert_eq!(
                gatherer.hand_over(Ending::Complete),
                Some(handed),
                "turn {turn}"
            );
            let held = &gatherer.turn.as_ref().unwrap().shown;
            assert!(
                held.rows.len() < FORMER_ROWS_KEPT + 200,
                "{} rows after turn {turn}",
                held.rows.len()
            );
            let bytes: usize = held.rows.iter().map(|row| row.text.len()).sum();
            assert_eq!(held.text_bytes, bytes);
        }
    }

    #[test]
    fn what_was_said_is_read_once_however_many_frames_share_nothing() {
        let mut screen = Screen::new(Size { cols: 20, rows: 4 });
        screen.feed(b"\x1b[?1049h", |_| {});
        let mut gatherer = Gatherer::new(&TextRules::default()).unwrap();
        gatherer.begin_turn(&screen);
        let mut turn = gatherer.turn.take().unwrap();
        let asked = Cell::new(0);
        for frame in 0..100 {
            let row = |at: usize| Row {
                text: format!("{frame} {at}"),
                ..Row::default()
            };
            let queries = ProfileQueries {
                is_silent: &|turn: &TurnRows| {
                    asked.set(asked.get() + 1);
                    turn.shown.rows.is_empty()
                },
                begins_block: &|_: &Row| true,
                is_prompt: &|_: &Row| false,
            };
            turn.apply_frame(&screen, (0..4).map(row).collect(), &queries);
        }
        assert_eq!(turn.shown.gaps.len(), 99);
        assert_eq!(
            asked.get(),
            2,
            "once while it was silent, once when it was not"
        );
    }
}
