//! Renders a stream's bytes as the text that they leave behind, with no width limit and no colours.
//!
//! Carriage return, backspace, erase and cursor moves are applied; other sequences are removed and
//! trailing blanks trimmed. Text on the alternate screen is left out. Memory and work are limited
//! by the number of bytes: a cursor that jumps far to the right uses at most [`CELLS_PER_BYTE`]
//! cells per byte, and sequences that move or blank many cells are ignored beyond
//! [`MOVES_PER_BYTE`]. Example: `10%\r100%\r\n` renders as `100%`.

use crate::sequence::{Csi, ModeSwitch, Token, Tokenizer, is_alternate_screen};

/// How many cells a rendered stream may use per byte, beside [`CELLS_FREE`].
const CELLS_PER_BYTE: usize = 4;
const CELLS_FREE: usize = 64 * 1024;
/// How many cells sequences may move or blank per byte, beside [`MOVES_FREE`]. Programs that edit
/// lines of a terminal's width need far less; without it, few bytes could cost quadratic time.
const MOVES_PER_BYTE: usize = 128;
const MOVES_FREE: usize = 1024 * 1024;
const TAB_STOP: usize = 8;

/// The text that the bytes leave behind.
pub(crate) fn render(bytes: &[u8]) -> String {
    TextGrid::from_bytes(bytes).text()
}

/// The text left of the cursor after the bytes of one line, blanks kept.
pub(super) fn left_of_cursor(line: &[u8]) -> String {
    let grid = TextGrid::from_bytes(line);
    grid.row_prefix(grid.col)
}

/// The row that a complete line leaves behind, blanks kept, up to the cursor at the line end: a
/// prompt at the right edge is not part of it. A cursor in the first column means the whole row.
pub(super) fn entered_row(line: &[u8]) -> String {
    let end = line
        .iter()
        .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
        .map_or(0, |last| last + 1);
    let grid = TextGrid::from_bytes(line.get(..end).unwrap_or(line));
    let all = grid.lines.get(grid.row).map_or(0, Vec::len);
    grid.row_prefix(if grid.col > 0 { grid.col } else { all })
}

#[derive(Debug)]
struct TextGrid {
    lines: Vec<Vec<char>>,
    row: usize,
    col: usize,
    alternate: bool,
    cells_left: usize,
    moves_left: usize,
}

