//! The content of a stream's turn: the raw bytes from the submit to the prompt line, without
//! echoes.
//!
//! Worked example, `ls` submitted at a bash prompt. The tty echoes the keys, then the program
//! answers:
//!
//! ```text
//! ls\r\n                  the echo of the submitted line, up to its line feed: removed
//! notes.txt\r\n           content
//! ^C\r\n                  the echo of an interrupt: `^C` removed
//! bash-5.2$               the prompt line: the content ends before it
//! ```
//!
//! The same words later on stay. An echo in mid-turn is removed only right behind the place at
//! which the line was typed, or where the tty would have put it. The first [`CONTENT_BYTES_MAX`]
//! bytes are kept and the rest is only counted. Nothing here fails: an echo that is not recognised
//! stays in the content.

use super::render::render;
use super::typed_line::{ExpectedEcho, TypedLine, without_blanks};
use crate::sequence::strip_sequences;

/// How many bytes of a turn are kept.
pub(super) const CONTENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far behind the place where a line was typed its echo is searched.
const ECHO_WINDOW_BYTES: usize = 4096;

/// How far behind an interrupt its `^C` is searched: output that was already on its way comes
/// first.
const INTERRUPT_WINDOW_BYTES: usize = 128 * 1024;

/// The longest line typed in mid-turn whose echo is searched.
const ECHO_BYTES_MAX: usize = 1024;

/// How many echoes inside a turn are removed.
const ECHOES_MAX: usize = 64;

/// The longest echo of the submitted input; a longer one counts as content, so that a turn without
/// an echo is not held back forever.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// The echo of the submitted input, at the head of the bytes.
#[derive(Debug, Clone)]
enum EchoHead {
    /// The echo is not over: these lines of it are expected (`None`: the input is not known).
    Pending(Option<ExpectedEcho>),
    /// The echo is over and content begins at this index.
    EndsAt(usize),
}

/// An echo that is expected in mid-turn.
#[derive(Debug)]
struct Echo {
    /// The index from which on it may be.
    from: usize,
    bytes: Vec<u8>,
    what: EchoKind,
}

/// What is echoed in mid-turn, and by which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EchoKind {
    /// `^C`, by the tty: at once, or behind output that was on its way. A line end follows.
    Interrupt,
    /// A line, by the tty: at once, or behind output that was on its way, at the start of a line.
    ByTty,
    /// A line, by the program that asked for it: at once.
    ByProgram,
}

/// How the input of a turn is echoed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EchoMode {
    /// A line editor echoes it and may repaint the line in any way.
    pub(super) line_editor: bool,
    /// The line editor switches bracketed paste off when the echo is complete.
    pub(super) until_paste_off: bool,
}

/// The content of a completed turn.
#[derive(Debug)]
pub(super) struct FinishedContent {
    pub(super) bytes: Vec<u8>,
    /// Whether bytes behind the limit were discarded.
    pub(super) truncated: bool,
}

/// The bytes of an open turn.
#[derive(Debug)]
pub(super) struct StreamContent {
    bytes: Vec<u8>,
    begin: u64,
    head: EchoHead,
    echoing: EchoMode,
    lines_seen: bool,
    echoes: Vec<Echo>,
    end: Option<u64>,
}

