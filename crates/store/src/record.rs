//! The log's record of a command. The bytes of each kind and version are frozen.
//!
//! A record never holds payload bytes. It names a payload by its hash or, to save space, by its
//! place among the blobs of the same frame. Numbers are LEB128, `bytes` are a length and that many
//! bytes, and a missing optional id is 0. A record with an unknown kind or version is an error, and
//! so are bytes that do not fit their kind.
//!
//! | kind | command | body |
//! |---|---|---|
//! | 1 | create context | base, labels, key bytes |
//! | 2 | append | flags u8 (1 strict, 2 key), parts, [key bytes], per part: context, flags u8 (1 explicit parent, 2 expected head, 4 placed), parent, depth, [expected head], turns, per turn: type id bytes, type version, encoding, blob name, fs root flag u8, [hash] |
//! | 3 | attach fs | turn, hash |
//! | 4 | put blob | blob name |
//! | 5 | put bundle | id bytes, json bytes |
//! | 6 | set labels | context, labels |
//! | 7 | lost | turns, contexts; version 2 also has an event for each of them |
//! | 8 | lost root (written by repair only) | turn, hash, flags u8 (1 it was attached after the append) |
//!
//! Labels are a count and pairs of bytes. A blob name is 0 and the 32-byte hash, or n for blob n −
//! 1 of the frame. `parent` and `depth` of a part are the writer's results. `apply` computes the
//! same values in a healthy log, and `verify` compares them. If an earlier frame is lost, `repair`
//! sets the flag `placed`, and `apply` uses the recorded values.

use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::{BlobHash, ContextId, TurnId, TypeRef};

use crate::command::{Key, Labels};
use crate::registry::ParsedBundle;
use turnkeep_types::varint::{Reader, put, put_bytes};

/// The version of most records. The two below are the exceptions.
pub(crate) const VERSION: u8 = 1;
/// The version of a `Lost` record whose ids have events in the feed.
const LOST_IN_FEED_VERSION: u8 = 2;

/// The version of a put bundle whose descriptors use alternative spellings of types. The body is
/// that of version 1. The number stops older programs, which would reject the bundle and continue
/// without it.
const VERSION_OTHER_SPELLINGS: u8 = 2;

/// A list that almost always has one element, which is then stored inline.
pub(crate) type InlineVec<T> = smallvec::SmallVec<[T; 1]>;

/// A command as the log holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Create {
        base: Option<TurnId>,
        labels: Labels,
        key: Option<Key>,
    },
    Append {
        parts: InlineVec<PartRecord>,
        key: Option<Key>,
        strict: bool,
    },
    AttachFs {
        turn: TurnId,
        root: BlobHash,
    },
    PutBlob {
        blob: BlobName,
    },
    PutBundle {
        bundle: ParsedBundle,
    },
    SetLabels {
        context: ContextId,
        labels: Labels,
    },
    Lost {
        turns: u64,
        contexts: u64,
        in_feed: bool,
    },
    LostRoot {
        turn: TurnId,
        root: BlobHash,
        attached: bool,
    },
}

/// A record's kind and version, which select the format of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordTag {
    pub(crate) kind: u8,
    pub(crate) version: u8,
}

/// The turns of one context in an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartRecord {
    pub(crate) context: ContextId,
    /// The parent that the client named; `None` means the head.
    pub(crate) sent_parent: Option<TurnId>,
    pub(crate) expected_head: Option<Option<TurnId>>,
    /// The first turn's parent and depth, as the writer computed them.
    pub(crate) parent: Option<TurnId>,
    pub(crate) depth: u32,
    /// Set by repair: `parent` and `depth` count, whatever the head is.
    pub(crate) placed: bool,
    pub(crate) turns: InlineVec<TurnRecord>,
}

/// One turn of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnRecord {
    pub(crate) declared: TypeRef,
    pub(crate) encoding: u32,
    pub(crate) payload: BlobName,
    pub(crate) fs_root: Option<BlobHash>,
}

/// How a record names a blob. `in_frame` is its place in the frame, if the frame holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobName {
    pub(crate) hash: BlobHash,
    pub(crate) in_frame: Option<u32>,
}

