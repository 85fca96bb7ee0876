//! The look: what the program does now, and the turn that is complete.

use super::super::event::{Happening, Signal, State, Turn};
use super::super::raw::Raw;
use super::super::signals::Light;
use super::area::InputArea;
use super::{
    DIALOG_HOLD, FullScreen, Open, Phase, REST, REST_AFTER_SPINNER, STATUS_HOLD, STATUS_QUIET,
    STATUS_QUIET_MAX, STOP_MAX, Verdict, WORDS_WAIT_MAX, words,
};
use crate::screen::{Ending, Gathered};
use std::time::Duration;

/// What a look finds.
enum Finding {
    /// The program works; look again then.
    Works {
        again: Option<Duration>,
    },
    /// Something else stands in the place of the input area.
    Asks,
    Ready(Signal),
}

impl FullScreen {
    pub(super) fn look(&mut self) {
        if self.verdict != Verdict::FullScreen {
            return;
        }
        if !matches!(self.phase, Phase::Open(_)) {
            self.look_idle();
            return;
        }
        match self.finding() {
            Finding::Works { again } => {
                self.look_at = again.filter(|at| *at > self.now).or(self.look_at);
                self.enter_state(State::Working);
            }
            Finding::Asks => self.enter_state(State::Blocked),
            Finding::Ready(signal) => self.complete(signal),
        }
    }

    /// Before the first submit the program is ready when the cursor rests in an input area.
    fn look_idle(&mut self) {
        let rests_at = self.motion.changed_at.max(self.output_at) + REST_AFTER_SPINNER;
        if self.now < rests_at && matches!(self.phase, Phase::Starting) {
            self.look_by(rests_at);
            return;
        }
        let rows = self.screen.rows();
        if matches!(self.phase, Phase::Starting) && InputArea::learn(&self.screen, &rows).is_some()
        {
            self.phase = Phase::Idle;
            self.out.push(Happening::Ready);
            self.enter_state(State::Ready);
        }
    }

    fn finding(&self) -> Finding {
        let Phase::Open(open) = &self.phase else {
            return Finding::Works { again: None };
        };
        if open.reported {
            return self.reported_finding();
        }
        self.screen_finding()
    }

    /// What the screen alone shows.
    fn screen_finding(&self) -> Finding {
        let Phase::Open(open) = &self.phase else {
            return Finding::Works { again: None };
        };
        if self.spot.is_none() {
            let due = self.spot_lost_at.max(self.motion.changed_at) + DIALOG_HOLD;
            return if self.now < due {
                Finding::Works { again: Some(due) }
            } else {
                Finding::Asks
            };
        }
        let due = self.motion.changed_at.max(open.start) + self.rest();
        let is_real = (open.echoed || (open.asked.is_none() && self.motion.spun)) && open.taken;
        if self.now < due || self.screen.sync_open() {
            return Finding::Works { again: Some(due) };
        }
        if is_real && self.looks_idle() {
            Finding::Ready(Signal::Rows)
        } else {
            Finding::Works { again: None }
        }
    }

    fn reported_finding(&self) -> Finding {
        match self.report.light {
            Some(Light::Ready) => {
                let hold = self.report.at + STATUS_HOLD;
                let quiet = (self.output_at + STATUS_QUIET).min(self.report.at + STATUS_QUIET_MAX);
                let due = hold.max(quiet);
                if self.now < due {
                    Finding::Works { again: Some(due) }
                } else {
                    Finding::Ready(Signal::Status)
                }
            }
            Some(Light::Blocked) => Finding::Asks,
            Some(Light::Working) | None => self.stuck_finding(),
        }
    }

    /// The program said that it works. If a spinner turned and is gone, and the screen has rested,
    /// the report is stuck and the screen decides.
    fn stuck_finding(&self) -> Finding {
        let is_over = self.motion.spun && !self.motion.shows_spinner();
        if !is_over {
            return Finding::Works { again: None };
        }
        let due = self
            .output_at
            .max(self.motion.changed_at)
            .max(self.report.at)
            + REST;
        if self.now < due {
            return Finding::Works { again: Some(due) };
        }
        self.screen_finding()
    }

    fn rest(&self) -> Duration {
        let is_over = self.motion.spun && !self.motion.shows_spinner();
        if is_over { REST_AFTER_SPINNER } else { REST }
    }

    pub(super) fn complete(&mut self, signal: Signal) {
        let Phase::Open(mut open) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        let interrupted = open.interrupted
            || open
                .escaped_at
                .is_some_and(|at| self.was_stopped(at, signal));
        let gathered = self.text(interrupted);
        let is_command = open.asked.as_deref().is_some_and(is_command);
        let said = gathered.text.contains(|c: char| !c.is_whitespace())
            && !(interrupted && words::is_stop_notice(&gathered.text));
        let counts = said && (!is_command || self.motion.spun || open.reported);
        let patience = self.motion.changed_at.max(self.report.at) + WORDS_WAIT_MAX;
        if !said && !interrupted && self.now < patience {
            open.silent = true;
            self.phase = Phase::Open(open);
            self.look_by(patience);
            return;
        }
        self.gatherer = None;
        self.signal = Some(signal);
        if counts {
            let turn = self.turn(&open, gathered, signal, interrupted);
            self.out.push(Happening::Turn(Box::new(turn)));
        }
        self.enter_state(State::Ready);
    }

    /// Whether the turn ended because of Esc at this time.
    fn was_stopped(&self, escaped_at: Duration, signal: Signal) -> bool {
        match signal {
            Signal::Status => self.report.stopped,
            _ => self.motion.changed_at <= escaped_at + STOP_MAX,
        }
    }

    fn text(&mut self, interrupted: bool) -> Gathered {
        let ending = if interrupted {
            Ending::Interrupted
        } else {
            Ending::Complete
        };
        let empty = Gathered {
            text: String::new(),
            incomplete: true,
            followed: false,
        };
        let gathered = self
            .gatherer
            .as_ref()
            .map_or(empty, |gatherer| gatherer.text(ending));
        Gathered {
            text: words::cleaned(&gathered.text),
            ..gathered
        }
    }

    fn turn(&mut self, open: &Open, gathered: Gathered, signal: Signal, interrupted: bool) -> Turn {
        let raw = self.raw.as_mut().map(Raw::take);
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

/// Whether a prompt is a command of the program's own, which asks the model nothing unless it works
/// on it.
fn is_command(asked: &str) -> bool {
    asked.trim_start().starts_with(['/', '!', ':'])
}
