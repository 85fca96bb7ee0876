//! Injects every fault of the faulty disk at every operation of a workload.

use std::sync::Arc;

use turnkeep_journal::storage::Fault;
use turnkeep_journal::{FaultyStorage, Storage};
use turnkeep_sim::{KnownResult, Trial, Violation};
use turnkeep_store::{Refusal, Store};

/// Sends commands alone and together until the writer is poisoned or the workload ends.
fn work(trial: &mut Trial, store: &Store) -> Result<(), Violation> {
    for step in 0..24 {
        if step % 2 == 0 {
            trial.send_many(store, 5)?;
        } else {
            trial.send_one(store)?;
        }
        if store.stats().poisoned {
            // Readers go on, and everything else is refused.
            trial.send_many(store, 2)?;
            break;
        }
    }
    trial.check(store)?;
    Ok(())
}

/// What a workload left behind.
struct Left {
    trial: Trial,
    disk: FaultyStorage,
    store: Option<Store>,
}

fn run(seed: u64, fault: Option<(u64, Fault)>) -> Result<Left, Violation> {
    let mut trial = Trial::new(seed);
    let disk = FaultyStorage::new(fault);
    let store = trial.open(Arc::new(disk.clone())).ok();
    if let Some(store) = &store {
        work(&mut trial, store)?;
    }
    Ok(Left { trial, disk, store })
}

/// Opens what is left, finds out what took effect, sends everything again and opens once more.
fn recover(mut trial: Trial, storage: &Arc<dyn Storage>) -> Result<Trial, Violation> {
    let store = trial
        .open(storage.clone())
        .unwrap_or_else(|e| panic!("{e}"));
    trial.recover(&store)?;
    trial.repeat_all(&store)?;
    trial.send_many(&store, 3)?;
    let live = trial.check(&store)?;
    assert!(trial.unknown.is_empty(), "the writer works again");
    drop(store);
    let store = trial
        .open(storage.clone())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(trial.check(&store)?.digest(), live.digest());
    Ok(trial)
}

/// The power fails after the fault: only synced bytes are left.
fn check_crash(seed: u64, fault: (u64, Fault)) -> Result<bool, Violation> {
    let Left { trial, disk, store } = run(seed, Some(fault))?;
    let image = disk.crash();
    drop(store);
    let refused = trial.sent.iter().any(|s| {
        matches!(
            &s.known,
            KnownResult::Answered(Err(Refusal::NoSpace { .. }))
        )
    });
    let poisoned = !trial.unknown.is_empty();
    recover(trial, &(Arc::new(image) as Arc<dyn Storage>))?;
    Ok(refused || poisoned)
}

/// The process starts again on the same machine: the page cache may show what the disk does not
/// hold. What is served then must survive a crash after it.
fn check_restart(seed: u64, fault: (u64, Fault)) -> Result<bool, Violation> {
    let Left { trial, disk, store } = run(seed, Some(fault))?;
    drop(store);
    if trial.unknown.is_empty() {
        // It struck the index, or is still to come.
        return Ok(false);
    }
    let same: Arc<dyn Storage> = Arc::new(disk.clone());
    let trial = recover(trial, &same)?;
    let store = trial
        .open(Arc::new(disk.crash()))
        .unwrap_or_else(|e| panic!("{e}"));
    trial.check(&store)?;
    Ok(true)
}

fn operations(seed: u64) -> u64 {
    let left = run(seed, None).unwrap();
    drop(left.store);
    left.disk.operations()
}

/// Runs a check at every operation; how many times it says that a command was touched by the fault.
fn at_every_operation(seed: u64, mut check: impl FnMut(u64) -> Result<bool, Violation>) -> usize {
    let all = operations(seed);
    assert!(all > 50, "the workload has only {all} operations");
    let touched =
        |at: &u64| check(*at).unwrap_or_else(|e| panic!("seed {seed}, operation {at}: {e}"));
    (0..all + 2).filter(touched).count()
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_acked() {
    assert!(at_every_operation(1, |at| check_crash(1, (at, Fault::Crash))) > 20);
}

#[test]
fn a_torn_write_at_any_operation_loses_nothing_that_was_acked() {
    assert!(at_every_operation(2, |at| check_crash(2, (at, Fault::TornWrite))) > 20);
}

#[test]
fn a_failed_sync_at_any_operation_poisons_the_writer_and_loses_nothing_that_was_acked() {
    assert!(at_every_operation(3, |at| check_crash(3, (at, Fault::FailedSync))) > 20);
    assert!(at_every_operation(3, |at| check_restart(3, (at, Fault::FailedSync))) > 20);
}

#[test]
fn a_short_write_at_any_operation_loses_nothing_that_was_acked() {
    assert!(at_every_operation(4, |at| check_crash(4, (at, Fault::ShortWrite))) > 20);
    assert!(at_every_operation(4, |at| check_restart(4, (at, Fault::ShortWrite))) > 20);
}

#[test]
fn a_full_disk_at_any_operation_refuses_some_commands_and_later_ones_work() {
    let touched = at_every_operation(5, |at| {
        let Left { trial, disk, store } = run(5, Some((at, Fault::NoSpace)))?;
        let store = store.expect("opening an empty directory needs no room");
        assert!(!store.stats().poisoned, "a full disk poisons nothing");
        assert!(
            trial.unknown.is_empty(),
            "every command was answered for certain"
        );
        let refused = trial.sent.iter().any(|s| {
            matches!(
                &s.known,
                KnownResult::Answered(Err(Refusal::NoSpace { .. }))
            )
        });
        let image: Arc<dyn Storage> = Arc::new(disk.crash());
        drop(store);
        recover(trial, &image)?;
        Ok(refused)
    });
    assert!(
        touched > 10,
        "only {touched} of the runs were refused for want of room"
    );
}

#[test]
fn a_second_crash_while_the_first_is_being_recovered_from_loses_nothing_either() {
    let Left { trial, disk, store } = run(6, Some((30, Fault::Crash))).unwrap();
    drop(store);
    let files = disk.crash().files();
    for (at, fault) in (0..12).flat_map(|at| {
        [
            (at, Fault::Crash),
            (at, Fault::TornWrite),
            (at, Fault::FailedSync),
        ]
    }) {
        let disk = FaultyStorage::with_files(files.clone(), Some((at, fault)));
        drop(trial.open(Arc::new(disk.clone())));
        let image: Arc<dyn Storage> = Arc::new(disk.crash());
        recover(trial.clone(), &image).unwrap_or_else(|e| panic!("{fault:?} at {at}: {e}"));
    }
}
