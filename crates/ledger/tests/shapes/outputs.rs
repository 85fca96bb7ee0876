//! What the ledger makes is of its shape: every answer to every reader of a small world passes its
//! schema.

use serde_json::{Value, json};
use turnkeep_ledger::anchor::Anchor;
use turnkeep_ledger::entry::{Author, AuthorClass, Channel, Entry};
use turnkeep_ledger::fact::{BundleCommit, Fact, ItemKind, Note, PocketItem, ProposedBy, Scene};
use turnkeep_ledger::ids::{BundleId, EntryId, ItemId};
use turnkeep_ledger::proposal::committed_form;
use turnkeep_ledger::rehydration::Rehydration;
use turnkeep_ledger::tools::{Caller, ToolRequest, answer};
use turnkeep_ledger::{Fault, Principal, Viewer, World, projection};

use crate::examples::schema_of;
use crate::rig::{Rig, name, with};

const TOOLS: &[&str] = &[
    "LEDGER_SEARCH",
    "LEDGER_GET",
    "CAPSULE_GET",
    "SCENE_PACK_BUILD",
];

fn entry(number: u128, (class, id): (AuthorClass, &str), readers: &[&str], text: &str) -> Entry {
    Entry {
        id: EntryId(number),
        bundle: BundleId(1),
        request: "r-1".into(),
        time: Rig::workspace().clock,
        author: Author {
            class,
            id: name(id),
        },
        label: id.into(),
        visible_to: (!readers.is_empty()).then(|| readers.iter().map(|id| name(id)).collect()),
        channel: Channel::for_class(class),
        text: text.into(),
        reply_to: None,
    }
}

fn entries() -> Vec<Entry> {
    let planner = (AuthorClass::Person, "PLANNER");
    vec![
        entry(
            1,
            (AuthorClass::Operator, "GEORGE"),
            &[],
            "Ship the refund fix today.",
        ),
        entry(
            2,
            (AuthorClass::World, "WORLD"),
            &[],
            "The build turns red.\r\n",
        ),
        entry(
            3,
            planner,
            &[],
            "CODER takes the rounding test; REVIEWER checks by 15:00.",
        ),
        entry(
            4,
            planner,
            &["REVIEWER"],
            "REVIEWER, look twice at the refund fix.",
        ),
        entry(5, (AuthorClass::System, "SYSTEM"), &[], "Run 12 has ended."),
        entry(
            6,
            planner,
            &["GEORGE"],
            &"A long private refund report. ".repeat(200),
        ),
    ]
}

fn items() -> Vec<PocketItem> {
    let item = PocketItem {
        id: ItemId(1),
        kind: ItemKind::Calendar,
        entry: EntryId(3),
        title: Some(31..46),
        time: Some(Rig::workspace().clock.plus_seconds(3600)),
        location: None,
        notes: Some(0..5),
        supersedes: None,
    };
    let told = PocketItem {
        id: ItemId(2),
        kind: ItemKind::Message,
        entry: EntryId(4),
        title: None,
        notes: None,
        ..item.clone()
    };
    vec![item, told]
}

fn commit() -> BundleCommit {
    let by = ProposedBy {
        engine: "test".into(),
        actor: "PLANNER".into(),
    };
    BundleCommit {
        id: BundleId(1),
        request: "r-1".into(),
        proposed_by: by,
        entries: 6,
    }
}

/// Nothing has happened in it.
fn empty_world() -> World {
    let rig = Rig::workspace();
    let mut world = World::new(rig.config);
    for person in rig.people.iter().cloned() {
        world.apply(Fact::Person(person));
    }
    world
}

/// Everything has happened in it.
fn full_world() -> World {
    let mut world = empty_world();
    for entry in entries() {
        world.apply(Fact::Entry(entry));
    }
    for item in items() {
        world.apply(Fact::Item(item));
    }
    world.apply(Fact::Bundle(commit()));
    let cited = vec![EntryId(3)];
    world.apply(Fact::Scene(Scene {
        position: 6,
        text: "A late Sunday at the desk.".into(),
        cited: cited.clone(),
    }));
    let text = "Reviews in the afternoon.".into();
    world.apply(Fact::Note(Note {
        position: 6,
        person: name("REVIEWER"),
        text,
        cited,
    }));
    world
}

