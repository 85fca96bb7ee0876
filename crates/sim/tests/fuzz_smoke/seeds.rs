//! Seeds that come from golden data and from what the documents show.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use turnkeep_journal::{
    Batch, BlobRecord, FileLog, Log, LogOptions, MemoryStorage, Stamp, SyncPolicy, blob_crc,
};
use turnkeep_types::{BlobHash, Compression, Timestamp};

type Seeds = Vec<(String, Vec<u8>)>;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text.replace(' ', "")).unwrap()
}

fn named(rows: &[(&str, &str)], bytes: fn(&str) -> Vec<u8>) -> Seeds {
    rows.iter()
        .map(|(name, text)| ((*name).to_owned(), bytes(text)))
        .collect()
}

/// The golden frames.
pub(crate) fn frames() -> Seeds {
    let mut seeds = Seeds::new();
    for file in ["requests", "responses"] {
        let text = fs::read(root().join(format!("testdata/frames/{file}.json"))).unwrap();
        let entries: Vec<Value> = serde_json::from_slice(&text).unwrap();
        for entry in entries {
            let name = format!("{file}-{}", entry["name"].as_str().unwrap());
            seeds.push((name, unhex(entry["hex"].as_str().unwrap())));
        }
    }
    seeds
}

/// One payload per kind of value, and some that are wrong.
pub(crate) fn payloads() -> Seeds {
    let rows = [
        ("empty-map", "80"),
        ("scalars", "84 01 c3 07 cc ff 0d a5 68656c6c6f 16 02"),
        ("digit-string-key", "81 a2 3133 a1 61"),
        ("text-key", "81 a4 6e616d65 01"),
        ("tag-twice", "82 01 c2 01 c3"),
        ("retired-tag", "81 02 a1 61"),
        ("unknown-tags", "82 63 cf ffffffffffffffff 64 a1 61"),
        ("u64-max", "81 0a cf ffffffffffffffff"),
        ("i64-min", "81 06 d3 8000000000000000"),
        ("floats", "82 0b ca 7f800000 0c cb 7ff8000000000000"),
        ("binary", "81 0e c4 04 00010203"),
        ("invalid-utf8", "81 0d a2 c328"),
        ("u64-array", "81 0f 93 01 cd 0100 cf 8000000000000000"),
        ("links", "81 10 91 83 01 a1 61 02 05 03 81 01 a1 62"),
        ("map-by-name", "81 11 81 a1 6b 81 01 a1 61"),
        ("map-by-number", "81 12 81 ff 91 c4 01 00"),
        (
            "typed-blob",
            "81 13 83 01 a9 746573742e4c696e6b 02 02 03 c4 04 81 01 a1 61",
        ),
        (
            "any-nested",
            "81 14 82 01 81 01 01 02 93 01 02 d6 05 00000001",
        ),
        ("any-deep", "81 14 91 91 91 91 91 91 91 91 90"),
        ("enums", "82 16 63 17 93 01 02 09"),
        (
            "times",
            "83 18 cf 0000018cc251f400 19 d3 ffffffffffffffff 1a cd 03e8",
        ),
        ("time-beyond-the-calendar", "81 18 cf ffffffffffffffff"),
        ("contradictions", "83 01 a1 61 07 a1 61 0f 81 01 01"),
        ("nil", "82 0d c0 15 c0"),
        ("not-a-map", "93 01 02 03"),
        ("trailing-bytes", "80 00"),
        ("huge-length", "df ffffffff 01"),
        ("huge-string", "81 0d db ffffffff 61"),
    ];
    named(&rows, unhex)
}

