//! Each rule of evolution, legal and illegal.

mod large;

use serde_json::{Value, json};

use super::*;

fn bundle(id: &str, types: &Value, enums: &Value) -> String {
    json!({ "registry_version": 1, "bundle_id": id, "types": types, "enums": enums }).to_string()
}

/// One type `T` with the given versions.
fn versions(id: &str, versions: &Value) -> String {
    bundle(id, &json!({ "T": { "versions": versions } }), &json!({}))
}

/// One type `T` with version 1 that has these fields.
fn fields(id: &str, fields: &Value) -> String {
    versions(id, &json!({ "1": { "fields": fields } }))
}

fn id_of(bundle: &str) -> String {
    let value: Value = serde_json::from_str(bundle).unwrap();
    value["bundle_id"].as_str().unwrap().to_owned()
}

fn put(registry: &mut Registry, bundle: &str) -> Result<bool, BundleError> {
    registry.put(&id_of(bundle), bundle.as_bytes())
}

/// Publishes all but the last bundle, which must be legal, and says what the last one gets.
fn outcome(bundles: &[String]) -> Result<Registry, BundleError> {
    let (last, before) = bundles.split_last().unwrap();
    let mut registry = Registry::default();
    for earlier in before {
        assert_eq!(put(&mut registry, earlier), Ok(true), "{earlier}");
    }
    let untouched = registry.clone();
    let result = put(&mut registry, last);
    if result.is_err() {
        assert_eq!(
            registry.types_json(),
            untouched.types_json(),
            "a refused bundle left a trace"
        );
        assert_eq!(registry.bundles().len(), untouched.bundles().len());
        assert_eq!(registry.enums.len(), untouched.enums.len());
    }
    result.map(|_| registry)
}

fn legal(bundles: &[String]) -> Registry {
    outcome(bundles).unwrap_or_else(|error| panic!("{error}: {bundles:?}"))
}

/// Asserts a conflict whose message has all these words.
fn conflict(bundles: &[String], words: &[&str]) {
    match outcome(bundles) {
        Err(error @ BundleError::Conflict(_)) => {
            let message = error.to_string();
            for word in words {
                assert!(message.contains(word), "`{message}` lacks `{word}`");
            }
        }
        other => panic!("{other:?}: {bundles:?}"),
    }
}

fn malformed(bundle: &str) {
    match Registry::default().put("b", bundle.as_bytes()) {
        Err(BundleError::Malformed(_)) => {}
        other => panic!("{other:?}: {bundle}"),
    }
}

fn string_field(name: &str) -> Value {
    json!({ "name": name, "type": "string" })
}

#[test]
fn the_contracts_example_is_published() {
    let mut registry = Registry::default();
    let text = r#"{
      "registry_version": 1,
      "bundle_id": "2025-12-19T20:00:00Z#abc123",
      "types": {
        "com.yourorg.ai.MessageTurn": {
          "versions": {
            "1": {
              "fields": {
                "1": { "name": "role", "type": "u8", "enum": "com.yourorg.ai.Role" },
                "2": { "name": "text", "type": "string", "optional": true },
                "3": { "name": "tool_call_id", "type": "u64", "optional": true },
                "4": { "name": "attachments", "type": "array", "items": "typed_blob", "optional": true }
              }
            }
          }
        }
      },
      "enums": {
        "com.yourorg.ai.Role": { "1": "system", "2": "user", "3": "assistant", "4": "tool" }
      }
    }"#;
    assert_eq!(
        registry.put("2025-12-19T20:00:00Z#abc123", text.as_bytes()),
        Ok(true)
    );
    let version = registry
        .descriptor("com.yourorg.ai.MessageTurn", 1)
        .unwrap();
    assert_eq!(version.fields.len(), 4);
    assert!(version.field_named("text").unwrap().optional);
    assert_eq!(
        registry.types_json(),
        json!({"types": [{"type_id": "com.yourorg.ai.MessageTurn", "latest_version": 1, "versions": [1]}]})
    );
    let published: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        registry.descriptor_json(version),
        json!({
            "type_id": "com.yourorg.ai.MessageTurn",
            "type_version": 1,
            "bundle_id": "2025-12-19T20:00:00Z#abc123",
            "fields": published["types"]["com.yourorg.ai.MessageTurn"]["versions"]["1"]["fields"],
            "enums": published["enums"],
        })
    );
}

