//! The outlet to the turn store: a thread that keeps every completed turn, in order.
//!
//! The caller provides the function that keeps a turn, because it knows the way to the store.
//! [`StoreAnswers`] learns when the store has first answered for a turn, with yes or no. A store
//! that is busy or gone for a while is tried again. The program never waits: turns that do not fit
//! in the queue are counted and reported at the end.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use turnkeep_types::broker::{CompletedTurn, FoundTurn, StateChange, TurnInfo};

use super::broker_outlet::StoreAnswers;
use super::turn_finder::TurnOutlet;

/// Turns that may wait for the store …
const QUEUE_TURNS_MAX: usize = 256;
/// … and their bytes; one turn may wait whatever its size.
const QUEUE_BYTES_MAX: usize = 128 << 20;
/// How long the wrapper's end waits for the store.
const END_PAUSE: Duration = Duration::from_secs(10);
/// How long a rejected turn is tried again before those behind it get their chance.
const TRY_FOR: Duration = Duration::from_mins(5);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// Problems to report after the program has ended.
#[derive(Debug, Clone, Default)]
pub struct StoreProblems(Arc<Mutex<Vec<String>>>);

impl StoreProblems {
    fn add(&self, problem: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(problem);
    }

    /// Takes all problems so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The outlet to the store.
#[derive(Debug)]
pub struct StoreOutlet {
    label: SessionLabel,
    queue: Option<SyncSender<NumberedTurn>>,
    waiting_bytes: Arc<AtomicUsize>,
    done: Receiver<()>,
    end: Arc<EndSignal>,
    lost: usize,
    problems: StoreProblems,
}

/// A turn and its sequence number.
#[derive(Debug)]
struct NumberedTurn {
    seq: u64,
    turn: FoundTurn,
}

/// The names of the session.
#[derive(Debug, Clone, Default)]
pub struct SessionLabel {
    /// The user's name for it.
    pub name: Option<String>,
    /// Its profile.
    pub preset: Option<String>,
}

impl StoreOutlet {
    /// Starts the thread. It calls `keep`, which may wait, until the turn is kept, then goes on
    /// with the next.
    pub fn start(
        label: SessionLabel,
        answers: Option<StoreAnswers>,
        keep: impl FnMut(&FoundTurn) -> Result<(), String> + Send + 'static,
    ) -> io::Result<(Self, StoreProblems)> {
        let (queue, turns) = sync_channel::<NumberedTurn>(QUEUE_TURNS_MAX);
        let (tell, done) = sync_channel(1);
        let problems = StoreProblems::default();
        let end = Arc::new(EndSignal::default());
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let mut thread = StoreThread {
            keep,
            answers,
            problems: problems.clone(),
            end: Arc::clone(&end),
            waiting_bytes: Arc::clone(&waiting_bytes),
        };
        let body = move || {
            thread.keep_all(turns);
            tell.send(()).ok();
        };
        std::thread::Builder::new()
            .name("keep".to_owned())
            .spawn(body)?;
        let outlet = Self {
            label,
            queue: Some(queue),
            waiting_bytes,
            done,
            end,
            lost: 0,
            problems: problems.clone(),
        };
        Ok((outlet, problems))
    }

    /// Queues a turn; returns whether it fit.
    fn enqueue(&self, numbered: NumberedTurn) -> bool {
        let bytes = turn_bytes(&numbered.turn);
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        let Some(queue) = self
            .queue
            .as_ref()
            // A single turn may be larger than the limit.
            .filter(|_| waiting == 0 || waiting + bytes <= QUEUE_BYTES_MAX)
        else {
            return false;
        };
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_taken = queue.try_send(numbered).is_ok();
        if !is_taken {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        is_taken
    }

    fn to_found_turn(&self, turn: &CompletedTurn) -> FoundTurn {
        let info = TurnInfo {
            turn_id: format!("{}:{}", turn.session, turn.seq.unwrap_or_default()),
            timestamp: turn.timestamp.unwrap_or_default(),
            byte_length: u32::try_from(turn.content.len()).unwrap_or(u32::MAX),
            interrupted: turn.interrupted,
            truncated: turn.truncated,
            incomplete: turn.incomplete,
            unprompted: turn.unprompted,
            preview: None,
        };
        FoundTurn {
            info,
            session: turn.session.clone(),
            name: self.label.name.clone(),
            preset: self.label.preset.clone(),
            content: turn.content.clone(),
            text: turn.text.clone(),
            text_source: turn.text_source.clone(),
            raw: turn.raw.clone(),
            raw_truncated: turn.raw_truncated,
        }
    }
}

/// The thread's side.
struct StoreThread<K> {
    keep: K,
    answers: Option<StoreAnswers>,
    problems: StoreProblems,
    end: Arc<EndSignal>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl<K: FnMut(&FoundTurn) -> Result<(), String>> StoreThread<K> {
    fn keep_all(&mut self, turns: Receiver<NumberedTurn>) {
        for NumberedTurn { seq, turn } in turns {
            let attempt = || {
                // An unprompted text is not a turn; it only passes through, so that its number is
                // answered.
                let kept = if turn.info.unprompted {
                    Ok(())
                } else {
                    (self.keep)(&turn)
                };
                // Answered after the first attempt, kept or not: the broker must not wait for the
                // retries.
                if let Some(answers) = &self.answers {
                    answers.up_to(seq);
                }
                kept
            };
            if let Err(why) = keep_with_retries(attempt, &self.end) {
                self.problems
                    .add(format!("turn {} is not kept: {why}", turn.info.turn_id));
            }
            self.waiting_bytes
                .fetch_sub(turn_bytes(&turn), Ordering::Relaxed);
        }
    }
}

fn turn_bytes(turn: &FoundTurn) -> usize {
    turn.content.len()
        + turn.text.as_ref().map_or(0, String::len)
        + turn.raw.as_ref().map_or(0, Bytes::len)
}

/// The end of the program; wakes a thread that waits between two attempts.
#[derive(Debug, Default)]
struct EndSignal {
    at: Mutex<Option<Instant>>,
    bell: Condvar,
}

impl EndSignal {
    fn set(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.bell.notify_all();
    }

