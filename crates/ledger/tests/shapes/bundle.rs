//! Bundles as a whole: their shape, whose they are, whether they are what they say, and how large.

use serde_json::{Value, json};
use turnkeep_ledger::Code;
use turnkeep_ledger::entry::{AuthorClass, Channel};
use turnkeep_ledger::fact::ItemKind;

use crate::rig::{REQUEST, Rig, bundle, entry, name, with, without};

#[track_caller]
fn refused(bundle: &Value, code: Code, path: &str) {
    assert_eq!(Rig::workspace().refusal(bundle), (code, path.to_owned()));
}

/// The worked beat: a public line with a planned item, and a private one.
#[test]
fn a_bundle_of_two_entries_and_an_item_becomes_a_proposal() {
    let public = "CODER takes the rounding test; REVIEWER checks by 15:00.";
    let private = with(
        &entry("Look twice at the ledger migration."),
        "visibility",
        json!({ "scope": "PRIVATE", "visible_to": ["REVIEWER"] }),
    );
    let item = json!({ "kind": "CALENDAR", "entry_index": 0, "title": [31, 46], "time": "2026-11-15T15:00:00Z" });
    let given = with(
        &bundle(&[entry(public), private]),
        "pocket_items",
        json!([item]),
    );
    let proposal = Rig::workspace().by("PLANNER").accept(&given).unwrap();
    assert_eq!(
        (
            proposal.proposed_by.engine.as_str(),
            proposal.proposed_by.actor.as_str()
        ),
        ("test", "PLANNER")
    );
    let [first, second] = proposal.entries.as_slice() else {
        panic!("{:?}", proposal.entries)
    };
    assert_eq!(
        (first.author.class, first.author.id.as_str()),
        (AuthorClass::Person, "PLANNER")
    );
    assert_eq!(
        (first.channel, &first.visible_to, &first.time),
        (Channel::People, &None, &None)
    );
    assert_eq!(first.text, public);
    assert_eq!(second.visible_to.as_deref(), Some(&[name("REVIEWER")][..]));
    let [item] = proposal.items.as_slice() else {
        panic!("{:?}", proposal.items)
    };
    assert_eq!(
        (item.entry_index, item.kind, item.supersedes),
        (0, ItemKind::Calendar, None)
    );
    assert_eq!(&public[31..46], "REVIEWER checks");
    assert_eq!(
        (item.title.clone(), item.location.clone()),
        (Some(31..46), None)
    );
}

#[test]
fn what_may_be_absent_may_be_null() {
    let least = json!({ "request_id": REQUEST, "proposed_by": { "engine": "x", "actor": "y" }, "entries": [], "wrote": false });
    let rig = Rig::workspace();
    let proposal = rig.accept(&least).unwrap();
    assert!(proposal.entries.is_empty() && proposal.items.is_empty() && proposal.scene.is_none());
    for key in [
        "bundle_id",
        "rejection",
        "pocket_items",
        "scene_change",
        "capsule_notes",
    ] {
        assert_eq!(
            rig.accept(&with(&least, key, Value::Null)).unwrap(),
            proposal,
            "{key}"
        );
    }
    assert_eq!(
        rig.accept(&with(&least, "rejection", json!({ "rejected": false })))
            .unwrap(),
        proposal
    );
    let mut short = entry("x");
    for key in [
        "entry_id",
        "bundle_id",
        "created_at_world",
        "visibility/visible_to",
    ] {
        short = without(&short, key);
    }
    assert_eq!(
        rig.accept(&bundle(&[short])).unwrap(),
        rig.accept(&bundle(&[entry("x")])).unwrap()
    );
}

