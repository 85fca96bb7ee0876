//! Offered prose: who may offer it, and what it cites.

use serde_json::{Value, json};
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::{Code, Fault, Grant};

use crate::rig::{Rig, SEEN, bundle, entry, name, with};

fn scene(text: &str, cited: &[String]) -> Value {
    with(
        &bundle(&[]),
        "scene_change",
        json!({ "text": text, "used_entry_ids": cited }),
    )
}

fn note(person: &str, text: &str, cited: &[String]) -> Value {
    let note = json!({ "person_id": person, "text": text, "used_entry_ids": cited });
    with(&bundle(&[]), "capsule_notes", json!([note]))
}

fn seen() -> Vec<String> {
    vec![SEEN.to_string()]
}

#[test]
fn prose_may_come_without_entries() {
    let rig = Rig::workspace();
    let set = rig
        .accept(&scene("The desk is bare.", &seen()))
        .unwrap()
        .scene
        .unwrap();
    assert_eq!(
        (set.text.as_str(), set.cited),
        ("The desk is bare.", vec![SEEN])
    );
    let noted = rig
        .accept(&note("CODER", "trust: 7", &seen()))
        .unwrap()
        .notes
        .remove(0);
    assert_eq!(
        (noted.person, noted.text.as_str(), noted.cited),
        (name("CODER"), "trust: 7", vec![SEEN])
    );
    let both = with(&scene("A desk.", &seen()), "entries", json!([entry("x")]));
    assert_eq!(
        rig.accept(&with(&both, "wrote", true))
            .unwrap()
            .entries
            .len(),
        1
    );
}

#[test]
fn the_scene_is_the_attached_writers_and_the_owners() {
    let (code, path) = Rig::workspace()
        .by("PLANNER")
        .refusal(&scene("A desk.", &seen()));
    assert_eq!(
        (code, path.as_str()),
        (Code::AuthorForbidden, "scene_change")
    );
}

#[test]
fn notes_are_about_those_as_whom_the_writer_may_write() {
    let mut attached = Rig::workspace();
    attached.grant = Grant::These(vec![name("CODER"), name("WORLD")]);
    for (rig, person, allowed) in [
        (Rig::workspace(), "CODER", true),
        (Rig::workspace(), "REBECCA", false),
        (Rig::workspace(), "GEORGE", false),
        (Rig::workspace(), "WORLD", false),
        (Rig::narrative(), "REBECCA", true),
        (Rig::narrative(), "coder", false),
        (Rig::workspace().by("PLANNER"), "PLANNER", true),
        (Rig::workspace().by("PLANNER"), "CODER", false),
        (Rig::workspace().by("PLANNER"), "NOBODY", false),
    ] {
        let verdict = rig.accept(&note(person, "Busy.", &seen())).map(drop);
        let forbidden = |fault: Fault| (fault.code, fault.path);
        let wanted = (
            Code::AuthorForbidden,
            "capsule_notes[0].person_id".to_owned(),
        );
        assert_eq!(
            verdict.map_err(forbidden),
            if allowed { Ok(()) } else { Err(wanted) },
            "{person}"
        );
    }
    attached.accept(&note("CODER", "Busy.", &seen())).unwrap();
    assert_eq!(
        attached.refusal(&note("PLANNER", "Busy.", &seen())).0,
        Code::AuthorForbidden
    );
    assert_eq!(
        attached.refusal(&note("WORLD", "Busy.", &seen())).0,
        Code::AuthorForbidden
    );
}

#[test]
fn prose_has_words() {
    let rig = Rig::workspace();
    assert_eq!(
        rig.refusal(&scene(" \n", &seen())),
        (Code::TextEmpty, "scene_change.text".to_owned())
    );
    assert_eq!(
        rig.refusal(&note("CODER", "", &seen())),
        (Code::TextEmpty, "capsule_notes[0].text".to_owned())
    );
}

#[test]
fn n23_what_is_unknown_hidden_or_yet_to_come_is_cited_alike_and_none_is_too_few() {
    let hidden = EntryId(19).to_string();
    let odd = [
        hidden.clone(),
        EntryId(20).to_string(),
        "b_00000000000000000000000001".into(),
        String::new(),
    ];
    for make in [scene as fn(&str, &[String]) -> Value, |text, cited| {
        note("CODER", text, cited)
    }] {
        let refuse =
            |cited: &[String]| Rig::workspace().accept(&make("Words.", cited)).unwrap_err();
        let none = refuse(&[]);
        assert_eq!(none.code, Code::ProvenanceInvalid);
        assert!(none.path.ends_with(".used_entry_ids"), "{}", none.path);
        let first = refuse(&[SEEN.to_string(), hidden.clone()]);
        assert_eq!(first.code, Code::ProvenanceInvalid);
        assert!(first.path.ends_with(".used_entry_ids[1]"), "{}", first.path);
        for id in &odd {
            assert_eq!(refuse(&[SEEN.to_string(), id.clone()]), first, "{id}");
        }
    }
}
