//! Decides what the program is doing now, by its signals in the order of trust.
//!
//! A state source with authority decides. Without one the rows decide, then the prompt, then the
//! line rule. A ready state counts only after it has held for a while and the output rests, so that
//! the last paragraph is painted when the text is read.
//!
//! Worked example, a screen profile with title and rows, a submit at 0 ms:
//!
//! ```text
//!     5 ms  title `⠋ fix the test`        busy; the title has changed before, so it has authority
//!  2310 ms  title `fix the test`          ready since 2310; it must hold for 50 ms
//!  2340 ms  last words are painted        the output must rest for 70 ms, until 2410
//!  2410 ms  nothing more                  no busy row, no dialog: the turn is complete
//! ```
//!
//! If the title stayed busy forever, the rows would prove it stuck after 1.5 s without output.

use super::super::event::{Signal, State};
use super::super::profile::PromptRule;
use super::super::profile_screen::RowSigns;
use super::super::render::left_of_cursor;
use super::super::signals::{ReportedState, SignalReport};
use super::{Detector, ReadySince};
use crate::pattern::matches_optional;
use crate::sequence::strip_sequences;
use std::time::Duration;

/// How long after a ready signal a busy row on the screen may still delay the boundary.
const SIGN_WAIT_MAX: Duration = Duration::from_millis(500);

/// How long to wait for the first words of a turn. Without words there would be no turn, so this
/// wait is longer than others.
const WORDS_WAIT_MAX: Duration = Duration::from_millis(1500);

/// How long a ready signal must hold. Programs report ready for a moment between two steps.
const SIGNAL_HOLD: Duration = Duration::from_millis(50);

/// How long the output must rest after a ready signal, so that the last paragraph is painted …
pub(super) const QUIET: Duration = Duration::from_millis(70);

/// … and how long that rest is waited for: a blinking cursor never rests.
pub(super) const QUIET_WAIT_MAX: Duration = Duration::from_millis(250);

/// How long the output must rest where only its text distinguishes a prompt from an answer.
const UNCONFIRMED_SETTLE: Duration = Duration::from_millis(250);

/// How long a program must be silent before a busy signal counts as stuck, where a weaker signal
/// says ready. Programs that work repaint a spinner or a timer more often than this.
const STUCK_AFTER: Duration = Duration::from_millis(1500);

/// What the program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// The signals do not say, or not yet.
    Unknown,
    Working,
    Blocked,
    Ready(Signal),
    /// The program wants the rest of an input.
    Continuing,
}

/// The signal that confirms a prompt of a line program, and how long the output must rest for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PromptEvidence {
    pub(super) signal: Signal,
    settle: Duration,
}

impl PromptEvidence {
    /// Whether a mode of the terminal confirms the prompt without doubt.
    pub(super) fn is_sure(self) -> bool {
        self.settle.is_zero()
    }
}

impl Detector {
    /// Assesses the program and changes state, or completes the turn, accordingly.
    pub(super) fn inspect(&mut self) {
        // A turn that is handed over ends first, so that the assessment below is about the next
        // one.
        match self.hand_over_due() {
            Some(due) if self.now < due => self.inspect_at = Some(due),
            Some(_) => self.hand_over(),
            None => {}
        }
        match self.assess() {
            Activity::Unknown => self.ready = None,
            Activity::Working => self.note_busy(State::Working),
            Activity::Blocked => self.note_busy(State::Blocked),
            Activity::Continuing => self.note_continuation(),
            Activity::Ready(signal) => self.note_ready(signal),
        }
    }

    fn note_busy(&mut self, state: State) {
        self.ready = None;
        if state == State::Working {
            self.note_working();
        }
        self.phase.note_busy();
        if self.state != State::Starting {
            self.enter_state(state);
        }
    }

    /// Notes that the program works, on what was submitted or by itself.
    pub(super) fn note_working(&mut self) {
        if self.phase.is_idle() && self.shows_working() {
            self.open_unprompted();
        }
        self.phase.note_work_after_reject(self.now);
    }

