//! Filters the bytes on their way to the emulator: limits, repairs and reports.
//!
//! Everything that it does not name passes unchanged, and cutting the bytes differently changes
//! nothing. It cannot fail: invalid sequences pass too, and the emulator drops them.
//!
//! - Strings (OSC, DCS, APC, PM, SOS) are cut at [`STRING_BYTES_MAX`], because the emulator's
//!   parser would grow with them.
//! - Emoji joined by U+200D, and skin tones, become marks without width, because programs count
//!   such a cluster as one glyph of two cells and the emulator would count each part. So does
//!   U+FE0F, whose width programs disagree on. Cells that a program counts to such a cluster, and
//!   the emulator does not, are blanked.
//! - Characters of two cells are reported. A terminal that breaks a line before one leaves the last
//!   cell empty, and the emulator then forgets that it broke the line.
//! - Sequences that change how frames are compared (mode 2026, `CSI 3 J`, reset, all rows erased)
//!   are reported where they occur.

use crate::sequence::{Csi, ModeSwitch, Token, Tokenizer, is_alternate_screen};

/// How much of an OSC, DCS, APC, PM or SOS string reaches the emulator.
pub const STRING_BYTES_MAX: usize = 64 * 1024;

/// How many cells the emulator gives to an emoji, however many others are joined to it.
const EMOJI_CELLS: u16 = 2;

/// The first of 240 marks without width that stand for a joined character.
const MARK_FIRST: u32 = 0xE0100;
const MARK_LAST: u32 = 0xE01EF;
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Selects the emoji form of the character before it.
pub(super) const EMOJI_FORM: char = '\u{fe0f}';

/// A sequence that the emulator's owner must handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceNotice {
    /// A synchronized update begins.
    SyncBegin,
    /// A synchronized update ends: the screen is a whole frame.
    SyncEnd,
    /// The scrollback is erased: a repaint from the first row follows.
    Restart,
    /// A character of two cells comes next; it is not among the filtered bytes.
    Wide(char),
    /// The program may have switched screens.
    Screens,
    /// Every row is erased.
    Erased,
    /// This many rows are erased, one by one from the first, with nothing printed in between.
    RowsErased(u16),
    /// The cursor moves up this many rows; the last filtered byte moves it.
    Up(u16),
}

/// The result of [`SequenceFilter::filter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filtered {
    /// How many bytes were read.
    pub(super) used: usize,
    pub(super) notice: Option<SequenceNotice>,
}

/// A glyph that is printed right behind a move of the cursor.
#[derive(Debug, Clone, Copy)]
struct PlacedGlyph {
    row: u16,
    col: u16,
    /// How many emoji are joined in it; zero before it is printed.
    parts: u16,
    /// The column behind it, as the program counts.
    end: Option<u16>,
}

impl PlacedGlyph {
    /// Whether the program may mean the end of the glyph by a move to this cell: the cells of its
    /// parts lie in between, and more of them than the emulator gives it.
    fn may_end_at(&self, row: u16, col: u16) -> bool {
        let cells = col.saturating_sub(self.col);
        row == self.row && cells > EMOJI_CELLS && cells <= self.parts.saturating_mul(EMOJI_CELLS)
    }

    /// How many cells the program counts to the glyph and the emulator does not.
    fn unpainted_cells(&self) -> Option<u16> {
        self.end.map(|end| end - self.col - EMOJI_CELLS)
    }
}

/// Whether a character surely takes two cells: the scripts without blanks between words, whose
/// lines the terminal breaks anywhere.
fn is_wide(code: u32) -> bool {
    matches!(code,
        0x3041..=0x3096 | 0x30a1..=0x30fa | 0x3001..=0x3011 | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xac00..=0xd7a3 | 0xf900..=0xfa6d | 0xff01..=0xff60 | 0x20000..=0x2fffd)
}

fn mode_notice(ModeSwitch { modes, on }: ModeSwitch<'_>) -> Option<SequenceNotice> {
    if modes.contains(&2026) {
        Some(if on {
            SequenceNotice::SyncBegin
        } else {
            SequenceNotice::SyncEnd
        })
    } else {
        modes
            .iter()
            .any(|mode| is_alternate_screen(*mode))
            .then_some(SequenceNotice::Screens)
    }
}

