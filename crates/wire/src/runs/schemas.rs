//! JSON Schemas (draft 2020-12) of events, requests and responses, each complete in itself.
//!
//! They are made from the types of this module. An event's schema has the name of its type, such as
//! `run.patch`; all others have the name of the Rust type, such as `CreateRun`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::{
    AppliedChanges, ApprovalList, ApprovalResolvedAnswer, ArtifactAnswer, ArtifactList,
    AskUserArgs, AttentionList, ChangeNode, ChangeRun, ChatAccepted, CompleteRunArgs, CreateEdge,
    CreateNode, CreateRun, DirectoryListing, EdgeAnswer, EdgeGone, EventPage, EventView, FileGone,
    ForkRun, HandoffAccepted, NodeAnswer, NodeGone, ProviderList, PutFile, ReadArtifactArgs,
    ResetNode, ResolveApproval, RoleFile, RoleList, RuleGone, RuleList, RunAnswer, RunGone,
    RunList, RunSummaryList, SendChat, SendHandoff, SpawnNodeArgs, TeamFile, TeamList, TurnFiles,
    TurnFilesAnswer, VerificationAnswer, WhyGraph,
};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const COMPONENT_PREFIX: &str = "#/components/schemas/";
const DEFINITION_PREFIX: &str = "#/$defs/";

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// An event.
    Event,
    /// The body of a request, the arguments of a tool, or the body of a response.
    Body,
}

macro_rules! bodies {
    ($($name:ident,)*) => {
        #[derive(OpenApi)]
        #[openapi(components(schemas(EventView, $($name,)*)))]
        struct Shapes;

        /// The bodies that have a schema of their own.
        const BODIES: &[&str] = &[$(stringify!($name),)*];
    };
}

bodies! {
    CreateRun, ChangeRun, CreateNode, ChangeNode, CreateEdge, SendChat, ResolveApproval,
    SendHandoff, ResetNode, TurnFiles, ForkRun, PutFile,
    SpawnNodeArgs, AskUserArgs, CompleteRunArgs, ReadArtifactArgs,
    RunAnswer, RunList, RunSummaryList, RunGone, EventPage, NodeAnswer, NodeGone, EdgeAnswer,
    EdgeGone, ChatAccepted, HandoffAccepted, ApprovalList, ApprovalResolvedAnswer, RuleList,
    RuleGone, ArtifactList, ArtifactAnswer, AttentionList, WhyGraph, AppliedChanges,
    TurnFilesAnswer, VerificationAnswer, ProviderList, RoleList, RoleFile, TeamList, TeamFile,
    FileGone, DirectoryListing,
}

/// Every schema by its name.
pub fn schemas() -> BTreeMap<String, (SchemaKind, Value)> {
    let definitions = definitions();
    let bodies = BODIES.iter().map(|name| {
        let reference = json!({"$ref": format!("{DEFINITION_PREFIX}{name}")});
        let schema = complete_schema(name, reference, &definitions);
        ((*name).to_owned(), (SchemaKind::Body, schema))
    });
    let events = event_shapes(&definitions).into_iter().map(|(name, shape)| {
        let schema = complete_schema(&name, shape, &definitions);
        (name, (SchemaKind::Event, schema))
    });
    bodies.chain(events).collect()
}

/// All shapes by their names, as a JSON Schema refers to them.
fn definitions() -> Map<String, Value> {
    let components = Shapes::openapi().components.unwrap_or_default();
    let shapes = components.schemas.into_iter().map(|(name, schema)| {
        let mut shape = serde_json::to_value(schema).unwrap_or_default();
        point_to_definitions(&mut shape);
        (name, shape)
    });
    shapes.collect()
}

/// Rewrites the references of an OpenAPI document to those of a schema.
fn point_to_definitions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get_mut("$ref")
                && let Some(name) = target.strip_prefix(COMPONENT_PREFIX)
            {
                *target = format!("{DEFINITION_PREFIX}{name}");
            }
            fields.values_mut().for_each(point_to_definitions);
        }
        Value::Array(items) => items.iter_mut().for_each(point_to_definitions),
        _ => {}
    }
}

