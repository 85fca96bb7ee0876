//! The format of one checkpoint file.
//!
//! ```text
//! header   magic "TKINDEX1" | crc32c u32 of the rest of the header | length u32 of it | numbers (LEB128):
//!          format version, file number, mark `from`, mark `to`, last stamp; store id [16], frame hash [32]
//! section  kind u8 | rows u32 | raw length u32 | stored length u32 | zstd bytes | crc32c u32 of all these
//! ```
//! Sections are in the order of their kinds. A long table has several sections of its kind; the
//! last section is `END`. The writer writes `NAME.new`, syncs it and renames it to `NAME`, so a
//! crash leaves the old file or the new one. A file with any other content is not sound and is
//! ignored.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnkeep_journal::{FileBytes, Storage, StorageFile, blob_crc};
use turnkeep_types::{ContextId, Timestamp, TurnId, TypeRef};

use super::columns::{self, BLOCK_ROWS};
use super::{Delta, TableExtent};
use crate::apply::ChangedRows;
use crate::record::{put_labels, read_labels};
use crate::registry::Checked;
use crate::state::{BlobRow, Declared, State, TurnRow, find_bundle};
use crate::walk;
use turnkeep_types::varint::{Reader, put, put_bytes};

const MAGIC: &[u8; 8] = b"TKINDEX1";
/// Format 2 marks contexts whose creation was lost, and blobs that only a lost frame held.
pub(super) const FORMAT: u64 = 2;
/// The oldest format whose header is read. Its tables are not: the log is replayed instead.
const FORMAT_MIN: u64 = 1;
/// The fastest of the ordinary levels: columns of differences pack well at any.
const ZSTD_LEVEL: i32 = 1;
/// Kind, rows, raw length, stored length: 1 + 3 · 4 bytes.
const SECTION_HEADER: usize = 13;
/// A section of texts ends after the row that makes it this long.
const TEXT_SECTION_BYTES: usize = 1 << 20;
/// The longest section that is unpacked. A bundle is far below this, so longer means damage.
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

// Which columns of a table hold hashes; see `columns`.
const BLOB_COLUMNS: [bool; 7] = [true, true, true, true, false, false, false];
const MOVED_COLUMNS: [bool; 8] = [false, true, true, true, true, false, false, false];
const TURN_COLUMNS: [bool; 6] = [false; 6];
const KEY_COLUMNS: [bool; 4] = [true, true, true, false];

/// The header of a file: the store, the range of the log and the frame that it reflects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointHeader {
    pub(crate) format: u64,
    pub(crate) store_id: [u8; 16],
    pub(crate) number: u64,
    /// The hash of the frame at `to.position`.
    pub(crate) frame_hash: [u8; 32],
    pub(crate) from: TableExtent,
    pub(crate) to: TableExtent,
    pub(crate) last_stamp: u64,
}

