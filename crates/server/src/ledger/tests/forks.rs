//! A fork gives every caller the answers of its origin at the fork's point, before and after a
//! restart.

use turnkeep_ledger::fact::{ClockState, Fact, TimeDeclaration};
use turnkeep_ledger::ids::OPERATOR;
use turnkeep_ledger::projection;
use turnkeep_ledger::tools::{self, Caller, ToolRequest};

use super::*;

const READERS: [&str; 4] = ["GEORGE", "ANN", "BOB", "CAT"];

fn principal(who: &str) -> Principal {
    if who == OPERATOR {
        Principal::Owner
    } else {
        person(who)
    }
}

/// What a tool answers, but for the id of a pack, which is that of one world.
fn tool(world: &World, who: &Principal, name: &str, query: &str, about: Option<&str>) -> Value {
    let caller = Caller::from_principal(who);
    let request = json!({
        "tool_request_id": "t", "request_id": "r",
        "requested_by": { "engine": "e", "actor": caller.identity, "knowledge_view": who.viewer().as_str() },
        "tool": { "name": name, "query_text": query, "constraints": { "person_id": about, "limit": 100 } },
    });
    let request = ToolRequest::parse(&request).unwrap();
    let mut pack = tools::answer(world, world.position(), &caller, &request, None).unwrap();
    for id in ["capsule_id", "scene_anchor_id"] {
        pack.as_object_mut().unwrap().shift_remove(id);
    }
    pack
}

/// Everything that readers are answered, but for cursors, which name their world.
fn answers(handle: &WorldHandle) -> Vec<Value> {
    let of = |who: &str| {
        handle.read(|world| {
            let who = principal(who);
            let mut page = projection::read_page(&world.view(who.viewer()), "r", None, 500)
                .unwrap()
                .value;
            page["stream"]
                .as_object_mut()
                .unwrap()
                .retain(|key, _| key == "entries");
            let ids: Vec<String> = world
                .all_entries()
                .iter()
                .map(|entry| entry.id.to_string())
                .collect();
            let mut all = vec![page, tool(world, &who, "LEDGER_GET", &ids.join(" "), None)];
            for words in [
                "",
                "lunch",
                "BOB",
                "may 2026",
                "1 June",
                "31 May",
                "\"the key\"",
            ] {
                all.push(tool(world, &who, "LEDGER_SEARCH", words, None));
                all.push(tool(world, &who, "LEDGER_SEARCH", words, Some("ANN")));
            }
            all.extend(READERS.map(|about| tool(world, &who, "CAPSULE_GET", "", Some(about))));
            all.push(tool(world, &who, "SCENE_PACK_BUILD", "", None));
            all.push(
                json!({ "people": world.people.iter().map(Person::to_record).collect::<Vec<_>>() }),
            );
            all
        })
    };
    READERS.iter().flat_map(|who| of(who)).collect()
}

/// Changes the configuration as the route does: another zone is a declaration about time.
async fn patch(handle: &Arc<WorldHandle>, change: Value) {
    let facts = handle.read(|world| {
        let config = world
            .config
            .with_changes(&Node::root(&change, Code::ConfigInvalid))
            .unwrap();
        let to = ClockState {
            timezone: config.timezone.clone(),
            ..world.clock.clone()
        };
        let zone = change.get("timezone").map(|_| TimeDeclaration {
            from: world.clock.time.clone(),
            to,
        });
        [Fact::Config(Box::new(config))]
            .into_iter()
            .chain(zone.map(Fact::Time))
            .collect()
    });
    handle.record(facts).await.unwrap();
}

async fn add(handle: &Arc<WorldHandle>, body: Value) {
    let person = Person::from_json(&Node::root(&body, Code::ConfigInvalid)).unwrap();
    handle.record(vec![Fact::Person(person)]).await.unwrap();
}

fn last_id(handle: &WorldHandle) -> String {
    handle.read(|world| world.all_entries().last().unwrap().id.to_string())
}

/// The owner sets the scene and notes something about BOB, with an entry of ANN's or without.
async fn tell(handle: &Arc<WorldHandle>, id: &str, words: &str, entry: bool) {
    let mut brought = bundle(id, "ANN", &[], &format!("{words} of lunch"));
    brought["scene_change"] =
        json!({ "text": format!("{words} scene"), "used_entry_ids": [last_id(handle)] });
    brought["capsule_notes"] = json!([{ "person_id": "BOB", "text": format!("{words} note"), "used_entry_ids": [last_id(handle)] }]);
    if !entry {
        (brought["wrote"], brought["entries"]) = (false.into(), json!([]));
    }
    let answer = handle
        .beat(&Principal::Owner, envelope(id, ""), brought, None, None)
        .await
        .unwrap();
    assert!(!answer.rejected, "{:?}", answer.body);
}

/// A bundle that is refused, and the same one each time.
async fn refused(handle: &Arc<WorldHandle>, id: &str) -> LedgerAnswer {
    handle
        .beat(
            &person("BOB"),
            envelope(id, ""),
            bundle(id, "ANN", &[], "not mine"),
            None,
            None,
        )
        .await
        .unwrap()
}

/// Before the point: words, a whisper, a date, a scene with notes, a refused bundle.
async fn past(handle: &Arc<WorldHandle>) {
    say(handle, "r-1", "BOB has the key.").await.unwrap();
    write(
        handle,
        "ANN",
        "r-2",
        &["BOB"],
        "psst, BOB: the key is false",
    )
    .await
    .unwrap();
    let mut dated = bundle("r-3", "BOB", &[], "lunch on Monday");
    dated["pocket_items"] = json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [0, 5] }]);
    handle
        .beat(&person("BOB"), envelope("r-3", ""), dated, None, None)
        .await
        .unwrap();
    assert!(refused(handle, "no-1").await.rejected);
    tell(handle, "r-4", "first", true).await;
}