impl TextGrid {
    fn from_bytes(bytes: &[u8]) -> Self {
        let cells_left = bytes.len().saturating_mul(CELLS_PER_BYTE) + CELLS_FREE;
        let moves_left = bytes.len().saturating_mul(MOVES_PER_BYTE) + MOVES_FREE;
        let lines = vec![Vec::new()];
        let mut grid = Self {
            lines,
            row: 0,
            col: 0,
            alternate: false,
            cells_left,
            moves_left,
        };
        let mut tokens = Tokenizer::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = tokens.next_token(rest);
            let (used, after) = rest.split_at(step.used.min(rest.len()));
            grid.apply_token(step.token, used, tokens.csi());
            rest = after;
        }
        grid
    }

    /// The first `cols` cells of the cursor's row.
    fn row_prefix(&self, cols: usize) -> String {
        let cells = self.lines.get(self.row).into_iter().flatten().copied();
        cells.chain(std::iter::repeat(' ')).take(cols).collect()
    }

    fn text(self) -> String {
        let lines: Vec<String> = self
            .lines
            .into_iter()
            .map(|cells| cells.into_iter().collect())
            .collect();
        let mut text = lines
            .iter()
            .map(|line| line.trim_end())
            .collect::<Vec<_>>()
            .join("\n");
        text.truncate(text.trim_end().len());
        text
    }

    fn apply_token(&mut self, token: Token, used: &[u8], csi: &Csi) {
        match token {
            // Read on the alternate screen too: such a sequence is the way back from it.
            Token::Csi if csi.mode_switch().is_some() => self.switch_modes(csi),
            _ if self.alternate => {}
            Token::Text => String::from_utf8_lossy(used)
                .chars()
                .for_each(|c| self.print_char(c)),
            Token::Control(byte) => self.apply_control(byte),
            Token::Csi => self.apply_sequence(csi),
            Token::Escape(b'M') => self.row = self.row.saturating_sub(1),
            Token::Escape(_) | Token::Osc | Token::Nothing => {}
        }
    }

    fn switch_modes(&mut self, csi: &Csi) {
        let Some(ModeSwitch { modes, on }) = csi.mode_switch() else {
            return;
        };
        if modes.iter().any(|mode| is_alternate_screen(*mode)) {
            self.alternate = on;
        }
    }

    fn current_line(&mut self) -> &mut Vec<char> {
        while self.lines.len() <= self.row {
            self.lines.push(Vec::new());
        }
        self.row = self.row.min(self.lines.len() - 1);
        let row = self.row;
        &mut self.lines[row]
    }

    fn print_char(&mut self, c: char) {
        let length = self.current_line().len();
        if self.col > length {
            // The gap is paid from the budget, so a far jump cannot allocate without limit.
            let gap = (self.col - length).min(self.cells_left);
            self.cells_left -= gap;
            self.current_line().resize(length + gap, ' ');
            self.col = length + gap;
        }
        let col = self.col;
        match self.current_line().get_mut(col) {
            Some(cell) => *cell = c,
            None => self.current_line().push(c),
        }
        self.col += 1;
    }

    fn apply_control(&mut self, byte: u8) {
        match byte {
            b'\r' => self.col = 0,
            b'\n' | 0x0b | 0x0c => self.row += 1,
            0x08 => self.col = self.col.saturating_sub(1),
            b'\t' => self.col = (self.col / TAB_STOP + 1) * TAB_STOP,
            _ => return,
        }
        if self.row >= self.lines.len() && byte != b'\r' {
            self.lines.push(Vec::new());
            self.row = self.lines.len() - 1;
            // A terminal keeps the column at a line feed; streams mean the start of the next line.
            self.col = 0;
        } else if byte == b'\n' {
            self.col = 0;
        }
    }

    fn apply_sequence(&mut self, csi: &Csi) {
        if csi.private != 0 {
            return;
        }
        let count = usize::from(csi.param(0, 1));
        match csi.last {
            b'A' | b'F' => self.row = self.row.saturating_sub(count),
            b'B' | b'E' => self.row = (self.row + count).min(self.lines.len().saturating_sub(1)),
            b'C' => self.col = self.col.saturating_add(count),
            b'D' => self.col = self.col.saturating_sub(count),
            b'G' | b'`' => self.col = count - 1,
            // A stream has no fixed rows, so only the column of a position counts.
            b'H' | b'f' => self.col = usize::from(csi.param(1, 1)) - 1,
            b'J' => self.erase_below(csi.param(0, 0)),
            b'K' => self.erase_in_line(csi.param(0, 0)),
            b'P' => self.delete_cells(count),
            b'@' => self.insert_blanks(count),
            b'X' => self.blank_cells(self.col, count),
            _ => {}
        }
        if matches!(csi.last, b'E' | b'F') {
            self.col = 0;
        }
    }

    fn erase_below(&mut self, what: u16) {
        // Erasing everything starts the text over, as it would on a screen.
        if what >= 2 {
            self.lines = vec![Vec::new()];
            self.row = 0;
            return;
        }
        if what == 0 {
            self.erase_in_line(0);
            self.lines.truncate(self.row + 1);
        }
    }

    fn erase_in_line(&mut self, what: u16) {
        let col = self.col;
        match what {
            0 => self.current_line().truncate(col),
            1 => self.blank_cells(0, col + 1),
            _ => self.current_line().clear(),
        }
    }

    /// Whether this many cells may still be moved or blanked; counts them if so.
    fn may_move(&mut self, cells: usize) -> bool {
        let left = self.moves_left.checked_sub(cells);
        self.moves_left = left.unwrap_or(self.moves_left);
        left.is_some()
    }

    fn delete_cells(&mut self, count: usize) {
        let (col, length) = (self.col, self.current_line().len());
        let end = col.saturating_add(count).min(length);
        if col < end && self.may_move(length - end) {
            self.current_line().drain(col..end);
        }
    }

    fn insert_blanks(&mut self, count: usize) {
        let (col, length) = (self.col, self.current_line().len());
        let count = count.min(self.cells_left);
        if col < length && self.may_move(length - col) {
            self.current_line()
                .splice(col..col, std::iter::repeat_n(' ', count));
            self.cells_left -= count;
        }
    }

    fn blank_cells(&mut self, from: usize, count: usize) {
        let end = from.saturating_add(count).min(self.current_line().len());
        if from < end && self.may_move(end - from) {
            self.current_line()
                .get_mut(from..end)
                .unwrap_or_default()
                .fill(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_are_moved_or_blanked_are_bounded_by_the_bytes() {
        let line = "a".repeat(600_000);
        for (name, edit) in [
            ("delete", "\r\x1b[P"),
            ("insert", "\r\x1b[@"),
            ("blank", "\r\x1b[65535X"),
            ("erase", "\x1b[1K"),
        ] {
            let bytes = line.clone() + &edit.repeat(400_000);
            let most = bytes.len() * MOVES_PER_BYTE + MOVES_FREE;
            let grid = TextGrid::from_bytes(bytes.as_bytes());
            let smallest = 65_535;
            assert!(
                grid.moves_left < line.len().max(smallest),
                "{name} was not at its bound"
            );
            assert!(grid.moves_left < most);
        }
    }

    #[test]
    fn edits_of_long_lines_are_applied_while_there_is_work_left() {
        let line = "a".repeat(10_000);
        let edited = render((line.clone() + "\r\x1b[P\x1b[@b").as_bytes());
        assert_eq!(edited, format!("b{}", &line[1..]));
    }
}
