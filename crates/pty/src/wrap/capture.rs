//! The observer that finds turns: feeds the detector and hands what it says to the outlets.
//!
//! Turns are numbered from 1 in the order of their completion. An outlet never waits, so a slow
//! broker or store does not slow detection down.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_session::detector::{
    ContentKind, Detector, Event, Happening, Profile, Size, State, TtyMode as DetectorMode, Turn,
};
use turnkeep_types::broker::{AgentState, CompletedTurn, StateChange};
use turnkeep_types::{Clock, Timestamp};

use super::hooks::{GAP, HOOK_LOOK, HOOK_PAUSE, Hooks, Messages};
use super::mode::TtyMode;
use super::observer::Observer;
use super::share::Share;
use super::tally::Tally;
use super::tap::Sight;

/// Where turns go. Nothing here may wait.
pub trait Outlet: Send {
    /// The child runs; this is its process id.
    fn start(&mut self, child: u32);
    /// The program does something else now.
    fn state(&mut self, change: &StateChange);
    /// A turn is complete.
    fn turn(&mut self, turn: &CompletedTurn);
    /// The terminal shows something else now.
    fn shown(&mut self) {}
    /// The child has ended.
    fn end(&mut self);
}

/// What a session is captured as.
pub struct Captured {
    /// The session's id.
    pub session: String,
    /// How its turns are told.
    pub profile: Profile,
    /// So many bytes that painted a turn are kept beside its text.
    pub raw_bytes_max: Option<usize>,
    /// The program's hooks, if they are used.
    pub hooks: Option<Hooks>,
    /// What the time is.
    pub clock: Arc<dyn Clock>,
    /// What others may watch, if they may.
    pub share: Option<Share>,
    /// Where the session's counts are kept.
    pub tally: Tally,
    /// Where the turns go.
    pub outlets: Vec<Box<dyn Outlet>>,
}

/// Finds the turns of one session.
pub struct Capture {
    session: String,
    detector: Detector,
    clock: Arc<dyn Clock>,
    outlets: Vec<Box<dyn Outlet>>,
    turns: u64,
    hooks: Option<Hooks>,
    waiting: Option<Waiting>,
    share: Option<Share>,
    tally: Tally,
    /// What was told last, and since when it is so.
    told: Option<(AgentState, Timestamp)>,
}

/// A turn that waits for its message from the program's hook.
struct Waiting {
    turn: CompletedTurn,
    look_at: Duration,
    until: Duration,
    /// What the program does since; told behind the turn.
    state: Option<StateChange>,
}

impl Capture {
    /// An observer for a session in a window of the user's size.
    pub fn new(captured: Captured) -> Self {
        let size = super::terminal::UserTerminal::screen_size();
        let size = Size {
            cols: size.ws_col,
            rows: size.ws_row,
        };
        let detector = Detector::new(captured.profile, size);
        let detector = match captured.raw_bytes_max {
            Some(bytes_max) => detector.keep_raw(bytes_max),
            None => detector,
        };
        let Captured {
            session,
            clock,
            outlets,
            hooks,
            share,
            tally,
            ..
        } = captured;
        Self {
            session,
            detector,
            clock,
            outlets,
            turns: 0,
            hooks,
            waiting: None,
            share,
            tally,
            told: None,
        }
    }

    fn feed(&mut self, at: Duration, event: Event<'_>) {
        for happening in self.detector.feed(at, event) {
            match happening {
                // The state says it too.
                Happening::Ready => {}
                Happening::State(state) => {
                    if state == State::Working {
                        self.forget_old_messages();
                    }
                    self.tell_state(state);
                }
                Happening::Turn(turn) => self.take_turn(at, *turn),
            }
        }
        self.count_enters();
    }

    /// Tells how often Enter was pressed without a turn, from the second time on: the first may be
    /// at work.
    fn count_enters(&mut self) {
        let unanswered = self.detector.unanswered();
        if unanswered != self.tally.unanswered() {
            self.tally.set_unanswered(unanswered);
            if unanswered > 1 {
                self.tell_state(self.detector.state());
            }
        }
    }

    /// Shows to those who watch what was seen.
    fn show(&mut self, sight: &Sight) {
        let Some(share) = &self.share else { return };
        let is_watched = match sight {
            Sight::Output(bytes) => share.output(bytes),
            Sight::Lost => share.lose(),
            Sight::Resize { cols, rows } => share.resize(*cols, *rows),
            Sight::Input(_) | Sight::Interrupt | Sight::Mode(_) => false,
        };
        if is_watched {
            self.outlets.iter_mut().for_each(|outlet| outlet.shown());
        }
    }

    fn tell_state(&mut self, state: State) {
        let state = match state {
            State::Starting => return,
            State::Ready => AgentState::Ready,
            State::Working => AgentState::Working,
            State::Blocked => AgentState::Blocked,
        };
        let signal = self.detector.signal().map(|signal| signal.to_string());
        let (session, since) = (self.session.clone(), self.since(state));
        let unanswered = self.detector.unanswered();
        let change = StateChange {
            session,
            state,
            since,
            signal,
            unanswered,
        };
        match &mut self.waiting {
            Some(waiting) => waiting.state = Some(change),
            None => self.tell_change(&change),
        }
    }

