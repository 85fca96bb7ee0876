//! One checkpoint file.
//!
//! ```text
//! header   magic "TKINDEX1" | crc32c u32 of the rest of the header | length u32 of it | numbers (LEB128):
//!          format version, file number, mark `from`, mark `to`, last stamp; store id [16], frame hash [32]
//! section  kind u8 | rows u32 | raw length u32 | stored length u32 | zstd bytes | crc32c u32 of all these
//! ```
//! Sections come in the order of their kinds, several of a kind for many rows; the last is `END`. A
//! file is written beside its name and renamed, so a crash leaves the old one or the new one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnkeep_journal::{Storage, StorageFile, View, blob_crc};
use turnkeep_types::{ContextId, Timestamp, TurnId, TypeRef};

use super::columns::{self, BLOCK_ROWS};
use super::{Delta, Mark};
use crate::apply::Touched;
use crate::record::{labels, put_labels};
use crate::registry::Checked;
use crate::state::{BlobRow, Declared, State, TurnRow, bundle_at};
use crate::walk;
use turnkeep_types::varint::{Reader, put, put_bytes};

const MAGIC: &[u8; 8] = b"TKINDEX1";
/// Format 2 marks contexts whose creation was lost, and blobs that only a lost frame held.
pub(super) const FORMAT: u64 = 2;
/// The oldest format whose header is read. Its tables are not: the log is replayed instead.
const FORMAT_MIN: u64 = 1;
const ZSTD_LEVEL: i32 = 1;
const SECTION_HEADER: usize = 13;
/// A section of texts ends when it is this long; one bundle more fits easily.
const TEXT_SECTION_BYTES: usize = 1 << 20;
const SECTION_RAW_BYTES_MAX: usize = 1 << 30;

mod kind {
    pub(super) const DECLARED: u8 = 1;
    pub(super) const BUNDLES: u8 = 2;
    pub(super) const BLOBS: u8 = 3;
    pub(super) const TURNS: u8 = 4;
    pub(super) const FS_ROOTS: u8 = 5;
    pub(super) const CONTEXTS: u8 = 6;
    pub(super) const HEADS: u8 = 7;
    pub(super) const LABELS: u8 = 8;
    pub(super) const KEYS: u8 = 9;
    pub(super) const EVENTS: u8 = 10;
    pub(super) const LOST_TURNS: u8 = 11;
    pub(super) const MOVED_BLOBS: u8 = 12;
    pub(super) const END: u8 = 13;
}

const BLOB_COLUMNS: [bool; 7] = [true, true, true, true, false, false, false];
const MOVED_COLUMNS: [bool; 8] = [false, true, true, true, true, false, false, false];
const TURN_COLUMNS: [bool; 6] = [false; 6];
const KEY_COLUMNS: [bool; 4] = [true, true, true, false];

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format: u64,
    pub(crate) store_id: [u8; 16],
    pub(crate) number: u64,
    /// The hash of the frame at `to.position`.
    pub(crate) frame_hash: [u8; 32],
    pub(crate) from: Mark,
    pub(crate) to: Mark,
    pub(crate) last_stamp: u64,
}

impl Header {
    /// Whether the file's tables can be loaded.
    pub(crate) fn is_current(&self) -> bool {
        self.format == FORMAT
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put(&mut body, self.format);
        put(&mut body, self.number);
        for mark in [&self.from, &self.to] {
            for number in mark_numbers(mark) {
                put(&mut body, number);
            }
        }
        put(&mut body, self.last_stamp);
        body.extend_from_slice(&self.store_id);
        body.extend_from_slice(&self.frame_hash);
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&blob_crc(&body).to_le_bytes());
        out.extend_from_slice(&fixed(body.len()).to_le_bytes());
        out.extend_from_slice(&body);
        out
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.take(8)? != MAGIC {
            return None;
        }
        let crc = fixed_u32(reader)?;
        let len = fixed_u32(reader)?;
        let body = reader.take(len as usize)?;
        if blob_crc(body) != crc {
            return None;
        }
        let mut body = Reader(body);
        let format = body.u64()?;
        if !(FORMAT_MIN..=FORMAT).contains(&format) {
            return None;
        }
        let number = body.u64()?;
        let (from, to) = (read_mark(&mut body)?, read_mark(&mut body)?);
        let last_stamp = body.u64()?;
        let store_id = body.take(16)?.try_into().ok()?;
        let frame_hash = body.take(32)?.try_into().ok()?;
        body.end()?;
        Some(Self {
            format,
            store_id,
            number,
            frame_hash,
            from,
            to,
            last_stamp,
        })
    }
}

