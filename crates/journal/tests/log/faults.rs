//! Injects every fault at every operation of a workload, and again during the recovery from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnkeep_journal::storage::Fault;
use turnkeep_journal::{
    AppendError, FaultyStorage, FileLog, Log, LogOptions, MemoryStorage, SyncPolicy,
};

use crate::support::{batch, goes_on, numbers, open, options, os_options};

const FAULTS: [Fault; 6] = [
    Fault::TornWrite,
    Fault::TornWriteBackwards,
    Fault::FailedSync,
    Fault::ShortWrite,
    Fault::NoSpace,
    Fault::Crash,
];

/// The replies that a workload got.
#[derive(Debug, Default)]
struct Replies {
    /// Batches that were acknowledged as durable.
    durable: Vec<u64>,
    /// Those, and others that were in the log when it ended.
    appended: Vec<u64>,
    poisoned: bool,
}

/// Opens, appends some batches, and opens again to append more.
fn work(disk: &FaultyStorage, options: &LogOptions) -> Replies {
    let mut told = Replies::default();
    for part in [1..=7, 8..=14] {
        let Ok((mut log, _)) = FileLog::open(Arc::new(disk.clone()), options.clone()) else {
            break;
        };
        // What was written and not acked before may be there, too: then it stays for good.
        told.durable = numbers(&log);
        told.appended.clone_from(&told.durable);
        for n in part {
            match log.append(&batch(n)) {
                Ok(_) => told.appended.push(n),
                Err(AppendError::NoSpace { .. }) => continue,
                Err(AppendError::Poisoned(_)) => told.poisoned = true,
            }
            let synced =
                options.sync == SyncPolicy::EveryFrame || (n % 4 == 0 && log.sync().is_ok());
            if synced && !told.poisoned {
                told.durable.clone_from(&told.appended);
            }
        }
        if told.poisoned {
            let refused = log.append(&batch(99));
            assert!(
                matches!(refused, Err(AppendError::Poisoned(_))),
                "poison lasts until the log is opened again"
            );
            break;
        }
    }
    told
}

/// The log holds all acknowledged batches, and possibly complete batches that were tried after
/// them.
fn check(held: &[u64], told: &Replies, what: &str) {
    assert!(
        held.starts_with(&told.durable),
        "{what}: {held:?} after {told:?}"
    );
    let more = &held[told.durable.len()..];
    let last = told.durable.last().copied().unwrap_or(0);
    let in_order = more.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(
        in_order && more.iter().all(|&n| n > last && n <= 14),
        "{what}: {held:?} after {told:?}"
    );
}

fn every_fault_at_every_operation(
    options: &LogOptions,
    mut after: impl FnMut(&FaultyStorage, &Replies, &str),
) {
    for fault in FAULTS {
        for at in 0.. {
            let disk = FaultyStorage::new(Some((at, fault)));
            let told = work(&disk, options);
            after(&disk, &told, &format!("{fault:?} at operation {at}"));
            if disk.operations() <= at {
                assert!(at > 30, "{fault:?} had only {at} operations to strike at");
                assert_eq!(told.appended, (1..=14).collect::<Vec<_>>());
                break;
            }
        }
    }
}

#[test]
fn what_was_acked_survives_a_power_failure() {
    every_fault_at_every_operation(&options(), |disk, told, what| {
        let left = disk.crash();
        let (log, _) = open(&left);
        check(&numbers(&log), told, what);
        drop(log);
        goes_on(&left);
    });
}

#[test]
fn what_was_synced_survives_a_power_failure_under_the_os_policy() {
    every_fault_at_every_operation(&os_options(), |disk, told, what| {
        let left = disk.crash();
        let (log, _) = open(&left);
        check(&numbers(&log), told, what);
        drop(log);
        goes_on(&left);
    });
}

