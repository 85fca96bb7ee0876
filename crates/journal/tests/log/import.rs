//! Raw frames: out as a stream, in again, the same log.

use std::sync::Arc;

use turnkeep_journal::{
    AppendError, FileLog, Frame, Log, LogOptions, MemoryStorage, Position, read_frame,
};

use crate::support::{append, goes_on, log_of, numbers, open, options, os_options};

fn exported(n: u64) -> Vec<u8> {
    let (log, _) = open(&MemoryStorage::with_files(log_of(n, options())));
    log.reader()
        .frames_from(Position(1))
        .flat_map(|frame| frame.unwrap().raw().to_vec())
        .collect()
}

fn frames(mut stream: &[u8]) -> Vec<Frame> {
    std::iter::from_fn(|| read_frame(&mut stream).unwrap()).collect()
}

#[test]
fn an_imported_log_is_the_same_log() {
    let stream = exported(12);
    for options in [options(), os_options()] {
        let disk = MemoryStorage::new();
        let (mut log, _) = FileLog::open(Arc::new(disk.clone()), options).unwrap();
        for frame in frames(&stream) {
            log.append_raw(&frame).unwrap();
        }
        log.sync().unwrap();
        assert_eq!(log.reader().last_durable(), Position(12));
        let again: Vec<u8> = log
            .reader()
            .frames_from(Position(1))
            .flat_map(|frame| frame.unwrap().raw().to_vec())
            .collect();
        assert_eq!(again, stream);
        append(&mut log, [13]);
        assert_eq!(numbers(&log), (1..=13).collect::<Vec<_>>());
        drop(log);
        goes_on(&disk);
    }
}

#[test]
fn only_the_next_frame_of_the_same_store_is_taken() {
    let frames = frames(&exported(4));
    let refuses = |log: &mut FileLog, frame: &Frame| {
        let last = log.reader().last_position();
        assert!(matches!(
            log.append_raw(frame),
            Err(AppendError::Poisoned(_))
        ));
        assert_eq!(log.reader().last_position(), last);
    };
    let (mut log, _) = open(&MemoryStorage::new());
    refuses(&mut log, &frames[1]);
    log.append_raw(&frames[0]).unwrap();
    refuses(&mut log, &frames[0]);
    refuses(&mut log, &frames[2]);
    log.append_raw(&frames[1]).unwrap();
    assert_eq!(numbers(&log), [1, 2]);

    let other = LogOptions {
        store_id_if_new: [1; 16],
        ..options()
    };
    let (mut log, _) = FileLog::open(Arc::new(MemoryStorage::new()), other).unwrap();
    refuses(&mut log, &frames[0]);

    let (mut log, _) = open(&MemoryStorage::new());
    append(&mut log, [3]);
    refuses(&mut log, &frames[1]);
}

#[test]
fn a_stream_cut_or_flipped_anywhere_is_an_error() {
    let stream = exported(3);
    let ends: Vec<usize> = frames(&stream)
        .iter()
        .scan(0, |end, f| {
            *end += f.raw().len();
            Some(*end)
        })
        .collect();
    let read = |mut stream: &[u8]| loop {
        match read_frame(&mut stream) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    };
    for cut in 1..stream.len() {
        assert_eq!(read(&stream[..cut]), ends.contains(&cut), "cut at {cut}");
    }
}
