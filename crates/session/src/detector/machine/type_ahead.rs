//! Lines typed ahead: an Enter that comes while a turn is open, or before the first prompt, waits
//! here for the prompt that reads it.
//!
//! Worked example, bash with `make` running. The user types `date` and Enter before `make` ends:
//!
//! ```text
//! Building…                    the open turn (`make`); `date` waits in the queue
//! $ date                       bash prints prompt and line in one go: the prompt never rests
//! Mon Nov 16 12:00:00 UTC      the output of `date`
//! $                            a prompt that rests
//! ```
//!
//! The complete line `$ date` is a prompt followed by a queued line: the turn of `make` ends at the
//! `$`, and the turn of `date` begins behind that line. Where the tty echoed `date` earlier, the
//! line rule finds a prompt with text behind it, and that text is already the answer. A line for
//! which no prompt is printed was read by `make` itself; it makes no turn. At most [`QUEUED_MAX`]
//! lines wait.

use super::super::event::Signal;
use super::super::render::entered_row;
use super::super::stream_content::EchoKind;
use super::super::typed_line::{TypedLine, without_blanks};
use super::Detector;
use super::assess::{QUIET, QUIET_WAIT_MAX};
use crate::pattern::matches_optional;
use crate::sequence::{strip_sequences, unstripped_len};
use std::collections::VecDeque;
use std::time::Duration;

/// How many lines may wait.
const QUEUED_MAX: usize = 64;

/// The longest line that is compared with the output; a longer one counts as unknown.
const QUEUED_BYTES_MAX: usize = 4096;

/// A line that was entered while the program worked.
#[derive(Debug)]
pub(super) struct QueuedLine {
    pub(super) at: Duration,
    typed: TypedLine,
    /// The typed text; `None` when a key changed it in a way that only the program knows.
    text: Option<String>,
    /// The text without blanks, for lines that the program prints in pieces.
    text_without_blanks: String,
    /// Whether a prompt that rests makes this line the submit of the next turn.
    submits: bool,
}

impl QueuedLine {
    fn new(at: Duration, typed: TypedLine, submits: bool) -> Self {
        let text = typed.known_text();
        let text_without_blanks = text.as_deref().map(without_blanks).unwrap_or_default();
        Self {
            at,
            typed,
            text,
            text_without_blanks,
            submits,
        }
    }
}

/// The role of a queued line that was found behind a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptMatch {
    /// It is the submit of the next turn; the open one ends at this offset.
    Submit { end: u64 },
    /// It is the rest of the open turn's input.
    Continuation,
}

/// A complete line of output in the forms that queued lines are compared with.
struct PrintedLine {
    /// The line as a terminal shows it.
    row: String,
    /// Its text as printed, without blanks.
    text_without_blanks: String,
    /// The known prompt, without blanks.
    prompt_without_blanks: String,
}

impl PrintedLine {
    fn new(line: &[u8], prompt: &str) -> Self {
        Self {
            row: entered_row(line),
            text_without_blanks: without_blanks(&strip_sequences(line)),
            prompt_without_blanks: without_blanks(prompt),
        }
    }
}

impl Detector {
    /// Queues a line as the submit of the next turn, if a boundary comes first.
    pub(super) fn queue_line(&mut self, typed: TypedLine, submits: bool) {
        // With echo off in canonical mode (a password) nothing of the line is printed.
        let echoes = self.tty.is_none_or(|mode| mode.echo || !mode.canonical);
        let echo_kind = if submits && self.tty.is_none_or(|mode| mode.echo) {
            EchoKind::ByTty
        } else {
            EchoKind::ByProgram
        };
        let (is_stream, is_open) = (self.is_stream(), self.phase.is_open());
        // Before the first prompt, Enter also answers dialogs and questions. A line waits there
        // only in a profile whose prompt shows whether the program reads one.
        let may_wait = is_open || (is_stream && self.profile.line.is_none());
        let Some(queued) = self.phase.queued_mut().filter(|_| may_wait) else {
            return;
        };
        if let Some(line) = typed
            .known_bytes()
            .filter(|_| echoes && is_stream && is_open)
        {
            // An empty line has no first key, so its echo can only come from here on.
            let from = if line.is_empty() {
                self.line.offset
            } else {
                self.typed_from
            };
            self.content.expect_line_echo(from, line, echo_kind);
        }
        // A screen shows each prompt that it takes up, so only the last Enter is of interest.
        if !is_stream || queued.len() == QUEUED_MAX {
            queued.pop_back();
        }
        queued.push_back(QueuedLine::new(
            self.now,
            typed.limited_to(QUEUED_BYTES_MAX),
            submits,
        ));
    }

