//! Bundles that are as large, as many or as deep as the limits allow.

use super::*;

#[test]
fn a_bundle_read_before_gets_the_same_answers() {
    let first = fields("b", &json!({ "1": string_field("a") }));
    let other = fields("b", &json!({ "1": string_field("c") }));
    let parsed = ParsedBundle::parse("b", first.as_bytes()).unwrap();
    assert_eq!((&**parsed.id(), &**parsed.bytes()), ("b", first.as_bytes()));
    let registry = Registry::default();
    let [one, two] =
        [parsed.clone(), parsed.clone()].map(|parsed| match registry.check_parsed(&parsed) {
            Ok(Checked::New(next)) => next,
            answer => panic!("{answer:?}"),
        });
    let shared = one.descriptor("T", 1).zip(two.descriptor("T", 1)).unwrap();
    assert!(
        Arc::ptr_eq(shared.0, shared.1),
        "descriptors are read once, not once per check"
    );
    assert_eq!(one.bundle("b").unwrap().etag, parsed.etag());
    assert!(matches!(one.check_parsed(&parsed), Ok(Checked::Identical)));
    let other_parsed = ParsedBundle::parse("b", other.as_bytes()).unwrap();
    assert_eq!(
        one.check_parsed(&other_parsed).unwrap_err(),
        one.check("b", other.as_bytes()).unwrap_err()
    );
    assert!(registry.bundle("b").is_none());
    let mismatch = ParsedBundle::parse("c", first.as_bytes()).unwrap_err();
    assert_eq!(mismatch, registry.check("c", first.as_bytes()).unwrap_err());
}

#[test]
fn every_field_is_found_by_its_name() {
    let name = |tag: u64| format!("n{}", tag.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let described = (0..20_000).map(|tag| (tag.to_string(), string_field(&name(tag))));
    let registry = legal(&[fields("b", &Value::Object(described.collect()))]);
    let version = registry.descriptor("T", 1).unwrap();
    assert!((0..20_000).all(|tag| version.field_named(&name(tag)).unwrap().tag == tag));
    for absent in ["", "m", "n", "z", "n0x"] {
        assert!(version.field_named(absent).is_none());
    }
}

#[test]
fn bundles_are_found_by_their_place() {
    let mut registry = Registry::default();
    for number in 0..300 {
        put(
            &mut registry,
            &bundle(&format!("b{number}"), &json!({}), &json!({})),
        )
        .unwrap();
    }
    for number in [0, 1, 127, 128, 299] {
        assert_eq!(
            &*registry.bundle_at(number).unwrap().id,
            format!("b{number}")
        );
        assert_eq!(registry.bundles().nth(number).unwrap().order, number);
        assert_eq!(registry.bundles().skip(number).count(), 300 - number);
    }
    assert!(registry.bundle_at(300).is_none() && registry.bundles().nth(300).is_none());
    assert_eq!(registry.last_bundle_id().map(|id| &**id), Some("b299"));
}

#[test]
fn published_numbers_and_unknown_keys_come_back_as_they_were() {
    let described = json!({ "1": { "name": "a", "type": "u8", "x": [u64::MAX, i64::MIN, 1.5e300, -0.0, 1.0, "é\n"],
        "y": { "z": null, "a": {} } }, "2": { "tombstone": true } });
    let registry = legal(&[fields("b", &described)]);
    let version = registry.descriptor("T", 1).unwrap();
    assert_eq!(registry.descriptor_json(version)["fields"], described);
}

/// A field of arrays in arrays, so deep that the bundle nests as deep as it may.
fn deepest() -> Value {
    let mut shape = json!({ "type": "map", "key_type": "u8", "value_type": "T" });
    // The bundle, `types`, the type, `versions`, the version, `fields` and the field are around it.
    for _ in 0..NESTING_MAX - 7 {
        shape = json!({ "type": "array", "items": shape });
    }
    shape["name"] = "a".into();
    json!({ "1": shape })
}

#[test]
fn the_deepest_bundle_fits_a_small_stack() {
    const STACK_BYTES: usize = 1 << 20;
    let text = fields("b", &deepest());
    let deeper = text.replacen("\"key_type\":\"u8\"", "\"key_type\":{\"type\":\"u8\"}", 1);
    let check = move || {
        let mut registry = Registry::default();
        assert_eq!(registry.put("b", text.as_bytes()), Ok(true));
        registry.descriptor_json(registry.descriptor("T", 1).unwrap());
        assert!(matches!(
            Registry::default().put("b", deeper.as_bytes()),
            Err(BundleError::TooDeep { .. })
        ));
    };
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(check)
        .unwrap()
        .join()
        .unwrap();
}