#[test]
fn what_has_another_shape_is_refused_with_its_path() {
    let whole = bundle(&[entry("x")]);
    for value in [json!(null), json!(7), json!([]), json!("bundle")] {
        refused(&value, Code::Shape, "");
    }
    for path in [
        "request_id",
        "proposed_by",
        "proposed_by/engine",
        "proposed_by/actor",
        "entries",
        "wrote",
    ] {
        refused(&without(&whole, path), Code::Shape, &path.replace('/', "."));
        refused(&with(&whole, path, 7), Code::Shape, &path.replace('/', "."));
        refused(
            &with(&whole, path, Value::Null),
            Code::Shape,
            &path.replace('/', "."),
        );
    }
    for path in ["rejection", "pocket_items", "scene_change", "capsule_notes"] {
        refused(&with(&whole, path, 7), Code::Shape, path);
    }
    for name in ["engine", "actor"] {
        refused(
            &with(&whole, &format!("proposed_by/{name}"), ""),
            Code::Shape,
            &format!("proposed_by.{name}"),
        );
    }
    refused(
        &with(&whole, "rejection/rejected", true),
        Code::Shape,
        "rejection.rejected",
    );
    refused(
        &with(&whole, "rejection/reason", "SHAPE: text"),
        Code::Shape,
        "rejection.reason",
    );
    refused(
        &without(&whole, "rejection/rejected"),
        Code::Shape,
        "rejection.rejected",
    );
    refused(
        &bundle(&[entry("x"), json!("y")]),
        Code::Shape,
        "entries[1]",
    );
}

#[test]
fn a_wrong_type_anywhere_in_an_entry_is_its_shape() {
    for path in [
        "request_id",
        "author/author_id",
        "author/author_class",
        "visibility/scope",
        "channel",
        "text",
    ] {
        let dotted = format!("entries[1].{}", path.replace('/', "."));
        refused(
            &bundle(&[entry("x"), with(&entry("y"), path, 7)]),
            Code::Shape,
            &dotted,
        );
        refused(
            &bundle(&[entry("x"), without(&entry("y"), path)]),
            Code::Shape,
            &dotted,
        );
    }
    refused(
        &bundle(&[with(&entry("x"), "author", "PLANNER")]),
        Code::Shape,
        "entries[0].author",
    );
    let names = with(
        &entry("x"),
        "visibility",
        json!({ "scope": "PRIVATE", "visible_to": ["CODER", 7] }),
    );
    refused(
        &bundle(&[names]),
        Code::Shape,
        "entries[0].visibility.visible_to[1]",
    );
}

#[test]
fn n08_wrote_says_whether_there_are_entries() {
    refused(
        &with(&bundle(&[]), "wrote", true),
        Code::WroteMismatch,
        "wrote",
    );
    refused(
        &with(&bundle(&[entry("x")]), "wrote", false),
        Code::WroteMismatch,
        "wrote",
    );
}

#[test]
fn n09_foreign_requests_preset_ids_unknown_fields_odd_channels_and_missing_authors() {
    let one = |entry: Value| bundle(&[entry]);
    let x = entry("x");
    refused(
        &with(&one(x.clone()), "request_id", "r-17"),
        Code::RequestMismatch,
        "request_id",
    );
    refused(
        &one(with(&x, "request_id", "r-17")),
        Code::RequestMismatch,
        "entries[0].request_id",
    );
    for id in [json!("e_00000000000000000000000001"), json!(""), json!(7)] {
        refused(
            &one(with(&x, "entry_id", id.clone())),
            Code::IdPreset,
            "entries[0].entry_id",
        );
        refused(
            &one(with(&x, "bundle_id", id.clone())),
            Code::IdPreset,
            "entries[0].bundle_id",
        );
        refused(
            &with(&one(x.clone()), "bundle_id", id),
            Code::IdPreset,
            "bundle_id",
        );
    }
    refused(
        &one(with(&x, "mood", 7)),
        Code::UnknownField,
        "entries[0].mood",
    );
    refused(
        &one(with(&x, "author/mood", 7)),
        Code::UnknownField,
        "entries[0].author.mood",
    );
    refused(
        &one(with(&x, "visibility/mood", 7)),
        Code::UnknownField,
        "entries[0].visibility.mood",
    );
    refused(
        &one(with(&x, "channel", "XP_GAIN")),
        Code::ChannelInvalid,
        "entries[0].channel",
    );
    refused(
        &one(without(&x, "author")),
        Code::Shape,
        "entries[0].author",
    );
}

