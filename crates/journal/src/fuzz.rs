//! Recovery of arbitrary bytes: opens, inspects and reads them as a log. Fuzz targets call it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::{Batch, Stamp};
use crate::frame;
use crate::inspect::{Inspected, inspect};
use crate::log::{FileLog, Log, LogOptions, SyncPolicy};
use crate::segment::{self, SegmentHeader};
use crate::storage::MemoryStorage;
use crate::{Position, frame::FrameHeader};

const SEGMENTS_MAX: usize = 3;
const SEGMENT_BYTES: u64 = 4096;

/// Treats arbitrary bytes as a log. Each segment reaches from a segment's magic to the next. Runs
/// recovery on the bytes, and again with corrected checksums, so that the content behind the
/// checksums is tested too. Panics if recovery breaks an invariant.
pub fn recover_any(bytes: &[u8]) {
    let mut files = split_segments(bytes);
    recover_files(files.clone());
    for file in files.values_mut() {
        fix_segment(file);
    }
    recover_files(files);
}

fn split_segments(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let magic = segment::MAGIC;
    // The fuzzer has one input: each place that looks like the begin of a segment begins a file.
    let starts = bytes
        .windows(magic.len())
        .enumerate()
        .filter(|(_, window)| window == magic);
    let mut cuts: Vec<usize> = starts
        .map(|(at, _)| at)
        .filter(|&at| at > 0)
        .take(SEGMENTS_MAX - 1)
        .collect();
    cuts.insert(0, 0);
    cuts.push(bytes.len());
    let parts = cuts.windows(2).zip(1..);
    parts
        .map(|(cut, number)| (segment::file_name(number), bytes[cut[0]..cut[1]].to_vec()))
        .collect()
}

/// Corrects the checksums of a segment's header and of all frame headers.
fn fix_segment(file: &mut [u8]) {
    SegmentHeader::fix_checksums(file);
    for at in (segment::HEADER_BYTES..file.len()).step_by(8) {
        FrameHeader::fix_checksums(&mut file[at..]);
    }
}

fn recover_files(files: BTreeMap<String, Vec<u8>>) {
    let storage = Arc::new(MemoryStorage::with_files(files));
    if let Ok(inspection) = inspect(storage.clone()) {
        inspection.for_each(check_frame);
    }
    let options = LogOptions {
        segment_bytes: SEGMENT_BYTES,
        sync: SyncPolicy::EveryFrame,
        writer: 1,
        store_id_if_new: [1; 16],
        known_durable: None,
    };
    let Ok((mut log, _)) = FileLog::open(storage.clone(), options.clone()) else {
        return;
    };
    let whole = count_whole_frames(&log);
    read_all_blobs(&log);
    if !append_one_more(&mut log) {
        return;
    }
    drop(log);
    let Ok((log, recovered)) = FileLog::open(storage, options) else {
        return;
    };
    assert_eq!(recovered.torn, None, "a log that was mended stays whole");
    let kept = count_whole_frames(&log);
    assert!(kept >= whole, "frames that were shown are kept");
}

fn count_whole_frames(log: &FileLog) -> usize {
    let frames = log.reader().frames_from(Position(1));
    frames.take_while(Result::is_ok).count()
}

/// Reads every blob that a frame names. Damage is an error and never a panic.
fn read_all_blobs(log: &FileLog) {
    let reader = log.reader();
    for frame in log.reader().frames_from(Position(1)).flatten() {
        for blob in &frame.blobs {
            drop(reader.read_blob(blob.locator, blob.stored_len, blob.crc));
        }
    }
}

/// Appends a frame. Returns whether the log takes one.
fn append_one_more(log: &mut FileLog) -> bool {
    let mut batch = Batch::new();
    batch.restart(Stamp::default());
    batch.push_command(1, 1, b"one more");
    let last = log.reader().last_position();
    let Ok(appended) = log.append(&batch) else {
        return false;
    };
    assert_eq!(appended.position.0, last.0 + 1, "positions are dense");
    true
}

fn check_frame(inspected: Inspected) {
    if let Inspected::Frame { frame, .. } = inspected {
        let commands: usize = frame.commands().map(|command| command.body.len()).sum();
        assert!(
            commands <= frame.raw().len(),
            "commands lie within their frame"
        );
        (0..frame.blobs.len()).for_each(|blob| drop(frame.blob_bytes(blob)));
        drop(frame::read_frame(&mut &frame.raw()[..]));
    }
}
