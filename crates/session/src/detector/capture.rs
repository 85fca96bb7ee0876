//! The content of a stream's turn: the raw bytes from the submit to the prompt line, without the
//! echo.
//!
//! The echo is the head: what the tty or the line editor prints of the submitted input, up to and
//! including the line feed that ends it. The same words later on stay. `^C` that answers an
//! interrupt is echo too, and so is a line that was typed in mid-turn, where it stands right behind
//! the place at which it was typed. The head of the bytes is kept up to [`CONTENT_BYTES_MAX`], and
//! the rest is only counted.

use super::render::render;
use super::sequence::strip;
use super::typed::{Lines, Typed, squeezed};

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
enum Head {
    /// The echo is not over: these lines of it are still to come (`None`: not known).
    Open(Option<Lines>),
    /// Content begins here.
    Done(usize),
}

/// Something that is echoed behind this place.
#[derive(Debug)]
struct Echo {
    behind: usize,
    bytes: Vec<u8>,
    what: Heard,
}

/// What is echoed in mid-turn, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// `^C`, by the tty: at once, or behind what was on its way, and then the line ends.
    Interrupt,
    /// A line, by the tty: at once, or behind what was on its way, where a line begins.
    Ahead,
    /// A line, by the program that asked for it: at once.
    Inside,
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
            && lines
                .back()
                .is_some_and(|last| shown.ends_with(last.as_str()) && !last.is_empty())
        {
            // Echoed while it was typed: only the line feed is missing.
            lines.drain(..lines.len() - 1);
        }
        self.head = Head::Open(expected);
    }

    /// Takes output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = CONTENT_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.bytes.len() > HEAD_BYTES_MAX && matches!(self.head, Head::Open(_)) {
            self.head = Head::Done(0);
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of the output at which content begins, as far as that is known.
    pub(super) fn begins_at(&self) -> u64 {
        let Head::Done(start) = self.head else {
            return self.begin;
        };
        self.begin.saturating_add(start as u64)
    }

    /// Whether the echo is not over yet.
    pub(super) fn in_head(&self) -> bool {
        matches!(self.head, Head::Open(_))
    }

    /// A line feed ended `line` (all of it, with the prompt before the echo) at an offset of the
    /// output.
    pub(super) fn line_feed(&mut self, at: u64, line: &[u8], prompt: &str) {
        let after = self.place(at);
        let first = !std::mem::replace(&mut self.lines_seen, true);
        let Head::Open(expected) = &mut self.head else {
            return;
        };
        let since_enter =
            first.then(|| squeezed(&strip(self.bytes.get(..after).unwrap_or(&self.bytes))));
        let silent = since_enter.as_ref().is_some_and(String::is_empty);
        let Some(expected) = expected.as_mut().filter(|_| !silent) else {
            self.head = Head::Done(after);
            return;
        };
        let line_editor = self.echoing.line_editor;
        let is_rest = since_enter.is_some_and(|since| expected.is_rest(&since, line, line_editor));
        if !is_rest && !expected.is_echo(line, &squeezed(prompt), line_editor) {
            self.head = Head::Done(0);
            return;
        }
        expected.lines.pop_front();
        expected.ahead = 0;
        if expected.lines.is_empty() {
            self.head = Head::Done(after);
        }
    }

    /// Bracketed paste was switched off in the line that began at this offset: a line editor that
    /// had it on is done with its echo.
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

    /// Whether nothing can be seen of the content up to an offset of the output. Of what was not
    /// kept nobody knows, so it counts as seen.
    pub(super) fn is_blank(&self, end: u64) -> bool {
        let Head::Done(start) = self.head else {
            return true;
        };
        let Some(content) = self.bytes.get(start..self.place(end)) else {
            return false;
        };
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
        self.echoed(at, b"^C".to_vec(), Heard::Interrupt);
    }

    /// A line was typed in mid-turn, from this offset of the output on.
    pub(super) fn typed(&mut self, at: u64, line: &[u8], what: Heard) {
        if line.len() <= ECHO_BYTES_MAX {
            self.echoed(at, [line, b"\r\n"].concat(), what);
        }
    }

    fn echoed(&mut self, at: u64, bytes: Vec<u8>, what: Heard) {
        if self.echoes.len() < ECHOES_MAX {
            self.echoes.push(Echo {
                behind: self.place(at),
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
    /// Removes it from the content that begins at `start`. The end of a line stays where the
    /// program had begun that line.
    fn remove(&self, content: &mut Vec<u8>, start: usize) {
        let from = self.behind.saturating_sub(start);
        let reach = if self.what == Heard::Interrupt {
            INTERRUPT_WINDOW_BYTES
        } else {
            ECHO_WINDOW_BYTES
        };
        let until = content.len().min(from.saturating_add(reach));
        let Some(window) = content.get(from..until) else {
            return;
        };
        let mut places = window.windows(self.bytes.len()).enumerate();
        let found = places.find(|(at, found)| *found == self.bytes && self.is_there(window, *at));
        let Some((at, _)) = found else { return };
        let at = from + at;
        let is_asked =
            self.what != Heard::Interrupt && is_begun(content.get(..at).unwrap_or_default());
        let kept = if is_asked { b"\r\n".len() } else { 0 };
        content.drain(at..at + self.bytes.len() - kept);
    }

    fn is_there(&self, window: &[u8], at: usize) -> bool {
        let end = at + self.bytes.len();
        at == 0
            || match self.what {
                Heard::Interrupt => matches!(window.get(end), Some(b'\r' | b'\n' | 0x1b) | None),
                Heard::Ahead => window.get(at - 1) == Some(&b'\n'),
                Heard::Inside => false,
            }
    }
}

/// Whether something can be seen on the last line.
fn is_begun(content: &[u8]) -> bool {
    let line = content
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    strip(line).contains(|c: char| !c.is_whitespace())
}

impl Lines {
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
        line_editor || squeezed(&strip(line)).ends_with(front.as_str())
    }

    /// Whether a line is the prompt, if it is one, and the echo of the next expected line. It is
    /// compared as it was printed, which survives wrapping, and as it is shown, which survives
    /// editing.
    fn is_echo(&self, line: &[u8], prompt: &str, line_editor: bool) -> bool {
        let Some(front) = self.lines.front().filter(|front| !front.is_empty()) else {
            return false;
        };
        let surely = front
            .get(self.ahead..)
            .filter(|rest| !rest.is_empty())
            .unwrap_or(front);
        [strip(line), render(line)].iter().any(|shown| {
            let shown = squeezed(shown);
            let echo = shown.strip_prefix(prompt).unwrap_or(&shown);
            let whole = front.ends_with(echo) && echo.ends_with(surely);
            shown == *front || whole || (line_editor && shown.ends_with(surely))
        })
    }
}
