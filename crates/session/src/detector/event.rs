//! The vocabulary of the detector: what goes in, what comes out.

use crate::screen::Size;
use std::fmt;
use std::time::Duration;

/// What the detector is told.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The program wrote.
    Output(&'a [u8]),
    /// The program got input, typed or injected.
    Input(&'a [u8]),
    /// The tty's mode, as read from the master; repeat it as often as it is read.
    TtyMode(TtyMode),
    /// The window has a new size.
    Resize(Size),
    /// SIGINT was passed on to the program.
    Interrupt,
    /// Output was dropped because the reader lagged: the turn is incomplete.
    Gap,
    /// Time passed.
    Tick,
}

/// The mode of a tty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtyMode {
    /// Input is edited and given line by line by the kernel.
    pub canonical: bool,
    /// Input is echoed by the kernel.
    pub echo: bool,
}

/// What the detector says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The first prompt was seen: from here on input makes turns.
    Ready,
    /// What the program does changed.
    State(State),
    /// A turn is complete.
    Turn(Box<Turn>),
}

/// What the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No prompt was seen yet.
    Starting,
    /// It waits for a prompt.
    Ready,
    /// It works.
    Working,
    /// It waits for a decision, inside a turn.
    Blocked,
}

/// Which signal told the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The program's own status (OSC 7501).
    Status,
    /// Shell integration (OSC 133).
    Marks,
    /// The window title.
    Title,
    /// Rows of the screen.
    Rows,
    /// The tty's mode, with the text left of the cursor.
    Tty,
    /// Bracketed paste, with the text left of the cursor.
    Paste,
    /// A pattern on a line.
    Line,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "status",
            Self::Marks => "marks",
            Self::Title => "title",
            Self::Rows => "rows",
            Self::Tty => "tty",
            Self::Paste => "paste",
            Self::Line => "line",
        })
    }
}

/// A completed turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else about the turn"
)]
pub struct Turn {
    /// What is relayed: the raw bytes of a stream, the text of a screen.
    pub content: Vec<u8>,
    /// The content as text.
    pub text: String,
    /// The program's output of a screen's turn, where it is kept.
    pub raw: Option<Vec<u8>>,
    /// Whether `raw` is only the head.
    pub raw_truncated: bool,
    /// Whether `content` is only the head.
    pub truncated: bool,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether part of it is missing.
    pub incomplete: bool,
    /// Whether the program spoke although nothing was submitted: no turn in the strict sense.
    pub unprompted: bool,
    /// Which signal told its end.
    pub signal: Signal,
    /// When its input was submitted.
    pub start: Duration,
    /// When its end was told.
    pub end: Duration,
}
