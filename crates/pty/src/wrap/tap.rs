//! The bounded queue between the byte path and whoever looks at the bytes.
//!
//! Adding never waits. When the looker lags by more than [`LAG_BYTES_MAX`] of output, what it has
//! not seen is dropped down to the newest [`LAG_BYTES_KEPT`], and a [`Sight::Lost`] stands where
//! the rest was. Times are those at which the byte path saw things, however late they are looked
//! at.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::mode::TtyMode;

/// Output that may wait to be looked at.
pub const LAG_BYTES_MAX: usize = 8 << 20;
/// Output that is kept when more than that waits.
pub const LAG_BYTES_KEPT: usize = 64 << 10;
/// Things in the queue above which output is joined to the output before it.
const SIGHTS_APART_MAX: usize = 1024;
/// Things in the queue, of all kinds.
const SIGHTS_MAX: usize = 64 << 10;

/// How long the looker lets a bunch grow before it takes it. A key and its echo are over by then.
const BUNCH_PAUSE: Duration = Duration::from_millis(3);

/// Something that the byte path saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// The child wrote.
    Output(Vec<u8>),
    /// Output is missing here.
    Lost,
    /// The child was sent this, typed or injected.
    Input(Vec<u8>),
    /// The child was sent SIGINT.
    Interrupt,
    /// The terminal has another size.
    Resize {
        /// Width.
        cols: u16,
        /// Height.
        rows: u16,
    },
    /// The child's terminal has another mode.
    Mode(TtyMode),
}

#[derive(Debug, Default)]
struct Queue {
    sights: VecDeque<(Duration, Sight)>,
    output_bytes: usize,
    input_bytes: usize,
    ended: bool,
}

/// What looking at the queue gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// These, in order.
    Sights(VecDeque<(Duration, Sight)>),
    /// Nothing until the time asked for.
    Nothing,
    /// The child has ended and everything was seen.
    Ended,
}