    fn note_continuation(&mut self) {
        self.ready = None;
        if let Some(open) = self.phase.open_mut() {
            open.continuing = true;
        }
    }

    /// Handles a ready signal: waits until it has held, then until the first words are painted, and
    /// completes the turn.
    fn note_ready(&mut self, signal: Signal) {
        let since = match self.ready {
            Some(since) if since.signal == signal => since,
            _ => ReadySince {
                at: self.now,
                signal,
                waited_for_words: false,
            },
        };
        self.ready = Some(since);
        let due = self.ready_due(since);
        if self.now < due {
            self.inspect_at = Some(due);
            return;
        }
        // Some programs report ready before they paint the answer.
        if let Some(due) = self.words_due(since).filter(|due| self.now < *due) {
            self.ready = Some(ReadySince {
                waited_for_words: true,
                ..since
            });
            self.wait_for_words(since, due);
            return;
        }
        let rest = (self.output_at + QUIET).min(since.at + WORDS_WAIT_MAX);
        if since.waited_for_words && self.now < rest {
            // The first words are painted, and others may follow at once.
            self.inspect_at = Some(rest);
            return;
        }
        let end = self.content_end(signal);
        self.remember_prompt();
        self.prompt_seen(signal, end);
    }

    /// The offset of the output at which the content ends, in front of the prompt.
    fn content_end(&self, signal: Signal) -> u64 {
        // The line rule matches a whole line, so the content ends where that line begins.
        let by_line_rule = signal == Signal::Line && self.profile.line.is_some();
        if by_line_rule {
            self.line.start
        } else {
            self.line
                .prompt_start(&self.prompt, self.content.content_offset())
        }
    }

    /// Until when to wait for words that are not painted yet, although the program is ready.
    fn words_due(&mut self, since: ReadySince) -> Option<Duration> {
        let is_asked = self.shows_working() && self.phase.is_answered(Signal::Rows);
        let is_stopped = self
            .phase
            .open_mut()
            .is_some_and(|open| open.interrupted || open.escapes > 0);
        let (mut is_silent, mut awaits_words, mut repeats_answer) = (false, false, false);
        if let Some(screen) = self.screen.as_mut().filter(|_| is_asked) {
            is_silent = screen.is_silent();
            awaits_words = screen.awaits_words();
            repeats_answer = is_silent && !screen.answer_again().is_empty();
        }
        // Nothing was said yet. A stopped turn may well stay silent, and a repeated answer is on the
        // screen already, so neither is worth the long wait.
        if is_silent && !repeats_answer && !is_stopped {
            return Some(since.at + WORDS_WAIT_MAX);
        }
        let waits = is_silent || awaits_words || self.may_be_interrupted(since.signal);
        waits.then_some(since.at + SIGN_WAIT_MAX)
    }

    /// Waits for words. After a while the session is ready all the same, so that the user is not
    /// kept waiting.
    fn wait_for_words(&mut self, since: ReadySince, due: Duration) {
        let ready_at = since.at + SIGN_WAIT_MAX;
        if self.now < ready_at {
            self.inspect_at = Some(due.min(ready_at));
        } else {
            self.enter_state(State::Ready);
            self.inspect_at = Some(due);
        }
    }

    /// Ends the turn of a program that is ready and said nothing, because the user goes on.
    pub(super) fn stop_waiting(&mut self) {
        if let Some(since) = self
            .ready
            .filter(|since| self.now >= self.ready_due(*since))
            && self.words_due(since).is_some()
        {
            self.prompt_seen(since.signal, self.line.start);
        }
    }

    /// Whether the user pressed Esc and the row by which the program confirms it is still missing.
    fn may_be_interrupted(&mut self, signal: Signal) -> bool {
        let Some(rule) = self
            .profile
            .interrupt
            .as_ref()
            .filter(|_| signal != Signal::Status)
        else {
            return false;
        };
        let Some(open) = self.phase.open_mut() else {
            return false;
        };
        let is_asked = open.escapes >= rule.escapes && !open.interrupted && !open.rejected;
        let before = open.interrupt_row;
        let has_row = rule.row.is_some();
        let screen = self.screen.as_mut().filter(|_| is_asked && has_row);
        screen.is_some_and(|screen| screen.interrupt_row(&self.profile) <= before)
    }

