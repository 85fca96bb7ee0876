//! The observer that finds turns: feeds the detector and hands the results to the outlets.
//!
//! Turns are numbered from 1 in the order of their completion. An outlet never waits, so a slow
//! broker or store does not slow detection down. A turn may wait up to [`HOOK_PAUSE`] for its text
//! from the program's hook; state changes wait behind it, so that outlets see both in order.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_session::detector::{
    ContentKind, Detection, Detector, Event, Profile, Size, State, TtyMode as DetectorMode, Turn,
};
use turnkeep_types::broker::{AgentState, CompletedTurn, StateChange};
use turnkeep_types::{Clock, Timestamp};

use super::hooks::{GAP, HOOK_CHECK_PAUSE, HOOK_PAUSE, HookMessages, Hooks, is_whole};
use super::mode::TtyMode;
use super::observer::Observer;
use super::session_counts::SessionCounts;
use super::share::SharedTerminal;
use super::tap::TapEvent;

/// A destination of turns. None of its functions may wait.
pub trait TurnOutlet: Send {
    /// The child runs; this is its process id.
    fn child_started(&mut self, child: u32);
    /// Handles a change of the program's state.
    fn state_changed(&mut self, change: &StateChange);
    /// Handles a completed turn.
    fn turn_completed(&mut self, turn: &CompletedTurn);
    /// Handles new content of the shared terminal.
    fn screen_changed(&mut self) {}
    /// The child has ended.
    fn child_ended(&mut self);
}

/// The session to observe.
pub struct TurnFinderOptions {
    /// The session's id.
    pub session: String,
    /// The profile that finds its turns.
    pub profile: Profile,
    /// How many bytes of each turn's output are kept beside its text.
    pub raw_bytes_max: Option<usize>,
    /// The program's hooks, if they are used.
    pub hooks: Option<Hooks>,
    /// The source of timestamps.
    pub clock: Arc<dyn Clock>,
    /// The shared terminal, if the user allowed others to watch.
    pub share: Option<SharedTerminal>,
    /// The counters of the session.
    pub counts: SessionCounts,
    /// Where the turns go.
    pub outlets: Vec<Box<dyn TurnOutlet>>,
}

/// Finds the turns of one session.
pub struct TurnFinder {
    session: String,
    detector: Detector,
    clock: Arc<dyn Clock>,
    outlets: Vec<Box<dyn TurnOutlet>>,
    turns: u64,
    hooks: Option<Hooks>,
    waiting: Option<WaitingTurn>,
    share: Option<SharedTerminal>,
    counts: SessionCounts,
    /// The last state that was sent.
    last_state: Option<StateSince>,
}

/// A state that was sent, and since when it holds.
#[derive(Debug, Clone, Copy)]
struct StateSince {
    state: AgentState,
    since: Timestamp,
}

/// A turn that waits for its text from the program's hook.
struct WaitingTurn {
    turn: CompletedTurn,
    check_at: Duration,
    until: Duration,
    /// The newest state since; sent behind the turn.
    state: Option<StateChange>,
}

impl TurnFinder {
    /// Creates an observer for a session in a window of the user's size.
    pub fn new(captured: TurnFinderOptions) -> Self {
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
        let TurnFinderOptions {
            session,
            clock,
            outlets,
            hooks,
            share,
            counts,
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
            counts,
            last_state: None,
        }
    }

    fn feed(&mut self, at: Duration, event: Event<'_>) {
        for detection in self.detector.feed(at, event) {
            match detection {
                // A change of state follows and says the same.
                Detection::Ready => {}
                Detection::State(state) => {
                    if state == State::Working {
                        self.forget_old_messages();
                    }
                    self.send_state(state);
                }
                Detection::Turn(turn) => self.complete_turn(at, *turn),
            }
        }
        self.count_enters();
    }

    /// Reports how often Enter was pressed without a turn, from the second time on: the program may
    /// be working on the first.
    fn count_enters(&mut self) {
        let unanswered = self.detector.unanswered();
        if unanswered != self.counts.unanswered() {
            self.counts.set_unanswered(unanswered);
            if unanswered > 1 {
                self.send_state(self.detector.state());
            }
        }
    }

