//! Pages of the last turns with payload over the binary protocol, warm.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::append::Appends;
use super::child::{BareProcess, Endpoint, ServerProcess};
use super::figures::{Measured, requests_for};
use super::load::{self, Framing, Requests};
use super::protocol::{self, PAGE_TURNS};
use super::table::Row;
use super::{Effort, report_progress};

/// Turns in the context that is read.
const TURNS: usize = 1024;
const REQUESTS_MAX: usize = 2_000_000;
/// The least pages per second.
const LEAST: f64 = 15_000.0;
/// More connections count as no slower down to this share; the rest is noise.
const NO_SLOWER: f64 = 0.95;

/// One number of connections to one server.
struct Reader<'a> {
    endpoint: &'a Endpoint,
    context: u64,
    connections: usize,
    payload: usize,
}

impl Reader<'_> {
    fn run_round(&self, each: usize) -> Result<Measured> {
        // A page is longer than its payloads: a shorter answer would be a wrong one.
        let at_least = PAGE_TURNS as usize * self.payload;
        let requests = Arc::new(self.assemble_requests(each));
        load::block_on(async {
            let mut streams = Vec::new();
            for _ in 0..self.connections {
                streams.push(load::connect_binary(self.endpoint).await?);
            }
            load::run_load(streams, requests, 1, Framing::Binary { at_least }).await
        })
    }

    fn assemble_requests(&self, each: usize) -> Requests {
        let mut bytes = Vec::new();
        for request in 0..each as u64 {
            bytes.extend(protocol::get_last(self.context, request));
        }
        let stride = bytes.len() / each;
        Requests {
            bytes: bytes.repeat(self.connections),
            stride,
            each,
        }
    }

    /// Requests per connection that fill the time of a measurement.
    fn calibrate(&self, millis: u64) -> Result<usize> {
        let warm = self.run_round(16)?;
        Ok((requests_for(warm.rate, millis, REQUESTS_MAX) / self.connections).max(1))
    }
}

/// Measures each reader in every round, so that a slow minute of the machine hits all of them.
fn measure_in_turns(readers: &[Reader<'_>; 3], effort: &Effort) -> Result<[Measured; 3]> {
    let mut each = [0; 3];
    for (each, reader) in each.iter_mut().zip(readers) {
        *each = reader.calibrate(effort.millis)?;
    }
    let mut runs = [const { Vec::new() }; 3];
    for _ in 0..effort.rounds {
        for ((runs, reader), each) in runs.iter_mut().zip(readers).zip(each) {
            runs.push(reader.run_round(each)?);
        }
    }
    Ok(runs.map(|runs| Measured::median_of(&runs)))
}

/// Appends the turns that are read. Returns their context.
fn fill_context(server: &ServerProcess, payload: usize) -> Result<u64> {
    let fill = Appends {
        connections: 1,
        in_flight: 64,
        each: TURNS,
        payload,
        key: 0,
    };
    let (_, contexts) = fill.run_load(&server.endpoint)?;
    contexts.first().copied().context("no context was made")
}

/// Measures 8 and 64 connections; the bare server's pages come from memory.
pub(super) fn measure_reads(
    effort: &Effort,
    bare: &BareProcess,
    server: &ServerProcess,
) -> Result<Vec<Row>> {
    report_progress("GET_LAST(64, payload)");
    let context = fill_context(server, effort.payload)?;
    let reader = |endpoint, connections| Reader {
        endpoint,
        context,
        connections,
        payload: effort.payload,
    };
    let readers = [
        reader(&bare.endpoint, 8),
        reader(&server.endpoint, 8),
        reader(&server.endpoint, 64),
    ];
    let [bare, eight, many] = measure_in_turns(&readers, effort)?;
    let same = many.rate >= eight.rate * NO_SLOWER;
    let row = Row::rate("GET_LAST(64, payload), 8 connections", eight);
    Ok(vec![
        row.with_bare_and_ratio(bare.rate, eight.rate / bare.rate)
            .at_least(LEAST),
        Row::rate("GET_LAST(64, payload), 64 connections", many).goal("no slower than 8", same),
    ])
}