    /// When a ready state counts: it has held for a while, and the output rests.
    fn ready_due(&self, since: ReadySince) -> Duration {
        let hold = match since.signal {
            Signal::Rows => self
                .profile
                .rows
                .as_ref()
                .map_or(Duration::ZERO, |rows| rows.hold),
            Signal::Status | Signal::Title | Signal::Marks => SIGNAL_HOLD,
            Signal::Tty | Signal::Paste | Signal::Line => return since.at,
        };
        let quiet = (self.output_at + QUIET).min(since.at + QUIET_WAIT_MAX);
        (since.at + hold).max(quiet)
    }

    /// Learns the text of the prompt while nothing is typed behind it.
    fn remember_prompt(&mut self) {
        if self.is_stream() && !self.phase.is_open() && self.typed.is_fresh() {
            self.prompt = left_of_cursor(self.line.bytes());
        }
    }

    /// Assesses the program. The source with authority decides. Without one the weaker signals do,
    /// and where the profile has none of those, the most trusted source that has reported.
    fn assess(&mut self) -> Activity {
        // A pager or an editor runs in the shell: its screen holds no prompt of the shell.
        if self.is_stream() && self.signals.alternate {
            return Activity::Unknown;
        }
        if let Some(report) = self.signals.authoritative_report(self.phase.is_open()) {
            if !self.is_stuck(report) {
                return self.assess_report(report);
            }
            // The recursion ends: a distrusted source has no authority, so the next one decides.
            self.signals.distrust(report.signal);
            return self.assess();
        }
        if self.profile.rows.is_some() {
            self.assess_rows()
        } else if self.profile.prompt.is_some() {
            self.assess_prompt()
        } else if self.profile.line.is_some() {
            self.assess_line()
        } else {
            let report = self.signals.unproven_reports(self.phase.is_open()).next();
            report.map_or(Activity::Unknown, |report| self.assess_report(report))
        }
    }

    fn assess_report(&mut self, report: SignalReport) -> Activity {
        match report.state {
            ReportedState::Working => Activity::Working,
            ReportedState::Blocked => Activity::Blocked,
            ReportedState::Ready => self.confirm_ready(report.signal),
        }
    }

    /// Whether a source that reports busy is stuck: a weaker signal went from busy to ready in the
    /// turn, and since then the program has been silent for [`STUCK_AFTER`]. A program that works
    /// repaints its spinner or its timer all the time.
    ///
    /// Worked example: `working` is the last status that arrives. The row `esc to interrupt` goes,
    /// the prompt is back, nothing is painted for 1.5 s: the status is stuck, and the rows end the
    /// turn.
    fn is_stuck(&mut self, report: SignalReport) -> bool {
        if report.state == ReportedState::Ready {
            return false;
        }
        let rest = self.output_at.max(report.at) + STUCK_AFTER;
        let is_due = self.now >= rest;
        if !is_due {
            self.inspect_at = Some(self.inspect_at.map_or(rest, |earlier| earlier.min(rest)));
        }
        if self.profile.rows.is_none() {
            return is_due && (self.is_contradicted(report.signal) || self.is_prompt_visible());
        }
        // Reading the rows is expensive. They are read until they were busy once, and when the
        // silence is long enough.
        let was_busy = self.phase.open_mut().is_none_or(|open| open.rows_busy);
        if was_busy && !is_due {
            return false;
        }
        let signs = self.read_signs();
        if let Some(open) = self.phase.open_mut() {
            open.rows_busy |= signs.busy;
        }
        is_due && was_busy && matches!(self.assess_rows(), Activity::Ready(_))
    }

    /// Whether a weaker source reports ready.
    fn is_contradicted(&self, signal: Signal) -> bool {
        let says_ready = |other: SignalReport| other.state == ReportedState::Ready;
        let mut weaker = self.signals.weaker_reports(signal, self.phase.is_open());
        // Before the first prompt no source has proved itself, so a stronger one counts too.
        weaker.any(says_ready)
            || (self.phase.is_starting() && self.signals.unproven_reports(false).any(says_ready))
    }

