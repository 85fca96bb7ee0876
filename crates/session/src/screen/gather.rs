//! Gathering: what the assistant said in a turn, from the rows of its frames.
//!
//! [`Turn`] keeps the rows, each once and in order; here the transcript is told from what stands around
//! it, the beginning of the turn is found in the rows, and its text is read. Where the screen
//! started anew, the turn begins where the rows that were there before it end. The text is that of
//! the screen that is shown at the end.

mod turn;

use super::extract::{self, Ending};
use super::row::{Colour, Row};
use super::rules::{Begin, Compiled, Marker, Scene};
use super::{RulesError, Screen, Size, TextRules};
pub use turn::{GATHERED_BYTES_MAX, Submitted};
use turn::{Judge, Side, Turn, blank_above, past, trimmed};

/// How near to the right edge a row reaches it.
const RIGHT_MARGIN: usize = 3;

/// Rows of former turns that stay when a turn is handed over: a window that grows shows some of
/// them again.
const FORMER_ROWS_KEPT: usize = 1000;

/// What the assistant said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The assistant's messages, separated by one blank line.
    pub text: String,
    /// Whether rows are missing.
    pub incomplete: bool,
    /// Whether the turn was followed from its beginning. Where it was not, an empty text does not
    /// mean that nothing was said.
    pub followed: bool,
}

/// Gathers the text of a turn from the frames of a screen.
#[derive(Debug)]
pub struct Gatherer {
    rules: Compiled,
    turn: Option<Turn>,
    /// The foreground in front of the user's prompts, as last seen.
    quiet: Option<Colour>,
    /// Whether a row with a colour was seen.
    colours: bool,
    /// Whether the program paints boxes without any colour.
    plain: bool,
    /// How wide the transcript is in a window of this size, as last seen.
    width: Option<(Size, u16)>,
    /// Where the transcript ends, for a caller that knows it without rules.
    end: Option<usize>,
}

impl Gatherer {
    /// A gatherer with a profile's rules.
    pub fn new(rules: &TextRules) -> Result<Self, RulesError> {
        let rules = Compiled::new(rules)?;
        Ok(Self {
            rules,
            turn: None,
            quiet: None,
            colours: false,
            plain: false,
            width: None,
            end: None,
        })
    }

    /// Ends the transcript of the next frames above this row, whatever the rules say.
    pub fn set_end(&mut self, end: Option<usize>) {
        self.end = end;
    }

    /// Begins a turn: what is on the screen now belongs to the past. Call it at the submit, before
    /// the output that follows it.
    pub fn begin(&mut self, screen: &Screen) {
        let visible = self.rows(screen);
        let (region, shown) = self.region(screen, visible.clone());
        let ended = shown.ended;
        let start = match self.rules.begin {
            Begin::Transcript => region.len(),
            Begin::Screen => trimmed(&visible),
        };
        let mut rows = if self.rules.begin == Begin::Screen {
            visible
        } else {
            region
        };
        rows.truncate(start);
        let past = past(&rows);
        let asked = self.last_prompt(&rows).map_or(0, |at| at + 1);
        let bytes = rows.iter().map(|row| row.text.len()).sum();
        let prompt = self
            .last_prompt(&rows)
            .and_then(|at| Some(rows.get(at)?.text.clone()));
        let top = if screen.alternate() {
            blank_above(&rows)
        } else {
            0
        };
        let epoch = screen.epoch();
        let begun_with = rows.clone();
        let side = Side {
            rows,
            bytes,
            start: Some(start),
            asked,
            top,
            low: start,
            epoch,
            ..Side::default()
        };
        self.turn = Some(Turn {
            submitted: Submitted::default(),
            begun_with,
            past,
            prompt,
            ended,
            side,
            aside: None,
            before: None,
            alternate: screen.alternate(),
            resizes: screen.resizes(),
            erasures: screen.erasures(),
            scrolled: screen.scrolled_total(),
            lost: false,
            missed: false,
        });
    }

