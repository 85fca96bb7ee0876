//! Feeds arbitrary bytes to every decoder of the ledger: records, documents, cursors and ids. The
//! fuzz targets call it.
//!
//! Nothing may panic. A decoded record must encode and decode to the same fact again, a document's
//! canonical form must be stable, and an id must display as it was read.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::LazyLock;

use serde_json::{Value, json};
use turnkeep_types::{Timestamp, TypeRef};

use crate::acceptance::Actor;
use crate::beat::{Beat, Decision, Offer, decide};
use crate::config::{Config, Person, Profile};
use crate::cursor;
use crate::envelope::{Envelope, fingerprint};
use crate::fact::{Fact, RequestKind};
use crate::fault::{Code, Fault};
use crate::ids::{
    AnchorId, BundleId, CapsuleId, EntryId, Ids, ItemId, Name, RehydrationId, TokenId,
};
use crate::json::{Node, canonical, parse};
use crate::principal::{CitableEntries, Grant, Principal};
use crate::record;
use crate::time::{WorldTime, Zone};
use crate::tools::ToolRequest;
use crate::world::World;

const NOW: Timestamp = Timestamp(1_763_197_200_000);

/// The types of records, as their bundle names them.
static KINDS: LazyLock<Vec<TypeRef>> = LazyLock::new(|| {
    let mut kinds = Vec::new();
    for (bundle, version) in record::BUNDLES.iter().zip(1..) {
        let bundle: Value = serde_json::from_str(bundle.json).unwrap_or_default();
        let types = bundle.get("types").and_then(Value::as_object);
        kinds.extend(
            types
                .into_iter()
                .flatten()
                .map(|(name, _)| TypeRef::new(name.clone(), version)),
        );
    }
    kinds
});

/// A world with three people and nothing said.
static WORLD: LazyLock<Option<World>> = LazyLock::new(|| {
    let name = |text| Name::new(text);
    let mut world = World::new(Config::new(
        name("payments")?,
        Profile::Workspace,
        WorldTime::from_timestamp(NOW),
    ));
    for id in ["PLANNER", "CODER", "REVIEWER"] {
        world.apply(Fact::Person(Person::with_id(name(id)?)));
    }
    Some(world)
});

/// Reads bytes as everything that they may be. Panics where a reader contradicts itself.
pub fn read_any(bytes: &[u8]) {
    for kind in &*KINDS {
        if let Ok(fact) = record::decode(kind, bytes) {
            let (kind, payload) = record::encode(&fact);
            assert_eq!(
                record::decode(&kind, &payload),
                Ok(fact),
                "a record does not survive its encoding"
            );
        }
    }
    if let (Ok(value), Some(world)) = (parse(bytes), &*WORLD) {
        read_document(&value, world);
    }
    if let (Ok(text), Some(world)) = (std::str::from_utf8(bytes), &*WORLD) {
        read_text(text, world);
    }
}

fn read_document(value: &Value, world: &World) {
    let form = canonical(value);
    let again = parse(form.as_bytes()).map(|value| canonical(&value));
    assert_eq!(again.as_ref(), Ok(&form), "a canonical form is not its own");
    drop(ToolRequest::parse(value));
    drop(Config::from_json(
        &Node::root(value, Code::ConfigInvalid),
        WorldTime::from_timestamp(NOW),
    ));
    if let Ok(envelope) = Envelope::parse(value) {
        drop(envelope.declared_instant(&Zone::utc()));
        drop(beat(world, value, None));
    }
    drop(beat(world, &envelope(), Some(value)));
}

/// A beat of the owner, with a bundle that may be anything.
fn beat(world: &World, envelope: &Value, bundle: Option<&Value>) -> Result<Decision, Fault> {
    let parsed = Envelope::parse(envelope)?;
    let principal = Principal::Owner;
    let offer = bundle.map(|bundle| Offer {
        bundle,
        actor: Actor::AnyName,
        grant: Grant::of_caller(&principal),
        citable: CitableEntries::VisibleTo(principal.viewer()),
        may_set_scene: true,
    });
    let beat = Beat {
        principal: &principal,
        kind: if bundle.is_some() {
            RequestKind::Beat
        } else {
            RequestKind::Invocation
        },
        envelope: &parsed,
        fingerprint: fingerprint(envelope, bundle),
        offer,
        expected_cursor: None,
        now: NOW,
    };
    decide(world, &beat, &mut Ids::from_seed(&[1; 32]))
}

