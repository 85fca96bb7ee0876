use turnkeep_store::projection::{
    BytesRender, EnumRender, IncludeUnknown, TimeRender, TypeHint, U64Format,
};
use turnkeep_types::TypeRef;

use super::*;

fn turns(query: &str) -> Result<TurnsQuery, QueryError> {
    TurnsQuery::from_query(Pairs::parse(query)?)
}

#[test]
fn an_empty_query_has_the_contract_s_defaults() {
    let query = turns("").unwrap();
    assert_eq!(
        (query.limit, query.before, query.options.view),
        (64, None, PayloadView::Typed)
    );
    let options = query.options.projection;
    assert_eq!(options.hint, TypeHint::Inherit);
    assert_eq!(options.include_unknown, IncludeUnknown::No);
    assert_eq!(options.bytes_render, BytesRender::Base64);
    assert_eq!(options.u64_format, U64Format::String);
    assert_eq!(options.enum_render, EnumRender::Label);
    assert_eq!(options.time_render, TimeRender::Iso);
}

#[test]
fn every_option_is_understood() {
    let query = turns(
        "limit=7&before_turn_id=12&view=both&type_hint_mode=explicit&as_type_id=com.a%2Fb&as_type_version=3\
         &include_unknown=1&bytes_format=hex&u64_format=number&enum_render=both&time_render=unix_ms",
    )
    .unwrap();
    assert_eq!(
        (query.limit, query.before, query.options.view),
        (7, TurnId::new(12), PayloadView::Both)
    );
    let options = query.options.projection;
    assert_eq!(options.hint, TypeHint::Explicit(TypeRef::new("com.a/b", 3)));
    assert_eq!(options.include_unknown, IncludeUnknown::Yes);
    assert_eq!(options.bytes_render, BytesRender::Hex);
    assert_eq!(options.u64_format, U64Format::Number);
    assert_eq!(options.enum_render, EnumRender::Both);
    assert_eq!(options.time_render, TimeRender::UnixMs);
}

#[test]
fn limits_are_counted_and_never_too_large() {
    fn check(query: &str, expect: Option<usize>) {
        assert_eq!(
            turns(query).ok().map(|query| query.limit),
            expect,
            "{query}"
        );
    }
    check("limit=0", Some(0));
    check("limit=99999", Some(99_999));
    check("limit=99999999999999999999999999", Some(usize::MAX));
    for bad in [
        "limit=",
        "limit",
        "limit=-1",
        "limit=+1",
        "limit=1.5",
        "limit=x",
        "limit=1&limit=1",
    ] {
        check(bad, None);
    }
}

#[test]
fn an_error_lists_what_would_be_legal() {
    fn check(query: &str, expect: &str) {
        assert_eq!(turns(query).unwrap_err().to_string(), expect);
    }
    check(
        "view=pretty",
        "`pretty` is not a value of view: expected typed, raw, both",
    );
    check(
        "type_hint_mode=guess",
        "`guess` is not a value of type_hint_mode: expected inherit, explicit, latest",
    );
    check(
        "include_unknown=yes",
        "`yes` is not a value of include_unknown: expected 0, false, 1, true",
    );
    check(
        "bytes_format=b64",
        "`b64` is not a value of bytes_render: expected base64, hex, len_only",
    );
    check(
        "u64_format=hex",
        "`hex` is not a value of u64_format: expected string, number",
    );
    check(
        "enum_render=",
        "`` is not a value of enum_render: expected label, number, both",
    );
    check(
        "time_render=rfc",
        "`rfc` is not a value of time_render: expected iso, unix_ms",
    );
    check(
        "before_turn_id=x",
        "`x` is not a value of `before_turn_id`: expected a turn id",
    );
    check("view=raw&view=raw", "`view` is given twice");
    check(
        "bytes_render=hex&bytes_format=hex",
        "`bytes_render` is given twice",
    );
    check("view=%zz", "`%zz` is not percent-encoded UTF-8");
    check("view=%ff", "`%ff` is not percent-encoded UTF-8");
    assert!(
        turns("colour=red")
            .unwrap_err()
            .to_string()
            .starts_with("`colour` is not a parameter here; these are: limit")
    );
}

