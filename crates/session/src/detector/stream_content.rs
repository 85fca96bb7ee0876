//! The content of a stream's turn: the raw bytes from the submit to the prompt line, without the
//! echo.
//!
//! The echo is the head: what the tty or the line editor prints of the submitted input, up to and
//! including the line feed that ends it. The same words later on stay. `^C` that answers an
//! interrupt is echo too, and so is a line that was typed in mid-turn, where it stands right behind
//! the place at which it was typed. The head of the bytes is kept up to [`CONTENT_BYTES_MAX`], and
//! the rest is only counted.

use super::render::render;
use super::sequence::strip_sequences;
use super::typed_line::{ExpectedEcho, TypedLine, without_blanks};

/// How many bytes of a turn are kept.
pub(super) const CONTENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far behind the place where a line was typed its echo is looked for.
const ECHO_WINDOW_BYTES: usize = 4096;

/// How far the `^C` of an interrupt may be behind it: a flood that was on its way comes first.
const INTERRUPT_WINDOW_BYTES: usize = 128 * 1024;

/// How long a line that is typed in mid-turn may be to be looked for.
const ECHO_BYTES_MAX: usize = 1024;

/// How many echoes inside of a turn are removed.
const ECHOES_MAX: usize = 64;

/// How long an echo may be; longer heads are content.
const HEAD_BYTES_MAX: usize = 128 * 1024;

#[derive(Debug, Clone)]
enum EchoHead {
    /// The echo is not over: these lines of it are still to come (`None`: not known).
    Pending(Option<ExpectedEcho>),
    /// Content begins here.
    EndsAt(usize),
}

/// Something that is echoed behind this place.
#[derive(Debug)]
struct Echo {
    from: usize,
    bytes: Vec<u8>,
    what: EchoKind,
}

/// What is echoed in mid-turn, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EchoKind {
    /// `^C`, by the tty: at once, or behind what was on its way, and then the line ends.
    Interrupt,
    /// A line, by the tty: at once, or behind what was on its way, where a line begins.
    ByTty,
    /// A line, by the program that asked for it: at once.
    ByProgram,
}

