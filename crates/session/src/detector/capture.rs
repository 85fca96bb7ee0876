//! The content of a stream's turn: the raw bytes from the submit to the prompt line, without the echo.
//!
//! The echo is the head: what the tty or the line editor prints of the submitted input, up to and
//! including the line feed that ends it. The same words later on stay. `^C` that answers an interrupt
//! is echo too, and so is a line that the tty echoed while it was typed ahead. The head of the bytes is
//! kept up to [`CONTENT_BYTES_MAX`], and the rest is only counted.

use super::render::render;
use super::sequence::strip;
use super::typed::{Lines, Typed, squeezed};

/// How many bytes of a turn are kept.
pub(super) const CONTENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far behind the place where something was typed its echo is looked for.
const ECHO_WINDOW_BYTES: usize = 4096;

/// How long a line that is typed ahead may be to be looked for.
const ECHO_BYTES_MAX: usize = 1024;

/// How many echoes inside of a turn are removed.
const ECHOES_MAX: usize = 64;

/// How long an echo may be; longer heads are content.
const HEAD_BYTES_MAX: usize = 128 * 1024;

#[derive(Debug, Clone)]
enum Head {
    /// The echo is not over: these lines of it are still to come (`None`: not known).
    Open(Option<Lines>),
    /// Content begins here.
    Done(usize),
}

/// Something that the tty echoes behind this place.
#[derive(Debug)]
struct Echo {
    behind: usize,
    bytes: Vec<u8>,
}

/// How a turn's input is echoed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Echoing {
    /// By a line editor, which repaints the line as it likes.
    pub(super) line_editor: bool,
    /// By one that switches bracketed paste off when it has done so.
    pub(super) until_paste_off: bool,
}

/// The bytes of a turn.
#[derive(Debug)]
pub(super) struct Capture {
    bytes: Vec<u8>,
    begin: u64,
    head: Head,
    echoing: Echoing,
    lines_seen: bool,
    echoes: Vec<Echo>,
    end: Option<u64>,
}