    /// Opens the turn of the first queued line that may submit.
    pub(super) fn open_queued(&mut self, mut queued: VecDeque<QueuedLine>) {
        queued.retain(|line| line.submits);
        let Some(first) = queued.pop_front() else {
            return;
        };
        self.open_turn(first.at, &first.typed, true);
        self.restore_queue(queued);
        self.inspect_soon();
    }

    /// Handles a program that was ready for a moment and now works on a queued prompt. A screen may
    /// not show the last words of the turn yet, so the turn waits for them as long as a boundary
    /// would.
    pub(super) fn begin_hand_over(&mut self) {
        if self.is_stream() {
            self.complete_turn(self.deciding_signal(), self.line.start);
        } else if let Some(open) = self.phase.open_mut() {
            open.handed_over.get_or_insert(self.now);
            self.inspect_soon();
        }
    }

    /// When a turn that is handed over is completed at the latest, if one is.
    pub(super) fn hand_over_due(&mut self) -> Option<Duration> {
        let since = self.phase.open_mut()?.handed_over?;
        Some((self.output_at.max(since) + QUIET).min(since + QUIET_WAIT_MAX))
    }

    /// Completes the turn that is handed over, and goes on with the next one.
    pub(super) fn hand_over(&mut self) {
        if self
            .phase
            .open_mut()
            .is_some_and(|open| open.handed_over.is_some())
        {
            self.complete_turn(self.deciding_signal(), self.line.start);
            self.phase.note_busy();
        }
    }

    /// Splits the turn where a complete line is a prompt followed by a queued line. Returns whether
    /// it was one.
    pub(super) fn match_queued_lines(&mut self) -> bool {
        if !self.is_stream()
            || self.signals.alternate
            || self.signals.authoritative_report(false).is_some()
        {
            return false;
        }
        // A line editor that uses bracketed paste has it on in every line that it reads.
        if self.uses_paste() && self.line.prompt_from().is_none() {
            return false;
        }
        let mut queued = self
            .phase
            .queued_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        if queued.is_empty() {
            return false;
        }
        let printed = PrintedLine::new(self.line.bytes(), &self.prompt);
        let mut found = None;
        for (at, line) in queued.iter().enumerate() {
            if let Some(role) = self.match_line(&printed, line) {
                found = Some((at, role));
                break;
            }
        }
        let Some((at, role)) = found else {
            self.restore_queue(queued);
            return false;
        };
        // The prompt reads lines in order, so those before the match were read by the program that
        // ran.
        queued.drain(..at);
        match role {
            PromptMatch::Submit { end } => self.split_turn(queued, end),
            PromptMatch::Continuation => self.continue_input(queued),
        }
        true
    }

    fn restore_queue(&mut self, queued: VecDeque<QueuedLine>) {
        if let Some(waiting) = self.phase.queued_mut() {
            *waiting = queued;
        }
    }

    /// Completes the turn at an offset and opens that of the first queued line, whose echo has just
    /// ended.
    fn split_turn(&mut self, mut queued: VecDeque<QueuedLine>, end: u64) {
        let Some(first) = queued.pop_front() else {
            return;
        };
        self.complete_turn(self.prompt_signal(), end);
        self.open_turn(first.at, &first.typed, true);
        self.content.cut_head(self.line.offset);
        self.phase.line_feed();
        self.restore_queue(queued);
    }

    /// Handles a queued line that a continuation prompt read.
    fn continue_input(&mut self, mut queued: VecDeque<QueuedLine>) {
        queued.pop_front();
        // Behind visible output the line stays in the content, because cutting there would drop the
        // output.
        if self.content.is_blank(self.line.start) {
            self.content.cut_head(self.line.offset);
        }
        self.restore_queue(queued);
    }

