//! Gathering: the rows of a turn, each once and in order, from frame to frame.
//!
//! Invariant: `rows[..top]` has left the screen and never changes again, `rows[top..]` is the
//! transcript as the last frame showed it. On the main screen the emulator says what scrolled off,
//! so `top` is exact; on the alternate screen it is found by comparing frames. When two frames share
//! nothing, a gap stands between them and the turn is incomplete. When the screen starts anew (an
//! erased scrollback, a reset), the rows are taken anew, and the turn begins where the rows that were
//! there before it end. Each of the two screens has rows of its own: those of the other one wait until
//! it is shown again, and the text is that of the screen that is shown at the end.

use super::align::{align, is_inside};
use super::extract::{self, Ending};
use super::row::{Colour, Row};
use super::rules::{Begin, Compiled, Marker, Scene};
use super::{RulesError, Screen, TextRules};

/// How many bytes of rows a turn may gather; what comes later is left out and said so.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many rows from before the turn are remembered to find its beginning again.
const PAST_ROWS: usize = 12;

/// How many frames after a new size of the window the program may take to paint everything anew.
const REPAINT_FRAMES: u8 = 32;

/// How near to the right edge a row reaches it.
const RIGHT_MARGIN: usize = 3;

/// The line that stands where rows are missing.
const GAP: &str = "[…]";

/// What the assistant said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The assistant's messages, separated by one blank line.
    pub text: String,
    /// Whether rows are missing.
    pub incomplete: bool,
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
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else about the turn")]
struct Turn {
    /// The last printed rows from before the turn, newest last.
    past: Vec<String>,
    /// The last prompt of the user from before the turn, where it was shown.
    prompt: Option<String>,
    /// Whether a row ended the transcript when the turn began.
    ended: bool,
    /// The rows of the screen that is shown.
    side: Side,
    /// The rows of the other screen.
    aside: Option<Side>,
    /// What was gathered before the window changed its size, until the program has painted everything anew:
    /// what it shows meanwhile is laid out for the old size.
    before: Option<Before>,
    alternate: bool,
    resizes: u64,
    erasures: u64,
    scrolled: u64,
    lost: bool,
    /// Whether bytes were missed, and so perhaps the rows by which the turn's beginning is found.
    missed: bool,
}

/// The rows as they were before the window changed its size, and for how many more frames they count.
#[derive(Debug)]
struct Before {
    side: Side,
    frames: u8,
}

/// What was gathered from one of the two screens.
#[derive(Debug, Default, Clone)]
struct Side {
    rows: Vec<Row>,
    bytes: usize,
    /// Where rows are missing.
    gaps: Vec<usize>,
    /// Where the turn begins in `rows`; none when the screen started anew.
    start: Option<usize>,
    /// Where the rows begin below the last prompt from before the turn.
    asked: usize,
    top: usize,
    epoch: u64,
    /// Whether `rows[..top]` is known to hold something that was said.
    spoke: bool,
}

