//! How much of a run's events a slow reader has not taken yet.
//!
//! Sockets read events from the log and keep no queue of their own. The meter remembers how long the
//! newest events are, so that a socket can count what waits for it without reading it.
//!
//! Worked example: events 5, 6 and 7 have 100 bytes each. For a reader whose next event is 6, two
//! events and 200 bytes wait.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use turnkeep_runtime::{Event, record};

/// How many events are remembered. A reader that is further behind is too slow anyway.
const EVENTS_MAX: usize = 1_024;

/// What waits for a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) events: u64,
    /// The length of their records. Those that are no longer remembered do not count.
    pub(crate) bytes: u64,
}

impl Backlog {
    /// Both together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// The newest events of a run and their lengths.
#[derive(Debug, Default)]
pub(super) struct BacklogMeter(Mutex<VecDeque<EventSize>>);

#[derive(Debug, Clone, Copy)]
struct EventSize {
    seq: u64,
    bytes: u64,
}

impl BacklogMeter {
    /// Adds new events.
    pub(super) fn add(&self, events: &[Event]) {
        let sizes = events.iter().map(|event| EventSize {
            seq: event.seq,
            bytes: recorded_bytes(event),
        });
        let sizes: Vec<EventSize> = sizes.collect();
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.extend(sizes);
        let surplus = newest.len().saturating_sub(EVENTS_MAX);
        newest.drain(..surplus);
    }

    /// What waits for a reader whose next event is `next`, if the last one is `last`.
    pub(super) fn measure(&self, next: u64, last: u64) -> Backlog {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = newest.iter().rev().take_while(|event| event.seq >= next);
        Backlog {
            events: (last + 1).saturating_sub(next),
            bytes: waiting.map(|event| event.bytes).sum(),
        }
    }
}

/// The length of an event's record with its long texts. Its JSON is about as long.
fn recorded_bytes(event: &Event) -> u64 {
    let encoded = record::encode(event);
    let texts: usize = encoded.blobs.iter().map(bytes::Bytes::len).sum();
    (encoded.payload.len() + texts) as u64
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::Fact;
    use turnkeep_types::Timestamp;

    use super::*;

    fn delta(seq: u64, text: String) -> Event {
        Event {
            id: "0b5f1c9e-8a3d-4c55-9a67-0123456789ab".parse().unwrap(),
            seq,
            at: Timestamp(1),
            node: None,
            turn: None,
            request: None,
            made: None,
            fact: Fact::AnswerDelta(text),
        }
    }

    #[test]
    fn only_what_a_reader_has_not_taken_counts() {
        let meter = BacklogMeter::default();
        for seq in 1..=3 {
            meter.add(&[delta(seq, "x".repeat(10_000))]);
        }
        let one = meter.measure(3, 3);
        assert_eq!(one.events, 1);
        assert!((10_000..11_000).contains(&one.bytes), "{one:?}");
        let two = meter.measure(2, 3);
        assert_eq!((two.events, two.bytes), (2, 2 * one.bytes));
        assert_eq!(meter.measure(4, 3), Backlog::default());
    }

    #[test]
    fn the_memory_of_a_meter_is_bounded() {
        let meter = BacklogMeter::default();
        for seq in 1..=(2 * EVENTS_MAX as u64) {
            meter.add(&[delta(seq, String::new())]);
        }
        assert_eq!(meter.0.lock().unwrap().len(), EVENTS_MAX);
        let all = meter.measure(1, 2 * EVENTS_MAX as u64);
        assert_eq!(all.events, 2 * EVENTS_MAX as u64);
    }
}