#[test]
fn explicit_hints_need_both_and_only_there() {
    fn check(query: &str, expect: Option<HintError>) {
        assert_eq!(turns(query).err(), expect.map(QueryError::Hint), "{query}");
    }
    check(
        "type_hint_mode=explicit&as_type_id=a&as_type_version=1",
        None,
    );
    check("type_hint_mode=explicit", Some(HintError::Incomplete));
    check(
        "type_hint_mode=explicit&as_type_id=a",
        Some(HintError::Incomplete),
    );
    check(
        "type_hint_mode=explicit&as_type_version=1",
        Some(HintError::Incomplete),
    );
    check(
        "type_hint_mode=explicit&as_type_id=&as_type_version=1",
        Some(HintError::Incomplete),
    );
    check("as_type_id=a", Some(HintError::NotExplicit));
    check(
        "type_hint_mode=latest&as_type_version=1",
        Some(HintError::NotExplicit),
    );
    for bad in ["4294967296", "01", "-1", "x", ""] {
        let query = format!("type_hint_mode=explicit&as_type_id=a&as_type_version={bad}");
        assert!(
            matches!(
                turns(&query),
                Err(QueryError::Kind {
                    name: "as_type_version",
                    ..
                })
            ),
            "{bad}"
        );
    }
}

#[test]
fn one_turn_takes_the_options_but_chooses_no_turns() {
    let parse = |query: &str| TurnQuery::from_query(Pairs::parse(query).unwrap());
    assert_eq!(parse("view=raw").unwrap().options.view, PayloadView::Raw);
    assert!(matches!(parse("limit=1"), Err(QueryError::Unknown { .. })));
    assert!(matches!(
        parse("before_turn_id=1"),
        Err(QueryError::Unknown { .. })
    ));
}

#[test]
fn labels_filter_by_key_or_by_key_and_value() {
    let parse = |query: &str| ContextsQuery::from_query(Pairs::parse(query).unwrap());
    let query = parse("limit=3&cursor=9&label=team&label=env%3Dprod%3D1&label=empty=").unwrap();
    assert_eq!((query.limit, query.before), (3, ContextId::new(9)));
    let expect = [("team", None), ("env", Some("prod=1")), ("empty", Some(""))];
    let expect: Vec<_> = expect
        .map(|(k, v)| (k.to_owned(), v.map(str::to_owned)))
        .into();
    assert_eq!(query.labels, expect);
    for bad in ["cursor=0", "cursor=x", "cursor=", "limit=x", "before=1"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn yes_and_no_have_two_spellings_each() {
    let parse = |query: &str| {
        ContextsQuery::from_query(Pairs::parse(query).unwrap()).map(|query| query.worlds)
    };
    for (query, expect) in [
        ("", true),
        ("worlds=1", true),
        ("worlds=true", true),
        ("worlds=0", false),
        ("worlds=false", false),
    ] {
        assert_eq!(parse(query).unwrap(), expect, "{query}");
    }
    assert_eq!(
        parse("worlds=no").unwrap_err().to_string(),
        "`no` is not a value of `worlds`: expected 0, 1, true or false"
    );
    for (query, expect) in [("true", IncludeUnknown::Yes), ("false", IncludeUnknown::No)] {
        let parsed = turns(&format!("include_unknown={query}")).unwrap();
        assert_eq!(parsed.options.projection.include_unknown, expect);
    }
    let audit = |query: &str| {
        CallerQuery::from_query(Pairs::parse(query).unwrap())
            .ok()
            .map(|acting| acting.audit)
    };
    assert_eq!(
        (
            audit("audit=true"),
            audit("audit=false"),
            audit("audit=yes")
        ),
        (Some(true), Some(false), None)
    );
}

#[test]
fn provenance_is_accepted_and_changes_nothing() {
    assert_eq!(turns("include_provenance=1").unwrap(), turns("").unwrap());
    assert_eq!(
        turns("include_provenance=false").unwrap(),
        turns("").unwrap()
    );
    assert!(turns("include_provenance=maybe").is_err());
    assert!(turns("include_lineage=1").is_err());
}

#[test]
fn a_position_is_a_whole_number() {
    let parse = |query: &str| {
        EventsQuery::from_query(Pairs::parse(query).unwrap())
            .ok()
            .map(|query| query.after)
    };
    assert_eq!(parse(""), Some(None));
    assert_eq!(parse("after=0"), Some(Some(0)));
    assert_eq!(parse("after=18446744073709551615"), Some(Some(u64::MAX)));
    for bad in [
        "after=",
        "after=-1",
        "after=x",
        "after=18446744073709551616",
        "from=1",
    ] {
        assert_eq!(parse(bad), None, "{bad}");
    }
}

#[test]
fn any_bytes_parse_or_are_refused() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let words = [
        b"view=", b"%f0%9", b"&as_t", b"=raw&", b"limit", b"label", b"ype_i", b"d=%2b",
    ];
    for _ in 0..2000 {
        let mut text = Vec::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.extend_from_slice(words[usize::from(seed.to_le_bytes()[7] >> 5)]);
            text.push(seed.to_le_bytes()[4]);
        }
        parse_any(&text);
    }
}