impl Gatherer {
    /// A gatherer with a profile's rules.
    pub fn new(rules: &TextRules) -> Result<Self, RulesError> {
        Ok(Self { rules: Compiled::new(rules)?, turn: None, quiet: None, colours: false, plain: false })
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
        let mut rows = if self.rules.begin == Begin::Screen { visible } else { region };
        rows.truncate(start);
        let past = past(&rows);
        let asked = self.last_prompt(&rows).map_or(0, |at| at + 1);
        let bytes = rows.iter().map(|row| row.text.len()).sum();
        let prompt = self.last_prompt(&rows).and_then(|at| Some(rows.get(at)?.text.clone()));
        let top = if screen.alternate() { blank_above(&rows) } else { 0 };
        let epoch = screen.epoch();
        let side = Side { rows, bytes, start: Some(start), asked, top, epoch, ..Side::default() };
        self.turn = Some(Turn {
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

    /// Takes a whole frame. Call it from [`Screen::feed`]; outside a turn it does nothing.
    pub fn frame(&mut self, screen: &Screen) {
        let Some(mut turn) = self.turn.take() else { return };
        let (region, shown) = self.region(screen, self.rows(screen));
        // What has no end, where the transcript had one, covers it: a tall dialog, a view of something else.
        let covered = screen.alternate() && turn.ended && !shown.ended && !self.rules.end.is_empty();
        let hidden = covered || (shown.covered && turn.knows(screen, &region));
        if !hidden {
            turn.take_frame(screen, region, |turn| self.read(turn, Ending::Complete).text.is_empty());
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
        let nothing = Gathered { text: String::new(), incomplete: false };
        self.turn.as_ref().map_or(nothing, |turn| self.read(turn, ending))
    }

    fn read(&self, turn: &Turn, ending: Ending) -> Gathered {
        let start = self.start(turn, &turn.side.rows);
        let said = |from: usize| {
            let rows = turn.side.rows.get(from..).unwrap_or_default();
            extract::text(&self.rules, rows, self.eye(), ending)
        };
        let mut text = said(start);
        // Where the beginning is a guess, what is shown is better than nothing.
        if text.is_empty() && turn.side.start.is_none() {
            text = said(self.new_prompt(turn).unwrap_or(start));
        }
        Gathered {
            text: if text.is_empty() && turn.missed { said(0) } else { text },
            incomplete: turn.lost
                || turn.side.gaps.iter().any(|at| *at >= start)
                || turn.side.rows.iter().skip(start).any(|row| self.is_unfinished(row)),
        }
    }

    fn is_unfinished(&self, row: &Row) -> bool {
        self.rules.unfinished.iter().any(|mark| mark.matches(row, self.eye()))
    }

    /// Whether words are still to be painted on the screen.
    pub fn awaits_words(&self) -> bool {
        let shown = self.turn.as_ref().and_then(|turn| turn.side.rows.get(turn.side.top..));
        shown.unwrap_or_default().iter().any(|row| self.is_unfinished(row))
    }

    /// Ends the turn where the prompt of the next one stands, and goes on with that one: what was said before
    /// it. None, and nothing is changed, when no such prompt is there.
    pub fn hand_over(&mut self, ending: Ending) -> Option<Gathered> {
        let mut turn = self.turn.take()?;
        let until = self.last_prompt(&turn.side.rows).unwrap_or(0);
        let before = turn.side.rows.get(..until).unwrap_or_default();
        let start = self.start(&turn, before);
        let text = extract::text(&self.rules, before.get(start..).unwrap_or_default(), self.eye(), ending);
        let handed = (!text.is_empty()).then(|| {
            let missing = turn.side.gaps.iter().any(|at| (start..until).contains(at));
            let incomplete = std::mem::take(&mut turn.lost) || missing;
            (turn.side.start, turn.side.asked) = (Some(until), until);
            turn.missed = false;
            turn.before = None;
            turn.past = past(turn.side.rows.get(..until).unwrap_or_default());
            Gathered { text, incomplete }
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
    fn rows(&self, screen: &Screen) -> Vec<Row> {
        let rows = screen.rows();
        let edge = |row: &Row| {
            let end = self.rules.edge.as_ref()?.find(&row.text)?.end();
            Some(row.text.get(..end)?.chars().count())
        };
        let beside = rows.iter().rev().find_map(edge).and_then(|cols| u16::try_from(cols).ok());
        let all = screen.size().cols;
        let cols = beside.unwrap_or(all).min(all);
        let is_bar = |c: Option<char>| c.is_some_and(|c| self.rules.scrollbar.contains(c));
        let has_bar = |col: u16| {
            let mut cells = screen.column(col).zip(&rows);
            screen.alternate() && cells.any(|(cell, row)| is_bar(cell) && edge(row).is_none())
        };
        match cols - u16::from(has_bar(cols.saturating_sub(1))) {
            cols if cols < all => screen.rows_to(cols),
            _ => rows,
        }
    }

    /// The transcript's rows: without a pinned prompt, the input area and what floats above it; and whether
    /// what stands below.
    fn region(&mut self, screen: &Screen, mut rows: Vec<Row>) -> (Vec<Row>, Shown) {
        let cursor = usize::from(screen.cursor().0);
        self.colours |= rows.iter().any(Row::is_coloured);
        let plain = !self.colours;
        let scene = |at: usize| Scene { cursor: at == cursor, plain, ..Scene::default() };
        let matches =
            |marks: &[Marker], at: usize, row: &Row| marks.iter().any(|mark| mark.matches(row, scene(at)));
        let numbered = || rows.iter().enumerate();
        let last =
            |marks: &[Marker]| numbered().rfind(|(at, row)| matches(marks, *at, row)).map(|(at, _)| at);
        let alone = last(&self.rules.end_alone).filter(|alone| Some(*alone) > last(&self.rules.end));
        let first = numbered().position(|(at, row)| matches(&self.rules.end, at, row));
        let end = alone.or(first).into_iter().chain(last(&self.rules.end_last)).min();
        let flat = alone.is_some();
        let input = first.and_then(|first| rows.get(first + 1));
        let covered = !flat && input.is_some_and(|row| !matches(&self.rules.input, 0, row));
        let shown = Shown { ended: end.is_some(), covered: covered && !self.rules.input.is_empty() };
        rows.truncate(end.unwrap_or(rows.len()));
        if end.is_some() {
            self.remove_floats(screen, &mut rows);
        }
        // What is left out anyway may float above the input area: it would stay where it is while
        // the rows above it scroll, and so tell that nothing did.
        let eye = Scene { plain: plain && !flat, ..Scene::default() };
        let is = |marks: &[Marker], row: &Row| marks.iter().any(|mark| mark.matches(row, eye));
        let spoken = |row: &Row| !row.is_blank() && !is(&self.rules.drop, row);
        rows.truncate(rows.iter().rposition(spoken).map_or(0, |last| last + 1));
        let prompt = rows.iter().rfind(|row| is(&self.rules.user, row));
        let quiet = prompt.and_then(Row::quiet);
        if screen.alternate() {
            let pinned = rows.iter().take_while(|row| is(&self.rules.pinned, row)).count();
            rows.drain(..pinned);
        }
        self.quiet = quiet.or(self.quiet);
        self.plain = eye.plain;
        (rows, shown)
    }

    fn remove_floats(&self, screen: &Screen, rows: &mut Vec<Row>) {
        let reaches = |row: &Row| row.text.chars().count() + RIGHT_MARGIN >= usize::from(screen.size().cols);
        let scene = |row: &Row| Scene { right: reaches(row), ..Scene::default() };
        let floats = |row: &Row| self.rules.floats.iter().any(|mark| mark.matches(row, scene(row)));
        while rows.last().is_some_and(floats) {
            rows.pop();
        }
    }

    /// Where the turn begins: where the transcript ended, unless something stood there that is gone (a
    /// panel above the input area) and the prompt of the turn took its place.
    fn start(&self, turn: &Turn, rows: &[Row]) -> usize {
        let Some(start) = turn.side.start else { return self.find_start(turn, rows) };
        let above = rows.get(turn.side.asked..start.min(rows.len())).unwrap_or_default();
        let is_prompt = |row: &Row| self.rules.user.iter().any(|mark| mark.matches(row, self.eye()));
        above.iter().position(is_prompt).map_or(start, |at| turn.side.asked + at)
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
            above.zip(turn.past.iter().rev()).take_while(|((_, text), past)| *text == *past).count()
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
        Scene { quiet: self.quiet, plain: self.plain, ..Scene::default() }
    }

    fn last_prompt(&self, rows: &[Row]) -> Option<usize> {
        let scene = self.eye();
        rows.iter().rposition(|row| self.rules.user.iter().any(|mark| mark.matches(row, scene)))
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

impl Turn {
    /// Whether all of a frame of the alternate screen is known, and more below it.
    fn knows(&self, screen: &Screen, region: &[Row]) -> bool {
        let region = region.get(blank_above(region)..).unwrap_or_default();
        let place = || align(&self.side.rows, region, self.side.top);
        let same = screen.alternate() && self.alternate && screen.resizes() == self.resizes;
        same && place().is_some_and(|at| is_inside(&self.side.rows, region, at))
    }

    /// Takes a frame; `silent` says whether nothing was said in the turn so far.
    fn take_frame(&mut self, screen: &Screen, region: Vec<Row>, silent: impl Fn(&Self) -> bool) {
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
        let before = self.before.take_if(|before| erased || before.frames == 0).filter(|_| erased);
        let resized = resized || before.is_some();
        if let Some(before) = before {
            self.side = before.side;
        }
        if screen.alternate() {
            self.replace_by_comparison(region, resized, silent);
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

    fn remember(&mut self, resized: bool) {
        match &mut self.before {
            Some(before) if resized => before.frames = REPAINT_FRAMES,
            Some(before) => before.frames = before.frames.saturating_sub(1),
            None if resized => {
                self.before = Some(Before { side: self.side.clone(), frames: REPAINT_FRAMES });
            }
            None => {}
        }
    }

    /// The program erased the main screen and painted its last rows anew, some of which were known.
    fn replace_by_repaint(&mut self, screen: &Screen, region: Vec<Row>, resized: bool) {
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
            self.lost |= self.side.replace_exactly(if resized { page } else { above }, region, room);
            return;
        };
        if let Some(more) = printed.checked_sub(at) {
            page.drain(..more);
        }
        self.lost |= lost | self.side.repaint(at.saturating_sub(printed), page, resized, room);
        self.side.top = self.side.rows.len().saturating_sub(shown);
    }

    /// Rows that had left the main screen are printed again.
    fn take_back(&mut self, scrolled: u64) {
        let again = self.scrolled.saturating_sub(scrolled);
        self.scrolled -= again;
        let main = if self.alternate { self.aside.as_mut() } else { Some(&mut self.side) };
        if let Some(main) = main {
            main.top = main.top.saturating_sub(usize::try_from(again).unwrap_or(usize::MAX));
        }
    }

    /// Takes up the rows of the screen that is shown now, anew when it started anew.
    fn turn_to(&mut self, screen: &Screen) {
        if screen.alternate() != self.alternate {
            self.alternate = screen.alternate();
            let known = self.aside.take().unwrap_or(Side { epoch: screen.epoch(), ..Side::default() });
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
    fn room(&self) -> usize {
        GATHERED_BYTES_MAX.saturating_sub(self.aside.as_ref().map_or(0, Side::held_bytes))
    }

    /// Blank rows at the top of a frame may hide what was there: they never replace anything.
    fn replace_by_comparison(&mut self, mut region: Vec<Row>, resized: bool, silent: impl Fn(&Self) -> bool) {
        region.drain(..blank_above(&region));
        if region.is_empty() {
            return;
        }
        let (room, top) = (self.room(), self.side.top);
        match align(&self.side.rows, &region, top) {
            Some(at) if at < top && is_inside(&self.side.rows, &region, at) => return,
            Some(at) => self.side.move_top(at),
            None if !self.side.spoke && silent(self) => self.side.start_anew(),
            None if resized => {}
            None => {
                self.lost |= self.side.push_gap(room);
                self.side.spoke = true;
            }
        }
        self.lost |= self.side.replace(region, room);
    }
}

impl Side {
    /// What the rows take; an empty one costs memory too.
    fn held_bytes(&self) -> usize {
        self.bytes + 64 * self.rows.len()
    }

    fn start_anew(&mut self) {
        self.truncate(0);
        self.start = None;
        self.move_top(0);
    }

    /// Rows that are about to be replaced prove nothing about what was said.
    fn move_top(&mut self, top: usize) {
        self.spoke &= top >= self.top;
        self.top = top;
    }

    /// Takes exactly what scrolled off and what is shown; says whether some of it had no room.
    fn replace_exactly(&mut self, scrolled: Vec<Row>, region: Vec<Row>, room: usize) -> bool {
        self.truncate(self.top);
        let lost = self.append(scrolled, room);
        self.top = self.rows.len();
        lost | self.append(region, room)
    }

    /// Takes a page that was painted anew from this place on, perhaps for a window of another size; says
    /// whether some of it had no room.
    fn repaint(&mut self, at: usize, page: Vec<Row>, resized: bool, room: usize) -> bool {
        let is_same =
            |start: &usize| !resized || page.starts_with(self.rows.get(at..*start).unwrap_or_default());
        self.start = self.start.filter(is_same);
        self.truncate(at);
        self.append(page, room)
    }

    /// Takes a frame in the place of the last one; says whether some of it had no room.
    fn replace(&mut self, region: Vec<Row>, room: usize) -> bool {
        self.truncate(self.top);
        self.append(region, room)
    }

    fn push_gap(&mut self, room: usize) -> bool {
        let row = |text: &str| Row { text: text.to_owned(), ..Row::default() };
        self.gaps.push(self.rows.len());
        let lost = self.append(vec![row(""), row(GAP), row("")], room);
        self.top = self.rows.len();
        lost
    }

    fn truncate(&mut self, len: usize) {
        let gone = self.rows.get(len..).unwrap_or_default();
        self.bytes -= gone.iter().map(|row| row.text.len()).sum::<usize>();
        self.rows.truncate(len);
        self.gaps.retain(|at| *at < len);
    }

    fn append(&mut self, rows: Vec<Row>, room: usize) -> bool {
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
fn past(rows: &[Row]) -> Vec<String> {
    let printed = rows.iter().rev().filter(|row| !row.is_blank());
    let mut past: Vec<String> = printed.take(PAST_ROWS).map(|row| row.text.clone()).collect();
    past.reverse();
    past
}

/// How many blank rows stand at the top.
fn blank_above(rows: &[Row]) -> usize {
    rows.iter().take_while(|row| row.is_blank()).count()
}

fn trimmed(rows: &[Row]) -> usize {
    rows.iter().rposition(|row| !row.is_blank()).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::super::Size;
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_was_said_is_read_once_however_many_frames_share_nothing() {
        let mut screen = Screen::new(Size { cols: 20, rows: 4 });
        screen.feed(b"\x1b[?1049h", |_| {});
        let mut gatherer = Gatherer::new(&TextRules::default()).unwrap();
        gatherer.begin(&screen);
        let mut turn = gatherer.turn.take().unwrap();
        let asked = Cell::new(0);
        for frame in 0..100 {
            let row = |at: usize| Row { text: format!("{frame} {at}"), ..Row::default() };
            turn.take_frame(&screen, (0..4).map(row).collect(), |turn| {
                asked.set(asked.get() + 1);
                turn.side.rows.is_empty()
            });
        }
        assert_eq!(turn.side.gaps.len(), 99);
        assert_eq!(asked.get(), 2, "once while it was silent, once when it was not");
    }
}