fn mark_numbers(m: &Mark) -> [u64; 10] {
    [
        m.position,
        m.log_bytes,
        m.turns,
        m.contexts,
        m.blobs,
        m.keys,
        m.fs_roots,
        m.events,
        m.declared,
        m.bundles,
    ]
}

fn read_mark(reader: &mut Reader<'_>) -> Option<Mark> {
    let mut next = || reader.u64();
    Some(Mark {
        position: next()?,
        log_bytes: next()?,
        turns: next()?,
        contexts: next()?,
        blobs: next()?,
        keys: next()?,
        fs_roots: next()?,
        events: next()?,
        declared: next()?,
        bundles: next()?,
    })
}

/// A length as the file has it. Sections are bounded far below this.
fn fixed(len: usize) -> u32 {
    u32::try_from(len).expect("a section is shorter than 4 GiB")
}

fn fixed_u32(reader: &mut Reader<'_>) -> Option<u32> {
    Some(u32::from_le_bytes(reader.take(4)?.try_into().ok()?))
}

/// Writes a delta under a name, all of it or nothing.
pub(super) fn write(storage: &dyn Storage, name: &str, delta: &Delta) -> std::io::Result<()> {
    let beside = format!("{name}.new");
    let file = storage.create(&beside, 0)?;
    let header = delta.header.encode();
    file.write_at(0, &header)?;
    let mut out = Writer {
        file: &*file,
        end: header.len() as u64,
        raw: Vec::new(),
        section: Vec::new(),
    };
    out.delta(delta)?;
    file.sync()?;
    storage.rename(&beside, name)
}

/// Writes a section at a time, so that it never holds more than one.
struct Writer<'a> {
    file: &'a dyn StorageFile,
    end: u64,
    /// The next section's content, as yet uncompressed.
    raw: Vec<u8>,
    section: Vec<u8>,
}