    /// Whether the prompt or line rule of the profile sees a prompt, whatever the sources report.
    fn is_prompt_visible(&mut self) -> bool {
        let activity = if self.profile.prompt.is_some() {
            self.assess_prompt()
        } else if self.profile.line.is_some() {
            self.assess_line()
        } else {
            Activity::Unknown
        };
        matches!(activity, Activity::Ready(_))
    }

    /// Whether reports of this source count: it has authority, or the profile has nothing better.
    pub(super) fn is_decisive(&self, signal: Signal) -> bool {
        let is_open = self.phase.is_open();
        let authority = self.signals.authoritative_report(is_open);
        let first = || {
            self.signals
                .unproven_reports(is_open)
                .next()
                .filter(|_| !self.has_weaker_signal())
        };
        authority
            .or_else(first)
            .is_some_and(|report| report.signal == signal)
    }

    /// The signal of the source that counts now; the rows where no source has reported.
    pub(super) fn deciding_signal(&self) -> Signal {
        let is_open = self.phase.is_open();
        let report = self
            .signals
            .authoritative_report(is_open)
            .or_else(|| self.signals.unproven_reports(is_open).next());
        report.map_or(Signal::Rows, |report| report.signal)
    }

    pub(super) fn read_signs(&mut self) -> RowSigns {
        self.screen
            .as_mut()
            .map(|screen| screen.read_signs(&self.profile))
            .unwrap_or_default()
    }

    /// Checks on the screen whether the program is ready, as a signal says.
    fn confirm_ready(&mut self, signal: Signal) -> Activity {
        let signs = self.read_signs();
        // Whatever replaces the prompt in mid-turn asks for a decision, with or without words that
        // the profile knows.
        let replaced = !signs.ready && self.phase.open_mut().is_some_and(|open| open.is_replaced());
        // Only titles are checked: a status reports `blocked` itself.
        if (signs.dialog || replaced) && signal == Signal::Title {
            self.reported_ready_at = None;
            return Activity::Blocked;
        }
        if self.state == State::Starting && self.profile.rows.is_some() && !signs.ready {
            return self.assess_without_rows(signs);
        }
        let since = *self.reported_ready_at.get_or_insert(self.now);
        let painting = self
            .screen
            .as_ref()
            .is_some_and(super::ProfileScreen::is_half_painted);
        // The signal may come before the last frame, so the screen gets a limited time to follow.
        if (signs.busy || painting) && self.now < since + SIGN_WAIT_MAX {
            self.inspect_at = Some(since + SIGN_WAIT_MAX);
            return Activity::Unknown;
        }
        Activity::Ready(signal)
    }

    /// Assesses the rows. A draft that is typed meanwhile may hide the busy row, so a ready row
    /// then proves nothing.
    fn assess_rows(&mut self) -> Activity {
        let signs = self.read_signs();
        // After a resize the rows are laid out for the old size until the program paints again.
        let repaints = self.resized_at.is_some_and(|at| at >= self.output_at);
        let painting = repaints
            || self
                .screen
                .as_ref()
                .is_some_and(super::ProfileScreen::is_half_painted);
        match signs {
            RowSigns { dialog: true, .. } => Activity::Blocked,
            RowSigns { busy: true, .. } => match self.assess_without_rows(signs) {
                Activity::Unknown => Activity::Working,
                level => level,
            },
            RowSigns { ready: true, .. } if painting => Activity::Unknown,
            RowSigns { ready: true, .. } if self.draft_hides_busy() => Activity::Unknown,
            RowSigns { ready: true, .. } => Activity::Ready(Signal::Rows),
            RowSigns { .. } => self.assess_without_rows(signs),
        }
    }