/// Bundles that are published somewhere, and some that are refused.
pub(crate) fn bundles() -> Seeds {
    let rows = [
        ("empty-object", "{}"),
        (
            "minimal",
            r#"{"registry_version":1,"bundle_id":"a","types":{},"enums":{}}"#,
        ),
        (
            "key-twice",
            r#"{"registry_version":1,"bundle_id":"a","bundle_id":"b","types":{}}"#,
        ),
        (
            "every-type",
            r#"{"registry_version":1,"bundle_id":"e","types":{"t.A":{"versions":{"1":{"fields":{"1":{"name":"a","type":"u64"},"2":{"name":"b","type":"array","items":{"type":"map","key_type":"string","value_type":"t.B"}},"3":{"name":"c","type":"typed_blob","optional":true}}}}},"t.B":{"versions":{"1":{"fields":{"1":{"name":"x","type":"f32"}}}}}},"enums":{"t.E":{"1":"one"}}}"#,
        ),
        (
            "tombstone",
            r#"{"registry_version":1,"bundle_id":"t","types":{"t.A":{"versions":{"2":{"fields":{"1":{"tombstone":true}}}}}}}"#,
        ),
        (
            "bad-tag",
            r#"{"registry_version":1,"bundle_id":"t","types":{"t.A":{"versions":{"1":{"fields":{"01":{"name":"a","type":"u8"}}}}}}}"#,
        ),
        (
            "numbers",
            r#"{"registry_version":1,"bundle_id":"n","types":{},"x":[1e21,-0.0,0.1,9007199254740993]}"#,
        ),
    ];
    let mut seeds = named(&rows, |text| text.as_bytes().to_vec());
    seeds.push((
        "chat".to_owned(),
        fs::read(root().join("docs/examples/chat.json")).unwrap(),
    ));
    seeds
}

/// Queries as clients send them, and some that are wrong.
pub(crate) fn queries() -> Seeds {
    let rows = [
        ("empty", ""),
        ("page", "limit=64&before_turn_id=12&view=both"),
        (
            "explicit",
            "type_hint_mode=explicit&as_type_id=com.example.Message&as_type_version=1",
        ),
        (
            "rendering",
            "include_unknown=1&bytes_render=hex&u64_format=number&enum_render=both&time_render=unix_ms",
        ),
        ("alias", "bytes_format=len_only"),
        ("contexts", "limit=10&cursor=5&label=agent%3Ddemo&label=x"),
        ("events", "after=0"),
        ("escapes", "as_type_id=%E2%82%AC%2F%23+&limit=%31"),
        ("bad-escape", "view=%zz%2"),
        ("twice", "limit=1&limit=2"),
        ("no-value", "limit&view="),
        ("huge", "limit=99999999999999999999"),
    ];
    named(&rows, |text| text.as_bytes().to_vec())
}

/// Small logs: healthy, cut, of several segments, with a flipped bit.
pub(crate) fn logs() -> Seeds {
    let one = log(1 << 12, 3);
    let many = log(512, 6);
    let first = &one[0];
    let mut flipped = many.clone();
    flipped[0][100] ^= 1;
    let parts: Vec<(&str, Vec<&[u8]>)> = vec![
        ("empty", vec![]),
        ("one-segment", vec![first]),
        ("zeros-after", vec![first, &[0; 64]]),
        ("cut-in-a-frame", vec![&first[..first.len() - 9]]),
        ("cut-in-the-header", vec![&first[..20]]),
        ("many-segments", many.iter().map(Vec::as_slice).collect()),
        ("a-segment-missing", vec![&many[0], &many[2]]),
        ("a-bit-flipped", flipped.iter().map(Vec::as_slice).collect()),
    ];
    parts
        .iter()
        .map(|(name, parts)| ((*name).to_owned(), parts.concat()))
        .collect()
}

/// The segments of a log of some frames, without the zeros behind the last one.
fn log(segment_bytes: u64, frames: u64) -> Vec<Vec<u8>> {
    let storage = MemoryStorage::new();
    let options = LogOptions {
        segment_bytes,
        sync: SyncPolicy::EveryFrame,
        writer: 7,
        store_id_if_new: [9; 16],
        known_durable: None,
    };
    let (mut log, _) = FileLog::open(Arc::new(storage.clone()), options).unwrap();
    for number in 1..=frames {
        let mut batch = Batch::new();
        batch.restart(Stamp {
            created_at: Timestamp(number),
            marks: [number, 0],
        });
        let bytes = Bytes::from(vec![u8::try_from(number).unwrap(); 40]);
        let (hash, crc) = (BlobHash::of(&bytes), blob_crc(&bytes));
        batch.push_blob(BlobRecord {
            hash,
            raw_len: 40,
            form: Compression::None,
            crc,
            bytes,
        });
        batch.push_command(1, 1, b"a command");
        log.append(&batch).unwrap();
    }
    drop(log);
    let used = |bytes: &Vec<u8>| {
        bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last / 8 * 8 + 8)
    };
    let segments = storage
        .files()
        .into_iter()
        .filter(|(name, _)| name.ends_with("seg"));
    segments
        .map(|(_, bytes)| bytes[..used(&bytes).min(bytes.len())].to_vec())
        .filter(|bytes| !bytes.is_empty())
        .collect()
}