impl StreamContent {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            head: EchoHead::EndsAt(0),
            echoing: EchoMode::default(),
            lines_seen: false,
            echoes: Vec::new(),
            end: None,
        }
    }

    /// Begins a turn at an offset of the output. `line` is the current line so far.
    pub(super) fn begin(&mut self, at: u64, typed: &TypedLine, line: &[u8], echoing: EchoMode) {
        *self = Self::new();
        self.begin = at;
        self.echoing = echoing;
        let mut expected = typed.expected_echo();
        let shown = without_blanks(&strip_sequences(line));
        if let Some(ExpectedEcho { lines, .. }) = &mut expected
            && lines
                .back()
                .is_some_and(|last| shown.ends_with(last.as_str()) && !last.is_empty())
        {
            // The line was echoed while it was typed, so only its line feed is missing.
            lines.drain(..lines.len() - 1);
        }
        self.head = EchoHead::Pending(expected);
    }

    /// Adds output, up to the limit.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = CONTENT_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        // An echo cannot be this long, so these bytes are content.
        if self.bytes.len() > HEAD_BYTES_MAX && matches!(self.head, EchoHead::Pending(_)) {
            self.head = EchoHead::EndsAt(0);
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of the output at which content begins, as far as it is known.
    pub(super) fn content_offset(&self) -> u64 {
        let EchoHead::EndsAt(start) = self.head else {
            return self.begin;
        };
        self.begin.saturating_add(start as u64)
    }

    /// Whether the echo of the input is still expected.
    pub(super) fn is_in_echo(&self) -> bool {
        matches!(self.head, EchoHead::Pending(_))
    }

    /// Handles the line feed that ended `line` at an offset of the output. `line` is the whole
    /// line, with the prompt before the echo.
    pub(super) fn end_line(&mut self, at: u64, line: &[u8], prompt: &str) {
        let after = self.index_of(at);
        let first = !std::mem::replace(&mut self.lines_seen, true);
        let EchoHead::Pending(expected) = &mut self.head else {
            return;
        };
        // Only the first line feed can follow directly on the Enter.
        let since_enter = first.then(|| {
            without_blanks(&strip_sequences(
                self.bytes.get(..after).unwrap_or(&self.bytes),
            ))
        });
        let silent = since_enter.as_ref().is_some_and(String::is_empty);
        // Nothing visible came since the Enter: the tty or the editor only ended the line.
        let Some(expected) = expected.as_mut().filter(|_| !silent) else {
            self.head = EchoHead::EndsAt(after);
            return;
        };
        let line_editor = self.echoing.line_editor;
        let is_rest = since_enter.is_some_and(|since| expected.is_rest(&since, line, line_editor));
        if !is_rest && !expected.is_echo(line, &without_blanks(prompt), line_editor) {
            // The line is no echo, so everything since the Enter is content.
            self.head = EchoHead::EndsAt(0);
            return;
        }
        expected.lines.pop_front();
        expected.ahead_len = 0;
        if expected.lines.is_empty() {
            self.head = EchoHead::EndsAt(after);
        }
    }

    /// Ends the echo where a line editor switched bracketed paste off in the line that began at
    /// this offset.
    pub(super) fn end_echo_at_paste_off(&mut self, line_start: u64) {
        // Only the first switch ends the echo; later ones belong to the next prompt.
        if std::mem::take(&mut self.echoing.until_paste_off) {
            let until = self.index_of(line_start);
            self.head = match self.head {
                EchoHead::EndsAt(start) => EchoHead::EndsAt(start.max(until)),
                EchoHead::Pending(_) if until > 0 => EchoHead::EndsAt(until),
                EchoHead::Pending(_) => return,
            };
        }
    }

    /// Whether the content up to an offset of the output shows nothing. Discarded bytes count as
    /// visible.
    pub(super) fn is_blank(&self, end: u64) -> bool {
        let EchoHead::EndsAt(start) = self.head else {
            return true;
        };
        let Some(content) = self.bytes.get(start..self.index_of(end)) else {
            return false;
        };
        !strip_sequences(content).contains(|c: char| !c.is_whitespace())
    }

    /// The index in `bytes` of an offset of the output.
    fn index_of(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.begin)).unwrap_or(usize::MAX)
    }

    /// Begins the content here and drops everything before.
    pub(super) fn cut_head(&mut self, at: u64) {
        self.head = EchoHead::EndsAt(self.index_of(at));
        // A new beginning makes an end that came before it invalid.
        self.end = None;
    }

    /// Ends the content here, wherever the prompt line begins. The first call counts.
    pub(super) fn cut_tail(&mut self, at: u64) {
        self.end.get_or_insert(at);
    }

    /// Expects the `^C` of an interrupt.
    pub(super) fn expect_interrupt_echo(&mut self, at: u64) {
        self.expect_echo(at, b"^C".to_vec(), EchoKind::Interrupt);
    }

    /// Expects the echo of a line that is typed in mid-turn, from this offset of the output on.
    pub(super) fn expect_line_echo(&mut self, at: u64, line: &[u8], what: EchoKind) {
        if line.len() <= ECHO_BYTES_MAX {
            self.expect_echo(at, [line, b"\r\n"].concat(), what);
        }
    }

    fn expect_echo(&mut self, at: u64, bytes: Vec<u8>, what: EchoKind) {
        if self.echoes.len() < ECHOES_MAX {
            self.echoes.push(Echo {
                from: self.index_of(at),
                bytes,
                what,
            });
        }
    }

    /// Begins a turn whose first bytes came already, up to an offset of the output.
    pub(super) fn begin_with(&mut self, at: u64, bytes: Vec<u8>) {
        *self = Self::new();
        self.begin = at - bytes.len() as u64;
        self.bytes = bytes;
    }

    /// Returns the content up to an offset of the output, without echoes, and forgets it.
    pub(super) fn finish(&mut self, end: u64) -> FinishedContent {
        // A mark (OSC 133) is exact, so it wins over the place of the prompt.
        let end = self.index_of(self.end.unwrap_or(end));
        let start = match self.head {
            EchoHead::EndsAt(start) => start,
            // The echo never ended, so there is no content.
            EchoHead::Pending(_) => end,
        };
        let truncated = end > self.bytes.len();
        let end = end.min(self.bytes.len());
        let mut content = self.bytes.get(start..end).unwrap_or_default().to_vec();
        // From the back, so that a removal does not move the places of the echoes before it.
        for echo in self.echoes.iter().rev() {
            echo.remove_from(&mut content, start);
        }
        *self = Self::new();
        FinishedContent {
            bytes: content,
            truncated,
        }
    }
}

