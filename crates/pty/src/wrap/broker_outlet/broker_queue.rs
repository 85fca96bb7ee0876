//! Decides what is sent to the broker next, and what must wait.
//!
//! It holds the newest [`RING_TURNS_MAX`] turns; a new connection gets all of them again. Where
//! turns are kept in the store, a turn is sent after the store has answered for it, so that a turn
//! that a client saw is durable; a silent store delays a turn by [`HOLD_MAX`] at most. Turns are
//! sent before the state that follows them, and the session's end after everything.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use turnkeep_types::broker::{CompletedTurn, Register, StateChange};

/// How many turns are kept for a broker that is not running.
pub const RING_TURNS_MAX: usize = 32;
/// The bytes of those turns; the newest turn is kept whatever its size.
const RING_BYTES_MAX: usize = 128 << 20;
/// How long a turn waits for the store. Less than the wrapper's end waits for the broker.
const HOLD_MAX: Duration = Duration::from_secs(1);
/// The limit for the content, the text and the raw bytes of a turn that is too long for one
/// message: three of them fit.
const PART_BYTES_MAX: usize = 5 << 20;

/// What is to be sent to the broker.
#[derive(Debug)]
pub(super) struct BrokerQueue {
    pub(super) register: Register,
    pub(super) started: bool,
    pub(super) ended: bool,
    ring: VecDeque<RingTurn>,
    ring_bytes: usize,
    /// The number of the last turn that was sent on this connection.
    sent_seq: u64,
    /// The number of the last turn that the store has answered for; `None` where nothing is kept.
    answered_seq: Option<u64>,
    state: Option<StateChange>,
    state_sent: bool,
}

/// A turn that waits for the broker.
#[derive(Debug)]
struct RingTurn {
    completed_at: Instant,
    turn: CompletedTurn,
}

/// The next message to the broker.
#[derive(Debug)]
pub(super) enum BrokerMessage {
    Turn(CompletedTurn),
    State(StateChange),
    End(String),
    /// Nothing, until the store has answered or this moment has come.
    Hold(Instant),
}

impl BrokerQueue {
    pub(super) fn new(register: Register) -> Self {
        Self {
            register,
            started: false,
            ended: false,
            ring: VecDeque::new(),
            ring_bytes: 0,
            sent_seq: 0,
            answered_seq: None,
            state: None,
            state_sent: true,
        }
    }

    /// Starts again for a new connection, which has received nothing.
    pub(super) fn restart(&mut self) {
        (self.sent_seq, self.state_sent) = (0, self.state.is_none());
    }

    /// Notes that the broker has the turn of this number.
    pub(super) fn mark_turn_sent(&mut self, seq: u64) {
        self.sent_seq = seq;
    }

    /// Sets the state to send.
    pub(super) fn change_state(&mut self, change: StateChange) {
        (self.state, self.state_sent) = (Some(change), false);
    }

    /// Notes that the broker has this state, which may be an older one by now.
    pub(super) fn mark_state_sent(&mut self, change: &StateChange) {
        self.state_sent = self.state.as_ref() == Some(change);
    }

    /// Notes that the store has answered for all turns up to this number. From the first call on,
    /// turns wait for that.
    pub(super) fn store_answered(&mut self, seq: u64) {
        self.answered_seq = self.answered_seq.max(Some(seq));
    }

    pub(super) fn add_turn(&mut self, now: Instant, turn: CompletedTurn) {
        self.ring_bytes += turn_bytes(&turn);
        self.ring.push_back(RingTurn {
            completed_at: now,
            turn,
        });
        // The newest turn stays whatever its size, because it is the one that users want.
        while self.ring.len() > RING_TURNS_MAX
            || (self.ring_bytes > RING_BYTES_MAX && self.ring.len() > 1)
        {
            self.ring_bytes -= self
                .ring
                .pop_front()
                .map_or(0, |held| turn_bytes(&held.turn));
        }
    }

