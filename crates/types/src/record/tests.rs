//! Shapes, tables and their errors, with small records of each.

use std::collections::BTreeSet;

use super::describe::BundleText;
use super::sample::{Choices, Sample, SampleKinds};
use super::*;
use crate::Timestamp;
use crate::{record_enum, record_struct};

#[derive(Debug, Clone, PartialEq)]
struct Everything {
    name: String,
    long: String,
    maybe_long: Option<String>,
    count: u64,
    small: u32,
    at: Option<Timestamp>,
    lasted: u64,
    ratio: f64,
    said: Option<bool>,
    set: bool,
    bytes: Bytes,
    words: Vec<String>,
    hashes: BTreeSet<BlobHash>,
    inner: Box<Inner>,
    step: Step,
}

record_struct! {
    Everything {
        1 name: Text,
        2 long: LongText,
        4 maybe_long: Optional<LongText>,
        6 count: U64,
        7 small: U32,
        8 at: Optional<UnixMs>,
        9 lasted: DurationMs,
        10 ratio: F64,
        11 said: Optional<Bool>,
        12 set: Flag,
        13 bytes: Binary,
        14 words: List,
        15 hashes: List,
        16 inner: Map<Inner>,
        17 step: Flat<Step>,
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    text: String,
}

record_struct! {
    Inner {
        1 text: Markdown,
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Begun,
    Named(String),
    Moved { from: String, to: String },
}

record_enum! {
    Step, kind 17 {
        "begun" Begun()
        "named" Named(18 name_of_step: Text)
        "moved" Moved { 19 from: Text, 20 to as goal: Text }
    }
}

fn find_in(blobs: &[Bytes], hash: &BlobHash) -> Option<Bytes> {
    blobs
        .iter()
        .find(|blob| BlobHash::of(blob) == *hash)
        .cloned()
}

fn read_back<R: Record>(record: &R) -> Result<R, DamagedRecord> {
    let encoded = encode(record);
    decode(&encoded.payload, &|hash| find_in(&encoded.blobs, hash))
}

fn sampled(seed: u64) -> Everything {
    Everything::sample(&mut Choices::from_seed(seed))
}

#[test]
fn whatever_is_written_reads_back() {
    for seed in 0..500 {
        let record = sampled(seed);
        assert_eq!(read_back(&record), Ok(record));
    }
    for kind in Step::KINDS {
        let step = Step::sample_kind(kind, &mut Choices::new(Vec::new())).unwrap();
        assert_eq!(read_back(&step), Ok(step));
    }
}

#[test]
fn a_cut_or_changed_record_never_panics() {
    for seed in 0..10 {
        let encoded = encode(&sampled(seed));
        let find_blob = |hash: &BlobHash| find_in(&encoded.blobs, hash);
        for place in 0..encoded.payload.len() {
            let cut = decode::<Everything>(&encoded.payload[..place], &find_blob);
            assert!(cut.is_err(), "seed {seed} cut at {place}");
            for bit in 0..8 {
                let mut changed = encoded.payload.to_vec();
                changed[place] ^= 1 << bit;
                drop(decode::<Everything>(&changed, &find_blob));
            }
        }
    }
}

#[test]
fn a_text_over_the_limit_is_a_blob() {
    let text_of = |bytes: usize| Everything {
        long: "é".repeat(bytes / 2),
        maybe_long: None,
        ..sampled(1)
    };
    let short = text_of(INLINE_BYTES_MAX);
    assert!(encode(&short).blobs.is_empty());
    let long = text_of(INLINE_BYTES_MAX + 2);
    let encoded = encode(&long);
    assert_eq!(encoded.blobs, [Bytes::from(long.long.clone())]);
    assert!(encoded.payload.len() < INLINE_BYTES_MAX);
    let missing = decode::<Everything>(&encoded.payload, &|_| None);
    let hash = BlobHash::of(long.long.as_bytes());
    assert_eq!(
        missing.unwrap_err().to_string(),
        format!("the field `long` of Everything is in the blob {hash}, which is missing")
    );
    let damaged = decode::<Everything>(&encoded.payload, &|_| Some(Bytes::from_static(b"\xff")));
    assert!(damaged.is_err());
    assert_eq!(read_back(&long), Ok(long));
}

fn check_step(map: &TaggedMap<'_>, expect: &str) {
    let read = decode::<Step>(&map.encode(), &|_| None);
    let said = match read {
        Ok(step) => format!("{step:?}"),
        Err(damage) => damage.to_string(),
    };
    assert_eq!(said, expect);
}

#[test]
fn an_error_names_the_field_or_the_kind() {
    let kind = |word: &'static str| TaggedMap::default().text(17, word);
    check_step(&kind("begun"), "Begun");
    check_step(&kind("named").text(18, "x"), "Named(\"x\")");
    // A newer version may have added a field.
    check_step(&kind("named").text(18, "x").number(99, 1), "Named(\"x\")");
    check_step(
        &kind("named"),
        "the field `name_of_step` of Step is missing",
    );
    check_step(
        &kind("moved").text(19, "here").number(20, 1),
        "the field `goal` of Step has another form than expected",
    );
    check_step(
        &kind("sunk"),
        "Step is of the unknown kind `sunk`: a newer version of Turnkeep can read it",
    );
    check_step(&TaggedMap::default(), "the field `kind` of Step is missing");
    let no_map = decode::<Step>(b"\x01", &|_| None);
    assert_eq!(no_map, Err(DamagedRecord::NotATaggedMap));
}

#[test]
fn a_bundle_describes_each_field() {
    let mut bundle = BundleText::new("com.example");
    bundle.add::<Everything>();
    let json = bundle.to_json(1);
    for line in [
        "  \"bundle_id\": \"com.example#1\",",
        "    \"com.example.Inner\": {",
        "            \"1\": { \"name\": \"text\", \"type\": \"string\", \"semantic\": \"markdown\" }",
        "            \"2\": { \"name\": \"long\", \"type\": \"string\", \"optional\": true },",
        "            \"3\": { \"name\": \"long_blob\", \"type\": \"string\", \"optional\": true },",
        "            \"8\": { \"name\": \"at\", \"type\": \"u64\", \"semantic\": \"unix_ms\", \
         \"optional\": true },",
        "            \"16\": { \"name\": \"inner\", \"type\": \"com.example.Inner\" },",
        "            \"17\": { \"name\": \"kind\", \"type\": \"string\" },",
        "            \"20\": { \"name\": \"goal\", \"type\": \"string\", \"optional\": true }",
    ] {
        assert!(json.lines().any(|known| known == line), "{line}\n{json}");
    }
}
