//! Reads the rows of the emulated screen: their text as it was printed, and the style of their
//! first words.
//!
//! Plain ASCII rows are read as a whole, which is much faster than cell by cell. Nothing here
//! changes the screen or fails.

use super::super::row::{CellStyle, Colour, Row};
use super::super::sequence_filter::EMOJI_FORM;
use super::{CellPosition, FILLER, Screen};

/// How many blanks may end a row that is wrapped.
const WRAP_BLANKS_MAX: u16 = 8;

impl Screen {
    /// The first rows that the emulator shows.
    pub(super) fn read_rows(&self, rows: u16, cols: u16) -> impl Iterator<Item = Row> {
        let texts = self.parser.screen().rows(0, cols).zip(0..rows);
        texts.map(move |(text, row)| {
            if text.is_ascii() {
                self.read_plain_row(row, cols, text)
            } else {
                self.read_row(row, cols)
            }
        })
    }

    /// Reads a row in which each character is one cell and one byte.
    fn read_plain_row(&self, row: u16, cols: u16, text: String) -> Row {
        let bytes = text.as_bytes();
        let first = find_from(bytes, 0, |byte| byte != b' ');
        let gap = first.and_then(|at| find_from(bytes, at, |byte| byte == b' '));
        let second = gap.and_then(|at| find_from(bytes, at, |byte| byte != b' '));
        let words = [first, second].map(|at| u16::try_from(at?).ok());
        self.finish_row(row, cols, text, words)
    }

    fn read_row(&self, row: u16, cols: u16) -> Row {
        let mut text = String::with_capacity(usize::from(cols));
        let (mut first, mut second) = (None, None);
        let mut blank = true;
        for col in 0..cols {
            self.read_cell(CellPosition { row, col }, &mut text);
            let printed = text.ends_with(|c: char| !c.is_whitespace());
            if printed && blank {
                // The second word is the one that begins when there is a first.
                second = second.or(first.map(|_| col));
                first = first.or(Some(col));
            }
            blank = !printed;
        }
        self.finish_row(row, cols, text, [first, second])
    }

    /// Makes the row of a text whose first words begin in these columns.
    fn finish_row(&self, row: u16, cols: u16, mut text: String, words: [Option<u16>; 2]) -> Row {
        let wrapped = self.is_wrapped(row, cols);
        if !wrapped {
            text.truncate(text.trim_end().len());
        }
        let screen = self.parser.screen();
        let [lead, second_word] = words.map(|col| {
            let cell = col.and_then(|col| screen.cell(row, col));
            cell.map(cell_style).unwrap_or_default()
        });
        Row {
            text,
            wrapped,
            lead,
            second_word,
            gap: false,
        }
    }

    /// Whether a line goes on in the next row; a blank at its end is then part of it. Such a row
    /// has text near its end: a program that does not know the window's new size yet fills rows
    /// with blanks up to the old one.
    fn is_wrapped(&self, row: u16, cols: u16) -> bool {
        let screen = self.parser.screen();
        let all = screen.size().1.get();
        let printed = |col| {
            screen
                .cell(row, col)
                .is_some_and(|cell| cell.has_contents() && cell.contents() != " ")
        };
        cols == all
            && screen.row_wrapped(row)
            && (all.saturating_sub(WRAP_BLANKS_MAX)..all).any(printed)
    }

    pub(super) fn read_cell(&self, CellPosition { row, col }: CellPosition, text: &mut String) {
        let Some(cell) = self.parser.screen().cell(row, col) else {
            return;
        };
        if cell.is_wide_continuation() || cell.contents().starts_with(FILLER) {
            return;
        }
        if cell.has_contents() && cell.contents() != " " {
            text.extend(cell.contents().chars().map(|c| self.filter.restore_char(c)));
        } else if !(self.is_alternate() && self.is_second_half(row, col)) {
            text.push(' ');
        }
    }

    /// Whether a blank cell is the second half of the emoji before it. Programs that paint cells by
    /// position leave it blank, because terminals differ in the width of U+FE0F.
    fn is_second_half(&self, row: u16, col: u16) -> bool {
        let before = col
            .checked_sub(1)
            .and_then(|col| self.parser.screen().cell(row, col));
        let last = before.and_then(|cell| cell.contents().chars().last());
        last.is_some_and(|last| self.filter.restore_char(last) == EMOJI_FORM)
    }
}

/// The index of the first byte from `from` on that is wanted.
fn find_from(bytes: &[u8], from: usize, is_wanted: fn(u8) -> bool) -> Option<usize> {
    let found = bytes
        .get(from..)?
        .iter()
        .position(|byte| is_wanted(*byte))?;
    Some(from + found)
}

fn cell_style(cell: &vt100::Cell) -> CellStyle {
    CellStyle {
        foreground: convert_colour(cell.fgcolor()),
        background: convert_colour(cell.bgcolor()),
        dim: cell.dim(),
        bold: cell.bold(),
        italic: cell.italic(),
        inverse: cell.inverse(),
    }
}

fn convert_colour(colour: vt100::Color) -> Colour {
    match colour {
        vt100::Color::Default => Colour::Default,
        vt100::Color::Idx(index) => Colour::Index(index),
        vt100::Color::Rgb(red, green, blue) => Colour::Rgb(red, green, blue),
    }
}