/// The filter. [`SequenceFilter::filter`] returns at the next notice.
#[derive(Debug)]
pub(super) struct SequenceFilter {
    tokens: Tokenizer,
    /// How many bytes of the open string were read.
    string_bytes: usize,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
    joins: bool,
    /// How many rows were erased since the cursor went to the first cell; `None` once something was
    /// printed.
    erased: Option<u16>,
    glyph: Option<PlacedGlyph>,
    marks: Vec<char>,
}

impl SequenceFilter {
    pub(super) fn new() -> Self {
        Self {
            tokens: Tokenizer::new(),
            string_bytes: 0,
            partial: Vec::new(),
            joins: false,
            erased: None,
            glyph: None,
            marks: Vec::new(),
        }
    }

    /// Filters bytes into `out` until they end or there is a notice.
    pub(super) fn filter(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Filtered {
        let mut used = 0;
        while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
            let was_in_string = self.tokens.is_in_string();
            let step = self.tokens.next_token(rest);
            let piece = rest.get(..step.used).unwrap_or(rest);
            let filtered = if step.token == Token::Text {
                self.read_text(piece, out)
            } else {
                self.pass_control(piece, was_in_string, out);
                Filtered {
                    used: step.used,
                    notice: self.notice_for_token(step.token, out),
                }
            };
            used += filtered.used;
            if filtered.notice.is_some() {
                return Filtered { used, ..filtered };
            }
        }
        Filtered { used, notice: None }
    }

    /// The character that a mark stands for; other characters stand for themselves.
    pub(super) fn restore_char(&self, c: char) -> char {
        match u32::from(c) {
            code @ MARK_FIRST..=MARK_LAST => self
                .marks
                .get((code - MARK_FIRST) as usize)
                .copied()
                .unwrap_or(c),
            _ => c,
        }
    }

    /// Passes bytes that are not text, except those of a string beyond the limit.
    fn pass_control(&mut self, piece: &[u8], was_in_string: bool, out: &mut Vec<u8>) {
        self.flush_partial(out);
        self.joins = false;
        if was_in_string && self.tokens.is_in_string() {
            self.string_bytes += piece.len();
            if self.string_bytes > STRING_BYTES_MAX {
                return;
            }
        } else {
            self.string_bytes = 0;
        }
        out.extend_from_slice(piece);
    }

    fn notice_for_token(&mut self, token: Token, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        match token {
            Token::Csi => self.notice_for_sequence(*self.tokens.csi(), out),
            Token::Escape(b'c') => Some(SequenceNotice::Restart),
            Token::Control(_) | Token::Escape(_) => {
                self.glyph = None;
                None
            }
            Token::Text | Token::Osc | Token::Nothing => None,
        }
    }

    fn notice_for_sequence(&mut self, csi: Csi, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        // A colour may stand between a glyph and the move that ends it, nothing else.
        if !matches!(csi.last, b'H' | b'm') {
            self.glyph = None;
        }
        if let Some(switch) = csi.mode_switch() {
            return mode_notice(switch);
        }
        if !csi.is_plain() {
            return None;
        }
        match (csi.last, csi.params()) {
            (b'J', [3]) => Some(SequenceNotice::Restart),
            (b'J', [2]) => Some(SequenceNotice::Erased),
            // Erasing from the first cell to the end erases everything.
            (b'J', [] | [0]) if self.erased == Some(0) => Some(SequenceNotice::Erased),
            (b'H', _) => {
                self.move_cursor(csi.param(0, 1), csi.param(1, 1), out);
                None
            }
            (b'K', [2]) => {
                self.erased = self.erased.map(|rows| rows.saturating_add(1));
                self.erased.map(SequenceNotice::RowsErased)
            }
            (b'A', _) => Some(SequenceNotice::Up(csi.param(0, 1))),
            _ => None,
        }
    }

