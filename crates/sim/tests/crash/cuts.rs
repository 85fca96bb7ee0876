//! Truncates the log at every byte and opens it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use turnkeep_journal::MemoryStorage;
use turnkeep_sim::{Trial, check};
use turnkeep_store::OpenError;

const SEGMENT: &str = "log/0000000001.seg";

/// A log of one segment, with the model and the length of the log after each step.
struct Sample {
    trial: Trial,
    steps: Vec<Step>,
    /// As a power failure leaves them that took the file of acknowledged writes, which is never
    /// synced.
    killed: BTreeMap<String, Vec<u8>>,
    /// As a clean close leaves them.
    closed: BTreeMap<String, Vec<u8>>,
}

struct Step {
    end: usize,
    /// As it was then.
    trial: Trial,
}

fn sample() -> Sample {
    let mut trial = Trial::new(11);
    trial.options.segment_bytes = 96 << 10;
    trial.options.checkpoint_every_bytes = u64::MAX;
    let disk = MemoryStorage::new();
    let store = trial.open(Arc::new(disk.clone())).unwrap();
    let mut steps = Vec::new();
    for count in [6, 6, 1, 5, 1, 4, 6] {
        steps.push(Step {
            end: usize::try_from(store.log().bytes_used()).unwrap(),
            trial: trial.clone(),
        });
        trial.send_many(&store, count).unwrap();
    }
    let end = usize::try_from(store.log().bytes_used()).unwrap();
    steps.push(Step {
        end,
        trial: trial.clone(),
    });
    let mut killed = disk.files();
    assert!(
        end < killed[SEGMENT].len()
            && !killed.keys().any(|name| Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "ckpt"))
    );
    killed.retain(|name, _| !name.starts_with("index/"));
    store.close();
    Sample {
        trial,
        steps,
        killed,
        closed: disk.files(),
    }
}

/// The file with nothing after `cut`: shorter, or zeros as before it was written.
fn cut_files(
    files: &BTreeMap<String, Vec<u8>>,
    cut: usize,
    zeros: bool,
) -> BTreeMap<String, Vec<u8>> {
    let mut files = files.clone();
    let bytes = files.get_mut(SEGMENT).unwrap();
    let len = bytes.len();
    bytes.truncate(cut);
    if zeros {
        bytes.resize(len, 0);
    }
    files
}

fn check_cut(sample: &Sample, cut: usize, zeros: bool) {
    let disk = MemoryStorage::with_files(cut_files(&sample.killed, cut, zeros));
    let store = sample
        .trial
        .open(Arc::new(disk.clone()))
        .unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
    let whole = sample
        .steps
        .iter()
        .rposition(|step| step.end <= cut)
        .unwrap_or(0);
    let then = &sample.steps[whole].trial;
    // The commands of the step that was cut: some of them may be there, each as a whole.
    let later = sample
        .steps
        .get(whole + 1)
        .map_or(&[][..], |next| &next.trial.sent[then.sent.len()..]);
    let mut trial = sample.trial.rewind_to(then, later);
    trial
        .recover(&store)
        .unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
    let end = sample.steps[whole].end;
    let is_last = whole + 1 == sample.steps.len();
    if cut == end {
        assert_eq!(
            store.torn_tail(),
            None,
            "cut at {cut}, which is where a frame ends"
        );
    } else if end > 0 && cut < end + 64 && cut >= end + 8 && !is_last {
        assert!(
            store.torn_tail().is_some(),
            "cut at {cut}, within the header of a frame"
        );
    }
    if let Some(torn) = store.torn_tail() {
        assert!(
            disk.files().contains_key(&torn.copied_to),
            "cut at {cut}: it was copied aside"
        );
    }
    trial.unknown.clear();
    trial
        .send_one(&store)
        .unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
    drop(store);
    let store = trial.open(Arc::new(disk)).unwrap();
    trial
        .check(&store)
        .unwrap_or_else(|e| panic!("cut at {cut}, opened again: {e}"));
    assert_eq!(store.torn_tail(), None);
}

#[test]
fn a_log_cut_at_any_byte_of_its_tail_keeps_every_frame_before_the_cut() {
    let sample = sample();
    let end = sample.steps.last().unwrap().end;
    let tail = sample.steps[sample.steps.len() - 3].end;
    let cuts = (1..tail).step_by(53).chain(tail..=end);
    for cut in cuts {
        check_cut(&sample, cut, cut % 2 == 0);
    }
}

#[test]
fn a_cut_below_what_the_index_knows_to_be_durable_is_refused() {
    let sample = sample();
    let end = sample.steps.last().unwrap().end;
    for cut in (1..end - 8).step_by(17).chain(end - 64..end - 8) {
        let files = cut_files(&sample.closed, cut, cut % 2 == 0);
        let before = MemoryStorage::with_files(files.clone());
        match sample.trial.open(Arc::new(before.clone())) {
            Err(OpenError::Log(_) | OpenError::MissingFrames { .. } | OpenError::Read(_)) => {
                assert!(
                    before.files().get(SEGMENT) == files.get(SEGMENT),
                    "cut at {cut}: nothing is cut away"
                );
            }
            Err(other) => panic!("cut at {cut}: {other}"),
            Ok(store) => {
                let seen = sample.trial.read(&store).unwrap();
                check::replay_equals_live(&sample.trial.model.visible, &seen)
                    .unwrap_or_else(|e| panic!("cut at {cut} was served: {e}"));
            }
        }
    }
}

#[test]
fn a_log_that_is_gone_is_missed_by_its_index() {
    let sample = sample();
    let mut stranger = sample.trial.clone();
    stranger.options.random = [9; 32];
    let mut files = sample.closed.clone();
    files.retain(|name, _| !name.starts_with("log/"));
    for empty in [files.clone(), cut_files(&sample.closed, 0, true)] {
        let opened = stranger.open(Arc::new(MemoryStorage::with_files(empty)));
        assert!(
            opened.is_err(),
            "an empty store is served in the place of a lost one"
        );
    }
}