impl BlobName {
    /// Names a blob that lies in an earlier frame, or whose place in the frame is not known yet.
    pub(crate) fn by_hash(hash: BlobHash) -> Self {
        Self {
            hash,
            in_frame: None,
        }
    }
}

/// Why a record cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordError {
    UnknownKind,
    Malformed,
}

mod kind {
    pub(super) const CREATE: u8 = 1;
    pub(super) const APPEND: u8 = 2;
    pub(super) const ATTACH_FS: u8 = 3;
    pub(super) const PUT_BLOB: u8 = 4;
    pub(super) const PUT_BUNDLE: u8 = 5;
    pub(super) const SET_LABELS: u8 = 6;
    pub(super) const LOST: u8 = 7;
    pub(super) const LOST_ROOT: u8 = 8;
}

const STRICT: u8 = 1;
const KEYED: u8 = 2;
const EXPLICIT_PARENT: u8 = 1;
const EXPECTED_HEAD: u8 = 2;
const PLACED: u8 = 4;
const ATTACHED: u8 = 1;

/// The most turns or contexts that one record declares lost. Bounds the work of one record; repair
/// writes several for more.
pub(crate) const LOST_MAX: u64 = 1 << 20;

impl Record {
    /// Appends the record's body to `out` and returns its kind and version.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> RecordTag {
        let version = match self {
            Self::Lost { in_feed: true, .. } => LOST_IN_FEED_VERSION,
            Self::PutBundle { bundle } if bundle.has_other_spellings() => VERSION_OTHER_SPELLINGS,
            _ => VERSION,
        };
        RecordTag {
            kind: self.encode_body(out),
            version,
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Self::Create { base, labels, key } => encode_create(out, *base, labels, key.as_ref()),
            Self::Append { parts, key, strict } => encode_append(out, parts, key.as_ref(), *strict),
            Self::AttachFs { turn, root } => encode_attach(out, *turn, root),
            Self::PutBlob { blob } => encode_put_blob(out, blob),
            Self::PutBundle { bundle } => encode_bundle(out, bundle),
            Self::SetLabels { context, labels } => encode_set_labels(out, *context, labels),
            Self::Lost {
                turns, contexts, ..
            } => encode_lost(out, *turns, *contexts),
            Self::LostRoot {
                turn,
                root,
                attached,
            } => encode_lost_root(out, *turn, root, *attached),
        }
    }

    /// Decodes a record. `frame` returns the hash of a blob of the same frame by its place.
    pub(crate) fn decode(
        RecordTag { kind, version }: RecordTag,
        body: &[u8],
        frame: &impl Fn(u32) -> Option<BlobHash>,
    ) -> Result<Self, RecordError> {
        // Each kind accepts only its own versions. An unknown one is an error, never skipped:
        // skipping a command would give later turns other ids.
        let in_feed = kind == kind::LOST && version == LOST_IN_FEED_VERSION;
        let other_spellings = kind == kind::PUT_BUNDLE && version == VERSION_OTHER_SPELLINGS;
        if version != VERSION && !in_feed && !other_spellings {
            return Err(RecordError::UnknownKind);
        }
        let mut reader = Reader(body);
        let record = match kind {
            kind::CREATE => decode_create(&mut reader),
            kind::APPEND => decode_append(&mut reader, frame),
            kind::ATTACH_FS => decode_attach(&mut reader),
            kind::PUT_BLOB => read_blob_name(&mut reader, frame).map(|blob| Self::PutBlob { blob }),
            kind::PUT_BUNDLE => decode_bundle(&mut reader),
            kind::SET_LABELS => decode_set_labels(&mut reader),
            kind::LOST => decode_lost(&mut reader, in_feed),
            kind::LOST_ROOT => decode_lost_root(&mut reader),
            _ => return Err(RecordError::UnknownKind),
        };
        // Trailing bytes may be a newer field, so the record counts as malformed.
        record
            .filter(|_| reader.end().is_some())
            .ok_or(RecordError::Malformed)
    }
}

fn encode_create(
    out: &mut Vec<u8>,
    base: Option<TurnId>,
    labels: &Labels,
    key: Option<&Key>,
) -> u8 {
    put(out, TurnId::to_wire(base));
    put_labels(out, labels);
    put_bytes(out, key.map_or(&[], Key::as_bytes));
    kind::CREATE
}

