//! Worlds over a store: recovery, repeated requests, rejections, and the permissions of a writer.

mod checkpoints;
mod crowd;
mod faults;
mod forks;
mod load;
mod model;
mod waiting;
mod world_creation;
mod writers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_ledger::as_of::Point;
use turnkeep_ledger::config::Person;
use turnkeep_ledger::ids::Name;
use turnkeep_ledger::json::Node;
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Code, Config, Fault, Principal, Viewer, World, verify};
use turnkeep_store::{Options, Store};
use turnkeep_types::{ManualClock, Timestamp};

use super::{LedgerAnswer, LedgerError, WorldHandle, Worlds};
use crate::handle::StoreHandle;

const NOW: Timestamp = Timestamp(1_763_197_200_000);

/// Another one at each start, as the system's random bytes are.
fn seed() -> [u8; 32] {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    *blake3::hash(&STARTS.fetch_add(1, Ordering::Relaxed).to_le_bytes()).as_bytes()
}

/// Small segments, so that a disk in memory is quickly made.
fn options() -> Options {
    Options {
        segment_bytes: 1 << 20,
        ..Options::default()
    }
}

/// A server's worlds, without its sockets.
struct House {
    store: Store,
    worlds: Arc<Worlds>,
    clock: Arc<ManualClock>,
}

impl House {
    fn open(disk: impl Storage + 'static) -> Self {
        let clock = Arc::new(ManualClock::new(NOW));
        let store = Store::open(Arc::new(disk), &options(), clock.clone()).unwrap();
        let handle = StoreHandle::new(store.clone(), Options::default().queue_commands_max);
        let worlds = Worlds::open(
            handle,
            clock.clone(),
            (TaskTracker::new(), CancellationToken::new()),
            &seed(),
        );
        Self {
            store,
            worlds,
            clock,
        }
    }

    async fn world(&self, body: Value) -> Arc<WorldHandle> {
        let node = Node::root(&body, Code::ConfigInvalid);
        let (config, persons) = Config::from_json(&node, WorldTime::from_timestamp(NOW)).unwrap();
        self.worlds.create(config, persons).await.unwrap()
    }

    async fn payments(&self) -> Arc<WorldHandle> {
        let persons = ["PLANNER", "CODER", "REVIEWER"].map(|id| json!({ "person_id": id }));
        self.world(json!({ "world_id": "payments", "profile": "WORKSPACE", "persons": persons }))
            .await
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.store.close();
    }
}

fn person(id: &str) -> Principal {
    Principal::Person {
        id: Name::new(id).unwrap(),
        write: true,
    }
}

fn envelope(id: &str, text: &str) -> Value {
    json!({
        "request_id": id,
        "invoker": { "invoker_id": "test-client", "invoker_role": "INVOKER" },
        "operator": { "operator_id": "GEORGE", "input_text": text },
        "mode": { "kind": "BEAT" },
    })
}

fn bundle(id: &str, who: &str, to: &[&str], text: &str) -> Value {
    let scope = if to.is_empty() { "PUBLIC" } else { "PRIVATE" };
    json!({
        "bundle_id": null, "request_id": id, "proposed_by": { "engine": "test", "actor": who }, "wrote": true,
        "entries": [{
            "request_id": id, "author": { "author_id": who, "author_class": "PERSON" },
            "visibility": { "scope": scope, "visible_to": to }, "channel": "PEOPLE", "text": text,
        }],
    })
}

async fn say(handle: &Arc<WorldHandle>, id: &str, text: &str) -> Result<LedgerAnswer, LedgerError> {
    handle.invoke(&Principal::Owner, envelope(id, text)).await
}

async fn write(
    handle: &Arc<WorldHandle>,
    who: &str,
    id: &str,
    to: &[&str],
    text: &str,
) -> Result<LedgerAnswer, LedgerError> {
    handle
        .beat(
            &person(who),
            envelope(id, ""),
            bundle(id, who, to, text),
            None,
            None,
        )
        .await
}

fn texts(handle: &WorldHandle, viewer: Viewer) -> Vec<String> {
    handle.read(|world: &World| {
        world
            .view(viewer)
            .entries_from(0)
            .map(|(_, entry)| entry.text.to_string())
            .collect()
    })
}

fn all(handle: &WorldHandle) -> Vec<String> {
    handle.read(|world| {
        world
            .all_entries()
            .iter()
            .map(|entry| entry.text.to_string())
            .collect()
    })
}

fn code(error: LedgerError) -> Code {
    match error {
        LedgerError::Fault(Fault { code, .. }) => code,
        other => panic!("{other}"),
    }
}

async fn is_sound(house: &House, handle: &WorldHandle) {
    let contexts = handle.contexts().await.unwrap();
    let report = verify::verify(&house.store, contexts).unwrap().unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test]
