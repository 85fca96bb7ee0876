//! The examples of `testdata/ledger`: every valid one is of its shape, every forbidden one is
//! refused with its word and path, and by its schema too where a schema can tell.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use turnkeep_ledger::proposal::rejected_form;
use turnkeep_ledger::schema::{NAMES, schema};
use turnkeep_ledger::{Code, Fault};

use crate::json_schema::Schema;
use crate::outputs::asked;
use crate::rig::{Rig, bundle};

/// An example with the shape that its file is named after.
struct Example {
    file: String,
    shape: String,
    value: Value,
}

fn examples(folder: &str) -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/ledger")
        .join(folder);
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut examples: Vec<Example> = files.map(|path| read(&path)).collect();
    examples.sort_by(|a, b| a.file.cmp(&b.file));
    examples
}

fn read(path: &Path) -> Example {
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let shape = file.split('.').next().unwrap().to_owned();
    let value = turnkeep_ledger::json::parse(&std::fs::read(path).unwrap()).unwrap();
    Example { file, shape, value }
}

pub(crate) fn schema_of(shape: &str) -> Schema {
    Schema::new(schema(shape).unwrap_or_else(|| panic!("no schema {shape}")))
}

/// What the ledger itself says of a shape that it reads; none of one that it makes.
fn verdict(shape: &str, writer: Option<&str>, value: &Value) -> Option<Result<(), Fault>> {
    let rig = match writer {
        Some("PLANNER") => Rig::workspace().by("PLANNER"),
        Some(other) => panic!("no writer {other}"),
        None => Rig::workspace(),
    };
    match shape {
        "invocation_envelope" => {
            let read = rig.envelope(value);
            Some(
                read.and_then(|envelope| envelope.declared_instant(&rig.zone))
                    .map(drop),
            )
        }
        "write_bundle_proposal" => Some(rig.accept(value).map(drop)),
        "tool_request" => Some(asked(value).map(drop)),
        "write_entry_proposal" => Some(rig.accept(&bundle(std::slice::from_ref(value))).map(drop)),
        _ => None,
    }
}

#[test]
fn p01_every_valid_example_passes_its_schema_and_is_taken() {
    let mut shapes = BTreeSet::new();
    for Example { file, shape, value } in examples("valid") {
        assert!(
            schema_of(&shape).admits(&value),
            "{file} is refused by its schema"
        );
        assert_eq!(
            verdict(&shape, None, &value).unwrap_or(Ok(())),
            Ok(()),
            "{file}"
        );
        shapes.insert(shape);
    }
    assert_eq!(
        shapes,
        NAMES.iter().map(|&name| name.to_owned()).collect(),
        "a shape without an example"
    );
}

#[test]
fn p01_every_forbidden_example_fails_with_its_word() {
    let mut shapes = BTreeSet::new();
    for Example { file, shape, value } in examples("forbidden") {
        let example = &value["example"];
        let code = Code::ALL.iter().find(|code| value["code"] == code.word());
        let code = *code.unwrap_or_else(|| panic!("{file} names no word"));
        let refuses = value["schema_refuses"].as_bool().unwrap();
        assert_eq!(
            !schema_of(&shape).admits(example),
            refuses,
            "{file} by its schema"
        );
        if let Some(verdict) = verdict(&shape, value["writer"].as_str(), example) {
            let fault = verdict.expect_err(&file);
            let prefix = if shape == "write_entry_proposal" {
                "entries[0]."
            } else {
                ""
            };
            let path = format!("{prefix}{}", value["path"].as_str().unwrap());
            assert_eq!((fault.code, &fault.path), (code, &path), "{file}");
        }
        shapes.insert(shape);
    }
    assert_eq!(
        shapes,
        NAMES.iter().map(|&name| name.to_owned()).collect(),
        "a shape without an example"
    );
}

/// The words of envelopes and bundles, but for `TEXT_TOO_LARGE`, whose examples would be long
/// files.
#[test]
fn every_word_of_an_envelope_and_a_bundle_has_an_example() {
    let forbidden = examples("forbidden");
    let shown: BTreeSet<&str> = forbidden
        .iter()
        .filter_map(|example| example.value["code"].as_str())
        .collect();
    for code in [
        Code::EnvelopeInvalid,
        Code::RequestIdInvalid,
        Code::InvokerForbidden,
        Code::TimeFormat,
        Code::TimeAmbiguous,
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
        Code::TimeInconsistent,
        Code::TextEmpty,
        Code::PocketInvalid,
        Code::ProvenanceInvalid,
    ] {
        assert!(shown.contains(code.word()), "{code} has no example");
    }
}

#[test]
fn a_rejected_bundle_is_answered_in_the_shape_of_a_bundle() {
    let schema = schema_of("write_bundle");
    for Example { file, shape, value } in examples("forbidden") {
        if let (true, Some(Err(fault))) = (
            shape == "write_bundle_proposal",
            verdict(&shape, value["writer"].as_str(), &value["example"]),
        ) {
            assert!(
                schema.admits(&rejected_form(&value["example"], &fault.reason())),
                "{file}"
            );
        }
    }
}

#[test]
fn what_is_said_twice_is_said_alike() {
    for (bundle, entry) in [
        ("write_bundle", "write_entry"),
        ("write_bundle_proposal", "write_entry_proposal"),
    ] {
        let parse = |name| serde_json::from_str::<Value>(schema(name).unwrap()).unwrap();
        let mut alone = parse(entry);
        for annotation in ["$schema", "$id", "title", "description"] {
            alone.as_object_mut().unwrap().shift_remove(annotation);
        }
        assert_eq!(
            parse(bundle)["$defs"]["entry"],
            alone,
            "{entry} in {bundle}"
        );
    }
    assert!(schema("write_nothing").is_none());
}