    pub(super) fn next_message(&self, now: Instant) -> Option<BrokerMessage> {
        // In order of their numbers: the broker rejects a number below one that it has skipped.
        let unsent = self
            .ring
            .iter()
            .find(|held| held.turn.seq > Some(self.sent_seq));
        if let Some(RingTurn { completed_at, turn }) = unsent {
            let until = *completed_at + HOLD_MAX;
            let is_held = self
                .answered_seq
                .is_some_and(|answered| turn.seq > Some(answered));
            return Some(if is_held && now < until {
                BrokerMessage::Hold(until)
            } else {
                BrokerMessage::Turn(turn.clone())
            });
        }
        let state = self.state.clone().filter(|_| !self.state_sent);
        state.map(BrokerMessage::State).or_else(|| {
            self.ended
                .then(|| BrokerMessage::End(self.register.session.clone()))
        })
    }
}

/// Cuts a turn so that its three parts fit in one message, and marks what was cut.
pub(super) fn shorten_turn(turn: CompletedTurn) -> CompletedTurn {
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

fn turn_bytes(turn: &CompletedTurn) -> usize {
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
    fn queue(now: Instant, seqs: impl IntoIterator<Item = u64>) -> BrokerQueue {
        let mut queue = BrokerQueue::new(Register::default());
        seqs.into_iter()
            .for_each(|seq| queue.add_turn(now, turn(seq, 10)));
        queue
    }

    fn seqs(queue: &BrokerQueue) -> Vec<u64> {
        queue.ring.iter().filter_map(|held| held.turn.seq).collect()
    }

    /// Says everything that may be said at that moment, and writes it down.
    fn send_all(queue: &mut BrokerQueue, now: Instant) -> String {
        let mut said = Vec::new();
        loop {
            match queue.next_message(now) {
                Some(BrokerMessage::Turn(turn)) => {
                    queue.mark_turn_sent(turn.seq.unwrap());
                    said.push(turn.seq.unwrap().to_string());
                }
                Some(BrokerMessage::State(change)) => {
                    queue.mark_state_sent(&change);
                    said.push("state".to_owned());
                }
                Some(BrokerMessage::Hold(_)) => {
                    return [&said[..], &["held".to_owned()]].concat().join(" ");
                }
                Some(BrokerMessage::End(_)) => {
                    return [&said[..], &["end".to_owned()]].concat().join(" ");
                }
                None => return said.join(" "),
            }
        }
    }

    #[test]
    fn the_newest_turns_wait_for_the_broker() {
        let now = Instant::now();
        let mut queue = queue(now, 1..=40);
        assert_eq!(seqs(&queue), (9..=40).collect::<Vec<_>>());
        assert_eq!(queue.ring_bytes, 320);
        queue.add_turn(now, turn(41, RING_BYTES_MAX + 1));
        assert_eq!(
            seqs(&queue),
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
        let short = shorten_turn(long);
        assert_eq!(short.content.len(), PART_BYTES_MAX);
        assert_eq!(
            short.text.as_ref().map(String::len),
            Some(PART_BYTES_MAX - 1),
            "between two characters"
        );
        assert_eq!((short.truncated, short.raw_truncated), (true, false));
        assert!(turn_bytes(&short) < turnkeep_types::broker::FRAME_BYTES_MAX);
    }

    #[test]
    fn a_new_connection_hears_every_turn_again_then_the_state_then_the_end() {
        let now = Instant::now();
        let mut queue = queue(now, 1..=2);
        assert_eq!(send_all(&mut queue, now), "1 2");
        queue.ended = true;
        queue.restart();
        assert_eq!(send_all(&mut queue, now), "1 2 end");
    }

    #[test]
    fn a_turn_that_is_kept_is_told_when_the_store_has_answered_for_it() {
        let now = Instant::now();
        let mut queue = queue(now, 1..=3);
        queue.store_answered(0);
        let (session, since) = (String::new(), Timestamp(1));
        queue.change_state(StateChange {
            session,
            state: AgentState::Ready,
            since,
            signal: None,
            unanswered: 0,
        });
        assert_eq!(send_all(&mut queue, now), "held");
        queue.store_answered(2);
        assert_eq!(send_all(&mut queue, now), "1 2 held");
        queue.store_answered(1);
        queue.restart();
        assert_eq!(
            send_all(&mut queue, now),
            "1 2 held",
            "what was answered stays answered"
        );
        assert_eq!(
            send_all(&mut queue, now + HOLD_MAX),
            "3 state",
            "a store that says nothing is not waited for"
        );
    }
}