impl CheckpointHeader {
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
        out.extend_from_slice(&length_u32(body.len()).to_le_bytes());
        out.extend_from_slice(&body);
        out
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.read_bytes(8)? != MAGIC {
            return None;
        }
        let crc = read_fixed_u32(reader)?;
        let len = read_fixed_u32(reader)?;
        let body = reader.read_bytes(len as usize)?;
        if blob_crc(body) != crc {
            return None;
        }
        let mut body = Reader(body);
        let format = body.u64()?;
        // A newer format may mean anything, so the file counts as not sound.
        if !(FORMAT_MIN..=FORMAT).contains(&format) {
            return None;
        }
        let number = body.u64()?;
        let (from, to) = (read_mark(&mut body)?, read_mark(&mut body)?);
        let last_stamp = body.u64()?;
        let store_id = body.read_bytes(16)?.try_into().ok()?;
        let frame_hash = body.read_bytes(32)?.try_into().ok()?;
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

fn mark_numbers(m: &TableExtent) -> [u64; 10] {
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

fn read_mark(reader: &mut Reader<'_>) -> Option<TableExtent> {
    let mut next = || reader.u64();
    Some(TableExtent {
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

fn length_u32(len: usize) -> u32 {
    u32::try_from(len).expect("a section is shorter than 4 GiB")
}

fn read_fixed_u32(reader: &mut Reader<'_>) -> Option<u32> {
    Some(u32::from_le_bytes(reader.read_bytes(4)?.try_into().ok()?))
}

/// Writes a delta to the file `name`, completely or not at all.
pub(super) fn write(storage: &dyn Storage, name: &str, delta: &Delta) -> std::io::Result<()> {
    let new_name = format!("{name}.new");
    let file = storage.create(&new_name, 0)?;
    let header = delta.header.encode();
    file.write_at(0, &header)?;
    let mut out = CheckpointWriter {
        file: &*file,
        end: header.len() as u64,
        raw: Vec::new(),
        section: Vec::new(),
    };
    out.write_delta(delta)?;
    // Before the rename: otherwise a crash could leave the new name on incomplete content.
    file.sync()?;
    storage.rename(&new_name, name)
}

/// Writes one section at a time, so memory holds at most one.
struct CheckpointWriter<'a> {
    file: &'a dyn StorageFile,
    end: u64,
    /// The uncompressed content of the next section.
    raw: Vec<u8>,
    section: Vec<u8>,
}

impl CheckpointWriter<'_> {
    /// Writes all sections in the order of their kinds, which `open` checks.
    fn write_delta(&mut self, delta: &Delta) -> std::io::Result<()> {
        let (state, from, to) = (&delta.state, &delta.header.from, &delta.header.to);
        self.write_declared(state, from.declared, to.declared)?;
        self.write_bundles(delta)?;
        self.write_rows(kind::BLOBS, from.blobs..to.blobs, BLOB_COLUMNS, |row| {
            state.blobs.get(row)
        })?;
        self.write_rows(kind::TURNS, from.turns..to.turns, TURN_COLUMNS, |row| {
            turn_numbers(state, row)
        })?;
        let fs_roots = from.fs_roots..to.fs_roots;
        self.write_rows(kind::FS_ROOTS, fs_roots, [false; 2], |row| {
            state.fs_roots.get(row)
        })?;
        let contexts = from.contexts..to.contexts;
        self.write_rows(kind::CONTEXTS, contexts, [false; 2], |row| {
            // Without the head: it may have moved beyond `to` meanwhile. `HEADS` has it.
            let [_head, created_at, base, ..] = state.contexts.get(row)?;
            Some([created_at, base])
        })?;
        self.write_copied_rows(kind::HEADS, &delta.heads, [false; 2])?;
        self.write_labels(delta)?;
        self.write_rows(kind::KEYS, from.keys..to.keys, KEY_COLUMNS, |row| {
            state.keys.get(row)
        })?;
        self.write_rows(kind::EVENTS, from.events..to.events, [false], |row| {
            state.events.get(row).map(|event| [event])
        })?;
        self.write_copied_rows(kind::LOST_TURNS, &delta.lost_turns, [false; 2])?;
        self.write_copied_rows(kind::MOVED_BLOBS, &delta.moved_blobs, MOVED_COLUMNS)?;
        self.write_section(kind::END, 0)
    }

    /// Writes rows that the delta has copied.
    fn write_copied_rows<const N: usize>(
        &mut self,
        kind: u8,
        rows: &[[u64; N]],
        is_hash: [bool; N],
    ) -> std::io::Result<()> {
        self.write_rows(kind, 0..rows.len() as u64, is_hash, |row| {
            rows.get(usize::try_from(row).ok()?).copied()
        })
    }

    /// Writes rows of numbers, `BLOCK_ROWS` to a section.
    fn write_rows<const N: usize>(
        &mut self,
        kind: u8,
        range: std::ops::Range<u64>,
        is_hash: [bool; N],
        row: impl Fn(u64) -> Option<[u64; N]>,
    ) -> std::io::Result<()> {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + BLOCK_ROWS);
            let rows: Vec<_> = (start..end).map_while(&row).collect();
            columns::encode(&rows, is_hash, &mut self.raw);
            self.write_section(kind, rows.len())?;
            start = end;
        }
        Ok(())
    }

    fn write_declared(&mut self, state: &State, from: u64, to: u64) -> std::io::Result<()> {
        self.write_texts(
            kind::DECLARED,
            (from..to).filter_map(|n| state.declared.get(n)),
            |raw, declared| {
                put_bytes(raw, declared.turn_type.id.as_bytes());
                put(raw, declared.turn_type.version.into());
                put(raw, declared.encoding.into());
            },
        )
    }

    fn write_bundles(&mut self, delta: &Delta) -> std::io::Result<()> {
        let new = delta.header.from.bundles..delta.header.to.bundles;
        self.write_texts(
            kind::BUNDLES,
            new.filter_map(|n| find_bundle(&delta.registry, n)),
            |raw, bundle| {
                put_bytes(raw, bundle.id.as_bytes());
                put_bytes(raw, &bundle.bytes);
            },
        )
    }

    fn write_labels(&mut self, delta: &Delta) -> std::io::Result<()> {
        self.write_texts(
            kind::LABELS,
            delta.labels.iter(),
            |raw, (context, labels)| {
                put(raw, context.get());
                put_labels(raw, labels);
            },
        )
    }

    /// Writes rows of variable length. Starts a new section after `TEXT_SECTION_BYTES`.
    fn write_texts<T>(
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
                self.write_section(kind, std::mem::take(&mut count))?;
            }
        }
        if count > 0 {
            self.write_section(kind, count)
        } else {
            Ok(())
        }
    }

    fn write_section(&mut self, kind: u8, rows: usize) -> std::io::Result<()> {
        let stored = zstd::bulk::compress(&self.raw, ZSTD_LEVEL)?;
        self.section.clear();
        self.section.push(kind);
        for number in [rows, self.raw.len(), stored.len()] {
            self.section
                .extend_from_slice(&length_u32(number).to_le_bytes());
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

/// The stored numbers of a turn. The jump pointer and the root flag follow from other rows.
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
pub(super) struct CheckpointFile {
    pub(super) header: CheckpointHeader,
    bytes: FileBytes,
    body: usize,
}

/// Opens and checks a file; `None` if it is missing or not sound.
pub(super) fn open(storage: &dyn Storage, name: &str) -> Option<CheckpointFile> {
    let file = storage.open(name).ok()?;
    let bytes = file.read(0..file.len()).ok()?;
    let mut reader = Reader(&bytes);
    let header = CheckpointHeader::decode(&mut reader)?;
    let body = bytes.len() - reader.0.len();
    let mut last = 0;
    while last != kind::END {
        let section = Section::read(&mut reader)?;
        // Ascending kinds make the file's content unique and put tables before rows that refer to
        // them.
        if section.kind < last {
            return None;
        }
        last = section.kind;
    }
    reader.end()?;
    Some(CheckpointFile {
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
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let whole = reader.0;
        let kind = reader.u8()?;
        let (rows, raw_len, stored_len) = (
            read_fixed_u32(reader)?,
            read_fixed_u32(reader)?,
            read_fixed_u32(reader)?,
        );
        let stored = reader.read_bytes(stored_len as usize)?;
        let covered = whole.get(..SECTION_HEADER + stored.len())?;
        // Without the limit, forged bytes could make the reader unpack 4 GiB.
        let sound = read_fixed_u32(reader)? == blob_crc(covered)
            && raw_len as usize <= SECTION_RAW_BYTES_MAX;
        sound.then_some(Self {
            kind,
            rows: rows.into(),
            raw_len: raw_len as usize,
            stored,
        })
    }
}

impl CheckpointFile {
    /// Adds the file's content to a state that holds all files before it. After `None` the state
    /// may hold part of the file, so the caller must start over with an empty one.
    pub(super) fn restore(&self, state: &State) -> Option<ChangedRows> {
        let mut reader = Reader(self.bytes.get(self.body..)?);
        let mut changed = ChangedRows::default();
        loop {
            let section = Section::read(&mut reader)?;
            if section.kind == kind::END {
                break;
            }
            // `open` has checked the checksums, so a failure here means a wrong length.
            let raw = zstd::bulk::decompress(section.stored, section.raw_len).ok()?;
            restore_section(state, &mut changed, &section, &mut Reader(&raw))?;
        }
        state
            .last_stamp
            .fetch_max(self.header.last_stamp, Ordering::Relaxed);
        // The checksums hold, so a difference here means a file that was made wrongly.
        let to = &self.header.to;
        (TableExtent::from_state(state, turnkeep_journal::Position(to.position), to.log_bytes)
            == *to)
            .then_some(changed)
    }
}

fn restore_section(
    state: &State,
    changed: &mut ChangedRows,
    section: &Section<'_>,
    raw: &mut Reader<'_>,
) -> Option<()> {
    let rows = section.rows;
    match section.kind {
        kind::DECLARED => restore_texts(rows, || restore_declared(state, raw))?,
        kind::BUNDLES => restore_texts(rows, || restore_bundle(state, raw))?,
        kind::BLOBS => restore_rows(raw, rows, BLOB_COLUMNS, |row| {
            state.add_blob(BlobRow::from_words(row));
            Some(())
        })?,
        kind::TURNS => restore_rows(raw, rows, TURN_COLUMNS, |row| restore_turn(state, row))?,
        kind::FS_ROOTS => restore_rows(raw, rows, [false; 2], |[turn, blob]| {
            state.add_fs_root(TurnId::new(turn)?, blob);
            Some(())
        })?,
        kind::CONTEXTS => restore_rows(raw, rows, [false; 2], |[created_at, base]| {
            state.push_context(Timestamp(created_at), base);
            Some(())
        })?,
        kind::HEADS => restore_rows(raw, rows, [false; 2], |row| {
            restore_head(state, changed, row)
        })?,
        kind::LABELS => restore_texts(rows, || restore_labels(state, changed, raw))?,
        kind::KEYS => restore_rows(raw, rows, KEY_COLUMNS, |row| {
            state.add_key_row(row);
            Some(())
        })?,
        kind::EVENTS => restore_rows(raw, rows, [false], |[word]| state.restore_event(word))?,
        kind::LOST_TURNS => restore_rows(raw, rows, [false; 2], |row| {
            restore_lost_turn(state, changed, row)
        })?,
        kind::MOVED_BLOBS => restore_rows(raw, rows, MOVED_COLUMNS, |row| {
            restore_moved_blob(state, changed, row)
        })?,
        // From a newer version. The file does not count, and the log is replayed instead.
        _ => return None,
    }
    raw.end()
}

fn restore_texts(rows: u64, mut restore_one: impl FnMut() -> Option<()>) -> Option<()> {
    (0..rows).try_for_each(|_| restore_one())
}

fn restore_rows<const N: usize>(
    raw: &mut Reader<'_>,
    rows: u64,
    is_hash: [bool; N],
    restore_one: impl FnMut([u64; N]) -> Option<()>,
) -> Option<()> {
    columns::decode(raw, rows, is_hash)?
        .into_iter()
        .try_for_each(restore_one)
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
    // A published bundle is valid and new, so another result means a file that was made wrongly.
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
        // The section of roots follows and sets it.
        has_fs_root: false,
        lost,
        created_at: Timestamp(created_at),
        // Derived, so that the file need not store it.
        jump: walk::choose_jump(state, id, parent),
    };
    state.push_turn(row);
    Some(())
}

fn restore_head(state: &State, changed: &mut ChangedRows, [context, head]: [u64; 2]) -> Option<()> {
    let (context, head) = (ContextId::new(context)?, TurnId::new(head)?);
    // Readers follow heads without checks, so both rows must exist.
    state.head(context)?;
    state.turn(head)?;
    state.set_head(context, head);
    changed.heads.insert(context);
    Some(())
}

fn restore_lost_turn(
    state: &State,
    changed: &mut ChangedRows,
    [turn, depth]: [u64; 2],
) -> Option<()> {
    let turn = TurnId::new(turn)?;
    // Sound turns never change.
    let row = state.turn(turn).filter(|row| row.lost)?;
    state.set_turn(
        turn,
        TurnRow {
            depth: depth.try_into().ok()?,
            ..row
        },
    );
    changed.lost_turns.insert(turn);
    Some(())
}

fn restore_moved_blob(state: &State, changed: &mut ChangedRows, moved: [u64; 8]) -> Option<()> {
    let (row, words) = (moved[0], &moved[1..]);
    let blob = BlobRow::from_words(words.try_into().ok()?);
    // A blob moves, but its hash stays: the first four words must be the ones of its row.
    state
        .blobs
        .get(row)
        .filter(|known| known[..4] == words[..4])?;
    state.move_blob(row, blob);
    changed.blobs.insert(row);
    Some(())
}

fn restore_labels(state: &State, changed: &mut ChangedRows, raw: &mut Reader<'_>) -> Option<()> {
    let context = ContextId::new(raw.u64()?)?;
    state.set_labels(context, Arc::new(read_labels(raw)?));
    changed.labels.insert(context);
    Some(())
}
