//! A numbered workload. The content of batch `n` follows from `n`, so a test can tell which batch a
//! frame holds and whether it is complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{
    Appended, Batch, BlobRecord, FileLog, Frame, Inspected, Log, LogOptions, LogReader,
    MemoryStorage, Position, Recovered, Stamp, Storage, SyncPolicy, blob_crc, inspect,
};
use turnkeep_types::{BlobHash, Compression, Timestamp};

pub(crate) const SEGMENT_BYTES: u64 = 1536;

pub(crate) fn options() -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT_BYTES,
        sync: SyncPolicy::EveryFrame,
        writer: 7,
        store_id_if_new: *b"the store's name",
        known_durable: None,
    }
}

pub(crate) fn os_options() -> LogOptions {
    LogOptions {
        sync: SyncPolicy::Os,
        ..options()
    }
}

/// What a batch holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) created_at: u64,
    pub(crate) blobs: Vec<Vec<u8>>,
    pub(crate) commands: Vec<(u8, u8, Vec<u8>)>,
}

pub(crate) fn content(n: u64) -> Content {
    let byte = |i: u64| u8::try_from((n * 31 + i * 7) % 251).unwrap();
    let blob = |which: u64| {
        (0..(n * 53 + which * 211) % 400)
            .map(|i| byte(i + which))
            .collect()
    };
    let command = |which: u64| {
        (
            u8::try_from(which + 1).unwrap(),
            1,
            [&n.to_le_bytes()[..], &[9; 5]].concat(),
        )
    };
    Content {
        created_at: 1_000 + n,
        blobs: (0..n % 3).map(blob).collect(),
        commands: (0..=n % 2).map(command).collect(),
    }
}

pub(crate) fn batch_of(content: &Content) -> Batch {
    let mut batch = Batch::new();
    batch.restart(Stamp {
        created_at: Timestamp(content.created_at),
        marks: [1, 2],
    });
    for bytes in &content.blobs {
        batch.push_blob(BlobRecord {
            hash: BlobHash::of(bytes),
            raw_len: u32::try_from(bytes.len()).unwrap(),
            form: Compression::None,
            crc: blob_crc(bytes),
            bytes: Bytes::copy_from_slice(bytes),
        });
    }
    for (kind, version, body) in &content.commands {
        batch.push_command(*kind, *version, body);
    }
    batch
}

pub(crate) fn batch(n: u64) -> Batch {
    batch_of(&content(n))
}

pub(crate) fn open(storage: &(impl Storage + Clone + 'static)) -> (FileLog, Recovered) {
    FileLog::open(Arc::new(storage.clone()), options()).unwrap()
}

/// Appends batches and gives back their acks.
pub(crate) fn append(log: &mut FileLog, numbers: impl IntoIterator<Item = u64>) -> Vec<Appended> {
    numbers
        .into_iter()
        .map(|n| log.append(&batch(n)).unwrap())
        .collect()
}

/// A log of batches 1..=n, without the spare that may have been made ready.
pub(crate) fn log_of(n: u64, options: LogOptions) -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryStorage::new();
    let (mut log, _) = FileLog::open(Arc::new(disk.clone()), options).unwrap();
    append(&mut log, 1..=n);
    drop(log);
    let mut files = disk.files();
    files.retain(|_, bytes| bytes.iter().any(|&b| b != 0));
    files
}

/// Everything that a frame brings, its payloads fetched by their locators.
pub(crate) fn content_of(frame: &Frame, reader: &LogReader) -> Content {
    let blob = |entry: &turnkeep_journal::BlobEntry| {
        let bytes = reader
            .read_blob(entry.locator, entry.stored_len, entry.crc)
            .unwrap();
        assert_eq!(BlobHash::of(&bytes), entry.hash);
        assert_eq!(bytes.len(), entry.raw_len as usize);
        bytes.to_vec()
    };
    Content {
        created_at: frame.stamp.created_at.0,
        blobs: frame.blobs.iter().map(blob).collect(),
        commands: frame
            .commands()
            .map(|command| (command.kind, command.version, command.body.to_vec()))
            .collect(),
    }
}

