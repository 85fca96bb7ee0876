//! The input and output types of the detector. They hold no logic.

use crate::screen::Size;
use std::fmt;
use std::time::Duration;

/// An input of the detector.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The program wrote these bytes.
    Output(&'a [u8]),
    /// The program received these bytes, typed or injected.
    Input(&'a [u8]),
    /// The current mode of the tty, read from its master side. Repeating the same mode is harmless.
    TtyMode(TtyMode),
    /// The window has a new size.
    Resize(Size),
    /// The caller passed SIGINT on to the program.
    Interrupt,
    /// Output was dropped because the reader lagged, so the open turn is incomplete.
    Gap,
    /// Only time passed.
    Tick,
}

/// The mode of a tty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtyMode {
    /// The kernel edits input and delivers it line by line.
    pub canonical: bool,
    /// The kernel echoes input.
    pub echo: bool,
}

/// An output of the detector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// The first prompt was seen: from here on, input makes turns.
    Ready,
    /// The program's state changed.
    State(State),
    /// A turn is complete.
    Turn(Box<Turn>),
}

/// The state of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No prompt was seen yet.
    Starting,
    /// The program waits for a prompt.
    Ready,
    /// The program works.
    Working,
    /// The program waits for a decision, inside a turn.
    Blocked,
}

/// The signal that showed a prompt, in the order of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The program's own status report (OSC 7501).
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
    /// The bytes that are relayed: the raw bytes of a stream, the text of a screen.
    pub content: Vec<u8>,
    /// The content as plain text.
    pub text: String,
    /// The program's output during a screen's turn, where the caller asked to keep it.
    pub raw: Option<Vec<u8>>,
    /// Whether bytes at the end of `raw` were discarded.
    pub raw_truncated: bool,
    /// Whether bytes at the end of `content` were discarded.
    pub truncated: bool,
    /// Whether the user interrupted the turn.
    pub interrupted: bool,
    /// Whether part of the turn is missing.
    pub incomplete: bool,
    /// Whether the program spoke although the user submitted nothing. Such a text is kept, but is
    /// not a turn for most callers.
    pub unprompted: bool,
    /// The signal that showed the end of the turn.
    pub signal: Signal,
    /// The time of the submit.
    pub start: Duration,
    /// The time at which the end was detected.
    pub end: Duration,
}
