//! One row of the screen as a value: its text, whether the terminal wrapped it, how it begins.
//!
//! Trailing blanks are not part of a row. Two rows are equal when their text is, wherever it begins:
//! colours change and bullets blink while a program animates, a list is moved to the right when its
//! numbers grow, and such a row is still the same row.

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

/// The entries of the palette that are a ramp from black to white, and how bright the first of them is.
const RAMP: std::ops::RangeInclusive<u8> = 232..=255;
const RAMP_FIRST: u8 = 8;
const RAMP_STEP: u8 = 10;

/// How bright a grey is that is neither black nor white.
const GREY: std::ops::RangeInclusive<u8> = 0x48..=0xb0;

/// How far apart the parts of a grey may be.
const GREY_TINT: u8 = 0x18;

impl Colour {
    /// Whether it is a grey, neither black nor white: what programs print in passing.
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

/// How the first printed cell of a row looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute of a cell by itself")]
pub struct Lead {
    /// Its foreground.
    pub foreground: Colour,
    /// Its background.
    pub background: Colour,
    /// Whether it is dim.
    pub dim: bool,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it is italic.
    pub italic: bool,
    /// Whether its colours are reversed.
    pub inverse: bool,
}

/// A row of the screen.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The text, without trailing blanks.
    pub text: String,
    /// Whether the terminal (not the program) broke the line at the end of this row.
    pub wrapped: bool,
    /// The look of its first printed cell.
    pub lead: Lead,
    /// The look of the first cell of its second word.
    pub word: Lead,
}

impl Row {
    /// Whether nothing is printed on it.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether it begins with something that is not as the terminal paints by itself.
    pub(super) fn is_coloured(&self) -> bool {
        let own = |look: &Lead| look.foreground != Colour::Default || look.background != Colour::Default;
        own(&self.lead) || own(&self.word)
    }

    /// The foreground of its first word, where that is not the one of the next.
    pub(super) fn quiet(&self) -> Option<Colour> {
        Some(self.lead.foreground).filter(|foreground| *foreground != self.word.foreground)
    }

    /// The text by which it is known again.
    pub(super) fn key(&self) -> &str {
        self.text.trim_start_matches([' ', '●', '•'])
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Row {}
