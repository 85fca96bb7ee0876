//! Twins: a world, and the same world without what somebody may not see, tell that reader the same
//! bytes.

use serde_json::{Value, json};
use turnkeep_ledger::acceptance::Actor;
use turnkeep_ledger::audience::Audience;
use turnkeep_ledger::beat::{self, Beat, Decision, Offer};
use turnkeep_ledger::capsule::{self, Capsule};
use turnkeep_ledger::config::{Profile, WRITER_TOKENS_MIN};
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::epoch::{self, AnchorUpdate, WriterMemory};
use turnkeep_ledger::fact::RequestKind;
use turnkeep_ledger::ids::{EntryId, Ids, ItemId, Name};
use turnkeep_ledger::retrieval::validate_pack;
use turnkeep_ledger::tools::{self, ToolRequest};
use turnkeep_ledger::{
    CitableEntries, Fault, Grant, Principal, View, Viewer, World, can_see, cursor, projection,
};
use turnkeep_types::Timestamp;

use crate::story::{Act, Story, caller, question, viewer};

/// How many random worlds are tried: `TURNKEEP_TWIN_WORLDS`, else 200.
pub(crate) fn worlds() -> u64 {
    std::env::var("TURNKEEP_TWIN_WORLDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(200)
}

pub(crate) const PEOPLE: &[&str] = &["PLANNER", "CODER", "REVIEWER", "Ann"];
const READERS: &[&str] = &[
    "PLANNER", "CODER", "REVIEWER", "Ann", "GEORGE", "PUBLIC", "STRANGER",
];
const WORDS: &[&str] = &[
    "refund",
    "fix",
    "PAY-142",
    "blocker",
    "migration",
    "CODER",
    "Ann's",
    "planner",
    "the",
    "port",
    "8443",
    "mood: 7",
    "context window",
    "é😀",
    "\n",
    "\"quoted\"",
    "\u{1}",
    "smith",
    "today",
    "review",
];

/// Chance with a seed.
pub(crate) struct Dice(Ids);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(Ids::from_seed(&bytes))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.draw() % end as u128).unwrap()
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn some<T: Copy>(&mut self, of: &[T], most: usize) -> Vec<T> {
        (0..=self.below(most)).map(|_| self.one(of)).collect()
    }

    pub(crate) fn text(&mut self) -> String {
        let words = if self.below(30) == 0 { 900 } else { 12 };
        let canary = format!("k{:032x}", self.0.draw());
        format!("{} {canary}", self.some(WORDS, words).join(" "))
    }
}

/// A random story, of which about a third is private.
fn story(seed: u64) -> Story {
    let mut dice = Dice::of(seed);
    let profile = dice.one(&[Profile::Narrative, Profile::Workspace]);
    let mut story = Story::new(profile, PEOPLE);
    story.people[1].aliases = vec!["the smith".to_owned()];
    story.config.limits.writer_tokens = dice.one(&[WRITER_TOKENS_MIN, 100_000]);
    let mut said: Vec<EntryId> = Vec::new();
    let mut items: Vec<ItemId> = Vec::new();
    for _ in 0..10 + dice.below(50) {
        match dice.below(10) {
            0 if !said.is_empty() => {
                let cited = dice.some(&said, 2);
                story.scene(&format!("Scene {}", dice.text()), &cited);
            }
            1 if !said.is_empty() => {
                let cited = dice.some(&said, 2);
                story.note(dice.one(PEOPLE), &format!("Note {}", dice.text()), &cited);
            }
            _ => act(&mut story, &mut dice, &mut said, &mut items),
        }
    }
    story
}