/// Behind it: all of that anew, and other people and settings.
async fn future(handle: &Arc<WorldHandle>) {
    tell(handle, "r-5", "second", false).await;
    tell(handle, "r-6", "third", true).await;
    assert!(refused(handle, "no-2").await.rejected);
    patch(
        handle,
        json!({ "timezone": "Pacific/Kiritimati", "pocket_available": false }),
    )
    .await;
    add(
        handle,
        json!({ "person_id": "BOB", "display_label": "Robert", "aliases": ["lunch"] }),
    )
    .await;
    add(handle, json!({ "person_id": "CAT", "aliases": ["key"] })).await;
    say(handle, "r-7", "BOB lost the key.").await.unwrap();
}

#[tokio::test]
async fn p17_a_fork_answers_as_its_origin_did_and_does_so_after_a_restart() {
    let disk = MemoryStorage::new();
    let house = House::open(disk.clone());
    let body = json!({
        "world_id": "w", "registry": "OPEN", "start": "2026-05-31T23:00:00Z", "operator_label": "Chief",
        "persons": [{ "person_id": "ANN", "aliases": ["first"] }],
    });
    let handle = house.world(body).await;
    past(&handle).await;
    add(&handle, json!({ "person_id": "BOB", "aliases": ["key"] })).await;
    let said = (answers(&handle), handle.read(|world| world.clock.clone()));
    let replays = (
        say(&handle, "r-1", "BOB has the key.").await.unwrap(),
        refused(&handle, "no-1").await,
    );
    assert!(replays.0.replayed && replays.1.replayed);
    patch(&handle, json!({ "timezone": "Europe/Berlin" })).await;
    let moved = (answers(&handle), handle.read(|world| world.clock.clone()));
    assert_ne!(said.0, moved.0, "another zone is seen");
    let now = handle.read(|world| (world.clock.time.clone(), world.position()));
    let fork = async |name: &str, from: &Arc<WorldHandle>, point: Option<Point>| {
        house
            .worlds
            .fork(from, Name::new(name).unwrap(), |_| Ok(point))
            .await
            .unwrap()
    };
    fork("at-once", &handle, None).await;
    future(&handle).await;
    let time = Point::Time(now.0, now.1);
    fork("by-time", &handle, Some(time.clone())).await;
    fork("by-entries", &handle, Some(Point::Entries(now.1))).await;
    let late = fork("late", &handle, None).await;
    let later = answers(&late);
    assert_eq!(later, answers(&handle), "now");
    fork("fork-of-a-fork", &late, Some(time)).await;
    let expected = [
        ("at-once", &moved),
        ("by-time", &moved),
        ("by-entries", &said),
        ("fork-of-a-fork", &moved),
    ];
    check(&house, &expected, &replays).await;
    drop((handle, late, house));
    let house = House::open(disk);
    check(&house, &expected, &replays).await;
    assert_eq!(answers(&house.worlds.get("late").unwrap()), later);
    let fork = house.worlds.get("by-time").unwrap();
    assert!(!refused(&fork, "no-2").await.replayed, "a later id is free");
    tell(&fork, "r-5", "own", true).await;
    assert_eq!(
        fork.read(|world| tool(world, &Principal::Owner, "SCENE_PACK_BUILD", "", None))["text"],
        "own scene"
    );
    is_sound(&house, &fork).await;
}

#[tokio::test]
async fn p17_a_fork_of_a_world_with_a_writer_is_sound_and_its_writer_begins_on_its_own() {
    let house = House::open(MemoryStorage::new());
    let silent = r#"cmd: while read -r line; do echo '{"type":"no_write"}'; done"#;
    let handle = house
        .world(json!({ "world_id": "w", "writer": silent, "writer_persons": ["ANN"] }))
        .await;
    write(&handle, "ANN", "r-1", &["ANN"], "only for ANN")
        .await
        .unwrap();
    say(&handle, "r-2", "I knock.").await.unwrap();
    let fork = house
        .worlds
        .fork(&handle, Name::new("fork").unwrap(), |_| Ok(None))
        .await
        .unwrap();
    is_sound(&house, &fork).await;
    say(&fork, "r-3", "I knock again.").await.unwrap();
    assert_eq!(
        fork.read(|world| world.epoch().map(|epoch| epoch.number)),
        Some(2)
    );
    is_sound(&house, &fork).await;
    is_sound(&house, &handle).await;
}

async fn check(
    house: &House,
    expected: &[(&str, &(Vec<Value>, ClockState))],
    replays: &(LedgerAnswer, LedgerAnswer),
) {
    for (name, (wanted, clock)) in expected {
        let fork = house.worlds.get(name).unwrap();
        assert_eq!(fork.read(|world| world.clock.clone()), *clock, "{name}");
        for (answer, wanted) in answers(&fork).iter().zip(wanted) {
            assert_eq!(answer, wanted, "{name}");
        }
        let said = say(&fork, "r-1", "BOB has the key.").await.unwrap();
        assert_eq!(
            (said.replayed, &said.body),
            (true, &replays.0.body),
            "{name}"
        );
        let again = refused(&fork, "no-1").await;
        assert_eq!(
            (again.replayed, again.rejected, &again.body),
            (true, true, &replays.1.body),
            "{name}"
        );
        is_sound(house, &fork).await;
    }
}
