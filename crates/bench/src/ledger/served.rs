//! The same world behind `turnkeep up`: what a client waits for over HTTP, and what the disk alone
//! costs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_teamworld::TeamWorld;

use super::made;
use super::world::{time_each, tool_request};
use crate::bare_file::BareFile;
use crate::child::ServerProcess;
use crate::figures::{Measured, count_f64, megabytes};
use crate::http_client::HttpClient;
use crate::report_progress;
use crate::table::Row;

/// Worlds that are written to at once.
const WORLDS: usize = 64;
/// What one beat adds to the log, about.
const BEAT_BYTES: usize = 2048;
const OPERATOR: &str = "GEORGE";

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct BeatLoad {
    pub(super) beats: usize,
    /// Of the beats over many worlds.
    pub(super) time: Duration,
}

/// Measures a data directory that holds the made-up world.
pub(super) fn measure_served(team: &TeamWorld, data: &Path, load: BeatLoad) -> Result<Vec<Row>> {
    report_progress("starting a server on it: from the log, then from what that start left");
    let (first, from_log) = start_and_wait(data)?;
    let memory_from_log = from_log.anonymous_bytes()?;
    // This kills the server of the first start before the second begins.
    drop(from_log);
    let (second, server) = start_and_wait(data)?;
    let memory_from_checkpoint = server.anonymous_bytes()?;
    let mut client = HttpClient::connect(&server)?;
    let mut rows = vec![
        Row::seconds("start of the server, from the log", first.as_secs_f64()).at_most(10.0),
        Row::seconds(
            "start of the server, with a checkpoint",
            second.as_secs_f64(),
        )
        .at_most(1.0),
        Row::megabytes(
            "memory (RssAnon) after a start from the log",
            megabytes(memory_from_log),
        ),
        Row::megabytes(
            "memory (RssAnon) after a start with a checkpoint",
            megabytes(memory_from_checkpoint),
        ),
        measure_search(team, &mut client)?,
    ];
    rows.extend(measure_beats(&mut client, data, load.beats)?);
    rows.push(measure_many_worlds(&server, load.time)?);
    Ok(rows)
}

fn measure_search(team: &TeamWorld, client: &mut HttpClient) -> Result<Row> {
    report_progress("search over HTTP");
    let path = format!("/v1/worlds/{}/tools", made::WORLD);
    let questions = team.questions.iter().map(|question| question.text.as_str());
    let search = time_each(questions, |text| {
        client.post(&path, &tool_request("LEDGER_SEARCH", text, OPERATOR))
    })?;
    Ok(Row::millis("LEDGER_SEARCH over HTTP, p99", search.p99_ms).at_most(20.0))
}

/// Starts a server and waits until it answers for the world.
fn start_and_wait(data: &Path) -> Result<(Duration, ServerProcess)> {
    let begin = Instant::now();
    let server = ServerProcess::start(data)?;
    HttpClient::connect(&server)?.get(&format!("/v1/worlds/{}", made::WORLD))?;
    Ok((begin.elapsed(), server))
}

fn measure_beats(client: &mut HttpClient, data: &Path, count: usize) -> Result<Vec<Row>> {
    report_progress("beats, one after the other, and their replay");
    let sync = time_syncs(&data.with_extension("bare"), count)?;
    let path = format!("/v1/worlds/{}/beats", made::WORLD);
    let mut send_beats = || {
        time_each(0..count, |number| {
            client.post(&path, &beat_body(&format!("beat-{number}")))
        })
    };
    let beat = send_beats()?;
    // The same ids again: the server repeats its answers and writes nothing.
    let replay = send_beats()?;
    let allowed = sync.p99_ms + 5.0;
    let goal = format!("<= one sync + 5 ms ({allowed:.2} ms)");
    Ok(vec![
        Row::millis("beat without a writer, p99", beat.p99_ms)
            .with_bare(sync.p99_ms)
            .goal(&goal, beat.p99_ms <= allowed),
        Row::millis("replay, p99", replay.p99_ms).at_most(5.0),
    ])
}

/// How long the disk alone takes for as many bytes as a beat has.
fn time_syncs(folder: &Path, count: usize) -> Result<Measured> {
    std::fs::create_dir(folder)?;
    let mut file = BareFile::create(folder, 1 << 20)?;
    // `time_each` counts the bytes of answers; a sync has none.
    time_each(0..count, |_| {
        file.write_synced(&[1; BEAT_BYTES]).map(|()| 1)
    })
}

/// A beat of one entry.
fn beat_body(id: &str) -> Value {
    json!({
        "envelope": {
            "request_id": id, "invoker": { "invoker_id": "bench", "invoker_role": "INVOKER" },
            "operator": { "operator_id": OPERATOR, "input_text": "" }, "mode": { "kind": "BEAT" },
        },
        "bundle": {
            "bundle_id": null, "request_id": id, "proposed_by": { "engine": "bench", "actor": "bench" },
            "wrote": true,
            "entries": [{
                "request_id": id, "author": { "author_id": "WORLD", "author_class": "WORLD" },
                "visibility": { "scope": "PUBLIC" }, "channel": "VOICE",
                "text": format!("The tests of {id} are green again, nothing else is new."),
            }],
        },
    })
}

/// Beats per second over many worlds, a connection each.
fn measure_many_worlds(server: &ServerProcess, time: Duration) -> Result<Row> {
    report_progress("beats over many worlds");
    let mut writers = Vec::new();
    for number in 0..WORLDS {
        writers.push(WorldWriter::create(server, &format!("many-{number}"))?);
    }
    let begin = Instant::now();
    let until = begin + time;
    let count = std::thread::scope(|scope| {
        // A thread for each world, because the client blocks.
        let mut threads = Vec::new();
        for mut writer in writers {
            threads.push(scope.spawn(move || writer.send_beats(until)));
        }
        let counts = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Ok(0)));
        counts.sum::<Result<usize>>()
    })?;
    let rate = count_f64(count) / begin.elapsed().as_secs_f64();
    Ok(Row::plain_rate("beats over 64 worlds", rate).at_least(2000.0))
}

/// A client that writes to a world of its own.
struct WorldWriter {
    client: HttpClient,
    path: String,
}

impl WorldWriter {
    fn create(server: &ServerProcess, world: &str) -> Result<Self> {
        let mut client = HttpClient::connect(server)?;
        client.post("/v1/worlds", &json!({ "world_id": world }))?;
        Ok(Self {
            client,
            path: format!("/v1/worlds/{world}/beats"),
        })
    }

    /// Sends one beat after the other. Returns how many the server answered.
    fn send_beats(&mut self, until: Instant) -> Result<usize> {
        let mut count = 0;
        while Instant::now() < until {
            let beat = beat_body(&format!("beat-{count}"));
            self.client.post(&self.path, &beat)?;
            count += 1;
        }
        Ok(count)
    }
}
