//! The order of the checks: one fault for each word, each at each position, and every two of them
//! together.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnkeep_ledger::Code;

use crate::rig::{Rig, bundle, entry, set, with};

/// A fault that is put into a bundle (whose entries are valid before), in the order of the checks.
struct Spoiled {
    code: Code,
    path: &'static str,
    spoil: fn(&mut Value),
}

const fn spoiled(code: Code, path: &'static str, spoil: fn(&mut Value)) -> Spoiled {
    Spoiled { code, path, spoil }
}

/// Faults of the bundle before its entries.
const BEFORE: &[Spoiled] = &[
    spoiled(Code::Shape, "rejection", |bundle| {
        set(bundle, "rejection", 7);
    }),
    spoiled(Code::RequestMismatch, "request_id", |bundle| {
        set(bundle, "request_id", "r-0");
    }),
    spoiled(Code::ActorMismatch, "proposed_by.actor", |bundle| {
        set(bundle, "proposed_by/actor", "CODER");
    }),
    spoiled(Code::WroteMismatch, "wrote", |bundle| {
        set(bundle, "wrote", false);
    }),
    spoiled(Code::TooLarge, "proposed_by.engine", |bundle| {
        set(bundle, "proposed_by/engine", "x".repeat(2000));
    }),
    spoiled(Code::IdPreset, "bundle_id", |bundle| {
        set(bundle, "bundle_id", "b_1");
    }),
    spoiled(Code::UnknownField, "mood", |bundle| set(bundle, "mood", 7)),
];

/// Faults of one entry.
const ENTRY: &[Spoiled] = &[
    spoiled(Code::IdPreset, "entry_id", |entry| {
        set(entry, "entry_id", "e_1");
    }),
    spoiled(Code::UnknownField, "mood", |entry| set(entry, "mood", 7)),
    spoiled(Code::AuthorUnknown, "author.author_id", |entry| {
        set(entry, "author/author_id", "NOBODY");
    }),
    spoiled(Code::AuthorForbidden, "author.author_id", |entry| {
        set(entry, "author/author_id", "CODER");
    }),
    spoiled(Code::ChannelInvalid, "channel", |entry| {
        set(entry, "channel", "XP_GAIN");
    }),
    spoiled(Code::VisibilityInvalid, "visibility.visible_to", |entry| {
        set(entry, "visibility/visible_to", json!(["CODER"]));
    }),
    spoiled(Code::TimeFormat, "created_at_world", |entry| {
        set(entry, "created_at_world", 7);
    }),
    spoiled(Code::TimeInconsistent, "created_at_world", |entry| {
        set(entry, "created_at_world", "2026-11-15T08:59:59Z");
    }),
    spoiled(Code::TextEmpty, "text", |entry| set(entry, "text", "\n")),
    spoiled(Code::TextTooLarge, "text", |entry| {
        set(entry, "text", "x".repeat((256 << 10) + 1));
    }),
];

/// Faults of the bundle after its entries.
const AFTER: &[Spoiled] = &[
    spoiled(
        Code::AuthorForbidden,
        "capsule_notes[0].person_id",
        |bundle| {
            let note = json!({ "person_id": "CODER", "text": "Busy.", "used_entry_ids": [] });
            set(bundle, "capsule_notes", json!([note]));
        },
    ),
    spoiled(
        Code::PocketInvalid,
        "pocket_items[0].entry_index",
        |bundle| {
            set(
                bundle,
                "pocket_items",
                json!([{ "kind": "MESSAGE", "entry_index": 5 }]),
            );
        },
    ),
    spoiled(
        Code::ProvenanceInvalid,
        "capsule_notes[0].used_entry_ids",
        |bundle| {
            if bundle.get("capsule_notes").is_none() {
                let note = json!({ "person_id": "PLANNER", "text": "Busy.", "used_entry_ids": [] });
                set(bundle, "capsule_notes", json!([note]));
            }
        },
    ),
];

fn five() -> Value {
    bundle(&["one", "two", "three", "four", "five"].map(entry))
}

fn planner() -> Rig {
    Rig::workspace().by("PLANNER")
}

fn spoil_entry(bundle: &mut Value, position: usize, fault: &Spoiled) {
    (fault.spoil)(&mut bundle["entries"][position]);
}

fn at(position: usize, fault: &Spoiled) -> (Code, String) {
    (fault.code, format!("entries[{position}].{}", fault.path))
}

#[test]
fn what_is_spoiled_below_is_valid_before() {
    planner().accept(&five()).unwrap();
}

