//! Envelopes: the words of refusal, their paths and their order; and by what two requests are the
//! same.

use serde_json::{Value, json};
use turnkeep_ledger::Code;
use turnkeep_ledger::envelope::{EnvelopeKind, fingerprint};
use turnkeep_ledger::time::Zone;

use crate::rig::{Rig, envelope, set, with, without};

#[track_caller]
fn refused(envelope: &Value, code: Code, path: &str) {
    let fault = Rig::workspace()
        .envelope(envelope)
        .expect_err("the envelope was to be refused");
    assert_eq!(
        (fault.code, fault.path.as_str()),
        (code, path),
        "{envelope}"
    );
}

#[test]
fn a_whole_envelope_is_read() {
    let read = Rig::workspace().envelope(&envelope()).unwrap();
    assert_eq!(
        (&*read.request_id, read.invoker_id.as_str()),
        ("r-17", "screen")
    );
    assert_eq!(
        (read.notes.as_deref(), read.client_intent.as_deref()),
        (Some("from the desk"), Some("say"))
    );
    assert_eq!(
        (read.input_text.as_str(), read.kind),
        ("Ship the refund fix today.", EnvelopeKind::Beat)
    );
    assert_eq!(
        (read.pause, read.cursor.as_deref()),
        (Some(false), Some("abc"))
    );
    let instant = read.declared_instant(&Zone::utc()).unwrap().unwrap();
    assert_eq!(
        instant.as_str(),
        "2026-11-15T11:00:00.000Z",
        "meant in the zone that was declared with it"
    );
}

#[test]
fn what_may_be_absent_may_be_null_and_unknown_fields_are_ignored() {
    let least = json!({
        "request_id": "r", "invoker": { "invoker_id": "x", "invoker_role": "INVOKER", "mood": 7 },
        "operator": { "operator_id": "GEORGE", "input_text": "" }, "mode": { "kind": "NO_OP" }, "more": [],
    });
    let mut nulls = least.clone();
    for path in [
        "declared_overrides",
        "ui",
        "invoker/notes",
        "mode/client_intent",
    ] {
        set(&mut nulls, path, Value::Null);
    }
    let mut inner = with(
        &least,
        "ui",
        json!({ "stream_cursor": null, "client_timestamp_utc": 7 }),
    );
    set(
        &mut inner,
        "declared_overrides",
        json!({ "time": null, "pause_time": null }),
    );
    let mut deep = least.clone();
    set(
        &mut deep,
        "declared_overrides",
        json!({ "time": { "declared_world_time": null, "timezone": null } }),
    );
    for given in [least, nulls, inner, deep] {
        let read = Rig::workspace().envelope(&given).unwrap();
        assert!(!read.speaks_as_operator(), "{given}");
        assert_eq!((read.kind, read.cursor.clone()), (EnvelopeKind::NoOp, None));
        assert_eq!(read.declared_instant(&Zone::utc()), Ok(None));
    }
}

#[test]
fn words_and_declarations_are_the_operators() {
    let silent = with(
        &without(&envelope(), "declared_overrides"),
        "operator/input_text",
        "",
    );
    let time = |field: &str, value: Value| json!({ "time": { field: value } });
    for (path, value, speaks) in [
        ("mode/client_intent", json!("x"), false),
        ("operator/input_text", json!(" "), true),
        (
            "declared_overrides",
            time("declared_world_time", "2026-11-15T12:00:00Z".into()),
            true,
        ),
        ("declared_overrides", time("timezone", "UTC".into()), true),
        ("declared_overrides", json!({ "pause_time": false }), true),
        ("declared_overrides", json!({}), false),
    ] {
        let read = Rig::workspace()
            .envelope(&with(&silent, path, value.clone()))
            .unwrap();
        assert_eq!(read.speaks_as_operator(), speaks, "{path} {value}");
    }
}

#[test]
fn n01_an_invoker_is_neither_the_operator_nor_a_human() {
    for id in [
        "GEORGE",
        "george",
        " GEORGE ",
        "Operator",
        "\toperator\n",
        "HELEN",
        "helen",
        "helen hunt",
        " ÄBTISSIN ",
    ] {
        refused(
            &with(&envelope(), "invoker/invoker_id", id),
            Code::InvokerForbidden,
            "invoker.invoker_id",
        );
    }
    for id in ["PLANNER", "planner", "GEORGE2", "SYSTEM_INVOKER"] {
        Rig::workspace()
            .envelope(&with(&envelope(), "invoker/invoker_id", id))
            .unwrap();
    }
    for id in [json!(""), json!("  "), json!(7), json!("x".repeat(1025))] {
        refused(
            &with(&envelope(), "invoker/invoker_id", id),
            Code::EnvelopeInvalid,
            "invoker.invoker_id",
        );
    }
}