/// One bundle of up to three entries, the last of which may plan something.
fn act(story: &mut Story, dice: &mut Dice, said: &mut Vec<EntryId>, items: &mut Vec<ItemId>) {
    story.now = story
        .now
        .plus_seconds(i64::try_from(dice.below(2400)).unwrap());
    let readers: Vec<_> = (0..3).map(|_| dice.some(&READERS[..5], 2)).collect();
    let lines: Vec<_> = (0..=dice.below(3))
        .map(|index| {
            let author = dice.one(&["PLANNER", "CODER", "REVIEWER", "Ann", "GEORGE", "WORLD"]);
            let private = dice.below(3) == 0 && author != "GEORGE";
            (
                author,
                private.then(|| readers[index].as_slice()),
                dice.text(),
            )
        })
        .collect();
    let lines: Vec<_> = lines
        .iter()
        .map(|(author, readers, text)| (*author, *readers, text.as_str()))
        .collect();
    said.extend(story.bundle(&lines[..lines.len().min(3)]).1);
    if dice.below(3) == 0 {
        let time = story
            .now
            .plus_seconds(i64::try_from(dice.below(7200)).unwrap() - 3600);
        let supersedes = (!items.is_empty() && dice.below(2) == 0).then(|| dice.one(items));
        items.push(story.plan(dice.one(&[None, Some(time.as_str())]), supersedes));
    }
}

/// The questions that a reader asks.
fn questions(story: &Story, who: &str, dice: &mut Dice) -> Vec<Value> {
    let mut asked = Vec::new();
    for _ in 0..6 {
        let window = json!({"from": dice.one(&[None, Some(story.config.start.plus_seconds(3000).as_str())]), "to": null});
        let person = dice.one(&[None, Some("CODER"), Some("GEORGE"), Some("NOBODY")]);
        let constraints =
            json!({"limit": 1 + dice.below(30), "person_id": person, "time_window": window});
        asked.push(question(
            who,
            "LEDGER_SEARCH",
            &dice.some(WORDS, 3).join(" "),
            constraints,
        ));
    }
    asked.push(question(who, "LEDGER_SEARCH", "", json!({"limit": 200})));
    let entries: Vec<String> = story.entries().map(|entry| entry.id.to_string()).collect();
    let bundles = story.acts.iter().filter_map(|act| match act {
        Act::Bundle(id, ..) => Some(id.to_string()),
        Act::Scene(..) | Act::Note(..) => None,
    });
    for ids in entries.chunks(100) {
        asked.push(question(who, "LEDGER_GET", &ids.join(" "), json!({})));
    }
    let bundles: Vec<String> = bundles.collect();
    asked.push(question(
        who,
        "LEDGER_GET",
        &bundles[..bundles.len().min(100)].join(","),
        json!({}),
    ));
    for person in READERS {
        asked.push(question(
            who,
            "CAPSULE_GET",
            "",
            json!({"person_id": person}),
        ));
    }
    asked.push(question(who, "SCENE_PACK_BUILD", "", json!({})));
    let mut foreign = question(who, "CAPSULE_GET", "", json!({"person_id": "CODER"}));
    foreign["requested_by"]["knowledge_view"] = json!("Omniscient");
    asked.push(foreign);
    asked
}

/// Everything that a reader gets when the world has so many entries.
pub(crate) fn told(world: &World, at: u32, who: &str, asked: &[Value]) -> Vec<String> {
    let view = world.view_at(viewer(who), at);
    let mut told: Vec<String> = asked
        .iter()
        .map(|body| {
            let request = ToolRequest::parse(body).unwrap();
            match tools::answer(world, at, &caller(who), &request, None) {
                Ok(pack) => pack.to_string(),
                Err(fault) => fault.to_string(),
            }
        })
        .collect();
    told.push(cursor::write(&view, view.count()));
    told.extend([1, 7, 500].iter().flat_map(|size| pages(&view, *size)));
    let mut life = WriterMemory::default();
    for _ in 0..2 {
        let AnchorUpdate::New(due) = life.next_anchor(&view, "r-9") else {
            panic!("nothing to tell")
        };
        epoch::validate(&view, &due.epoch).unwrap();
        told.push(format!(
            "{} {:?} {:?}",
            due.epoch.anchor, due.epoch.rehydration, due.carried
        ));
        life.record_sent(&due);
        life.add_bytes(10_000_000);
    }
    told
}

