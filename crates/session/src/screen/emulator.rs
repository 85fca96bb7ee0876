//! The screen: an emulated terminal whose rows can be read and whose scrolled rows can be
//! collected.
//!
//! The emulator is vt100, not avt: it keeps combining characters in their cell, and does not lay
//! out rows anew when the window's width changes, which a program that repaints would do a second
//! time.
//!
//! Invariant: rows that scroll off the main screen are numbered without a gap from the start of the
//! session ([`Screen::scrolled_total`]); the newest [`SCROLLED_ROWS_MAX`] are kept. The alternate
//! screen has no scrollback, as in a terminal. An erased scrollback and a reset begin a new
//! [`Screen::epoch`] of the visible screen, so that a reader knows that a repaint follows;
//! switching screens does not. A program that repaints more rows than the window has moves the
//! cursor beyond its top: that many scrolled rows are about to be printed again, and are taken back
//! ([`Screen::scrolled_low`]). It never fails: bytes without a meaning change nothing.

mod reading;

use super::row::Row;
use super::sequence_filter::{Filtered, SequenceFilter, SequenceNotice};
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// How many rows that scrolled off the main screen are kept.
pub const SCROLLED_ROWS_MAX: usize = 8192;

/// How many bytes the emulator gets at once: few enough that line feeds cannot overflow its
/// scrollback before it is collected.
const CHUNK_BYTES: usize = 4096;

/// The size of the emulator's scrollback between two collections.
const COLLECTED_ROWS_MAX: usize = CHUNK_BYTES + 1;

/// A move up by this many rows or more means "to the top", not a repaint of so many rows.
const TO_THE_TOP: u16 = 500;

/// Fills the last cell of a row that was broken before a character of two cells; never read.
const FILLER: char = '\u{10fffd}';

/// The largest window that is emulated, in either direction.
const SIDE_MAX: u16 = 1000;

/// The size of a window in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// The position of a cell, from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellPosition {
    /// The row, from the top.
    pub row: u16,
    /// The column, from the left.
    pub col: u16,
}

/// How often each of the two screens started anew.
#[derive(Debug, Clone, Copy, Default)]
struct Epochs {
    main: u64,
    alternate: u64,
}

/// An emulated terminal.
pub struct Screen {
    parser: vt100::Parser,
    filter: SequenceFilter,
    size: Size,
    sync_open: bool,
    epochs: Epochs,
    epoch_scrolled: u64,
    resizes: u64,
    erasures: u64,
    erased_scrolled: u64,
    scrolled: VecDeque<Row>,
    scrolled_total: u64,
    scrolled_low: u64,
    collected_total: u64,
    buffer: Vec<u8>,
}

impl Screen {
    /// Creates an empty screen. A side of zero cells counts as one, a huge one is limited.
    pub fn new(size: Size) -> Self {
        let Sides { rows, cols } = clamp_sides(size);
        Self {
            parser: vt100::Parser::new(rows, cols, COLLECTED_ROWS_MAX),
            filter: SequenceFilter::new(),
            size: Size {
                cols: cols.get(),
                rows: rows.get(),
            },
            sync_open: false,
            epochs: Epochs::default(),
            epoch_scrolled: 0,
            resizes: 0,
            erasures: 0,
            erased_scrolled: 0,
            scrolled: VecDeque::new(),
            scrolled_total: 0,
            scrolled_low: 0,
            collected_total: 0,
            buffer: Vec::new(),
        }
    }