    /// Waits; returns whether there is no time for another attempt.
    fn wait_before_retry(&self, pause: Duration) -> bool {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = self.bell.wait_timeout_while(at, pause, |at| at.is_none());
        let (at, _) = rested.unwrap_or_else(PoisonError::into_inner);
        let is_over = at.is_some_and(|at| at.elapsed() + pause >= END_PAUSE);
        drop(at);
        is_over
    }

    fn is_set(&self) -> bool {
        self.at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}

/// Keeps a turn, with retries until the time is up.
fn keep_with_retries(
    mut keep: impl FnMut() -> Result<(), String>,
    ending: &EndSignal,
) -> Result<(), String> {
    let begun = Instant::now();
    let mut pause = RETRY_FIRST;
    loop {
        let Err(why) = keep() else { return Ok(()) };
        if begun.elapsed() >= TRY_FOR || ending.wait_before_retry(pause) {
            return Err(why);
        }
        if ending.is_set() {
            // After the end, `wait_before_retry` returns at once, so this pause prevents a busy
            // loop.
            std::thread::sleep(RETRY_FIRST);
        } else {
            pause = (pause * 2).min(RETRY_LAST);
        }
    }
}

impl TurnOutlet for StoreOutlet {
    fn child_started(&mut self, _child: u32) {}

    fn state_changed(&mut self, _change: &StateChange) {}

    fn turn_completed(&mut self, turn: &CompletedTurn) {
        let is_taken = self.enqueue(NumberedTurn {
            seq: turn.seq.unwrap_or_default(),
            turn: self.to_found_turn(turn),
        });
        self.lost += usize::from(!is_taken);
    }

    fn child_ended(&mut self) {
        self.queue = None;
        self.end.set();
        if self.done.recv_timeout(END_PAUSE).is_err() {
            self.problems
                .add("the store did not take every turn in time".to_owned());
        }
        if self.lost > 0 {
            self.problems.add(format!(
                "{} turns are not kept: the store is too slow",
                self.lost
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_kept_in_order_also_when_the_store_is_busy_for_a_while() {
        let (tell, kept) = sync_channel(8);
        let mut attempts = 0;
        let (mut keep, problems) = StoreOutlet::start(SessionLabel::default(), None, move |turn| {
            attempts += 1;
            if attempts == 2 {
                return Err("locked for a while".to_owned());
            }
            tell.send(turn.info.turn_id.clone())
                .map_err(|error| error.to_string())
        })
        .unwrap();
        for seq in 1..=3 {
            keep.turn_completed(&CompletedTurn {
                session: "s".to_owned(),
                seq: Some(seq),
                ..CompletedTurn::default()
            });
        }
        keep.child_ended();
        assert_eq!(kept.iter().collect::<Vec<_>>(), ["s:1", "s:2", "s:3"]);
        assert_eq!(problems.take(), [""; 0]);
    }

    #[test]
    fn what_was_said_unprompted_is_not_stored() {
        let (tell, kept) = sync_channel(8);
        let send = move |turn: &FoundTurn| {
            tell.send(turn.info.turn_id.clone())
                .map_err(|error| error.to_string())
        };
        let (mut keep, problems) = StoreOutlet::start(SessionLabel::default(), None, send).unwrap();
        for (seq, unprompted) in [(1, false), (2, true), (3, false)] {
            let session = "s".to_owned();
            keep.turn_completed(&CompletedTurn {
                session,
                seq: Some(seq),
                unprompted,
                ..CompletedTurn::default()
            });
        }
        keep.child_ended();
        assert_eq!(kept.iter().collect::<Vec<_>>(), ["s:1", "s:3"]);
        assert_eq!(problems.take(), [""; 0]);
    }

    #[test]
    fn a_store_that_hangs_costs_bounded_memory_and_what_is_lost_is_told() {
        let (go, may) = sync_channel::<()>(0);
        let (tell, kept) = sync_channel(QUEUE_TURNS_MAX);
        let (mut keep, problems) = StoreOutlet::start(SessionLabel::default(), None, move |turn| {
            may.recv().ok();
            tell.send(turn.content.len())
                .map_err(|error| error.to_string())
        })
        .unwrap();
        let content = Bytes::from(vec![b'x'; QUEUE_BYTES_MAX / 4]);
        for seq in 1..=6 {
            let turn = CompletedTurn {
                seq: Some(seq),
                content: content.clone(),
                ..CompletedTurn::default()
            };
            keep.turn_completed(&turn);
        }
        drop(go);
        keep.child_ended();
        assert_eq!(kept.iter().count(), 4);
        assert_eq!(
            problems.take(),
            ["2 turns are not kept: the store is too slow"]
        );
    }
}