    /// Handles rows that say nothing, or busy although the program rests, before the first prompt:
    /// perhaps a new version words its rows differently. After [`STUCK_AFTER`] a source that
    /// reports ready counts without them.
    fn assess_without_rows(&mut self, signs: RowSigns) -> Activity {
        let is_starting = self.state == State::Starting && !signs.dialog;
        let authority = self.signals.authoritative_report(false);
        let report = authority.or_else(|| self.signals.unproven_reports(false).next());
        match report.filter(|report| is_starting && report.state == ReportedState::Ready) {
            Some(report) if self.has_rested(STUCK_AFTER) => Activity::Ready(report.signal),
            _ => Activity::Unknown,
        }
    }

    fn draft_hides_busy(&self) -> bool {
        let hides = self
            .profile
            .rows
            .as_ref()
            .is_some_and(|rows| rows.draft_hides_busy);
        hides && self.phase.is_open() && self.typed.has_text()
    }

    /// Whether the output and the tty's mode have rested for the settle time; schedules an
    /// inspection if not.
    fn has_rested(&mut self, settle: Duration) -> bool {
        let rest = self.output_at.max(self.tty_at) + settle;
        if self.now < rest {
            self.inspect_at = Some(rest);
        }
        self.now >= rest
    }

    fn assess_prompt(&mut self) -> Activity {
        let Some(found) = self
            .profile
            .prompt
            .as_ref()
            .and_then(|rule| self.prompt_evidence(rule))
        else {
            return Activity::Unknown;
        };
        if !self.has_rested(self.profile.settle.max(found.settle)) {
            return Activity::Unknown;
        }
        let left = match &mut self.screen {
            Some(screen) => screen.left_of_cursor(),
            None => left_of_cursor(self.line.bytes()),
        };
        let Some(rule) = &self.profile.prompt else {
            return Activity::Unknown;
        };
        // First, because the prompt for the rest of a line often looks like a prompt for a new one.
        if matches_optional(rule.continuation.as_ref(), &left) {
            Activity::Continuing
        } else if rule.cursor.matches(&left) {
            Activity::Ready(found.signal)
        } else {
            Activity::Unknown
        }
    }

    /// The evidence that the program reads a line: its tty mode, its paste mode, or only the text
    /// where the program never used either. A mode that never changed is weak evidence. Where the
    /// two modes contradict each other, one of them is stuck: the one that changed last counts,
    /// after a longer rest.
    pub(super) fn prompt_evidence(&self, rule: &PromptRule) -> Option<PromptEvidence> {
        let raw = self
            .tty
            .filter(|_| rule.tty && self.raw_seen)
            .map(|mode| !mode.canonical);
        let paste = self
            .signals
            .paste
            .filter(|on| rule.paste && (*on || self.signals.paste_was_on));
        let (signal, settle) = match (raw, paste) {
            (Some(true), Some(false)) if self.tty_at > self.signals.paste_at => {
                (Signal::Tty, STUCK_AFTER)
            }
            (Some(false), Some(true)) if self.signals.paste_at > self.tty_at => {
                (Signal::Paste, STUCK_AFTER)
            }
            // Either mode alone proves that the program is not reading a line.
            (Some(false), _) | (_, Some(false)) => return None,
            // A tty that was canonical before shows by its change that the line editor runs.
            (Some(true), _) if self.canonical_seen => (Signal::Tty, Duration::ZERO),
            (Some(true), _) => (Signal::Tty, UNCONFIRMED_SETTLE),
            (None, Some(true)) => (Signal::Paste, Duration::ZERO),
            (None, None) => (Signal::Line, UNCONFIRMED_SETTLE),
        };
        Some(PromptEvidence { signal, settle })
    }

    /// Applies the line rule to an unfinished line at rest.
    fn assess_line(&mut self) -> Activity {
        if !self.has_rested(self.profile.settle)
            || (self.phase.is_open() && self.is_stream() && self.content.is_in_echo())
        {
            return Activity::Unknown;
        }
        let Some(pattern) = &self.profile.line else {
            return Activity::Unknown;
        };
        let line = self.line.bytes();
        let matches =
            pattern.matches(&strip_sequences(line)) || pattern.matches(&left_of_cursor(line));
        if matches {
            Activity::Ready(Signal::Line)
        } else {
            Activity::Unknown
        }
    }
}
