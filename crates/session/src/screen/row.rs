//! One row of the screen as a value: its text, whether the terminal wrapped it, how it begins.
//!
//! Trailing blanks are not part of a row. Two rows are equal when their texts are, wherever the
//! text begins, because a program that animates changes colours, bullets and spinners, and moves a
//! list to the right when its numbers grow. Rows of a table are equal when the words of their cells
//! are, because a longer word makes the whole table wider.

use std::borrow::Cow;

/// The blanks that set a column at the right apart.
const COLUMN_GAP: &str = "   ";

/// A colour of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// The terminal's own.
    #[default]
    Default,
    /// An entry of the palette.
    Index(u8),
    /// A true colour.
    Rgb(u8, u8, u8),
}

/// The palette entries that form a ramp from black to white, and the brightness of the first one.
const RAMP: std::ops::RangeInclusive<u8> = 232..=255;
const RAMP_FIRST: u8 = 8;
const RAMP_STEP: u8 = 10;

/// The brightness of a grey that is neither black nor white.
const GREY: std::ops::RangeInclusive<u8> = 0x48..=0xb0;

/// How much the parts of a grey may differ.
const GREY_TINT: u8 = 0x18;

impl Colour {
    /// Whether the colour is a grey, neither black nor white. Programs use it for secondary text.
    pub fn is_grey(self) -> bool {
        match self {
            Self::Index(8) => true,
            Self::Index(index) if RAMP.contains(&index) => {
                GREY.contains(&(RAMP_FIRST + (index - RAMP.start()) * RAMP_STEP))
            }
            Self::Default | Self::Index(_) => false,
            Self::Rgb(red, green, blue) => {
                let (least, most) = (red.min(green).min(blue), red.max(green).max(blue));
                GREY.contains(&least) && GREY.contains(&most) && most - least <= GREY_TINT
            }
        }
    }
}

/// The style of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an attribute of a cell by itself"
)]
pub struct CellStyle {
    /// The foreground.
    pub foreground: Colour,
    /// The background.
    pub background: Colour,
    /// Whether the cell is dim.
    pub dim: bool,
    /// Whether the cell is bold.
    pub bold: bool,
    /// Whether the cell is italic.
    pub italic: bool,
    /// Whether the colours are reversed.
    pub inverse: bool,
}

/// A row of the screen.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The text, without trailing blanks.
    pub text: String,
    /// Whether the terminal (not the program) broke the line at the end of this row.
    pub wrapped: bool,
    /// The style of the first printed cell.
    pub lead: CellStyle,
    /// The style of the first cell of the second word.
    pub second_word: CellStyle,
    /// Whether the row stands for missing rows; the program has not painted it.
    pub gap: bool,
}

impl Row {
    /// The text without a column of its own at the right, such as a clock.
    pub(super) fn left_column(&self) -> &str {
        let text = self.text.trim_start();
        text.split_once(COLUMN_GAP).map_or(text, |(left, _)| left)
    }

    /// Whether nothing is printed on the row.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether one of the first two words has a colour of its own.
    pub(super) fn is_coloured(&self) -> bool {
        let own = |look: &CellStyle| {
            look.foreground != Colour::Default || look.background != Colour::Default
        };
        own(&self.lead) || own(&self.second_word)
    }

    /// Whether the row begins on a background of its own, as a prompt of the user does.
    pub(super) fn is_shaded(&self) -> bool {
        self.lead.background != Colour::Default
    }

    /// The foreground of the first word, where it differs from that of the second.
    pub(super) fn distinct_lead_colour(&self) -> Option<Colour> {
        Some(self.lead.foreground).filter(|foreground| *foreground != self.second_word.foreground)
    }

    /// The text by which the row is recognised: without animated characters in front, and of a
    /// table only the cells.
    ///
    /// ```text
    /// │ heron  │   Rust │        and │heron │Rust│    are both   │heron│Rust│
    /// | Engine | Language |       and │Engine│Language│ are both │Engine│Language│
    /// ├────────┼────────┤         and |:-----|---|    are both   ├
    /// ```
    pub(super) fn comparison_key(&self) -> Cow<'_, str> {
        let text = self.text.trim_start_matches(is_decoration);
        match text.chars().next() {
            // A program shows the markdown source first and draws the table later: both must be one
            // row.
            Some('│' | '|') if is_source_rule(text) => Cow::Borrowed("├"),
            Some('│' | '|') => Cow::Owned(table_cells(text).collect::<Vec<_>>().join("│")),
            Some('├') if is_drawn_rule(text) => Cow::Borrowed("├"),
            Some('┌') if is_drawn_rule(text) => Cow::Borrowed("┌"),
            Some('└') if is_drawn_rule(text) => Cow::Borrowed("└"),
            _ => Cow::Borrowed(text),
        }
    }

    /// Whether this row completes a half-written row of a table: each cell begins as it did.
    pub(super) fn completes_cells_of(&self, before: &Self) -> bool {
        let is_row = |row: &Self| row.text.trim_start().starts_with('│');
        if !is_row(self) || !is_row(before) {
            return false;
        }
        let (old, new) = (table_cells(&before.text), table_cells(&self.text));
        let has_words = table_cells(&before.text).any(|cell| !cell.is_empty());
        let same_count = old.clone().count() == new.clone().count();
        has_words && same_count && old.zip(new).all(|(old, new)| new.starts_with(old))
    }
}

/// The letters and digits of a text, which are the same however its lines are broken.
pub(super) fn letters(text: &str) -> impl Iterator<Item = char> + Clone {
    text.chars().filter(|c| c.is_alphanumeric())
}

/// Whether a character in front of a row comes and goes while the program animates it.
fn is_decoration(c: char) -> bool {
    matches!(c, ' ' | '●' | '•' | '┃' | '$' | '\u{2800}'..='\u{28ff}')
}

/// The words of a table's cells, in order.
fn table_cells(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(['│', '|']).map(str::trim)
}

/// Whether a row separates the head of a table from its rows in markdown: `|:---|---|`.
fn is_source_rule(text: &str) -> bool {
    text.contains('-') && text.chars().all(|c| matches!(c, '|' | ':' | '-' | ' '))
}

/// Whether a row is a rule of a drawn table.
fn is_drawn_rule(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(c, '─' | '┌' | '┬' | '┐' | '├' | '┼' | '┤' | '└' | '┴' | '┘'))
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.comparison_key() == other.comparison_key()
    }
}

impl Eq for Row {}
