//! Runs random commands against the store and the reference model, and reopens the store in every
//! way in between.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use turnkeep_journal::MemoryStorage;
use turnkeep_sim::{Random, Trial, Violation};
use turnkeep_store::Store;

const SEEDS: u64 = 120;
/// Seeds that once found something.
///
/// 1285: an append over two contexts waited for one of them and was overtaken in the other.
const FOUND: [u64; 1] = [1285];
const STEPS: usize = 60;

type Files = BTreeMap<String, Vec<u8>>;

/// How a store comes to be opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reopening {
    /// It was closed, with a last checkpoint.
    Clean,
    /// It was killed: nothing was written after the last answer.
    Killed,
    /// It was closed, and its index is gone.
    IndexDeleted,
    /// It was closed, and its index is of an earlier moment.
    IndexOlder,
    /// It was closed, and the last file of its index is damaged.
    IndexDamaged,
}

const REOPENINGS: [Reopening; 5] = [
    Reopening::Clean,
    Reopening::Killed,
    Reopening::IndexDeleted,
    Reopening::IndexOlder,
    Reopening::IndexDamaged,
];

fn is_index(name: &str) -> bool {
    name.starts_with("index/")
}

/// The files that a store leaves for the next start. `older` are those of an earlier moment.
fn leave(store: Store, disk: &MemoryStorage, how: Reopening, older: &Files) -> Files {
    if how == Reopening::Killed {
        return disk.files();
    }
    store.close();
    drop(store);
    let mut files = disk.files();
    match how {
        Reopening::Clean | Reopening::Killed => {}
        Reopening::IndexDeleted => files.retain(|name, _| !is_index(name)),
        Reopening::IndexOlder => {
            files.retain(|name, _| !is_index(name));
            let index = older.iter().filter(|(name, _)| is_index(name));
            files.extend(index.map(|(name, bytes)| (name.clone(), bytes.clone())));
        }
        Reopening::IndexDamaged => {
            let last = files.iter_mut().rfind(|(name, _)| {
                Path::new(name.as_str())
                    .extension()
                    .is_some_and(|extension| extension == "ckpt")
            });
            if let Some((_, bytes)) = last {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 4;
            }
        }
    }
    files
}

fn run(seed: u64) -> Result<(), Violation> {
    let mut random = Random::new(seed);
    let mut trial = Trial::new(seed);
    let mut disk = MemoryStorage::new();
    let mut store = trial.open(Arc::new(disk.clone())).unwrap();
    let mut older = Files::new();
    for step in 0..STEPS {
        if random.one_in(3) {
            trial.send_many(&store, 2 + usize::try_from(random.below(7)).unwrap())?;
        } else {
            trial.send_one(&store)?;
        }
        if step % 10 == 5 {
            let how = *random.pick(&REOPENINGS).unwrap();
            let files = leave(store, &disk, how, &older);
            older.clone_from(&files);
            disk = MemoryStorage::with_files(files);
            store = trial
                .open(Arc::new(disk.clone()))
                .unwrap_or_else(|e| panic!("step {step} {how:?}: {e}"));
            trial
                .check(&store)
                .inspect_err(|_| eprintln!("step {step}, {how:?}"))?;
        }
    }
    Ok(())
}

#[test]
fn random_commands_do_what_the_model_says_across_every_kind_of_reopening() {
    for seed in (0..SEEDS).chain(FOUND) {
        run(seed).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
}

#[test]
fn every_kind_of_reopening_gives_the_state_that_was_live() {
    for (seed, how) in (100..).zip(REOPENINGS) {
        let mut trial = Trial::new(seed);
        let disk = MemoryStorage::new();
        let store = trial.open(Arc::new(disk.clone())).unwrap();
        let mut older = Files::new();
        for step in 0..40 {
            trial
                .send_many(&store, 4)
                .unwrap_or_else(|e| panic!("{how:?}: {e}"));
            if step == 25 {
                let copy = MemoryStorage::with_files(disk.files());
                trial.open(Arc::new(copy.clone())).unwrap().close();
                older = copy.files();
            }
        }
        assert!(
            older.keys().any(|name| is_index(name)),
            "there is an older index"
        );
        let live = trial.check(&store).unwrap();
        let files = leave(store, &disk, how, &older);
        let store = trial
            .open(Arc::new(MemoryStorage::with_files(files)))
            .unwrap();
        let replayed = trial
            .check(&store)
            .unwrap_or_else(|e| panic!("{how:?}: {e}"));
        assert_eq!(replayed.digest(), live.digest(), "{how:?}");
    }
}

#[test]
fn every_command_sent_again_after_a_replay_is_answered_as_the_model_says() {
    let mut trial = Trial::new(7);
    let disk = MemoryStorage::new();
    let store = trial.open(Arc::new(disk.clone())).unwrap();
    for _ in 0..20 {
        trial.send_many(&store, 5).unwrap();
    }
    let mut files = leave(store, &disk, Reopening::IndexDeleted, &Files::new());
    for _ in 0..2 {
        let store = trial
            .open(Arc::new(MemoryStorage::with_files(files.clone())))
            .unwrap();
        trial.check(&store).unwrap();
        drop(store);
        files.retain(|name, _| !is_index(name));
    }
    let store = trial
        .open(Arc::new(MemoryStorage::with_files(files)))
        .unwrap();
    trial.repeat_all(&store).unwrap();
    trial.check(&store).unwrap();
}