    /// Passes an event on to the shared terminal.
    fn show_to_watchers(&mut self, event: &TapEvent) {
        let Some(share) = &self.share else { return };
        let is_watched = match event {
            TapEvent::Output(bytes) => share.add_output(bytes),
            TapEvent::Lost => share.note_gap(),
            TapEvent::Resize { cols, rows } => share.resize(*cols, *rows),
            TapEvent::Input(_) | TapEvent::Interrupt | TapEvent::Mode(_) => false,
        };
        if is_watched {
            self.outlets
                .iter_mut()
                .for_each(|outlet| outlet.screen_changed());
        }
    }

    fn send_state(&mut self, state: State) {
        let state = match state {
            State::Starting => return,
            State::Ready => AgentState::Ready,
            State::Working => AgentState::Working,
            State::Blocked => AgentState::Blocked,
        };
        let signal = self.detector.signal().map(|signal| signal.to_string());
        let session = self.session.clone();
        let since = self.state_since(state);
        let unanswered = self.detector.unanswered();
        let change = StateChange {
            session,
            state,
            since,
            signal,
            unanswered,
        };
        match &mut self.waiting {
            // Only the newest state matters once the turn is out.
            Some(waiting) => waiting.state = Some(change),
            None => self.send_change(&change),
        }
    }

    /// The time since which the program has been in this state.
    fn state_since(&mut self, state: AgentState) -> Timestamp {
        let now = self.clock.now();
        let since = self
            .last_state
            .filter(|last| last.state == state)
            .map_or(now, |last| last.since);
        self.last_state = Some(StateSince { state, since });
        since
    }

    fn send_change(&mut self, change: &StateChange) {
        for outlet in &mut self.outlets {
            outlet.state_changed(change);
        }
    }

    /// The source of the text of a turn without a hook.
    fn text_source(&self) -> &'static str {
        match self.detector.content() {
            ContentKind::Stream => "stream",
            ContentKind::Screen => "screen",
        }
    }

    /// Handles a completed turn: it waits for its hook, or goes out at once.
    fn complete_turn(&mut self, at: Duration, turn: Turn) {
        // The turn before has waited long enough: turns must stay in order.
        self.send_waiting();
        self.turns += 1;
        self.counts.count_turn();
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
            // The hook of an interrupted turn may never be called.
            + if self.hooks.is_some() && !interrupted {
                HOOK_PAUSE
            } else {
                Duration::ZERO
            };
        self.waiting = Some(WaitingTurn {
            turn: completed,
            check_at: at,
            until,
            state: None,
        });
        self.check_for_message(at);
    }

    /// Sends the waiting turn if its text has come or the wait is over.
    fn check_for_message(&mut self, at: Duration) {
        let messages = self.hooks.as_ref().map(Hooks::messages);
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        let is_last_check = waiting.until <= at;
        let found = messages.is_some_and(|messages| waiting.use_message(&messages, is_last_check));
        if found || is_last_check {
            self.send_waiting();
        } else {
            waiting.check_at = (at + HOOK_CHECK_PAUSE).min(waiting.until);
        }
    }

    /// Forgets messages that wait when a turn begins: they came too late for their own turn.
    fn forget_old_messages(&self) {
        if let Some(hooks) = self.hooks.as_ref().filter(|_| self.waiting.is_none()) {
            hooks.messages().clear();
        }
    }

    fn send_waiting(&mut self) {
        let Some(WaitingTurn { turn, state, .. }) = self.waiting.take() else {
            return;
        };
        for outlet in &mut self.outlets {
            outlet.turn_completed(&turn);
        }
        if let Some(change) = state {
            self.send_change(&change);
        }
    }
}

