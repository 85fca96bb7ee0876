//! Connect and HELLO on an idle server, one after the other.

use std::time::Instant;

use anyhow::Result;

use super::child::{Bare, Endpoint, Server};
use super::figures::Measured;
use super::table::Row;
use super::{Effort, load, progress};

/// Half of the connections must be open by then.
const MOST_MS: f64 = 1.0;

fn run(endpoint: &Endpoint, count: usize) -> Result<Measured> {
    load::block_on(async {
        let begin = Instant::now();
        let mut latencies = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            let stream = load::connect(endpoint.address, endpoint.token.as_deref()).await?;
            latencies.push(start.elapsed());
            drop(stream);
        }
        Ok(Measured::of(begin.elapsed(), latencies))
    })
}

/// Measures the median time to a usable connection.
pub(super) fn measure(effort: &Effort, bare: &Bare, server: &Server) -> Result<Vec<Row>> {
    progress("connect + HELLO");
    let count = if effort.quick { 20 } else { 1000 };
    let bare = run(&bare.endpoint, count)?;
    let ours = run(&server.endpoint, count)?;
    Ok(vec![
        Row::millis("connect + HELLO, p50", ours.p50_ms)
            .versus(bare.p50_ms)
            .at_most(MOST_MS),
    ])
}