impl Writer<'_> {
    fn delta(&mut self, delta: &Delta) -> std::io::Result<()> {
        let (state, from, to) = (&delta.state, &delta.header.from, &delta.header.to);
        self.declared(state, from.declared, to.declared)?;
        self.bundles(delta)?;
        self.rows(kind::BLOBS, from.blobs..to.blobs, BLOB_COLUMNS, |row| {
            state.blobs.get(row)
        })?;
        self.rows(kind::TURNS, from.turns..to.turns, TURN_COLUMNS, |row| {
            turn_numbers(state, row)
        })?;
        self.rows(
            kind::FS_ROOTS,
            from.fs_roots..to.fs_roots,
            [false; 2],
            |row| state.fs_roots.get(row),
        )?;
        let context = |row| {
            state
                .contexts
                .get(row)
                .map(|[_, created_at, base]| [created_at, base])
        };
        self.rows(
            kind::CONTEXTS,
            from.contexts..to.contexts,
            [false; 2],
            context,
        )?;
        let head = |at: u64| delta.heads.get(usize::try_from(at).ok()?).copied();
        self.rows(kind::HEADS, 0..delta.heads.len() as u64, [false; 2], head)?;
        self.labels(delta)?;
        self.rows(kind::KEYS, from.keys..to.keys, KEY_COLUMNS, |row| {
            state.keys.get(row)
        })?;
        self.rows(kind::EVENTS, from.events..to.events, [false], |row| {
            state.events.get(row).map(|word| [word])
        })?;
        let lost = |at: u64| delta.lost_turns.get(usize::try_from(at).ok()?).copied();
        self.rows(
            kind::LOST_TURNS,
            0..delta.lost_turns.len() as u64,
            [false; 2],
            lost,
        )?;
        let moved = |at: u64| delta.moved_blobs.get(usize::try_from(at).ok()?).copied();
        self.rows(
            kind::MOVED_BLOBS,
            0..delta.moved_blobs.len() as u64,
            MOVED_COLUMNS,
            moved,
        )?;
        self.section(kind::END, 0)
    }

    fn rows<const N: usize>(
        &mut self,
        kind: u8,
        range: std::ops::Range<u64>,
        random: [bool; N],
        row: impl Fn(u64) -> Option<[u64; N]>,
    ) -> std::io::Result<()> {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + BLOCK_ROWS);
            let rows: Vec<_> = (start..end).map_while(&row).collect();
            columns::encode(&rows, random, &mut self.raw);
            self.section(kind, rows.len())?;
            start = end;
        }
        Ok(())
    }

    fn declared(&mut self, state: &State, from: u64, to: u64) -> std::io::Result<()> {
        self.texts(
            kind::DECLARED,
            (from..to).filter_map(|n| state.declared.get(n)),
            |raw, declared| {
                put_bytes(raw, declared.turn_type.id.as_bytes());
                put(raw, declared.turn_type.version.into());
                put(raw, declared.encoding.into());
            },
        )
    }

    fn bundles(&mut self, delta: &Delta) -> std::io::Result<()> {
        let new = delta.header.from.bundles..delta.header.to.bundles;
        self.texts(
            kind::BUNDLES,
            new.filter_map(|n| bundle_at(&delta.registry, n)),
            |raw, bundle| {
                put_bytes(raw, bundle.id.as_bytes());
                put_bytes(raw, &bundle.bytes);
            },
        )
    }

    fn labels(&mut self, delta: &Delta) -> std::io::Result<()> {
        self.texts(
            kind::LABELS,
            delta.labels.iter(),
            |raw, (context, labels)| {
                put(raw, context.get());
                put_labels(raw, labels);
            },
        )
    }

    /// Writes rows of any length, a new section whenever one is long enough.
    fn texts<T>(
        &mut self,
        kind: u8,
        rows: impl Iterator<Item = T>,
        put_row: impl Fn(&mut Vec<u8>, T),
    ) -> std::io::Result<()> {
        let mut count = 0;
        for row in rows {
            put_row(&mut self.raw, row);
            count += 1;
            if self.raw.len() >= TEXT_SECTION_BYTES {
                self.section(kind, std::mem::take(&mut count))?;
            }
        }
        if count > 0 {
            self.section(kind, count)
        } else {
            Ok(())
        }
    }

    fn section(&mut self, kind: u8, rows: usize) -> std::io::Result<()> {
        let stored = zstd::bulk::compress(&self.raw, ZSTD_LEVEL)?;
        self.section.clear();
        self.section.push(kind);
        for number in [rows, self.raw.len(), stored.len()] {
            self.section.extend_from_slice(&fixed(number).to_le_bytes());
        }
        self.section.extend_from_slice(&stored);
        let crc = blob_crc(&self.section);
        self.section.extend_from_slice(&crc.to_le_bytes());
        self.file.write_at(self.end, &self.section)?;
        self.end += self.section.len() as u64;
        self.raw.clear();
        Ok(())
    }
}

/// What is kept of a turn: not the jump pointer and the root flag, which follow from the rest.
fn turn_numbers(state: &State, row: u64) -> Option<[u64; 6]> {
    let turn = TurnRow::from_words(state.turns.get(row)?);
    let lost = u64::from(turn.lost);
    Some([
        TurnId::to_wire(turn.parent),
        turn.context,
        turn.depth.into(),
        turn.declared.into(),
        (turn.blob << 1) | lost,
        turn.created_at.0,
    ])
}

