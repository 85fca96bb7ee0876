//! What is to be told to the broker, in which order, and what is not to be told yet.
//!
//! The newest [`RING_TURNS_MAX`] turns are held here; a new connection hears all of them again.
//! Where turns are kept in the store, the broker hears of one when the store has answered for it,
//! so that a turn that somebody was shown is durable; a store that says nothing delays a turn by
//! [`HOLD_MAX`] at most. Turns are told before the state that follows them, and the session's end
//! after everything.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use turnkeep_types::broker::{CompletedTurn, Register, StateChange};

/// Turns that are kept for a broker that is not there.
pub const RING_TURNS_MAX: usize = 32;
/// Bytes of those turns; the newest turn is kept whatever its size.
const RING_BYTES_MAX: usize = 128 << 20;
/// How long a turn waits for the store. Less than the wrapper's end waits for the broker.
const HOLD_MAX: Duration = Duration::from_secs(1);
/// Content, text and raw bytes of a turn that is too long for one message: three of them fit.
const PART_BYTES_MAX: usize = 5 << 20;

/// What is to be told to the broker.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) register: Register,
    pub(super) started: bool,
    pub(super) ended: bool,
    /// Each turn and when it was completed.
    ring: VecDeque<(Instant, CompletedTurn)>,
    ring_bytes: usize,
    /// The number of the last turn that this connection was told.
    told_seq: u64,
    /// The number of the last turn that the store has answered for; none where nothing is kept.
    answered_seq: Option<u64>,
    state: Option<StateChange>,
    state_told: bool,
}

/// The next thing to say.
#[derive(Debug)]
pub(super) enum Word {
    Turn(CompletedTurn),
    State(StateChange),
    End(String),
    /// Nothing, until the store has answered or this moment has come.
    Hold(Instant),
}

impl Desk {
    pub(super) fn new(register: Register) -> Self {
        Self {
            register,
            started: false,
            ended: false,
            ring: VecDeque::new(),
            ring_bytes: 0,
            told_seq: 0,
            answered_seq: None,
            state: None,
            state_told: true,
        }
    }

    /// A new connection has been told nothing.
    pub(super) fn forget_told(&mut self) {
        (self.told_seq, self.state_told) = (0, self.state.is_none());
    }

    /// The broker knows of the turn of this number.
    pub(super) fn turn_told(&mut self, seq: u64) {
        self.told_seq = seq;
    }

    /// The program does something else now.
    pub(super) fn change_state(&mut self, change: StateChange) {
        (self.state, self.state_told) = (Some(change), false);
    }

    /// The broker knows of this state, which may be an older one by now.
    pub(super) fn state_told(&mut self, change: &StateChange) {
        self.state_told = self.state.as_ref() == Some(change);
    }

    /// The store has answered for all turns up to this number. From the first call on, turns wait
    /// for that.
    pub(super) fn store_answered(&mut self, seq: u64) {
        self.answered_seq = self.answered_seq.max(Some(seq));
    }

    pub(super) fn keep(&mut self, now: Instant, turn: CompletedTurn) {
        self.ring_bytes += size(&turn);
        self.ring.push_back((now, turn));
        while self.ring.len() > RING_TURNS_MAX
            || (self.ring_bytes > RING_BYTES_MAX && self.ring.len() > 1)
        {
            self.ring_bytes -= self.ring.pop_front().map_or(0, |(_, turn)| size(&turn));
        }
    }

    pub(super) fn next(&self, now: Instant) -> Option<Word> {
        let untold = self
            .ring
            .iter()
            .find(|(_, turn)| turn.seq > Some(self.told_seq));
        if let Some((completed, turn)) = untold {
            let until = *completed + HOLD_MAX;
            let is_held = self
                .answered_seq
                .is_some_and(|answered| turn.seq > Some(answered));
            return Some(if is_held && now < until {
                Word::Hold(until)
            } else {
                Word::Turn(turn.clone())
            });
        }
        let state = self.state.clone().filter(|_| !self.state_told);
        state
            .map(Word::State)
            .or_else(|| self.ended.then(|| Word::End(self.register.session.clone())))
    }
}

/// A turn whose three parts fit in one message: the head of each, and what was cut is said.
pub(super) fn shortened(turn: CompletedTurn) -> CompletedTurn {
    let text = turn.text.map(|mut text| {
        text.truncate(text.floor_char_boundary(PART_BYTES_MAX));
        text
    });
    let raw_cut = turn
        .raw
        .as_ref()
        .is_some_and(|raw| raw.len() > PART_BYTES_MAX);
    CompletedTurn {
        truncated: turn.truncated || turn.content.len() > PART_BYTES_MAX,
        raw_truncated: turn.raw_truncated || raw_cut,
        content: turn.content.slice(..turn.content.len().min(PART_BYTES_MAX)),
        raw: turn
            .raw
            .map(|raw| raw.slice(..raw.len().min(PART_BYTES_MAX))),
        text,
        ..turn
    }
}

