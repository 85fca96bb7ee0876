//! Reads the program's output: tokens become signals, lines and content.
//!
//! [`OutputLine`] holds the current line and knows where its prompt begins, in offsets of the whole
//! output. It keeps at most [`LINE_BYTES_MAX`] of the line's end twice over; the rest is only
//! counted.

use super::super::event::Signal;
use super::super::fill::fill_start;
use super::super::signals::{ReportedState, SignalChange};
use super::Detector;
use crate::sequence::{Token, strip_sequences};

/// How much of a line is examined: its end, where a prompt would be.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// How much of the main screen's line is remembered while the alternate screen is shown: its end.
const ASIDE_BYTES_MAX: usize = 1024;

/// How many lines a prompt behind a fill may have.
const FILLED_LINES_MAX: u8 = 4;

/// The current line of the output and its position in the output.
#[derive(Debug, Default)]
pub(super) struct OutputLine {
    bytes: Vec<u8>,
    /// The offset of the next byte of output.
    pub(super) offset: u64,
    /// The offset at which the line began.
    pub(super) start: u64,
    /// The offset of the sequence that is open or has just ended.
    sequence: u64,
    /// The offset at which bracketed paste was switched on, while it is on: the prompt begins
    /// there, however many lines it has.
    pub(super) paste: Option<u64>,
    /// The same offset, once paste was switched on and off again within this line.
    closed: Option<u64>,
    /// The start of the line in which paste was switched on last.
    pasted_in: u64,
    /// The last fill, while it is near enough to belong to the prompt.
    filled: Option<RecentFill>,
    /// The line of the main screen while the alternate screen is shown.
    main_line: Option<SavedLine>,
}

/// A fill in one of the last lines.
#[derive(Debug, Clone, Copy)]
struct RecentFill {
    start: u64,
    /// How many lines ended since, its own included.
    lines: u8,
}

/// A line that waits while the alternate screen is shown.
#[derive(Debug, Default)]
struct SavedLine {
    bytes: Vec<u8>,
    start: u64,
}

impl OutputLine {
    /// The end of the line so far, at most [`LINE_BYTES_MAX`].
    pub(super) fn bytes(&self) -> &[u8] {
        let from = self.bytes.len().saturating_sub(LINE_BYTES_MAX);
        self.bytes.get(from..).unwrap_or_default()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Begins a new line at the current offset.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.closed = None;
        self.start = self.offset;
    }

    /// The offset at which the last fill began.
    fn last_fill_start(&self) -> Option<u64> {
        let here =
            fill_start(self.bytes()).map(|at| self.offset - (self.bytes().len() - at) as u64);
        here.or(self.filled.map(|fill| fill.start))
    }

    /// Remembers the fill of a line that ends, for a prompt of several lines.
    fn remember_fill(&mut self) {
        let lines = self.filled.map_or(0, |fill| fill.lines);
        let here = fill_start(self.bytes()).is_some();
        let kept = self
            .last_fill_start()
            .filter(|_| here || lines < FILLED_LINES_MAX);
        self.filled = kept.map(|start| RecentFill {
            start,
            lines: if here { 1 } else { lines + 1 },
        });
    }

    /// Notes that bracketed paste was switched on: the prompt begins there, or where the row was
    /// filled for it.
    fn note_paste_on(&mut self, fills: bool) {
        self.pasted_in = self.start;
        self.paste = Some(if fills {
            self.last_fill_start().unwrap_or(self.start)
        } else {
            self.sequence
        });
    }

    /// The offset at which the prompt of this line began, if bracketed paste shows it.
    pub(super) fn prompt_from(&self) -> Option<u64> {
        self.paste.or(self.closed)
    }

    /// Notes that bracketed paste was switched off: the line editor is done.
    fn note_paste_off(&mut self) {
        let paste = self.paste.take().filter(|_| self.pasted_in == self.start);
        self.closed = paste.or(self.closed);
        self.filled = None;
    }

    /// Handles a switch between the screens: the main one gets its line back, whatever the
    /// alternate one ends with.
    fn switch_screen(&mut self, alternate: bool) {
        if alternate {
            let from = self.bytes.len().saturating_sub(ASIDE_BYTES_MAX);
            self.main_line = Some(SavedLine {
                bytes: self.bytes.split_off(from),
                start: self.start,
            });
            self.clear();
            return;
        }
        self.clear();
        let SavedLine { bytes, start } = self.main_line.take().unwrap_or_default();
        // A pager restores the prompt that it was started from only where one was visible.
        if strip_sequences(&bytes).contains(|c: char| !c.is_whitespace()) {
            (self.bytes, self.start) = (bytes, start);
        }
    }

