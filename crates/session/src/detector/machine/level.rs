//! The look: what the program does now, by its signals in the order of trust.

use super::super::event::{Signal, State};
use super::super::profile::PromptRule;
use super::super::render::left_of_cursor;
use super::super::sequence::strip;
use super::super::signals::{Light, Word};
use super::super::view::Signs;
use super::{Detector, Since};
use std::time::Duration;

/// How long after a ready signal a busy sign on the screen may still delay the boundary.
const SIGN_WAIT_MAX: Duration = Duration::from_millis(500);

/// How long words are waited for where none were painted yet: without them there would be no turn.
const WORDS_WAIT_MAX: Duration = Duration::from_millis(1500);

/// How long a ready signal must stand.
const SIGNAL_HOLD: Duration = Duration::from_millis(50);

/// How long the output must rest after a ready signal, so that the last paragraph is painted …
pub(super) const QUIET: Duration = Duration::from_millis(70);

/// … and how long that is waited for.
pub(super) const QUIET_WAIT_MAX: Duration = Duration::from_millis(250);

/// How long the output must rest where nothing but its text tells a prompt from an answer.
const UNCONFIRMED_SETTLE: Duration = Duration::from_millis(250);

/// How long a program is silent before a signal that says busy counts as stuck, where a weaker one
/// says ready.
const STUCK_AFTER: Duration = Duration::from_millis(1500);

/// What the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Nothing can be said.
    Unknown,
    Working,
    Blocked,
    Ready(Signal),
    /// It wants the rest of an input.
    Continuing,
}

/// What confirms a prompt of a line program, and for how long the output must rest then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Confirmed {
    pub(super) signal: Signal,
    settle: Duration,
}

impl Confirmed {
    /// Whether a mode of the terminal confirms it, without doubt.
    pub(super) fn is_sure(self) -> bool {
        self.settle.is_zero()
    }
}

impl Detector {
    /// Looks at the program and draws the conclusions.
    pub(super) fn look(&mut self) {
        match self.hands_over_at() {
            Some(due) if self.now < due => self.look_at = Some(due),
            Some(_) => self.hand_over(),
            None => {}
        }
        match self.level() {
            Level::Unknown => self.ready = None,
            Level::Working => self.busy(State::Working),
            Level::Blocked => self.busy(State::Blocked),
            Level::Continuing => self.continuing(),
            Level::Ready(signal) => self.is_ready(signal),
        }
    }

    fn busy(&mut self, state: State) {
        self.ready = None;
        if state == State::Working {
            self.works();
        }
        self.phase.busy();
        if self.state != State::Starting {
            self.enter_state(state);
        }
    }

    /// The program works, on what was submitted or by itself.
    pub(super) fn works(&mut self) {
        if self.phase.is_idle() && self.shows_working() {
            self.open_unprompted();
        }
        self.phase.works_on(self.now);
    }

    fn continuing(&mut self) {
        self.ready = None;
        if let Some(open) = self.phase.open_mut() {
            open.continuing = true;
        }
    }

    fn is_ready(&mut self, signal: Signal) {
        let since = match self.ready {
            Some(since) if since.signal == signal => since,
            _ => Since {
                at: self.now,
                signal,
                waits: false,
            },
        };
        self.ready = Some(since);
        let due = self.due(since);
        if self.now < due {
            self.look_at = Some(due);
            return;
        }
        if let Some(due) = self.words_due(since).filter(|due| self.now < *due) {
            self.ready = Some(Since {
                waits: true,
                ..since
            });
            self.wait_for_words(since, due);
            return;
        }
        let rest = (self.output_at + QUIET).min(since.at + WORDS_WAIT_MAX);
        if since.waits && self.now < rest {
            // The first words are there, and others may follow at once.
            self.look_at = Some(rest);
            return;
        }
        let by_line_rule = signal == Signal::Line && self.profile.line.is_some();
        let end = if by_line_rule {
            self.line.start
        } else {
            self.line
                .prompt_start(&self.prompt, self.capture.begins_at())
        };
        self.remember_prompt();
        self.prompt_seen(signal, end);
    }