#[test]
fn the_same_content_in_another_spelling_is_identical() {
    let mut registry = Registry::default();
    let first = r#"{"registry_version":1,"bundle_id":"b","types":{},"x":[1,2]}"#;
    assert!(matches!(
        registry.check("b", first.as_bytes()),
        Ok(Checked::New(_))
    ));
    registry.put("b", first.as_bytes()).unwrap();
    let again =
        r#" { "x" : [1.0, 2e0], "types":{}, "bundle_id":"\u0062", "registry_version":1.0 } "#;
    assert!(matches!(
        registry.check("b", again.as_bytes()),
        Ok(Checked::Identical)
    ));
    let bundle = registry.bundle("b").unwrap();
    assert_eq!(bundle.bytes, first, "the bytes first published are kept");
    let canonical = br#"{"bundle_id":"b","registry_version":1,"types":{},"x":[1,2]}"#;
    assert_eq!(bundle.etag, blake3::hash(canonical).to_hex().as_str());
}

#[test]
fn other_content_under_a_published_id_is_a_conflict() {
    let (first, other) = (
        fields("b", &json!({})),
        fields("b", &json!({ "1": string_field("a") })),
    );
    conflict(&[first, other], &["bundle `b`", "other content"]);
}

#[test]
fn an_identical_bundle_stays_identical_after_later_ones() {
    let first = fields("b1", &json!({ "1": string_field("a") }));
    let second = versions("b2", &json!({ "2": { "fields": {} } }));
    let mut registry = legal(&[first.clone(), second]);
    assert_eq!(put(&mut registry, &first), Ok(false));
    assert_eq!(registry.last_bundle_id().map(|id| &**id), Some("b2"));
}

#[test]
fn check_changes_nothing_and_clones_keep_what_they_have() {
    let registry = Registry::default();
    let text = fields("b", &json!({ "1": string_field("a") }));
    let Ok(Checked::New(next)) = registry.check("b", text.as_bytes()) else {
        panic!("not new")
    };
    assert!(!registry.knows(&TypeRef::new("T", 1)));
    assert!(registry.bundle("b").is_none());
    assert!(next.knows(&TypeRef::new("T", 1)));
    assert!(!next.knows(&TypeRef::new("T", 2)));
    assert!(!next.knows(&TypeRef::new("", 0)));
}

#[test]
fn bundles_are_listed_in_order_of_publication_and_replay_to_the_same_registry() {
    let ids = ["z", "a", "m"];
    let bundles: Vec<String> = ids
        .iter()
        .enumerate()
        .map(|(at, id)| versions(id, &json!({ (at + 1).to_string(): { "fields": {} } })))
        .collect();
    let registry = legal(&bundles);
    assert!(registry.bundles().map(|bundle| &*bundle.id).eq(ids));
    assert!(registry.bundles().map(|bundle| bundle.order).eq(0..3));
    let mut replayed = Registry::default();
    for bundle in registry.bundles() {
        assert_eq!(replayed.put(&bundle.id, &bundle.bytes), Ok(true));
    }
    assert_eq!(replayed.types_json(), registry.types_json());
    assert_eq!(registry.latest("T").unwrap().type_ref.version, 3);
    assert_eq!(&*registry.descriptor("T", 2).unwrap().bundle_id, "a");
}

#[test]
fn a_bundle_adds_and_what_it_does_not_name_stays() {
    let first = fields("b1", &json!({ "1": string_field("a") }));
    let second = bundle(
        "b2",
        &json!({ "U": { "versions": { "7": { "fields": {} } } } }),
        &json!({}),
    );
    let registry = legal(&[first, second]);
    assert!(registry.types().map(|(id, _)| &**id).eq(["T", "U"]));
}

