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
use turnkeep_ledger::log::{LoadedWorld, WorldContexts};
use turnkeep_ledger::rehydration::Rehydration;
use turnkeep_ledger::tools::{self, Caller, ToolRequest};
use turnkeep_ledger::{Principal, View, Viewer, World, log, projection};
use turnkeep_store::Store;
use turnkeep_teamworld::TeamWorld;

use super::made;
use crate::figures::{Measured, count_f64};
use crate::report_progress;
use crate::table::Row;

/// Entries of the world that a capsule is made of.
const CAPSULE_ENTRIES: u32 = 100_000;
/// Half of a writer's limit of 100 000 tokens, in bytes.
const REHYDRATION_BYTES: usize = 150_000;
/// How many entries and pages are read.
const ANSWERS: usize = 200;
/// Each takes as long as many other answers, so that a few are enough.
const REHYDRATIONS: usize = 10;

/// Writes the world into a data directory and measures it there. The directory is left for a
/// server.
pub(super) fn measure_world(team: &TeamWorld, data: &Path) -> Result<Vec<Row>> {
    report_progress(&format!(
        "a world of {} entries on disk",
        team.entries.len()
    ));
    let store = made::open_store(data)?;
    let (contexts, entries) = made::write_world(team, &store)?;
    report_progress("reading it from the log, then with a checkpoint");
    let begin = Instant::now();
    let loaded = log::load(&store, contexts)?.context("the world is not there")?;
    let from_log = begin.elapsed();
    let with_checkpoint = time_checkpoint(&loaded, contexts, &store)?;
    let mut rows = vec![
        seconds_row("world read from the log", from_log).at_most(10.0),
        seconds_row("world read with a checkpoint", with_checkpoint).at_most(1.0),
    ];
    rows.extend(measure_answers(team, &loaded.world, &entries)?);
    store.close();
    Ok(rows)
}

/// How long it takes to read the world from a checkpoint of it.
fn time_checkpoint(
    loaded: &LoadedWorld,
    contexts: WorldContexts,
    store: &Store,
) -> Result<Duration> {
    let LoadedWorld { world, log, .. } = loaded;
    let bytes = checkpoint::encode(world, log, store)
        .context("no entries")?
        .into();
    let begin = Instant::now();
    let kept = Checkpoint::decode(&bytes, made::WORLD, store.id()).context("no checkpoint")?;
    let resumed =
        checkpoint::load(store, contexts, Some(kept))?.context("the world is not there")?;
    let took = begin.elapsed();
    ensure!(
        resumed.world.position() == world.position(),
        "a checkpoint changes the world"
    );
    Ok(took)
}

fn seconds_row(name: &str, took: Duration) -> Row {
    Row::seconds(name, took.as_secs_f64())
}

fn measure_answers(team: &TeamWorld, world: &World, entries: &[EntryId]) -> Result<Vec<Row>> {
    report_progress("answers from it");
    let person = Name::new(&team.person_id(0)).context("no name")?;
    let get = time_gets(world, &person, entries)?;
    let view = world.view(Viewer::Reader(person.clone()));
    let page = time_pages(&view)?;
    // The goal is for a world of this many entries, whatever the size of this one.
    let early = world.view_at(Viewer::Reader(person), CAPSULE_ENTRIES);
    let capsule = time_capsules(team, &early)?;
    let rehydration = time_rehydrations(&view)?;
    Ok(vec![
        Row::millis("LEDGER_GET, p99", get.p99_ms).at_most(1.0),
        Row::millis("projection page of 100, p99", page.p99_ms).at_most(5.0),
        Row::millis("capsule at 100 000 entries, slowest", capsule.p99_ms).at_most(50.0),
        Row::millis("rehydration, slowest", rehydration.p99_ms).at_most(50.0),
    ])
}

/// Reads single entries as a person, spread over the whole world.
fn time_gets(world: &World, person: &Name, entries: &[EntryId]) -> Result<Measured> {
    let principal = Principal::Person {
        id: person.clone(),
        write: false,
    };
    let caller = Caller::from_principal(&principal);
    let step = (entries.len() / ANSWERS).max(1);
    time_each(entries.iter().step_by(step), |id| {
        let request = tool_request("LEDGER_GET", &id.to_string(), person.as_str());
        let request = ToolRequest::parse(&request)?;
        let answer = tools::answer(world, world.position(), &caller, &request, None)?;
        Ok(answer.to_string().len())
    })
}

/// Reads pages of the projection, spread over the whole view.
fn time_pages(view: &View<'_>) -> Result<Measured> {
    let step = view.count() / ANSWERS as u64;
    time_each((0..ANSWERS as u64).map(|number| number * step), |place| {
        let cursor = turnkeep_ledger::cursor::write(view, place);
        let page = projection::read_page(view, "bench", Some(&cursor), 100)?;
        Ok(page.value.to_string().len())
    })
}

/// Makes the capsule of every person.
fn time_capsules(team: &TeamWorld, view: &View<'_>) -> Result<Measured> {
    time_each(0..team.persons.len(), |person| {
        let capsule = Capsule::build(view, &team.person_id(person));
        Ok(capsule.pack().to_string().len())
    })
}

fn time_rehydrations(view: &View<'_>) -> Result<Measured> {
    time_each(0..REHYDRATIONS, |_| {
        let anchor = Anchor::build(view);
        let rehydration = Rehydration::build(view, &anchor, "bench", REHYDRATION_BYTES);
        Ok(rehydration.pack("bench").to_string().len())
    })
}

/// A tool request of a person.
pub(super) fn tool_request(tool: &str, query: &str, person: &str) -> serde_json::Value {
    json!({
        "tool_request_id": "bench", "request_id": "bench",
        "requested_by": { "engine": "bench", "actor": person, "knowledge_view": person },
        "tool": { "name": tool, "query_text": query },
    })
}

/// How long each takes; every answer must have bytes. The first one warms up.
pub(super) fn time_each<T: Clone>(
    asked: impl Iterator<Item = T>,
    mut answer: impl FnMut(T) -> Result<usize>,
) -> Result<Measured> {
    let mut latencies = Vec::new();
    for (index, asked) in asked.enumerate() {
        // The first answer also builds what later ones share.
        if index == 0 {
            answer(asked.clone())?;
        }
        let begin = Instant::now();
        let bytes = answer(asked)?;
        latencies.push(begin.elapsed());
        ensure!(bytes > 0, "an empty answer");
    }
    let whole: Duration = latencies.iter().sum();
    ensure!(count_f64(latencies.len()) > 0.0, "nothing was asked");
    Ok(Measured::from_latencies(whole, latencies))
}
