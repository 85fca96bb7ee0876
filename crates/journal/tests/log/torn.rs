//! Truncates the log at every byte and opens it.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnkeep_journal::{
    FileLog, Inspected, LogOptions, MemoryStorage, OpenError, Position, inspect,
};

use crate::support::{Place, goes_on, log_of, numbers, open, options, places};

const FRAMES: u64 = 9;

/// A log, its last file, and the places of its last two frames. They share a segment.
fn sample() -> (BTreeMap<String, Vec<u8>>, String, [Place; 2]) {
    let files = log_of(FRAMES, options());
    let places = places(&files);
    let [.., before, last] = &places[..] else {
        panic!("too few frames")
    };
    assert_eq!(before.file, last.file);
    (
        files.clone(),
        last.file.clone(),
        [before.clone(), last.clone()],
    )
}

/// `inspected` tells whether the tear shows without a look at the payloads.
fn check(
    files: BTreeMap<String, Vec<u8>>,
    name: &str,
    (whole, torn_from): (u64, Option<usize>),
    inspected: bool,
    what: &str,
) {
    let rest = torn_from.map(|from| files[name][from..].to_vec());
    let disk = MemoryStorage::with_files(files);
    let at_end = inspect(Arc::new(disk.clone()))
        .unwrap()
        .filter_map(|inspected| match inspected {
            Inspected::Damage(damage) => Some((damage.at_end, damage.offset)),
            Inspected::Frame { .. } => None,
        });
    let at_end: Vec<_> = at_end.collect();
    let torn = torn_from
        .filter(|_| inspected)
        .map(|from| (true, from as u64));
    assert_eq!(at_end, Vec::from_iter(torn), "{what}");
    let (log, recovered) = open(&disk);
    assert_eq!(numbers(&log), (1..=whole).collect::<Vec<_>>(), "{what}");
    drop(log);
    assert_eq!(recovered.torn.is_some(), torn_from.is_some(), "{what}");
    if let (Some(torn), Some(mut rest)) = (recovered.torn, rest) {
        let used = rest
            .iter()
            .rposition(|&b| b != 0)
            .map_or(0, |last| last + 1);
        rest.truncate(used);
        assert_eq!(
            (&torn.file[..], torn.offset, torn.bytes),
            (name, torn_from.unwrap() as u64, used as u64)
        );
        assert_eq!(disk.files()[&torn.copied_to], rest, "{what}");
    }
    goes_on(&disk);
}

/// What is left when the last file ends at `cut`: the whole frames, and where a torn one begins.
fn expect(
    cut: usize,
    [before, last]: &[Place; 2],
    is_zero: impl Fn(usize) -> bool,
) -> (u64, Option<usize>) {
    let (whole, from) = if cut < before.end {
        (FRAMES - 2, before.offset)
    } else if cut < last.end {
        (FRAMES - 1, last.offset)
    } else {
        (FRAMES, cut)
    };
    (whole, (from..cut).any(|at| !is_zero(at)).then_some(from))
}

#[test]
fn a_file_cut_at_any_byte_of_its_last_two_frames() {
    let (files, name, places) = sample();
    let content = files[&name].clone();
    for cut in places[0].offset..places[1].end {
        let mut files = files.clone();
        files.insert(name.clone(), content[..cut].to_vec());
        let (whole, torn) = expect(cut, &places, |at| content[at] == 0);
        // Without its padding, a frame is cut off, too.
        let padding = cut >= places[0].end && cut < places[1].offset;
        let (whole, torn) = if padding {
            (FRAMES - 2, Some(places[0].offset))
        } else {
            (whole, torn)
        };
        check(files, &name, (whole, torn), true, &format!("cut at {cut}"));
    }
}

