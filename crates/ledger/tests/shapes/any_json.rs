//! Any JSON whatsoever: read or refused, never a panic, and always answered in the form.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use turnkeep_ledger::envelope::fingerprint;
use turnkeep_ledger::proposal::rejected_form;

use crate::examples::schema_of;
use crate::rig::{Rig, SEEN, bundle, entry, envelope};

/// Values, often with the keys and words of the shapes.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "",
        "GEORGE",
        "PLANNER",
        "WORLD",
        "PERSON",
        "OPERATOR",
        "PRIVATE",
        "PUBLIC",
        "PEOPLE",
        "CALENDAR",
        "r-18",
        "2026-11-15T09:00:05Z",
        "2026-11-15T09:00:05",
        "9999-12-31T23:59:59Z",
        "Café 👩‍👩‍👧 x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u64..16).prop_map(Value::from),
        word.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "entries",
            "author",
            "visibility",
            "visible_to",
            "text",
            "request_id",
            "proposed_by",
            "wrote",
            "invoker",
            "operator",
            "mode",
            "ui",
            "pocket_items",
            "title",
            "entry_id",
            "bundle_id",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let fields = prop::collection::vec((key.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A whole bundle with everything in it.
fn whole_bundle() -> Value {
    let mut whole = bundle(&[entry("Café äh 12"), entry("two"), entry("three")]);
    whole["entries"][1]["visibility"] =
        json!({ "scope": "PRIVATE", "visible_to": ["CODER", "GEORGE"] });
    whole["entries"][2]["created_at_world"] = "2026-11-15T09:00:30Z".into();
    whole["pocket_items"] =
        json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [0, 5], "notes": [6, 8] }]);
    whole["scene_change"] = json!({ "text": "A desk.", "used_entry_ids": [SEEN.to_string()] });
    whole["capsule_notes"] =
        json!([{ "person_id": "CODER", "text": "Busy.", "used_entry_ids": [SEEN.to_string()] }]);
    whole
}

fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, item)| pointers(item, &format!("{here}/{n}"), found));
        }
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(key, value)| pointers(value, &format!("{here}/{key}"), found));
        }
        _ => {}
    }
}

/// The value with some of its parts replaced by anything.
fn bent(whole: Value) -> impl Strategy<Value = Value> {
    let mut places = Vec::new();
    pointers(&whole, "", &mut places);
    let change = (prop::sample::select(places), any_json());
    prop::collection::vec(change, 1..4).prop_map(move |changes| {
        let mut bent = whole.clone();
        for (pointer, value) in changes {
            if let Some(place) = bent.pointer_mut(&pointer) {
                *place = value;
            }
        }
        bent
    })
}

fn judge(given: &Value) -> Result<(), TestCaseError> {
    let schema = schema_of("write_bundle_proposal");
    for rig in [
        Rig::workspace(),
        Rig::narrative(),
        Rig::workspace().by("PLANNER"),
    ] {
        match rig.accept(given) {
            Ok(proposal) => {
                prop_assert_eq!(
                    given["entries"].as_array().map(Vec::len),
                    Some(proposal.entries.len())
                );
                let mut clock = &rig.clock;
                for entry in &proposal.entries {
                    let time = entry.time.as_ref().unwrap_or(&rig.commit);
                    prop_assert!(clock <= time, "times never go back");
                    clock = time;
                    prop_assert!(
                        entry.author.id.as_str() != "GEORGE" && !entry.text.trim().is_empty()
                    );
                }
                prop_assert!(schema.admits(given), "a schema never refuses what is taken");
                for item in &proposal.items {
                    let text = &proposal.entries[item.entry_index].text;
                    for span in [&item.title, &item.location, &item.notes]
                        .into_iter()
                        .flatten()
                    {
                        prop_assert!(text.get(span.start as usize..span.end as usize).is_some());
                    }
                }
            }
            Err(fault) => {
                let form = rejected_form(given, &fault.reason());
                prop_assert!(schema_of("write_bundle").admits(&form));
                prop_assert_eq!(&form["wrote"], &Value::Bool(false));
                prop_assert_eq!(&form["rejection"]["reason"], &Value::from(fault.reason()));
                prop_assert!(form["entries"].is_array() && form["bundle_id"].is_null());
            }
        }
    }
    Ok(())
}

#[test]
fn the_whole_bundle_is_valid_before_it_is_bent() {
    Rig::workspace().accept(&whole_bundle()).unwrap();
}

proptest! {
    #[test]
    fn any_json_as_a_bundle_is_accepted_or_refused(given in any_json()) {
        judge(&given)?;
    }

    #[test]
    fn a_bent_bundle_is_accepted_or_refused(given in bent(whole_bundle())) {
        judge(&given)?;
    }

    #[test]
    fn any_json_as_an_envelope_is_read_or_refused(given in prop_oneof![any_json(), bent(envelope())]) {
        let rig = Rig::workspace();
        if let Ok(read) = rig.envelope(&given) {
            prop_assert_eq!(given["operator"]["input_text"].as_str(), Some(read.input_text.as_str()));
            prop_assert!(schema_of("invocation_envelope").admits(&given));
            prop_assert!(read.declared_instant(&rig.zone).is_ok() || read.declares());
        }
        fingerprint(&given, Some(&given));
    }
}