    /// The role of a queued line in a complete line of output; `None` when that line does not show
    /// it.
    fn match_line(&self, printed: &PrintedLine, queued: &QueuedLine) -> Option<PromptMatch> {
        let row = printed.row.as_str();
        let Some(typed) = &queued.text else {
            // The text is unknown, so only the paste mode and the known prompt can show that it was
            // read.
            let known = self.uses_paste()
                && !self.prompt.trim().is_empty()
                && row.starts_with(&self.prompt);
            return known.then(|| PromptMatch::Submit {
                end: self.prompt_offset(),
            });
        };
        if let Some(before) = row
            .trim_end()
            .strip_suffix(typed.trim_end())
            .or(row.strip_suffix(typed.as_str()))
        {
            // An empty line is read by a bare prompt: the whole row is the prompt.
            let before = if typed.trim_end().is_empty() {
                row
            } else {
                before
            };
            if let Some(taken) = self.match_prompt(before) {
                return Some(taken);
            }
        }
        // A line that is wider than the window is printed in pieces, with blanks in between.
        let before = printed
            .text_without_blanks
            .strip_suffix(queued.text_without_blanks.as_str());
        let prompt = &printed.prompt_without_blanks;
        let wrapped = !prompt.is_empty() && before == Some(prompt);
        wrapped.then(|| PromptMatch::Submit {
            end: self.prompt_offset(),
        })
    }

    /// The role of a line that follows this text, as a terminal shows it.
    fn match_prompt(&self, before: &str) -> Option<PromptMatch> {
        let submit = PromptMatch::Submit {
            end: self.prompt_offset(),
        };
        if let Some(pattern) = &self.profile.line {
            let behind = pattern.match_end(before).and_then(|end| before.get(end..));
            return behind
                .is_some_and(|behind| behind.trim().is_empty())
                .then_some(submit);
        }
        let rule = self.profile.prompt.as_ref()?;
        if matches_optional(rule.continuation.as_ref(), before) {
            return Some(PromptMatch::Continuation);
        }
        // Without a mode that marks the prompt, a question of the program's own could match the
        // pattern.
        let known = self.uses_paste() || self.prompt.is_empty() || before.ends_with(&self.prompt);
        (known && rule.cursor.matches(before)).then_some(submit)
    }

    /// Whether the program marks its prompts by bracketed paste.
    fn uses_paste(&self) -> bool {
        self.signals.paste.is_some() && self.profile.prompt.as_ref().is_some_and(|rule| rule.paste)
    }

    /// The offset at which the prompt begins in a line that has gone on behind it. The line rule
    /// matches whole lines, so there it is the start of the line.
    fn prompt_offset(&self) -> u64 {
        if self.profile.line.is_some() {
            return self.line.start;
        }
        if let Some(paste) = self
            .line
            .prompt_from()
            .filter(|paste| *paste >= self.content.content_offset())
        {
            return paste;
        }
        let (line, prompt) = (self.line.bytes(), self.prompt.as_bytes());
        let mut places = line.windows(prompt.len().max(1));
        match places.rposition(|place| place == prompt) {
            Some(at) if !strip_sequences(line).starts_with(&self.prompt) => {
                self.line.offset - (line.len() - at) as u64
            }
            _ => self.line.start,
        }
    }

    fn prompt_signal(&self) -> Signal {
        match (&self.profile.prompt, self.line.prompt_from(), self.raw_seen) {
            (Some(rule), _, true) if rule.tty => Signal::Tty,
            (Some(rule), Some(_), _) if rule.paste => Signal::Paste,
            _ => Signal::Line,
        }
    }

    /// Begins the content of a queued line with the text behind a prompt. The line rule matches the
    /// first bytes of a complete line, up to `end` of its stripped text, and the echo of the queued
    /// line came earlier: the rest of the line is its answer.
    pub(super) fn answer_behind_prompt(&mut self, end: usize) {
        let line = self.line.bytes();
        let is_whole = self.line.offset - self.line.start == line.len() as u64;
        let answer = line
            .get(unstripped_len(line, end)..)
            .unwrap_or_default()
            .to_vec();
        let is_open = self
            .phase
            .open_mut()
            .is_some_and(|open| open.is_unanswered_queue());
        if is_open && is_whole && strip_sequences(&answer).contains(|c: char| !c.is_whitespace()) {
            self.content.begin_with(self.line.offset, answer);
            self.phase.line_feed();
        }
    }
}
