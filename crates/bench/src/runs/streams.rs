//! Agents that stream at the same time: what the server needs for them, and how late a client sees
//! their words.
//!
//! Each agent prints fifty pieces a second. The server joins pieces that come within 100 ms, so a
//! client gets about ten events a second of each. The latency of an event is the time from the
//! server's own time stamp in it to its arrival at the client.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::Value;

use super::agents::Bench;
use crate::child::TICK;
use crate::figures::{count_f64, megabytes, percentile_ms};
use crate::report_progress;
use crate::scratch::ScratchDir;
use crate::table::Row;

const PIECES_PER_SECOND: usize = 50;
const PIECE: &str = "eight ch";

/// How many agents, and for how long.
pub(super) struct Streams {
    pub(super) nodes: usize,
    pub(super) time: Duration,
}

/// Measures the server while the agents stream.
pub(super) fn measure_streams(streams: &Streams, scratch: &ScratchDir) -> Result<Vec<Row>> {
    let seconds = streams.time.as_secs();
    report_progress(&format!("{} agents stream for {seconds} s", streams.nodes));
    let bench = Bench::create(scratch, "streams", &script(streams)?)?;
    let mut server = bench.start()?;
    let run = server.create_run(bench.work())?;
    let mut nodes = Vec::new();
    for number in 0..streams.nodes {
        nodes.push(server.add_node(&run, number)?);
    }
    let mut socket = server.watch(&run)?;
    let begin = Instant::now();
    let processor = server.process.processor_time()?;
    for node in &nodes {
        server.chat(&run, node)?;
    }
    let mut seen = Seen::default();
    socket.read_turns(nodes.len(), |event| seen.add(event))?;
    // The agents have just ended, so the memory is that of a server under load.
    let memory = server.process.resident_bytes()?;
    let used = server.process.processor_time()?.saturating_sub(processor);
    // The kernel counts whole ticks, so a short run may seem to take no time at all.
    let used = used.max(TICK);
    let cores = used.as_secs_f64() / begin.elapsed().as_secs_f64();
    let latencies = seen.sorted_latencies()?;
    Ok(vec![
        Row::plain_rate(
            "deltas that a client gets while agents stream",
            count_f64(latencies.len()) / begin.elapsed().as_secs_f64(),
        ),
        Row::millis(
            "latency of a delta over /ws, p95",
            percentile_ms(&latencies, 95),
        )
        .at_most(150.0),
        Row::cores("processor time of the server", cores).at_most(1.0),
        Row::megabytes("memory (RSS) of the server", megabytes(memory)).at_most(300.0),
    ])
}

/// One turn that prints its pieces evenly over the time.
fn script(streams: &Streams) -> Result<String> {
    let seconds = usize::try_from(streams.time.as_secs())?;
    let text = PIECE.repeat(PIECES_PER_SECOND * seconds);
    let pause = 1000 / PIECES_PER_SECOND;
    let chunk = PIECE.len();
    Ok(format!(
        "[[turn]]\nsteps = [{{ say = \"{text}\", chunk = {chunk}, pause = {pause} }}]\n"
    ))
}

/// What a client saw of the streams.
#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
}

impl Seen {
    fn add(&mut self, event: &Value) -> Result<()> {
        if event["type"] != "message.assistant.delta" {
            return Ok(());
        }
        let sent = event["ts"].as_str().context("an event without a time")?;
        let sent: Timestamp = sent.parse()?;
        let late = Timestamp::now().as_microsecond() - sent.as_microsecond();
        // Both come from one clock, but someone may set that clock meanwhile.
        self.latencies
            .push(Duration::from_micros(u64::try_from(late).unwrap_or(0)));
        Ok(())
    }

    fn sorted_latencies(mut self) -> Result<Vec<Duration>> {
        ensure!(!self.latencies.is_empty(), "the agents said nothing");
        self.latencies.sort_unstable();
        Ok(self.latencies)
    }
}