#[test]
fn adding_renaming_and_removing_fields_is_legal_in_a_new_version() {
    let first = fields(
        "b1",
        &json!({ "1": string_field("a"), "2": string_field("b") }),
    );
    let second = versions(
        "b2",
        &json!({ "2": { "fields": {
            "1": { "name": "renamed", "type": "string", "optional": true, "semantic": "url" },
            "3": string_field("b"),
        } } }),
    );
    let registry = legal(&[first, second]);
    assert_eq!(
        registry
            .latest("T")
            .unwrap()
            .field(1)
            .map(|field| &*field.name),
        Some("renamed")
    );
    assert_eq!(
        registry
            .descriptor("T", 1)
            .unwrap()
            .field(1)
            .map(|field| &*field.name),
        Some("a")
    );
}

#[test]
fn versions_may_leap_but_never_fall_back() {
    let version = |id: &str, number: &str| versions(id, &json!({ number: { "fields": {} } }));
    legal(&[version("b1", "3"), version("b2", "40"), version("b3", "41")]);
    conflict(
        &[version("b1", "3"), version("b2", "2")],
        &["type T", "version 2", "version 3", "`b1`"],
    );
    let both = versions(
        "b2",
        &json!({ "4": { "fields": {} }, "2": { "fields": {} } }),
    );
    conflict(&[version("b1", "3"), both], &["version 2"]);
}

#[test]
fn versions_of_one_bundle_may_come_in_any_order() {
    let text = r#"{"registry_version":1,"bundle_id":"b","types":{"T":{"versions":{
        "2":{"fields":{"1":{"tombstone":true}}},
        "1":{"fields":{"1":{"name":"a","type":"string"}}}}}}}"#;
    assert_eq!(
        legal(&[text.to_owned()])
            .latest("T")
            .unwrap()
            .type_ref
            .version,
        2
    );
}

#[test]
fn a_published_version_may_be_repeated_but_not_changed() {
    let first = fields("b1", &json!({ "1": string_field("a") }));
    let repeated = versions(
        "b2",
        &json!({ "1": { "fields": { "1": { "type": "string", "name": "a" } } }, "2": { "fields": {} } }),
    );
    let registry = legal(&[first.clone(), repeated]);
    assert_eq!(&*registry.descriptor("T", 1).unwrap().bundle_id, "b1");
    for changed in [
        json!({ "1": string_field("b") }),
        json!({}),
        json!({ "1": { "name": "a", "type": "string", "optional": true } }),
        json!({ "1": { "name": "a", "type": "string", "note": "unknown keys are compared" } }),
    ] {
        conflict(
            &[first.clone(), fields("b2", &changed)],
            &["type T version 1", "bundle `b1`"],
        );
    }
    let noted = versions(
        "b2",
        &json!({ "1": { "fields": { "1": string_field("a") }, "note": 1 } }),
    );
    conflict(&[first, noted], &["type T version 1"]);
}

#[test]
fn unknown_descriptor_keys_are_kept() {
    let registry = legal(&[fields(
        "b",
        &json!({ "1": { "name": "a", "type": "string", "x": { "y": [1] } } }),
    )]);
    let json = registry.descriptor_json(registry.latest("T").unwrap());
    assert_eq!(json["fields"]["1"]["x"]["y"][0], 1);
}

#[test]
fn a_tags_type_and_parts_are_frozen() {
    let array = json!({ "name": "a", "type": "array", "items": "u8" });
    let map = json!({ "name": "a", "type": "map", "key_type": "string", "value_type": "u8" });
    for (was, is) in [
        (
            json!({ "name": "a", "type": "u32" }),
            json!({ "name": "a", "type": "u64" }),
        ),
        (
            array.clone(),
            json!({ "name": "a", "type": "array", "items": "u16" }),
        ),
        (
            array.clone(),
            json!({ "name": "a", "type": "array", "items": { "type": "u8", "semantic": "url" } }),
        ),
        (array, map.clone()),
        (
            map.clone(),
            json!({ "name": "a", "type": "map", "key_type": "u8", "value_type": "u8" }),
        ),
        (
            map,
            json!({ "name": "a", "type": "map", "key_type": "string", "value_type": "any" }),
        ),
    ] {
        let first = fields("b1", &json!({ "5": was }));
        let second = versions("b2", &json!({ "2": { "fields": { "5": is } } }));
        conflict(
            &[first, second],
            &["type T version 2 tag 5", "`b1`", "new tag"],
        );
    }
}