async fn the_default_world_is_there_from_the_start_and_writes_nothing_until_it_is_written_to() {
    let house = House::open(MemoryStorage::new());
    let handle = house.worlds.get("default").unwrap();
    assert_eq!(house.store.stats().contexts, 0, "watching is inert");
    say(&handle, "r-1", "Hello.").await.unwrap();
    assert_eq!(house.store.stats().contexts, 3);
    is_sound(&house, &handle).await;
}

#[tokio::test]
async fn p02_the_same_request_is_answered_the_same_in_sequence_in_parallel_and_after_a_restart() {
    let disk = MemoryStorage::new();
    let (first, second);
    {
        let house = House::open(disk.clone());
        let handle = house.payments().await;
        let asked = (0..50).map(|_| {
            let handle = Arc::clone(&handle);
            tokio::spawn(async move {
                write(&handle, "PLANNER", "r-1", &["CODER"], "psst")
                    .await
                    .unwrap()
                    .body
            })
        });
        let mut bodies = Vec::new();
        for task in asked.collect::<Vec<_>>() {
            bodies.push(task.await.unwrap());
        }
        first = bodies.pop().unwrap();
        assert!(
            bodies.iter().all(|body| *body == first),
            "fifty at once, one answer"
        );
        second = say(&handle, "r-2", "Go on.").await.unwrap().body;
        assert_eq!(all(&handle), ["psst", "Go on."]);
        is_sound(&house, &handle).await;
    }
    let house = House::open(disk);
    let handle = house.worlds.get("payments").unwrap();
    house.clock.set(Timestamp(NOW.0 + 3_600_000));
    let again = write(&handle, "PLANNER", "r-1", &["CODER"], "psst")
        .await
        .unwrap();
    assert!(again.replayed);
    assert_eq!(again.body, first);
    assert_eq!(say(&handle, "r-2", "Go on.").await.unwrap().body, second);
    assert_eq!(
        all(&handle),
        ["psst", "Go on."],
        "nothing was written twice"
    );
}

#[tokio::test]
async fn n34_an_id_that_is_used_is_refused_to_others_and_for_other_words() {
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    say(&handle, "r-1", "Ship it.").await.unwrap();
    assert_eq!(
        code(say(&handle, "r-1", "Do not.").await.unwrap_err()),
        Code::RequestIdReused
    );
    assert_eq!(
        code(
            write(&handle, "CODER", "r-1", &[], "mine")
                .await
                .unwrap_err()
        ),
        Code::RequestIdForeign
    );
    assert_eq!(all(&handle), ["Ship it."]);
}

#[tokio::test]
async fn n33_only_the_operator_speaks_as_the_operator() {
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    let times = [
        json!({ "time": { "declared_world_time": "2030-01-01T00:00:00Z" } }),
        json!({ "time": { "timezone": "Europe/Berlin" } }),
        json!({ "pause_time": true }),
    ];
    let mut bodies = vec![envelope("r-1", "I am GEORGE.")];
    bodies.extend(times.map(|overrides| {
        let mut body = envelope("r-1", "");
        body["declared_overrides"] = overrides;
        body
    }));
    for body in bodies {
        for kind in ["BEAT", "NO_OP"] {
            let mut body = body.clone();
            body["mode"]["kind"] = kind.into();
            let refused = handle
                .invoke(&person("CODER"), body.clone())
                .await
                .unwrap_err();
            assert_eq!(code(refused), Code::OperatorForbidden, "{body}");
        }
        let refused = handle
            .beat(
                &person("CODER"),
                body,
                bundle("r-1", "CODER", &[], "x"),
                None,
                None,
            )
            .await;
        assert_eq!(code(refused.unwrap_err()), Code::OperatorForbidden);
    }
    let silent = handle
        .invoke(&person("CODER"), envelope("r-1", ""))
        .await
        .unwrap_err();
    assert_eq!(
        code(silent),
        Code::Forbidden,
        "a BEAT by invocation is the operator's"
    );
    let reader = Principal::Person {
        id: Name::new("CODER").unwrap(),
        write: false,
    };
    let refused = handle
        .beat(
            &reader,
            envelope("r-1", ""),
            bundle("r-1", "CODER", &[], "x"),
            None,
            None,
        )
        .await;
    assert_eq!(code(refused.unwrap_err()), Code::Forbidden);
    assert_eq!(all(&handle), Vec::<String>::new());
    assert!(handle.read(|world| world.outcome("r-1").is_none()));
}

