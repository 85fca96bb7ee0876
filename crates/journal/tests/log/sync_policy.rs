//! When a frame counts as durable.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_journal::storage::Fault;
use turnkeep_journal::{AppendError, FaultyStorage, FileLog, Log, MemoryStorage, Position};

use crate::support::{append, batch, numbers, open, os_options};

const LONG: Duration = Duration::from_mins(1);

#[test]
fn every_frame_is_durable_when_it_is_acked() {
    let (mut log, _) = open(&MemoryStorage::new());
    append(&mut log, 1..=3);
    assert_eq!(log.reader().last_durable(), Position(3));
    assert!(log.reader().wait_durable(Position(3), LONG));
    assert!(!log.reader().wait_durable(Position(4), Duration::ZERO));
    let records: Vec<u64> = log
        .reader()
        .frames_from(Position(1))
        .map(|frame| frame.unwrap().durable.0)
        .collect();
    assert_eq!(records, [0, 1, 2]);
}

#[test]
fn under_the_os_policy_durability_lags_until_a_sync() {
    let disk = FaultyStorage::new(None);
    let (mut log, _) = FileLog::open(Arc::new(disk.clone()), os_options()).unwrap();
    append(&mut log, 1..=3);
    let reader = log.reader();
    assert_eq!(
        (reader.last_position(), reader.last_durable()),
        (Position(3), Position(0))
    );
    assert!(!reader.wait_durable(Position(1), Duration::ZERO));
    log.sync().unwrap();
    assert!(reader.wait_durable(Position(3), Duration::ZERO));
    append(&mut log, [4]);
    assert_eq!(
        log.reader()
            .frames_from(Position(4))
            .next()
            .unwrap()
            .unwrap()
            .durable,
        Position(3)
    );
    drop(log);
    let (log, _) = open(&disk.crash());
    assert_eq!(numbers(&log), [1, 2, 3]);
}

#[test]
fn a_waiting_reader_wakes_when_the_frame_is_durable() {
    let (mut log, _) = FileLog::open(Arc::new(MemoryStorage::new()), os_options()).unwrap();
    append(&mut log, [1]);
    let reader = log.reader();
    let waiting = std::thread::spawn(move || reader.wait_durable(Position(1), LONG));
    log.sync().unwrap();
    assert!(waiting.join().unwrap());
}

#[test]
fn rotation_syncs_the_segment_that_is_left() {
    let disk = FaultyStorage::new(None);
    let (mut log, _) = FileLog::open(Arc::new(disk.clone()), os_options()).unwrap();
    append(&mut log, 1..=20);
    let durable = log.reader().last_durable().0;
    assert!(durable > 10 && durable < 20, "{durable}");
    drop(log);
    let (log, _) = open(&disk.crash());
    let held = numbers(&log).len() as u64;
    assert!(held >= durable, "{held} of {durable}");
}

#[test]
fn a_failed_sync_poisons_until_the_log_is_opened_again() {
    for at in 0..12 {
        let disk = FaultyStorage::new(Some((at, Fault::FailedSync)));
        let (mut log, _) = FileLog::open(Arc::new(disk.clone()), os_options()).unwrap();
        let mut poisoned = None;
        for n in 1..=6 {
            let done = log.append(&batch(n)).map(drop).and_then(|()| log.sync());
            match (&poisoned, done) {
                (None, Err(AppendError::Poisoned(why))) => poisoned = Some(why),
                (Some(why), again) => assert_eq!(again, Err(AppendError::Poisoned(why.clone()))),
                (None, done) => done.unwrap(),
            }
        }
        // Readers go on with what they had.
        assert!(log.reader().last_durable() <= log.reader().last_position());
        drop(log);
        let (mut log, _) = open(&disk);
        let held = numbers(&log);
        append(&mut log, [7]);
        drop(log);
        let (log, _) = open(&disk.crash());
        assert_eq!(numbers(&log), [&held[..], &[7]].concat());
    }
}
