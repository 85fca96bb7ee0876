//! Reads the signals that a program writes into its output: status, title, shell marks and modes.
//!
//! Status (OSC 7501), marks (OSC 133) and title are *state sources*: each reports a state (working,
//! blocked or ready) as often as the program likes. A source overrides the weaker ones only while
//! it has **authority**: it has reported both busy and ready, so it is known to change. Example:
//! claude inside tmux prints the title `✳ Claude Code` once and never another one. That title has
//! no authority, and the rows of the screen decide. A source loses its authority when it turns out
//! to be stuck ([`Signals::distrust`]) and regains it with its next ready report. Unknown sequences
//! are ignored; nothing here fails.

use super::event::Signal;
use super::profile::Profile;
use crate::pattern::matches_optional;
use crate::sequence::{Csi, ModeSwitch, OSC_BYTES_MAX, is_alternate_screen};
use std::time::Duration;

/// The state that a source reports for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportedState {
    Working,
    Blocked,
    Ready,
}

impl ReportedState {
    /// The state of this name in OSC 7501; `None` for an unknown one.
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "working" => Some(Self::Working),
            "blocked" => Some(Self::Blocked),
            "done" | "idle" => Some(Self::Ready),
            _ => None,
        }
    }
}

/// The effect of one sequence on the signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalChange {
    /// A source reported a state, perhaps the same one again.
    Reported(Signal, ReportedState),
    /// The prompt begins (OSC 133 A) or the command is done (D).
    PromptBegins,
    /// The output of a command begins (OSC 133 C).
    OutputBegins,
    PasteOn,
    PasteOff,
    /// The program switched between the main and the alternate screen.
    ScreenSwitched,
}

/// The history of one state source, as far as it decides about its authority.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a report that was seen or not"
)]
pub(super) struct StateSource {
    last_state: Option<ReportedState>,
    /// The time of the last report, repeated reports included.
    reported_at: Duration,
    /// The source has reported working or blocked.
    reported_busy: bool,
    /// The source has reported ready since it was last found to be stuck.
    reported_ready: bool,
    busy_since_submit: bool,
    ready_since_submit: bool,
}

impl StateSource {
    fn record(&mut self, now: Duration, state: ReportedState) {
        self.last_state = Some(state);
        self.reported_at = now;
        if state == ReportedState::Ready {
            self.reported_ready = true;
            self.ready_since_submit = true;
        } else {
            self.reported_busy = true;
            self.busy_since_submit = true;
        }
    }

    /// Whether the source is known to change between busy and ready.
    fn has_alternated(&self) -> bool {
        self.reported_busy && self.reported_ready
    }

    fn is_busy(&self) -> bool {
        matches!(
            self.last_state,
            Some(ReportedState::Working | ReportedState::Blocked)
        )
    }

    /// Whether the source has reported ready for the current prompt. Shells mark every prompt, so a
    /// mark is trusted without a busy report.
    fn is_at_prompt(&self, is_open: bool) -> bool {
        self.last_state == Some(ReportedState::Ready) && (!is_open || self.ready_since_submit)
    }

    /// Whether the last report is about the current turn. In an open turn, a ready report from
    /// before the submit proves nothing.
    fn is_current(&self, is_open: bool) -> bool {
        self.last_state.is_some()
            && self.has_alternated()
            && (!is_open || self.busy_since_submit || self.is_busy())
    }
}

/// Whether a source overrides the weaker ones.
fn has_authority(signal: Signal, source: &StateSource, is_open: bool) -> bool {
    source.is_current(is_open) || (signal == Signal::Marks && source.is_at_prompt(is_open))
}

/// The last report of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignalReport {
    pub(super) signal: Signal,
    pub(super) state: ReportedState,
    /// The time of the last report, repeated reports included.
    pub(super) at: Duration,
}

/// The state sources and terminal modes of one session.
#[derive(Debug, Default)]
pub(super) struct Signals {
    status: StateSource,
    marks: StateSource,
    title: StateSource,
    /// Whether the last ready status was `idle`, not `done`.
    pub(super) idle: bool,
    /// Whether bracketed paste is on; `None` before the program first switches it.
    pub(super) paste: Option<bool>,
    pub(super) paste_was_on: bool,
    /// The time of the last switch of bracketed paste.
    pub(super) paste_at: Duration,
    pub(super) alternate: bool,
}

impl Signals {
    /// The sources, most trusted first.
    fn sources(&self) -> [(Signal, &StateSource); 3] {
        [
            (Signal::Status, &self.status),
            (Signal::Marks, &self.marks),
            (Signal::Title, &self.title),
        ]
    }

    /// The report of the most trusted source that has authority. In an open turn, a source that has
    /// not reported busy since the submit has none: it may be stuck at ready.
    pub(super) fn authoritative_report(&self, is_open: bool) -> Option<SignalReport> {
        self.reports(move |signal, source| has_authority(signal, source, is_open))
            .next()
    }

    /// The reports of the sources that have authority too, but are less trusted than this one.
    pub(super) fn weaker_reports(
        &self,
        signal: Signal,
        is_open: bool,
    ) -> impl Iterator<Item = SignalReport> {
        let reports = self.reports(move |signal, source| has_authority(signal, source, is_open));
        reports
            .skip_while(move |report| report.signal != signal)
            .skip(1)
    }

    /// The reports of the sources without authority: first those that are known to change, which
    /// only have to report again, then those that may be stuck.
    ///
    /// Worked example: a status has said `working` since the start, and the title has changed
    /// before. After a submit neither has authority. The title comes first, because the status may
    /// be stuck.
    pub(super) fn unproven_reports(&self, is_open: bool) -> impl Iterator<Item = SignalReport> {
        let unproven = move |signal, source: &StateSource| !has_authority(signal, source, is_open);
        let changing =
            self.reports(move |signal, source| unproven(signal, source) && source.has_alternated());
        let perhaps_stuck = self
            .reports(move |signal, source| unproven(signal, source) && !source.has_alternated());
        changing.chain(perhaps_stuck)
    }

