//! The fuzz targets as an ordinary test: every seed of `fuzz/corpus`, and mutations of them that
//! are the same on every machine. A panic is the failure; it names the input.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mutation;
mod seeds;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::mutation::Mutator;

/// Mutated inputs per target.
const MUTATIONS: usize = 20_000;

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus")).join(target)
}

/// The seeds in the order of their names.
fn read(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(corpus(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files
        .iter()
        .map(|path| (name(path), fs::read(path).unwrap()))
        .collect()
}

fn run(entry: fn(&[u8]), what: &str, input: &[u8]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| entry(input)));
    assert!(outcome.is_ok(), "{what} panics on {}", hex::encode(input));
}

/// Runs a target on its seeds and on mutations of them. Seeds that come from golden data must be
/// there.
fn smoke(target: &str, entry: fn(&[u8]), generated: Vec<(String, Vec<u8>)>) {
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(corpus(target)).unwrap();
        for (name, bytes) in &generated {
            fs::write(corpus(target).join(name), bytes).unwrap();
        }
    }
    let seeds = read(target);
    for expected in generated {
        assert!(
            seeds.contains(&expected),
            "fuzz/corpus/{target}/{} is stale: UPDATE=1 writes it",
            expected.0
        );
    }
    assert!(seeds.len() > 3, "{target} has only {} seeds", seeds.len());
    for (name, bytes) in &seeds {
        run(entry, &format!("{target} on seed {name}"), bytes);
    }
    let mut mutator = Mutator::new(seeds.into_iter().map(|(_, bytes)| bytes).collect());
    for number in 0..MUTATIONS {
        run(
            entry,
            &format!("{target} on mutation {number}"),
            mutator.next(),
        );
    }
}

fn with_true_length(frame: &[u8]) -> Vec<u8> {
    let payload = u32::try_from(frame.len().saturating_sub(16)).unwrap();
    [
        &payload.to_le_bytes()[..],
        frame.get(4..).unwrap_or_default(),
    ]
    .concat()
}

#[test]
fn detector() {
    smoke(
        "detector",
        turnkeep_session::detector::fuzz::play_any,
        Vec::new(),
    );
}

#[test]
fn broker_codec() {
    let seeds = turnkeep_wire::broker::roundtrip::sample_bodies();
    smoke(
        "broker_codec",
        turnkeep_wire::broker::roundtrip::check_body,
        seeds,
    );
}

#[test]
fn frame_decode() {
    // A mutation seldom keeps a frame's length true: give it also with the length mended.
    let entry = |bytes: &[u8]| {
        turnkeep_wire::roundtrip::check_frame(bytes);
        turnkeep_wire::roundtrip::check_frame(&with_true_length(bytes));
    };
    smoke("frame_decode", entry, seeds::frames());
}

#[test]
fn projection() {
    smoke(
        "projection",
        turnkeep_store::projection::fuzz::project_any,
        seeds::payloads(),
    );
}

#[test]
fn registry_bundle() {
    smoke(
        "registry_bundle",
        turnkeep_store::registry::fuzz::check_any,
        seeds::bundles(),
    );
}

#[test]
fn http_query() {
    smoke(
        "http_query",
        turnkeep_server::http::query::parse_any,
        seeds::queries(),
    );
}

#[test]
fn ledger_read() {
    smoke(
        "ledger_read",
        turnkeep_ledger::fuzz::read_any,
        turnkeep_ledger::fuzz::samples(),
    );
}

#[test]
fn log_recovery() {
    smoke("log_recovery", turnkeep_journal::recover_any, seeds::logs());
}
