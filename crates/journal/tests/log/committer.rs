//! The committer with a state machine that records every call.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use turnkeep_journal::storage::Fault;
use turnkeep_journal::{
    AppendError, Appended, Batch, Committer, CommitterError, CommitterLimits, FaultyStorage,
    FileLog, LogOptions, MemoryStorage, Stamp, StateMachine, spawn_committer,
};

use crate::support::{batch, content, open, options, os_options};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Happened {
    Admitted(u64),
    Deferred(u64),
    Committed(u64, Vec<u64>),
    Aborted(AppendError),
    Poisoned,
    Finished,
}

type Story = Arc<Mutex<Vec<Happened>>>;

/// Batches by number. An odd one must wait until no other is in its group.
struct Recorder {
    story: Story,
    group: Vec<u64>,
    /// Holds the first group back until the test has queued what it wants.
    gate: Option<Receiver<()>>,
}

impl Recorder {
    fn note(&self, happened: Happened) {
        self.story.lock().unwrap().push(happened);
    }
}

impl StateMachine for Recorder {
    type Input = u64;

    fn begin_group(&mut self) -> Stamp {
        if let Some(gate) = self.gate.take() {
            gate.recv().unwrap();
        }
        Stamp::default()
    }

    fn admit(&mut self, n: u64, batch: &mut Batch) -> Option<u64> {
        if n % 2 == 1 && !batch.is_empty() {
            self.note(Happened::Deferred(n));
            return Some(n);
        }
        for (kind, version, body) in &content(n).commands {
            batch.push_command(*kind, *version, body);
        }
        self.group.push(n);
        self.note(Happened::Admitted(n));
        None
    }

    fn commit_group(&mut self, appended: &Appended, _batch: &Batch) {
        let group = std::mem::take(&mut self.group);
        self.note(Happened::Committed(appended.position.0, group));
    }

    fn abort_group(&mut self, error: &AppendError) {
        self.group.clear();
        self.note(Happened::Aborted(error.clone()));
    }

    fn note_failed_sync(&mut self, _error: &AppendError) {
        self.note(Happened::Poisoned);
    }

    fn run_between_groups(&mut self) {}

    fn finish(&mut self) {
        self.note(Happened::Finished);
    }
}

fn start(log: FileLog, queue_len: usize) -> (Committer<u64>, Story, SyncSender<()>) {
    let story = Story::default();
    let (go, gate) = sync_channel(1);
    let machine = Recorder {
        story: story.clone(),
        group: Vec::new(),
        gate: Some(gate),
    };
    (
        spawn_committer(
            log,
            machine,
            CommitterLimits {
                queue_inputs_max: queue_len,
                group_commands_max: 1024,
            },
        )
        .unwrap(),
        story,
        go,
    )
}

fn groups(story: &Story) -> Vec<(u64, Vec<u64>)> {
    let story = story.lock().unwrap();
    let committed = story.iter().filter_map(|happened| match happened {
        Happened::Committed(position, group) => Some((*position, group.clone())),
        _ => None,
    });
    committed.collect()
}

#[test]
fn what_waits_becomes_one_group_and_the_deferred_come_next_in_order() {
    let disk = MemoryStorage::new();
    let (committer, story, go) = start(open(&disk).0, 16);
    for n in [2, 4, 3, 6, 5, 8] {
        committer.submit(n).unwrap();
    }
    go.send(()).unwrap();
    committer.close();
    assert_eq!(
        groups(&story),
        [(1, vec![2, 4, 6, 8]), (2, vec![3]), (3, vec![5])]
    );
    assert_eq!(story.lock().unwrap().last(), Some(&Happened::Finished));
    let positions: Vec<usize> = open(&disk)
        .0
        .reader()
        .frames_between(turnkeep_journal::Position(1), turnkeep_journal::Position(3))
        .map(|f| f.unwrap().commands().count())
        .collect();
    assert_eq!(positions, [4, 2, 2]);
}

