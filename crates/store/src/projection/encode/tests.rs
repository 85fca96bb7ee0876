//! What encoding takes, what it refuses, and that projection gives it back.

use serde_json::{Value, json};
use turnkeep_types::TypeRef;

use super::super::fuzz::{sample_registry, sample_type, write_message};
use super::super::{ENCODING_MSGPACK, ProjectionOptions, project};
use super::*;

fn encoded(data: &Value) -> Result<Vec<u8>, EncodeError> {
    encode(
        sample_registry(),
        &sample_type(),
        data,
        MissingFields::Allow,
    )
}

/// Asserts that projection's default gives the JSON back, without a warning.
#[track_caller]
fn round_trip(data: &Value) {
    gives(data, data);
}

#[track_caller]
fn gives(data: &Value, expect: &Value) {
    let payload = encoded(data).unwrap_or_else(|error| panic!("{error}: {data}"));
    let shown = project(
        sample_registry(),
        &sample_type(),
        ENCODING_MSGPACK,
        &payload,
        &ProjectionOptions::default(),
        write_message,
    );
    let shown = shown.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&shown.data).unwrap(), *expect);
    assert_eq!(shown.warnings, []);
}

#[track_caller]
fn refused(data: &Value, message: &str) {
    assert_eq!(encoded(data).unwrap_err().to_string(), message);
}

#[test]
fn a_float_is_stored_to_the_last_bit() {
    let mut bits = 1u64;
    for _ in 0..1000 {
        // A generator of Knuth's: the numbers need only be many and different.
        bits = bits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = f64::from_bits(bits);
        if !number.is_finite() {
            continue;
        }
        let json = format!("{{\"f64\": {number:?}}}");
        let data = crate::registry::parse_json(json.as_bytes(), 8).unwrap();
        assert_eq!(data["f64"].as_f64().unwrap().to_bits(), bits, "{json}");
        round_trip(&data);
    }
}

#[test]
fn what_projection_prints_is_encoded_to_the_same() {
    for data in [
        json!({}),
        json!({ "flag": true, "i8": -128, "i16": 1, "i32": -1, "u8": 255, "u16": 65535, "u32": 4_294_967_295_u32 }),
        json!({ "i64": "-9223372036854775808", "u64": "18446744073709551615", "took": "5" }),
        json!({ "f32": 0.1, "f64": 0.1 }),
        json!({ "f32": "NaN", "f64": "-Infinity" }),
        json!({ "text": "é\n\"", "home": "http://localhost/", "bytes": "AP8=" }),
        json!({ "u64s": ["1", "2"], "roles": ["user", 9], "role": "tool", "signed_role": "below" }),
        json!({ "at_ms": "2025-12-19T20:00:00.123Z", "at_s": "1969-12-31T23:59:59.000Z" }),
        json!({ "at_ms": 253_402_300_800_000_u64 }),
        json!({ "link": { "title": "a", "next": { "title": "b", "size": "3" } }, "links": [{}, { "size": "1" }] }),
        json!({ "by_name": { "b": { "title": "x" }, "a": null }, "by_number": { "-1": ["AA=="], "10": [] } }),
        json!({ "by_flag": { "false": "1", "true": "2" }, "by_bytes": { "AQ==": [null] } }),
        json!({ "any": { "a": [1, -1, 1.5, "x", true, null, { "b": {} }], "big": "18446744073709551615" } }),
        json!({ "blob": { "type_id": "test.Link", "type_version": 1, "data": { "label": "a", "size": "7" } } }),
        json!({ "flag": null, "u64": null, "link": null, "blob": null, "any": null, "u64s": null }),
    ] {
        round_trip(&data);
    }
}

#[test]
fn other_spellings_of_the_same_are_taken() {
    gives(
        &json!({ "u64": 5, "i64": -5 }),
        &json!({ "u64": "5", "i64": "-5" }),
    );
    gives(
        &json!({ "role": 3, "at_ms": 0 }),
        &json!({ "role": "assistant", "at_ms": "1970-01-01T00:00:00.000Z" }),
    );
    gives(
        &json!({ "at_s": "1970-01-01T01:00:00+01:00" }),
        &json!({ "at_s": "1970-01-01T00:00:00.000Z" }),
    );
    gives(&json!({ "f64": 3 }), &json!({ "f64": 3.0 }));
    let failed = json!({ "type_id": "nobody", "type_version": 1, "bytes": "gA==", "error": {} });
    let payload = encoded(&json!({ "blob": failed })).unwrap();
    assert!(payload.ends_with(&[0xc4, 1, 0x80]));
}