/// The stream, page by page, with the pocket beside each.
fn pages(view: &View<'_>, size: usize) -> Vec<String> {
    let mut cursor = None;
    let mut shown = Vec::new();
    loop {
        let page = projection::read_page(view, "r-9", cursor.as_deref(), size).unwrap();
        let empty = page.value["stream"]["entries"]
            .as_array()
            .unwrap()
            .is_empty();
        shown.push(page.value.to_string());
        if empty {
            return shown;
        }
        cursor = page.cursor_after;
    }
}

/// What a reader is answered who now writes, cites or replaces something, visible or not, with an
/// old cursor or with the newest.
fn written(world: &World, who: &str, story: &Story, seed: u64) -> Vec<String> {
    let Some(id) = Name::new(who).filter(|name| name.may_be_a_person() && who != "STRANGER") else {
        return Vec::new();
    };
    let principal = Principal::Person { id, write: true };
    let view = world.view(principal.viewer());
    let count = view.count();
    let mut dice = Dice::of(seed);
    let attempts = story.entries().take(12).map(|entry| {
        let mut bundle = plain_bundle(who);
        match dice.below(3) {
            0 => {
                bundle["capsule_notes"] =
                    json!([{"person_id": who, "text": "Careful.", "used_entry_ids": [entry.id.to_string()]}]);
            }
            1 => {
                bundle["entries"][0]["visibility"] =
                    json!({"scope": "PRIVATE", "visible_to": [dice.one(PEOPLE)]});
            }
            _ => {
                bundle["pocket_items"] = json!([{"kind": "CALENDAR", "entry_index": 0, "title": [0, 3],
                "supersedes": story.item_ids().nth(dice.below(5)).map(|id| id.to_string())}]);
            }
        }
        let expected =
            cursor::write(&view, count - dice.below(2).min(usize::try_from(count).unwrap()) as u64);
        (bundle, expected)
    });
    attempts
        .map(|(bundle, expected)| answer_to(world, &principal, &bundle, &expected))
        .collect()
}

fn plain_bundle(who: &str) -> Value {
    json!({
        "request_id": "r-new", "proposed_by": {"engine": "test", "actor": who}, "wrote": true,
        "entries": [{"request_id": "r-new", "author": {"author_id": who, "author_class": "PERSON"},
            "visibility": {"scope": "PUBLIC", "visible_to": []}, "channel": "PEOPLE", "text": "On it."}],
    })
}

fn answer_to(world: &World, who: &Principal, bundle: &Value, expected: &str) -> String {
    let envelope = json!({
        "request_id": "r-new", "invoker": {"invoker_id": "test", "invoker_role": "INVOKER"},
        "operator": {"operator_id": "GEORGE", "input_text": ""}, "mode": {"kind": "BEAT"},
    });
    let now = Timestamp(1_900_000_000_000);
    let mut ids = Ids::from_seed(&[9; 32]);
    match decided(
        world,
        who,
        &envelope,
        Some(bundle),
        Some(expected),
        now,
        &mut ids,
    ) {
        Ok(decision) => String::from_utf8(decision.response.to_vec()).unwrap(),
        Err(fault) => fault.to_string(),
    }
}