#[test]
fn n02_a_request_id_is_1_to_200_plain_characters() {
    let bad = [
        json!(""),
        json!(7),
        json!(null),
        json!("a\nb"),
        json!("\u{85}"),
        json!("ä".repeat(201)),
    ];
    for id in bad {
        refused(
            &with(&envelope(), "request_id", id),
            Code::RequestIdInvalid,
            "request_id",
        );
    }
    refused(
        &without(&envelope(), "request_id"),
        Code::RequestIdInvalid,
        "request_id",
    );
    for id in ["r".to_owned(), "ä".repeat(200), " ".to_owned()] {
        let read = Rig::workspace()
            .envelope(&with(&envelope(), "request_id", id.clone()))
            .unwrap();
        assert_eq!(&*read.request_id, id);
    }
}

#[test]
fn n03_the_role_is_invoker_to_the_letter() {
    for role in [json!("invoker"), json!("OPERATOR"), json!(""), json!(null)] {
        refused(
            &with(&envelope(), "invoker/invoker_role", role),
            Code::EnvelopeInvalid,
            "invoker.invoker_role",
        );
    }
}

#[test]
fn n04_the_operator_is_george_to_the_letter() {
    for id in [
        json!("NOT_GEORGE"),
        json!("george"),
        json!("GEORGE "),
        json!(null),
    ] {
        refused(
            &with(&envelope(), "operator/operator_id", id),
            Code::EnvelopeInvalid,
            "operator.operator_id",
        );
    }
}

#[test]
fn n05_the_mode_is_beat_or_no_op() {
    for kind in [
        json!("INVALID_MODE"),
        json!("beat"),
        json!("NOOP"),
        json!(null),
    ] {
        refused(
            &with(&envelope(), "mode/kind", kind),
            Code::EnvelopeInvalid,
            "mode.kind",
        );
    }
}

#[test]
fn n16_a_time_is_text_of_a_time_and_needs_to_be_one_instant() {
    let path = "declared_overrides/time/declared_world_time";
    let dotted = "declared_overrides.time.declared_world_time";
    for number in [json!(1_763_197_200), json!(0), json!(true), json!({})] {
        refused(&with(&envelope(), path, number), Code::TimeFormat, dotted);
    }
    for text in [
        "tomorrow",
        "",
        "1763197200",
        "2030-01-02",
        "2026-11-15 09:00:00",
        "2026-13-01T09:00:00Z",
    ] {
        refused(&with(&envelope(), path, text), Code::TimeFormat, dotted);
    }
    for text in ["2026-03-29T02:30:00", "2026-10-25T02:30:00"] {
        let read = Rig::workspace()
            .envelope(&with(&envelope(), path, text))
            .unwrap();
        let fault = read.declared_instant(&Zone::utc()).unwrap_err();
        assert_eq!(
            (fault.code, fault.path.as_str()),
            (Code::TimeAmbiguous, dotted),
            "{text}"
        );
    }
    let kept = with(&envelope(), path, "2026-11-15T12:00:00+05:30");
    let kept = Rig::workspace()
        .envelope(&kept)
        .unwrap()
        .declared_instant(&Zone::utc())
        .unwrap()
        .unwrap();
    assert_eq!(kept.as_str(), "2026-11-15T12:00:00+05:30");
    let local = without(&envelope(), "declared_overrides/time/timezone");
    let local = Rig::workspace().envelope(&local).unwrap();
    let tokyo = Zone::named("Asia/Tokyo").unwrap();
    assert_eq!(
        local.declared_instant(&tokyo).unwrap().unwrap().as_str(),
        "2026-11-15T03:00:00.000Z"
    );
}

#[test]
fn what_the_operator_says_is_at_most_a_mebibyte() {
    let fits = "ä".repeat(1 << 19);
    let read = Rig::workspace()
        .envelope(&with(&envelope(), "operator/input_text", fits.clone()))
        .unwrap();
    assert_eq!(read.input_text, fits);
    let large = with(&envelope(), "operator/input_text", format!("{fits}x"));
    refused(&large, Code::TextTooLarge, "operator.input_text");
}

#[test]
fn n17_the_clients_clock_is_never_an_error() {
    for stamp in [
        json!("2099-01-01T00:00:00Z"),
        json!("soon"),
        json!(7),
        json!({}),
    ] {
        let read = |given: &Value| {
            let read = Rig::workspace().envelope(given).unwrap();
            // It is kept for the audit, and nothing else of the envelope depends on it.
            turnkeep_ledger::envelope::Envelope {
                client_timestamp: None,
                ..read
            }
        };
        assert_eq!(
            read(&with(&envelope(), "ui/client_timestamp_utc", stamp)),
            read(&envelope())
        );
    }
}

