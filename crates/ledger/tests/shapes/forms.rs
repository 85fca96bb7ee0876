//! The forms in which a bundle is answered.

use serde_json::{Value, json};
use turnkeep_ledger::entry::{Author, AuthorClass, Channel, Entry};
use turnkeep_ledger::fact::{BundleCommit, ItemKind, PocketItem, ProposedBy};
use turnkeep_ledger::ids::{BundleId, EntryId, ItemId};
use turnkeep_ledger::proposal::{committed_form, rejected_form, unwritten_form};

use crate::rig::{REQUEST, bundle, entry, name, time, with};

const REASON: &str = "TEXT_EMPTY: entries[0].text";

fn committed() -> (BundleCommit, Entry, PocketItem) {
    let by = ProposedBy {
        engine: "test".into(),
        actor: "PLANNER".into(),
    };
    let commit = BundleCommit {
        id: BundleId(1),
        request: REQUEST.into(),
        proposed_by: by,
        entries: 1,
    };
    let entry = Entry {
        id: EntryId(2),
        bundle: BundleId(1),
        request: REQUEST.into(),
        time: time("2026-11-15T09:00:05.000Z"),
        author: Author {
            class: AuthorClass::Person,
            id: name("PLANNER"),
        },
        label: "Planner".into(),
        visible_to: Some([name("REVIEWER")].into()),
        channel: Channel::People,
        text: "Look twice.".into(),
        reply_to: None,
    };
    let item = PocketItem {
        id: ItemId(3),
        kind: ItemKind::Calendar,
        entry: EntryId(2),
        title: Some(0..4),
        time: None,
        location: None,
        notes: None,
        supersedes: Some(ItemId(4)),
    };
    (commit, entry, item)
}

#[test]
fn a_committed_bundle_has_its_ids_and_keeps_its_order() {
    let (commit, entry, item) = committed();
    let entry_form = json!({
        "entry_id": "e_00000000000000000000000002", "bundle_id": "b_00000000000000000000000001",
        "request_id": REQUEST, "created_at_world": "2026-11-15T09:00:05.000Z",
        "author": { "author_id": "PLANNER", "author_class": "PERSON" },
        "visibility": { "scope": "PRIVATE", "visible_to": ["REVIEWER"] },
        "channel": "PEOPLE", "text": "Look twice.",
    });
    let plain = json!({
        "bundle_id": "b_00000000000000000000000001", "request_id": REQUEST,
        "proposed_by": { "engine": "test", "actor": "PLANNER" }, "entries": [entry_form], "wrote": true,
        "rejection": { "rejected": false, "reason": null },
    });
    let form = committed_form(&commit, std::iter::once(&entry), std::iter::empty());
    assert_eq!(form.to_string(), plain.to_string());
    let item_form = json!({
        "item_id": "i_00000000000000000000000003", "entry_id": "e_00000000000000000000000002",
        "kind": "CALENDAR", "title": [0, 4], "time": null, "location": null, "notes": null,
        "supersedes": "i_00000000000000000000000004",
    });
    let form = committed_form(&commit, std::iter::once(&entry), std::iter::once(&item));
    assert_eq!(
        form.to_string(),
        with(&plain, "pocket_items", json!([item_form])).to_string()
    );
}

#[test]
fn a_bundle_that_wrote_nothing_has_no_id() {
    let by = ProposedBy {
        engine: "test".into(),
        actor: "PLANNER".into(),
    };
    assert_eq!(
        unwritten_form(REQUEST, &by).to_string(),
        bundle(&[]).to_string()
    );
}

#[test]
fn a_rejected_bundle_is_the_same_bundle_that_wrote_nothing() {
    let item = json!([{ "entry_index": 0, "kind": "MESSAGE" }]);
    let given = with(&bundle(&[entry(" ")]), "pocket_items", item);
    let wanted = with(
        &with(&given, "wrote", false),
        "rejection",
        json!({ "rejected": true, "reason": "TEXT_EMPTY: entries[0].text" }),
    );
    assert_eq!(rejected_form(&given, REASON), wanted);
}

#[test]
fn a_rejected_bundle_has_no_ids_whatever_was_claimed() {
    let claimed = with(
        &bundle(&[with(&entry("x"), "entry_id", "e_1")]),
        "bundle_id",
        "b_1",
    );
    let form = rejected_form(&claimed, REASON);
    assert_eq!(
        (&form["bundle_id"], &form["entries"][0]["entry_id"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(form["entries"][0]["text"], "x");
}

#[test]
fn whatever_came_is_answered_as_a_bundle() {
    let empty = json!({
        "bundle_id": null, "request_id": "", "proposed_by": { "engine": "", "actor": "" }, "entries": [],
        "wrote": false, "rejection": { "rejected": true, "reason": "TEXT_EMPTY: entries[0].text" },
    });
    let odd = json!({ "entries": 7, "request_id": [], "proposed_by": null, "wrote": "yes", "rejection": 0 });
    for given in [
        json!(null),
        json!(7),
        json!([1]),
        json!("bundle"),
        json!({}),
        odd,
    ] {
        assert_eq!(
            rejected_form(&given, REASON).to_string(),
            empty.to_string(),
            "{given}"
        );
    }
    let listed = json!({ "entries": [7, null, [], "x"], "mood": { "b": 1, "a": 2.50 } });
    let form = rejected_form(&listed, REASON);
    assert_eq!(form["entries"], listed["entries"]);
    assert_eq!(form["mood"].to_string(), r#"{"a":2.5,"b":1}"#);
}

#[test]
fn the_same_request_is_answered_with_the_same_bytes() {
    let parse = |text: &str| turnkeep_ledger::json::parse(text.as_bytes()).unwrap();
    for (one, other) in [
        (
            r#"{"wrote":true,"x":{"b":[{"d":1,"c":2}],"a":1}}"#,
            r#"{"x":{"a":1,"b":[{"c":2,"d":1}]},"wrote":true}"#,
        ),
        (
            r#"{"x":[1,10,0,100,2.5]}"#,
            r#"{"x":[1.0,1e1,-0.0,1E+2,25e-1]}"#,
        ),
        (
            r#"{"x":12345678901234567890}"#,
            r#"{"x":12345678901234567890.0}"#,
        ),
        (r#"{"x":9007199254740993}"#, r#"{"x":9007199254740992}"#),
    ] {
        let (one, other) = (parse(one), parse(other));
        assert_eq!(
            turnkeep_ledger::json::canonical(&one),
            turnkeep_ledger::json::canonical(&other)
        );
        assert_eq!(
            rejected_form(&one, REASON).to_string(),
            rejected_form(&other, REASON).to_string()
        );
    }
}
