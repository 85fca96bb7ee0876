//! The limited queue between the byte path and the observer.
//!
//! Adding never waits. When the observer lags by more than [`LAG_BYTES_MAX`] of output, unread
//! output is dropped down to the newest [`LAG_BYTES_KEPT`], and a [`TapEvent::Lost`] marks the
//! place. Times are those at which the byte path saw an event, however late the observer reads it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::mode::TtyMode;

/// How much output may wait for the observer.
pub const LAG_BYTES_MAX: usize = 8 << 20;
/// How much output is kept when more than that waits.
pub const LAG_BYTES_KEPT: usize = 64 << 10;
/// The queue length above which output is joined to the output before it.
const EVENTS_APART_MAX: usize = 1024;
/// The largest number of events in the queue, of all kinds.
const EVENTS_MAX: usize = 64 << 10;

/// How long the observer lets a batch grow before it reads it. A key and its echo arrive within
/// this time.
const BATCH_PAUSE: Duration = Duration::from_millis(3);

/// An event that the byte path saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapEvent {
    /// The child wrote.
    Output(Vec<u8>),
    /// Output is missing here.
    Lost,
    /// The child was sent these bytes, typed or injected.
    Input(Vec<u8>),
    /// The child was sent SIGINT.
    Interrupt,
    /// The terminal has a new size.
    Resize {
        /// Width.
        cols: u16,
        /// Height.
        rows: u16,
    },
    /// The child's terminal has a new mode.
    Mode(TtyMode),
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<(Duration, TapEvent)>,
    output_bytes: usize,
    input_bytes: usize,
    ended: bool,
}

/// The result of reading the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TapRead {
    /// These events, in order.
    Events(VecDeque<(Duration, TapEvent)>),
    /// Nothing until the requested time.
    TimedOut,
    /// The child has ended and every event was read.
    Ended,
}

