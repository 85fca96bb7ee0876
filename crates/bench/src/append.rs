//! Appends over the binary protocol: the store and the bare server in turns, round by round.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use super::child::{BareProcess, Endpoint, ServerProcess};
use super::figures::{Measured, Round, Rounds, requests_for};
use super::load::{self, Framing, Requests};
use super::payload::Payloads;
use super::protocol::{self, ACK_BYTES, AppendHead};
use super::table::Row;
use super::{Effort, Measurement};

/// Memory for assembled requests.
const REQUESTS_BYTES_MAX: usize = 768 << 20;
/// The type that the turns declare.
const TYPE_ID: &str = "com.example.Bench";

/// One row of the table.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: Measurement,
    title: &'static str,
    connections: usize,
    in_flight: usize,
    least_ratio: f64,
    least_rate: Option<f64>,
    most_p99_ms: Option<f64>,
}

/// The four shapes of load.
pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: Measurement::Append1,
        title: "append, 1 connection",
        connections: 1,
        in_flight: 1,
        least_ratio: 0.75,
        least_rate: None,
        most_p99_ms: None,
    },
    Shape {
        name: Measurement::Append8,
        title: "append, 8 connections",
        connections: 8,
        in_flight: 1,
        least_ratio: 0.80,
        least_rate: Some(18_000.0),
        most_p99_ms: None,
    },
    Shape {
        name: Measurement::Append64,
        title: "append, 64 connections",
        connections: 64,
        in_flight: 1,
        least_ratio: 0.70,
        least_rate: Some(40_000.0),
        most_p99_ms: Some(10.0),
    },
    Shape {
        name: Measurement::Pipelined,
        title: "append, 8 connections x 64 in flight",
        connections: 8,
        in_flight: 64,
        least_ratio: 0.60,
        least_rate: Some(95_000.0),
        most_p99_ms: None,
    },
];

/// A load of appends.
#[derive(Debug, Clone)]
pub(super) struct Appends {
    pub(super) connections: usize,
    pub(super) in_flight: usize,
    /// Turns on each connection.
    pub(super) each: usize,
    pub(super) payload: usize,
    /// Bytes of an idempotency key, all different; 0 for none.
    pub(super) key: usize,
}

/// Every run writes payloads of its own.
static SEED: AtomicU64 = AtomicU64::new(1);

impl Appends {
    /// Runs the load, each connection into a new context; the contexts come with it.
    pub(super) fn run_load(&self, endpoint: &Endpoint) -> Result<(Measured, Vec<u64>)> {
        load::block_on(async {
            let mut streams = Vec::with_capacity(self.connections);
            let mut contexts = Vec::with_capacity(self.connections);
            for _ in 0..self.connections {
                let mut stream = load::connect_binary(endpoint).await?;
                contexts.push(load::create_context(&mut stream).await?);
                streams.push(stream);
            }
            let requests = Arc::new(self.assemble_requests(&contexts));
            let framing = Framing::Binary {
                at_least: ACK_BYTES,
            };
            let measured = load::run_load(streams, requests, self.in_flight, framing).await?;
            Ok((measured, contexts))
        })
    }

    /// The number of the request, filled up with zeros. Keys of two contexts may be equal.
    fn key_of(&self, request: u64) -> String {
        if self.key == 0 {
            return String::new();
        }
        format!("{request:0width$}", width = self.key)
    }

    fn assemble_requests(&self, contexts: &[u64]) -> Requests {
        // Equal payloads would be stored once and measure nothing.
        let mut payloads = Payloads::new(SEED.fetch_add(1, Ordering::Relaxed), self.payload);
        let mut requests = Requests {
            each: self.each,
            ..Requests::default()
        };
        let mut payload = Vec::with_capacity(self.payload);
        for &context in contexts {
            for request in 0..self.each as u64 {
                payload.clear();
                payloads.write_next(&mut payload);
                let key = self.key_of(request);
                let head = AppendHead {
                    context,
                    request,
                    type_id: TYPE_ID,
                    key: key.as_bytes(),
                };
                protocol::put_append(&mut requests.bytes, head, &payload);
            }
        }
        requests.stride = requests.bytes.len() / (self.each * contexts.len()).max(1);
        requests
    }
}

impl Shape {
    fn load_of(&self, each: usize, effort: &Effort) -> Appends {
        Appends {
            connections: self.connections,
            in_flight: self.in_flight,
            each,
            payload: effort.payload,
            key: 0,
        }
    }

    /// Turns per connection that fill the time of a measurement; finding out warms the server up.
    fn calibrate(&self, effort: &Effort, endpoint: &Endpoint) -> Result<usize> {
        let max = REQUESTS_BYTES_MAX / (effort.payload + 128) / self.connections;
        let mut each = self.in_flight * 16;
        // A short run first: its rate says how many requests fill the whole time.
        for millis in [effort.millis / 10, effort.millis] {
            let (measured, _) = self.load_of(each, effort).run_load(endpoint)?;
            each = requests_for(measured.rate, millis, max * self.connections) / self.connections;
            each = each.max(self.in_flight);
        }
        Ok(each)
    }

    /// The rows of the table: the rate, and the latency if it has a goal.
    fn to_rows(&self, ours: Measured, bare: Measured, ratio: f64) -> Vec<Row> {
        let mut rate = Row::rate(self.title, ours)
            .with_bare_and_ratio(bare.rate, ratio)
            .at_least_ratio(self.least_ratio);
        if let Some(least) = self.least_rate {
            rate = rate.at_least(least);
        }
        let mut rows = vec![rate];
        if let Some(most) = self.most_p99_ms {
            let p99 = Row::millis(&format!("{}, p99", self.title), ours.p99_ms);
            rows.push(p99.with_bare(bare.p99_ms).at_most(most));
        }
        rows
    }
}

/// Measures one shape.
pub(super) fn measure_shape(
    shape: &Shape,
    effort: &Effort,
    bare: &BareProcess,
    server: &ServerProcess,
) -> Result<Vec<Row>> {
    crate::report_progress(shape.title);
    let each_bare = shape.calibrate(effort, &bare.endpoint)?;
    let each_ours = shape.calibrate(effort, &server.endpoint)?;
    let bare_load = shape.load_of(each_bare, effort);
    let our_load = shape.load_of(each_ours, effort);
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    let mut rates = Rounds::default();
    // In turns, so that a slow minute of the machine hits both.
    for _ in 0..effort.rounds {
        let (bare, _) = bare_load.run_load(&bare.endpoint)?;
        let (our, _) = our_load.run_load(&server.endpoint)?;
        rates.push(Round {
            bare: bare.rate,
            ours: our.rate,
        });
        bares.push(bare);
        ours.push(our);
    }
    let (ours, bare) = (Measured::median_of(&ours), Measured::median_of(&bares));
    Ok(shape.to_rows(ours, bare, rates.ratio()))
}