#[test]
fn the_bytes_are_deterministic_and_shortest() {
    let one = encoded(&json!({ "u8": 7, "flag": true, "any": { "b": 1, "a": 2 } })).unwrap();
    let other = encoded(&json!({ "any": { "a": 2, "b": 1 }, "flag": true, "u8": 7 })).unwrap();
    assert_eq!(one, other);
    assert_eq!(
        one,
        [0x83, 1, 0xc3, 7, 7, 20, 0x82, 0xa1, b'a', 2, 0xa1, b'b', 1]
    );
    let numbers = encoded(&json!({ "by_number": { "10": [], "-1": [], "9": [] } })).unwrap();
    assert_eq!(numbers, [0x81, 18, 0x83, 0xff, 0x90, 9, 0x90, 10, 0x90]);
}

#[test]
fn values_that_do_not_fit_are_named_by_their_path() {
    refused(
        &json!([]),
        "data must be an object of test.Everything@2, not an array",
    );
    refused(
        &json!({ "nope": 1 }),
        "data.nope is not a field of test.Everything@2",
    );
    refused(
        &json!({ "old": "a tombstone" }),
        "data.old is not a field of test.Everything@2",
    );
    refused(&json!({ "flag": 1 }), "data.flag must be bool, not 1");
    refused(&json!({ "u8": 256 }), "data.u8 must be u8, not 256");
    refused(&json!({ "u8": "1" }), "data.u8 must be u8, not \"1\"");
    refused(&json!({ "u8": 1.5 }), "data.u8 must be u8, not 1.5");
    refused(&json!({ "u64": "-1" }), "data.u64 must be u64, not \"-1\"");
    refused(&json!({ "u64": "01" }), "data.u64 must be u64, not \"01\"");
    refused(
        &json!({ "f64": "inf" }),
        "data.f64 must be f64, not \"inf\"",
    );
    refused(&json!({ "f32": 1e300 }), "data.f32 must be f32, not 1e+300");
    refused(
        &json!({ "bytes": "%" }),
        "data.bytes must be bytes in base64, not \"%\"",
    );
    refused(&json!({ "text": 1 }), "data.text must be string, not 1");
    refused(
        &json!({ "role": "nobody" }),
        "data.role must be u8 or a label of test.Role (system, user, assistant, tool), not \"nobody\"",
    );
    refused(
        &json!({ "at_ms": "today" }),
        "data.at_ms must be u64 or a time in RFC 3339, not \"today\"",
    );
    refused(
        &json!({ "at_s": "1970-01-01T00:00:00.5Z" }),
        "data.at_s must be i64 or a time in RFC 3339, not \"1970-01-01T00:00:00.5Z\"",
    );
    refused(
        &json!({ "u64s": [1, true] }),
        "data.u64s[1] must be u64, not true",
    );
    refused(
        &json!({ "u64s": {} }),
        "data.u64s must be array, not an object",
    );
    refused(
        &json!({ "links": [{ "next": { "size": [] } }] }),
        "data.links[0].next.size must be u64, not an array",
    );
    refused(
        &json!({ "by_number": { "x": [] } }),
        "data.by_number[\"x\"] must be a key of type i64, not \"x\"",
    );
    refused(
        &json!({ "by_name": { "k": 1 } }),
        "data.by_name[\"k\"] must be an object of test.Link@2, not 1",
    );
    refused(
        &json!({ "text": 1, "x": 1 }),
        "data.x is not a field of test.Everything@2",
    );
}

#[test]
fn a_typed_blob_has_a_type_and_data_or_bytes() {
    let expected = "data.blob must be a typed blob {type_id, type_version, data}, not an object";
    refused(&json!({ "blob": {} }), expected);
    refused(
        &json!({ "blob": { "type_id": "test.Link", "type_version": 1 } }),
        expected,
    );
    refused(
        &json!({ "blob": { "type_id": "test.Link", "type_version": 1, "data": {}, "bytes": "" } }),
        expected,
    );
    refused(
        &json!({ "blob": { "type_id": "test.Link", "type_version": 1, "data": {}, "x": 1 } }),
        expected,
    );
    refused(
        &json!({ "blob": { "type_id": "test.Link", "type_version": 1, "data": { "title": "x" } } }),
        "data.blob.data.title is not a field of test.Link@1",
    );
    let unpublished =
        encoded(&json!({ "blob": { "type_id": "nobody", "type_version": 1, "data": {} } }));
    assert_eq!(
        unpublished,
        Err(EncodeError::Unpublished(TypeRef::new("nobody", 1)))
    );
}

#[test]
fn a_type_is_named_and_published() {
    let encoded = |id: &str, version| {
        encode(
            sample_registry(),
            &TypeRef::new(id, version),
            &json!({}),
            MissingFields::Allow,
        )
    };
    assert_eq!(encoded("", 0), Err(EncodeError::MissingType));
    assert_eq!(
        encoded("test.Link", 3),
        Err(EncodeError::Unpublished(TypeRef::new("test.Link", 3)))
    );
    assert_eq!(encoded("test.Link", 1), Ok(vec![0x80]));
}