    /// Says what was submitted; call it after [`Gatherer::begin`].
    pub fn submitted(&mut self, submitted: Submitted) {
        if let Some(turn) = &mut self.turn {
            turn.submitted = submitted;
        }
    }

    /// Takes a whole frame. Call it from [`Screen::feed`]; outside a turn it does nothing.
    pub fn frame(&mut self, screen: &Screen) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        let rows = self.rows(screen);
        let (region, shown) = self.region(screen, rows);
        // What has no end, where the transcript had one, covers it: a tall dialog, a view of
        // something else.
        let has_end = !self.rules.end.is_empty() || !self.rules.end_last.is_empty();
        let covered = screen.alternate() && turn.ended && !shown.ended && has_end;
        let hidden = covered || (shown.covered && turn.knows(screen, &region));
        if !hidden {
            let judge = Judge {
                is_silent: &|turn: &Turn| self.read(turn, Ending::Complete).text.is_empty(),
                begins_block: &|row: &Row| self.begins_block(row),
                is_prompt: &|row: &Row| self.is_prompt(row),
            };
            turn.take_frame(screen, region, &judge);
        }
        self.turn = Some(turn);
    }

    /// The bytes had a gap (the reader lagged and dropped some): the turn is incomplete.
    pub fn gap(&mut self) {
        if let Some(turn) = &mut self.turn {
            (turn.lost, turn.missed) = (true, true);
            let room = turn.room();
            turn.lost |= turn.side.push_gap(room);
        }
    }

    /// What was said since [`Gatherer::begin`].
    pub fn text(&self, ending: Ending) -> Gathered {
        let nothing = Gathered {
            text: String::new(),
            incomplete: false,
            followed: true,
        };
        self.turn
            .as_ref()
            .map_or(nothing, |turn| self.read(turn, ending))
    }

    fn read(&self, turn: &Turn, ending: Ending) -> Gathered {
        let side = &turn.side;
        let start = self.start(turn, &side.rows);
        let said = |from: usize| {
            let rows = side.rows.get(from..).unwrap_or_default();
            extract::text(&self.rules, rows, self.eye(), ending)
        };
        let mut text = said(start);
        // Where the beginning is a guess, what is shown is better than nothing.
        if text.is_empty() && side.start.is_none() {
            text = said(self.new_prompt(turn).unwrap_or(start));
        }
        // The same rows again, in the same place: they were painted twice, so they were said twice.
        // A turn that was interrupted may have said nothing, and the rows are those of the last one.
        let may_repeat = !turn.submitted.is_command && ending != Ending::Interrupted;
        if text.is_empty() && side.start.is_some() && side.low < start && may_repeat {
            text = said(side.low);
        }
        if text.is_empty() && turn.missed {
            text = said(0);
        }
        let has_gap = side.gaps.iter().any(|at| *at >= start);
        let is_unfinished = side
            .rows
            .iter()
            .skip(start)
            .any(|row| self.is_unfinished(row));
        let has_prompt = side.rows.iter().skip(start).any(|row| self.is_prompt(row));
        Gathered {
            text,
            incomplete: turn.lost || has_gap || is_unfinished,
            followed: !turn.lost && !has_gap && (has_prompt || self.rules.user.is_empty()),
        }
    }

    /// What stands below the last prompt, where the same was asked as before: a page of equal turns
    /// looks the same when it has scrolled by one of them, and then nothing on it is new. The main
    /// screen says what scrolled.
    pub fn answer_again(&self, asked: &str) -> String {
        let said = || {
            let turn = self.turn.as_ref().filter(|turn| turn.alternate)?;
            let at = self.last_prompt(&turn.side.rows)?;
            let prompt = &turn.side.rows.get(at)?.text;
            let is_same = prompt.ends_with(asked.trim()) && turn.prompt.as_ref() == Some(prompt);
            let rows = turn
                .side
                .rows
                .get(at..)
                .filter(|_| is_same && !asked.trim().is_empty())?;
            Some(extract::text(
                &self.rules,
                rows,
                self.eye(),
                Ending::Complete,
            ))
        };
        said().unwrap_or_default()
    }

    fn is_unfinished(&self, row: &Row) -> bool {
        self.rules
            .unfinished
            .iter()
            .any(|mark| mark.matches(row, self.eye()))
    }

    /// Whether words are still to be painted on the screen.
    pub fn awaits_words(&self) -> bool {
        let shown = self
            .turn
            .as_ref()
            .and_then(|turn| turn.side.rows.get(turn.side.top..));
        shown
            .unwrap_or_default()
            .iter()
            .any(|row| self.is_unfinished(row))
    }

    /// Ends the turn where the prompt of the next one stands, and goes on with that one: what was
    /// said before it. None, and nothing is changed, when no such prompt is there.
    pub fn hand_over(&mut self, ending: Ending) -> Option<Gathered> {
        let mut turn = self.turn.take()?;
        let until = self.last_prompt(&turn.side.rows).unwrap_or(0);
        let before = turn.side.rows.get(..until).unwrap_or_default();
        let start = self.start(&turn, before);
        let text = extract::text(
            &self.rules,
            before.get(start..).unwrap_or_default(),
            self.eye(),
            ending,
        );
        let handed = (!text.is_empty()).then(|| {
            let missing = turn.side.gaps.iter().any(|at| (start..until).contains(at));
            let incomplete = std::mem::take(&mut turn.lost) || missing;
            (turn.side.start, turn.side.asked) = (Some(until), until);
            turn.side.low = until;
            turn.begun_with.clear();
            turn.missed = false;
            turn.before = None;
            turn.past = past(turn.side.rows.get(..until).unwrap_or_default());
            turn.side
                .forget(until.min(turn.side.top).saturating_sub(FORMER_ROWS_KEPT));
            Gathered {
                text,
                incomplete,
                followed: true,
            }
        });
        self.turn = Some(turn);
        handed
    }

    /// Whether a turn is being gathered.
    pub fn is_open(&self) -> bool {
        self.turn.is_some()
    }

    /// Ends the turn and forgets its rows.
    pub fn end(&mut self) {
        self.turn = None;
    }

    /// The rows of the screen, as wide as the transcript.
    fn rows(&mut self, screen: &Screen) -> Vec<Row> {
        let rows = screen.rows();
        let cols = self.width(screen.size(), &rows);
        let is_bar = |c: Option<char>| c.is_some_and(|c| self.rules.scrollbar.contains(c));
        let has_bar = |col: u16| {
            let mut cells = screen.column(col).zip(&rows);
            screen.alternate() && cells.any(|(cell, row)| is_bar(cell) && self.edge(row).is_none())
        };
        match cols - u16::from(has_bar(cols.saturating_sub(1))) {
            cols if cols < screen.size().cols => screen.rows_to(cols),
            _ => rows,
        }
    }

    /// How wide the transcript is: as the input area's edge. A dialog may stand in its place for a
    /// while.
    fn width(&mut self, size: Size, rows: &[Row]) -> u16 {
        let seen = rows
            .iter()
            .rev()
            .find_map(|row| self.edge(row))
            .map(|cols| (size, cols));
        self.width = seen.or(self.width).filter(|(window, _)| *window == size);
        self.width
            .map_or(size.cols, |(_, cols)| cols.min(size.cols))
    }

    /// Where the edge of the input area ends, if this row is one.
    fn edge(&self, row: &Row) -> Option<u16> {
        let end = self.rules.edge.as_ref()?.find(&row.text)?.end();
        u16::try_from(row.text.get(..end)?.chars().count()).ok()
    }

    /// The transcript's rows: without a pinned prompt, the input area and what floats above it; and
    /// whether what stands below.
    fn region(&mut self, screen: &Screen, mut rows: Vec<Row>) -> (Vec<Row>, Shown) {
        let cursor = usize::from(screen.cursor().0);
        self.colours |= rows.iter().any(Row::is_coloured);
        let plain = !self.colours;
        let scene = |at: usize| Scene {
            cursor: at == cursor,
            plain,
            ..Scene::default()
        };
        let matches = |marks: &[Marker], at: usize, row: &Row| {
            marks.iter().any(|mark| mark.matches(row, scene(at)))
        };
        let numbered = || rows.iter().enumerate();
        let last = |marks: &[Marker]| {
            numbered()
                .rfind(|(at, row)| matches(marks, *at, row))
                .map(|(at, _)| at)
        };
        let alone =
            last(&self.rules.end_alone).filter(|alone| Some(*alone) > last(&self.rules.end));
        let first = numbered().position(|(at, row)| matches(&self.rules.end, at, row));
        let found = alone
            .or(first)
            .into_iter()
            .chain(last(&self.rules.end_last))
            .min();
        let end = self.end.or(found);
        let flat = alone.is_some();
        let input = first.and_then(|first| rows.get(first + 1));
        let covered = !flat && input.is_some_and(|row| !matches(&self.rules.input, 0, row));
        let shown = Shown {
            ended: end.is_some(),
            covered: covered && !self.rules.input.is_empty(),
        };
        rows.truncate(end.unwrap_or(rows.len()));
        if end.is_some() {
            self.remove_floats(screen, &mut rows);
        }
        // What is left out anyway may float above the input area: it would stay where it is while
        // the rows above it scroll, and so tell that nothing did.
        let eye = Scene {
            plain: plain && !flat,
            ..Scene::default()
        };
        let is = |marks: &[Marker], row: &Row| marks.iter().any(|mark| mark.matches(row, eye));
        let spoken = |row: &Row| !row.is_blank() && !is(&self.rules.drop, row);
        rows.truncate(rows.iter().rposition(spoken).map_or(0, |last| last + 1));
        let prompt = rows.iter().rfind(|row| is(&self.rules.user, row));
        let quiet = prompt.and_then(Row::quiet);
        if screen.alternate() {
            let pinned = rows
                .iter()
                .take_while(|row| is(&self.rules.pinned, row))
                .count();
            rows.drain(..pinned);
        }
        self.quiet = quiet.or(self.quiet);
        self.plain = eye.plain;
        (rows, shown)
    }

    fn remove_floats(&self, screen: &Screen, rows: &mut Vec<Row>) {
        let reaches =
            |row: &Row| row.text.chars().count() + RIGHT_MARGIN >= usize::from(screen.size().cols);
        let scene = |row: &Row| Scene {
            right: reaches(row),
            ..Scene::default()
        };
        let floats = |row: &Row| {
            self.rules
                .floats
                .iter()
                .any(|mark| mark.matches(row, scene(row)))
        };
        while rows.last().is_some_and(floats) {
            rows.pop();
        }
    }

    /// Where the turn begins: where the transcript ended, unless something stood there that is gone
    /// (a panel above the input area) and the prompt of the turn took its place.
    fn start(&self, turn: &Turn, rows: &[Row]) -> usize {
        let Some(mut start) = turn.side.start else {
            return self.find_start(turn, rows);
        };
        // Rows of the past were painted over: a page of equal rows scrolled by, and the answer took
        // their place.
        let places = turn.side.low..start;
        if rows.get(places.clone()) != turn.begun_with.get(places) {
            start = start.min(turn.side.low);
        }
        let above = rows
            .get(turn.side.asked..start.min(rows.len()))
            .unwrap_or_default();
        let prompt = above.iter().position(|row| self.is_prompt(row));
        prompt.map_or(start, |at| turn.side.asked + at)
    }

    fn is_prompt(&self, row: &Row) -> bool {
        self.rules
            .user
            .iter()
            .any(|mark| mark.matches(row, self.eye()))
    }

    /// Whether a row begins a prompt, a message, a tool call or a notice.
    fn begins_block(&self, row: &Row) -> bool {
        let rules = &self.rules;
        let mut marks = rules
            .user
            .iter()
            .chain(&rules.message)
            .chain(&rules.chrome)
            .chain(&rules.drop);
        marks.any(|mark| mark.matches(row, self.eye()))
    }

    /// Where the turn begins in rows that were painted anew: below the longest tail of the past
    /// that is found, else at the last prompt of the user.
    fn find_start(&self, turn: &Turn, rows: &[Row]) -> usize {
        let printed: Vec<(usize, &str)> = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| !row.is_blank())
            .map(|(at, row)| (at, row.text.as_str()))
            .collect();
        let agreement = |end: usize| {
            let above = printed.get(..=end).unwrap_or_default().iter().rev();
            above
                .zip(turn.past.iter().rev())
                .take_while(|((_, text), past)| *text == *past)
                .count()
        };
        let best = (0..printed.len()).map(|end| (agreement(end), end)).max();
        match best {
            Some((agreed, end)) if agreed >= turn.past.len().clamp(1, 3) => {
                printed.get(end).map_or(0, |(at, _)| at + 1)
            }
            _ => self.last_prompt(rows).unwrap_or(0),
        }
    }

    /// The last prompt, if it is not the one from before the turn.
    fn new_prompt(&self, turn: &Turn) -> Option<usize> {
        let at = self.last_prompt(&turn.side.rows)?;
        (turn.prompt.as_ref() != Some(&turn.side.rows.get(at)?.text)).then_some(at)
    }

    /// How rows are looked at.
    fn eye(&self) -> Scene {
        Scene {
            quiet: self.quiet,
            plain: self.plain,
            ..Scene::default()
        }
    }

    fn last_prompt(&self, rows: &[Row]) -> Option<usize> {
        rows.iter().rposition(|row| self.is_prompt(row))
    }
}