/// A file whose header and section checksums hold.
pub(super) struct File {
    pub(super) header: Header,
    bytes: View,
    body: usize,
}

/// Opens and checks a file; none if it is not there or not sound.
pub(super) fn open(storage: &dyn Storage, name: &str) -> Option<File> {
    let file = storage.open(name).ok()?;
    let bytes = file.read(0..file.len()).ok()?;
    let mut reader = Reader(&bytes);
    let header = Header::decode(&mut reader)?;
    let body = bytes.len() - reader.0.len();
    let mut last = 0;
    while last != kind::END {
        let section = Section::take(&mut reader)?;
        if section.kind < last {
            return None;
        }
        last = section.kind;
    }
    reader.end()?;
    Some(File {
        header,
        bytes,
        body,
    })
}

struct Section<'a> {
    kind: u8,
    rows: u64,
    raw_len: usize,
    stored: &'a [u8],
}

impl<'a> Section<'a> {
    fn take(reader: &mut Reader<'a>) -> Option<Self> {
        let whole = reader.0;
        let kind = reader.u8()?;
        let (rows, raw_len, stored_len) =
            (fixed_u32(reader)?, fixed_u32(reader)?, fixed_u32(reader)?);
        let stored = reader.take(stored_len as usize)?;
        let covered = whole.get(..SECTION_HEADER + stored.len())?;
        let sound =
            fixed_u32(reader)? == blob_crc(covered) && raw_len as usize <= SECTION_RAW_BYTES_MAX;
        sound.then_some(Self {
            kind,
            rows: rows.into(),
            raw_len: raw_len as usize,
            stored,
        })
    }
}

impl File {
    /// Adds the file's content to a state that holds all files before it. `None` leaves the state
    /// half filled: the caller must start over.
    pub(super) fn restore(&self, state: &State) -> Option<Touched> {
        let mut reader = Reader(self.bytes.get(self.body..)?);
        let mut touched = Touched::default();
        loop {
            let section = Section::take(&mut reader)?;
            if section.kind == kind::END {
                break;
            }
            let raw = zstd::bulk::decompress(section.stored, section.raw_len).ok()?;
            restore_section(state, &mut touched, &section, &mut Reader(&raw))?;
        }
        state
            .last_stamp
            .fetch_max(self.header.last_stamp, Ordering::Relaxed);
        let to = &self.header.to;
        (Mark::now(state, turnkeep_journal::Position(to.position), to.log_bytes) == *to)
            .then_some(touched)
    }
}

fn restore_section(
    state: &State,
    touched: &mut Touched,
    section: &Section<'_>,
    raw: &mut Reader<'_>,
) -> Option<()> {
    let rows = section.rows;
    match section.kind {
        kind::DECLARED => each(rows, || restore_declared(state, raw))?,
        kind::BUNDLES => each(rows, || restore_bundle(state, raw))?,
        kind::BLOBS => for_rows(raw, rows, BLOB_COLUMNS, |row| {
            state.add_blob(BlobRow::from_words(row));
            Some(())
        })?,
        kind::TURNS => for_rows(raw, rows, TURN_COLUMNS, |row| restore_turn(state, row))?,
        kind::FS_ROOTS => for_rows(raw, rows, [false; 2], |[turn, blob]| {
            state.add_fs_root(TurnId::new(turn)?, blob);
            Some(())
        })?,
        kind::CONTEXTS => for_rows(raw, rows, [false; 2], |[created_at, base]| {
            state.push_context(Timestamp(created_at), base);
            Some(())
        })?,
        kind::HEADS => for_rows(raw, rows, [false; 2], |row| {
            restore_head(state, touched, row)
        })?,
        kind::LABELS => each(rows, || restore_labels(state, touched, raw))?,
        kind::KEYS => for_rows(raw, rows, KEY_COLUMNS, |row| {
            state.add_key_row(row);
            Some(())
        })?,
        kind::EVENTS => for_rows(raw, rows, [false], |row| {
            state.events.push(row[0]);
            Some(())
        })?,
        kind::LOST_TURNS => for_rows(raw, rows, [false; 2], |row| {
            restore_lost_turn(state, touched, row)
        })?,
        kind::MOVED_BLOBS => for_rows(raw, rows, MOVED_COLUMNS, |row| {
            restore_moved(state, touched, row)
        })?,
        _ => return None,
    }
    raw.end()
}

