//! The content of a stream's turn: the raw bytes from the submit to the prompt line, without the echo.
//!
//! The echo is the head: what the tty or the line editor prints of the submitted input, up to and
//! including the line feed that ends it. The same words later on stay. `^C` that answers an interrupt
//! is echo too. The head of the bytes is kept up to [`CONTENT_BYTES_MAX`], and the rest is only counted.

use super::render::render;
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
    /// The echo is not over: these lines of it are still to come (`None`: not known), and what came of it
    /// ends here.
    Open(Option<Vec<String>>, usize),
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
    /// Whether a line was taken for a part of the echo because the line editor was not done with it.
    waited: bool,
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
            waited: false,
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
        self.head = Head::Open(expected, 0);
    }

    /// More was submitted before the program took up what was submitted first.
    pub(super) fn extend(&mut self, typed: &Typed) {
        if let Head::Open(expected, _) = &mut self.head {
            *expected = expected.take().zip(typed.lines()).map(|(lines, more)| [lines, more].concat());
        }
    }

    /// Takes output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = CONTENT_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.bytes.len() > HEAD_BYTES_MAX && matches!(self.head, Head::Open(..)) {
            self.head = Head::Done(0);
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the echo is not over yet.
    pub(super) fn in_head(&self) -> bool {
        matches!(self.head, Head::Open(..))
    }

    /// A line feed ended `line` (all of it, with the prompt before the echo) at an offset of the output.
    /// `is_edited` says that the line editor is not done yet, so that this cannot be an answer.
    pub(super) fn line_feed(&mut self, at: u64, line: &[u8], prompt: &str, is_edited: bool) {
        let Head::Open(expected, matched) = &mut self.head else { return };
        let after = usize::try_from(at - self.begin).unwrap_or(usize::MAX);
        let Some(lines) = expected else {
            self.head = Head::Done(after);
            return;
        };
        let fresh = self.bytes.get(..after).unwrap_or(&self.bytes);
        let front = lines.first().cloned().unwrap_or_default();
        let echo =
            !front.is_empty() && Echo { line, fresh, prompt, front: &front }.is_there(self.line_editor);
        if (*matched == 0 && squeezed(&strip(fresh)).is_empty()) || (echo && lines.len() <= 1) {
            self.head = Head::Done(after);
        } else if echo {
            lines.remove(0);
            *matched = after;
        } else if is_edited {
            self.waited = true;
        } else {
            self.head = Head::Done(*matched);
        }
    }

    /// The line editor is done with the input: what it painted until here was echo.
    pub(super) fn edit_ends(&mut self, at: u64) {
        if self.waited && self.in_head() {
            self.cut_head(at);
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
            Head::Open(_, 0) => end,
            Head::Open(_, matched) => matched,
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

/// A line that may be the echo of a submitted line.
struct Echo<'a> {
    /// All of it.
    line: &'a [u8],
    /// Everything since the submit.
    fresh: &'a [u8],
    prompt: &'a str,
    /// The submitted line, without blanks.
    front: &'a str,
}

impl Echo<'_> {
    /// Whether it is. A line may have been typed over, which shows when it is rendered, or broken by a
    /// line editor at the window's edge, which shows when it is not.
    fn is_there(&self, line_editor: bool) -> bool {
        let prompt = squeezed(self.prompt);
        let repainted = squeezed(&strip(self.fresh)).ends_with(&format!("{prompt}{}", self.front));
        [strip(self.line), render(self.line)].iter().any(|text| {
            let shown = squeezed(text);
            let whole = shown == self.front || shown.strip_suffix(self.front) == Some(&prompt);
            let whole = whole || line_editor || (repainted && !prompt.is_empty());
            shown.ends_with(self.front) && whole
        })
    }
}

fn remove_caret(content: &mut Vec<u8>, from: usize) {
    let until = content.len().min(from.saturating_add(CARET_BYTES_MAX));
    let Some(window) = content.get(from..until) else { return };
    // The tty prints it at once, or behind what was on its way; then the line ends.
    let is_echo = |at: usize| at == 0 || matches!(window.get(at + 2), Some(b'\r' | b'\n' | 0x1b) | None);
    let found = window.windows(2).enumerate().find(|(at, pair)| *pair == b"^C" && is_echo(*at));
    if let Some((at, _)) = found {
        content.drain(from + at..from + at + 2);
    }
}