#[test]
fn the_frozen_part_is_remembered_across_versions_that_keep_the_tag() {
    let field = |kind: &str| json!({ "1": { "name": "a", "type": kind } });
    let bundles = [
        fields("b1", &field("u8")),
        versions("b2", &json!({ "2": { "fields": field("u8") } })),
        versions("b3", &json!({ "3": { "fields": field("u16") } })),
    ];
    conflict(&bundles, &["`b1`"]);
}

#[test]
fn a_retired_tag_comes_back_only_as_a_tombstone() {
    let live = json!({ "1": string_field("a") });
    for retired in [json!({}), json!({ "1": { "tombstone": true } })] {
        let first = fields("b1", &live);
        let second = versions("b2", &json!({ "2": { "fields": retired } }));
        let back = versions("b3", &json!({ "3": { "fields": live } }));
        conflict(
            &[first.clone(), second.clone(), back],
            &["type T version 3 tag 1", "retired in version 2", "`b2`"],
        );
        let tombstone = versions(
            "b3",
            &json!({ "3": { "fields": { "1": { "tombstone": true } } } }),
        );
        legal(&[first, second, tombstone]);
    }
}

#[test]
fn a_tag_that_was_never_but_a_tombstone_is_retired_too() {
    let first = fields("b1", &json!({ "1": { "tombstone": true } }));
    let second = versions(
        "b2",
        &json!({ "2": { "fields": { "1": string_field("a") } } }),
    );
    conflict(&[first, second], &["tag 1", "retired in version 1"]);
}

#[test]
fn a_tag_is_retired_within_one_bundle_as_well() {
    let text = versions(
        "b",
        &json!({
            "1": { "fields": { "1": string_field("a") } },
            "2": { "fields": {} },
            "3": { "fields": { "1": string_field("a") } },
        }),
    );
    conflict(&[text], &["version 3 tag 1"]);
}

#[test]
fn a_tombstone_that_repeats_its_type_repeats_the_right_one() {
    let first = fields("b1", &json!({ "1": { "name": "a", "type": "u64" } }));
    let tombstone = |kind: &str| {
        let field = json!({ "name": "a", "type": kind, "tombstone": true });
        versions("b2", &json!({ "2": { "fields": { "1": field } } }))
    };
    legal(&[first.clone(), tombstone("u64")]);
    conflict(&[first, tombstone("string")], &["tag 1"]);
}

#[test]
fn a_tombstones_name_is_free_for_another_field() {
    let field =
        json!({ "1": { "name": "a", "type": "u64", "tombstone": true }, "2": string_field("a") });
    legal(&[fields("b", &field)]);
}

#[test]
fn the_bundle_contradicts_itself() {
    let names = json!({ "1": string_field("a"), "2": string_field("a") });
    conflict(&[fields("b", &names)], &["tags 1 and 2", "`a`"]);
    for spelling in ["01", "00", "007"] {
        conflict(
            &[fields("b", &json!({ spelling: string_field("a") }))],
            &["type T version 1", spelling],
        );
    }
    let twice = fields("b", &json!({})).replacen("\"fields\":", "\"fields\":{},\"fields\":", 1);
    assert!(matches!(
        Registry::default().put("b", twice.as_bytes()),
        Err(BundleError::Conflict(Conflict::DuplicateKey { key, .. })) if &*key == "fields"
    ));
}

#[test]
fn references_resolve_in_this_bundle_or_an_earlier_one() {
    let uses = |id: &str, field: Value| fields(id, &json!({ "1": field }));
    let other = bundle(
        "b0",
        &json!({ "U": { "versions": { "1": { "fields": {} } } } }),
        &json!({ "E": { "1": "one" } }),
    );
    for field in [
        json!({ "name": "a", "type": "U" }),
        json!({ "name": "a", "type": "array", "items": "U" }),
        json!({ "name": "a", "type": "array", "items": { "type": "array", "items": "U" } }),
        json!({ "name": "a", "type": "map", "key_type": "string", "value_type": "U" }),
        json!({ "name": "a", "type": "u8", "enum": "E" }),
        json!({ "name": "a", "type": "array", "items": { "type": "u8", "enum": "E" } }),
    ] {
        legal(&[other.clone(), uses("b1", field.clone())]);
        conflict(&[uses("b1", field)], &["type T version 1 tag 1", "neither"]);
    }
    legal(&[uses("b", json!({ "name": "self", "type": "T" }))]);
    let own_enum = json!({ "T": { "versions": { "1": { "fields": {
        "1": { "name": "a", "type": "u8", "enum": "E" } } } } } });
    legal(&[bundle("b", &own_enum, &json!({ "E": {} }))]);
}

