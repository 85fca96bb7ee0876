//! Every option and every clause of projection, by tables.

mod hostile;
mod payload;
mod shapes;

use serde_json::{Value, json};

use super::fuzz::{sample_registry, sample_type, write_message};
use super::*;
use payload::{array, bin, boolean, float, int, map, nil, raw_str, single, tagged, text};

fn show(options: &ProjectionOptions, payload: &[u8]) -> Result<Projected, ProjectionError> {
    project(
        sample_registry(),
        &sample_type(),
        ENCODING_MSGPACK,
        payload,
        options,
        write_message,
    )
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Asserts what one field becomes, without a warning.
#[track_caller]
fn check_with(options: &ProjectionOptions, tag: u64, field: &[u8], expect: &Value) {
    let shown = show(options, &tagged(&[(tag, field)])).unwrap();
    let data = value(&shown.data);
    assert_eq!(data.as_object().unwrap().values().next(), Some(expect));
    assert_eq!(shown.warnings, []);
}

#[track_caller]
fn check(tag: u64, field: &[u8], expect: &Value) {
    check_with(&ProjectionOptions::default(), tag, field, expect);
}

/// Asserts what one field becomes, with one warning about it.
#[track_caller]
fn warned(tag: u64, field: &[u8], expect: &Value, words: &str) {
    let shown = show(&ProjectionOptions::default(), &tagged(&[(tag, field)])).unwrap();
    let data = value(&shown.data);
    assert_eq!(data.as_object().unwrap().values().next(), Some(expect));
    let [warning] = &shown.warnings[..] else {
        panic!("{:?}", shown.warnings)
    };
    assert_eq!(warning.tag, Some(tag));
    assert!(warning.message.contains(words), "{warning:?}");
}

#[test]
fn the_default_is_for_a_browser() {
    let payload = tagged(&[
        (1, &boolean(true)),
        (10, &int(u64::MAX.into())),
        (14, &bin(&[0, 255])),
        (22, &int(3)),
        (24, &int(1_766_174_400_000)),
        (999, &int(1)),
    ]);
    let shown = show(&ProjectionOptions::default(), &payload).unwrap();
    assert_eq!(
        shown.data,
        r#"{"flag":true,"u64":"18446744073709551615","bytes":"AP8=","role":"assistant","at_ms":"2025-12-19T20:00:00.000Z"}"#
    );
    assert_eq!(shown.unknown, None);
    assert_eq!(shown.decoded_as, sample_type());
}

#[test]
fn members_are_written_as_a_page_has_them() {
    let members = |options: &ProjectionOptions, payload: &[u8]| {
        let mut out = String::new();
        show(options, payload).unwrap().push_members(&mut out);
        out
    };
    let decoded = r#""decoded_as":{"type_id":"test.Everything","type_version":2},"data":{"#;
    assert_eq!(
        members(&ProjectionOptions::default(), &map(&[])),
        format!("{decoded}}}")
    );
    let debug = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    assert_eq!(
        members(&debug, &map(&[])),
        format!("{decoded}}},\"unknown\":{{}}")
    );
    assert_eq!(
        members(&debug, &tagged(&[(1, &int(7)), (99, &int(8))])),
        format!(
            "{decoded}\"flag\":7}},\"unknown\":{{\"99\":8}},\"warnings\":[{{\"tag\":1,\"path\":\"flag\",\
             \"message\":\"the descriptor says bool, the payload has an integer\"}}]"
        )
    );
}

#[test]
fn whole_numbers_of_64_bits_are_strings_or_exact_numbers() {
    let number = ProjectionOptions {
        u64_format: U64Format::Number,
        ..ProjectionOptions::default()
    };
    for (tag, given) in [
        (10, u64::MAX.into()),
        (10, 5),
        (10, 0),
        (6, i64::MIN.into()),
        (6, -1),
        (26, (1 << 53) + 1),
    ] {
        check(tag, &int(given), &json!(given.to_string()));
        let shown = show(&number, &tagged(&[(tag, &int(given))])).unwrap();
        assert!(
            shown.data.ends_with(&format!("\":{given}}}")),
            "{}",
            shown.data
        );
    }
    let numbers = array(&[int(1), int(u64::MAX.into())]);
    check(15, &numbers, &json!(["1", "18446744073709551615"]));
    check_with(&number, 15, &numbers, &json!([1, u64::MAX]));
}

#[test]
fn smaller_integers_are_numbers() {
    for (tag, given) in [
        (3, -128),
        (4, -32768),
        (5, -2_147_483_648),
        (7, 255),
        (8, 65535),
        (9, 4_294_967_295_i64),
    ] {
        check(tag, &int(given.into()), &json!(given));
    }
}

#[test]
fn numbers_beyond_their_type_are_shown_with_a_warning() {
    warned(
        7,
        &int(256),
        &json!(256),
        "the descriptor says u8, the payload has 256",
    );
    warned(3, &int(-129), &json!(-129), "i8");
    warned(10, &int(-1), &json!(-1), "u64");
    warned(
        6,
        &int(u64::MAX.into()),
        &json!("18446744073709551615"),
        "i64",
    );
}

#[test]
fn any_shows_numbers_that_javascript_rounds_as_strings_whatever_is_asked() {
    let safe = (1_i128 << 53) - 1;
    for u64_format in [U64Format::String, U64Format::Number] {
        let options = ProjectionOptions {
            u64_format,
            ..ProjectionOptions::default()
        };
        check_with(&options, 20, &int(safe), &json!(9_007_199_254_740_991_u64));
        check_with(
            &options,
            20,
            &int(-safe),
            &json!(-9_007_199_254_740_991_i64),
        );
        check_with(&options, 20, &int(safe + 1), &json!("9007199254740992"));
        check_with(&options, 20, &int(-safe - 1), &json!("-9007199254740992"));
        let unknown = ProjectionOptions {
            include_unknown: IncludeUnknown::Yes,
            ..options
        };
        let shown = show(
            &unknown,
            &tagged(&[(99, &int(safe)), (98, &int(u64::MAX.into()))]),
        )
        .unwrap();
        let expect = json!({ "99": 9_007_199_254_740_991_u64, "98": "18446744073709551615" });
        assert_eq!(value(&shown.unknown.unwrap()), expect);
    }
}

#[test]
fn floats_are_numbers_or_the_three_words() {
    check(12, &float(0.1), &json!(0.1));
    check(12, &float(1e300), &json!(1e300));
    check(12, &float(-2.0), &json!(-2.0));
    check(12, &float(f64::NAN), &json!("NaN"));
    check(12, &float(f64::INFINITY), &json!("Infinity"));
    check(12, &float(f64::NEG_INFINITY), &json!("-Infinity"));
    check(11, &single(0.1), &json!(0.1));
    check(11, &single(f32::NAN), &json!("NaN"));
    check(11, &float(0.1), &json!(0.1));
    check(12, &single(0.1), &json!(0.100_000_001_490_116_12));
    check(12, &int(3), &json!(3));
    check(20, &float(f64::NAN), &json!("NaN"));
}

#[test]
fn bytes_are_base64_hex_or_their_length() {
    let bytes = bin(&[0xde, 0xad, 0xbe, 0xef]);
    for (name, expect) in [
        ("base64", json!("3q2+7w==")),
        ("hex", json!("deadbeef")),
        ("len_only", json!(4)),
    ] {
        let options = ProjectionOptions {
            bytes_render: name.parse().unwrap(),
            ..ProjectionOptions::default()
        };
        check_with(&options, 14, &bytes, &expect);
        check_with(&options, 20, &bytes, &expect);
        check_with(
            &options,
            18,
            &map(&[(int(-1), array(std::slice::from_ref(&bytes)))]),
            &json!({ "-1": [expect] }),
        );
    }
    check(14, &bin(&[]), &json!(""));
}

#[test]
fn enums_are_labels_numbers_or_both() {
    let cases = [
        ("label", json!("user"), json!(9)),
        ("number", json!(2), json!(9)),
        (
            "both",
            json!({ "label": "user", "value": 2 }),
            json!({ "label": null, "value": 9 }),
        ),
    ];
    for (name, known, unknown) in cases {
        let options = ProjectionOptions {
            enum_render: name.parse().unwrap(),
            ..ProjectionOptions::default()
        };
        check_with(&options, 22, &int(2), &known);
        check_with(&options, 22, &int(9), &unknown);
        check_with(
            &options,
            23,
            &array(&[int(2), int(9)]),
            &json!([known, unknown]),
        );
    }
    check(31, &int(-1), &json!("below"));
    check(31, &int(i64::MIN.into()), &json!("-9223372036854775808"));
}

#[test]
fn times_are_iso_or_milliseconds() {
    let unix_ms = ProjectionOptions {
        time_render: TimeRender::UnixMs,
        ..ProjectionOptions::default()
    };
    check(24, &int(1), &json!("1970-01-01T00:00:00.001Z"));
    check(25, &int(-1), &json!("1969-12-31T23:59:59.000Z"));
    check_with(&unix_ms, 24, &int(1), &json!(1));
    check_with(&unix_ms, 25, &int(-1), &json!(-1000));
    let number = ProjectionOptions {
        u64_format: U64Format::Number,
        ..ProjectionOptions::default()
    };
    check_with(&number, 24, &int(1), &json!("1970-01-01T00:00:00.001Z"));
}

#[test]
fn times_outside_the_calendar_are_numbers() {
    check(
        24,
        &int(253_402_300_799_999),
        &json!("9999-12-31T23:59:59.999Z"),
    );
    check(
        24,
        &int(253_402_300_800_000),
        &json!(253_402_300_800_000_u64),
    );
    check(24, &int(u64::MAX.into()), &json!(u64::MAX));
    check(25, &int(253_402_300_800), &json!(253_402_300_800_000_u64));
    let shown = show(
        &ProjectionOptions::default(),
        &tagged(&[(25, &int(i64::MIN.into()))]),
    )
    .unwrap();
    assert_eq!(shown.data, r#"{"at_s":-9223372036854775808000}"#);
}

#[test]
fn nil_is_null_and_absent_is_absent() {
    for tag in (3..=31).chain([1]) {
        check(tag, &nil(), &json!(null));
    }
    assert_eq!(
        show(&ProjectionOptions::default(), &map(&[])).unwrap().data,
        "{}"
    );
}

#[test]
fn a_value_that_contradicts_its_descriptor_is_shown_as_it_is() {
    warned(
        1,
        &text("yes"),
        &json!("yes"),
        "the descriptor says bool, the payload has a string",
    );
    warned(7, &float(1.5), &json!(1.5), "a float");
    warned(10, &text("5"), &json!("5"), "u64");
    warned(12, &boolean(true), &json!(true), "f64");
    warned(13, &bin(b"x"), &json!("eA=="), "binary");
    warned(14, &text("x"), &json!("x"), "bytes");
    warned(15, &int(1), &json!(1), "array");
    warned(17, &array(&[]), &json!([]), "map");
    warned(
        21,
        &array(&[int(u64::MAX.into())]),
        &json!(["18446744073709551615"]),
        "test.Link",
    );
    warned(22, &text("user"), &json!("user"), "u8");
    warned(24, &text("now"), &json!("now"), "u64");
}

#[test]
fn a_string_that_is_not_utf_8_is_shown_as_bytes() {
    warned(13, &raw_str(&[0xff, 0xfe]), &json!("//4="), "not UTF-8");
    warned(20, &raw_str(&[0xff, 0xfe]), &json!("//4="), "not UTF-8");
}

#[test]
fn text_is_escaped() {
    check(
        13,
        &text("a\"\\\n\u{1}\u{7f}é😀"),
        &json!("a\"\\\n\u{1}\u{7f}é😀"),
    );
}

#[test]
fn an_extension_shows_its_kind_and_bytes() {
    check(
        20,
        &[0xd6, 0xff, 0, 0, 0, 1],
        &json!({ "ext": -1, "data": "AAAAAQ==" }),
    );
    check(20, &[0xc7, 0, 5], &json!({ "ext": 5, "data": "" }));
    warned(
        13,
        &[0xd4, 7, 9],
        &json!({ "ext": 7, "data": "CQ==" }),
        "an extension",
    );
}

#[test]
fn digit_strings_are_tags_and_other_keys_are_shown_by_their_text() {
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let payload = map(&[
        (text("7"), int(1)),
        (text("07"), int(2)),
        (text("name"), int(3)),
        (text(""), int(4)),
        (int(-3), int(5)),
        (boolean(true), int(6)),
        (nil(), int(7)),
        (float(1.5), int(8)),
        (bin(&[1]), int(9)),
        (array(&[int(1)]), int(10)),
        (text("18446744073709551616"), int(11)),
        (int(u64::MAX.into()), int(12)),
        (int(2), text("a tombstone's value")),
    ]);
    let shown = show(&options, &payload).unwrap();
    assert_eq!(shown.data, r#"{"u8":1}"#);
    assert_eq!(
        value(&shown.unknown.unwrap()),
        json!({
            "07": 2, "name": 3, "": 4, "-3": 5, "true": 6, "null": 7, "1.5": 8, "AQ==": 9, "kQE=": 10,
            "18446744073709551616": 11, "18446744073709551615": 12, "2": "a tombstone's value",
        })
    );
}

#[test]
fn unknown_is_there_exactly_when_asked_for() {
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let payload = tagged(&[
        (1, &boolean(true)),
        (77, &map(&[(int(1), array(&[nil()]))])),
    ]);
    assert_eq!(
        show(&ProjectionOptions::default(), &payload)
            .unwrap()
            .unknown,
        None
    );
    assert_eq!(
        show(&options, &payload).unwrap().unknown.as_deref(),
        Some(r#"{"77":{"1":[null]}}"#)
    );
    assert_eq!(
        show(&options, &map(&[])).unwrap().unknown.as_deref(),
        Some("{}")
    );
}

#[test]
fn the_last_of_a_tag_that_comes_twice_is_shown() {
    let payload = map(&[
        (int(7), int(1)),
        (int(1), boolean(true)),
        (text("7"), int(2)),
        (int(98), int(1)),
        (int(7), int(3)),
        (text("98"), int(2)),
    ]);
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let shown = show(&options, &payload).unwrap();
    assert_eq!(value(&shown.data), json!({ "flag": true, "u8": 3 }));
    assert_eq!(shown.unknown.as_deref(), Some(r#"{"98":2}"#));
    assert_eq!(shown.warnings.len(), 3);
    assert_eq!(shown.warnings[0].tag, Some(7));
    assert!(
        shown.warnings[0]
            .message
            .contains("tag 7 occurs more than once")
    );
    let unknown = |shown: &Projected| {
        let warning = shown.warnings.last().unwrap();
        (
            warning.tag,
            warning.path.clone(),
            warning.message.contains("tag 98 occurs more than once"),
        )
    };
    assert_eq!(unknown(&shown), (Some(98), "98".to_owned(), true));
    let hidden = show(&ProjectionOptions::default(), &payload).unwrap();
    assert_eq!(
        (unknown(&hidden), hidden.unknown),
        ((Some(98), "98".to_owned(), true), None)
    );
}

#[test]
fn hints_choose_the_descriptor() {
    let payload = tagged(&[(1, &boolean(true)), (2, &text("x"))]);
    let declared = |version| TypeRef::new("test.Everything", version);
    let decoded = |declared: &TypeRef, hint: TypeHint| {
        let options = ProjectionOptions {
            hint,
            ..ProjectionOptions::default()
        };
        project(
            sample_registry(),
            declared,
            1,
            &payload,
            &options,
            write_message,
        )
        .map(|shown| (shown.decoded_as, shown.data))
    };
    let first = Ok((declared(1), r#"{"flag":true,"old":"x"}"#.to_owned()));
    let second = Ok((declared(2), r#"{"flag":true}"#.to_owned()));
    let explicit = |version| TypeHint::Explicit(declared(version));
    let nothing = TypeRef::new("", 0);
    assert_eq!(decoded(&declared(1), TypeHint::Inherit), first);
    assert_eq!(decoded(&declared(1), TypeHint::Latest), second);
    assert_eq!(decoded(&declared(9), TypeHint::Latest), second);
    assert_eq!(decoded(&declared(2), explicit(1)), first);
    assert_eq!(
        decoded(&nothing, explicit(1)),
        first,
        "an explicit hint serves what nobody declared"
    );
    let refused = |declared: &TypeRef, hint: TypeHint| decoded(declared, hint).unwrap_err();
    let missing = |id, version| ProjectionError::FailedDependency(TypeRef::new(id, version));
    assert_eq!(
        refused(&declared(9), TypeHint::Inherit),
        missing("test.Everything", 9)
    );
    assert_eq!(
        refused(&TypeRef::new("nobody", 1), TypeHint::Latest),
        missing("nobody", 1)
    );
    assert_eq!(
        refused(&declared(1), explicit(3)),
        missing("test.Everything", 3)
    );
    assert_eq!(
        refused(&TypeRef::new("test.Link", 1), explicit(1)),
        ProjectionError::Conflict {
            declared: TypeRef::new("test.Link", 1),
            requested: declared(1),
        }
    );
    assert_eq!(
        refused(&nothing, TypeHint::Inherit),
        ProjectionError::MissingTypeHint
    );
    assert_eq!(
        refused(&nothing, TypeHint::Latest),
        ProjectionError::MissingTypeHint
    );
}

#[test]
fn query_values_are_the_contracts() {
    assert_eq!("hex".parse(), Ok(BytesRender::Hex));
    assert_eq!("1".parse(), Ok(IncludeUnknown::Yes));
    assert_eq!("both".parse(), Ok(EnumRender::Both));
    assert_eq!("number".parse(), Ok(U64Format::Number));
    assert_eq!("unix_ms".parse(), Ok(TimeRender::UnixMs));
    let refused = "HEX".parse::<BytesRender>().unwrap_err();
    assert_eq!(refused.legal, ["base64", "hex", "len_only"]);
    assert_eq!(
        refused.to_string(),
        "`HEX` is not a value of bytes_render: expected base64, hex, len_only"
    );
    assert_eq!(
        ("true".parse(), "false".parse()),
        (Ok(IncludeUnknown::Yes), Ok(IncludeUnknown::No))
    );
    assert!("yes".parse::<IncludeUnknown>().is_err());
}

#[test]
fn a_hint_is_made_of_three_values() {
    let check = |mode, id, version, expect: Result<TypeHint, HintError>| {
        assert_eq!(
            TypeHint::parse(mode, id, version),
            expect,
            "{mode:?} {id:?} {version:?}"
        );
    };
    check(None, None, None, Ok(TypeHint::Inherit));
    check(Some("inherit"), None, None, Ok(TypeHint::Inherit));
    check(Some("latest"), None, None, Ok(TypeHint::Latest));
    check(
        Some("explicit"),
        Some("T"),
        Some(2),
        Ok(TypeHint::Explicit(TypeRef::new("T", 2))),
    );
    check(
        Some("explicit"),
        Some("T"),
        None,
        Err(HintError::Incomplete),
    );
    check(Some("explicit"), None, Some(2), Err(HintError::Incomplete));
    check(
        Some("explicit"),
        Some(""),
        Some(2),
        Err(HintError::Incomplete),
    );
    check(None, Some("T"), None, Err(HintError::NotExplicit));
    check(Some("latest"), None, Some(1), Err(HintError::NotExplicit));
    assert!(matches!(
        TypeHint::parse(Some("x"), None, None),
        Err(HintError::UnknownMode(_))
    ));
}