/// What stands below the transcript.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// A row that ends it.
    ended: bool,
    /// Something else than the input row.
    covered: bool,
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
        gatherer.begin(&screen);
        screen.feed(b"> 0\r\n", |screen| gatherer.frame(screen));
        for turn in 0..40 {
            let said: Vec<String> = (0..100).map(|line| format!("{turn} {line}")).collect();
            let page = format!("* {}\r\n> {}\r\n", said.join("\r\n  "), turn + 1);
            screen.feed(page.as_bytes(), |screen| gatherer.frame(screen));
            gatherer.frame(&screen);
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
            let side = &gatherer.turn.as_ref().unwrap().side;
            assert!(
                side.rows.len() < FORMER_ROWS_KEPT + 200,
                "{} rows after turn {turn}",
                side.rows.len()
            );
            let bytes: usize = side.rows.iter().map(|row| row.text.len()).sum();
            assert_eq!(side.bytes, bytes);
        }
    }

    #[test]
    fn what_was_said_is_read_once_however_many_frames_share_nothing() {
        let mut screen = Screen::new(Size { cols: 20, rows: 4 });
        screen.feed(b"\x1b[?1049h", |_| {});
        let mut gatherer = Gatherer::new(&TextRules::default()).unwrap();
        gatherer.begin(&screen);
        let mut turn = gatherer.turn.take().unwrap();
        let asked = Cell::new(0);
        for frame in 0..100 {
            let row = |at: usize| Row {
                text: format!("{frame} {at}"),
                ..Row::default()
            };
            let judge = Judge {
                is_silent: &|turn: &Turn| {
                    asked.set(asked.get() + 1);
                    turn.side.rows.is_empty()
                },
                begins_block: &|_: &Row| true,
                is_prompt: &|_: &Row| false,
            };
            turn.take_frame(&screen, (0..4).map(row).collect(), &judge);
        }
        assert_eq!(turn.side.gaps.len(), 99);
        assert_eq!(
            asked.get(),
            2,
            "once while it was silent, once when it was not"
        );
    }
}