    /// Until when words are waited for that are not painted yet, although the program is ready.
    fn words_due(&mut self, since: Since) -> Option<Duration> {
        let is_asked = self.shows_working() && self.phase.is_answered(Signal::Rows);
        let is_stopped = self
            .phase
            .open_mut()
            .is_some_and(|open| open.interrupted || open.escapes > 0);
        let view = self.view.as_mut().filter(|_| is_asked);
        let (silent, awaits, again) = view.map_or((false, false, false), |view| {
            let silent = view.is_silent();
            (
                silent,
                view.awaits_words(),
                silent && !view.answer_again().is_empty(),
            )
        });
        if silent && !again && !is_stopped {
            return Some(since.at + WORDS_WAIT_MAX);
        }
        let waits = silent || awaits || self.may_be_interrupted(since.signal);
        waits.then_some(since.at + SIGN_WAIT_MAX)
    }

    /// Waits on; after a while the program is said to be ready all the same.
    fn wait_for_words(&mut self, since: Since, due: Duration) {
        let ready_at = since.at + SIGN_WAIT_MAX;
        if self.now < ready_at {
            self.look_at = Some(due.min(ready_at));
        } else {
            self.enter_state(State::Ready);
            self.look_at = Some(due);
        }
    }

    /// Ends the turn of a program that is ready and said nothing: the user goes on.
    pub(super) fn wait_no_longer(&mut self) {
        if let Some(since) = self.ready.filter(|since| self.now >= self.due(*since))
            && self.words_due(since).is_some()
        {
            self.prompt_seen(since.signal, self.line.start);
        }
    }