fn decode_create(reader: &mut Reader<'_>) -> Option<Record> {
    let base = TurnId::new(reader.u64()?);
    let labels = read_labels(reader)?;
    let key = Key::new(Bytes::copy_from_slice(reader.bytes()?));
    Some(Record::Create { base, labels, key })
}

fn encode_append(out: &mut Vec<u8>, parts: &[PartRecord], key: Option<&Key>, strict: bool) -> u8 {
    out.push(if strict { STRICT } else { 0 } | if key.is_some() { KEYED } else { 0 });
    put(out, parts.len() as u64);
    if let Some(key) = key {
        put_bytes(out, key.as_bytes());
    }
    for part in parts {
        encode_part(out, part);
    }
    kind::APPEND
}

fn encode_part(out: &mut Vec<u8>, part: &PartRecord) {
    put(out, part.context.get());
    let explicit = if part.sent_parent.is_some() {
        EXPLICIT_PARENT
    } else {
        0
    };
    let expected = if part.expected_head.is_some() {
        EXPECTED_HEAD
    } else {
        0
    };
    out.push(explicit | expected | if part.placed { PLACED } else { 0 });
    // The writer's results, although `apply` computes them again: `verify` compares both.
    put(out, TurnId::to_wire(part.parent));
    put(out, part.depth.into());
    if let Some(expected) = part.expected_head {
        put(out, TurnId::to_wire(expected));
    }
    put(out, part.turns.len() as u64);
    for turn in &part.turns {
        put_bytes(out, turn.declared.id.as_bytes());
        put(out, turn.declared.version.into());
        put(out, turn.encoding.into());
        put_blob_name(out, &turn.payload);
        out.push(turn.fs_root.is_some().into());
        if let Some(root) = turn.fs_root {
            out.extend_from_slice(root.as_bytes());
        }
    }
}

fn decode_append(
    reader: &mut Reader<'_>,
    frame: &impl Fn(u32) -> Option<BlobHash>,
) -> Option<Record> {
    let flags = reader.u8()?;
    let count = reader.u64()?;
    let key = if flags & KEYED != 0 {
        Key::new(Bytes::copy_from_slice(reader.bytes()?))
    } else {
        None
    };
    let parts: InlineVec<_> = (0..count)
        .map(|_| read_part(reader, frame))
        .collect::<Option<_>>()?;
    // `decide` relies on at least one part and one turn per part.
    let whole = !parts.is_empty() && parts.iter().all(|part| !part.turns.is_empty());
    whole.then_some(Record::Append {
        parts,
        key,
        strict: flags & STRICT != 0,
    })
}

fn read_part(
    reader: &mut Reader<'_>,
    frame: &impl Fn(u32) -> Option<BlobHash>,
) -> Option<PartRecord> {
    let context = ContextId::new(reader.u64()?)?;
    let flags = reader.u8()?;
    let parent = TurnId::new(reader.u64()?);
    let depth = reader.u32()?;
    // The log stores the parent once. The flag tells whether the client had named it, which the
    // idempotency check needs.
    let sent_parent = if flags & EXPLICIT_PARENT != 0 {
        Some(parent?)
    } else {
        None
    };
    let expected_head = if flags & EXPECTED_HEAD != 0 {
        Some(TurnId::new(reader.u64()?))
    } else {
        None
    };
    let count = reader.u64()?;
    let turns = (0..count)
        .map(|_| read_turn(reader, frame))
        .collect::<Option<_>>()?;
    let placed = flags & PLACED != 0;
    Some(PartRecord {
        context,
        sent_parent,
        expected_head,
        parent,
        depth,
        placed,
        turns,
    })
}

fn read_turn(
    reader: &mut Reader<'_>,
    frame: &impl Fn(u32) -> Option<BlobHash>,
) -> Option<TurnRecord> {
    let id: Arc<str> = reader.str()?.into();
    let declared = TypeRef {
        id,
        version: reader.u32()?,
    };
    let encoding = reader.u32()?;
    let payload = read_blob_name(reader, frame)?;
    let fs_root = if reader.u8()? != 0 {
        Some(read_hash(reader)?)
    } else {
        None
    };
    Some(TurnRecord {
        declared,
        encoding,
        payload,
        fs_root,
    })
}

