//! Inspects the screen: decides what the program does now, and completes its turn.
//!
//! The inspection waits for the words of a turn up to [`WORDS_WAIT_MAX`]. A turn without words is
//! then dropped, unless its words may have been missed: that one is kept, empty and incomplete.

use super::super::event::{Detection, Signal, State, Turn};
use super::super::raw_output::RawOutput;
use super::super::signals::ReportedState;
use super::area::InputArea;
use super::{
    DIALOG_HOLD, FullScreen, OpenTurn, Phase, ProgramKind, REST, REST_AFTER_SPINNER, STATUS_HOLD,
    STATUS_QUIET, STATUS_QUIET_MAX, STOP_MAX, WORDS_WAIT_MAX, answer,
};
use crate::screen::{Ending, Gathered};
use std::time::Duration;

/// The commands by which programs shorten a conversation.
const SHORTENING_COMMANDS: [&str; 3] = ["/compact", "/compress", "/summarize"];

/// What the program is doing.
enum Activity {
    /// The program works; inspect again at this time.
    Works {
        again: Option<Duration>,
    },
    /// Something else has replaced the input area.
    Asks,
    Ready(Signal),
}

/// Whether the end of a turn may wait for words that are not painted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordsWait {
    Allowed,
    Over,
}

impl FullScreen {
    pub(super) fn inspect(&mut self) {
        if self.kind != ProgramKind::FullScreen {
            return;
        }
        if !matches!(self.phase, Phase::Open(_)) {
            self.inspect_idle();
            return;
        }
        match self.find_activity() {
            Activity::Works { again } => {
                self.inspect_at = again.filter(|at| *at > self.now).or(self.inspect_at);
                self.enter_state(State::Working);
            }
            Activity::Asks => self.enter_state(State::Blocked),
            Activity::Ready(signal) => self.complete_turn(signal),
        }
    }

    /// Detects the first prompt: the program is ready when the cursor rests in an input area, or
    /// when the program reports it.
    fn inspect_idle(&mut self) {
        let rests_at = self.motion.changed_at.max(self.output_at) + REST_AFTER_SPINNER;
        if self.now < rests_at && matches!(self.phase, Phase::Starting) {
            self.inspect_by(rests_at);
            return;
        }
        let rows = self.screen.rows();
        let is_ready = self.report.state == Some(ReportedState::Ready)
            || InputArea::learn(&self.screen, &rows).is_some();
        if matches!(self.phase, Phase::Starting) && is_ready {
            self.phase = Phase::Idle;
            self.out.push(Detection::Ready);
            self.enter_state(State::Ready);
        }
    }

    fn find_activity(&self) -> Activity {
        let Phase::Open(open) = &self.phase else {
            return Activity::Works { again: None };
        };
        // The program reports its own state, which is more reliable than its screen.
        if open.reported {
            return self.activity_from_status();
        }
        self.activity_from_screen()
    }

    fn activity_from_screen(&self) -> Activity {
        let Phase::Open(open) = &self.phase else {
            return Activity::Works { again: None };
        };
        // Without an area only reports show what the program does.
        if self.area.is_none() {
            return Activity::Works { again: None };
        }
        // Something replaced the input area; if it stays, it is a dialog.
        if self.found_area.is_none() {
            let due = self.area_lost_at.max(self.motion.changed_at) + DIALOG_HOLD;
            return if self.now < due {
                Activity::Works { again: Some(due) }
            } else {
                Activity::Asks
            };
        }
        let due = self.motion.changed_at.max(open.start) + self.required_rest();
        // A submit is real when the area showed the text and then gave it up. Where the keys do not
        // show the text, a spinner proves it.
        let is_real =
            (open.echoed || (open.asked.is_none() && self.motion.spinner_seen)) && open.taken;
        // The screen still moves, or is half painted.
        if self.now < due || self.screen.sync_open() {
            return Activity::Works { again: Some(due) };
        }
        if is_real && self.shows_idle_footer() {
            Activity::Ready(Signal::Rows)
        } else {
            Activity::Works { again: None }
        }
    }

    fn activity_from_status(&self) -> Activity {
        match self.report.state {
            Some(ReportedState::Ready) => {
                let hold = self.report.at + STATUS_HOLD;
                // A program that goes on painting, such as a clock, delays the end only so long.
                let quiet = (self.output_at + STATUS_QUIET).min(self.report.at + STATUS_QUIET_MAX);
                let due = hold.max(quiet);
                if self.now < due {
                    Activity::Works { again: Some(due) }
                } else {
                    Activity::Ready(self.report.signal.unwrap_or(Signal::Status))
                }
            }
            Some(ReportedState::Blocked) => Activity::Asks,
            Some(ReportedState::Working) | None => self.activity_if_stuck(),
        }
    }

