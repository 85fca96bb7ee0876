//! One world in this process: how long it takes to read it, and what a reader waits for its
//! answers.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use turnkeep_ledger::anchor::Anchor;
use turnkeep_ledger::capsule::Capsule;
use turnkeep_ledger::checkpoint::{self, Checkpoint};
use turnkeep_ledger::ids::{EntryId, Name};
use turnkeep_ledger::log::LoadedWorld;
use turnkeep_ledger::rehydration::Rehydration;
use turnkeep_ledger::teamworld::TeamWorld;
use turnkeep_ledger::tools::{self, Caller, ToolRequest};
use turnkeep_ledger::{Principal, Viewer, World, log, projection};

use super::made;
use crate::commands::bench::figures::{Measured, number};
use crate::commands::bench::progress;
use crate::commands::bench::table::Row;

/// Entries of the world that a capsule is made of.
const CAPSULE_ENTRIES: u32 = 100_000;
/// Half of a writer's limit of 100 000 tokens, in bytes.
const REHYDRATION_BYTES: usize = 150_000;
/// Answers of each kind.
const ANSWERS: usize = 200;

/// Writes the world into a data directory and measures it there. The directory is left for a
/// server.
pub(super) fn measure(team: &TeamWorld, data: &Path) -> Result<Vec<Row>> {
    progress(&format!(
        "a world of {} entries on disk",
        team.entries.len()
    ));
    let store = made::open(data)?;
    let (contexts, entries) = made::write(team, &store)?;
    progress("reading it from the log, then with a checkpoint");
    let begin = Instant::now();
    let LoadedWorld { world, log: read } =
        log::load(&store, contexts)?.context("the world is not there")?;
    let from_log = begin.elapsed();
    let bytes = checkpoint::encode(&world, &read, &store)
        .context("no entries")?
        .into();
    let begin = Instant::now();
    let kept = Checkpoint::decode(&bytes, made::WORLD, store.id()).context("no checkpoint")?;
    let resumed =
        checkpoint::load(&store, contexts, Some(kept))?.context("the world is not there")?;
    let resumed_in = begin.elapsed();
    ensure!(
        resumed.world.position() == world.position(),
        "a checkpoint changes the world"
    );
    drop(resumed);
    let mut rows = vec![
        seconds("world read from the log", from_log).at_most(10.0),
        seconds("world read with a checkpoint", resumed_in).at_most(1.0),
    ];
    rows.extend(answers(team, &world, &entries)?);
    store.close();
    Ok(rows)
}

fn seconds(name: &str, took: Duration) -> Row {
    Row::seconds(name, took.as_secs_f64())
}

fn answers(team: &TeamWorld, world: &World, entries: &[EntryId]) -> Result<Vec<Row>> {
    progress("answers from it");
    let person = Name::new(&team.person_id(0)).context("no name")?;
    let principal = Principal::Person {
        id: person.clone(),
        write: false,
    };
    let viewer = Viewer::Reader(person.clone());
    let step = (entries.len() / ANSWERS).max(1);
    let get = timed(entries.iter().step_by(step), |id| {
        let request = ToolRequest::parse(&request("LEDGER_GET", &id.to_string(), person.as_str()))?;
        Ok(tools::answer(
            world,
            world.position(),
            &Caller::from_principal(&principal),
            &request,
            None,
        )?
        .to_string()
        .len())
    })?;
    let view = world.view(viewer.clone());
    let places = (0..ANSWERS as u64).map(|number| number * (view.count() / ANSWERS as u64));
    let page = timed(places, |place| {
        let cursor = turnkeep_ledger::cursor::write(&view, place);
        Ok(projection::read_page(&view, "bench", Some(&cursor), 100)?
            .value
            .to_string()
            .len())
    })?;
    let early = world.view_at(viewer, CAPSULE_ENTRIES);
    let persons: Vec<String> = (0..team.persons.len())
        .map(|person| team.person_id(person))
        .collect();
    let capsule = timed(persons.iter(), |person| {
        Ok(Capsule::build(&early, person).pack().to_string().len())
    })?;
    let rehydration = timed(0..10, |_| {
        let anchor = Anchor::build(&view);
        let pack = Rehydration::build(&view, &anchor, "bench", REHYDRATION_BYTES).pack("bench");
        Ok(pack.to_string().len())
    })?;
    Ok(vec![
        Row::millis("LEDGER_GET, p99", get.p99_ms).at_most(1.0),
        Row::millis("projection page of 100, p99", page.p99_ms).at_most(5.0),
        Row::millis("capsule at 100 000 entries, slowest", capsule.p99_ms).at_most(50.0),
        Row::millis("rehydration, slowest", rehydration.p99_ms).at_most(50.0),
    ])
}

/// A tool request of a person.
pub(super) fn request(tool: &str, query: &str, person: &str) -> serde_json::Value {
    json!({
        "tool_request_id": "bench", "request_id": "bench",
        "requested_by": { "engine": "bench", "actor": person, "knowledge_view": person },
        "tool": { "name": tool, "query_text": query },
    })
}

/// How long each takes; every answer must have bytes. The first one warms up.
pub(super) fn timed<T: Clone>(
    asked: impl Iterator<Item = T>,
    mut answer: impl FnMut(T) -> Result<usize>,
) -> Result<Measured> {
    let mut latencies = Vec::new();
    for (index, asked) in asked.enumerate() {
        if index == 0 {
            answer(asked.clone())?;
        }
        let begin = Instant::now();
        let bytes = answer(asked)?;
        latencies.push(begin.elapsed());
        ensure!(bytes > 0, "an empty answer");
    }
    let whole: Duration = latencies.iter().sum();
    ensure!(number(latencies.len()) > 0.0, "nothing was asked");
    Ok(Measured::of(whole, latencies))
}
