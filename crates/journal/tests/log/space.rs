//! A full disk: the log loses nothing, is not poisoned, and continues when there is space.

use std::io;
use std::sync::Arc;

use turnkeep_journal::storage::Fault;
use turnkeep_journal::{
    AppendError, FaultyStorage, FileLog, Log, LogOptions, MemoryStorage, Storage, StorageFile,
    SyncPolicy,
};

use crate::support::{append, batch, goes_on, numbers, open, options, os_options};

/// Appends until the fault strikes, then goes on; the batches that are in the log.
fn work(log: &mut FileLog, what: &str) -> Vec<u64> {
    let (mut held, mut refused) = (Vec::new(), 0);
    for n in 1..=20 {
        let (used, last) = (log.reader().bytes_used(), log.reader().last_position());
        match log.append(&batch(n)) {
            Ok(appended) => {
                held.push(n);
                assert_eq!(appended.position.0, held.len() as u64, "{what}");
            }
            Err(AppendError::NoSpace { .. }) => {
                refused += 1;
                assert_eq!(
                    (log.reader().bytes_used(), log.reader().last_position()),
                    (used, last),
                    "{what}"
                );
                assert_eq!(
                    log.reader().last_durable(),
                    last,
                    "{what}: what is left is synced"
                );
            }
            Err(poisoned) => panic!("{what}: {poisoned}"),
        }
        assert_eq!(numbers(log), held, "{what}");
    }
    assert!(refused <= 1, "{what}");
    held
}

#[test]
fn a_full_disk_refuses_one_batch_and_no_more() {
    for sync in [SyncPolicy::EveryFrame, SyncPolicy::Os] {
        let mut refusals = 0;
        for at in 0.. {
            let what = format!("no space at operation {at} under {sync:?}");
            let disk = FaultyStorage::new(Some((at, Fault::NoSpace)));
            let (mut log, _) =
                FileLog::open(Arc::new(disk.clone()), LogOptions { sync, ..options() }).unwrap();
            let held = work(&mut log, &what);
            log.sync().unwrap();
            let ended = disk.operations() <= at;
            drop(log);
            refusals += 20 - held.len();
            let left = disk.crash();
            let (log, recovered) = open(&left);
            assert_eq!(recovered.torn, None, "{what}");
            assert_eq!(numbers(&log), held, "{what}");
            drop(log);
            goes_on(&left);
            if ended {
                break;
            }
        }
        assert!(refusals > 20, "{refusals} refusals under {sync:?}");
    }
}

#[test]
fn a_full_disk_does_not_keep_a_log_from_being_opened() {
    let disk = FaultyStorage::new(None);
    let (mut log, _) = open(&disk);
    append(&mut log, [1, 2]);
    let full = FaultyStorage::with_files(disk.crash().files(), Some((0, Fault::NoSpace)));
    drop(log);
    // The very first thing that a start wants is room for the frame in doubt: it makes do with
    // little.
    let (mut log, _) = FileLog::open(Arc::new(full.clone()), os_options()).unwrap();
    assert_eq!(numbers(&log), [1, 2]);
    append(&mut log, [3]);
    assert_eq!(numbers(&log), [1, 2, 3]);
}

/// A disk with room for so many bytes of files.
#[derive(Clone)]
struct SmallDisk {
    files: MemoryStorage,
    capacity_bytes: u64,
}

impl SmallDisk {
    fn free_bytes(&self) -> u64 {
        let used: usize = self.files.files().values().map(Vec::len).sum();
        self.capacity_bytes.saturating_sub(used as u64)
    }
}

impl Storage for SmallDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        if len > self.free_bytes() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files.create(name, len)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.files.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }
}

#[test]
fn a_nearly_full_disk_takes_a_smaller_segment_and_says_how_much_is_needed() {
    let usual = LogOptions {
        segment_bytes: 64 << 20,
        ..options()
    };
    // After a restart there is no segment to go on with, and far less room than a whole one needs.
    let full = SmallDisk {
        files: MemoryStorage::new(),
        capacity_bytes: 3 << 20,
    };
    let (mut log, _) = FileLog::open(Arc::new(full.clone()), usual.clone()).unwrap();
    append(&mut log, 1..=20);
    drop(log);
    let (mut log, _) = FileLog::open(Arc::new(full.clone()), usual.clone()).unwrap();
    append(&mut log, 21..=40);
    assert_eq!(numbers(&log), (1..=40).collect::<Vec<_>>());
    drop(log);

    // With room for nothing the refusal names the bytes; with exactly those the write succeeds.
    let tiny = SmallDisk {
        files: MemoryStorage::new(),
        capacity_bytes: 10,
    };
    let (mut log, _) = FileLog::open(Arc::new(tiny.clone()), usual.clone()).unwrap();
    let Err(AppendError::NoSpace { needed_bytes }) = log.append(&batch(1)) else {
        panic!("it fits")
    };
    drop(log);
    let just_enough = SmallDisk {
        capacity_bytes: needed_bytes,
        ..tiny
    };
    let (mut log, _) = FileLog::open(Arc::new(just_enough), usual).unwrap();
    append(&mut log, [1]);
    assert!(matches!(
        log.append(&batch(2)),
        Err(AppendError::NoSpace { .. })
    ));
    assert_eq!(numbers(&log), [1]);
}