#[test]
fn enums_gain_numbers_and_keep_labels() {
    let labels = |id: &str, labels: Value| bundle(id, &json!({}), &json!({ "E": labels }));
    let first = labels("b1", json!({ "1": "one", "-2": "minus two" }));
    let gained = labels("b2", json!({ "1": "one", "-2": "minus two", "3": "three" }));
    let registry = legal(&[first.clone(), gained]);
    assert_eq!(registry.enum_table("E").unwrap().label(3), Some("three"));
    assert_eq!(
        registry.enum_table("E").unwrap().number("minus two"),
        Some(-2)
    );
    let changed = labels("b2", json!({ "1": "uno", "-2": "minus two" }));
    conflict(
        &[first.clone(), changed],
        &["enum E number 1", "`uno`", "`one`", "`b1`"],
    );
    conflict(
        &[first, labels("b2", json!({ "1": "one" }))],
        &["enum E", "-2", "`minus two`", "`b1`"],
    );
}

#[test]
fn a_descriptor_shows_its_enums_as_they_are_now() {
    let role = json!({ "T": { "versions": { "1": { "fields": {
        "1": { "name": "a", "type": "u8", "enum": "E" } } } } } });
    let first = bundle("b1", &role, &json!({ "E": { "1": "one" }, "Unused": {} }));
    let second = bundle(
        "b2",
        &json!({}),
        &json!({ "E": { "1": "one", "2": "two" } }),
    );
    let registry = legal(&[first, second]);
    let shown = registry.descriptor_json(registry.latest("T").unwrap());
    assert_eq!(shown["enums"], json!({ "E": { "1": "one", "2": "two" } }));
    assert_eq!(shown["bundle_id"], "b1");
}

#[test]
fn semantic_and_enum_are_free_with_a_new_version() {
    let first = bundle(
        "b1",
        &json!({ "T": { "versions": { "1": { "fields": { "1": { "name": "a", "type": "u64" } } } } } }),
        &json!({ "E": { "1": "one" } }),
    );
    let second = versions(
        "b2",
        &json!({ "2": { "fields": { "1": { "name": "a", "type": "u64", "semantic": "unix_ms", "enum": "E" } } } }),
    );
    legal(&[first, second]);
}

#[test]
fn what_is_no_bundle_is_malformed() {
    for text in [
        "",
        "[]",
        "null",
        "{",
        "{}",
        r#"{"registry_version":1}"#,
        r#"{"registry_version":1,"bundle_id":7}"#,
        r#"{"registry_version":1,"bundle_id":"other"}"#,
        r#"{"registry_version":2,"bundle_id":"b"}"#,
        r#"{"registry_version":"1","bundle_id":"b"}"#,
        r#"{"bundle_id":"b"}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":[]}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"T":1}}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"T":{}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"T":{"versions":{}}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"T":{"versions":{"1":{}}}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"":{"versions":{"1":{"fields":{}}}}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"u64":{"versions":{"1":{"fields":{}}}}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","types":{"map":{"versions":{"1":{"fields":{}}}}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","enums":{"E":[]}}"#,
        r#"{"registry_version":1,"bundle_id":"b","enums":{"E":{"x":"a"}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","enums":{"E":{"01":"a"}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","enums":{"E":{"-0":"a"}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","enums":{"E":{"1":1}}}"#,
        r#"{"registry_version":1,"bundle_id":"b","enums":{"E":{"1":""}}}"#,
        r#"{"registry_version":1,"bundle_id":"b"} x"#,
    ] {
        malformed(text);
    }
}

#[test]
fn versions_and_tags_are_whole_numbers_in_range() {
    for version in ["0", "01", "-1", "1.0", "x", "", "4294967296"] {
        malformed(&versions("b", &json!({ version: { "fields": {} } })));
    }
    for tag in ["x", "", "-1", "+1", "1 ", "18446744073709551616"] {
        malformed(&fields("b", &json!({ tag: string_field("a") })));
    }
    legal(&[versions(
        "b",
        &json!({ "4294967295": { "fields": { "18446744073709551615": string_field("a") } } }),
    )]);
}