impl Echo {
    /// Removes the echo from the content that begins at `start`. The line end stays where the
    /// program had begun that line.
    fn remove_from(&self, content: &mut Vec<u8>, start: usize) {
        let from = self.from.saturating_sub(start);
        let reach = if self.what == EchoKind::Interrupt {
            INTERRUPT_WINDOW_BYTES
        } else {
            ECHO_WINDOW_BYTES
        };
        let until = content.len().min(from.saturating_add(reach));
        let Some(window) = content.get(from..until) else {
            return;
        };
        let mut places = window.windows(self.bytes.len()).enumerate();
        let found = places.find(|(at, found)| *found == self.bytes && self.may_be_at(window, *at));
        let Some((at, _)) = found else { return };
        let at = from + at;
        let is_asked = self.what != EchoKind::Interrupt
            && is_line_begun(content.get(..at).unwrap_or_default());
        // The program began the line, so its line end is content.
        let kept = if is_asked { b"\r\n".len() } else { 0 };
        content.drain(at..at + self.bytes.len() - kept);
    }

    /// Whether the match at this index can be the echo. At the start of the window it always can.
    fn may_be_at(&self, window: &[u8], at: usize) -> bool {
        let end = at + self.bytes.len();
        at == 0
            || match self.what {
                EchoKind::Interrupt => matches!(window.get(end), Some(b'\r' | b'\n' | 0x1b) | None),
                EchoKind::ByTty => window.get(at - 1) == Some(&b'\n'),
                EchoKind::ByProgram => false,
            }
    }
}

/// Whether the last line shows something.
fn is_line_begun(content: &[u8]) -> bool {
    let line = content
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    strip_sequences(line).contains(|c: char| !c.is_whitespace())
}

impl ExpectedEcho {
    /// Whether the bytes since the Enter are the rest of the expected line, whose beginning was
    /// echoed while it was typed. The line then ends with the expected text, unless a line editor
    /// has painted a preview below it, which leaves nothing to compare with.
    fn is_rest(&self, since_enter: &str, line: &[u8], line_editor: bool) -> bool {
        let Some(front) = self
            .lines
            .front()
            .filter(|front| front.ends_with(since_enter))
        else {
            return false;
        };
        line_editor || without_blanks(&strip_sequences(line)).ends_with(front.as_str())
    }

    /// Whether a line is the expected echo, with or without the prompt in front. It is compared as
    /// printed, which survives wrapping, and as shown, which survives editing.
    fn is_echo(&self, line: &[u8], prompt: &str, line_editor: bool) -> bool {
        let Some(front) = self.lines.front().filter(|front| !front.is_empty()) else {
            return false;
        };
        // Another program may have read what was typed before the prompt, so only the rest must
        // match.
        let surely = front
            .get(self.ahead_len..)
            .filter(|rest| !rest.is_empty())
            .unwrap_or(front);
        [strip_sequences(line), render(line)].iter().any(|shown| {
            let shown = without_blanks(shown);
            let echo = shown.strip_prefix(prompt).unwrap_or(&shown);
            let whole = front.ends_with(echo) && echo.ends_with(surely);
            shown == *front || whole || (line_editor && shown.ends_with(surely))
        })
    }
}
