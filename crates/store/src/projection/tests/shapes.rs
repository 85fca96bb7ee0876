//! Nested types, maps, arrays and typed blobs.

use super::*;

/// A link by its tags.
fn link(title: &str, size: u64) -> Vec<u8> {
    tagged(&[(1, &text(title)), (2, &int(size.into()))])
}

fn blob(type_id: &str, version: i128, bytes: &[u8]) -> Vec<u8> {
    tagged(&[(1, &text(type_id)), (2, &int(version)), (3, &bin(bytes))])
}

#[test]
fn nested_types_project_by_their_latest_version() {
    let shown = json!({ "title": "a", "size": "5" });
    check(21, &link("a", 5), &shown);
    check(
        16,
        &array(&[link("a", 5), link("a", 5)]),
        &json!([shown, shown]),
    );
    check(
        17,
        &map(&[(text("k"), link("a", 5))]),
        &json!({ "k": shown }),
    );
    let chain = tagged(&[(3, &tagged(&[(3, &link("end", 1))]))]);
    check(
        21,
        &chain,
        &json!({ "next": { "next": { "title": "end", "size": "1" } } }),
    );
}

#[test]
fn map_keys_are_json_strings_of_their_declared_type() {
    check(17, &map(&[(text(""), nil())]), &json!({ "": null }));
    check(
        18,
        &map(&[(int(i64::MIN.into()), array(&[]))]),
        &json!({ "-9223372036854775808": [] }),
    );
    check(
        29,
        &map(&[(boolean(true), int(7)), (boolean(false), int(8))]),
        &json!({ "true": "7", "false": "8" }),
    );
    check(30, &map(&[(bin(&[1, 2]), int(7))]), &json!({ "AQI=": 7 }));
    let hex = ProjectionOptions {
        bytes_render: BytesRender::Hex,
        ..ProjectionOptions::default()
    };
    check_with(
        &hex,
        30,
        &map(&[(bin(&[1, 2]), int(7))]),
        &json!({ "0102": 7 }),
    );
    let length = ProjectionOptions {
        bytes_render: BytesRender::LenOnly,
        ..ProjectionOptions::default()
    };
    let two = map(&[(bin(&[1]), int(7)), (bin(&[2]), int(8))]);
    check_with(&length, 30, &two, &json!({ "AQ==": 7, "Ag==": 8 }));
}

#[test]
fn map_keys_of_another_type_are_shown_with_a_warning() {
    warned(
        18,
        &map(&[(text("x"), array(&[]))]),
        &json!({ "x": [] }),
        "keys are i64",
    );
    warned(
        18,
        &map(&[(int(u64::MAX.into()), nil())]),
        &json!({ "18446744073709551615": null }),
        "i64",
    );
    warned(
        29,
        &map(&[(int(1), int(7))]),
        &json!({ "1": "7" }),
        "keys are bool",
    );
}

#[test]
fn a_map_key_that_comes_twice_is_shown_once() {
    warned(
        20,
        &map(&[(int(1), int(7)), (text("1"), int(8))]),
        &json!({ "1": 8 }),
        "more than once",
    );
    warned(
        17,
        &map(&[(text("a"), nil()), (text("a"), link("b", 1))]),
        &json!({ "a": { "title": "b", "size": "1" } }),
        "more than once",
    );
}

#[test]
fn warnings_and_unknowns_inside_name_the_way_there() {
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let bad = tagged(&[(1, &int(1)), (9, &int(42))]);
    let payload = tagged(&[
        (16, &array(&[link("a", 1), bad.clone()])),
        (17, &map(&[(text("k"), bad.clone())])),
        (20, &map(&[(text("k"), array(&[raw_str(&[0xff])]))])),
        (21, &tagged(&[(3, &bad)])),
    ]);
    let shown = show(&options, &payload).unwrap();
    let paths: Vec<_> = shown
        .warnings
        .iter()
        .map(|warning| (warning.tag, warning.path.as_str()))
        .collect();
    assert_eq!(
        paths,
        [
            (Some(1), "links[1].title"),
            (Some(1), "by_name[\"k\"].title"),
            (Some(20), "any[\"k\"][0]"),
            (Some(1), "link.next.title"),
        ]
    );
    assert_eq!(
        value(&shown.unknown.unwrap()),
        json!({ "links[1].9": 42, "by_name[\"k\"].9": 42, "link.next.9": 42 })
    );
}

#[test]
fn a_typed_blob_is_projected_by_its_own_type() {
    let inner = link("a", 5);
    check(
        19,
        &blob("test.Link", 1, &inner),
        &json!({ "type_id": "test.Link", "type_version": 1, "data": { "label": "a", "size": "5" } }),
    );
    check(
        28,
        &array(&[blob("test.Link", 2, &inner)]),
        &json!([{ "type_id": "test.Link", "type_version": 2, "data": { "title": "a", "size": "5" } }]),
    );
    let outer = tagged(&[(19, &blob("test.Link", 2, &inner))]);
    check(
        19,
        &blob("test.Everything", 2, &outer),
        &json!({ "type_id": "test.Everything", "type_version": 2, "data": { "blob": {
            "type_id": "test.Link", "type_version": 2, "data": { "title": "a", "size": "5" } } } }),
    );
}

#[test]
fn a_typed_blob_that_cannot_be_projected_shows_why_and_its_bytes() {
    let check = |type_id: &str, version: i128, bytes: &[u8], why: &ProjectionError, shown: &str| {
        let projected = show(
            &ProjectionOptions::default(),
            &tagged(&[(19, &blob(type_id, version, bytes))]),
        )
        .unwrap();
        let data = value(&projected.data);
        let blob = &data["blob"];
        assert_eq!(
            (&blob["type_id"], &blob["type_version"]),
            (&json!(type_id), &json!(version))
        );
        assert_eq!(blob["error"], why.to_string());
        assert_eq!(blob["bytes"], shown);
        assert_eq!(blob.get("data"), None);
    };
    let missing = |id, version| ProjectionError::FailedDependency(TypeRef::new(id, version));
    let untyped = ProjectionError::MissingTypeHint;
    check("nobody", 1, &[0x80], &missing("nobody", 1), "gA==");
    check("test.Link", 7, &[0x80], &missing("test.Link", 7), "gA==");
    check("", 0, &[0x80], &untyped, "gA==");
    let cut = DecodeFault::Truncated { offset: 1 }.into();
    check("test.Link", 1, &[0x81], &cut, "gQ==");
    check("test.Link", 1, &[], &DecodeFault::Empty.into(), "");
}

#[test]
fn what_is_no_typed_blob_is_shown_as_it_is() {
    warned(
        19,
        &tagged(&[(1, &text("T")), (2, &int(1))]),
        &json!({ "1": "T", "2": 1 }),
        "typed_blob",
    );
    warned(
        19,
        &tagged(&[(1, &text("T")), (2, &int(1)), (3, &text("x"))]),
        &json!({ "1": "T", "2": 1, "3": "x" }),
        "typed_blob",
    );
    warned(19, &text("x"), &json!("x"), "typed_blob");
}

#[test]
fn what_is_beside_and_inside_a_typed_blob_is_unknown_by_its_path() {
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let inner = tagged(&[(8, &int(1))]);
    let blob = tagged(&[
        (4, &int(2)),
        (1, &text("test.Link")),
        (2, &int(1)),
        (3, &bin(&inner)),
    ]);
    let shown = show(&options, &tagged(&[(19, &blob)])).unwrap();
    assert_eq!(
        value(&shown.unknown.unwrap()),
        json!({ "blob.4": 2, "blob.data.8": 1 })
    );
}