#[test]
fn every_word_of_a_bundle_has_a_bundle_that_gets_it() {
    let words: BTreeSet<Code> = BEFORE
        .iter()
        .chain(ENTRY)
        .chain(AFTER)
        .map(|fault| fault.code)
        .collect();
    let wanted = [
        Code::Shape,
        Code::RequestMismatch,
        Code::ActorMismatch,
        Code::WroteMismatch,
        Code::TooLarge,
        Code::IdPreset,
        Code::UnknownField,
        Code::AuthorUnknown,
        Code::AuthorForbidden,
        Code::ChannelInvalid,
        Code::VisibilityInvalid,
        Code::TimeFormat,
        Code::TimeInconsistent,
        Code::TextEmpty,
        Code::TextTooLarge,
        Code::PocketInvalid,
        Code::ProvenanceInvalid,
    ];
    assert_eq!(words, BTreeSet::from(wanted));
    for fault in BEFORE.iter().chain(AFTER) {
        let mut given = five();
        (fault.spoil)(&mut given);
        assert_eq!(
            planner().refusal(&given),
            (fault.code, fault.path.to_owned())
        );
    }
}

#[test]
fn n07_one_bad_entry_of_five_refuses_all_wherever_it_stands() {
    for position in 0..5 {
        for fault in ENTRY {
            let mut given = five();
            spoil_entry(&mut given, position, fault);
            assert_eq!(planner().refusal(&given), at(position, fault));
        }
        for (field, code) in [
            ("text", Code::Shape),
            ("author", Code::Shape),
            ("request_id", Code::Shape),
        ] {
            let mut given = five();
            given["entries"][position]
                .as_object_mut()
                .unwrap()
                .shift_remove(field);
            assert_eq!(
                planner().refusal(&given),
                (code, format!("entries[{position}].{field}"))
            );
        }
        let given = with(&five(), &format!("entries/{position}/request_id"), "r-0");
        let wanted = (
            Code::RequestMismatch,
            format!("entries[{position}].request_id"),
        );
        assert_eq!(planner().refusal(&given), wanted);
    }
}

#[test]
fn of_two_faults_in_a_bundle_the_earlier_check_is_told() {
    for (index, first) in BEFORE.iter().enumerate() {
        for later in BEFORE.iter().skip(index + 1).chain(AFTER) {
            let mut given = five();
            (later.spoil)(&mut given);
            (first.spoil)(&mut given);
            assert_eq!(
                planner().refusal(&given),
                (first.code, first.path.to_owned()),
                "and {:?}",
                later.code
            );
        }
        for later in ENTRY {
            let mut given = five();
            spoil_entry(&mut given, 0, later);
            (first.spoil)(&mut given);
            assert_eq!(
                planner().refusal(&given),
                (first.code, first.path.to_owned()),
                "and {:?}",
                later.code
            );
        }
    }
    for (index, first) in AFTER.iter().enumerate() {
        for later in AFTER.iter().skip(index + 1) {
            let mut given = five();
            (first.spoil)(&mut given);
            (later.spoil)(&mut given);
            assert_eq!(
                planner().refusal(&given),
                (first.code, first.path.to_owned()),
                "and {:?}",
                later.code
            );
        }
    }
}

#[test]
fn of_two_faults_in_an_entry_the_earlier_check_is_told() {
    for (index, first) in ENTRY.iter().enumerate() {
        for later in ENTRY.iter().skip(index + 1) {
            let mut given = five();
            spoil_entry(&mut given, 2, later);
            spoil_entry(&mut given, 2, first);
            assert_eq!(
                planner().refusal(&given),
                at(2, first),
                "and {:?}",
                later.code
            );
        }
        for later in AFTER {
            let mut given = five();
            spoil_entry(&mut given, 4, first);
            (later.spoil)(&mut given);
            assert_eq!(
                planner().refusal(&given),
                at(4, first),
                "and {:?}",
                later.code
            );
        }
    }
}

#[test]
fn an_entry_goes_through_all_its_checks_before_the_next_one() {
    for first in ENTRY {
        for other in ENTRY {
            let mut given = five();
            spoil_entry(&mut given, 1, first);
            spoil_entry(&mut given, 3, other);
            assert_eq!(
                planner().refusal(&given),
                at(1, first),
                "and {:?}",
                other.code
            );
        }
    }
}

#[test]
fn the_shape_of_the_last_entry_comes_before_the_meaning_of_the_first() {
    for fault in BEFORE.iter().skip(1) {
        let mut given = five();
        (fault.spoil)(&mut given);
        set(&mut given, "entries/4/text", 7);
        assert_eq!(
            planner().refusal(&given),
            (Code::Shape, "entries[4].text".to_owned())
        );
    }
}