fn encode_attach(out: &mut Vec<u8>, turn: TurnId, root: &BlobHash) -> u8 {
    put(out, turn.get());
    out.extend_from_slice(root.as_bytes());
    kind::ATTACH_FS
}

fn decode_attach(reader: &mut Reader<'_>) -> Option<Record> {
    Some(Record::AttachFs {
        turn: TurnId::new(reader.u64()?)?,
        root: read_hash(reader)?,
    })
}

fn encode_put_blob(out: &mut Vec<u8>, blob: &BlobName) -> u8 {
    put_blob_name(out, blob);
    kind::PUT_BLOB
}

fn encode_bundle(out: &mut Vec<u8>, bundle: &ParsedBundle) -> u8 {
    put_bytes(out, bundle.id().as_bytes());
    put_bytes(out, bundle.bytes());
    kind::PUT_BUNDLE
}

fn decode_bundle(reader: &mut Reader<'_>) -> Option<Record> {
    // The submitter parsed the bundle before it was logged, so a failure means damage.
    let bundle = ParsedBundle::parse(reader.str()?, reader.bytes()?).ok()?;
    Some(Record::PutBundle { bundle })
}

fn encode_set_labels(out: &mut Vec<u8>, context: ContextId, labels: &Labels) -> u8 {
    put(out, context.get());
    put_labels(out, labels);
    kind::SET_LABELS
}

fn decode_set_labels(reader: &mut Reader<'_>) -> Option<Record> {
    Some(Record::SetLabels {
        context: ContextId::new(reader.u64()?)?,
        labels: read_labels(reader)?,
    })
}

fn encode_lost(out: &mut Vec<u8>, turns: u64, contexts: u64) -> u8 {
    put(out, turns);
    put(out, contexts);
    kind::LOST
}

fn decode_lost(reader: &mut Reader<'_>, in_feed: bool) -> Option<Record> {
    let (turns, contexts) = (reader.u64()?, reader.u64()?);
    // A forged count must not make replay add rows without end.
    (turns <= LOST_MAX && contexts <= LOST_MAX).then_some(Record::Lost {
        turns,
        contexts,
        in_feed,
    })
}

fn encode_lost_root(out: &mut Vec<u8>, turn: TurnId, root: &BlobHash, attached: bool) -> u8 {
    put(out, turn.get());
    out.extend_from_slice(root.as_bytes());
    out.push(if attached { ATTACHED } else { 0 });
    kind::LOST_ROOT
}

fn decode_lost_root(reader: &mut Reader<'_>) -> Option<Record> {
    let (turn, root) = (TurnId::new(reader.u64()?)?, read_hash(reader)?);
    Some(Record::LostRoot {
        turn,
        root,
        attached: reader.u8()? & ATTACHED != 0,
    })
}