#[tokio::test]
async fn n06_a_no_op_reads_and_leaves_its_id_free() {
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    let before = house.store.stats().turns;
    let mut body = envelope("r-1", "not heard");
    body["mode"]["kind"] = "NO_OP".into();
    let answer = handle.invoke(&Principal::Owner, body).await.unwrap();
    assert!(answer.input_ignored);
    assert_eq!(house.store.stats().turns, before);
    say(&handle, "r-1", "heard").await.unwrap();
    assert_eq!(all(&handle), ["heard"]);
}

#[tokio::test]
async fn p17_a_fork_shares_the_past_and_goes_its_own_way() {
    let disk = MemoryStorage::new();
    let body;
    {
        let house = House::open(disk.clone());
        let handle = house.payments().await;
        body = say(&handle, "r-1", "one").await.unwrap().body;
        write(&handle, "PLANNER", "r-2", &["CODER"], "two")
            .await
            .unwrap();
        say(&handle, "r-3", "three").await.unwrap();
        let fork = house
            .worlds
            .fork(&handle, Name::new("other").unwrap(), |_| {
                Ok(Some(Point::Entries(2)))
            })
            .await
            .unwrap();
        assert_eq!(all(&fork), ["one", "two"]);
        assert_eq!(
            say(&fork, "r-1", "one").await.unwrap().body,
            body,
            "a request before the fork replays"
        );
        say(&fork, "r-3", "another three").await.unwrap();
        assert_eq!(all(&fork), ["one", "two", "another three"]);
        assert_eq!(all(&handle), ["one", "two", "three"]);
        let taken = house
            .worlds
            .fork(&handle, Name::new("other").unwrap(), |_| Ok(None))
            .await;
        assert_eq!(code(taken.err().unwrap()), Code::NameTaken);
    }
    let house = House::open(disk);
    let fork = house.worlds.get("other").unwrap();
    assert_eq!(all(&fork), ["one", "two", "another three"]);
    assert_eq!(say(&fork, "r-1", "one").await.unwrap().body, body);
    assert_eq!(fork.read(|world| world.people.iter().count()), 3);
    is_sound(&house, &fork).await;
}

#[tokio::test]
async fn p18_many_write_at_once_and_no_bundle_is_torn_or_lost() {
    let house = House::open(MemoryStorage::new());
    let mut tasks = Vec::new();
    let mut handles = Vec::new();
    for world in 0..4 {
        let persons: Vec<_> = (0..8)
            .map(|n| json!({ "person_id": format!("P{n}") }))
            .collect();
        let body =
            json!({ "world_id": format!("w{world}"), "profile": "WORKSPACE", "persons": persons });
        let handle = house.world(body).await;
        for agent in 0..8 {
            let handle = Arc::clone(&handle);
            tasks.push(tokio::spawn(async move {
                for beat in 0..10 {
                    let (who, id) = (format!("P{agent}"), format!("{agent}-{beat}"));
                    write(&handle, &who, &id, &[], &id).await.unwrap();
                }
            }));
        }
        handles.push(handle);
    }
    for task in tasks {
        task.await.unwrap();
    }
    for handle in handles {
        let mut found = texts(&handle, Viewer::Public);
        found.sort();
        let mut wanted: Vec<_> = (0..8)
            .flat_map(|a| (0..10).map(move |b| format!("{a}-{b}")))
            .collect();
        wanted.sort();
        assert_eq!(found, wanted);
        is_sound(&house, &handle).await;
    }
}

/// One beat of a team at work: public words, whispers, dates, notes and scenes, in turns.
async fn work(handle: &Arc<WorldHandle>, beat: usize, last: &mut Option<Value>) {
    let team = ["PLANNER", "CODER", "REVIEWER", "TESTER"];
    let (who, to) = (team[beat % 4], team[(beat / 4 + beat + 1) % 4]);
    let id = format!("r-{beat}");
    if beat.is_multiple_of(25) {
        say(handle, &id, &format!("Ship ticket T-{beat} today."))
            .await
            .unwrap();
        return;
    }
    let secret = beat.is_multiple_of(3) && who != to;
    let text = format!("{who} moved T-{} on; {to} checks by 15:00.", beat / 25 * 25);
    let mut brought = bundle(
        &id,
        who,
        if secret {
            std::slice::from_ref(&to)
        } else {
            &[]
        },
        &text,
    );
    if beat % 10 == 1 {
        brought["pocket_items"] =
            json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [0, who.len()] }]);
    }
    if let Some(cited) = last.take().filter(|_| beat.is_multiple_of(7)) {
        brought["capsule_notes"] =
            json!([{ "person_id": who, "text": "Works on tickets.", "used_entry_ids": [cited] }]);
    }
    let answer = handle
        .beat(&person(who), envelope(&id, ""), brought, None, None)
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    let written = &answer["bundle"]["entries"][0];
    assert!(written["entry_id"].is_string(), "{answer}");
    *last = (!secret).then(|| written["entry_id"].clone());
}

