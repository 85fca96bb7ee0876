//! ExpectedEcho typed ahead: an Enter that comes while a turn is open, or before the first prompt, waits
//! here for the prompt that takes it.
//!
//! A line editor prints its prompt and the line that waited, and goes on without a pause: the
//! prompt never rests, but both stand on one complete line, and there the turn is split. Where the
//! tty echoed the line before, nothing but the pattern of the line rule tells the prompt, and what
//! stands behind it on its line is the answer already. A line that no prompt takes was read by the
//! program that ran; it makes no turn where a prompt rests without it. Nothing here grows:
//! [`QUEUED_MAX`] lines wait.

use super::super::event::Signal;
use super::super::render::entered_row;
use super::super::sequence::{strip_sequences, unstripped_len};
use super::super::stream_content::EchoKind;
use super::super::typed_line::{TypedLine, without_blanks};
use super::Detector;
use super::assess::{QUIET, QUIET_WAIT_MAX};
use std::collections::VecDeque;
use std::time::Duration;

/// How many inputs are remembered that were typed ahead.
const QUEUED_MAX: usize = 64;

/// How many bytes of one of them.
const QUEUED_BYTES_MAX: usize = 4096;

/// An Enter that was typed while the program worked.
#[derive(Debug)]
pub(super) struct QueuedLine {
    pub(super) at: Duration,
    typed: TypedLine,
    /// What was typed as text, where it is plain; and without blanks, for lines that are printed in
    /// pieces.
    text: Option<String>,
    without_blanks: String,
    /// Whether a prompt that rests makes it the submit of the next turn.
    submits: bool,
}

impl QueuedLine {
    fn new(at: Duration, typed: TypedLine, submits: bool) -> Self {
        let text = typed
            .known_bytes()
            .map(|typed| String::from_utf8_lossy(typed).into_owned());
        let without_blanks = text.as_deref().map(without_blanks).unwrap_or_default();
        Self {
            at,
            typed,
            text,
            without_blanks,
            submits,
        }
    }
}

/// What a line in front of which the program waited turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptMatch {
    /// The submit of the next turn; this one ends here.
    Submit { end: u64 },
    /// The rest of this turn's input.
    Continuation,
}

/// A complete line, as it is compared with what was typed.
struct PrintedLine {
    row: String,
    without_blanks: String,
    /// The prompt that is known, in the same form.
    prompt: String,
}

impl PrintedLine {
    fn new(line: &[u8], prompt: &str) -> Self {
        Self {
            row: entered_row(line),
            without_blanks: without_blanks(&strip_sequences(line)),
            prompt: without_blanks(prompt),
        }
    }
}

impl Detector {
    /// An Enter that is the submit of the next turn, if a boundary comes first. A screen shows what
    /// it takes up, and only the last Enter is of interest. Before the first prompt dialogs and
    /// questions are answered: there a line waits only where the program itself says whether it
    /// reads one.
    pub(super) fn queue_line(&mut self, typed: TypedLine, submits: bool) {
        let echoes = self.tty.is_none_or(|mode| mode.echo || !mode.canonical);
        let heard = if submits && self.tty.is_none_or(|mode| mode.echo) {
            EchoKind::ByTty
        } else {
            EchoKind::ByProgram
        };
        let (is_stream, is_open) = (self.is_stream(), self.phase.is_open());
        let may_wait = is_open || (is_stream && self.profile.line.is_none());
        let Some(queued) = self.phase.queued_mut().filter(|_| may_wait) else {
            return;
        };
        if let Some(line) = typed
            .known_bytes()
            .filter(|_| echoes && is_stream && is_open)
        {
            let from = if line.is_empty() {
                self.line.offset
            } else {
                self.typed_from
            };
            self.content.expect_line_echo(from, line, heard);
        }
        if !is_stream || queued.len() == QUEUED_MAX {
            queued.pop_back();
        }
        queued.push_back(QueuedLine::new(
            self.now,
            typed.limited_to(QUEUED_BYTES_MAX),
            submits,
        ));
    }

    /// Opens the turn of the first input that was typed ahead and may submit.
    pub(super) fn open_queued(&mut self, mut queued: VecDeque<QueuedLine>) {
        queued.retain(|line| line.submits);
        let Some(first) = queued.pop_front() else {
            return;
        };
        self.open_turn(first.at, &first.typed, true);
        self.restore_queue(queued);
        self.inspect_soon();
    }