#[test]
fn a_descriptor_with_a_bad_part_is_malformed() {
    for field in [
        json!(1),
        json!({ "type": "string" }),
        json!({ "name": "a" }),
        json!({ "name": "", "type": "string" }),
        json!({ "name": "a", "type": 1 }),
        json!({ "name": "a", "type": "" }),
        json!({ "name": "a", "type": "x".repeat(513) }),
        json!({ "name": "a".repeat(513), "type": "string" }),
        json!({ "name": "a", "type": "string", "optional": 1 }),
        json!({ "name": "a", "type": "string", "tombstone": "yes" }),
        json!({ "name": "a", "type": "u64", "semantic": "parsec" }),
        json!({ "name": "a", "type": "u64", "semantic": 1 }),
        json!({ "name": "a", "type": "u8", "enum": 1 }),
        json!({ "name": "a", "type": "array" }),
        json!({ "name": "a", "type": "array", "items": 1 }),
        json!({ "name": "a", "type": "array", "items": "array" }),
        json!({ "name": "a", "type": "array", "items": { "items": "u8" } }),
        json!({ "name": "a", "type": "map", "key_type": "string" }),
        json!({ "name": "a", "type": "map", "value_type": "string" }),
        json!({ "name": "a", "type": "map", "key_type": "T", "value_type": "u8" }),
        json!({ "name": "a", "type": "map", "key_type": "typed_blob", "value_type": "u8" }),
    ] {
        malformed(&fields("b", &json!({ "1": field })));
    }
}

#[test]
fn ids_have_1_to_512_bytes() {
    let empty = |id: &str| bundle(id, &json!({}), &json!({}));
    let longest = "é".repeat(256);
    assert_eq!(
        Registry::default().put(&longest, empty(&longest).as_bytes()),
        Ok(true)
    );
    for id in [String::new(), "é".repeat(256) + "x"] {
        let refused = Registry::default().put(&id, empty(&id).as_bytes());
        assert!(
            matches!(
                refused,
                Err(BundleError::Malformed(Malformed::Length { .. }))
            ),
            "{refused:?}"
        );
    }
}

#[test]
fn the_address_and_the_bundle_id_are_equal() {
    let refused = Registry::default().put("a", bundle("b", &json!({}), &json!({})).as_bytes());
    let expect = Malformed::IdMismatch {
        addressed: "a".into(),
        contained: "b".into(),
    };
    assert_eq!(refused, Err(expect.into()));
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let inner = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"registry_version":1,"bundle_id":"b","x":{inner}}}"#)
    };
    assert_eq!(
        Registry::default().put("b", nested(127).as_bytes()),
        Ok(true)
    );
    let refused = Registry::default().put("b", nested(128).as_bytes());
    assert!(
        matches!(refused, Err(BundleError::TooDeep { .. })),
        "{refused:?}"
    );
}

#[test]
fn arbitrary_bytes_get_one_answer() {
    let sample = crate::projection::fuzz::sample_registry()
        .bundle("sample")
        .unwrap()
        .bytes
        .to_vec();
    fuzz::check_any(&sample);
    let other_id = String::from_utf8(sample.clone())
        .unwrap()
        .replace("\"sample\"", "\"fuzzed\"");
    fuzz::check_any(other_id.as_bytes());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..2000 {
        let mut bytes = other_id.clone().into_bytes();
        for _ in 0..4 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(random >> 33).unwrap() % bytes.len();
            bytes[at] =
                b"0123456789{}[]\":,aut\\ -\xff"[usize::try_from(random >> 20).unwrap() % 24];
        }
        fuzz::check_any(&bytes);
    }
}

fn shape_of<'r>(registry: &'r Registry, name: &str) -> &'r Kind {
    &registry
        .latest("T")
        .unwrap()
        .field_named(name)
        .unwrap()
        .shape
        .kind
}