pub(crate) fn put_labels(out: &mut Vec<u8>, labels: &Labels) {
    put(out, labels.len() as u64);
    for (key, value) in labels {
        put_bytes(out, key.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

pub(crate) fn read_labels(reader: &mut Reader<'_>) -> Option<Labels> {
    let count = reader.u64()?;
    (0..count)
        .map(|_| Some((reader.str()?.to_owned(), reader.str()?.to_owned())))
        .collect()
}

fn put_blob_name(out: &mut Vec<u8>, name: &BlobName) {
    if let Some(at) = name.in_frame {
        return put(out, u64::from(at) + 1);
    }
    put(out, 0);
    out.extend_from_slice(name.hash.as_bytes());
}

fn read_blob_name(
    reader: &mut Reader<'_>,
    frame: &impl Fn(u32) -> Option<BlobHash>,
) -> Option<BlobName> {
    match reader.u32()? {
        0 => Some(BlobName {
            hash: read_hash(reader)?,
            in_frame: None,
        }),
        n => Some(BlobName {
            hash: frame(n - 1)?,
            in_frame: Some(n - 1),
        }),
    }
}

fn read_hash(reader: &mut Reader<'_>) -> Option<BlobHash> {
    Some(BlobHash(reader.read_bytes(32)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let id = |n| TurnId::new(n).unwrap();
        let context = ContextId::new(300).unwrap();
        let labels = Labels::from([("a".into(), "1".into()), ("b".into(), String::new())]);
        let key = Key::new(Bytes::from_static(b"k\0ey"));
        let turn = |in_frame, fs_root| TurnRecord {
            declared: TypeRef::new("com.example.Message", 3),
            encoding: 1,
            payload: BlobName {
                hash: BlobHash::of(b"blob 0"),
                in_frame,
            },
            fs_root,
        };
        let part = PartRecord {
            context,
            sent_parent: Some(id(9)),
            expected_head: Some(None),
            parent: Some(id(9)),
            depth: 4,
            placed: false,
            turns: [turn(Some(0), None), turn(None, Some(BlobHash::of(b"root")))]
                .into_iter()
                .collect(),
        };
        let onto_head = PartRecord {
            sent_parent: None,
            expected_head: None,
            placed: true,
            ..part.clone()
        };
        vec![
            Record::Create { base: None, labels: Labels::new(), key: None },
            Record::Create { base: Some(id(5)), labels: labels.clone(), key: key.clone() },
            Record::Append { parts: [part, onto_head].into_iter().collect(), key, strict: true },
            Record::AttachFs { turn: id(7), root: BlobHash::of(b"root") },
            Record::PutBlob { blob: BlobName { hash: BlobHash::of(b"blob 0"), in_frame: Some(0) } },
            Record::PutBundle {
                bundle: ParsedBundle::parse(
                    "b#1",
                    br#"{"registry_version":1,"bundle_id":"b#1","types":{},"enums":{}}"#,
                )
                .unwrap(),
            },
            Record::PutBundle {
                bundle: ParsedBundle::parse(
                    "b#2",
                    br#"{"registry_version":1,"bundle_id":"b#2","types":{"T":{"versions":{"1":{"fields":{"1":{"name":"n","type":"int32"}}}}}}}"#,
                )
                .unwrap(),
            },
            Record::SetLabels { context, labels },
            Record::Lost { turns: 300, contexts: 1, in_feed: false },
            Record::Lost { turns: 300, contexts: 1, in_feed: true },
            Record::LostRoot { turn: id(7), root: BlobHash::of(b"root"), attached: true },
        ]
    }

    fn in_frame(at: u32) -> Option<BlobHash> {
        (at == 0).then(|| BlobHash::of(b"blob 0"))
    }

    #[test]
    fn every_record_reads_back() {
        for record in samples() {
            let mut body = Vec::new();
            let tag = record.encode(&mut body);
            assert_eq!(Record::decode(tag, &body, &in_frame), Ok(record));
        }
    }

    #[test]
    fn a_record_cut_or_prolonged_at_any_byte_is_malformed() {
        for record in samples() {
            let mut body = Vec::new();
            let tag = record.encode(&mut body);
            for cut in 0..body.len() {
                let read = Record::decode(tag, &body[..cut], &in_frame);
                assert_eq!(read, Err(RecordError::Malformed), "{record:?} at {cut}");
            }
            body.push(0);
            assert_eq!(
                Record::decode(tag, &body, &in_frame),
                Err(RecordError::Malformed)
            );
        }
    }

    #[test]
    fn unknown_kinds_and_versions_are_told_apart_from_damage() {
        let unknown =
            |kind, version| Record::decode(RecordTag { kind, version }, &[0, 0, 0], &in_frame);
        assert_eq!(unknown(99, VERSION), Err(RecordError::UnknownKind));
        assert_eq!(unknown(1, 2), Err(RecordError::UnknownKind));
        assert_eq!(unknown(5, 3), Err(RecordError::UnknownKind));
        assert_eq!(unknown(7, 3), Err(RecordError::UnknownKind));
    }

    #[test]
    fn only_a_bundle_with_other_spellings_and_losses_in_the_feed_need_a_newer_reader() {
        let newer = |record: &Record| record.encode(&mut Vec::new()).version > VERSION;
        let needs_newer: Vec<Record> = samples().into_iter().filter(newer).collect();
        assert!(matches!(
            needs_newer[..],
            [Record::PutBundle { .. }, Record::Lost { in_feed: true, .. }]
        ));
    }
}