/// What a request amounts to that brings this bundle, or none.
pub(crate) fn decided(
    world: &World,
    who: &Principal,
    envelope: &Value,
    bundle: Option<&Value>,
    expected_cursor: Option<&str>,
    now: Timestamp,
    ids: &mut Ids,
) -> Result<Decision, Fault> {
    let envelope = Envelope::parse(envelope).unwrap();
    let offer = bundle.map(|bundle| Offer {
        bundle,
        actor: Actor::AnyName,
        grant: Grant::of_caller(who),
        citable: CitableEntries::VisibleTo(who.viewer()),
        may_set_scene: false,
    });
    let kind = if offer.is_some() {
        RequestKind::Beat
    } else {
        RequestKind::Invocation
    };
    let (principal, envelope, fingerprint) = (who, &envelope, [0; 32]);
    let beat = Beat {
        principal,
        kind,
        envelope,
        fingerprint,
        offer,
        expected_cursor,
        now,
    };
    beat::decide(world, &beat, ids)
}

#[test]
fn n22_a_reader_is_told_the_same_bytes_by_the_twin_without_what_is_hidden() {
    for seed in 0..worlds() {
        let story = story(seed);
        let (world, positions) = story.play(|_| true);
        for who in READERS {
            let own = viewer(who);
            let (twin, twin_positions) = story.world_for(&own);
            let mut dice = Dice::of(seed + 1_000_000);
            let asked = questions(&story, who, &mut dice);
            // At the end, and for some readers also at an earlier act.
            let earlier = (dice.below(3) == 0).then(|| dice.below(positions.len()));
            for act in [positions.len() - 1].into_iter().chain(earlier) {
                let ours = told(&world, positions[act], who, &asked);
                let theirs = told(&twin, twin_positions[act], who, &asked);
                assert_eq!(ours, theirs, "seed {seed}, reader {who}, act {act}");
                no_canary(&story, &own, &ours, seed);
            }
            let (ours, theirs) = (
                written(&world, who, &story, seed),
                written(&twin, who, &story, seed),
            );
            assert_eq!(ours, theirs, "seed {seed}, writer {who}");
        }
    }
}

/// Checks that no answer has the token of a hidden entry.
fn no_canary(story: &Story, reader: &Viewer, told: &[String], seed: u64) {
    let hidden = story
        .entries()
        .filter(|entry| !can_see(reader, &Audience::of_entry(entry)));
    for entry in hidden {
        let canary = entry.text.rsplit(' ').next().unwrap();
        assert!(
            canary.len() > 24 && told.iter().all(|told| !told.contains(canary)),
            "seed {seed}"
        );
    }
}

#[test]
fn every_excerpt_is_the_text_at_its_range() {
    let mut checked = 0;
    for seed in 0..worlds() / 4 {
        let story = story(seed);
        let world = story.world();
        for who in READERS {
            let view = world.view(viewer(who));
            for body in questions(&story, who, &mut Dice::of(seed)) {
                let request = ToolRequest::parse(&body).unwrap();
                let Ok(pack) =
                    tools::answer(&world, world.position(), &caller(who), &request, None)
                else {
                    continue;
                };
                if pack.get("results").is_some() {
                    validate_pack(&view, &pack)
                        .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
                }
                for result in pack["results"].as_array().into_iter().flatten() {
                    let entry = view
                        .entry(result["entry_id"].as_str().unwrap().parse().unwrap())
                        .unwrap();
                    let bound = |index: usize| {
                        usize::try_from(result["range"][index].as_u64().unwrap()).unwrap()
                    };
                    assert_eq!(
                        result["verbatim_excerpt"],
                        entry.text[bound(0)..bound(1)],
                        "seed {seed}"
                    );
                    checked += 1;
                }
            }
            for person in READERS {
                let pack = Capsule::build(&view, person).pack();
                capsule::validate(&view, &pack)
                    .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
}

#[test]
fn the_stories_have_secrets() {
    let hidden = |seed| {
        let story = story(seed);
        let coder = viewer("CODER");
        let hidden = story
            .entries()
            .filter(|entry| !can_see(&coder, &Audience::of_entry(entry)))
            .count();
        (hidden, story.entries().count())
    };
    let (hidden, all) = (0..worlds())
        .map(hidden)
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(hidden * 10 > all, "{hidden} of {all}");
}