    /// Since when the program does this.
    fn since(&mut self, state: AgentState) -> Timestamp {
        let now = self.clock.now();
        let since = self
            .told
            .filter(|(told, _)| *told == state)
            .map_or(now, |(_, since)| since);
        self.told = Some((state, since));
        since
    }

    fn tell_change(&mut self, change: &StateChange) {
        for outlet in &mut self.outlets {
            outlet.state(change);
        }
    }

    /// Where the text of a turn comes from that no hook gave.
    fn text_source(&self) -> &'static str {
        match self.detector.content() {
            ContentKind::Stream => "stream",
            ContentKind::Screen => "screen",
        }
    }

    /// A turn is complete: it waits for its hook, or goes out at once.
    fn take_turn(&mut self, at: Duration, turn: Turn) {
        self.tell_waiting();
        self.turns += 1;
        self.tally.count_turn();
        let interrupted = turn.interrupted;
        let completed = CompletedTurn {
            session: self.session.clone(),
            content: turn.content.into(),
            interrupted,
            text: Some(turn.text),
            raw: turn.raw.map(Into::into),
            truncated: turn.truncated,
            raw_truncated: turn.raw_truncated,
            seq: Some(self.turns),
            timestamp: Some(self.clock.now()),
            incomplete: turn.incomplete,
            text_source: Some(self.text_source().to_owned()),
            unprompted: turn.unprompted,
        };
        let until = at
            + if self.hooks.is_some() && !interrupted {
                HOOK_PAUSE
            } else {
                Duration::ZERO
            };
        self.waiting = Some(Waiting {
            turn: completed,
            look_at: at,
            until,
            state: None,
        });
        self.look_for_message(at);
    }

    /// A message that waits when a turn begins came too late for its own turn.
    fn forget_old_messages(&self) {
        if let Some(hooks) = self.hooks.as_ref().filter(|_| self.waiting.is_none()) {
            hooks.messages().clear();
        }
    }

    /// Sends the waiting turn out if its message is there or does not come any more.
    fn look_for_message(&mut self, at: Duration) {
        let messages = self.hooks.as_ref().map(Hooks::messages);
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        let is_last_look = waiting.until <= at;
        let found = messages.is_some_and(|messages| waiting.take_message(&messages, is_last_look));
        if found || is_last_look {
            self.tell_waiting();
        } else {
            waiting.look_at = (at + HOOK_LOOK).min(waiting.until);
        }
    }

    fn tell_waiting(&mut self) {
        let Some(Waiting { turn, state, .. }) = self.waiting.take() else {
            return;
        };
        for outlet in &mut self.outlets {
            outlet.turn(&turn);
        }
        if let Some(change) = state {
            self.tell_change(&change);
        }
    }
}

impl Waiting {
    /// Takes the exact text, if it is there. The content of a screen's turn is its text.
    fn take_message(&mut self, messages: &Messages, is_last_look: bool) -> bool {
        let text = self.turn.text.as_deref().unwrap_or_default();
        let mut exact = messages.exact(text);
        if exact.is_none() && is_last_look {
            exact = messages.likely(text, self.turn.incomplete || text.contains(GAP));
        }
        let Some(exact) = exact else {
            return false;
        };
        if self.turn.content == text.as_bytes() {
            self.turn.content = exact.clone().into();
        }
        // What the screen had lost is there again.
        let had_gap = text.contains(GAP);
        self.turn.incomplete &= !had_gap || exact.contains(GAP);
        self.turn.text = Some(exact);
        self.turn.text_source = Some("hook".to_owned());
        true
    }
}

impl Observer for Capture {
    fn start(&mut self, child: u32) {
        for outlet in &mut self.outlets {
            outlet.start(child);
        }
    }

    fn see(&mut self, at: Duration, sight: Sight) {
        self.show(&sight);
        match sight {
            Sight::Output(bytes) => self.feed(at, Event::Output(&bytes)),
            Sight::Input(bytes) => self.feed(at, Event::Input(&bytes)),
            Sight::Lost => self.feed(at, Event::Gap),
            Sight::Interrupt => self.feed(at, Event::Interrupt),
            Sight::Resize { cols, rows } => self.feed(at, Event::Resize(Size { cols, rows })),
            Sight::Mode(TtyMode { canonical, echo }) => {
                self.feed(at, Event::TtyMode(DetectorMode { canonical, echo }));
            }
        }
    }

    fn tick(&mut self, at: Duration) {
        self.look_for_message(at);
        self.feed(at, Event::Tick);
    }

    fn deadline(&self) -> Option<Duration> {
        let look_at = self.waiting.as_ref().map(|waiting| waiting.look_at);
        [self.detector.deadline(), look_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn end(&mut self, _at: Duration) {
        self.tell_waiting();
        for outlet in &mut self.outlets {
            outlet.end();
        }
    }
}
