//! A run that has grown large: how long it takes to open, to leaf through, and to build again from the
//! log.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::agents::{Bench, RunsServer};
use crate::figures::percentile_ms;
use crate::report_progress;
use crate::scratch::ScratchDir;
use crate::table::Row;

/// How many nodes work at once. The others only lengthen the snapshot.
const WORKERS_MAX: usize = 10;
/// The tools of one turn. Each gives three events.
const TOOLS: usize = 400;
const TOOLS_QUICK: usize = 10;
const PAGE_EVENTS: u64 = 200;

/// How large.
pub(super) struct LargeRun {
    pub(super) nodes: usize,
    pub(super) edges: usize,
    pub(super) events: u64,
    /// How many pages are read.
    pub(super) pages: u64,
}

/// Makes the run and measures it.
pub(super) fn measure_large(size: &LargeRun, scratch: &ScratchDir) -> Result<Vec<Row>> {
    let what = format!(
        "a run of {} nodes, {} edges and {} events",
        size.nodes, size.edges, size.events
    );
    report_progress(&what);
    let tools = if size.events < 1000 {
        TOOLS_QUICK
    } else {
        TOOLS
    };
    let bench = Bench::create(scratch, "large", &script(tools))?;
    let mut server = bench.start()?;
    let run = server.create_run(bench.work())?;
    let nodes = add_graph(&mut server, &run, size)?;
    let begin = Instant::now();
    let before = server.last_seq(&run)?;
    work_until(&mut server, &run, &nodes, size.events)?;
    let made = server.last_seq(&run)?;
    let rate = per_second(made - before, begin.elapsed());
    // A paused run gets no further event at the next start, so its state must be the same.
    server.pause(&run)?;

    let open = time_open(&mut server, &run)?;
    let pages = time_pages(&mut server, &run, size)?;
    let start = time_rebuilding(&bench, server, &run)?;
    Ok(vec![
        Row::plain_rate("events of 10 agents at once, all durable", rate),
        Row::seconds(
            "open a large run: snapshot and last page",
            open.as_secs_f64(),
        )
        .at_most(1.5),
        Row::millis("page of 200 events, p95", percentile_ms(&pages, 95)).at_most(50.0),
        Row::seconds(
            "start of the server and the run from the log",
            start.as_secs_f64(),
        )
        .at_most(5.0),
    ])
}

/// A turn that uses many tools and says a few words.
fn script(tools: usize) -> String {
    let step = "    { tool = \"command\", args = { cmd = \"make test\" }, result = \"ok\" },\n";
    let steps = step.repeat(tools);
    format!("[[turn]]\nrepeat = true\nsteps = [\n{steps}    {{ say = \"Done.\" }},\n]\n")
}

/// Adds the nodes and connects them: each with its next ones.
fn add_graph(server: &mut RunsServer, run: &str, size: &LargeRun) -> Result<Vec<String>> {
    let mut nodes = Vec::new();
    for number in 0..size.nodes {
        nodes.push(server.add_node(run, number)?);
    }
    for edge in 0..size.edges {
        let distance = 1 + edge / size.nodes;
        let from = &nodes[edge % size.nodes];
        let to = &nodes[(edge + distance) % size.nodes];
        server.connect(run, from, to)?;
    }
    Ok(nodes)
}

/// Lets the workers have turns until the run has so many events.
fn work_until(server: &mut RunsServer, run: &str, nodes: &[String], events: u64) -> Result<()> {
    let workers = &nodes[..nodes.len().min(WORKERS_MAX)];
    while server.last_seq(run)? < events {
        let mut socket = server.watch(run)?;
        for node in workers {
            server.chat(run, node)?;
        }
        socket.read_turns(workers.len(), |_| Ok(()))?;
    }
    Ok(())
}

/// Kills the server, starts it again, and times how long the run takes to be available again.
fn time_rebuilding(bench: &Bench, mut server: RunsServer, run: &str) -> Result<Duration> {
    let live = lasting_state(&mut server, run)?;
    // This kills the server; its agents end with it.
    drop(server);
    report_progress("building it again from the log");
    let begin = Instant::now();
    let mut server = bench.start()?;
    let rebuilt = lasting_state(&mut server, run)?;
    let took = begin.elapsed();
    ensure!(
        live == rebuilt,
        "the state from the log differs from the live one"
    );
    Ok(took)
}

/// What a client does first: the snapshot and the newest page.
fn time_open(server: &mut RunsServer, run: &str) -> Result<Duration> {
    let begin = Instant::now();
    server.fetch(&format!("/api/runs/{run}"))?;
    server.fetch(&format!("/api/runs/{run}/events?limit={PAGE_EVENTS}"))?;
    Ok(begin.elapsed())
}

/// The times of pages all over the run, sorted.
fn time_pages(server: &mut RunsServer, run: &str, size: &LargeRun) -> Result<Vec<Duration>> {
    let last = server.last_seq(run)?;
    let mut times = Vec::new();
    for number in 0..size.pages {
        // A stride without a common factor visits the pages in no order that a cache would like.
        let before = 1 + (number * 7_919 + last / 2) % last;
        let path = format!("/api/runs/{run}/events?limit={PAGE_EVENTS}&before={before}");
        let begin = Instant::now();
        server.fetch(&path)?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

/// The run without what lives only as long as its programs.
fn lasting_state(server: &mut RunsServer, run: &str) -> Result<Value> {
    let mut answer = server.get(&format!("/api/runs/{run}"))?;
    let nodes = answer["run"]["nodes"].as_object_mut();
    for node in nodes.into_iter().flat_map(|nodes| nodes.values_mut()) {
        if let Some(fields) = node.as_object_mut() {
            fields.remove("connection");
        }
    }
    Ok(answer)
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    crate::figures::number_f64(count) / elapsed.as_secs_f64()
}
