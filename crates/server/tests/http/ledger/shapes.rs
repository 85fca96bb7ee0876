//! One shape has one meaning, however it is written down: the JSON Schemas of the ledger, the types
//! of the OpenAPI document and the answers have the same fields.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnkeep_server::openapi_json;
use turnkeep_wire::json::ledger as wire;

use super::{Kind, Team, beat};

/// A JSON Schema, the type that describes the same shape in the OpenAPI document, and the fields
/// that only the type has. A type is used in both directions; a schema is for one of them.
const PAIRS: &[(&str, &str, &[&str])] = &[
    ("invocation_envelope", "InvocationEnvelope", &[]),
    (
        "write_bundle",
        "WriteBundle",
        &[
            "capsule_notes",
            "capsule_notes[].person_id",
            "capsule_notes[].text",
            "capsule_notes[].used_entry_ids",
            "entries[].reply_to",
            "pocket_items[].entry_index",
            "scene_change",
            "scene_change.text",
            "scene_change.used_entry_ids",
        ],
    ),
    (
        "write_bundle_proposal",
        "WriteBundle",
        &["pocket_items[].entry_id", "pocket_items[].item_id"],
    ),
    ("write_entry", "WriteEntry", &["reply_to"]),
    ("write_entry_proposal", "WriteEntry", &[]),
    (
        "projection_output",
        "ProjectionOutput",
        // Present with `audience=1`.
        &[
            "stream.entries[].visibility",
            "stream.entries[].visibility.scope",
            "stream.entries[].visibility.visible_to",
        ],
    ),
    ("tool_request", "ToolRequest", &[]),
    ("retrieval_result_pack", "RetrievalResultPack", &[]),
    ("scene_anchor_pack", "SceneAnchorPack", &[]),
    ("capsule_pack", "CapsulePack", &[]),
];

/// A schema within its document, in which references are resolved.
struct Schemas<'a> {
    document: &'a Value,
    fields: BTreeSet<String>,
}

impl Schemas<'_> {
    /// The paths of all fields of a schema.
    fn fields(document: &Value, schema: &Value) -> BTreeSet<String> {
        let mut schemas = Schemas {
            document,
            fields: BTreeSet::new(),
        };
        schemas.visit(schema, "");
        schemas.fields
    }

    fn visit(&mut self, schema: &Value, path: &str) {
        if let Some(target) = schema["$ref"].as_str() {
            let target = self.document.pointer(target.trim_start_matches('#'));
            self.visit(target.expect("a reference that resolves"), path);
        }
        for alternatives in ["oneOf", "anyOf", "allOf"] {
            for part in schema[alternatives].as_array().into_iter().flatten() {
                self.visit(part, path);
            }
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            self.visit(field, &path);
            self.fields.insert(path);
        }
        let listed = schema["prefixItems"].as_array().into_iter().flatten();
        for item in listed.chain(schema.get("items")) {
            self.visit(item, &format!("{path}[]"));
        }
    }
}

#[test]
fn a_schema_and_its_type_have_the_same_fields() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    for (name, shape, only_in_type) in PAIRS {
        let schema = turnkeep_ledger::schema::schema(name).unwrap();
        let schema: Value = serde_json::from_str(schema).unwrap();
        let mut expected = Schemas::fields(&schema, &schema);
        expected.extend(only_in_type.iter().map(|field| (*field).to_owned()));
        let shape = &document["components"]["schemas"][shape];
        assert_eq!(Schemas::fields(&document, shape), expected, "{name}");
        assert!(expected.len() > 5, "{name}: {expected:?}");
    }
}

#[test]
fn every_schema_of_an_answer_or_a_request_has_its_type() {
    let paired: BTreeSet<&str> = PAIRS.iter().map(|(name, ..)| *name).collect();
    let all: BTreeSet<&str> = turnkeep_ledger::schema::NAMES.iter().copied().collect();
    // Only an attached writer gets a rehydration pack, and never over HTTP.
    let unpaired: Vec<_> = all.difference(&paired).collect();
    assert_eq!(unpaired, [&"rehydration_pack"]);
}

/// Checks that an answer has exactly the fields of its type.
fn check<T: serde::de::DeserializeOwned + serde::Serialize>(answer: &Value) {
    let typed = serde_json::from_value::<T>(answer.clone());
    let typed = typed.unwrap_or_else(|error| panic!("{error}: {answer:#}"));
    assert_eq!(serde_json::to_value(typed).unwrap(), *answer);
}

#[tokio::test]
async fn answers_that_the_ledger_makes_are_of_their_types() {
    let team = Team::start().await;
    let world = "/v1/worlds/team";
    check::<wire::ProjectionOutput>(&team.say("r-1", "Lunch at noon, BOB?").await);
    let mut body = beat("r-2", "BOB", "Lunch at noon.", None);
    body["bundle"]["pocket_items"] = json!([
        { "kind": "CALENDAR", "entry_index": 0, "title": [0, 5], "time": "2099-01-01T12:00:00Z" },
        { "kind": "MESSAGE", "entry_index": 0 },
    ]);
    let written = team
        .post(Kind::Writer, &format!("{world}/beats"), &body)
        .await
        .json();
    let pocket = &written["projection"]["pocket"];
    assert_eq!(
        pocket["calendar"]["items"][0]["title"], "Lunch",
        "{written:#}"
    );
    assert_eq!(pocket["messages"]["items"][0]["text"], "Lunch at noon.");
    check::<wire::BeatAnswer>(&written);
    for audience in ["", "?audience=1"] {
        let stream = team
            .get(Kind::Reader, &format!("{world}/stream{audience}"))
            .await
            .json();
        let shown = &stream["stream"]["entries"][0]["visibility"];
        assert_eq!(shown.is_object(), !audience.is_empty(), "{stream:#}");
        check::<wire::ProjectionOutput>(&stream);
    }
    for (tool, words) in [
        ("LEDGER_SEARCH", "lunch"),
        ("CAPSULE_GET", ""),
        ("SCENE_PACK_BUILD", ""),
    ] {
        let mut request = super::search("ANN", "ANN", words);
        request["tool"]["name"] = tool.into();
        request["tool"]["constraints"] = json!({ "person_id": "BOB" });
        let pack = team
            .post(Kind::Reader, &format!("{world}/tools"), &request)
            .await
            .json();
        assert!(pack.to_string().contains("Lunch at noon."), "{pack:#}");
        check::<wire::ToolAnswer>(&pack);
    }
    team.stop().await;
}