#[test]
fn unknown_fields_outside_the_entries_are_refused_too() {
    let mut whole = bundle(&[entry("words")]);
    whole["pocket_items"] = json!([{ "kind": "MESSAGE", "entry_index": 0 }]);
    whole["scene_change"] = json!({ "text": "A desk.", "used_entry_ids": [] });
    whole["capsule_notes"] =
        json!([{ "person_id": "CODER", "text": "Busy.", "used_entry_ids": [] }]);
    for parent in [
        "",
        "proposed_by",
        "rejection",
        "pocket_items/0",
        "scene_change",
        "capsule_notes/0",
    ] {
        let slash = if parent.is_empty() { "" } else { "/" };
        let path = format!("{parent}{slash}mood");
        let dotted = path.replace("/0", "[0]").replace('/', ".");
        refused(&with(&whole, &path, 7), Code::UnknownField, &dotted);
    }
    let long = with(&bundle(&[]), &"ä".repeat(1 << 20), 7);
    let (code, path) = Rig::workspace().refusal(&long);
    assert_eq!(
        (code, path),
        (Code::UnknownField, "ä".repeat(32)),
        "a reason stays short"
    );
}

#[test]
fn the_actor_is_whom_the_token_names() {
    let given = bundle(&[entry("x")]);
    Rig::workspace().by("PLANNER").accept(&given).unwrap();
    Rig::workspace()
        .accept(&with(&given, "proposed_by/actor", "anybody at all"))
        .unwrap();
    for actor in ["CODER", "planner", "PLANNER ", "GEORGE"] {
        let refusal =
            Rig::workspace()
                .by("PLANNER")
                .refusal(&with(&given, "proposed_by/actor", actor));
        assert_eq!(
            refusal,
            (Code::ActorMismatch, "proposed_by.actor".to_owned()),
            "{actor}"
        );
    }
}

#[test]
fn a_bundle_has_bounds_and_what_just_fits_is_taken() {
    let rig = Rig::workspace();
    rig.accept(&bundle(&vec![entry("x"); 64])).unwrap();
    refused(&bundle(&vec![entry("x"); 65]), Code::TooLarge, "entries");
    let large = entry(&"x".repeat(256 << 10));
    rig.accept(&bundle(&vec![large.clone(); 64])).unwrap();
    let scene = json!({ "text": "x", "used_entry_ids": [crate::rig::SEEN.to_string()] });
    refused(
        &with(&bundle(&vec![large; 64]), "scene_change", scene.clone()),
        Code::TooLarge,
        "",
    );

    let items = |count| json!(vec![json!({ "kind": "MESSAGE", "entry_index": 0 }); count]);
    rig.accept(&with(&bundle(&[entry("x")]), "pocket_items", items(256)))
        .unwrap();
    refused(
        &with(&bundle(&[entry("x")]), "pocket_items", items(257)),
        Code::TooLarge,
        "pocket_items",
    );

    let note = with(&scene, "person_id", "CODER");
    let notes = |count| {
        with(
            &bundle(&[]),
            "capsule_notes",
            json!(vec![note.clone(); count]),
        )
    };
    rig.accept(&notes(64)).unwrap();
    refused(&notes(65), Code::TooLarge, "capsule_notes");
    let prose = |path, value: Value| with(&bundle(&[]), "scene_change", with(&scene, path, value));
    rig.accept(&prose("text", "x".repeat(256 << 10).into()))
        .unwrap();
    refused(
        &prose("text", "x".repeat((256 << 10) + 1).into()),
        Code::TooLarge,
        "scene_change.text",
    );
    let cited = |count| json!(vec![crate::rig::SEEN.to_string(); count]);
    rig.accept(&prose("used_entry_ids", cited(1024))).unwrap();
    refused(
        &prose("used_entry_ids", cited(1025)),
        Code::TooLarge,
        "scene_change.used_entry_ids",
    );
    for field in ["engine", "actor"] {
        let named = |bytes| {
            with(
                &bundle(&[]),
                &format!("proposed_by/{field}"),
                "x".repeat(bytes),
            )
        };
        rig.accept(&named(1024)).unwrap();
        refused(
            &named(1025),
            Code::TooLarge,
            &format!("proposed_by.{field}"),
        );
    }
}