#[test]
fn nesting_is_bounded_as_projection_bounds_it() {
    let nested = |depth: usize| {
        let mut value = json!(null);
        for _ in 1..depth {
            value = json!([value]);
        }
        json!({ "any": value })
    };
    round_trip_deep(&nested(128));
    assert!(matches!(
        encoded(&nested(129)),
        Err(EncodeError::TooDeep { .. })
    ));
}

/// The JSON reader of tests stops at the depth that is tested here, so only the success counts.
fn round_trip_deep(data: &Value) {
    let payload = encoded(data).unwrap();
    project(
        sample_registry(),
        &sample_type(),
        ENCODING_MSGPACK,
        &payload,
        &ProjectionOptions::default(),
        write_message,
    )
    .unwrap();
}

#[test]
fn the_deepest_data_fits_a_small_stack() {
    const STACK_BYTES: usize = 1 << 20;
    let mut link = json!({});
    let mut blob = json!({});
    for _ in 2..NESTING_MAX {
        link = json!({ "next": link });
    }
    for _ in 1..NESTING_MAX / 2 {
        blob = json!({ "blob": { "type_id": "test.Everything", "type_version": 2, "data": blob } });
    }
    let check = move || {
        [json!({ "link": link }), blob]
            .iter()
            .for_each(round_trip_deep);
    };
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(check)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn the_path_of_a_message_is_bounded() {
    let long = "k".repeat(1 << 16);
    for data in [json!({ "by_name": { &long: 1 } }), json!({ &long: 1 })] {
        let message = encoded(&data).unwrap_err().to_string();
        assert!(message.len() < 1200, "{}", message.len());
        assert!(message.contains("kkk…"));
    }
}

#[test]
fn every_label_of_a_large_enum_is_taken() {
    let labels =
        (0..20_000).map(|number| (number.to_string(), Value::from(format!("label {number}"))));
    let bundle = json!({ "registry_version": 1, "bundle_id": "b", "types": { "T": { "versions": { "1": {
        "fields": { "1": { "name": "a", "type": "array", "items": "u16", "enum": "E" } } } } } },
        "enums": { "E": Value::Object(labels.collect()) } });
    let mut registry = Registry::default();
    registry.put("b", bundle.to_string().as_bytes()).unwrap();
    let data =
        json!({ "a": (0..20_000).map(|number| format!("label {number}")).collect::<Vec<_>>() });
    let payload = encode(
        &registry,
        &TypeRef::new("T", 1),
        &data,
        MissingFields::Refuse,
    )
    .unwrap();
    let shown = project(
        &registry,
        &TypeRef::new("T", 1),
        ENCODING_MSGPACK,
        &payload,
        &ProjectionOptions::default(),
        write_message,
    );
    assert_eq!(shown.unwrap().data, data.to_string());
}

/// JSON that fits the sample type, chosen by a seed.
struct Chooser(u64);

impl Chooser {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn wide(&mut self) -> u64 {
        let bits = self.next(65);
        let number = (self.next(1 << 31) << 33) ^ (self.next(1 << 31) << 16) ^ self.next(1 << 16);
        if bits == 0 { 0 } else { number >> (64 - bits) }
    }

    fn text(&mut self) -> String {
        (0..self.next(5))
            .map(|_| {
                ['a', '"', '\n', 'é', '😀', '0', '\u{1}'][usize::try_from(self.next(7)).unwrap()]
            })
            .collect()
    }

    fn link(&mut self, depth: u64) -> Value {
        let mut link = json!({ "title": self.text() });
        if self.next(2) == 0 {
            link["size"] = self.wide().to_string().into();
        }
        if depth > 0 && self.next(2) == 0 {
            link["next"] = self.link(depth - 1);
        }
        link
    }

    fn any(&mut self, depth: u64) -> Value {
        match self.next(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => (self.next(2) == 0).into(),
            2 => self.next(1 << 31).into(),
            3 => Value::from(-1.5 * f64::from(u32::try_from(self.next(1000)).unwrap()) - 0.25),
            4 => self.text().into(),
            5 => (0..self.next(4)).map(|_| self.any(depth - 1)).collect(),
            _ => Value::Object(
                (0..self.next(4))
                    .map(|_| (self.text(), self.any(depth - 1)))
                    .collect(),
            ),
        }
    }

    fn field(&mut self, data: &mut Value) {
        let (name, value) = match self.next(12) {
            0 => ("u64", self.wide().to_string().into()),
            1 => ("i64", self.wide().cast_signed().to_string().into()),
            2 => ("text", self.text().into()),
            3 => ("link", self.link(4)),
            4 => ("links", (0..self.next(3)).map(|_| self.link(2)).collect()),
            5 => (
                "by_name",
                Value::Object(
                    (0..self.next(3))
                        .map(|_| (self.text(), self.link(1)))
                        .collect(),
                ),
            ),
            6 => ("any", self.any(4)),
            7 => (
                "blob",
                json!({ "type_id": "test.Link", "type_version": 2, "data": self.link(2) }),
            ),
            8 => (
                "role",
                [json!("user"), json!("tool"), json!(77)][usize::try_from(self.next(3)).unwrap()]
                    .clone(),
            ),
            9 => (
                "at_ms",
                turnkeep_types::rfc3339::format_rfc3339((self.wide() >> 20).into())
                    .unwrap()
                    .into(),
            ),
            10 => (
                "u64s",
                (0..self.next(9))
                    .map(|_| Value::from(self.wide().to_string()))
                    .collect(),
            ),
            _ => ("flag", (self.next(2) == 0).into()),
        };
        data[name] = value;
    }
}

#[test]
fn encode_then_project_is_the_same_json() {
    for seed in 0..3000 {
        let mut chooser = Chooser(seed);
        let mut data = json!({});
        for _ in 0..chooser.next(8) {
            chooser.field(&mut data);
        }
        round_trip(&data);
    }
}

fn agent_registry() -> Registry {
    let bundle = json!({ "registry_version": 1, "bundle_id": "b",
        "types": {
            "Call": { "versions": { "1": { "fields": {
                "1": { "name": "name", "type": "string" },
                "2": { "name": "state", "type": "u8", "enum": "State", "optional": true } } } } },
            "Item": { "versions": { "1": { "fields": {
                "1": { "name": "role", "type": "string" },
                "2": { "name": "text", "type": "string", "optional": true },
                "3": { "name": "calls", "type": "array", "items": "Call", "optional": true },
                "4": { "name": "blob", "type": "typed_blob", "optional": true },
                "5": { "name": "gone", "tombstone": true } } } } } },
        "enums": { "State": { "1": "running", "2": "done" } } });
    let mut registry = Registry::default();
    registry.put("b", bundle.to_string().as_bytes()).unwrap();
    registry
}

#[test]
fn data_that_lacks_a_field_is_refused_unless_that_is_allowed() {
    let registry = agent_registry();
    let item = TypeRef::new("Item", 1);
    let check = |data: Value, missing: Option<&str>| {
        let strict = encode(&registry, &item, &data, MissingFields::Refuse);
        match missing {
            None => assert!(strict.is_ok(), "{strict:?}"),
            Some(path) => assert!(
                matches!(&strict, Err(EncodeError::MissingField { path: found, .. }) if found == path),
                "{strict:?}"
            ),
        }
        assert!(
            encode(&registry, &item, &data, MissingFields::Allow).is_ok(),
            "{data}"
        );
    };
    check(json!({ "role": "user" }), None);
    check(json!({ "role": null }), None);
    check(json!({}), Some("data.role"));
    check(json!({ "text": "hi" }), Some("data.role"));
    check(
        json!({ "role": "user", "calls": [{ "name": "ls" }, {}] }),
        Some("data.calls[1].name"),
    );
    let inner = json!({ "type_id": "Call", "type_version": 1, "data": { "state": 1 } });
    check(
        json!({ "role": "user", "blob": inner }),
        Some("data.blob.data.name"),
    );
    let refused = encode(&registry, &item, &json!({}), MissingFields::Refuse).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "data.role is missing, and Item@1 does not mark it optional; allow_missing accepts data without it"
    );
}

#[test]
fn an_error_lists_the_labels_of_an_enum_as_far_as_there_is_room() {
    let labels: Map<String, Value> = (0..1000)
        .map(|number| (number.to_string(), format!("label {number}").into()))
        .collect();
    let bundle = json!({ "registry_version": 1, "bundle_id": "b", "enums": { "E": labels },
        "types": { "T": { "versions": { "1": { "fields": { "1": { "name": "a", "type": "u16", "enum": "E" } } } } } } });
    let mut registry = Registry::default();
    registry.put("b", bundle.to_string().as_bytes()).unwrap();
    let refused = encode(
        &registry,
        &TypeRef::new("T", 1),
        &json!({ "a": "x" }),
        MissingFields::Refuse,
    );
    let message = refused.unwrap_err().to_string();
    assert!(
        message.starts_with("data.a must be u16 or a label of E (label 0, label 1, "),
        "{message}"
    );
    assert!(
        message.ends_with(" more), not \"x\"") && message.len() < 700,
        "{message}"
    );
}