fn size(turn: &CompletedTurn) -> usize {
    turn.content.len()
        + turn.text.as_ref().map_or(0, String::len)
        + turn.raw.as_ref().map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;
    use turnkeep_types::broker::AgentState;

    use super::*;

    fn turn(seq: u64, bytes: usize) -> CompletedTurn {
        CompletedTurn {
            seq: Some(seq),
            content: vec![b'x'; bytes].into(),
            ..CompletedTurn::default()
        }
    }

    /// With these turns, completed at that moment.
    fn desk(now: Instant, seqs: impl IntoIterator<Item = u64>) -> Desk {
        let mut desk = Desk::new(Register::default());
        seqs.into_iter()
            .for_each(|seq| desk.keep(now, turn(seq, 10)));
        desk
    }

    fn seqs(desk: &Desk) -> Vec<u64> {
        desk.ring.iter().filter_map(|(_, turn)| turn.seq).collect()
    }

    /// Says everything that may be said at that moment, and writes it down.
    fn say(desk: &mut Desk, now: Instant) -> String {
        let mut said = Vec::new();
        loop {
            match desk.next(now) {
                Some(Word::Turn(turn)) => {
                    desk.turn_told(turn.seq.unwrap());
                    said.push(turn.seq.unwrap().to_string());
                }
                Some(Word::State(change)) => {
                    desk.state_told(&change);
                    said.push("state".to_owned());
                }
                Some(Word::Hold(_)) => return [&said[..], &["held".to_owned()]].concat().join(" "),
                Some(Word::End(_)) => return [&said[..], &["end".to_owned()]].concat().join(" "),
                None => return said.join(" "),
            }
        }
    }

    #[test]
    fn the_newest_turns_wait_for_the_broker() {
        let now = Instant::now();
        let mut desk = desk(now, 1..=40);
        assert_eq!(seqs(&desk), (9..=40).collect::<Vec<_>>());
        assert_eq!(desk.ring_bytes, 320);
        desk.keep(now, turn(41, RING_BYTES_MAX + 1));
        assert_eq!(
            seqs(&desk),
            [41],
            "one that is too large is still the newest"
        );
    }

    #[test]
    fn of_a_turn_that_is_too_long_for_a_message_each_part_keeps_its_head() {
        let text = format!("x{}", "\u{20ac}".repeat(3 << 20));
        let long = CompletedTurn {
            content: text.clone().into(),
            text: Some(text),
            raw: Some(vec![b'r'; PART_BYTES_MAX].into()),
            ..CompletedTurn::default()
        };
        let short = shortened(long);
        assert_eq!(short.content.len(), PART_BYTES_MAX);
        assert_eq!(
            short.text.as_ref().map(String::len),
            Some(PART_BYTES_MAX - 1),
            "between two characters"
        );
        assert_eq!((short.truncated, short.raw_truncated), (true, false));
        assert!(size(&short) < turnkeep_types::broker::FRAME_BYTES_MAX);
    }

    #[test]
    fn a_new_connection_hears_every_turn_again_then_the_state_then_the_end() {
        let now = Instant::now();
        let mut desk = desk(now, 1..=2);
        assert_eq!(say(&mut desk, now), "1 2");
        desk.ended = true;
        desk.forget_told();
        assert_eq!(say(&mut desk, now), "1 2 end");
    }

    #[test]
    fn a_turn_that_is_kept_is_told_when_the_store_has_answered_for_it() {
        let now = Instant::now();
        let mut desk = desk(now, 1..=3);
        desk.store_answered(0);
        let (session, since) = (String::new(), Timestamp(1));
        desk.change_state(StateChange {
            session,
            state: AgentState::Ready,
            since,
            signal: None,
            unanswered: 0,
        });
        assert_eq!(say(&mut desk, now), "held");
        desk.store_answered(2);
        assert_eq!(say(&mut desk, now), "1 2 held");
        desk.store_answered(1);
        desk.forget_told();
        assert_eq!(
            say(&mut desk, now),
            "1 2 held",
            "what was answered stays answered"
        );
        assert_eq!(
            say(&mut desk, now + HOLD_MAX),
            "3 state",
            "a store that says nothing is not waited for"
        );
    }
}
