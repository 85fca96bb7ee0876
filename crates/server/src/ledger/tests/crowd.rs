//! Many at once: ten worlds with eight agents each, half of them with a writer at its seat.

use std::collections::HashMap;
use std::time::Duration;

use turnkeep_ledger::cursor;
use turnkeep_ledger::ids::{BundleId, Ids};

use super::writers::{PROPOSE, answering};
use super::*;

const WORLDS: u8 = 10;
const AGENTS: usize = 8;
const BEATS: usize = 6;
/// The last agents of a quiet world, whom no other agent ever addresses.
const ALONE: usize = 6;
/// The time limit of a whole test, so that a deadlock fails it.
const WHOLE: Duration = Duration::from_mins(5);

fn agent(number: usize) -> String {
    format!("P{number}")
}

fn reader(name: &str) -> Viewer {
    Viewer::Reader(Name::new(name).unwrap())
}

/// What an agent tried, and what came of it.
struct Attempt {
    who: String,
    id: String,
    parts: usize,
    /// How many entries it had seen.
    expected: u64,
    /// If it was refused: how many it could see then.
    refused_at: Option<u64>,
}

/// Several entries, each to everyone or to one; in a quiet world only to those who talk there.
fn several(id: &str, who: usize, quiet: bool, dice: &mut Ids) -> (Value, usize) {
    let parts = 1 + usize::try_from(dice.draw() % 3).unwrap();
    let mut whole = bundle(id, &agent(who), &[], "");
    let entry = whole["entries"][0].take();
    let entries = (0..parts).map(|part| {
        let mut entry = entry.clone();
        entry["text"] = format!("{id} {part}").into();
        let to = match (quiet, who >= ALONE) {
            (true, true) => Some(who),
            (true, false) => Some(usize::try_from(dice.draw() % ALONE as u128).unwrap()),
            (false, _) => dice
                .draw()
                .is_multiple_of(2)
                .then(|| usize::try_from(dice.draw() % 8).unwrap()),
        };
        if let Some(to) = to {
            entry["visibility"] = json!({ "scope": "PRIVATE", "visible_to": [agent(to)] });
        }
        entry
    });
    whole["entries"] = entries.collect();
    (whole, parts)
}

/// An agent at work: it looks, and writes if nothing came since.
async fn work(
    handle: Arc<WorldHandle>,
    clock: Arc<ManualClock>,
    who: usize,
    quiet: bool,
) -> Vec<Attempt> {
    let name = agent(who);
    let mut dice =
        Ids::from_seed(blake3::hash(format!("{} {name}", handle.name()).as_bytes()).as_bytes());
    let mut attempts = Vec::new();
    for beat in 0..BEATS {
        let id = format!("{name}-{beat}");
        let (parts_of, parts) = several(&id, who, quiet, &mut dice);
        let (expected, place) = handle.read(|world| {
            let view = world.view(reader(&name));
            (cursor::write(&view, view.count()), view.count())
        });
        // Others come between, and the wall's clock goes to and fro.
        clock.set(Timestamp(
            NOW.0 + u64::try_from(dice.draw() % 10_000).unwrap(),
        ));
        tokio::task::yield_now().await;
        let answer = handle
            .beat(
                &person(&name),
                envelope(&id, ""),
                parts_of,
                Some(expected),
                None,
            )
            .await;
        let refused_at = match answer {
            Ok(answer) => {
                assert!(!answer.rejected && !answer.replayed);
                None
            }
            Err(error) => {
                assert_eq!(code(error), Code::HeadMoved, "{id}");
                Some(handle.read(|world| world.view(reader(&name)).count()))
            }
        };
        attempts.push(Attempt {
            who: name.clone(),
            id,
            parts,
            expected: place,
            refused_at,
        });
    }
    attempts
}

/// The operator speaks while the agents work.
async fn speak(handle: Arc<WorldHandle>, number: usize) -> Vec<String> {
    let mut said = Vec::new();
    for beat in 0..2 {
        let id = format!("o{number}-{beat}");
        say(&handle, &id, &format!("{id} 0")).await.unwrap();
        said.push(id);
    }
    said
}

/// The entries in ledger order: bundle, request and text.
fn ledger(handle: &WorldHandle) -> Vec<(BundleId, String, String)> {
    let one = |entry: &turnkeep_ledger::entry::Entry| {
        (
            entry.bundle,
            entry.request.to_string(),
            entry.text.to_string(),
        )
    };
    handle.read(|world| world.all_entries().iter().map(one).collect())
}

/// No bundle is torn, lost or doubled, and what was refused left nothing.
fn whole(handle: &WorldHandle, attempts: &[Attempt], said: &[String]) {
    let entries = ledger(handle);
    let mut bundles: Vec<(BundleId, String, Vec<String>)> = Vec::new();
    for (bundle, request, text) in entries {
        match bundles.last_mut() {
            Some(last) if last.0 == bundle => last.2.push(text),
            _ => bundles.push((bundle, request, vec![text])),
        }
    }
    let mut wanted: HashMap<String, Vec<String>> = attempts
        .iter()
        .filter(|attempt| attempt.refused_at.is_none())
        .map(|attempt| {
            let texts = (0..attempt.parts).map(|part| format!("{} {part}", attempt.id));
            (attempt.id.clone(), texts.collect())
        })
        .collect();
    wanted.extend(
        said.iter()
            .map(|id| (id.clone(), vec![format!("{id} 0"), "Come in.".to_owned()])),
    );
    for (_, request, texts) in bundles {
        assert_eq!(wanted.remove(&request), Some(texts), "{request}");
    }
    assert!(wanted.is_empty(), "lost: {wanted:?}");
}

