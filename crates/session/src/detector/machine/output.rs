//! Output: tokens become signals, lines and content.

use super::super::event::Signal;
use super::super::fill::fill_start;
use super::super::sequence::{Token, strip};
use super::super::signals::{Change, Light};
use super::Detector;

/// How much of a line is looked at: its end.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// How much of the main screen's line is remembered while the alternate one is shown: its end.
const ASIDE_BYTES_MAX: usize = 1024;

/// How many lines a prompt behind a fill may have.
const FILLED_LINES_MAX: u8 = 4;

/// The line that the output is on, and where it is in the output.
#[derive(Debug, Default)]
pub(super) struct Line {
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

impl Line {
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
        if strip(&bytes).contains(|c: char| !c.is_whitespace()) {
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
    pub(super) fn output(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.output_at = self.now;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.tokens.at_ground() {
                self.line.sequence = self.line.offset;
            }
            let step = self.tokens.step(rest);
            let (used, after) = rest.split_at(step.used.min(rest.len()));
            self.take(used);
            self.token(step.token);
            rest = after;
        }
        self.look_soon();
    }

    fn take(&mut self, bytes: &[u8]) {
        self.line.push(bytes);
        if let Some(view) = &mut self.view {
            view.push(bytes);
        }
        if self.phase.is_open() {
            if self.is_stream() {
                self.capture.push(bytes);
            } else if let Some(raw) = &mut self.raw {
                raw.push(bytes);
            }
        }
    }

    fn token(&mut self, token: Token) {
        let change = match token {
            Token::Control(b'\n') => {
                self.line_feed();
                None
            }
            Token::Csi => self.signals.csi(self.now, self.tokens.csi()),
            Token::Osc => self.signals.osc(self.now, self.tokens.osc(), &self.profile),
            _ => None,
        };
        if let Some(change) = change {
            self.change(change);
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Light(signal, light) if self.heeds(signal) => self.light(light),
            Change::PasteOn => self.line.paste_on(self.fills()),
            Change::PasteOff => {
                self.line.paste_off();
                self.capture.paste_off(self.line.start);
            }
            Change::Screens => self.line.change_screens(self.signals.alternate),
            Change::OutputBegins => self.output_begins(),
            Change::PromptBegins if self.is_stream() && self.phase.is_open() => {
                self.capture.cut_tail(self.line.sequence);
            }
            Change::PromptBegins | Change::Light(..) => {}
        }
    }

    fn output_begins(&mut self) {
        if self.is_stream() && self.phase.is_open() {
            self.capture.cut_head(self.line.offset);
        }
        self.light(Light::Working);
    }

    /// The program said its state.
    fn light(&mut self, light: Light) {
        if light == Light::Ready {
            self.hand_over();
            self.light_at.get_or_insert(self.now);
            return;
        }
        // A queued prompt may follow a ready state of a few milliseconds: that was the boundary.
        if let Some(at) = self.light_at
            && self.phase.is_queued()
            && self.now > at
        {
            self.begin_hand_over();
        }
        if light == Light::Working {
            self.works();
        }
        self.light_at = None;
        self.ready = None;
        self.phase.busy();
    }

    /// Whether the row in front of a prompt is filled with blanks.
    fn fills(&self) -> bool {
        self.profile.prompt.as_ref().is_some_and(|rule| rule.fill)
    }

    fn line_feed(&mut self) {
        self.phase.line_feed();
        if self.fills() {
            self.line.remember_fill();
        }
        if self.is_stream() && self.phase.is_open() && self.capture.in_head() {
            self.capture
                .line_feed(self.line.offset, self.line.bytes(), &self.prompt);
        } else if !self.took_queued() {
            self.complete_line();
        }
        self.line.clear();
    }

    /// The line rule on a complete line.
    fn complete_line(&mut self) {
        let Some(pattern) = &self.profile.line else {
            return;
        };
        if self.signals.alternate || self.phase.is_idle() || self.signals.authority(false).is_some()
        {
            return;
        }
        let text = strip(self.line.bytes());
        let Some(end) = pattern.match_end(&text) else {
            return;
        };
        if self.phase.is_open() && self.is_stream() && self.capture.is_blank(self.line.start) {
            // Nothing came before it: no turn ends here, and the one that is open goes on behind
            // it.
            self.capture.cut_head(self.line.offset);
        } else {
            self.prompt_seen(Signal::Line, self.line.start);
            self.answer_behind_prompt(end);
        }
    }
}