#[test]
fn a_write_that_got_to_any_byte_of_the_last_two_frames() {
    let (files, name, places) = sample();
    let content = files[&name].clone();
    for cut in places[0].offset..=places[1].end {
        let mut torn = content.clone();
        torn[cut..].fill(0);
        let (whole, mut from) = expect(cut, &places, |at| content[at] == 0);
        // A frame whose missing bytes are zeros anyway is whole.
        let next = if cut < places[0].end {
            &places[0]
        } else {
            &places[1]
        };
        let complete = content[cut.min(next.end)..next.end].iter().all(|&b| b == 0);
        let whole = if complete && cut > next.offset {
            next.position
        } else {
            whole
        };
        if complete && cut > next.offset {
            from = None;
        }
        let mut files = files.clone();
        files.insert(name.clone(), torn);
        check(
            files,
            &name,
            (whole, from),
            cut < next.data,
            &format!("written up to {cut}"),
        );
    }
}

#[test]
fn the_first_write_of_a_segment_torn_at_any_byte() {
    let files = log_of(FRAMES, options());
    let mut places = places(&files);
    let last_file = places.last().unwrap().file.clone();
    places.retain(|place| place.file == last_file);
    let first = &places[0];
    assert!(first.position > 1);
    let content = &files[&last_file];
    for cut in 1..first.data {
        for backwards in [false, true] {
            let mut torn = content.clone();
            torn[first.end..].fill(0);
            if backwards {
                torn[..cut].fill(0);
            } else {
                torn[cut..].fill(0);
            }
            let mut files = files.clone();
            files.insert(last_file.clone(), torn);
            let disk = MemoryStorage::with_files(files);
            let (log, recovered) = open(&disk);
            assert_eq!(
                numbers(&log),
                (1..first.position).collect::<Vec<_>>(),
                "{cut} {backwards}"
            );
            // A header with nothing behind it is no torn frame.
            let header_only = !backwards && cut <= 64 && content[cut..64].iter().all(|&b| b == 0);
            assert_eq!(recovered.torn.is_some(), !header_only, "{cut} {backwards}");
            drop(log);
            if cut % 16 == 0 {
                goes_on(&disk);
            }
        }
    }
}

#[test]
fn a_tail_that_a_checkpoint_knows_to_be_durable_is_damage() {
    let (files, name, places) = sample();
    for (place, cut) in places
        .iter()
        .flat_map(|place| [(place, place.offset + 9), (place, place.end - 1)])
    {
        let mut files = files.clone();
        files.get_mut(&name).unwrap()[cut..].fill(0);
        let disk = MemoryStorage::with_files(files.clone());
        let known = LogOptions {
            known_durable: Some(Position(place.position)),
            ..options()
        };
        match FileLog::open(Arc::new(disk.clone()), known) {
            Err(OpenError::Damaged { file, offset, .. }) => {
                assert_eq!((file, offset), (name.clone(), place.offset as u64));
                assert_eq!(
                    disk.files(),
                    files,
                    "a log that is refused is left as it was"
                );
            }
            // Payloads that are known to be durable are checked when they are read.
            Ok((log, _)) if cut > place.data => {
                let blobs = log
                    .reader()
                    .frames_between(Position(place.position), Position(place.position))
                    .next()
                    .unwrap()
                    .unwrap()
                    .blobs;
                assert!(blobs.iter().any(|b| {
                    log.reader()
                        .read_blob(b.locator, b.stored_len, b.crc)
                        .is_err()
                }));
            }
            other => panic!("{:?}", other.map(|(_, recovered)| recovered)),
        }
    }
}

#[test]
fn two_torn_tails_of_one_segment_are_both_kept() {
    let mut files = BTreeMap::new();
    for text in ["first tear", "second tear"] {
        files.insert("log/0000000001.seg".to_owned(), text.as_bytes().to_vec());
        let disk = MemoryStorage::with_files(files);
        let (_, recovered) = open(&disk);
        files = disk.files();
        assert_eq!(files[&recovered.torn.unwrap().copied_to], text.as_bytes());
    }
    assert_eq!(
        files
            .values()
            .filter(|bytes| bytes.ends_with(b"tear"))
            .count(),
        2
    );
}
