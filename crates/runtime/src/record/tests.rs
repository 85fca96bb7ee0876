//! Every kind of event survives the store, damaged bytes are rejected, and the published bundle
//! says what the tables say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bytes::Bytes;
use proptest::prelude::*;
use turnkeep_store::Registry;
use turnkeep_store::projection::{ENCODING_MSGPACK, IncludeUnknown, ProjectionOptions, project};
use turnkeep_types::BlobHash;
use turnkeep_types::record::describe::BundleText;
use turnkeep_types::tagged_map::TaggedMap;

use super::samples::{Choices, Sample, SampleKinds as _, event_kinds, sample_event};
use super::*;
use crate::approval::{Approval, ApprovalSubject, Resolution};
use crate::fact::{Fact, NodeChange, ShownNode, TurnStep};
use crate::orchestration::OrchestrationCall;

/// The events of `golden.txt` are decoded and encoded again, so old bytes keep their meaning.
const GOLDEN: &str = include_str!("golden.txt");

fn find_in(blobs: &[Bytes], hash: &BlobHash) -> Option<Bytes> {
    let found = blobs.iter().find(|blob| BlobHash::of(blob) == *hash);
    found.cloned()
}

fn read_back(event: &Event) -> Result<Event, DamagedRecord> {
    let encoded = encode(event);
    decode(&encoded.payload, &|hash| find_in(&encoded.blobs, hash))
}

/// Compares a file of the repository with what it should be. `UPDATE=1` rewrites it.
fn check_file(name: &str, kept: &str, expect: &str) {
    if std::env::var_os("UPDATE").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/record/");
        std::fs::write(format!("{folder}{name}"), expect).unwrap();
    } else {
        assert!(
            kept == expect,
            "{name} is not what the tables say: see the diff after UPDATE=1"
        );
    }
}

proptest! {
    #[test]
    fn any_event_reads_back_as_it_was_written(
        numbers in prop::collection::vec(any::<u64>(), 0..200),
    ) {
        let event = Event::sample(&mut Choices::new(numbers));
        prop_assert!(read_back(&event).as_ref() == Ok(&event));
        prop_assert!(encode(&event.clone()) == encode(&event));
    }

    #[test]
    fn any_bytes_are_an_event_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(event) = decode(&bytes, &|_| None) {
            prop_assert_eq!(read_back(&event), Ok(event.clone()));
        }
    }
}

#[test]
fn every_kind_of_event_reads_back_as_it_was_written() {
    for kind in event_kinds() {
        for seed in 0..100 {
            let event = sample_event(kind, &mut Choices::from_seed(seed)).unwrap();
            assert_eq!(read_back(&event), Ok(event), "{kind} from seed {seed}");
        }
        let plainest = sample_event(kind, &mut Choices::new(Vec::new())).unwrap();
        assert_eq!(read_back(&plainest), Ok(plainest), "{kind}");
    }
}

/// A kind, its bytes, the blobs and the event, each on a line.
fn golden_entry(event: &Event, kind: &str) -> String {
    let encoded = encode(event);
    let mut entry = format!("{kind}\n{}\n", hex::encode(&encoded.payload));
    let blobs: Vec<String> = encoded.blobs.iter().map(hex::encode).collect();
    writeln!(entry, "{}\n{event:?}", blobs.join(" ")).unwrap();
    entry
}

/// A kind with the kind inside it, such as `node-changed blocked`, and a way to make one.
struct GoldenKind {
    name: String,
    make: Box<dyn Fn(&mut Choices) -> Event>,
}

fn golden_kinds() -> Vec<GoldenKind> {
    let mut kinds = Vec::new();
    let mut add = |name: String, make: Box<dyn Fn(&mut Choices) -> Fact>| {
        let make = Box::new(move |from: &mut Choices| Event {
            fact: make(from),
            ..Event::sample(from)
        });
        kinds.push(GoldenKind { name, make });
    };
    for kind in event_kinds() {
        let make = |from: &mut Choices| Fact::sample_kind(kind, from).unwrap();
        add((*kind).to_owned(), Box::new(make));
    }
    for kind in NodeChange::KINDS {
        let make = |from: &mut Choices| Fact::NodeChanged {
            change: NodeChange::sample_kind(kind, from).unwrap(),
            shown: ShownNode::sample(from),
        };
        add(format!("node-changed {kind}"), Box::new(make));
    }
    for kind in TurnStep::KINDS {
        let make =
            |from: &mut Choices| Fact::TurnStepped(TurnStep::sample_kind(kind, from).unwrap());
        add(format!("turn-stepped {kind}"), Box::new(make));
    }
    // Older resolutions do not say who gave them.
    let resolved = |from: &mut Choices| Fact::ApprovalResolved {
        approval: Sample::sample(from),
        resolution: Resolution {
            by: Some(Sample::sample(from)),
            ..Resolution::sample(from)
        },
    };
    add("approval-resolved by".to_owned(), Box::new(resolved));
    for kind in OrchestrationCall::KINDS {
        let make = |from: &mut Choices| {
            let call = OrchestrationCall::sample_kind(kind, from).unwrap();
            Fact::ApprovalRequested(Box::new(Approval {
                subject: ApprovalSubject::OrchestrationTool(Box::new(call)),
                ..Approval::sample(from)
            }))
        };
        add(format!("approval-requested {kind}"), Box::new(make));
    }
    kinds
}

/// The entry with the most in it that a person can still read.
fn make_golden_entry(kind: &GoldenKind) -> String {
    const ENTRY_BYTES_MAX: usize = 4000;
    let entries = (0..200).map(|seed| {
        let event = (kind.make)(&mut Choices::from_seed(seed));
        golden_entry(&event, &kind.name)
    });
    let readable = entries.filter(|entry| entry.len() <= ENTRY_BYTES_MAX);
    readable.max_by_key(String::len).unwrap()
}