    /// The offset at which the prompt at the end of this line begins: where the line editor
    /// switched paste on since `since`, or where the known prompt text begins; else the start of
    /// the line.
    pub(super) fn prompt_start(&self, prompt: &str, since: u64) -> u64 {
        if let Some(paste) = self.paste.filter(|paste| *paste >= since) {
            return paste;
        }
        let known = !prompt.is_empty() && self.bytes().ends_with(prompt.as_bytes());
        if known {
            self.offset - prompt.len() as u64
        } else {
            self.start
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
        // Cutting at twice the limit makes the cost of the move amortised, not per byte.
        if self.bytes.len() > 2 * LINE_BYTES_MAX {
            let excess = self.bytes.len() - LINE_BYTES_MAX;
            self.bytes.drain(..excess);
        }
    }
}

impl Detector {
    pub(super) fn handle_output(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.output_at = self.now;
        let mut rest = bytes;
        while !rest.is_empty() {
            // A mark bounds the content where its sequence begins, not where it ends.
            if self.tokens.at_ground() {
                self.line.sequence = self.line.offset;
            }
            let step = self.tokens.next_token(rest);
            let (used, after) = rest.split_at(step.used.min(rest.len()));
            self.record_output(used);
            self.apply_token(step.token);
            rest = after;
        }
        self.inspect_soon();
    }

    /// Adds bytes to the line, the screen and the content of the open turn.
    fn record_output(&mut self, bytes: &[u8]) {
        self.line.push(bytes);
        if let Some(screen) = &mut self.screen {
            screen.push(bytes);
        }
        if self.phase.is_open() {
            if self.is_stream() {
                self.content.push(bytes);
            } else if let Some(raw) = &mut self.raw {
                raw.push(bytes);
            }
        }
    }

    fn apply_token(&mut self, token: Token) {
        let change = match token {
            Token::Control(b'\n') => {
                self.line_feed();
                None
            }
            Token::Csi => self.signals.read_csi(self.now, self.tokens.csi()),
            Token::Osc => self
                .signals
                .read_osc(self.now, self.tokens.osc(), &self.profile),
            _ => None,
        };
        if let Some(change) = change {
            self.apply_change(change);
        }
    }

    fn apply_change(&mut self, change: SignalChange) {
        match change {
            SignalChange::Reported(signal, state) if self.is_decisive(signal) => {
                self.note_reported_state(state);
            }
            SignalChange::PasteOn => self.line.note_paste_on(self.prompt_has_fill()),
            SignalChange::PasteOff => {
                self.line.note_paste_off();
                self.content.end_echo_at_paste_off(self.line.start);
            }
            SignalChange::ScreenSwitched => self.line.switch_screen(self.signals.alternate),
            SignalChange::OutputBegins => self.begin_marked_output(),
            SignalChange::PromptBegins if self.is_stream() && self.phase.is_open() => {
                self.content.cut_tail(self.line.sequence);
            }
            SignalChange::PromptBegins | SignalChange::Reported(..) => {}
        }
    }

    fn begin_marked_output(&mut self) {
        if self.is_stream() && self.phase.is_open() {
            self.content.cut_head(self.line.offset);
        }
        self.note_reported_state(ReportedState::Working);
    }

    /// Handles a report of a source that counts.
    fn note_reported_state(&mut self, state: ReportedState) {
        if state == ReportedState::Ready {
            // While a turn is handed over, a ready report is about the turn after it.
            self.hand_over();
            self.reported_ready_at.get_or_insert(self.now);
            return;
        }
        // A queued prompt may follow a ready state of a few milliseconds: that was the boundary.
        // Both reports at the same time may be one repaint, so time must have moved on.
        if let Some(at) = self.reported_ready_at
            && self.phase.is_queued()
            && self.now > at
        {
            self.begin_hand_over();
        }
        if state == ReportedState::Working {
            self.note_working();
        }
        self.reported_ready_at = None;
        self.ready = None;
        self.phase.note_busy();
    }

    /// Whether the program fills the row in front of its prompt with blanks.
    fn prompt_has_fill(&self) -> bool {
        self.profile.prompt.as_ref().is_some_and(|rule| rule.fill)
    }

    fn line_feed(&mut self) {
        self.phase.line_feed();
        if self.prompt_has_fill() {
            self.line.remember_fill();
        }
        // While the echo of the input is still expected, the line may be that echo and no prompt.
        if self.is_stream() && self.phase.is_open() && self.content.is_in_echo() {
            self.content
                .end_line(self.line.offset, self.line.bytes(), &self.prompt);
        } else if !self.match_queued_lines() {
            self.complete_line();
        }
        self.line.clear();
    }

    /// Applies the line rule to a complete line.
    fn complete_line(&mut self) {
        let Some(pattern) = &self.profile.line else {
            return;
        };
        if self.signals.alternate
            || self.phase.is_idle()
            || self.signals.authoritative_report(false).is_some()
        {
            return;
        }
        let text = strip_sequences(self.line.bytes());
        let Some(end) = pattern.match_end(&text) else {
            return;
        };
        // Nothing visible came before the prompt: no turn ends here, and the open one goes on
        // behind it.
        if self.phase.is_open() && self.is_stream() && self.content.is_blank(self.line.start) {
            self.content.cut_head(self.line.offset);
        } else {
            self.prompt_seen(Signal::Line, self.line.start);
            self.answer_behind_prompt(end);
        }
    }
}