impl WaitingTurn {
    /// Uses the exact text, if it has come. The content of a screen's turn is its text.
    fn use_message(&mut self, messages: &HookMessages, is_last_check: bool) -> bool {
        let text = self.turn.text.as_deref().unwrap_or_default();
        let mut exact = messages.with_exact_message(text);
        // The hook of an interrupted turn may never be called, so a message is of another turn.
        let is_lost = text.is_empty() && self.turn.incomplete && !self.turn.interrupted;
        if exact.is_none() && is_last_check {
            exact = if is_lost {
                messages.take_newest()
            } else {
                let has_lost_rows = self.turn.incomplete || text.contains(GAP);
                messages.with_likely_message(text, has_lost_rows)
            };
        }
        let Some(exact) = exact else {
            return false;
        };
        // The content of a stream is its raw bytes, which a hook does not know.
        if self.turn.content == text.as_bytes() {
            self.turn.content = exact.clone().into();
        }
        // The hook's text restores rows that the screen had lost.
        self.turn.incomplete &= if is_lost {
            !is_whole(&exact)
        } else {
            !text.contains(GAP) || exact.contains(GAP)
        };
        self.turn.text = Some(exact);
        self.turn.text_source = Some("hook".to_owned());
        true
    }
}

impl Observer for TurnFinder {
    fn start(&mut self, child: u32) {
        for outlet in &mut self.outlets {
            outlet.child_started(child);
        }
    }

    fn observe(&mut self, at: Duration, event: TapEvent) {
        self.show_to_watchers(&event);
        match event {
            TapEvent::Output(bytes) => self.feed(at, Event::Output(&bytes)),
            TapEvent::Input(bytes) => self.feed(at, Event::Input(&bytes)),
            TapEvent::Lost => self.feed(at, Event::Gap),
            TapEvent::Interrupt => self.feed(at, Event::Interrupt),
            TapEvent::Resize { cols, rows } => self.feed(at, Event::Resize(Size { cols, rows })),
            TapEvent::Mode(TtyMode { canonical, echo }) => {
                self.feed(at, Event::TtyMode(DetectorMode { canonical, echo }));
            }
        }
    }

    fn tick(&mut self, at: Duration) {
        self.check_for_message(at);
        self.feed(at, Event::Tick);
    }

    fn deadline(&self) -> Option<Duration> {
        let check_at = self.waiting.as_ref().map(|waiting| waiting.check_at);
        [self.detector.deadline(), check_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn end(&mut self, _at: Duration) {
        self.send_waiting();
        for outlet in &mut self.outlets {
            outlet.child_ended();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of the last check of a turn with this text, after these messages.
    fn check_last(turn: &CompletedTurn, sent: &[&str]) -> CompletedTurn {
        let messages = HookMessages::default();
        for message in sent {
            messages.add((*message).to_owned());
        }
        let mut waiting = WaitingTurn {
            turn: turn.clone(),
            check_at: Duration::ZERO,
            until: Duration::ZERO,
            state: None,
        };
        let is_replaced = waiting.use_message(&messages, true);
        assert_eq!(is_replaced, waiting.turn.text_source.is_some(), "{sent:?}");
        waiting.turn
    }

    #[test]
    fn an_empty_incomplete_turn_takes_the_newest_message() {
        let lost = CompletedTurn {
            text: Some(String::new()),
            incomplete: true,
            ..CompletedTurn::default()
        };
        let from_hook = |text: &'static str, incomplete| CompletedTurn {
            content: text.into(),
            text: Some(text.to_owned()),
            incomplete,
            text_source: Some("hook".to_owned()),
            ..CompletedTurn::default()
        };
        let check = |sent: &[&str], expect: &CompletedTurn| {
            assert_eq!(check_last(&lost, sent), *expect, "{sent:?}");
        };
        check(
            &["**Red**, not blue."],
            &from_hook("**Red**, not blue.", false),
        );
        check(&["An older one.", "Red."], &from_hook("Red.", false));
        // A gap, or an end that may be a repetition, leaves it open whether the text is whole.
        check(&["Red.\n[…]\nBlue."], &from_hook("Red.\n[…]\nBlue.", true));
        check(
            &["Red, blue. Red, blue."],
            &from_hook("Red, blue. Red, blue.", true),
        );
        // Without a message, or with one that says nothing, the turn stays as it is.
        check(&[], &lost);
        check(&[" \n"], &lost);
    }

    #[test]
    fn other_empty_turns_take_no_message() {
        for (incomplete, interrupted) in [(false, false), (true, true)] {
            let turn = CompletedTurn {
                text: Some(String::new()),
                incomplete,
                interrupted,
                ..CompletedTurn::default()
            };
            assert_eq!(check_last(&turn, &["Red."]), turn);
        }
    }
}