fn planner() -> Principal {
    Principal::Person {
        id: name("PLANNER"),
        write: true,
    }
}

/// PLANNER's question, answered.
pub(crate) fn asked(request: &Value) -> Result<Value, Fault> {
    let world = full_world();
    answer(
        &world,
        world.position(),
        &Caller::from_principal(&planner()),
        &ToolRequest::parse(request)?,
        None,
    )
}

#[track_caller]
fn of_shape(shape: &str, value: &Value) {
    assert!(schema_of(shape).admits(value), "no {shape}: {value:#}");
}

fn shape_of_answer(tool: &str) -> &'static str {
    match tool {
        "CAPSULE_GET" => "capsule_pack",
        "SCENE_PACK_BUILD" => "scene_anchor_pack",
        _ => "retrieval_result_pack",
    }
}

#[test]
fn p01_every_answer_to_every_reader_is_of_its_shape() {
    let reader = |id: &str| Principal::Person {
        id: name(id),
        write: false,
    };
    for world in [empty_world(), full_world()] {
        for who in [
            Principal::Owner,
            planner(),
            reader("CODER"),
            reader("REVIEWER"),
        ] {
            let caller = Caller::from_principal(&who);
            for (tool, view) in TOOLS
                .iter()
                .flat_map(|tool| [(tool, "PUBLIC"), (tool, &caller.identity)])
            {
                let request = json!({
                    "tool_request_id": "t-1", "request_id": "r-1",
                    "requested_by": { "engine": "test", "actor": caller.identity, "knowledge_view": view },
                    "tool": { "name": tool, "query_text": format!("refund {} {}", EntryId(2), BundleId(1)),
                        "constraints": { "person_id": (*tool == "CAPSULE_GET").then_some("REVIEWER") } },
                });
                of_shape("tool_request", &request);
                let request = ToolRequest::parse(&request).unwrap();
                let pack = answer(&world, world.position(), &caller, &request, None).unwrap();
                of_shape(shape_of_answer(tool), &pack);
            }
            let view = world.view(who.viewer());
            of_shape(
                "projection_output",
                &projection::read_page(&view, "r-2", None, 500)
                    .unwrap()
                    .value,
            );
            let anchor = Anchor::build(&view);
            of_shape("scene_anchor_pack", &anchor.pack("r-2"));
            of_shape(
                "rehydration_pack",
                &Rehydration::build(&view, &anchor, "r-2", 6144).pack("r-2"),
            );
        }
    }
}

#[test]
fn p01_a_committed_bundle_and_its_entries_are_of_their_shapes() {
    let (entries, items) = (entries(), items());
    for entry in &entries {
        of_shape("write_entry", &entry.to_json());
    }
    of_shape(
        "write_bundle",
        &committed_form(&commit(), entries.iter(), items.iter()),
    );
    of_shape(
        "write_bundle",
        &committed_form(&commit(), entries.iter(), std::iter::empty()),
    );
}

#[test]
fn a_closed_pocket_is_of_its_shape() {
    let mut world = full_world();
    world.config.pocket_available = false;
    of_shape(
        "projection_output",
        &projection::read_page(&world.view(Viewer::operator()), "r", None, 9)
            .unwrap()
            .value,
    );
}

#[test]
fn the_small_world_has_something_to_show() {
    let request = json!({
        "tool_request_id": "t-1", "request_id": "r-1",
        "requested_by": { "engine": "test", "actor": "PLANNER", "knowledge_view": "PLANNER" },
        "tool": { "name": "LEDGER_SEARCH", "query_text": "refund" },
    });
    let found = asked(&request).unwrap();
    assert!(
        found["results"][0]["verbatim_excerpt"]
            .as_str()
            .unwrap()
            .contains("refund"),
        "{found}"
    );
    let capsule = with(
        &request,
        "tool",
        json!({ "name": "CAPSULE_GET", "constraints": { "person_id": "REVIEWER" } }),
    );
    assert_eq!(
        asked(&capsule).unwrap()["sections"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let shown = projection::read_page(&full_world().view(Viewer::operator()), "r", None, 9)
        .unwrap()
        .value;
    assert_eq!(shown["stream"]["entries"].as_array().unwrap().len(), 5);
    assert_eq!(
        shown["pocket"]["calendar"]["items"][0]["title"],
        "REVIEWER checks"
    );
}
