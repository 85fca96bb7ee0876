//! Output: tokens become signals, lines and content.

use super::super::event::Signal;
use super::super::fill::fill_start;
use super::super::sequence::{Token, strip_sequences};
use super::super::signals::{ReportedState, SignalChange};
use super::Detector;

/// How much of a line is looked at: its end.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// How much of the main screen's line is remembered while the alternate one is shown: its end.
const ASIDE_BYTES_MAX: usize = 1024;

/// How many lines a prompt behind a fill may have.
const FILLED_LINES_MAX: u8 = 4;

/// The line that the output is on, and where it is in the output.
#[derive(Debug, Default)]
pub(super) struct OutputLine {
    bytes: Vec<u8>,
    /// The offset of the next byte of output.
    pub(super) offset: u64,
    /// Where the line began.
    pub(super) start: u64,
    /// Where the sequence began that the output is in or has just ended.
    sequence: u64,
    /// Where bracketed paste was switched on, while it is: there the prompt begins, however many
    /// lines it has.
    pub(super) paste: Option<u64>,
    /// Where it was, when it was switched on and off in this line.
    closed: Option<u64>,
    /// Where the line began in which it was switched on last.
    pasted_in: u64,
    /// Where a fill began in one of the last lines, and how many of them ago.
    filled: Option<(u64, u8)>,
    /// The line of the main screen, and where it began, while the alternate one is shown.
    aside: Option<(Vec<u8>, u64)>,
}

impl OutputLine {
    /// The end of the line so far.
    pub(super) fn bytes(&self) -> &[u8] {
        let from = self.bytes.len().saturating_sub(LINE_BYTES_MAX);
        self.bytes.get(from..).unwrap_or_default()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the line.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.closed = None;
        self.start = self.offset;
    }

    /// Where the last fill began.
    fn fill(&self) -> Option<u64> {
        let here =
            fill_start(self.bytes()).map(|at| self.offset - (self.bytes().len() - at) as u64);
        here.or(self.filled.map(|(start, _)| start))
    }

    /// The line ends: its fill is remembered for a prompt of several lines.
    fn remember_fill(&mut self) {
        let lines = self.filled.map_or(0, |(_, lines)| lines);
        let here = fill_start(self.bytes()).is_some();
        let kept = self.fill().filter(|_| here || lines < FILLED_LINES_MAX);
        self.filled = kept.map(|start| (start, if here { 1 } else { lines + 1 }));
    }

    /// Bracketed paste was switched on: there the prompt begins, or where the row was filled for
    /// it.
    fn paste_on(&mut self, fills: bool) {
        self.pasted_in = self.start;
        self.paste = Some(if fills {
            self.fill().unwrap_or(self.start)
        } else {
            self.sequence
        });
    }

    /// Where the prompt of this line began, if bracketed paste tells.
    pub(super) fn prompt_from(&self) -> Option<u64> {
        self.paste.or(self.closed)
    }

    /// Bracketed paste was switched off.
    fn paste_off(&mut self) {
        let paste = self.paste.take().filter(|_| self.pasted_in == self.start);
        self.closed = paste.or(self.closed);
        self.filled = None;
    }

    /// The other screen is shown: the main one has its line, whatever the alternate one ends with.
    fn change_screens(&mut self, alternate: bool) {
        if alternate {
            let from = self.bytes.len().saturating_sub(ASIDE_BYTES_MAX);
            self.aside = Some((self.bytes.split_off(from), self.start));
            self.clear();
            return;
        }
        self.clear();
        let (bytes, start) = self.aside.take().unwrap_or_default();
        if strip_sequences(&bytes).contains(|c: char| !c.is_whitespace()) {
            (self.bytes, self.start) = (bytes, start);
        }
    }

    /// Where the prompt at the end of this line begins, for a line editor that has said so since an
    /// offset or a prompt that is known; else the line's start.
    pub(super) fn prompt_start(&self, prompt: &str, since: u64) -> u64 {
        if let Some(paste) = self.paste.filter(|paste| *paste >= since) {
            return paste;
        }
        let known = !prompt.is_empty() && self.bytes.ends_with(prompt.as_bytes());
        if known {
            self.offset - prompt.len() as u64
        } else {
            self.start
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
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
                self.note_reported_state(state)
            }
            SignalChange::PasteOn => self.line.paste_on(self.prompt_has_fill()),
            SignalChange::PasteOff => {
                self.line.paste_off();
                self.content.end_echo_at_paste_off(self.line.start);
            }
            SignalChange::ScreenSwitched => self.line.change_screens(self.signals.alternate),
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

    /// The program said its state.
    fn note_reported_state(&mut self, state: ReportedState) {
        if state == ReportedState::Ready {
            self.hand_over();
            self.reported_ready_at.get_or_insert(self.now);
            return;
        }
        // A queued prompt may follow a ready state of a few milliseconds: that was the boundary.
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
        self.phase.busy();
    }

    /// Whether the row in front of a prompt is filled with blanks.
    fn prompt_has_fill(&self) -> bool {
        self.profile.prompt.as_ref().is_some_and(|rule| rule.fill)
    }

    fn line_feed(&mut self) {
        self.phase.line_feed();
        if self.prompt_has_fill() {
            self.line.remember_fill();
        }
        if self.is_stream() && self.phase.is_open() && self.content.is_in_echo() {
            self.content
                .end_line(self.line.offset, self.line.bytes(), &self.prompt);
        } else if !self.match_queued_lines() {
            self.complete_line();
        }
        self.line.clear();
    }

    /// The line rule on a complete line.
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
        if self.phase.is_open() && self.is_stream() && self.content.is_blank(self.line.start) {
            // Nothing came before it: no turn ends here, and the one that is open goes on behind
            // it.
            self.content.cut_head(self.line.offset);
        } else {
            self.prompt_seen(Signal::Line, self.line.start);
            self.answer_behind_prompt(end);
        }
    }
}