/// The schema of each event by its type: the envelope of all events, and the one body of this type.
fn event_shapes(definitions: &Map<String, Value>) -> Vec<(String, Value)> {
    let event_parts = definitions
        .get("EventView")
        .and_then(|view| view.get("allOf"));
    let envelope: Vec<&Value> = event_parts
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|part| part.get("$ref").is_none())
        .collect();
    let bodies = definitions
        .get("EventBody")
        .and_then(|body| body.get("oneOf"));
    let bodies = bodies.and_then(Value::as_array).into_iter().flatten();
    bodies
        .filter_map(|body| {
            let name = body.pointer("/properties/type/enum/0")?.as_str()?;
            let parts: Vec<&Value> = envelope.iter().copied().chain([body]).collect();
            Some((name.to_owned(), json!({"allOf": parts})))
        })
        .collect()
}

/// Adds to a shape everything that it refers to.
fn complete_schema(name: &str, shape: Value, definitions: &Map<String, Value>) -> Value {
    let mut needed = BTreeMap::new();
    collect_definitions(&shape, definitions, &mut needed);
    let mut schema = json!({"$schema": DIALECT, "title": name});
    if let (Value::Object(schema), Value::Object(shape)) = (&mut schema, shape) {
        schema.extend(shape);
        schema.insert("$defs".to_owned(), json!(needed));
    }
    schema
}

fn collect_definitions<'a>(
    value: &Value,
    definitions: &'a Map<String, Value>,
    needed: &mut BTreeMap<&'a str, &'a Value>,
) {
    match value {
        Value::Object(fields) => {
            let target = fields.get("$ref").and_then(Value::as_str);
            let name = target.and_then(|target| target.strip_prefix(DEFINITION_PREFIX));
            // Only the first visit goes deeper, so shapes that refer to each other end.
            if let Some((name, shape)) = name.and_then(|name| definitions.get_key_value(name))
                && needed.insert(name, shape).is_none()
            {
                collect_definitions(shape, definitions, needed);
            }
            for field in fields.values() {
                collect_definitions(field, definitions, needed);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_definitions(item, definitions, needed);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events that every consumer of runs must know, and those that came later.
    const EVENTS: &[&str] = &[
        "approval.requested",
        "approval.resolved",
        "artifact.created",
        "edge.created",
        "edge.deleted",
        "handoff.held",
        "handoff.refused",
        "handoff.sent",
        "message.assistant.delta",
        "message.assistant.final",
        "message.assistant.thinking.delta",
        "message.assistant.thinking.final",
        "message.user",
        "node.deleted",
        "node.heartbeat",
        "node.log",
        "node.patch",
        "node.progress",
        "run.deleted",
        "run.mode",
        "run.patch",
        "run.phase",
        "run.stalled",
        "telemetry.usage",
        "tool.completed",
        "tool.proposed",
        "tool.started",
        "turn.status",
    ];

    #[test]
    fn every_event_and_every_body_has_a_schema() {
        let all = schemas();
        let of_kind = |wanted: SchemaKind| {
            let found = all.iter().filter(move |(_, (kind, _))| *kind == wanted);
            found.map(|(name, _)| name.as_str())
        };
        assert_eq!(of_kind(SchemaKind::Event).collect::<Vec<_>>(), EVENTS);
        assert_eq!(of_kind(SchemaKind::Body).count(), BODIES.len());
    }

    #[test]
    fn fields_and_words_have_their_names_on_the_wire() {
        let definitions = definitions();
        let check = |pointer: &str, expect: Value| {
            let (shape, rest) = pointer.split_once('/').unwrap();
            let found = definitions[shape].pointer(&format!("/{rest}"));
            assert_eq!(found, Some(&expect), "{pointer}");
        };
        check("GlobalMode/enum", json!(["PLANNING", "IMPLEMENTATION"]));
        check("PausedReason/enum/3", json!("daemon-restart"));
        check("EdgeView/properties/type/$ref", json!("#/$defs/EdgeKind"));
        check("AttentionItem/properties/ref/type", json!("string"));
        check("ArtifactRef/required", json!(["ref"]));
        check("CreateEdge/required", json!(["from", "to"]));
        check("SendChat/required", json!(["content"]));
        assert_eq!(definitions["NodePatch"].get("required"), None);
    }

    #[test]
    fn a_schema_has_everything_that_it_refers_to() {
        fn check(value: &Value, root: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                        let pointer = target.strip_prefix('#').unwrap();
                        assert!(
                            root.pointer(pointer).is_some(),
                            "{target} in {}",
                            root["title"]
                        );
                    }
                    fields.values().for_each(|field| check(field, root));
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, root)),
                _ => {}
            }
        }
        for (_, schema) in schemas().values() {
            check(schema, schema);
        }
    }
}