/// `HEAD_MOVED` exactly when an entry that the caller could see had come.
fn exactly(handle: &WorldHandle, attempt: &Attempt) {
    let Attempt {
        who, id, expected, ..
    } = attempt;
    if let Some(seen) = attempt.refused_at {
        assert!(
            seen > *expected,
            "{id} was refused, and nothing that {who} sees had come"
        );
        return;
    }
    let before = handle.read(|world| {
        let first = world
            .all_entries()
            .iter()
            .position(|entry| *entry.request == **id)
            .unwrap();
        world
            .view_at(reader(who), u32::try_from(first).unwrap())
            .count()
    });
    assert_eq!(
        before, *expected,
        "{id} was taken, and something that {who} sees had come"
    );
}

fn time_never_goes_back(handle: &WorldHandle) {
    handle.read(|world| {
        let times: Vec<_> = world
            .all_entries()
            .iter()
            .map(|entry| entry.time.clone())
            .collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(times.last().is_none_or(|last| *last <= world.clock.time));
    });
}

/// A world of eight, in which a writer answers, or in which two are never spoken to, or neither.
async fn open(house: &House, number: u8) -> (Arc<WorldHandle>, bool, bool) {
    let (attached, quiet) = (number % 2 == 1, number.is_multiple_of(4));
    let persons: Vec<_> = (0..AGENTS)
        .map(|n| json!({ "person_id": agent(n) }))
        .collect();
    let writer = if attached {
        format!("cmd: {}", answering(PROPOSE))
    } else {
        "silence".to_owned()
    };
    let body = json!({
        "world_id": format!("w{number}"), "profile": "WORKSPACE", "registry": "OPEN", "persons": persons,
        "writer": writer,
    });
    (house.world(body).await, attached, quiet)
}

async fn crowd() {
    let house = House::open(MemoryStorage::new());
    let mut worlds = Vec::new();
    for number in 0..WORLDS {
        let (handle, attached, quiet) = open(&house, number).await;
        let agents: Vec<_> = (0..AGENTS)
            .map(|who| tokio::spawn(work(Arc::clone(&handle), house.clock.clone(), who, quiet)))
            .collect();
        let speakers: Vec<_> = (0..if attached { 3 } else { 0 })
            .map(|number| tokio::spawn(speak(Arc::clone(&handle), number)))
            .collect();
        worlds.push((handle, quiet, agents, speakers));
    }
    let (mut taken, mut refused) = (0, 0);
    for (handle, quiet, agents, speakers) in worlds {
        let (mut attempts, mut said) = (Vec::new(), Vec::new());
        for agent in agents {
            attempts.extend(agent.await.unwrap());
        }
        for speaker in speakers {
            said.extend(speaker.await.unwrap());
        }
        whole(&handle, &attempts, &said);
        time_never_goes_back(&handle);
        for attempt in &attempts {
            exactly(&handle, attempt);
            let alone = quiet && attempt.who.as_str() >= agent(ALONE).as_str();
            assert!(
                !alone || attempt.refused_at.is_none(),
                "{}: hidden entries moved a head",
                attempt.id
            );
        }
        refused += attempts
            .iter()
            .filter(|attempt| attempt.refused_at.is_some())
            .count();
        taken += attempts
            .iter()
            .filter(|attempt| attempt.refused_at.is_none())
            .count();
        is_sound(&house, &handle).await;
    }
    assert!(taken > 0 && refused > 0, "{taken} {refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p18_eighty_agents_in_ten_worlds_tear_lose_and_mistake_nothing() {
    tokio::time::timeout(WHOLE, crowd()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p18_a_writer_that_is_asked_next_finds_what_the_last_beat_wrote() {
    let house = House::open(MemoryStorage::new());
    // It says how many entries it finds.
    let look = r#"printf '{"type":"tool","request":{"tool_request_id":"t","request_id":"%s","requested_by":{"engine":"sh","actor":"writer","knowledge_view":"PUBLIC"},"tool":{"name":"LEDGER_SEARCH","query_text":"","constraints":{"limit":200}}}}\n' "$r"; read -r pack; n=$(printf '%s' "$pack" | grep -o '"verbatim_excerpt"' | grep -c .)"#;
    let tell = PROPOSE
        .replace("Come in.", "I see %s.")
        .replace(r#""$r" "$r""#, r#""$r" "$r" "$n""#);
    let script = answering(&format!("{look}; {tell}"));
    let handle = house
        .world(json!({ "world_id": "w", "writer": format!("cmd: {script}") }))
        .await;
    let beats: Vec<_> = (0..12)
        .map(|number| {
            let handle = Arc::clone(&handle);
            tokio::spawn(async move {
                say(&handle, &format!("r-{number}"), "I knock.")
                    .await
                    .unwrap()
            })
        })
        .collect();
    for beat in beats {
        tokio::time::timeout(WHOLE, beat).await.unwrap().unwrap();
    }
    let told: Vec<_> = all(&handle)
        .into_iter()
        .filter(|text| text.starts_with("I see"))
        .collect();
    let wanted: Vec<_> = (0..12)
        .map(|number| format!("I see {}.", 2 * number))
        .collect();
    assert_eq!(
        told, wanted,
        "each beat's writer looks at the ledger as the beat before left it"
    );
    is_sound(&house, &handle).await;
}