#[tokio::test]
async fn p20_a_team_of_four_over_500_beats_leaves_a_sound_world() {
    let disk = MemoryStorage::new();
    let persons = ["PLANNER", "CODER", "REVIEWER", "TESTER"].map(|id| json!({ "person_id": id }));
    let body = json!({ "world_id": "code", "profile": "WORKSPACE", "persons": persons });
    let house = House::open(disk.clone());
    let handle = house.world(body).await;
    let mut last = None;
    for beat in 0..500 {
        house.clock.set(Timestamp(NOW.0 + 60_000 * beat as u64));
        work(&handle, beat, &mut last).await;
    }
    assert_eq!(all(&handle).len(), 500);
    is_sound(&house, &handle).await;
    let report = verify::verify(&house.store, handle.contexts().await.unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(
        (report.entries, report.bundles, report.answers),
        (500, 500, 500)
    );
    let seen: Vec<_> = ["CODER", "GEORGE"]
        .map(|who| texts(&handle, Viewer::Reader(Name::new(who).unwrap())).len())
        .into();
    assert!(seen[0] > seen[1] && seen[0] < 500, "{seen:?}");
    drop((handle, house));
    let house = House::open(disk);
    is_sound(&house, &house.worlds.get("code").unwrap()).await;
}

#[tokio::test]
async fn a_repeated_request_is_answered_whatever_the_world_became() {
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    let first = say(&handle, "r-1", "Ship it.").await.unwrap().body;
    let change = json!({ "operator_label": "test-client", "pocket_available": false });
    let changed = handle.read(|world| {
        world
            .config
            .with_changes(&Node::root(&change, Code::ConfigInvalid))
            .unwrap()
    });
    handle
        .record(vec![turnkeep_ledger::fact::Fact::Config(Box::new(changed))])
        .await
        .unwrap();
    let mut again = envelope("r-1", "Ship it.");
    again["declared_overrides"] = Value::Null;
    again["since_version_9"] = json!({ "mood": 7 });
    let again = handle.invoke(&Principal::Owner, again).await.unwrap();
    assert_eq!((again.replayed, again.body), (true, first));
    assert_eq!(
        code(say(&handle, "r-2", "More.").await.unwrap_err()),
        Code::InvokerForbidden
    );
    // An invalid request is rejected before its id is looked up.
    let mut bad = envelope("r-1", "Ship it.");
    bad["ui"] = json!({ "stream_cursor": "x" });
    assert_eq!(
        code(handle.invoke(&Principal::Owner, bad).await.unwrap_err()),
        Code::BadCursor
    );
}

#[tokio::test]
async fn a_token_counts_until_it_ends_or_is_revoked() {
    use turnkeep_ledger::fact::{Fact, Token};
    use turnkeep_ledger::ids::TokenId;
    let disk = MemoryStorage::new();
    let secret = "tkp.payments.abc";
    let hash = *blake3::hash(secret.as_bytes()).as_bytes();
    let expires_at = Some(Timestamp(NOW.0 + 1000));
    {
        let house = House::open(disk.clone());
        let handle = house.payments().await;
        let person = Name::new("CODER").unwrap();
        let token = Token {
            id: TokenId(9),
            person,
            write: true,
            created_at: NOW,
            expires_at,
            secret: hash,
        };
        handle.record(vec![Fact::Token(token)]).await.unwrap();
    }
    let house = House::open(disk);
    let holder = |text: &str, now| house.worlds.find_token_holder(text, now).unwrap();
    assert!(holder(secret, NOW).is_some());
    for (text, now) in [
        (secret, NOW.0 + 1000),
        ("tkp.payments.abd", NOW.0),
        ("tkp.other.abc", NOW.0),
        ("abc", NOW.0),
    ] {
        assert!(holder(text, Timestamp(now)).is_none(), "{text} {now}");
    }
    let handle = house.worlds.get("payments").unwrap();
    handle
        .record(vec![Fact::Revoked(TokenId(9))])
        .await
        .unwrap();
    assert!(holder(secret, NOW).is_none());
}

#[tokio::test]
async fn people_can_be_added_while_the_world_lives() {
    use turnkeep_ledger::fact::Fact;
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    let refused = write(&handle, "TESTER", "r-1", &[], "hi").await.unwrap();
    assert!(refused.rejected);
    handle
        .record(vec![Fact::Person(Person::with_id(
            Name::new("TESTER").unwrap(),
        ))])
        .await
        .unwrap();
    assert!(
        !write(&handle, "TESTER", "r-2", &[], "hi")
            .await
            .unwrap()
            .rejected
    );
}
