//! Connect and HELLO on an idle server, one after the other.

use std::time::Instant;

use anyhow::Result;

use super::child::{BareProcess, Endpoint, ServerProcess};
use super::figures::Measured;
use super::table::Row;
use super::{Effort, load, report_progress};

/// Half of the connections must be open by then.
const MOST_MS: f64 = 1.0;

fn time_connections(endpoint: &Endpoint, count: usize) -> Result<Measured> {
    load::block_on(async {
        let begin = Instant::now();
        let mut latencies = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            let stream = load::connect_binary(endpoint).await?;
            latencies.push(start.elapsed());
            // Closed at once, so that the server's number of connections does not grow.
            drop(stream);
        }
        Ok(Measured::from_latencies(begin.elapsed(), latencies))
    })
}

/// Measures the median time to a usable connection.
pub(super) fn measure_connect(
    effort: &Effort,
    bare: &BareProcess,
    server: &ServerProcess,
) -> Result<Vec<Row>> {
    report_progress("connect + HELLO");
    let count = if effort.quick { 20 } else { 1000 };
    let bare = time_connections(&bare.endpoint, count)?;
    let ours = time_connections(&server.endpoint, count)?;
    Ok(vec![
        Row::millis("connect + HELLO, p50", ours.p50_ms)
            .with_bare(bare.p50_ms)
            .at_most(MOST_MS),
    ])
}