impl Capture {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            head: Head::Done(0),
            echoing: Echoing::default(),
            lines_seen: false,
            echoes: Vec::new(),
            end: None,
        }
    }

    /// Begins a turn at an offset of the output. `line` is what stands on the line so far.
    pub(super) fn begin(&mut self, at: u64, typed: &Typed, line: &[u8], echoing: Echoing) {
        *self = Self::new();
        self.begin = at;
        self.echoing = echoing;
        let mut expected = typed.lines();
        let shown = squeezed(&strip(line));
        if let Some(Lines { lines, .. }) = &mut expected
            && lines.back().is_some_and(|last| shown.ends_with(last.as_str()) && !last.is_empty())
        {
            // Echoed while it was typed: only the line feed is missing.
            lines.drain(..lines.len() - 1);
        }
        self.head = Head::Open(expected);
    }

    /// Takes output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = CONTENT_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.bytes.len() > HEAD_BYTES_MAX && matches!(self.head, Head::Open(_)) {
            self.head = Head::Done(0);
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the echo is not over yet.
    pub(super) fn in_head(&self) -> bool {
        matches!(self.head, Head::Open(_))
    }

    /// A line feed ended `line` (all of it, with the prompt before the echo) at an offset of the output.
    pub(super) fn line_feed(&mut self, at: u64, line: &[u8], prompt: &str) {
        let after = self.place(at);
        let first = !std::mem::replace(&mut self.lines_seen, true);
        let Head::Open(expected) = &mut self.head else { return };
        let silent = first && squeezed(&strip(self.bytes.get(..after).unwrap_or(&self.bytes))).is_empty();
        let Some(expected) = expected.as_mut().filter(|_| !silent) else {
            self.head = Head::Done(after);
            return;
        };
        if !expected.is_echo(line, &squeezed(prompt), self.echoing.line_editor) {
            self.head = Head::Done(0);
            return;
        }
        expected.lines.pop_front();
        expected.ahead = 0;
        if expected.lines.is_empty() {
            self.head = Head::Done(after);
        }
    }

    /// Bracketed paste was switched off in the line that began at this offset: a line editor that had it
    /// on is done with its echo.
    pub(super) fn paste_off(&mut self, line_start: u64) {
        if std::mem::take(&mut self.echoing.until_paste_off) {
            let until = self.place(line_start);
            self.head = match self.head {
                Head::Done(start) => Head::Done(start.max(until)),
                Head::Open(_) if until > 0 => Head::Done(until),
                Head::Open(_) => return,
            };
        }
    }

    /// Whether nothing can be seen of the content up to an offset of the output.
    pub(super) fn is_blank(&self, end: u64) -> bool {
        let Head::Done(start) = self.head else { return true };
        let content = self.bytes.get(start..self.place(end)).unwrap_or_default();
        !strip(content).contains(|c: char| !c.is_whitespace())
    }

    fn place(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.begin)).unwrap_or(usize::MAX)
    }

    /// Content begins here, whatever came before.
    pub(super) fn cut_head(&mut self, at: u64) {
        self.head = Head::Done(self.place(at));
        self.end = None;
    }

    /// Content ends here, wherever the prompt line begins.
    pub(super) fn cut_tail(&mut self, at: u64) {
        self.end.get_or_insert(at);
    }

    /// The user interrupted: the `^C` that follows is echo.
    pub(super) fn interrupted(&mut self, at: u64) {
        self.echoed(at, b"^C");
    }

    /// A line was typed ahead: the tty echoes it now.
    pub(super) fn typed_ahead(&mut self, at: u64, line: &[u8]) {
        if line.len() <= ECHO_BYTES_MAX {
            self.echoed(at, &[line, b"\r\n"].concat());
        }
    }

    fn echoed(&mut self, at: u64, bytes: &[u8]) {
        if self.echoes.len() < ECHOES_MAX {
            self.echoes.push(Echo { behind: self.place(at), bytes: bytes.to_vec() });
        }
    }

    /// The content up to an offset of the output, and whether it is only the head.
    pub(super) fn finish(&mut self, end: u64) -> (Vec<u8>, bool) {
        let end = self.place(self.end.unwrap_or(end));
        let start = match self.head {
            Head::Done(start) => start,
            Head::Open(_) => end,
        };
        let truncated = end > self.bytes.len();
        let end = end.min(self.bytes.len());
        let mut content = self.bytes.get(start..end).unwrap_or_default().to_vec();
        for echo in self.echoes.iter().rev() {
            echo.remove(&mut content, start);
        }
        *self = Self::new();
        (content, truncated)
    }
}

impl Echo {
    /// Removes it from the content that begins at `start`. A line is looked for where a line begins; `^C`
    /// comes at once, or behind what was on its way, and then the line ends.
    fn remove(&self, content: &mut Vec<u8>, start: usize) {
        let from = self.behind.saturating_sub(start);
        let until = content.len().min(from.saturating_add(ECHO_WINDOW_BYTES));
        let Some(window) = content.get(from..until) else { return };
        let is_line = self.bytes.ends_with(b"\n");
        let begins = |at: usize| window.get(at - 1) == Some(&b'\n');
        let ends = |at: usize| matches!(window.get(at + self.bytes.len()), Some(b'\r' | b'\n' | 0x1b) | None);
        let is_there = |at: usize| at == 0 || if is_line { begins(at) } else { ends(at) };
        let mut places = window.windows(self.bytes.len()).enumerate();
        if let Some((at, _)) = places.find(|(at, found)| *found == self.bytes && is_there(*at)) {
            content.drain(from + at..from + at + self.bytes.len());
        }
    }
}

impl Lines {
    /// Whether a line is the prompt, if it is one, and the echo of the next expected line. It is compared
    /// as it was printed, which survives wrapping, and as it is shown, which survives editing.
    fn is_echo(&self, line: &[u8], prompt: &str, line_editor: bool) -> bool {
        let Some(front) = self.lines.front().filter(|front| !front.is_empty()) else { return false };
        let surely = front.get(self.ahead..).filter(|rest| !rest.is_empty()).unwrap_or(front);
        [strip(line), render(line)].iter().any(|shown| {
            let shown = squeezed(shown);
            let echo = shown.strip_prefix(prompt).unwrap_or(&shown);
            let whole = front.ends_with(echo) && echo.ends_with(surely);
            shown == *front || whole || (line_editor && shown.ends_with(surely))
        })
    }
}