#[test]
fn a_full_queue_refuses_and_a_closed_one_too() {
    let (committer, story, go) = start(open(&MemoryStorage::new()).0, 2);
    // One may be in the machine's hands already, held at the gate.
    let mut taken = 0;
    let refused = loop {
        match committer.submit(2) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, CommitterError::Full);
    assert!((2..=3).contains(&taken));
    go.send(()).unwrap();
    committer.close();
    assert_eq!(
        groups(&story)
            .iter()
            .map(|(_, group)| group.len())
            .sum::<usize>(),
        taken
    );
    assert_eq!(committer.submit(2), Err(CommitterError::Closed));
}

#[test]
fn a_group_closes_at_its_limit_of_commands() {
    let (committer, story, go) = start(open(&MemoryStorage::new()).0, 2048);
    for _ in 0..1500 {
        committer.submit(2).unwrap();
    }
    go.send(()).unwrap();
    committer.close();
    let sizes: Vec<usize> = groups(&story)
        .iter()
        .map(|(_, group)| group.len())
        .collect();
    assert_eq!(sizes, [1024, 476]);
}

#[test]
fn no_space_aborts_a_group_and_the_next_one_is_tried() {
    // The first operation creates a segment, for which a smaller one is tried; the second writes to
    // it.
    let disk = FaultyStorage::new(Some((1, Fault::NoSpace)));
    let (committer, story, go) = start(open(&disk).0, 16);
    for n in [2, 4, 3] {
        committer.submit(n).unwrap();
    }
    go.send(()).unwrap();
    committer.close();
    let is_no_space =
        |happened: &Happened| matches!(happened, Happened::Aborted(AppendError::NoSpace { .. }));
    assert!(story.lock().unwrap().iter().any(is_no_space));
    assert_eq!(
        groups(&story),
        [(1, vec![3])],
        "the deferred one was decided again after the abort"
    );
}

#[test]
fn a_failed_sync_aborts_this_group_and_every_later_one() {
    let disk = FaultyStorage::new(Some((0, Fault::FailedSync)));
    let (committer, story, go) = start(open(&disk).0, 16);
    for n in [2, 3, 5] {
        committer.submit(n).unwrap();
    }
    go.send(()).unwrap();
    committer.close();
    assert_eq!(groups(&story), []);
    let story = story.lock().unwrap();
    let aborted = story
        .iter()
        .filter(|h| matches!(h, Happened::Aborted(AppendError::Poisoned(_))))
        .count();
    assert_eq!(aborted, 3);
    assert_eq!(story.last(), Some(&Happened::Finished));
}

#[test]
fn closing_under_the_os_policy_syncs() {
    let disk = FaultyStorage::new(None);
    let (log, _) = FileLog::open(Arc::new(disk.clone()), os_options()).unwrap();
    let (committer, story, go) = start(log, 16);
    for n in [2, 4, 6] {
        committer.submit(n).unwrap();
    }
    go.send(()).unwrap();
    committer.close();
    let frames = groups(&story).len() as u64;
    assert_eq!(open(&disk.crash()).0.reader().last_position().0, frames);
}

#[test]
fn a_sync_that_fails_after_the_acks_is_told() {
    // Operations: create, write, sync of the header, then the sync at the end.
    let disk = FaultyStorage::new(Some((3, Fault::FailedSync)));
    let large = LogOptions {
        segment_bytes: 1 << 20,
        ..os_options()
    };
    let (log, _) = FileLog::open(Arc::new(disk.clone()), large).unwrap();
    let (committer, story, go) = start(log, 16);
    committer.submit(2).unwrap();
    go.send(()).unwrap();
    committer.close();
    assert!(story.lock().unwrap().contains(&Happened::Poisoned));
    assert_eq!(numbers_of(&disk), [2]);
}

fn numbers_of(disk: &FaultyStorage) -> Vec<u64> {
    let (mut log, _) = FileLog::open(Arc::new(disk.clone()), options()).unwrap();
    turnkeep_journal::Log::append(&mut log, &batch(7)).unwrap();
    let first = |body: &[u8]| u64::from_le_bytes(body[..8].try_into().unwrap());
    let frames = log.reader().frames_from(turnkeep_journal::Position(1));
    let mut found: Vec<u64> = frames
        .map(|f| first(f.unwrap().commands().next().unwrap().body))
        .collect();
    assert_eq!(found.pop(), Some(7));
    found
}