    /// The program reported that it works. If a spinner turned and is gone, and the screen has
    /// rested, the report is stuck and the screen decides.
    fn activity_if_stuck(&self) -> Activity {
        let is_over = self.motion.spinner_seen && !self.motion.shows_spinner();
        if !is_over {
            return Activity::Works { again: None };
        }
        let last_sign = self
            .output_at
            .max(self.motion.changed_at)
            .max(self.report.at);
        let due = last_sign + REST;
        if self.now < due {
            return Activity::Works { again: Some(due) };
        }
        self.activity_from_screen()
    }

    fn required_rest(&self) -> Duration {
        let is_over = self.motion.spinner_seen && !self.motion.shows_spinner();
        if is_over { REST_AFTER_SPINNER } else { REST }
    }

    /// Completes the turn, or waits for its first words.
    pub(super) fn complete_turn(&mut self, signal: Signal) {
        self.end_turn(signal, WordsWait::Allowed);
    }

    /// Ends a turn that only waits for its words, because the user submits the next prompt.
    pub(super) fn stop_waiting(&mut self) {
        if let Phase::Open(OpenTurn {
            ready_by: Some(signal),
            ..
        }) = self.phase
        {
            self.end_turn(signal, WordsWait::Over);
        }
    }

    fn end_turn(&mut self, signal: Signal, wait: WordsWait) {
        let Phase::Open(mut open) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        let interrupted = open.interrupted
            || open
                .escaped_at
                .is_some_and(|at| self.was_stopped(at, signal));
        let mut gathered = self.gathered_text(interrupted);
        let has_answer = gathered.text.contains(|c: char| !c.is_whitespace())
            && !(interrupted && answer::is_stop_notice(&gathered.text));
        let words_due = self.motion.changed_at.max(self.report.at) + WORDS_WAIT_MAX;
        // The answer may be painted after the screen has rested: wait before the turn is dropped.
        let may_wait = wait == WordsWait::Allowed && self.now < words_due;
        if !has_answer && !interrupted && may_wait {
            (open.silent, open.ready_by) = (true, Some(signal));
            self.phase = Phase::Open(open);
            self.inspect_by(words_due);
            return;
        }
        let asked = open.asked.as_deref().unwrap_or_default();
        let is_command = is_command(asked);
        let has_worked = self.motion.spinner_seen || open.reported;
        // The program worked and its words could not be followed, so it may have said something.
        let misses_words = open.incomplete || gathered.incomplete;
        let is_lost = !has_answer && misses_words && has_worked && !interrupted && !is_command;
        gathered.incomplete |= is_lost;
        // A command of the program's own prints words without asking the model, so it needs a sign
        // of work.
        let is_answered = has_answer && (!is_command || has_worked);
        self.gatherer = None;
        self.signal = Some(signal);
        if !makes_no_turn(asked) && (is_lost || is_answered) {
            let turn = self.make_turn(&open, gathered, signal, interrupted);
            self.out.push(Detection::Turn(Box::new(turn)));
        }
        self.enter_state(State::Ready);
    }

    /// Whether the turn ended because of an Esc at this time.
    fn was_stopped(&self, escaped_at: Duration, signal: Signal) -> bool {
        match signal {
            Signal::Status => self.report.stopped,
            _ => self.motion.changed_at <= escaped_at + STOP_MAX,
        }
    }

    fn gathered_text(&mut self, interrupted: bool) -> Gathered {
        let empty = Gathered {
            text: String::new(),
            incomplete: true,
            followed: false,
        };
        let gathered = self
            .gatherer
            .as_ref()
            .map_or(empty, |gatherer| gatherer.text(Ending::new(interrupted)));
        Gathered {
            text: answer::clean_answer(&gathered.text),
            ..gathered
        }
    }

    fn make_turn(
        &mut self,
        open: &OpenTurn,
        gathered: Gathered,
        signal: Signal,
        interrupted: bool,
    ) -> Turn {
        let raw = self.raw.as_mut().map(RawOutput::take_kept);
        Turn {
            content: gathered.text.clone().into_bytes(),
            text: gathered.text,
            raw_truncated: raw.as_ref().is_some_and(|raw| raw.truncated),
            raw: raw.map(|raw| raw.bytes),
            truncated: false,
            interrupted,
            incomplete: open.incomplete || gathered.incomplete,
            unprompted: false,
            signal,
            start: open.start,
            end: self.now,
        }
    }
}

/// Whether a prompt is a command of the program's own, which asks the model nothing unless the
/// program works on it.
fn is_command(asked: &str) -> bool {
    asked.trim_start().starts_with(['/', '!', ':'])
}

/// Whether a prompt is a command that the model never answers, although the program works on it: a
/// line for the shell, or one that shortens the conversation.
fn makes_no_turn(asked: &str) -> bool {
    let asked = asked.trim_start();
    let word = asked.split_whitespace().next().unwrap_or_default();
    asked.starts_with('!') || SHORTENING_COMMANDS.contains(&word)
}
