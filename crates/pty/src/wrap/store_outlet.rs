//! The outlet to the turn store: a thread that keeps every completed turn, in order.
//!
//! The caller provides the function that keeps turns, because it knows the way to the store. The
//! thread passes it all turns that wait, up to a limit: without a running server, each call has to
//! open the store. A turn that the store rejects is tried again before the turns of the next group.
//! [`StoreAnswers`] learns when the store has first answered for a turn, with yes or no. The
//! program never waits: turns that do not fit in the queue are counted and reported at the end.

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
/// Turns that are passed to the store together …
const GROUP_TURNS_MAX: usize = 64;
/// … and their bytes. A larger turn is passed alone: the store may reject it for lack of memory
/// and accept the smaller ones behind it, which would change their order.
const GROUP_BYTES_MAX: usize = 128 << 10;
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
    /// Starts the thread. It calls `keep`, which may wait and returns one result per turn, until
    /// all turns of a group are kept, then goes on with the next group.
    pub fn start(
        label: SessionLabel,
        answers: Option<StoreAnswers>,
        keep: impl FnMut(&[FoundTurn]) -> Vec<Result<(), String>> + Send + 'static,
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
            thread.keep_all(TurnGroups {
                turns,
                left_over: None,
            });
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

impl<K: FnMut(&[FoundTurn]) -> Vec<Result<(), String>>> StoreThread<K> {
    fn keep_all(&mut self, groups: TurnGroups) {
        for group in groups {
            self.keep_group(&group);
            self.waiting_bytes.fetch_sub(group.bytes, Ordering::Relaxed);
        }
    }

    /// Keeps the turns of a group. At the first turn that the store rejects, this stops and tries
    /// that turn again until the time is up. Then it passes all turns behind it again, because the
    /// store may have rejected them for the same reason; it recognises those that it has.
    fn keep_group(&mut self, group: &TurnGroup) {
        let mut first_rejection = self.find_rejection(&group.turns);
        // Answered after the first attempt, kept or not: the broker must not wait for the retries.
        if let Some(answers) = &self.answers {
            answers.up_to(group.last_seq);
        }
        let mut rest = &group.turns[..];
        while let Some(Rejection { index, why }) = first_rejection {
            let (Some(turn), Some(behind)) = (rest.get(index), rest.get(index + 1..)) else {
                return;
            };
            if let Err(why) = self.retry(turn, why) {
                self.problems
                    .add(format!("turn {} is not kept: {why}", turn.info.turn_id));
            }
            rest = behind;
            first_rejection = self.find_rejection(rest);
        }
    }

    /// Passes turns to the store once and returns the first rejection.
    fn find_rejection(&mut self, turns: &[FoundTurn]) -> Option<Rejection> {
        if turns.is_empty() {
            return None;
        }
        let results = (self.keep)(turns).into_iter().enumerate();
        results
            .filter_map(|(index, result)| Some((index, result.err()?)))
            .map(|(index, why)| Rejection { index, why })
            .next()
    }

    /// Tries a turn again that the store rejected, until the time is up.
    fn retry(&mut self, turn: &FoundTurn, mut why: String) -> Result<(), String> {
        let begun = Instant::now();
        let mut pause = RETRY_FIRST;
        loop {
            if begun.elapsed() >= TRY_FOR || self.end.wait_before_retry(pause) {
                return Err(why);
            }
            if self.end.is_set() {
                // After the end, `wait_before_retry` returns at once, so this pause prevents a
                // busy loop.
                std::thread::sleep(RETRY_FIRST);
            } else {
                pause = (pause * 2).min(RETRY_LAST);
            }
            match self.find_rejection(std::slice::from_ref(turn)) {
                None => return Ok(()),
                Some(rejection) => why = rejection.why,
            }
        }
    }
}

/// A turn that the store did not keep.
struct Rejection {
    /// Its place among the turns that were passed.
    index: usize,
    why: String,
}

/// Turns that are passed to the store together.
#[derive(Default)]
struct TurnGroup {
    /// The number of the last turn.
    last_seq: u64,
    /// What the turns count in the queue.
    bytes: usize,
    turns: Vec<FoundTurn>,
}

impl TurnGroup {
    fn push(&mut self, NumberedTurn { seq, turn }: NumberedTurn) {
        self.last_seq = seq;
        self.bytes += turn_bytes(&turn);
        // An unprompted text is not a turn; it is in the queue so that its number is answered.
        if !turn.info.unprompted {
            self.turns.push(turn);
        }
    }

    fn fits(&self, next: &NumberedTurn) -> bool {
        self.turns.len() < GROUP_TURNS_MAX && self.bytes + turn_bytes(&next.turn) <= GROUP_BYTES_MAX
    }
}

/// The queue as groups of the turns that wait at the same time.
struct TurnGroups {
    turns: Receiver<NumberedTurn>,
    /// A turn that did not fit into the group before.
    left_over: Option<NumberedTurn>,
}

impl Iterator for TurnGroups {
    type Item = TurnGroup;

    fn next(&mut self) -> Option<TurnGroup> {
        let first = match self.left_over.take() {
            Some(turn) => turn,
            None => self.turns.recv().ok()?,
        };
        let mut group = TurnGroup::default();
        group.push(first);
        while let Ok(next) = self.turns.try_recv() {
            if !group.fits(&next) {
                self.left_over = Some(next);
                break;
            }
            group.push(next);
        }
        Some(group)
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

    /// A store that keeps turns one at a time and rejects all behind one that it rejects.
    fn one_by_one(
        mut keep: impl FnMut(&FoundTurn) -> Result<(), String>,
    ) -> impl FnMut(&[FoundTurn]) -> Vec<Result<(), String>> {
        move |turns| {
            let mut rejected = None;
            let mut results = Vec::new();
            for turn in turns {
                let result = rejected.clone().map_or_else(|| keep(turn), Err);
                rejected = result.clone().err();
                results.push(result);
            }
            results
        }
    }

    #[test]
    fn turns_that_wait_are_passed_together_within_limits() {
        let group_of = |sizes: &[usize]| {
            let (send, turns) = sync_channel(QUEUE_TURNS_MAX);
            for (seq, bytes) in sizes.iter().enumerate() {
                let turn = FoundTurn {
                    content: Bytes::from(vec![b'x'; *bytes]),
                    ..FoundTurn::default()
                };
                let seq = seq as u64;
                send.send(NumberedTurn { seq, turn }).unwrap();
            }
            drop(send);
            let groups = TurnGroups {
                turns,
                left_over: None,
            };
            groups
                .map(|group| (group.turns.len(), group.last_seq))
                .collect::<Vec<_>>()
        };
        assert_eq!(group_of(&[10, 10, 10]), [(3, 2)]);
        assert_eq!(group_of(&[1; GROUP_TURNS_MAX + 1]), [(64, 63), (1, 64)]);
        let large = GROUP_BYTES_MAX + 1;
        assert_eq!(group_of(&[10, large, 10, 10]), [(1, 0), (1, 1), (2, 3)]);
    }

    #[test]
    fn turns_behind_a_rejected_one_are_passed_again_after_it() {
        let (tell, passed) = sync_channel(8);
        let (go, may) = sync_channel::<()>(0);
        let mut attempts = 0;
        let keep = move |turns: &[FoundTurn]| {
            attempts += 1;
            let ids: Vec<String> = turns.iter().map(|turn| turn.info.turn_id.clone()).collect();
            tell.send(ids.join(" ")).unwrap();
            // The first attempt lasts until the other turns wait.
            may.recv().ok();
            // The second attempt finds a store that is full from the second turn on.
            let rejects = |index| attempts == 2 && index >= 1;
            (0..turns.len())
                .map(|index| {
                    if rejects(index) {
                        Err("full".to_owned())
                    } else {
                        Ok(())
                    }
                })
                .collect()
        };
        let (mut outlet, problems) =
            StoreOutlet::start(SessionLabel::default(), None, keep).unwrap();
        let complete = |seq| CompletedTurn {
            session: "s".to_owned(),
            seq: Some(seq),
            ..CompletedTurn::default()
        };
        outlet.turn_completed(&complete(1));
        assert_eq!(passed.recv().unwrap(), "s:1");
        for seq in 2..=5 {
            outlet.turn_completed(&complete(seq));
        }
        drop(go);
        outlet.child_ended();
        let passed: Vec<String> = passed.iter().collect();
        assert_eq!(passed, ["s:2 s:3 s:4 s:5", "s:3", "s:4 s:5"]);
        assert_eq!(problems.take(), [""; 0]);
    }

    #[test]
    fn every_turn_is_kept_in_order_also_when_the_store_is_busy_for_a_while() {
        let (tell, kept) = sync_channel(8);
        let mut attempts = 0;
        let keep_one = move |turn: &FoundTurn| {
            attempts += 1;
            if attempts == 2 {
                return Err("locked for a while".to_owned());
            }
            tell.send(turn.info.turn_id.clone())
                .map_err(|error| error.to_string())
        };
        let (mut keep, problems) =
            StoreOutlet::start(SessionLabel::default(), None, one_by_one(keep_one)).unwrap();
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
        let (mut keep, problems) =
            StoreOutlet::start(SessionLabel::default(), None, one_by_one(send)).unwrap();
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
        let keep_one = move |turn: &FoundTurn| {
            may.recv().ok();
            tell.send(turn.content.len())
                .map_err(|error| error.to_string())
        };
        let (mut keep, problems) =
            StoreOutlet::start(SessionLabel::default(), None, one_by_one(keep_one)).unwrap();
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