/// How a turn's input is echoed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EchoMode {
    /// By a line editor, which repaints the line as it likes.
    pub(super) line_editor: bool,
    /// By one that switches bracketed paste off when it has done so.
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

    /// Begins a turn at an offset of the output. `line` is what stands on the line so far.
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
            // Echoed while it was typed: only the line feed is missing.
            lines.drain(..lines.len() - 1);
        }
        self.head = EchoHead::Pending(expected);
    }

    /// Takes output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = CONTENT_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.bytes.len() > HEAD_BYTES_MAX && matches!(self.head, EchoHead::Pending(_)) {
            self.head = EchoHead::EndsAt(0);
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of the output at which content begins, as far as that is known.
    pub(super) fn content_offset(&self) -> u64 {
        let EchoHead::EndsAt(start) = self.head else {
            return self.begin;
        };
        self.begin.saturating_add(start as u64)
    }

    /// Whether the echo is not over yet.
    pub(super) fn is_in_echo(&self) -> bool {
        matches!(self.head, EchoHead::Pending(_))
    }

    /// A line feed ended `line` (all of it, with the prompt before the echo) at an offset of the
    /// output.
    pub(super) fn end_line(&mut self, at: u64, line: &[u8], prompt: &str) {
        let after = self.index_of(at);
        let first = !std::mem::replace(&mut self.lines_seen, true);
        let EchoHead::Pending(expected) = &mut self.head else {
            return;
        };
        let since_enter = first.then(|| {
            without_blanks(&strip_sequences(
                self.bytes.get(..after).unwrap_or(&self.bytes),
            ))
        });
        let silent = since_enter.as_ref().is_some_and(String::is_empty);
        let Some(expected) = expected.as_mut().filter(|_| !silent) else {
            self.head = EchoHead::EndsAt(after);
            return;
        };
        let line_editor = self.echoing.line_editor;
        let is_rest = since_enter.is_some_and(|since| expected.is_rest(&since, line, line_editor));
        if !is_rest && !expected.is_echo(line, &without_blanks(prompt), line_editor) {
            self.head = EchoHead::EndsAt(0);
            return;
        }
        expected.lines.pop_front();
        expected.ahead_len = 0;
        if expected.lines.is_empty() {
            self.head = EchoHead::EndsAt(after);
        }
    }

    /// Bracketed paste was switched off in the line that began at this offset: a line editor that
    /// had it on is done with its echo.
    pub(super) fn end_echo_at_paste_off(&mut self, line_start: u64) {
        if std::mem::take(&mut self.echoing.until_paste_off) {
            let until = self.index_of(line_start);
            self.head = match self.head {
                EchoHead::EndsAt(start) => EchoHead::EndsAt(start.max(until)),
                EchoHead::Pending(_) if until > 0 => EchoHead::EndsAt(until),
                EchoHead::Pending(_) => return,
            };
        }
    }

    /// Whether nothing can be seen of the content up to an offset of the output. Of what was not
    /// kept nobody knows, so it counts as seen.
    pub(super) fn is_blank(&self, end: u64) -> bool {
        let EchoHead::EndsAt(start) = self.head else {
            return true;
        };
        let Some(content) = self.bytes.get(start..self.index_of(end)) else {
            return false;
        };
        !strip_sequences(content).contains(|c: char| !c.is_whitespace())
    }

    fn index_of(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.begin)).unwrap_or(usize::MAX)
    }

    /// Content begins here, whatever came before.
    pub(super) fn cut_head(&mut self, at: u64) {
        self.head = EchoHead::EndsAt(self.index_of(at));
        self.end = None;
    }

    /// Content ends here, wherever the prompt line begins.
    pub(super) fn cut_tail(&mut self, at: u64) {
        self.end.get_or_insert(at);
    }

    /// The user interrupted: the `^C` that follows is echo.
    pub(super) fn expect_interrupt_echo(&mut self, at: u64) {
        self.expect_echo(at, b"^C".to_vec(), EchoKind::Interrupt);
    }

    /// A line was typed in mid-turn, from this offset of the output on.
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

    /// Begins a turn of which these bytes came already, up to an offset of the output.
    pub(super) fn begin_with(&mut self, at: u64, bytes: Vec<u8>) {
        *self = Self::new();
        self.begin = at - bytes.len() as u64;
        self.bytes = bytes;
    }

    /// Returns the content up to an offset of the output, without echoes, and forgets it.
    pub(super) fn finish(&mut self, end: u64) -> FinishedContent {
        let end = self.index_of(self.end.unwrap_or(end));
        let start = match self.head {
            EchoHead::EndsAt(start) => start,
            EchoHead::Pending(_) => end,
        };
        let truncated = end > self.bytes.len();
        let end = end.min(self.bytes.len());
        let mut content = self.bytes.get(start..end).unwrap_or_default().to_vec();
        for echo in self.echoes.iter().rev() {
            echo.remove(&mut content, start);
        }
        *self = Self::new();
        FinishedContent {
            bytes: content,
            truncated,
        }
    }
}

impl Echo {
    /// Removes it from the content that begins at `start`. The end of a line stays where the
    /// program had begun that line.
    fn remove(&self, content: &mut Vec<u8>, start: usize) {
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
        let kept = if is_asked { b"\r\n".len() } else { 0 };
        content.drain(at..at + self.bytes.len() - kept);
    }

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

/// Whether something can be seen on the last line.
fn is_line_begun(content: &[u8]) -> bool {
    let line = content
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    strip_sequences(line).contains(|c: char| !c.is_whitespace())
}

impl ExpectedEcho {
    /// Whether what came since the Enter is the rest of the next expected line, the beginning of
    /// which was echoed while it was typed. It stands there behind any prompt, or a line editor has
    /// painted a preview below it since, which leaves nothing of the line to compare with.
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

    /// Whether a line is the prompt, if it is one, and the echo of the next expected line. It is
    /// compared as it was printed, which survives wrapping, and as it is shown, which survives
    /// editing.
    fn is_echo(&self, line: &[u8], prompt: &str, line_editor: bool) -> bool {
        let Some(front) = self.lines.front().filter(|front| !front.is_empty()) else {
            return false;
        };
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