    /// Whether Esc was pressed and the row is not there by which the program would confirm that.
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
        let view = self.view.as_mut().filter(|_| is_asked && has_row);
        view.is_some_and(|view| view.interrupt_row(&self.profile) <= before)
    }

    /// When a ready state counts: it stood for a while, and the output rests.
    fn due(&self, since: Since) -> Duration {
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

    /// Learns the text of the prompt when it stands on a line of its own.
    fn remember_prompt(&mut self) {
        if self.is_stream() && !self.phase.is_open() && self.typed.is_fresh() {
            self.prompt = left_of_cursor(self.line.bytes());
        }
    }

    /// The voice with authority decides. Without one the weaker signals do, and where the profile
    /// has none of those, the voice that is there.
    fn level(&mut self) -> Level {
        if self.is_stream() && self.signals.alternate {
            return Level::Unknown;
        }
        if let Some(word) = self.signals.authority(self.phase.is_open()) {
            if !self.is_stuck(word) {
                return self.word_level(word);
            }
            self.signals.distrust(word.signal);
            return self.level();
        }
        if self.profile.rows.is_some() {
            self.rows_level()
        } else if self.profile.prompt.is_some() {
            self.prompt_level()
        } else if self.profile.line.is_some() {
            self.line_level()
        } else {
            let word = self.signals.others(self.phase.is_open()).next();
            word.map_or(Level::Unknown, |word| self.word_level(word))
        }
    }

    fn word_level(&mut self, word: Word) -> Level {
        match word.light {
            Light::Working => Level::Working,
            Light::Blocked => Level::Blocked,
            Light::Ready => self.ready_level(word.signal),
        }
    }

    /// Whether a voice that says busy is stuck: a weaker signal went from busy to ready in the
    /// turn, and since then the program has been silent for [`STUCK_AFTER`]. A program that works
    /// repaints its spinner or its timer all the time.
    ///
    /// Worked example: `working` is the last status that arrives. The row `esc to interrupt` goes,
    /// the prompt stands there, nothing is painted for 1.5 s: the status is stuck, and the rows end
    /// the turn.
    fn is_stuck(&mut self, word: Word) -> bool {
        if word.light == Light::Ready {
            return false;
        }
        let rest = self.output_at.max(word.at) + STUCK_AFTER;
        let is_due = self.now >= rest;
        if !is_due {
            self.look_at = Some(self.look_at.map_or(rest, |look| look.min(rest)));
        }
        let is_open = self.phase.is_open();
        if self.profile.rows.is_none() {
            let says_ready = |other: Word| other.light == Light::Ready;
            let is_contradicted = self.signals.below(word.signal, is_open).any(says_ready);
            // Before the first prompt no voice has proved anything: the stronger one counts too.
            let is_starting =
                self.phase.is_starting() && self.signals.others(false).any(says_ready);
            return is_due && (is_contradicted || is_starting || self.prompt_says_ready());
        }
        // Reading the rows costs something: they are read until they were busy once, and when it is
        // due.
        let was_busy = self.phase.open_mut().is_none_or(|open| open.rows_busy);
        if was_busy && !is_due {
            return false;
        }
        let signs = self.signs();
        if let Some(open) = self.phase.open_mut() {
            open.rows_busy |= signs.busy;
        }
        is_due && was_busy && matches!(self.rows_level(), Level::Ready(_))
    }

    /// Whether the profile's prompt or line rule sees a prompt, whatever the voices say.
    fn prompt_says_ready(&mut self) -> bool {
        let level = if self.profile.prompt.is_some() {
            self.prompt_level()
        } else if self.profile.line.is_some() {
            self.line_level()
        } else {
            Level::Unknown
        };
        matches!(level, Level::Ready(_))
    }

    /// Whether what this voice says counts: it has authority, or there is nothing better.
    pub(super) fn heeds(&self, signal: Signal) -> bool {
        let is_open = self.phase.is_open();
        let authority = self.signals.authority(is_open);
        let first = || {
            self.signals
                .others(is_open)
                .next()
                .filter(|_| !self.has_weaker_signal())
        };
        authority
            .or_else(first)
            .is_some_and(|word| word.signal == signal)
    }

    /// The signal of the voice that counts now.
    pub(super) fn loudest(&self) -> Signal {
        let is_open = self.phase.is_open();
        let word = self
            .signals
            .authority(is_open)
            .or_else(|| self.signals.others(is_open).next());
        word.map_or(Signal::Rows, |word| word.signal)
    }

    pub(super) fn signs(&mut self) -> Signs {
        self.view
            .as_mut()
            .map(|view| view.signs(&self.profile))
            .unwrap_or_default()
    }

    /// A signal says ready: is it so on the screen?
    fn ready_level(&mut self, signal: Signal) -> Level {
        let signs = self.signs();
        // What stands in the place of the prompt asks for something, whatever it says.
        let replaced = !signs.ready && self.phase.open_mut().is_some_and(|open| open.is_replaced());
        if (signs.dialog || replaced) && signal == Signal::Title {
            self.light_at = None;
            return Level::Blocked;
        }
        if self.state == State::Starting && self.profile.rows.is_some() && !signs.ready {
            return self.unread_rows_level(signs);
        }
        let since = *self.light_at.get_or_insert(self.now);
        let painting = self.view.as_ref().is_some_and(super::View::half_painted);
        if (signs.busy || painting) && self.now < since + SIGN_WAIT_MAX {
            self.look_at = Some(since + SIGN_WAIT_MAX);
            return Level::Unknown;
        }
        Level::Ready(signal)
    }

    /// Rows are the only signal: a draft typed meanwhile may hide the busy sign, so it proves
    /// nothing.
    fn rows_level(&mut self) -> Level {
        let signs = self.signs();
        let repaints = self.resized_at.is_some_and(|at| at >= self.output_at);
        let painting = repaints || self.view.as_ref().is_some_and(super::View::half_painted);
        match signs {
            Signs { dialog: true, .. } => Level::Blocked,
            Signs { busy: true, .. } => match self.unread_rows_level(signs) {
                Level::Unknown => Level::Working,
                level => level,
            },
            Signs { ready: true, .. } if painting => Level::Unknown,
            Signs { ready: true, .. } if self.draft_hides_busy() => Level::Unknown,
            Signs { ready: true, .. } => Level::Ready(Signal::Rows),
            Signs { .. } => self.unread_rows_level(signs),
        }
    }

    /// Before the first prompt the rows say nothing, or busy although the program rests: perhaps a
    /// new version words its rows otherwise. After [`STUCK_AFTER`] a voice that says ready counts
    /// without them.
    fn unread_rows_level(&mut self, signs: Signs) -> Level {
        let is_starting = self.state == State::Starting && !signs.dialog;
        let authority = self.signals.authority(false);
        let voice = authority.or_else(|| self.signals.others(false).next());
        match voice.filter(|word| is_starting && word.light == Light::Ready) {
            Some(word) if self.rested(STUCK_AFTER) => Level::Ready(word.signal),
            _ => Level::Unknown,
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

    /// Whether the output and the tty's mode have rested for the settle time.
    fn rested(&mut self, settle: Duration) -> bool {
        let rest = self.output_at.max(self.tty_at) + settle;
        if self.now < rest {
            self.look_at = Some(rest);
        }
        self.now >= rest
    }

    fn prompt_level(&mut self) -> Level {
        let Some(found) = self
            .profile
            .prompt
            .as_ref()
            .and_then(|rule| self.at_prompt(rule))
        else {
            return Level::Unknown;
        };
        if !self.rested(self.profile.settle.max(found.settle)) {
            return Level::Unknown;
        }
        let left = match &mut self.view {
            Some(view) => view.left_of_cursor(),
            None => left_of_cursor(self.line.bytes()),
        };
        let Some(rule) = &self.profile.prompt else {
            return Level::Unknown;
        };
        if rule
            .continuation
            .as_ref()
            .is_some_and(|pattern| pattern.matches(&left))
        {
            Level::Continuing
        } else if rule.cursor.matches(&left) {
            Level::Ready(found.signal)
        } else {
            Level::Unknown
        }
    }

    /// What confirms that the program reads a line: its tty, its paste mode, or nothing but the
    /// text where the program never used either. A mode that never changed confirms little. Where
    /// the two contradict each other, one of them is stuck: the one that changed last counts, after
    /// a longer rest.
    pub(super) fn at_prompt(&self, rule: &PromptRule) -> Option<Confirmed> {
        let raw = self
            .tty
            .filter(|_| rule.tty && self.raw_seen)
            .map(|mode| !mode.canonical);
        let paste = self
            .signals
            .paste
            .filter(|on| rule.paste && (*on || self.signals.paste_was_on));
        let by = |signal| {
            Some(Confirmed {
                signal,
                settle: Duration::ZERO,
            })
        };
        let stuck = |signal| {
            Some(Confirmed {
                signal,
                settle: STUCK_AFTER,
            })
        };
        match (raw, paste) {
            (Some(true), Some(false)) if self.tty_at > self.signals.paste_at => stuck(Signal::Tty),
            (Some(false), Some(true)) if self.signals.paste_at > self.tty_at => {
                stuck(Signal::Paste)
            }
            (Some(false), _) | (_, Some(false)) => None,
            (Some(true), _) if self.canonical_seen => by(Signal::Tty),
            (Some(true), _) => Some(Confirmed {
                signal: Signal::Tty,
                settle: UNCONFIRMED_SETTLE,
            }),
            (None, Some(true)) => by(Signal::Paste),
            (None, None) => Some(Confirmed {
                signal: Signal::Line,
                settle: UNCONFIRMED_SETTLE,
            }),
        }
    }

    /// The line rule on an unfinished line at rest.
    fn line_level(&mut self) -> Level {
        if !self.rested(self.profile.settle)
            || (self.phase.is_open() && self.is_stream() && self.capture.in_head())
        {
            return Level::Unknown;
        }
        let Some(pattern) = &self.profile.line else {
            return Level::Unknown;
        };
        let line = self.line.bytes();
        let matches = pattern.matches(&strip(line)) || pattern.matches(&left_of_cursor(line));
        if matches {
            Level::Ready(Signal::Line)
        } else {
            Level::Unknown
        }
    }
}