#[test]
fn a_restart_without_a_power_failure_makes_durable_what_it_shows() {
    let survives = [Fault::FailedSync, Fault::ShortWrite, Fault::NoSpace];
    for (fault, options) in survives
        .into_iter()
        .flat_map(|fault| [(fault, options()), (fault, os_options())])
    {
        for at in 0.. {
            let disk = FaultyStorage::new(Some((at, fault)));
            let mut told = work(&disk, &options);
            let what = format!("{fault:?} at operation {at}");
            let ended = disk.operations() <= at;
            // Killed, not cut off: all that was handed over is still seen.
            told.durable.clone_from(&told.appended);
            // A fault that found nothing to strike yet strikes now: then the next opening must do.
            let opened = FileLog::open(Arc::new(disk.clone()), options.clone());
            let log = opened.map_or_else(|_| open(&disk).0, |(log, _)| log);
            let shown = numbers(&log);
            check(&shown, &told, &what);
            drop(log);
            let left = disk.crash();
            let (log, _) = open(&left);
            assert_eq!(
                numbers(&log),
                shown,
                "{what}: shown after the restart, lost by the crash after it"
            );
            drop(log);
            goes_on(&left);
            if ended {
                break;
            }
        }
    }
}

/// A disk as it is after a run that was killed: `frames` batches, none known to be durable but by
/// the records in the log.
fn killed(frames: u64, options: LogOptions) -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryStorage::new();
    let (mut log, _) = FileLog::open(Arc::new(disk.clone()), options).unwrap();
    for n in 1..=frames {
        log.append(&batch(n)).unwrap();
        if n == 3 {
            log.sync().unwrap();
        }
    }
    drop(log);
    disk.files()
}

#[test]
fn a_crash_while_recovering_loses_nothing_that_was_whole() {
    for options in [options(), os_options()] {
        for fault in FAULTS {
            for at in 0.. {
                let disk = FaultyStorage::with_files(killed(9, options.clone()), Some((at, fault)));
                drop(FileLog::open(Arc::new(disk.clone()), options.clone()));
                let what = format!("{fault:?} at operation {at} of an opening");
                let ended = disk.operations() <= at;
                let left = disk.crash();
                assert_eq!(crate::support::sound_or_torn(&left), 9, "{what}");
                let (log, _) = open(&left);
                assert_eq!(numbers(&log), (1..=9).collect::<Vec<_>>(), "{what}");
                drop(log);
                goes_on(&left);
                if ended {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_start_killed_between_copying_and_cutting_is_made_good_by_the_next() {
    // Os policy, several frames in doubt: the copy has some of them, and the first place all.
    let mut files = killed(9, os_options());
    files.retain(|_, bytes| bytes.iter().any(|&b| b != 0));
    let whole = MemoryStorage::with_files(files.clone());
    let (log, _) = FileLog::open(Arc::new(whole.clone()), os_options()).unwrap();
    drop(log);
    let after = whole.files();
    let (name, copy) = after
        .iter()
        .rev()
        .find(|(name, bytes)| !files.contains_key(*name) && bytes.iter().any(|&b| b != 0))
        .unwrap();
    for cut in (1..copy.len()).step_by(24) {
        let mut unfinished = files.clone();
        let mut part = copy.clone();
        part[cut..].fill(0);
        unfinished.insert(name.clone(), part);
        let disk = MemoryStorage::with_files(unfinished);
        let (log, _) = open(&disk);
        assert_eq!(
            numbers(&log),
            (1..=9).collect::<Vec<_>>(),
            "copied up to {cut}"
        );
        drop(log);
        goes_on(&disk);
    }
}

#[test]
fn a_crash_while_blank_segments_are_removed_leaves_no_gap() {
    let mut files = killed(9, options());
    files.retain(|name, _| name != "log/spare");
    let next = files.len() + 1;
    for number in [next, next + 1] {
        files.insert(format!("log/{number:010}.seg"), vec![0; 64]);
    }
    for at in 0.. {
        let disk = FaultyStorage::with_files(files.clone(), Some((at, Fault::Crash)));
        drop(FileLog::open(Arc::new(disk.clone()), options()));
        let (log, _) = open(&disk.crash());
        assert_eq!(numbers(&log), (1..=9).collect::<Vec<_>>(), "crash at {at}");
        if disk.operations() <= at {
            break;
        }
    }
}
