//! The vectors of `testdata/payloads`, which every client runs as well: values become exactly these
//! bytes, and these bytes become exactly this JSON. The files are the truth; nothing here rewrites
//! them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod notation;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnkeep_store::Registry;
use turnkeep_store::projection::{
    DecodeFault, ENCODING_MSGPACK, IncludeUnknown, MissingFields, Projected, ProjectionError,
    ProjectionOptions, encode, project,
};
use turnkeep_types::TypeRef;

const BUNDLE: &str = include_str!("../../../../testdata/payloads/vectors-bundle.json");
const VECTORS: &str = include_str!("../../../../testdata/payloads/vectors.json");
const TOLERATED: &str = include_str!("../../../../testdata/payloads/tolerated.json");
const MALFORMED: &str = include_str!("../../../../testdata/payloads/malformed.json");

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.put("payload-vectors", BUNDLE.as_bytes()).unwrap();
    registry
}

/// The entries of a file, whose names are unique.
fn entries(text: &str) -> Vec<Value> {
    let entries: Vec<Value> = serde_json::from_str(text).unwrap();
    let names: BTreeSet<&str> = entries.iter().map(name).collect();
    assert_eq!(names.len(), entries.len(), "a name occurs twice");
    assert!(entries.len() > 15, "only {} entries", entries.len());
    entries
}

fn name(entry: &Value) -> &str {
    entry["name"].as_str().unwrap()
}

fn declared(entry: &Value) -> TypeRef {
    let version = entry["version"].as_u64().unwrap();
    TypeRef::new(
        entry["type_id"].as_str().unwrap(),
        version.try_into().unwrap(),
    )
}

fn msgpack(entry: &Value) -> Vec<u8> {
    hex::decode(entry["msgpack"].as_str().unwrap()).unwrap()
}

/// Writes an inner error as the gateway does, which is how the vectors have it.
fn write_error(out: &mut String, error: &ProjectionError) {
    let (code, status) = match error {
        ProjectionError::Conflict { .. } => ("Conflict", 409),
        ProjectionError::MissingTypeHint => ("MissingTypeHint", 422),
        ProjectionError::FailedDependency(_) => ("FailedDependency", 424),
        ProjectionError::Decode(_) => ("DecodeError", 500),
        ProjectionError::TooLarge { .. } => ("TooLarge", 413),
    };
    let message = error.to_string();
    let shown = json!({ "code": code, "status": status, "message": message });
    out.push_str(&shown.to_string());
}

fn projected(entry: &Value, include_unknown: IncludeUnknown) -> Projected {
    let options = ProjectionOptions {
        include_unknown,
        ..ProjectionOptions::default()
    };
    let result = project(
        &registry(),
        &declared(entry),
        ENCODING_MSGPACK,
        &msgpack(entry),
        &options,
        write_error,
    );
    result.unwrap_or_else(|error| panic!("{}: {error}", name(entry)))
}

/// Compares the two typed views of an entry's bytes with what it says.
fn check_projection(entry: &Value) {
    let plain = projected(entry, IncludeUnknown::No);
    assert_eq!(plain.unknown, None);
    let with_unknown = projected(entry, IncludeUnknown::Yes);
    assert_eq!(plain.data, with_unknown.data, "{}", name(entry));

    let mut text = String::from("{");
    with_unknown.push_members(&mut text);
    text.push('}');
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        shown["data"],
        entry["typed"],
        "{}: typed is {}",
        name(entry),
        shown["data"]
    );
    let unknown = entry
        .get("unknown")
        .cloned()
        .unwrap_or_else(|| serde_json::json!({}));
    assert_eq!(
        shown["unknown"],
        unknown,
        "{}: unknown is {}",
        name(entry),
        shown["unknown"]
    );
    assert_eq!(
        shown.get("warnings"),
        entry.get("warnings"),
        "{}",
        name(entry)
    );
}

#[test]
fn values_become_the_bytes() {
    for entry in entries(VECTORS) {
        let bytes = hex::encode(notation::encode(&entry["value"]));
        assert_eq!(
            bytes,
            entry["msgpack"].as_str().unwrap(),
            "{}: msgpack is {bytes}",
            name(&entry)
        );
    }
}