#[test]
fn old_bytes_keep_their_meaning() {
    let mut known = BTreeSet::new();
    let mut again = String::new();
    let mut lines = GOLDEN.lines();
    while let Some(kind) = lines.next() {
        let payload = hex::decode(lines.next().unwrap()).unwrap();
        let blobs = lines.next().unwrap().split_whitespace();
        let blobs: Vec<Bytes> = blobs
            .map(|blob| hex::decode(blob).unwrap().into())
            .collect();
        let event = decode(&payload, &|hash| find_in(&blobs, hash)).unwrap();
        assert_eq!(
            encode(&event).payload,
            payload,
            "{kind} has other bytes now"
        );
        again.push_str(&golden_entry(&event, kind));
        known.insert(kind);
        // The event itself is for people, who see in the diff what a change does to old events.
        lines.next();
    }
    // The file only grows: a store may have what it has.
    for kind in golden_kinds() {
        if !known.contains(kind.name.as_str()) {
            again.push_str(&make_golden_entry(&kind));
        }
    }
    check_file("golden.txt", GOLDEN, &again);
}

/// The fields of each type in its newest version.
fn newest_fields<'a>(bundles: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, Value> {
    let mut newest = BTreeMap::new();
    for json in bundles {
        let bundle: Value = serde_json::from_str(json).unwrap();
        for (name, versions) in bundle["types"].as_object().unwrap() {
            let versions = versions["versions"].as_object().unwrap();
            let number = |version: &&String| version.parse::<u32>().unwrap();
            let last = versions.keys().max_by_key(number).unwrap();
            newest.insert(name.clone(), versions[last]["fields"].clone());
        }
    }
    newest
}

#[test]
fn the_published_bundles_say_what_the_tables_say() {
    let mut bundle = BundleText::new("turnkeep.run");
    bundle.add::<Event>();
    let expect = newest_fields([bundle.to_json(1).as_str()]);
    let published = newest_fields(BUNDLES.iter().map(|bundle| bundle.json));
    for (name, fields) in &expect {
        // A store keeps each bundle as it was published first.
        assert_eq!(
            published.get(name),
            Some(fields),
            "{name} has changed: add a bundle with its next version"
        );
    }
    assert_eq!(published.len(), expect.len());
}

#[test]
fn the_store_publishes_the_bundle_and_shows_every_event_by_it() {
    let mut registry = Registry::default();
    for bundle in BUNDLES {
        registry.put(bundle.id, bundle.json.as_bytes()).unwrap();
    }
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let show = |payload: &[u8]| {
        let declared = event_type();
        project(
            &registry,
            &declared,
            ENCODING_MSGPACK,
            payload,
            &options,
            |_, _| {},
        )
        .unwrap()
    };
    for kind in event_kinds() {
        for seed in 0..20 {
            let event = sample_event(kind, &mut Choices::from_seed(seed)).unwrap();
            let shown = show(&encode(&event).payload);
            assert_eq!(shown.warnings, [], "{kind} from seed {seed}");
            assert_eq!(shown.unknown.as_deref(), Some("{}"), "{kind}");
            let data: Value = serde_json::from_str(&shown.data).unwrap();
            assert_eq!(data["kind"], *kind);
            assert_eq!(data["id"], event.id.to_string());
        }
    }
}

#[test]
fn an_event_cut_or_changed_anywhere_never_panics() {
    for kind in event_kinds() {
        let event = sample_event(kind, &mut Choices::from_seed(11)).unwrap();
        let encoded = encode(&event);
        let find_blob = |hash: &BlobHash| find_in(&encoded.blobs, hash);
        for place in 0..encoded.payload.len() {
            let cut = decode(&encoded.payload[..place], &find_blob);
            assert!(cut.is_err(), "{kind} cut at {place}");
            let changed_by = |mask: u8| {
                let mut changed = encoded.payload.to_vec();
                changed[place] ^= mask;
                decode(&changed, &find_blob)
            };
            for bit in 0..8 {
                // One bit may make an upper-case digit of a UUID, which is the same id.
                drop(changed_by(1 << bit));
            }
            let is_same = changed_by(0x55).is_ok_and(|read| read == event);
            assert!(!is_same, "{kind} changed at {place}");
        }
    }
}

#[test]
fn an_unknown_kind_is_named_and_unknown_tags_are_ignored() {
    let event = sample_event("run-deleted", &mut Choices::from_seed(1)).unwrap();
    let payload = encode(&event).payload;
    let newer = TaggedMap::decode(&payload).unwrap().text(99, "new");
    assert_eq!(decode(&newer.encode(), &|_| None), Ok(event));

    let map = TaggedMap::default()
        .text(1, "0b5f1c9e-8a3d-4c55-9a67-0123456789ab")
        .number(2, 1)
        .number(3, 0)
        .text(10, "run-forked");
    assert_eq!(
        decode(&map.encode(), &|_| None).unwrap_err().to_string(),
        "Fact is of the unknown kind `run-forked`: a newer version of Turnkeep can read it"
    );
}

#[test]
fn a_long_text_is_a_blob_that_must_be_found() {
    let long = "x".repeat(5000);
    let event = Event {
        fact: Fact::AnswerFinal {
            content: long.clone(),
            interrupted: false,
        },
        ..sample_event("run-deleted", &mut Choices::new(Vec::new())).unwrap()
    };
    let encoded = encode(&event);
    assert_eq!(encoded.blobs, [Bytes::from(long)]);
    let missing = decode(&encoded.payload, &|_| None).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("the field `content` of Fact is in the blob"),
        "{missing}"
    );
}