/// Both ends of the queue; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Tap {
    start: Instant,
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Tap {
    /// An empty queue whose times count from now.
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            shared: Arc::default(),
        }
    }

    /// The time since the queue was made, in whole microseconds: a recording holds it exactly.
    pub(super) fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output of the child.
    pub(super) fn output(&self, now: Duration, bytes: &[u8]) {
        let mut queue = self.queue();
        let was_empty = queue.sights.is_empty();
        queue.output_bytes += bytes.len();
        let crowded = queue.sights.len() >= SIGHTS_APART_MAX;
        match queue.sights.back_mut() {
            Some((at, Sight::Output(before))) if crowded => {
                *at = now;
                before.extend_from_slice(bytes);
            }
            _ => queue.sights.push_back((now, Sight::Output(bytes.to_vec()))),
        }
        queue.shed();
        self.ring(queue, was_empty);
    }

    /// Adds anything else.
    pub(super) fn add(&self, now: Duration, sight: Sight) {
        let mut queue = self.queue();
        let was_empty = queue.sights.is_empty();
        if let Sight::Input(bytes) = &sight {
            queue.input_bytes += bytes.len();
        }
        queue.sights.push_back((now, sight));
        queue.shed();
        self.ring(queue, was_empty);
    }

    /// Wakes the looker for the first of a bunch; it takes the others along.
    fn ring(&self, queue: MutexGuard<'_, Queue>, was_empty: bool) {
        drop(queue);
        if was_empty {
            self.shared.1.notify_one();
        }
    }

    /// Says that nothing more will come.
    pub(super) fn end(&self) {
        self.queue().ended = true;
        self.shared.1.notify_one();
    }

    /// Takes everything that is there, or waits for something until `until`.
    pub(super) fn look(&self, until: Option<Duration>) -> Look {
        let mut queue = self.queue();
        loop {
            if !queue.sights.is_empty() {
                if !queue.ended {
                    drop(queue);
                    // The byte path is still at it: neither its core nor its lock is wanted now.
                    std::thread::sleep(BUNCH_PAUSE);
                    queue = self.queue();
                }
                (queue.output_bytes, queue.input_bytes) = (0, 0);
                return Look::Sights(std::mem::take(&mut queue.sights));
            }
            if queue.ended {
                return Look::Ended;
            }
            let left = until.map_or(Duration::from_hours(1), |until| {
                until.saturating_sub(self.now())
            });
            if left.is_zero() {
                return Look::Nothing;
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
    /// Keeps the queue within its bounds.
    fn shed(&mut self) {
        if self.output_bytes > LAG_BYTES_MAX {
            self.shed_output();
        }
        // A looker that is so far behind has lost the thread: it starts afresh, with the size and
        // the mode that hold.
        if let Some((at, _)) = self.sights.back()
            && (self.input_bytes > LAG_BYTES_MAX || self.sights.len() > SIGHTS_MAX)
        {
            let newest = |is: fn(&Sight) -> bool| {
                let found = self.sights.iter().rev().find(|(_, sight)| is(sight));
                found.map(|(_, sight)| (*at, sight.clone()))
            };
            let mode = newest(|sight| matches!(sight, Sight::Mode(_)));
            let size = newest(|sight| matches!(sight, Sight::Resize { .. }));
            let lost = [(*at, Sight::Lost)]
                .into_iter()
                .chain(size)
                .chain(mode)
                .collect();
            *self = Self {
                sights: lost,
                ended: self.ended,
                ..Self::default()
            };
        }
    }

    /// Drops all output but the newest, and says where. Input, sizes and interrupts stay.
    fn shed_output(&mut self) {
        let mut kept = VecDeque::with_capacity(self.sights.len());
        let mut room = LAG_BYTES_KEPT;
        let mut told = false;
        for (at, sight) in std::mem::take(&mut self.sights).into_iter().rev() {
            match sight {
                Sight::Output(mut bytes) if bytes.len() <= room => {
                    room -= bytes.len();
                    bytes.shrink_to_fit();
                    kept.push_front((at, Sight::Output(bytes)));
                }
                Sight::Output(bytes) => {
                    let newest = bytes.get(bytes.len() - room..).unwrap_or_default().to_vec();
                    room = 0;
                    if !newest.is_empty() {
                        kept.push_front((at, Sight::Output(newest)));
                    }
                    if !std::mem::replace(&mut told, true) {
                        kept.push_front((at, Sight::Lost));
                    }
                }
                Sight::Lost if told => {}
                other => kept.push_front((at, other)),
            }
        }
        self.output_bytes = LAG_BYTES_KEPT - room;
        self.sights = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sights(tap: &Tap) -> Vec<Sight> {
        match tap.look(Some(Duration::ZERO)) {
            Look::Sights(sights) => sights.into_iter().map(|(_, sight)| sight).collect(),
            Look::Nothing | Look::Ended => Vec::new(),
        }
    }

    #[test]
    fn a_looker_in_time_sees_everything_in_order() {
        let tap = Tap::new();
        tap.output(SECOND, b"one");
        tap.add(SECOND, Sight::Input(b"two".to_vec()));
        tap.output(SECOND, b"three");
        let expect = [
            Sight::Output(b"one".to_vec()),
            Sight::Input(b"two".to_vec()),
            Sight::Output(b"three".to_vec()),
        ];
        assert_eq!(sights(&tap), expect);
        assert_eq!(tap.look(Some(Duration::ZERO)), Look::Nothing);
        tap.end();
        assert_eq!(tap.look(None), Look::Ended);
    }

    #[test]
    fn a_looker_that_lags_gets_the_newest_output_and_is_told() {
        let tap = Tap::new();
        let chunk = vec![b'a'; 1 << 20];
        for _ in 0..8 {
            tap.output(SECOND, &chunk);
        }
        tap.add(SECOND, Sight::Interrupt);
        tap.output(SECOND, b"new");
        let seen = sights(&tap);
        let [
            Sight::Lost,
            Sight::Output(older),
            Sight::Interrupt,
            Sight::Output(newest),
        ] = &seen[..]
        else {
            panic!("{} sights", seen.len());
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
            tap.output(SECOND, b"x");
        }
        let seen = sights(&tap);
        assert_eq!(seen.len(), SIGHTS_APART_MAX);
        let Some(Sight::Output(last)) = seen.last() else {
            panic!("no output")
        };
        assert_eq!(last.len(), 100_000 - SIGHTS_APART_MAX + 1);
    }

    #[test]
    fn input_without_end_is_bounded_too() {
        let check = |sight: &Sight, times: usize| {
            let tap = Tap::new();
            for _ in 0..times {
                tap.add(SECOND, sight.clone());
            }
            assert_eq!(sights(&tap).first(), Some(&Sight::Lost));
        };
        check(&Sight::Interrupt, SIGHTS_MAX + 1);
        check(&Sight::Input(vec![b'x'; 1 << 20]), 9);
    }

    #[test]
    fn who_starts_afresh_knows_the_size_and_the_mode_that_hold() {
        let tap = Tap::new();
        let mode = |canonical| {
            Sight::Mode(TtyMode {
                canonical,
                echo: true,
            })
        };
        tap.add(SECOND, mode(true));
        tap.add(SECOND, mode(false));
        let size = Sight::Resize {
            cols: 100,
            rows: 30,
        };
        tap.add(SECOND, size.clone());
        for _ in 0..SIGHTS_MAX {
            tap.add(SECOND, Sight::Interrupt);
        }
        assert_eq!(
            sights(&tap).get(..3),
            Some(&[Sight::Lost, size, mode(false)][..])
        );
    }
}