    fn reports(
        &self,
        is_wanted: impl Fn(Signal, &StateSource) -> bool,
    ) -> impl Iterator<Item = SignalReport> {
        self.sources()
            .into_iter()
            .filter_map(move |(signal, source)| {
                let state = source.last_state.filter(|_| is_wanted(signal, source))?;
                Some(SignalReport {
                    signal,
                    state,
                    at: source.reported_at,
                })
            })
    }

    /// Begins a turn: from here on the sources must report again to be current.
    pub(super) fn note_submit(&mut self) {
        for source in [&mut self.status, &mut self.marks, &mut self.title] {
            source.busy_since_submit = false;
            source.ready_since_submit = false;
        }
    }

    /// Takes the authority of a source that reports busy while a weaker one proves it wrong. Its
    /// next ready report restores it.
    pub(super) fn distrust(&mut self, signal: Signal) {
        match signal {
            Signal::Status => self.status.reported_ready = false,
            Signal::Marks => self.marks.reported_ready = false,
            Signal::Title => self.title.reported_ready = false,
            Signal::Rows | Signal::Tty | Signal::Paste | Signal::Line => {}
        }
    }

    /// Reads an operating system command.
    pub(super) fn read_osc(
        &mut self,
        now: Duration,
        command: &[u8],
        profile: &Profile,
    ) -> Option<SignalChange> {
        let text = String::from_utf8_lossy(command.get(..OSC_BYTES_MAX).unwrap_or(command));
        let (number, rest) = text.split_once(';')?;
        match number {
            "7501" if profile.status => self.read_status(now, rest),
            "133" if profile.marks => self.read_mark(now, rest),
            "0" | "2" => self.read_title(now, rest, profile),
            _ => None,
        }
    }

    /// Reads a control sequence; only mode switches matter.
    pub(super) fn read_csi(&mut self, now: Duration, csi: &Csi) -> Option<SignalChange> {
        let ModeSwitch { modes, on } = csi.mode_switch()?;
        let mut change = None;
        for mode in modes {
            change = self.switch_mode(now, *mode, on).or(change);
        }
        change
    }

    fn switch_mode(&mut self, now: Duration, mode: u16, on: bool) -> Option<SignalChange> {
        match mode {
            2004 => {
                self.paste = Some(on);
                self.paste_was_on |= on;
                self.paste_at = now;
                Some(if on {
                    SignalChange::PasteOn
                } else {
                    SignalChange::PasteOff
                })
            }
            mode if is_alternate_screen(mode) => {
                let before = std::mem::replace(&mut self.alternate, on);
                (before != on).then_some(SignalChange::ScreenSwitched)
            }
            _ => None,
        }
    }

    fn read_status(&mut self, now: Duration, fields: &str) -> Option<SignalChange> {
        let Status { state, is_idle } = parse_status(fields)?;
        let Some(state) = state else {
            // An unknown state contradicts the last one, so the last one must not count on.
            self.status.last_state = None;
            return None;
        };
        // Only the first ready report after busy counts: an `idle` that follows `done` later says
        // nothing about how the turn ended.
        if state == ReportedState::Ready && self.status.last_state != Some(ReportedState::Ready) {
            self.idle = is_idle;
        }
        self.status.record(now, state);
        Some(SignalChange::Reported(Signal::Status, state))
    }

    fn read_mark(&mut self, now: Duration, mark: &str) -> Option<SignalChange> {
        match mark.as_bytes().first()? {
            b'A' | b'D' => Some(SignalChange::PromptBegins),
            b'B' => {
                self.marks.record(now, ReportedState::Ready);
                Some(SignalChange::Reported(Signal::Marks, ReportedState::Ready))
            }
            b'C' => {
                // A program that never marks the end of its prompt (`B`) would never become ready
                // again, so `C` alone does not make the marks a state source.
                if self.marks.last_state.is_some() {
                    self.marks.record(now, ReportedState::Working);
                }
                Some(SignalChange::OutputBegins)
            }
            _ => None,
        }
    }

    fn read_title(
        &mut self,
        now: Duration,
        title: &str,
        profile: &Profile,
    ) -> Option<SignalChange> {
        let rule = profile.title.as_ref()?;
        // `blocked` is tested first: a title that asks for a decision may still show the spinner.
        let state = if matches_optional(rule.blocked.as_ref(), title) {
            ReportedState::Blocked
        } else if rule.busy.matches(title) {
            ReportedState::Working
        } else if rule.ready.matches(title) {
            ReportedState::Ready
        } else {
            return None;
        };
        self.title.record(now, state);
        Some(SignalChange::Reported(Signal::Title, state))
    }
}

/// A state that a program reports by OSC 7501.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    /// `None` for a state that says neither ready nor busy, such as an error.
    pub(super) state: Option<ReportedState>,
    /// The program is idle, not done: the turn was interrupted.
    pub(super) is_idle: bool,
}

/// Parses the fields of an OSC 7501; `None` without a state, and for a report with an id, which is
/// about a background task of the program and not about its prompt.
pub(super) fn parse_status(fields: &str) -> Option<Status> {
    let mut reported = None;
    for field in fields.split([':', ';']) {
        if field.starts_with("id=") {
            return None;
        }
        reported = reported.or_else(|| field.strip_prefix("state="));
    }
    let reported = reported?;
    Some(Status {
        state: ReportedState::from_name(reported),
        is_idle: reported == "idle",
    })
}
