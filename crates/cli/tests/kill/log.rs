//! A reader of the log's files that shares no code with the server: written from the format's
//! description, with its own checksum, its own chain and its own rules for heads and depths.
//!
//! It stops at the first bytes that are no frame, as a crash may leave them at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::writer::Told;

const SEGMENT_HEADER: usize = 64;
const FRAME_HEADER: usize = 128;

/// What the log amounts to.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) appends: Vec<Append>,
    /// Payloads by their hash, uncompressed and checked.
    pub(crate) payloads: BTreeMap<[u8; 32], Vec<u8>>,
    /// Heads by context; 0 for none.
    pub(crate) heads: Vec<u64>,
    turns: Vec<Turn>,
    keys: BTreeSet<(u64, Vec<u8>)>,
}

pub(crate) struct Append {
    pub(crate) context: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) turns: Vec<Turn>,
}

#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) id: u64,
    pub(crate) depth: u32,
    pub(crate) hash: [u8; 32],
    parent: u64,
}

impl Log {
    pub(crate) fn read(data: &Path) -> Self {
        let mut log = Self::default();
        let segments = segments(data);
        let mut next = 1;
        let mut chain = [0; 32];
        for (at, (first, path)) in segments.iter().enumerate() {
            assert_eq!(
                *first,
                next,
                "{} does not begin where the one before ends",
                path.display()
            );
            let until = segments.get(at + 1).map_or(u64::MAX, |(first, _)| *first);
            let file = File::open(path).unwrap();
            let mut offset = SEGMENT_HEADER as u64;
            while next < until
                && let Some(frame) = Frame::read(&file, offset)
            {
                assert_eq!(frame.position, next, "positions are dense");
                assert_eq!(frame.previous, chain, "the chain holds");
                log.apply(&frame);
                offset += frame.len;
                next += 1;
                chain = frame.hash;
            }
        }
        log
    }

    /// The turns from a context's root to its head.
    pub(crate) fn path(&self, context: u64) -> Vec<Told> {
        let mut path = Vec::new();
        let mut at = self.heads[index(context)];
        while at != 0 {
            let turn = self.turns[index(at)];
            path.push((turn.id, turn.depth, turn.hash));
            at = turn.parent;
        }
        path.reverse();
        path
    }

    fn apply(&mut self, frame: &Frame) {
        for (hash, payload) in &frame.blobs {
            let before = self.payloads.insert(*hash, payload.clone());
            assert!(before.is_none(), "a blob is in the log twice");
        }
        for (kind, body) in &frame.commands {
            match kind {
                1 => self.create(&mut Bytes(body)),
                2 => self.append(&mut Bytes(body), frame),
                other => panic!("nobody sent a command of kind {other}"),
            }
        }
    }

    fn create(&mut self, body: &mut Bytes<'_>) {
        let base = body.number();
        for _ in 0..2 * body.number() {
            body.counted();
        }
        assert!(
            self.keys.insert((0, body.counted().to_vec())),
            "a context is created twice by one key"
        );
        self.heads.push(base);
    }

    fn append(&mut self, body: &mut Bytes<'_>, frame: &Frame) {
        let flags = body.byte();
        assert_eq!(
            (flags, body.number()),
            (2, 1),
            "every append has a key and one part"
        );
        let key = body.counted().to_vec();
        let context = body.number();
        assert_eq!(body.byte(), 0, "nobody named a parent or expected a head");
        let head = self.heads[index(context)];
        assert_eq!(body.number(), head, "the parent is the head");
        let depth = u64::from(self.depth_after(head));
        assert_eq!(body.number(), depth, "the depth is the parent's plus one");
        let turns = (0..body.number())
            .map(|_| self.turn(context, body, frame))
            .collect();
        assert!(
            self.keys.insert((context, key.clone())),
            "a key is in the log twice"
        );
        self.appends.push(Append {
            context,
            key,
            turns,
        });
    }

    fn turn(&mut self, context: u64, body: &mut Bytes<'_>, frame: &Frame) -> Turn {
        assert_eq!(body.counted(), b"com.example.Note");
        assert_eq!(
            (body.number(), body.number()),
            (1, 1),
            "version and encoding"
        );
        let hash = match body.number() {
            0 => body.hash(),
            blob => frame.blobs[index(blob)].0,
        };
        assert_eq!(body.byte(), 0, "nobody gave a root");
        assert!(
            self.payloads.contains_key(&hash),
            "the payload is in the log before its turn"
        );
        let parent = self.heads[index(context)];
        let id = self.turns.len() as u64 + 1;
        let turn = Turn {
            id,
            depth: self.depth_after(parent),
            hash,
            parent,
        };
        self.turns.push(turn);
        self.heads[index(context)] = id;
        turn
    }