    /// The program was ready for a moment and works on a prompt that was queued. A screen may not
    /// show the last words of the turn before yet: it is given the time in which a boundary waits
    /// for them.
    pub(super) fn begin_hand_over(&mut self) {
        if self.is_stream() {
            self.complete_turn(self.deciding_signal(), self.line.start);
        } else if let Some(open) = self.phase.open_mut() {
            open.handed_over.get_or_insert(self.now);
            self.inspect_soon();
        }
    }

    /// When a turn that is handed over is told at the latest, if one is.
    pub(super) fn hand_over_due(&mut self) -> Option<Duration> {
        let since = self.phase.open_mut()?.handed_over?;
        Some((self.output_at.max(since) + QUIET).min(since + QUIET_WAIT_MAX))
    }

    /// Tells the turn that is handed over, and goes on with the next.
    pub(super) fn hand_over(&mut self) {
        if self
            .phase
            .open_mut()
            .is_some_and(|open| open.handed_over.is_some())
        {
            self.complete_turn(self.deciding_signal(), self.line.start);
            self.phase.busy();
        }
    }

    /// Splits the turn where a complete line is a prompt with a line that was typed ahead; says
    /// whether it was one.
    pub(super) fn match_queued_lines(&mut self) -> bool {
        if !self.is_stream()
            || self.signals.alternate
            || self.signals.authoritative_report(false).is_some()
        {
            return false;
        }
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
        let shown = PrintedLine::new(self.line.bytes(), &self.prompt);
        let taken = queued.iter().map(|queued| self.match_line(&shown, queued));
        let (found, taken) = taken.enumerate().find(|(_, taken)| taken.is_some()).unzip();
        let taken = taken.flatten();
        if let Some(at) = found {
            // Those before it were read by the program that ran.
            queued.drain(..at);
        }
        match taken {
            Some(PromptMatch::Submit { end }) => self.split_turn(queued, end),
            Some(PromptMatch::Continuation) => self.continue_input(queued),
            None => self.restore_queue(queued),
        }
        taken.is_some()
    }

    fn restore_queue(&mut self, queued: VecDeque<QueuedLine>) {
        if let Some(waiting) = self.phase.queued_mut() {
            *waiting = queued;
        }
    }

    /// Ends the turn at an offset and opens that of the first line, whose echo has just ended.
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

    /// The line was asked for by a prompt that wants the rest of an input.
    fn continue_input(&mut self, mut queued: VecDeque<QueuedLine>) {
        queued.pop_front();
        if self.content.is_blank(self.line.start) {
            self.content.cut_head(self.line.offset);
        }
        self.restore_queue(queued);
    }

    /// What a line is that shows a line behind a prompt; none when it does not.
    fn match_line(&self, shown: &PrintedLine, queued: &QueuedLine) -> Option<PromptMatch> {
        let row = shown.row.as_str();
        let Some(typed) = &queued.text else {
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
            let before = if typed.trim_end().is_empty() {
                row
            } else {
                before
            };
            if let Some(taken) = self.match_prompt(before) {
                return Some(taken);
            }
        }
        // A line that is wider than the window is printed in pieces.
        let before = shown
            .without_blanks
            .strip_suffix(queued.without_blanks.as_str());
        let wrapped = !shown.prompt.is_empty() && before == Some(&*shown.prompt);
        wrapped.then(|| PromptMatch::Submit {
            end: self.prompt_offset(),
        })
    }

    /// What asked for a line: the text before it, as it is shown.
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
        if rule
            .continuation
            .as_ref()
            .is_some_and(|pattern| pattern.matches(before))
        {
            return Some(PromptMatch::Continuation);
        }
        // Without a mode that tells it, a question of the program's own is no prompt.
        let known = self.uses_paste() || self.prompt.is_empty() || before.ends_with(&self.prompt);
        (known && rule.cursor.matches(before)).then_some(submit)
    }

    /// Whether the program says by bracketed paste where its prompts are.
    fn uses_paste(&self) -> bool {
        self.signals.paste.is_some() && self.profile.prompt.as_ref().is_some_and(|rule| rule.paste)
    }

    /// Where the prompt begins in a line that has gone on behind it; for the line rule that is the
    /// line.
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

    /// A complete line matches the line rule in its first bytes, up to `end` of its stripped text,
    /// and an input waits whose echo came before: what stands behind the prompt is its answer.
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