/// Every part of an envelope with the wrong type, in the order in which they are looked at.
const WRONG_TYPES: &[(&str, Code)] = &[
    ("invoker", Code::EnvelopeInvalid),
    ("operator", Code::EnvelopeInvalid),
    ("mode", Code::EnvelopeInvalid),
    ("declared_overrides", Code::EnvelopeInvalid),
    ("ui", Code::EnvelopeInvalid),
    ("request_id", Code::RequestIdInvalid),
    ("invoker/invoker_role", Code::EnvelopeInvalid),
    ("invoker/invoker_id", Code::EnvelopeInvalid),
    ("invoker/notes", Code::EnvelopeInvalid),
    ("operator/operator_id", Code::EnvelopeInvalid),
    ("operator/input_text", Code::EnvelopeInvalid),
    ("mode/kind", Code::EnvelopeInvalid),
    ("mode/client_intent", Code::EnvelopeInvalid),
    (
        "declared_overrides/time/declared_world_time",
        Code::TimeFormat,
    ),
    ("declared_overrides/time/timezone", Code::EnvelopeInvalid),
    ("declared_overrides/pause_time", Code::EnvelopeInvalid),
    ("ui/stream_cursor", Code::EnvelopeInvalid),
];

#[test]
fn every_wrong_type_is_refused_with_its_path() {
    for (path, code) in WRONG_TYPES {
        refused(&with(&envelope(), path, 7), *code, &path.replace('/', "."));
    }
    for section in ["invoker", "operator", "mode"] {
        refused(
            &without(&envelope(), section),
            Code::EnvelopeInvalid,
            section,
        );
        refused(
            &with(&envelope(), section, Value::Null),
            Code::EnvelopeInvalid,
            section,
        );
    }
    refused(
        &with(&envelope(), "declared_overrides/time", 7),
        Code::EnvelopeInvalid,
        "declared_overrides.time",
    );
    let mars = with(
        &envelope(),
        "declared_overrides/time/timezone",
        "Mars/Olympus",
    );
    refused(
        &mars,
        Code::EnvelopeInvalid,
        "declared_overrides.time.timezone",
    );
    for value in [json!(null), json!([]), json!("envelope"), json!(7)] {
        refused(
            &value,
            Code::EnvelopeInvalid,
            if value.is_object() { "request_id" } else { "" },
        );
    }
}

#[test]
fn of_two_faults_the_one_that_is_looked_at_first_is_told() {
    for (first, (path, code)) in WRONG_TYPES.iter().enumerate() {
        for (later, _) in WRONG_TYPES
            .iter()
            .skip(first + 1)
            .filter(|(later, _)| !later.starts_with(path))
        {
            let both = with(&with(&envelope(), later, 7), path, 7);
            refused(&both, *code, &path.replace('/', "."));
        }
    }
}

#[test]
fn two_requests_are_the_same_apart_from_ui_notes_and_the_order_of_keys() {
    let print = fingerprint(&envelope(), None);
    let turned: Value = envelope()
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .rev()
        .collect();
    let mut same = vec![
        turned,
        without(&envelope(), "ui"),
        without(&envelope(), "invoker/notes"),
    ];
    same.push(with(&envelope(), "ui/stream_cursor", "elsewhere"));
    same.push(with(&envelope(), "invoker/notes", Value::Null));
    for path in [
        "notes",
        "operator/notes",
        "declared_overrides/mood",
        "declared_overrides/time/mood",
    ] {
        same.push(with(
            &envelope(),
            path,
            "a field that an envelope does not have",
        ));
    }
    for same in same {
        assert_eq!(fingerprint(&same, None), print, "{same}");
    }
    for (path, value) in [
        ("operator/input_text", json!("Ship the refund fix today!")),
        ("mode/client_intent", json!(null)),
        ("invoker/invoker_id", json!("other")),
        ("declared_overrides/pause_time", json!(null)),
        ("declared_overrides/time/timezone", json!("Asia/Tokyo")),
    ] {
        assert_ne!(
            fingerprint(&with(&envelope(), path, value), None),
            print,
            "{path}"
        );
    }
    let none = without(&envelope(), "declared_overrides");
    let nothing =
        json!({ "time": { "declared_world_time": null, "timezone": null }, "pause_time": null });
    for nothing in [json!(null), json!({}), json!({ "time": {} }), nothing] {
        let said = with(&none, "declared_overrides", nothing);
        assert_eq!(fingerprint(&said, None), fingerprint(&none, None), "{said}");
    }
    let bundles = [
        None,
        Some(json!(null)),
        Some(json!({})),
        Some(json!({ "ui": 1 })),
    ];
    let prints: std::collections::BTreeSet<_> = bundles
        .iter()
        .map(|bundle| fingerprint(&envelope(), bundle.as_ref()))
        .collect();
    assert_eq!(prints.len(), bundles.len(), "a bundle counts, all of it");
    for odd in [json!(null), json!([]), json!("ui"), json!({ "invoker": 7 })] {
        fingerprint(&odd, Some(&odd));
    }
}