#[test]
fn other_spellings_of_types_are_read_as_the_usual_ones() {
    let inner = json!({ "versions": { "1": { "fields": {} } } });
    let spelt = json!({
        "1": { "name": "small", "type": "int32" },
        "2": { "name": "wide", "type": "int64", "semantic": "unix_ms" },
        "3": { "name": "one", "type": "ref", "ref": "Inner" },
        "4": { "name": "many", "type": "array", "items": { "type": "ref", "ref": "Inner" } },
        "5": { "name": "sizes", "type": "array", "items": "int64" },
        "6": { "name": "by_id", "type": "map", "key_type": "int32", "value_type": { "type": "ref", "ref": "Inner" } },
    });
    let types = json!({ "T": { "versions": { "1": { "fields": spelt } } }, "Inner": inner });
    let registry = legal(&[bundle("b", &types, &json!({}))]);
    let is_inner = |kind: &Kind| matches!(kind, Kind::Type(id) if &**id == "Inner");
    assert_eq!(*shape_of(&registry, "small"), Kind::Int(IntKind::I32));
    assert_eq!(*shape_of(&registry, "wide"), Kind::Int(IntKind::I64));
    assert!(is_inner(shape_of(&registry, "one")));
    assert!(matches!(shape_of(&registry, "many"), Kind::Array(items) if is_inner(&items.kind)));
    assert!(
        matches!(shape_of(&registry, "sizes"), Kind::Array(items) if items.kind == Kind::Int(IntKind::I64))
    );
    let Kind::Map(map) = shape_of(&registry, "by_id") else {
        panic!()
    };
    assert!(map.key.kind == Kind::Int(IntKind::I32) && is_inner(&map.value.kind));
    let described = registry.descriptor_json(registry.latest("T").unwrap());
    assert_eq!(
        described["fields"]["3"],
        json!({ "name": "one", "type": "ref", "ref": "Inner" })
    );
}

#[test]
fn a_type_may_change_from_one_spelling_to_the_other() {
    let field = |kind: Value| {
        let mut field = kind;
        field["name"] = "n".into();
        json!({ "1": field })
    };
    let first = |kind: Value| versions("a", &json!({ "1": { "fields": field(kind) } }));
    let second = |kind: Value| versions("b", &json!({ "2": { "fields": field(kind) } }));
    let reference = json!({ "type": "ref", "ref": "T" });
    legal(&[
        first(json!({ "type": "i32" })),
        second(json!({ "type": "int32" })),
    ]);
    legal(&[
        first(json!({ "type": "int64" })),
        second(json!({ "type": "i64" })),
    ]);
    legal(&[first(reference.clone()), second(json!({ "type": "T" }))]);
    legal(&[
        first(json!({ "type": "array", "items": "T" })),
        second(json!({ "type": "array", "items": "T", "semantic": "url" })),
    ]);
    conflict(
        &[
            first(json!({ "type": "i64" })),
            second(json!({ "type": "int32" })),
        ],
        &["tag 1"],
    );
    conflict(
        &[first(json!({ "type": "ref", "ref": "nobody" }))],
        &["nobody"],
    );
    conflict(&[first(json!({ "type": "ref" }))], &["ref"]);
}

#[test]
fn a_name_that_is_a_type_means_that_type() {
    let uses = |id: &str, version: &str| {
        versions(
            id,
            &json!({ version: { "fields": { "1": { "name": "n", "type": "int32" } } } }),
        )
    };
    let defines = bundle(
        "defines",
        &json!({ "int32": { "versions": { "1": { "fields": {} } } } }),
        &json!({}),
    );
    let registry = legal(&[defines.clone(), uses("uses", "1")]);
    assert!(matches!(shape_of(&registry, "n"), Kind::Type(id) if &**id == "int32"));
    // What a tag was is never changed by a type that gets such a name later.
    conflict(
        &[uses("first", "1"), defines, uses("second", "2")],
        &["tag 1"],
    );
    let both = json!({
        "ref": { "versions": { "1": { "fields": {} } } },
        "T": { "versions": { "1": { "fields": { "1": { "name": "n", "type": "ref", "ref": "gone" } } } } },
    });
    let registry = legal(&[bundle("both", &both, &json!({}))]);
    assert!(matches!(shape_of(&registry, "n"), Kind::Type(id) if &**id == "ref"));
}