/// Both ends of the queue; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Tap {
    start: Instant,
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Tap {
    /// Creates an empty queue whose times count from now.
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            shared: Arc::default(),
        }
    }

    /// The time since the queue was created, in whole microseconds, so that a recording holds it
    /// exactly.
    pub(super) fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn lock_queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output of the child.
    pub(super) fn add_output(&self, now: Duration, bytes: &[u8]) {
        let mut queue = self.lock_queue();
        let was_empty = queue.events.is_empty();
        queue.output_bytes += bytes.len();
        let crowded = queue.events.len() >= EVENTS_APART_MAX;
        match queue.events.back_mut() {
            // Joining loses times, so it happens only when the observer is far behind.
            Some((at, TapEvent::Output(before))) if crowded => {
                *at = now;
                before.extend_from_slice(bytes);
            }
            _ => queue
                .events
                .push_back((now, TapEvent::Output(bytes.to_vec()))),
        }
        queue.apply_limits();
        self.notify_reader(queue, was_empty);
    }

    /// Adds any other event.
    pub(super) fn add(&self, now: Duration, event: TapEvent) {
        let mut queue = self.lock_queue();
        let was_empty = queue.events.is_empty();
        if let TapEvent::Input(bytes) = &event {
            queue.input_bytes += bytes.len();
        }
        queue.events.push_back((now, event));
        queue.apply_limits();
        self.notify_reader(queue, was_empty);
    }

    /// Wakes the observer for the first event of a batch; it reads the others along with it.
    fn notify_reader(&self, queue: MutexGuard<'_, Queue>, was_empty: bool) {
        drop(queue);
        if was_empty {
            self.shared.1.notify_one();
        }
    }

    /// Ends the queue: no more events will come.
    pub(super) fn end(&self) {
        self.lock_queue().ended = true;
        self.shared.1.notify_one();
    }

    /// Returns all waiting events, or waits for one until `until`.
    pub(super) fn read_events(&self, until: Option<Duration>) -> TapRead {
        let mut queue = self.lock_queue();
        loop {
            if !queue.events.is_empty() {
                if !queue.ended {
                    drop(queue);
                    // The byte path is still busy: leave it its core and its lock.
                    std::thread::sleep(BATCH_PAUSE);
                    queue = self.lock_queue();
                }
                // The whole queue is taken at once, so the lock is held only for a moment.
                (queue.output_bytes, queue.input_bytes) = (0, 0);
                return TapRead::Events(std::mem::take(&mut queue.events));
            }
            if queue.ended {
                return TapRead::Ended;
            }
            let left = until.map_or(Duration::from_hours(1), |until| {
                until.saturating_sub(self.now())
            });
            if left.is_zero() {
                return TapRead::TimedOut;
            }
            let waited = self.shared.1.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Default for Tap {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    /// Keeps the queue within its limits.
    fn apply_limits(&mut self) {
        if self.output_bytes > LAG_BYTES_MAX {
            self.drop_old_output();
        }
        if self.input_bytes > LAG_BYTES_MAX || self.events.len() > EVENTS_MAX {
            self.restart();
        }
    }

    /// Drops every event. An observer that is this far behind starts afresh, with the current size
    /// and mode.
    fn restart(&mut self) {
        let Some((at, _)) = self.events.back() else {
            return;
        };
        let mut events = VecDeque::from([(*at, TapEvent::Lost)]);
        // Without them the observer would read all further output with an old size or mode.
        let size = self.newest(|event| matches!(event, TapEvent::Resize { .. }));
        let mode = self.newest(|event| matches!(event, TapEvent::Mode(_)));
        for event in [size, mode].into_iter().flatten() {
            events.push_back((*at, event.clone()));
        }
        *self = Self {
            events,
            ended: self.ended,
            ..Self::default()
        };
    }

    /// The newest event of a kind.
    fn newest(&self, is_wanted: fn(&TapEvent) -> bool) -> Option<&TapEvent> {
        let found = self.events.iter().rev().find(|(_, event)| is_wanted(event));
        found.map(|(_, event)| event)
    }

    /// Drops all output but the newest, and marks where. Input, sizes and interrupts stay.
    fn drop_old_output(&mut self) {
        let mut kept = VecDeque::with_capacity(self.events.len());
        let mut bytes_left = LAG_BYTES_KEPT;
        let mut lost_marked = false;
        for (at, event) in std::mem::take(&mut self.events).into_iter().rev() {
            match event {
                TapEvent::Output(mut bytes) if bytes.len() <= bytes_left => {
                    bytes_left -= bytes.len();
                    bytes.shrink_to_fit();
                    kept.push_front((at, TapEvent::Output(bytes)));
                }
                TapEvent::Output(bytes) => {
                    let newest = bytes
                        .get(bytes.len() - bytes_left..)
                        .unwrap_or_default()
                        .to_vec();
                    bytes_left = 0;
                    if !newest.is_empty() {
                        kept.push_front((at, TapEvent::Output(newest)));
                    }
                    if !std::mem::replace(&mut lost_marked, true) {
                        kept.push_front((at, TapEvent::Lost));
                    }
                }
                // One mark is enough for adjacent gaps.
                TapEvent::Lost if lost_marked => {}
                other => kept.push_front((at, other)),
            }
        }
        self.output_bytes = LAG_BYTES_KEPT - bytes_left;
        self.events = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn events(tap: &Tap) -> Vec<TapEvent> {
        match tap.read_events(Some(Duration::ZERO)) {
            TapRead::Events(events) => events.into_iter().map(|(_, event)| event).collect(),
            TapRead::TimedOut | TapRead::Ended => Vec::new(),
        }
    }

    #[test]
    fn a_looker_in_time_sees_everything_in_order() {
        let tap = Tap::new();
        tap.add_output(SECOND, b"one");
        tap.add(SECOND, TapEvent::Input(b"two".to_vec()));
        tap.add_output(SECOND, b"three");
        let expect = [
            TapEvent::Output(b"one".to_vec()),
            TapEvent::Input(b"two".to_vec()),
            TapEvent::Output(b"three".to_vec()),
        ];
        assert_eq!(events(&tap), expect);
        assert_eq!(tap.read_events(Some(Duration::ZERO)), TapRead::TimedOut);
        tap.end();
        assert_eq!(tap.read_events(None), TapRead::Ended);
    }

    #[test]
    fn a_looker_that_lags_gets_the_newest_output_and_is_lost_marked() {
        let tap = Tap::new();
        let chunk = vec![b'a'; 1 << 20];
        for _ in 0..8 {
            tap.add_output(SECOND, &chunk);
        }
        tap.add(SECOND, TapEvent::Interrupt);
        tap.add_output(SECOND, b"new");
        let seen = events(&tap);
        let [
            TapEvent::Lost,
            TapEvent::Output(older),
            TapEvent::Interrupt,
            TapEvent::Output(newest),
        ] = &seen[..]
        else {
            panic!("{} events", seen.len());
        };
        assert_eq!(
            (older.len() + newest.len(), &newest[..]),
            (LAG_BYTES_KEPT, &b"new"[..])
        );
    }

    #[test]
    fn a_queue_of_single_bytes_stays_small() {
        let tap = Tap::new();
        for _ in 0..100_000 {
            tap.add_output(SECOND, b"x");
        }
        let seen = events(&tap);
        assert_eq!(seen.len(), EVENTS_APART_MAX);
        let Some(TapEvent::Output(last)) = seen.last() else {
            panic!("no output")
        };
        assert_eq!(last.len(), 100_000 - EVENTS_APART_MAX + 1);
    }

    #[test]
    fn input_without_end_is_bounded_too() {
        let check = |event: &TapEvent, times: usize| {
            let tap = Tap::new();
            for _ in 0..times {
                tap.add(SECOND, event.clone());
            }
            assert_eq!(events(&tap).first(), Some(&TapEvent::Lost));
        };
        check(&TapEvent::Interrupt, EVENTS_MAX + 1);
        check(&TapEvent::Input(vec![b'x'; 1 << 20]), 9);
    }

    #[test]
    fn who_starts_afresh_knows_the_size_and_the_mode_that_hold() {
        let tap = Tap::new();
        let mode = |canonical| {
            TapEvent::Mode(TtyMode {
                canonical,
                echo: true,
            })
        };
        tap.add(SECOND, mode(true));
        tap.add(SECOND, mode(false));
        let size = TapEvent::Resize {
            cols: 100,
            rows: 30,
        };
        tap.add(SECOND, size.clone());
        for _ in 0..EVENTS_MAX {
            tap.add(SECOND, TapEvent::Interrupt);
        }
        assert_eq!(
            events(&tap).get(..3),
            Some(&[TapEvent::Lost, size, mode(false)][..])
        );
    }
}