/// The numbers of the batches that the log holds. Checks every frame: all of its content, its place
/// in the chain and in the sequence.
pub(crate) fn numbers(log: &FileLog) -> Vec<u64> {
    let reader = log.reader();
    let (mut hash, mut position, mut sequence) = ([0; 32], 0, 0);
    let mut numbers = Vec::new();
    for frame in log.reader().frames_from(Position(1)) {
        let frame = frame.unwrap();
        position += 1;
        assert_eq!((frame.position.0, frame.prev_hash), (position, hash));
        assert_eq!(frame.first_sequence, sequence);
        assert_eq!(reader.frame_hash(frame.position), Some(frame.hash));
        let body = frame.commands().next().unwrap().body;
        let n = u64::from_le_bytes(body[..8].try_into().unwrap());
        assert_eq!(content_of(&frame, &reader), content(n));
        numbers.push(n);
        hash = frame.hash;
        sequence += frame.commands().count() as u64;
    }
    assert_eq!(reader.last_position().0, position);
    numbers
}

/// The log can be written and opened again as if nothing had happened.
pub(crate) fn goes_on(storage: &(impl Storage + Clone + 'static)) {
    let (mut log, _) = open(storage);
    let mut expected = numbers(&log);
    for n in [501, 502, 503] {
        let appended = log.append(&batch(n)).unwrap();
        expected.push(n);
        assert_eq!(appended.position.0, expected.len() as u64);
    }
    assert_eq!(numbers(&log), expected);
    drop(log);
    let (log, recovered) = open(storage);
    assert_eq!(recovered.torn, None);
    assert_eq!(numbers(&log), expected);
    sound(storage);
}

/// An inspection finds nothing wrong; gives the number of frames.
pub(crate) fn sound(storage: &(impl Storage + Clone + 'static)) -> usize {
    let mut frames = 0;
    for inspected in inspect(Arc::new(storage.clone())).unwrap() {
        match inspected {
            Inspected::Frame { frame, .. } => {
                frames += 1;
                assert_eq!(frame.position.0, frames as u64);
                assert!((0..frame.blobs.len()).all(|blob| frame.blob_bytes(blob).is_some()));
            }
            Inspected::Damage(damage) => panic!("{damage:?}"),
        }
    }
    frames
}

/// Where a frame is, and how long it is without its padding.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) position: u64,
    pub(crate) file: String,
    pub(crate) offset: usize,
    /// Where the payloads begin, and where they end.
    pub(crate) data: usize,
    pub(crate) end: usize,
    pub(crate) hash: [u8; 32],
}

/// The places of all frames of a sound log.
pub(crate) fn places(files: &BTreeMap<String, Vec<u8>>) -> Vec<Place> {
    let storage = MemoryStorage::with_files(files.clone());
    let place = |inspected| match inspected {
        Inspected::Frame {
            frame,
            file,
            offset,
        } => {
            let word = |at: usize| {
                u32::from_le_bytes(frame.raw()[at..at + 4].try_into().unwrap()) as usize
            };
            let offset = usize::try_from(offset).unwrap();
            let data = offset + 128 + word(8);
            let end = data + word(12);
            Place {
                position: frame.position.0,
                file,
                offset,
                data,
                end,
                hash: frame.hash,
            }
        }
        Inspected::Damage(damage) => panic!("{damage:?}"),
    };
    inspect(Arc::new(storage)).unwrap().map(place).collect()
}

/// How many frames an inspection finds; all that it may find wrong is a torn end.
pub(crate) fn sound_or_torn(storage: &(impl Storage + Clone + 'static)) -> usize {
    let mut frames = 0;
    for inspected in inspect(Arc::new(storage.clone())).unwrap() {
        match inspected {
            Inspected::Frame { .. } => frames += 1,
            Inspected::Damage(damage) => assert!(damage.at_end, "{damage:?}"),
        }
    }
    frames
}
