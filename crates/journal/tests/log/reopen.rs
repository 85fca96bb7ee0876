//! Open, write, drop, reopen: equal.

use std::sync::Arc;

use turnkeep_journal::{FileLog, FileStorage, Log, LogOptions, MemoryStorage, Position, Storage};

use crate::support::{
    SEGMENT_BYTES, append, batch_of, content, content_of, goes_on, log_of, numbers, open, options,
    sound,
};

fn survives(storage: &(impl Storage + Clone + 'static)) {
    let (mut log, recovered) = open(storage);
    assert_eq!(
        (recovered.torn, recovered.store_id),
        (None, *b"the store's name")
    );
    assert_eq!(log.reader().last_position(), Position(0));
    let acks = append(&mut log, 1..=30);
    assert!(
        acks.iter()
            .enumerate()
            .all(|(at, ack)| ack.position.0 == at as u64 + 1)
    );
    let held: Vec<u64> = (1..=30).collect();
    assert_eq!(numbers(&log), held);
    let locators: Vec<_> = acks.iter().flat_map(|ack| ack.locators.clone()).collect();
    drop(log);

    let other_id = LogOptions {
        store_id_if_new: [9; 16],
        ..options()
    };
    let (log, recovered) = FileLog::open(Arc::new(storage.clone()), other_id).unwrap();
    assert_eq!(
        (recovered.torn, recovered.store_id),
        (None, *b"the store's name")
    );
    assert_eq!(numbers(&log), held);
    let found: Vec<_> = log
        .reader()
        .frames_from(Position(1))
        .flat_map(|frame| frame.unwrap().blobs)
        .map(|blob| blob.locator)
        .collect();
    // The last frame was in doubt and has moved; every other blob is where its ack said.
    let moved = acks.last().unwrap().locators.len();
    assert_eq!(
        found[..found.len() - moved],
        locators[..locators.len() - moved]
    );
    drop(log);
    assert_eq!(sound(storage), 30);
    goes_on(storage);
}

#[test]
fn what_was_written_to_memory_is_there_again() {
    survives(&MemoryStorage::new());
}

#[test]
fn what_was_written_to_files_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    survives(&FileStorage::new(dir.path()));
}

#[test]
fn the_log_rotates_and_counts_its_bytes() {
    let disk = MemoryStorage::new();
    let (mut log, _) = open(&disk);
    append(&mut log, 1..=30);
    let used = log.reader().bytes_used();
    drop(log);
    let mut files = disk.files();
    files.retain(|_, bytes| bytes.iter().any(|&b| b != 0));
    assert!(files.len() > 5, "{} segments", files.len());
    let sealed: u64 = files
        .values()
        .rev()
        .skip(1)
        .map(|bytes| bytes.len() as u64)
        .sum();
    assert!(
        files
            .values()
            .all(|bytes| bytes.len() as u64 <= SEGMENT_BYTES)
    );
    assert!(used > sealed && used <= sealed + SEGMENT_BYTES);
    for _ in 0..3 {
        let (log, _) = open(&disk);
        // The doubtful frame moves to a segment with a header of its own each time.
        let again = log.reader().bytes_used();
        assert!(
            again >= used && again <= used + 3 * 64,
            "{used} then {again}"
        );
    }
}

#[test]
fn a_frame_larger_than_a_segment_gets_a_segment_of_its_own() {
    let disk = MemoryStorage::new();
    let (mut log, _) = open(&disk);
    let mut large = content(2);
    large.blobs[0] = vec![5; usize::try_from(SEGMENT_BYTES).unwrap() * 7];
    append(&mut log, [1]);
    let appended = log.append(&batch_of(&large)).unwrap();
    append(&mut log, [3, 4]);
    let check = |log: &FileLog| {
        assert_eq!(log.reader().last_position(), Position(4));
        let frame = log
            .reader()
            .frames_from(appended.position)
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(content_of(&frame, &log.reader()), large);
        let last = log
            .reader()
            .frames_from(Position(4))
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(content_of(&last, &log.reader()), content(4));
    };
    check(&log);
    drop(log);
    let (log, recovered) = open(&disk);
    assert_eq!(recovered.torn, None);
    check(&log);
}

#[test]
fn a_spare_segment_is_no_part_of_the_log() {
    let mut files = log_of(4, options());
    let spare = format!("log/{:010}.seg", files.len() + 1);
    files.insert(spare.clone(), vec![0; 1536]);
    let disk = MemoryStorage::with_files(files);
    let (log, recovered) = open(&disk);
    assert_eq!(recovered.torn, None);
    assert_eq!(numbers(&log), [1, 2, 3, 4]);
    drop(log);
    goes_on(&disk);
}

#[test]
fn a_known_end_is_gone_on_from_in_place() {
    let files = log_of(5, options());
    let disk = MemoryStorage::with_files(files.clone());
    let known = LogOptions {
        known_durable: Some(Position(5)),
        ..options()
    };
    let (mut log, _) = FileLog::open(Arc::new(disk.clone()), known).unwrap();
    assert_eq!(
        disk.files(),
        files,
        "opening a log that is known to be whole changes nothing"
    );
    append(&mut log, 6..=9);
    assert_eq!(numbers(&log), (1..=9).collect::<Vec<_>>());
    drop(log);
    goes_on(&disk);
}

#[test]
fn reading_from_the_middle_and_of_one_frame() {
    let (log, _) = open(&MemoryStorage::with_files(log_of(20, options())));
    for from in 1..=20 {
        let positions: Vec<u64> = log
            .reader()
            .frames_from(Position(from))
            .map(|frame| frame.unwrap().position.0)
            .collect();
        assert_eq!(positions, (from..=20).collect::<Vec<_>>());
        assert_eq!(
            log.reader()
                .frames_between(Position(from), Position(from))
                .count(),
            1
        );
    }
    assert_eq!(
        log.reader()
            .frames_between(Position(1), Position(u64::MAX))
            .filter(Result::is_err)
            .count(),
        1
    );
    assert_eq!(log.reader().frame_hash(Position(21)), None);
}

#[test]
fn stray_files_in_the_log_directory_are_left_alone() {
    let mut files = log_of(6, options());
    for name in ["1.seg", "+2.seg", "notes.txt", "0000000001.seg.bak"] {
        files.insert(format!("log/{name}"), b"something else".to_vec());
    }
    let disk = MemoryStorage::with_files(files);
    let (log, _) = open(&disk);
    assert_eq!(numbers(&log), (1..=6).collect::<Vec<_>>());
    assert!(disk.files().contains_key("log/1.seg"));
}