fn read_text(text: &str, world: &World) {
    drop(cursor::read(
        &world.view(Principal::Owner.viewer()),
        text,
        "",
    ));
    drop(WorldTime::parse_in(text, &Zone::utc(), ""));
    if let Some(name) = Name::new(text) {
        assert_eq!(name.as_str(), text);
    }
    let zone = Zone::named(text);
    assert!(
        zone.is_none_or(|zone| Zone::named(zone.as_str()).is_some()),
        "a zone loses its name"
    );
    reads_as_shown::<EntryId>(text);
    reads_as_shown::<BundleId>(text);
    reads_as_shown::<ItemId>(text);
    reads_as_shown::<TokenId>(text);
    reads_as_shown::<CapsuleId>(text);
    reads_as_shown::<AnchorId>(text);
    reads_as_shown::<RehydrationId>(text);
}

fn reads_as_shown<T: FromStr + Display>(text: &str) {
    if let Ok(id) = text.parse::<T>() {
        assert_eq!(id.to_string(), text);
    }
}

fn envelope() -> Value {
    json!({
        "request_id": "r-18",
        "invoker": { "invoker_id": "test-client", "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": "GEORGE", "input_text": "Ship the refund fix today." },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

fn bundle() -> Value {
    let entry = |scope: &str, to: &[&str], text: &str| {
        json!({
            "request_id": "r-18", "author": { "author_id": "PLANNER", "author_class": "PERSON" },
            "visibility": { "scope": scope, "visible_to": to }, "channel": "PEOPLE", "text": text,
        })
    };
    json!({
        "bundle_id": null, "request_id": "r-18", "wrote": true,
        "proposed_by": { "engine": "test", "actor": "PLANNER" },
        "entries": [
            entry("PUBLIC", &[], "CODER takes the test; REVIEWER checks by 15:00."),
            entry("PRIVATE", &["REVIEWER"], "Look twice at the ledger migration."),
        ],
        "pocket_items": [{ "kind": "CALENDAR", "entry_index": 0, "title": [22, 37] }],
    })
}

/// One input of each kind that is well formed: documents, texts, and the records of a beat that is
/// accepted.
pub fn samples() -> Vec<(String, Vec<u8>)> {
    let tool = json!({
        "tool_request_id": "t-1", "request_id": "r-18",
        "requested_by": { "engine": "test", "actor": "PLANNER", "knowledge_view": "PLANNER" },
        "tool": { "name": "ledger_search", "args": { "query": "refund", "limit": 5 } },
    });
    let texts = [
        ("envelope", envelope().to_string()),
        ("bundle", bundle().to_string()),
        ("tool-request", tool.to_string()),
        ("time", "2026-01-01T02:00:00+02:00".to_owned()),
        ("zone", "Europe/Berlin".to_owned()),
        ("entry-id", EntryId(7).to_string()),
    ];
    let mut samples: Vec<(String, Vec<u8>)> = texts
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.into_bytes()))
        .collect();
    if let Some(world) = &*WORLD {
        let place = cursor::write(&world.view(Principal::Owner.viewer()), 0);
        samples.push(("cursor".to_owned(), place.into_bytes()));
        samples.extend(sample_records(world));
    }
    samples
}

/// The records of an accepted beat, of the configuration and of the people.
fn sample_records(world: &World) -> Vec<(String, Vec<u8>)> {
    let decided = beat(world, &envelope(), Some(&bundle()));
    let mut facts = decided.map(|decided| decided.facts).unwrap_or_default();
    facts.push(Fact::Config(Box::new(world.config.clone())));
    facts.extend(world.people.iter().cloned().map(Fact::Person));
    let mut records = Vec::new();
    for (at, fact) in facts.iter().enumerate() {
        let (kind, payload) = record::encode(fact);
        let kind = kind.id.trim_start_matches("turnkeep.ledger.");
        records.push((format!("record-{at}-{kind}"), payload.to_vec()));
    }
    records
}
