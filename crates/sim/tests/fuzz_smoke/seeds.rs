//! Seeds that come from golden data and from what the documents show.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

type Seeds = Vec<(String, Vec<u8>)>;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn named(rows: &[(&str, &str)], bytes: fn(&str) -> Vec<u8>) -> Seeds {
    rows.iter().map(|(name, text)| ((*name).to_owned(), bytes(text))).collect()
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
        ("small-fields", "82 01 02 02 a5 68656c6c6f"),
        ("digit-string-key", "81 a1 31 03"),
        ("text-key", "81 a4 6e616d65 01"),
        ("tag-twice", "82 01 01 01 02"),
        ("u64-max", "81 03 cf ffffffffffffffff"),
        ("i64-min", "81 04 d3 8000000000000000"),
        ("floats", "83 05 ca 7f800000 06 cb 7ff8000000000000 07 cb 3ff8000000000000"),
        ("binary", "81 08 c4 04 00010203"),
        ("invalid-utf8", "81 02 a2 c328"),
        ("nested-map", "81 09 82 01 81 01 01 02 93 01 02 03"),
        ("nested-arrays", "81 0a 91 91 91 91 91 91 90"),
        ("ext", "81 0b d6 05 00000001"),
        ("nil-and-bools", "83 01 c0 02 c2 03 c3"),
        ("typed-blob", "81 0c 83 01 a3 782e79 02 01 03 c4 01 80"),
        ("not-a-map", "93 01 02 03"),
        ("trailing-bytes", "80 00"),
        ("huge-length", "df ffffffff 01"),
        ("huge-string", "81 01 db ffffffff 61"),
    ];
    named(&rows, unhex)
}

/// Bundles that are published somewhere, and some that are refused.
pub(crate) fn bundles() -> Seeds {
    let rows = [
        ("empty-object", "{}"),
        ("minimal", r#"{"registry_version":1,"bundle_id":"a","types":{},"enums":{}}"#),
        ("key-twice", r#"{"registry_version":1,"bundle_id":"a","bundle_id":"b","types":{}}"#),
        (
            "every-type",
            r#"{"registry_version":1,"bundle_id":"e","types":{"t.A":{"versions":{"1":{"fields":{"1":{"name":"a","type":"u64"},"2":{"name":"b","type":"array","items":{"type":"map","key_type":"string","value_type":"t.B"}},"3":{"name":"c","type":"typed_blob","optional":true}}}}},"t.B":{"versions":{"1":{"fields":{"1":{"name":"x","type":"f32"}}}}}},"enums":{"t.E":{"1":"one"}}}"#,
        ),
        (
            "tombstone",
            r#"{"registry_version":1,"bundle_id":"t","types":{"t.A":{"versions":{"2":{"fields":{"1":{"tombstone":true}}}}}}}"#,
        ),
        ("bad-tag", r#"{"registry_version":1,"bundle_id":"t","types":{"t.A":{"versions":{"1":{"fields":{"01":{"name":"a","type":"u8"}}}}}}}"#),
        ("numbers", r#"{"registry_version":1,"bundle_id":"n","types":{},"x":[1e21,-0.0,0.1,9007199254740993]}"#),
    ];
    let mut seeds = named(&rows, |text| text.as_bytes().to_vec());
    seeds.push(("chat".to_owned(), fs::read(root().join("docs/examples/chat.json")).unwrap()));
    seeds
}

/// Queries as clients send them, and some that are wrong.
pub(crate) fn queries() -> Seeds {
    let rows = [
        ("empty", ""),
        ("page", "limit=64&before_turn_id=12&view=both"),
        ("explicit", "type_hint_mode=explicit&as_type_id=com.example.Message&as_type_version=1"),
        ("rendering", "include_unknown=1&bytes_render=hex&u64_format=number&enum_render=both&time_render=unix_ms"),
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

/// Small logs, healthy and cut.
pub(crate) fn logs() -> Seeds {
    Seeds::new()
}