    fn depth_after(&self, parent: u64) -> u32 {
        if parent == 0 {
            0
        } else {
            self.turns[index(parent)].depth + 1
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap() - 1
}

/// The segments that hold frames: their first positions and files, in order.
fn segments(data: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(data.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "seg"))
        .collect();
    paths.sort();
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for (number, path) in (1_u64..).zip(paths) {
        let mut header = [0; SEGMENT_HEADER];
        let len = File::open(&path).unwrap().read_at(&mut header, 0).unwrap();
        if header[..len].iter().all(|&byte| byte == 0) {
            continue;
        }
        assert_eq!(&header[..8], b"TKSEG\0\0\x01", "{}", path.display());
        assert_eq!(
            u32_at(&header, 8),
            crc32c(&header[16..]),
            "{}",
            path.display()
        );
        assert_eq!(u64_at(&header, 32), number, "{}", path.display());
        assert_eq!(
            found.len() as u64,
            number - 1,
            "a blank segment is before {}",
            path.display()
        );
        found.push((u64_at(&header, 40), path));
    }
    found
}

struct Frame {
    len: u64,
    position: u64,
    previous: [u8; 32],
    hash: [u8; 32],
    blobs: Vec<([u8; 32], Vec<u8>)>,
    commands: Vec<(u8, Vec<u8>)>,
}

impl Frame {
    /// The frame at an offset; none if it is not whole.
    fn read(file: &File, offset: u64) -> Option<Self> {
        let mut header = vec![0; FRAME_HEADER];
        file.read_exact_at(&mut header, offset).ok()?;
        if &header[..4] != b"TKF1" || u32_at(&header, 4) != crc32c(&header[8..]) {
            return None;
        }
        let (meta_len, data_len) = (u32_at(&header, 8) as usize, u32_at(&header, 12) as usize);
        let mut rest = vec![0; meta_len + data_len];
        file.read_exact_at(&mut rest, offset + FRAME_HEADER as u64)
            .ok()?;
        let (meta, data) = rest.split_at(meta_len);
        if crc32c(meta) != u32_at(&header, 16) {
            return None;
        }
        let (mut meta_bytes, mut data_bytes) = (Bytes(meta), Bytes(data));
        let blobs = (0..u32_at(&header, 20))
            .map(|_| blob(&mut meta_bytes, &mut data_bytes))
            .collect::<Option<_>>()?;
        let commands = (0..u32_at(&header, 24))
            .map(|_| command(&mut meta_bytes))
            .collect();
        assert!(
            meta_bytes.0.is_empty() && data_bytes.0.is_empty(),
            "a frame has bytes left over"
        );
        Some(Self {
            len: ((FRAME_HEADER + meta_len + data_len) as u64).next_multiple_of(8),
            position: u64_at(&header, 32),
            previous: header[48..80].try_into().unwrap(),
            hash: *blake3::hash(&[&header[..], meta].concat()).as_bytes(),
            blobs,
            commands,
        })
    }
}

/// A blob's hash and uncompressed bytes; none if its bytes did not all reach the file.
fn blob(meta: &mut Bytes<'_>, data: &mut Bytes<'_>) -> Option<([u8; 32], Vec<u8>)> {
    let hash = meta.hash();
    let crc = u32_at(meta.take(4), 0);
    let form = meta.byte();
    let raw_len = usize::try_from(meta.number()).unwrap();
    let stored_len = usize::try_from(meta.number()).unwrap();
    let stored = data.take(stored_len);
    if crc32c(stored) != crc {
        return None;
    }
    let raw = if form == 0 {
        stored.to_vec()
    } else {
        zstd::bulk::decompress(stored, raw_len).unwrap()
    };
    assert_eq!(raw.len(), raw_len, "a blob has another length than it says");
    assert_eq!(
        *blake3::hash(&raw).as_bytes(),
        hash,
        "a blob is not what its hash says"
    );
    Some((hash, raw))
}

fn command(meta: &mut Bytes<'_>) -> (u8, Vec<u8>) {
    let kind = meta.byte();
    assert_eq!(meta.byte(), 1, "every command is of version 1");
    (kind, meta.counted().to_vec())
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    fn counted(&mut self) -> &'a [u8] {
        let len = usize::try_from(self.number()).unwrap();
        self.take(len)
    }

    fn hash(&mut self) -> [u8; 32] {
        self.take(32).try_into().unwrap()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The Castagnoli checksum, a bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| {
        if crc & 1 == 1 {
            (crc >> 1) ^ 0x82f6_3b78
        } else {
            crc >> 1
        }
    };
    !bytes
        .iter()
        .fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn the_checksum_is_castagnolis() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}