    /// Follows a move of the cursor. The cells that the program counts to a glyph, and the emulator
    /// does not, are blanked: the program believes them painted.
    ///
    /// Worked example, a family of four at column 8:
    ///
    /// ```text
    /// CSI 1;8 H  👨‍👩‍👧‍👦      the emulator gives it columns 8 and 9
    /// CSI 1;12 H           the program believes that it ends before column 12
    /// CSI 1;12 H           nothing was printed since, so the first move said just that:
    ///                      columns 10 and 11 are blanked
    /// ```
    ///
    /// A single move proves nothing: it may skip cells that are unchanged.
    fn move_cursor(&mut self, row: u16, col: u16, out: &mut Vec<u8>) {
        if (row, col) == (1, 1) {
            self.erased = Some(0);
        }
        if let Some(glyph) = &mut self.glyph {
            if let Some(cells) = glyph.unpainted_cells() {
                let first = glyph.col + EMOJI_CELLS;
                let blanks = format!("\x1b[{};{first}H\x1b[{cells}X\x1b[{row};{col}H", glyph.row);
                out.extend_from_slice(blanks.as_bytes());
            } else if glyph.may_end_at(row, col) {
                glyph.end = Some(col);
                return;
            }
        }
        self.glyph = Some(PlacedGlyph {
            row,
            col,
            parts: 0,
            end: None,
        });
    }

    /// Reads text up to its end or to a notice.
    fn read_text(&mut self, text: &[u8], out: &mut Vec<u8>) -> Filtered {
        self.erased = None;
        let mut used = 0;
        while let Some(rest) = text.get(used..).filter(|rest| !rest.is_empty()) {
            // Most output is ASCII, which passes as a whole. Only other characters are decoded.
            let is_other = |byte: &u8| !byte.is_ascii();
            let ascii = rest.iter().position(is_other).unwrap_or(rest.len());
            if ascii > 0 {
                self.flush_partial(out);
                (self.joins, self.glyph) = (false, None);
                out.extend_from_slice(rest.get(..ascii).unwrap_or(rest));
                used += ascii;
                continue;
            }
            used += 1;
            let notice = rest.first().and_then(|byte| self.read_utf8(*byte, out));
            if notice.is_some() {
                return Filtered { used, notice };
            }
        }
        Filtered { used, notice: None }
    }

    fn read_utf8(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        // A new character begins, so the one before was incomplete.
        if byte >= 0xc0 {
            self.flush_partial(out);
        }
        self.partial.push(byte);
        match std::str::from_utf8(&self.partial) {
            Ok(text) => {
                let c = text.chars().next();
                self.partial.clear();
                return self.read_char(c?, out);
            }
            Err(error) if error.error_len().is_some() => self.flush_partial(out),
            Err(_) => {}
        }
        None
    }

    fn flush_partial(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.partial);
    }

    fn read_char(&mut self, c: char, out: &mut Vec<u8>) -> Option<SequenceNotice> {
        let code = u32::from(c);
        let tone = (0x1f3fb..=0x1f3ff).contains(&code);
        let mark = (MARK_FIRST..=MARK_LAST).contains(&code);
        // A joiner before ordinary text joins nothing.
        let joined = self.joins && code >= 0x2000;
        self.joins = c == ZERO_WIDTH_JOINER;
        let continues = tone || mark || self.joins || c == EMOJI_FORM;
        self.extend_glyph(joined, continues);
        if is_wide(code) && !joined {
            return Some(SequenceNotice::Wide(c));
        }
        let printed = if joined || tone || mark || c == EMOJI_FORM {
            self.mark_for(c)
        } else {
            Some(c)
        };
        if let Some(c) = printed {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None
    }

    /// Counts a character to the glyph behind the last move, or ends it.
    fn extend_glyph(&mut self, joined: bool, continues: bool) {
        match &mut self.glyph {
            Some(glyph) if joined || glyph.parts == 0 => {
                glyph.parts = glyph.parts.saturating_add(1);
            }
            Some(_) if continues => {}
            _ => self.glyph = None,
        }
    }

    /// The mark for a character; `None` when all are in use, and the glyph then lacks that part.
    fn mark_for(&mut self, c: char) -> Option<char> {
        let at = self
            .marks
            .iter()
            .position(|m| *m == c)
            .unwrap_or(self.marks.len());
        let code = MARK_FIRST + u32::try_from(at).ok()?;
        if code > MARK_LAST {
            return None;
        }
        if at == self.marks.len() {
            self.marks.push(c);
        }
        char::from_u32(code)
    }
}