    /// Feeds bytes. Calls `frame` at the end of each synchronized update, before rows that no frame
    /// showed would be dropped, and after the last byte unless an update is still open.
    pub fn feed(&mut self, bytes: &[u8], mut frame: impl FnMut(&Self)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let chunk = rest.get(..CHUNK_BYTES).unwrap_or(rest);
            let used = self.feed_chunk(chunk, &mut frame);
            rest = rest.get(used..).unwrap_or_default();
            // A flood may scroll more rows than are kept, so the reader sees them in time.
            if self.unseen_rows() > SCROLLED_ROWS_MAX / 2 {
                self.deliver_frame(&mut frame);
            }
        }
        if !self.sync_open {
            self.deliver_frame(&mut frame);
        }
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, size: Size) {
        let Sides { rows, cols } = clamp_sides(size);
        let before = self.size;
        self.parser.set_size(rows, cols);
        // Rows that the resize pushed out are read in pages of the new height, and still have their
        // old width.
        self.size = Size {
            cols: cols.get().max(before.cols),
            rows: rows.get(),
        };
        self.collect_scrolled();
        self.size = Size {
            cols: cols.get(),
            rows: rows.get(),
        };
        self.resizes += 1;
    }

    /// Forgets everything after a gap in the bytes: the screen is empty until the program repaints
    /// it.
    pub fn reset(&mut self) {
        let Sides { rows, cols } = clamp_sides(self.size);
        let alternate = self.is_alternate();
        self.parser = vt100::Parser::new(rows, cols, COLLECTED_ROWS_MAX);
        // The program does not know about the gap and still paints the alternate screen.
        if alternate {
            self.parser.process(b"\x1b[?1049h");
        }
        self.filter = SequenceFilter::new();
        self.sync_open = false;
        self.epochs.alternate += 1;
        self.restart_main();
    }

    /// The rows that are visible now, top first.
    pub fn rows(&self) -> Vec<Row> {
        self.rows_to(self.size.cols)
    }

    /// The visible rows, of which only the first columns are read.
    pub fn rows_to(&self, cols: u16) -> Vec<Row> {
        self.read_rows(self.size.rows, cols).collect()
    }

    /// The characters of a column, one for each row.
    pub fn column(&self, col: u16) -> impl Iterator<Item = Option<char>> {
        let screen = self.parser.screen();
        let cells = (0..self.size.rows).map(move |row| screen.cell(row, col));
        cells.map(|cell| cell.and_then(|cell| cell.contents().chars().next()))
    }

    /// The rows that scrolled off the main screen after the `since`-th, oldest first, and whether
    /// some of them are no longer kept.
    pub fn scrolled_since(&self, since: u64) -> (impl Iterator<Item = &Row>, bool) {
        let wanted =
            usize::try_from(self.scrolled_total.saturating_sub(since)).unwrap_or(usize::MAX);
        let skipped = self.scrolled.len().saturating_sub(wanted);
        (
            self.scrolled.iter().skip(skipped),
            wanted > self.scrolled.len(),
        )
    }

    /// How many rows scrolled off the main screen since the start.
    pub fn scrolled_total(&self) -> u64 {
        self.scrolled_total
    }

    /// The lowest value of [`Screen::scrolled_total`] since the last frame: rows above it were
    /// taken back and printed again.
    pub fn scrolled_low(&self) -> u64 {
        self.scrolled_low
    }

    /// Grows when the visible screen starts anew: scrollback erased, terminal reset.
    pub fn epoch(&self) -> u64 {
        if self.is_alternate() {
            self.epochs.alternate
        } else {
            self.epochs.main
        }
    }

    /// How many rows had scrolled off when the main screen's epoch began.
    pub fn epoch_scrolled(&self) -> u64 {
        self.epoch_scrolled
    }

    /// How often the window changed its size.
    pub fn resizes(&self) -> u64 {
        self.resizes
    }

    /// How often every row was erased; a repaint follows each time.
    pub fn erasures(&self) -> u64 {
        self.erasures
    }

    /// How many rows had scrolled off when every row was erased.
    pub fn erased_scrolled(&self) -> u64 {
        self.erased_scrolled
    }

    /// Whether a synchronized update (mode 2026) is open: the screen is half painted.
    pub fn sync_open(&self) -> bool {
        self.sync_open
    }

    /// Whether the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// The size of the window.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The position of the cursor.
    pub fn cursor(&self) -> CellPosition {
        let (row, col) = self.parser.screen().cursor_position();
        CellPosition { row, col }
    }

    /// The text left of the cursor on its row, blanks kept.
    pub fn left_of_cursor(&self) -> String {
        let cursor = self.cursor();
        let mut text = String::new();
        for col in 0..cursor.col {
            let cell = CellPosition {
                row: cursor.row,
                col,
            };
            self.read_cell(cell, &mut text);
        }
        text
    }

    fn feed_chunk(&mut self, chunk: &[u8], frame: &mut impl FnMut(&Self)) -> usize {
        self.buffer.clear();
        let mut buffer = std::mem::take(&mut self.buffer);
        let Filtered { used, notice } = self.filter.filter(chunk, &mut buffer);
        self.process_filtered(&buffer, notice);
        self.buffer = buffer;
        self.collect_scrolled();
        self.apply_notice(notice, frame);
        used
    }

    /// Feeds filtered bytes to the emulator. Some must be processed up to a certain byte first.
    fn process_filtered(&mut self, bytes: &[u8], notice: Option<SequenceNotice>) {
        match (notice, bytes.split_last()) {
            (Some(SequenceNotice::Up(count)), Some((last, before))) => {
                self.move_up(count, before, *last);
            }
            (Some(SequenceNotice::Screens), Some((last, before))) => {
                self.change_screens(before, *last);
            }
            (Some(SequenceNotice::Wide(c)), _) => self.print_wide(c, bytes),
            _ => self.parser.process(bytes),
        }
    }

    /// Notes what a sequence means for the comparison of frames.
    fn apply_notice(&mut self, notice: Option<SequenceNotice>, frame: &mut impl FnMut(&Self)) {
        match notice {
            Some(SequenceNotice::SyncBegin) => self.sync_open = true,
            Some(SequenceNotice::SyncEnd) => {
                self.sync_open = false;
                self.deliver_frame(frame);
            }
            Some(SequenceNotice::Restart) => self.restart(),
            Some(SequenceNotice::Erased) => self.note_erasure(),
            // Some programs clear the screen row by row instead of at once.
            Some(SequenceNotice::RowsErased(rows)) if rows == self.size.rows => self.note_erasure(),
            Some(
                SequenceNotice::Up(_)
                | SequenceNotice::Screens
                | SequenceNotice::Wide(_)
                | SequenceNotice::RowsErased(_),
            )
            | None => {}
        }
    }

    fn print_wide(&mut self, c: char, before: &[u8]) {
        self.parser.process(before);
        // The filler makes the emulator wrap the row itself, so that it remembers the wrap.
        if self.cursor().col + 1 == self.size.cols && self.size.cols > 1 {
            self.print_char(FILLER);
        }
        self.print_char(c);
    }

    fn print_char(&mut self, c: char) {
        self.parser.process(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn move_up(&mut self, count: u16, before: &[u8], last: u8) {
        self.parser.process(before);
        self.collect_scrolled();
        // Rows that already scrolled off can only be reached by printing them again.
        let beyond = count.saturating_sub(self.cursor().row);
        self.parser.process(&[last]);
        // Only the main screen scrolls rows away, and a huge count means the top, not a repaint.
        if !self.is_alternate() && beyond > 0 && count < TO_THE_TOP {
            self.take_back(usize::from(beyond));
        }
    }

    /// Processes bytes whose last one may switch the screen, which has a scrollback of its own.
    fn change_screens(&mut self, before: &[u8], last: u8) {
        self.parser.process(before);
        self.collect_scrolled();
        self.parser.process(&[last]);
    }

    fn take_back(&mut self, rows: usize) {
        let rows = rows.min(self.scrolled.len());
        self.scrolled.truncate(self.scrolled.len() - rows);
        self.scrolled_total -= rows as u64;
        self.scrolled_low = self.scrolled_low.min(self.scrolled_total);
        self.collected_total = self.collected_total.min(self.scrolled_total);
    }

    fn note_erasure(&mut self) {
        self.erasures += 1;
        self.erased_scrolled = self.scrolled_total;
    }

    fn restart(&mut self) {
        if self.is_alternate() {
            self.epochs.alternate += 1;
        } else {
            self.restart_main();
        }
    }

    fn restart_main(&mut self) {
        self.epochs.main += 1;
        self.epoch_scrolled = self.scrolled_total;
        self.scrolled_low = self.scrolled_total;
        self.scrolled.clear();
    }

    fn deliver_frame(&mut self, frame: &mut impl FnMut(&Self)) {
        frame(self);
        self.collected_total = self.scrolled_total;
        self.scrolled_low = self.scrolled_total;
    }

    fn unseen_rows(&self) -> usize {
        usize::try_from(self.scrolled_total - self.collected_total).unwrap_or(usize::MAX)
    }

    /// Moves scrolled rows from the emulator into the numbered rows.
    fn collect_scrolled(&mut self) {
        let held = self.parser.screen().scrollback_len();
        if held == 0 {
            return;
        }
        if held == COLLECTED_ROWS_MAX {
            // Few bytes can scroll many rows (a repeated character), so the number of lost rows is
            // unknown.
            self.scrolled.clear();
            self.scrolled_total += SCROLLED_ROWS_MAX as u64;
        }
        let mut left = held;
        while left > 0 {
            self.parser.screen_mut().set_scrollback(left);
            let here = left.min(usize::from(self.size.rows));
            let rows: Vec<Row> = self
                .read_rows(u16::try_from(here).unwrap_or(u16::MAX), self.size.cols)
                .collect();
            self.scrolled.extend(rows);
            left -= here;
        }
        self.parser.screen_mut().clear_scrollback();
        self.scrolled_total += held as u64;
        let excess = self.scrolled.len().saturating_sub(SCROLLED_ROWS_MAX);
        self.scrolled.drain(..excess);
    }
}

/// The sides of a window, within the limits of the emulator.
struct Sides {
    rows: NonZeroU16,
    cols: NonZeroU16,
}

fn clamp_sides(size: Size) -> Sides {
    let side = |cells: u16| NonZeroU16::new(cells.min(SIDE_MAX)).unwrap_or(NonZeroU16::MIN);
    Sides {
        rows: side(size.rows),
        cols: side(size.cols),
    }
}