#[test]
fn bytes_become_the_typed_json() {
    for entry in entries(VECTORS) {
        assert!(
            entry.get("warnings").is_none(),
            "{}: a vector has no warnings",
            name(&entry)
        );
        check_projection(&entry);
    }
}

#[test]
fn typed_json_becomes_the_bytes_unless_it_says_that_it_is_lossy() {
    let registry = registry();
    for entry in entries(VECTORS) {
        let encoded = encode(
            &registry,
            &declared(&entry),
            &entry["typed"],
            MissingFields::Allow,
        );
        let lossy = encoded.ok() != Some(msgpack(&entry));
        assert_eq!(
            lossy,
            entry["typed_is_lossy"].as_bool().unwrap_or(false),
            "{}",
            name(&entry)
        );
    }
}

#[test]
fn what_readers_tolerate_is_shown_with_its_warnings() {
    for entry in entries(TOLERATED) {
        check_projection(&entry);
    }
}

#[test]
fn the_malformed_are_refused_for_their_reason_whatever_the_type() {
    let registry = registry();
    let types: Vec<TypeRef> = registry
        .types()
        .flat_map(|(_, versions)| {
            versions
                .map(|version| version.type_ref.clone())
                .collect::<Vec<_>>()
        })
        .collect();
    for entry in entries(MALFORMED) {
        for declared in &types {
            let result = project(
                &registry,
                declared,
                ENCODING_MSGPACK,
                &msgpack(&entry),
                &ProjectionOptions::default(),
                write_error,
            );
            assert_eq!(
                class(&result),
                entry["error"].as_str().unwrap(),
                "{} as {declared}",
                name(&entry)
            );
        }
    }
}

fn class(result: &Result<Projected, ProjectionError>) -> &'static str {
    match result {
        Err(ProjectionError::Decode(fault)) => match fault {
            DecodeFault::Empty => "empty",
            DecodeFault::NotAMap { .. } => "not_a_map",
            DecodeFault::Truncated { .. } => "truncated",
            DecodeFault::Reserved { .. } => "reserved",
            DecodeFault::Trailing { .. } => "trailing",
            DecodeFault::TooDeep { .. } => "too_deep",
            DecodeFault::Encoding(_) => "encoding",
        },
        Err(_) => "another error",
        Ok(_) => "accepted",
    }
}

#[test]
fn every_published_version_has_a_vector_or_is_inside_one() {
    let registry = registry();
    let shown: BTreeSet<String> = entries(VECTORS)
        .iter()
        .map(|entry| declared(entry).to_string())
        .collect();
    for (id, versions) in registry.types() {
        for version in versions.filter(|_| &**id != "vectors.Point") {
            assert!(
                shown.contains(&version.type_ref.to_string()),
                "{} has no vector",
                version.type_ref
            );
        }
    }
}

#[test]
fn the_bundle_has_every_type_and_semantic_of_descriptors() {
    let words = [
        "bool",
        "i8",
        "i16",
        "i32",
        "i64",
        "u8",
        "u16",
        "u32",
        "u64",
        "f32",
        "f64",
        "string",
        "bytes",
        "array",
        "map",
        "typed_blob",
        "any",
        "unix_ms",
        "unix_s",
        "duration_ms",
        "url",
        "markdown",
    ];
    for word in words {
        let written = ["type", "semantic"].map(|key| format!("\"{key}\": \"{word}\""));
        assert!(
            written.iter().any(|text| BUNDLE.contains(text)),
            "the bundle has no {word}"
        );
    }
}

#[test]
fn optional_fields_are_there_exactly_if_they_are_not_empty() {
    let registry = registry();
    for entry in entries(VECTORS) {
        let version = registry
            .descriptor(&declared(&entry).id, declared(&entry).version)
            .unwrap();
        for field in &version.fields {
            let value = entry["value"].get(field.tag.to_string());
            let as_promised =
                value.map_or(field.optional, |value| !field.optional || !is_empty(value));
            assert!(as_promised, "{}: field {}", name(&entry), field.name);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    let zeros = [
        vec![0xc0],
        vec![0xc2],
        vec![0],
        vec![0xa0],
        vec![0xc4, 0],
        vec![0x90],
        vec![0x80],
    ];
    zeros.contains(&notation::encode(value))
}
