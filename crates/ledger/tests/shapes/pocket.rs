//! Pocket items: parts of an entry's text, by bytes and on character boundaries.

use serde_json::{Value, json};
use turnkeep_ledger::Code;
use turnkeep_ledger::fact::ItemKind;
use turnkeep_ledger::ids::ItemId;

use crate::rig::{Rig, SEEN_ITEM, bundle, entry, with};

/// `ä` is at 5..7, and the text has 12 bytes.
const TEXT: &str = "Café äh 12";

fn given(item: &Value) -> Value {
    with(
        &bundle(&[entry("first"), entry(TEXT)]),
        "pocket_items",
        json!([item]),
    )
}

fn item() -> Value {
    json!({ "kind": "CALENDAR", "entry_index": 1, "title": [0, 5], "time": "2026-11-15T15:00:00Z",
        "location": [6, 8], "notes": [10, 12], "supersedes": SEEN_ITEM.to_string() })
}

#[track_caller]
fn check(item: &Value, wanted: Result<(), (Code, &str)>) {
    let verdict = Rig::workspace()
        .accept(&given(item))
        .map(drop)
        .map_err(|fault| (fault.code, fault.path));
    let wanted = wanted.map_err(|(code, field)| (code, format!("pocket_items[0].{field}")));
    assert_eq!(verdict, wanted, "{item}");
}

#[test]
fn an_item_is_made_of_parts_of_its_entry() {
    let proposal = Rig::workspace().accept(&given(&item())).unwrap();
    let made = &proposal.items[0];
    assert_eq!(
        (made.entry_index, made.kind, made.supersedes),
        (1, ItemKind::Calendar, Some(SEEN_ITEM))
    );
    assert_eq!(
        (
            made.title.clone(),
            made.location.clone(),
            made.notes.clone()
        ),
        (Some(0..5), Some(6..8), Some(10..12))
    );
    assert_eq!(made.time.as_ref().unwrap().as_str(), "2026-11-15T15:00:00Z");
    let local = Rig::workspace()
        .accept(&given(&with(&item(), "time", "2026-11-15T15:00")))
        .unwrap();
    assert_eq!(
        local.items[0].time.as_ref().unwrap().as_str(),
        "2026-11-15T14:00:00.000Z"
    );
}

#[test]
fn ranges_are_inside_the_text_and_on_character_boundaries() {
    assert_eq!(TEXT.len(), 12);
    for field in ["title", "location", "notes"] {
        let invalid = Err((Code::PocketInvalid, field));
        for (range, wanted) in [
            (json!([0, 12]), Ok(())),
            (json!([11, 12]), Ok(())),
            (json!(null), Ok(())),
            (json!([0, 13]), invalid),
            (json!([0, 4]), invalid),
            (json!([7, 8]), invalid),
            (json!([5, 5]), invalid),
            (json!([6, 5]), invalid),
            (json!([13, 14]), invalid),
            (json!([0, u64::MAX]), invalid),
            (json!([4_294_967_296_u64, 4_294_967_300_u64]), invalid),
        ] {
            check(&with(&item(), field, range), wanted);
        }
        for odd in [
            json!([0]),
            json!([0, 1, 2]),
            json!([]),
            json!("0-5"),
            json!({}),
        ] {
            check(&with(&item(), field, odd), Err((Code::Shape, field)));
        }
        for odd in [json!(-1), json!(1.5), json!("0"), json!(null)] {
            check(
                &with(&item(), field, json!([odd, 5])),
                Err((Code::Shape, &format!("{field}[0]"))),
            );
        }
    }
}

#[test]
fn an_item_has_a_kind_an_entry_and_a_time_that_is_one() {
    for (field, value, code) in [
        ("kind", json!("TODO"), Code::PocketInvalid),
        ("kind", json!("calendar"), Code::PocketInvalid),
        ("kind", json!(7), Code::Shape),
        ("entry_index", json!(2), Code::PocketInvalid),
        ("entry_index", json!(u64::MAX), Code::PocketInvalid),
        ("entry_index", json!(-1), Code::Shape),
        ("entry_index", json!("1"), Code::Shape),
        ("time", json!("soon"), Code::PocketInvalid),
        ("time", json!(1_763_197_200), Code::PocketInvalid),
        ("time", json!("2026-10-25T02:30:00"), Code::PocketInvalid),
        ("supersedes", json!(7), Code::Shape),
    ] {
        check(&with(&item(), field, value), Err((code, field)));
    }
    let alone = with(&bundle(&[]), "pocket_items", json!([item()]));
    let refusal = Rig::workspace().refusal(&alone);
    assert_eq!(
        refusal,
        (
            Code::PocketInvalid,
            "pocket_items[0].entry_index".to_owned()
        )
    );
}

#[test]
fn an_item_without_a_title_tells_its_entry_or_cancels_another() {
    let bare = |kind: &str| json!({ "kind": kind, "entry_index": 0 });
    check(&bare("MESSAGE"), Ok(()));
    check(&bare("CALENDAR"), Err((Code::PocketInvalid, "title")));
    check(
        &with(&bare("CALENDAR"), "supersedes", SEEN_ITEM.to_string()),
        Ok(()),
    );
}

#[test]
fn an_unknown_item_and_a_hidden_one_are_refused_alike() {
    let refuse = |id: &str| {
        Rig::workspace()
            .accept(&given(&with(&item(), "supersedes", id)))
            .unwrap_err()
    };
    let hidden = refuse(&ItemId(8).to_string());
    assert_eq!(
        (hidden.code, hidden.path.as_str()),
        (Code::PocketInvalid, "pocket_items[0].supersedes")
    );
    for other in [
        ItemId(9).to_string(),
        "i_".to_owned(),
        String::new(),
        "lunch".to_owned(),
    ] {
        assert_eq!(refuse(&other), hidden, "{other}");
    }
}
