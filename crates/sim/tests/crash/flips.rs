//! Flips one bit of every byte of a small store, with and without its index.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_sim::{Snapshot, Trial, check};
use turnkeep_store::salvage::{Report, Writers, verify};
use turnkeep_store::{OpenError, ReadError, Store};
use turnkeep_types::BlobHash;

type Files = BTreeMap<String, Vec<u8>>;

const LOG_BYTES_MAX: usize = 5000;

/// A small store of several segments, the state before its last step, and its files.
struct Sample {
    trial: Trial,
    before_last: Trial,
    files: Files,
}

fn sample_of(seed: u64) -> Option<Sample> {
    let mut trial = Trial::new(seed);
    trial.options.segment_bytes = 1024;
    trial.options.checkpoint_every_bytes = u64::MAX;
    let disk = MemoryStorage::new();
    let store = trial.open(Arc::new(disk.clone())).unwrap();
    for _ in 0..7 {
        trial.send_many(&store, 3).unwrap();
    }
    let before_last = trial.clone();
    let logged = store.stats().log_position;
    while store.stats().log_position == logged {
        trial.send_one(&store).unwrap();
    }
    store.close();
    let mut files = disk.files();
    files.retain(|_, bytes| bytes.iter().any(|&byte| byte != 0));
    let bytes: usize = files
        .iter()
        .filter(|(name, _)| is_log(name))
        .map(|(_, bytes)| bytes.len())
        .sum();
    let facts = &trial.model.visible;
    let fits = bytes <= LOG_BYTES_MAX && facts.turns.len() > 4 && facts.contexts.len() > 1;
    fits.then_some(Sample {
        trial,
        before_last,
        files,
    })
}

fn sample() -> Sample {
    (0..2000)
        .find_map(sample_of)
        .expect("some seed makes a store of this size")
}

fn is_log(name: &str) -> bool {
    name.starts_with("log/")
}

fn flip(files: &Files, name: &str, at: usize) -> Files {
    let mut files = files.clone();
    files.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
    files
}

/// The blobs that cannot be read; any other must be served as it was put.
fn corrupt_blobs(store: &Store, facts: &Snapshot, what: &str) -> Vec<BlobHash> {
    let read = |hash: BlobHash| {
        store
            .blob(hash)
            .and_then(|payload| Ok(payload.raw()?.into_owned()))
    };
    let corrupt = facts.blobs.keys().filter(|&&hash| match read(hash) {
        Ok(raw) => {
            assert_eq!(BlobHash::of(&raw), hash, "{what}: wrong bytes were served");
            false
        }
        Err(ReadError::Corrupt { hash: named, .. }) => {
            assert_eq!(named, hash, "{what}: another blob is named");
            true
        }
        Err(other) => panic!("{what}: {other}"),
    });
    corrupt.copied().collect()
}

/// Whether the flip was named by anyone; panics if anything was served wrong.
fn check_flip(sample: &Sample, files: &Files, name: &str, at: usize) -> bool {
    let what = format!("bit {} of byte {at} of {name}", at % 8);
    let disk = MemoryStorage::with_files(flip(files, name, at));
    let report = verify(
        &(Arc::new(disk.clone()) as Arc<dyn Storage>),
        Writers::None,
        |_, _| {},
    )
    .unwrap();
    let verified = !report.is_sound() || report.torn.is_some();
    let store = match sample.trial.open(Arc::new(disk)) {
        Ok(store) => store,
        Err(OpenError::Log(_) | OpenError::Read(_) | OpenError::MissingFrames { .. }) => {
            assert!(
                verified,
                "{what}: the start is refused, but verify finds nothing"
            );
            return true;
        }
        Err(other) => panic!("{what}: {other}"),
    };
    if store.torn_tail().is_some() {
        check_torn(sample, &store, &what);
        return true;
    }
    let hashes = sample.trial.model.visible.blobs.keys().copied().collect();
    let seen =
        Snapshot::read_without_bytes(&store, &hashes).unwrap_or_else(|e| panic!("{what}: {e}"));
    let expected = Snapshot {
        bundles: BTreeMap::new(),
        ..sample.trial.model.visible.clone()
    };
    check::replay_equals_live(&expected, &seen).unwrap_or_else(|e| panic!("{what}: {e}"));
    let corrupt = corrupt_blobs(&store, &seen, &what);
    assert!(corrupt.len() <= 1, "{what}: more than one blob is lost");
    check_named(&report, &corrupt, &what);
    verified
}

/// Only the last frame may be taken for a torn one: all acked before it is there.
fn check_torn(sample: &Sample, store: &Store, what: &str) {
    let last = &sample.trial.sent[sample.before_last.sent.len()..];
    let mut trial = sample.trial.rewind_to(&sample.before_last, last);
    trial
        .recover(store)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
}

fn check_named(report: &Report, corrupt: &[BlobHash], what: &str) {
    let named: Vec<BlobHash> = report.bad_blobs.iter().map(|bad| bad.hash).collect();
    assert!(
        corrupt.iter().all(|hash| named.contains(hash)),
        "{what}: verify does not name the blob"
    );
}

/// Flips a bit of every byte of every segment. A flip that is not reported must be in padding.
fn check_log(sample: &Sample, files: &Files) {
    let frames = verify(
        &(Arc::new(MemoryStorage::with_files(files.clone())) as Arc<dyn Storage>),
        Writers::None,
        |_, _| {},
    );
    let padding_max = usize::try_from(frames.unwrap().frames).unwrap() * 7;
    let mut unnamed = 0;
    for (name, bytes) in files.iter().filter(|(name, _)| is_log(name)) {
        for (at, &byte) in bytes.iter().enumerate() {
            if !check_flip(sample, files, name, at) {
                assert_eq!(byte, 0, "byte {at} of {name} is no padding");
                unnamed += 1;
            }
        }
    }
    assert!(
        unnamed <= padding_max,
        "{unnamed} flips are named by nobody"
    );
}

#[test]
fn a_flipped_bit_of_the_log_is_named_and_never_served() {
    let sample = sample();
    let mut files = sample.files.clone();
    files.retain(|name, _| is_log(name));
    assert!(files.len() > 1, "there are several segments");
    check_log(&sample, &files);
}

#[test]
fn a_flipped_bit_of_the_log_is_named_and_never_served_with_an_index_either() {
    let sample = sample();
    assert!(sample.files.keys().any(|name| name.starts_with("index/")));
    check_log(&sample, &sample.files);
}

#[test]
fn a_flipped_bit_of_the_index_changes_nothing() {
    let sample = sample();
    for (name, bytes) in sample.files.iter().filter(|(name, _)| !is_log(name)) {
        for at in 0..bytes.len() {
            let disk = MemoryStorage::with_files(flip(&sample.files, name, at));
            let store = sample
                .trial
                .open(Arc::new(disk))
                .unwrap_or_else(|e| panic!("byte {at} of {name}: {e}"));
            sample
                .trial
                .check(&store)
                .unwrap_or_else(|e| panic!("byte {at} of {name}: {e}"));
        }
    }
}
