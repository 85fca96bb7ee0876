//! The content of a stream's turn: the raw bytes from the submit to the prompt line, without the echo.
//!
//! The echo is the head: what the tty or the line editor prints of the submitted input, up to and
//! including the line feed that ends it. The same words later on stay. `^C` that answers an interrupt
//! is echo too. The head of the bytes is kept up to [`CONTENT_BYTES_MAX`], and the rest is only counted.

use super::sequence::strip;
use super::typed::{Typed, squeezed};

/// How many bytes of a turn are kept.
pub(super) const CONTENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far behind an interrupt its `^C` is looked for.
const CARET_BYTES_MAX: usize = 4096;

/// How many interrupts of one turn have their `^C` removed.
const CARETS_MAX: usize = 64;

/// How long an echo may be; longer heads are content.
const HEAD_BYTES_MAX: usize = 128 * 1024;

#[derive(Debug, Clone)]
enum Head {
    /// The echo is not over: these lines of it are still to come (`None`: not known).
    Open(Option<Vec<String>>),
    /// Content begins here.
    Done(usize),
}

/// The bytes of a turn.
#[derive(Debug)]
pub(super) struct Capture {
    bytes: Vec<u8>,
    begin: u64,
    head: Head,
    line_editor: bool,
    carets: Vec<usize>,
    end: Option<u64>,
}

impl Capture {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            head: Head::Done(0),
            line_editor: false,
            carets: Vec::new(),
            end: None,
        }
    }

    /// Begins a turn at an offset of the output. `line` is what stands on the line so far.
    pub(super) fn begin(&mut self, at: u64, typed: &Typed, line: &[u8], line_editor: bool) {
        *self = Self::new();
        self.begin = at;
        self.line_editor = line_editor;
        let mut expected = typed.lines();
        let shown = squeezed(&strip(line));
        if let Some(lines) = &mut expected
            && lines.last().is_some_and(|last| shown.ends_with(last.as_str()) && !last.is_empty())
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
        let Head::Open(expected) = &mut self.head else { return };
        let after = usize::try_from(at - self.begin).unwrap_or(usize::MAX);
        let fresh = squeezed(&strip(self.bytes.get(..after).unwrap_or(&self.bytes)));
        let Some(lines) = expected else {
            self.head = Head::Done(after);
            return;
        };
        let shown = squeezed(&strip(line));
        let front = lines.first().cloned().unwrap_or_default();
        let repainted = fresh.ends_with(&format!("{}{front}", squeezed(prompt)));
        let whole = shown == front || shown.strip_suffix(&front) == Some(&squeezed(prompt));
        let whole = whole || self.line_editor || (repainted && !prompt.is_empty());
        let echo = shown.ends_with(&front) && !front.is_empty() && whole;
        if fresh.is_empty() || (echo && lines.len() <= 1) {
            self.head = Head::Done(after);
        } else if echo {
            lines.remove(0);
        } else {
            self.head = Head::Done(0);
        }
    }

    /// Content begins here, whatever came before.
    pub(super) fn cut_head(&mut self, at: u64) {
        self.head = Head::Done(usize::try_from(at - self.begin).unwrap_or(usize::MAX));
        self.end = None;
    }

    /// Content ends here, wherever the prompt line begins.
    pub(super) fn cut_tail(&mut self, at: u64) {
        self.end.get_or_insert(at);
    }

    /// The user interrupted: the `^C` that follows is echo.
    pub(super) fn interrupted(&mut self, at: u64) {
        if self.carets.len() < CARETS_MAX {
            self.carets.push(usize::try_from(at - self.begin).unwrap_or(usize::MAX));
        }
    }

    /// The content up to an offset of the output, and whether it is only the head.
    pub(super) fn finish(&mut self, end: u64) -> (Vec<u8>, bool) {
        let end = usize::try_from(self.end.unwrap_or(end).saturating_sub(self.begin)).unwrap_or(usize::MAX);
        let start = match self.head {
            Head::Done(start) => start,
            Head::Open(_) => end,
        };
        let truncated = end > self.bytes.len();
        let end = end.min(self.bytes.len());
        let mut content = self.bytes.get(start..end).unwrap_or_default().to_vec();
        for caret in self.carets.iter().rev() {
            remove_caret(&mut content, caret.saturating_sub(start));
        }
        *self = Self::new();
        (content, truncated)
    }
}

fn remove_caret(content: &mut Vec<u8>, from: usize) {
    let until = content.len().min(from.saturating_add(CARET_BYTES_MAX));
    let Some(window) = content.get(from..until) else { return };
    if let Some(at) = window.windows(2).position(|pair| pair == b"^C") {
        content.drain(from + at..from + at + 2);
    }
}