fn each(rows: u64, mut one: impl FnMut() -> Option<()>) -> Option<()> {
    (0..rows).try_for_each(|_| one())
}

fn for_rows<const N: usize>(
    raw: &mut Reader<'_>,
    rows: u64,
    random: [bool; N],
    one: impl FnMut([u64; N]) -> Option<()>,
) -> Option<()> {
    columns::decode(raw, rows, random)?
        .into_iter()
        .try_for_each(one)
}

fn restore_declared(state: &State, raw: &mut Reader<'_>) -> Option<()> {
    let turn_type = TypeRef {
        id: raw.str()?.into(),
        version: raw.u32()?,
    };
    state.declared.push(Declared {
        turn_type,
        encoding: raw.u32()?,
    });
    Some(())
}

fn restore_bundle(state: &State, raw: &mut Reader<'_>) -> Option<()> {
    let (id, json) = (raw.str()?, raw.bytes()?);
    let Ok(Checked::New(registry)) = state.registry.load().check(id, json) else {
        return None;
    };
    state.registry.store(Arc::new(registry));
    Some(())
}

fn restore_turn(
    state: &State,
    [parent, context, depth, declared, blob, created_at]: [u64; 6],
) -> Option<()> {
    let id = TurnId::new(state.turns.len() + 1)?;
    let parent = TurnId::new(parent);
    let lost = blob & 1 != 0;
    let row = TurnRow {
        parent,
        context,
        depth: depth.try_into().ok()?,
        declared: declared.try_into().ok()?,
        blob: blob >> 1,
        has_fs_root: false,
        lost,
        created_at: Timestamp(created_at),
        jump: walk::jump_of(state, id, parent),
    };
    state.push_turn(row);
    Some(())
}

fn restore_head(state: &State, touched: &mut Touched, [context, head]: [u64; 2]) -> Option<()> {
    let (context, head) = (ContextId::new(context)?, TurnId::new(head)?);
    state.head(context)?;
    state.turn(head)?;
    state.set_head(context, head);
    touched.heads.insert(context);
    Some(())
}

fn restore_lost_turn(state: &State, touched: &mut Touched, [turn, depth]: [u64; 2]) -> Option<()> {
    let turn = TurnId::new(turn)?;
    let row = state.turn(turn).filter(|row| row.lost)?;
    state.set_turn(
        turn,
        TurnRow {
            depth: depth.try_into().ok()?,
            ..row
        },
    );
    touched.lost_turns.insert(turn);
    Some(())
}

fn restore_moved(state: &State, touched: &mut Touched, moved: [u64; 8]) -> Option<()> {
    let (row, words) = (moved[0], &moved[1..]);
    let blob = BlobRow::from_words(words.try_into().ok()?);
    state
        .blobs
        .get(row)
        .filter(|known| known[..4] == words[..4])?;
    state.move_blob(row, blob);
    touched.blobs.insert(row);
    Some(())
}

fn restore_labels(state: &State, touched: &mut Touched, raw: &mut Reader<'_>) -> Option<()> {
    let context = ContextId::new(raw.u64()?)?;
    state.set_labels(context, Arc::new(labels(raw)?));
    touched.labels.insert(context);
    Some(())
}
