//! Counters for `/metrics`, in the `OpenMetrics` text format.
//!
//! The store's counters are read at each scrape. The server's own counters are updated as requests
//! are answered. Labels are routes, methods and statuses, never text of a caller: each new label
//! takes memory.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use turnkeep_store::Stats;

use crate::connections::Connections;
use crate::handle::StoreHandle;
use crate::ledger::Rehydrations;
use crate::memory::MemoryBudget;

/// The server's counters.
pub(crate) struct Metrics {
    registry: Registry,
    http_requests: Family<HttpLabels, Counter>,
    http_seconds: Family<RouteLabels, Histogram>,
    tcp_requests: Family<TcpLabels, Counter>,
    stream_pages: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HttpLabels {
    route: String,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
    method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TcpLabels {
    message: &'static str,
    status: u16,
}

impl Metrics {
    /// Counters that also show the store, the connections and what the worlds count.
    pub(crate) fn new(
        store: StoreHandle,
        connections: Connections,
        memory: MemoryBudget,
        rehydrations: &Rehydrations,
    ) -> Self {
        let mut registry = Registry::with_prefix("turnkeep");
        let http_requests = Family::default();
        registry.register(
            "http_requests",
            "HTTP requests answered",
            http_requests.clone(),
        );
        // From 0.1 ms, about the fastest answer, to 26 s, in steps of 4.
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_1, 4.0, 10));
        let http_seconds = Family::new_with_constructor(histogram);
        registry.register(
            "http_request_seconds",
            "Time until the response's head",
            http_seconds.clone(),
        );
        let tcp_requests = Family::default();
        registry.register(
            "tcp_requests",
            "Binary requests answered",
            tcp_requests.clone(),
        );
        let stream_pages = Counter::default();
        registry.register(
            "stream_pages",
            "Pages of streams made for subscribers",
            stream_pages.clone(),
        );
        rehydrations.register(&mut registry);
        registry.register_collector(Box::new(StoreCounters {
            store,
            connections,
            memory,
        }));
        Self {
            registry,
            http_requests,
            http_seconds,
            tcp_requests,
            stream_pages,
        }
    }

    /// Counts a request that was answered.
    pub(crate) fn http(&self, route: &str, method: &str, status: u16, took: Duration) {
        let labels = HttpLabels {
            route: route.to_owned(),
            method: method.to_owned(),
            status,
        };
        self.http_requests.get_or_create(&labels).inc();
        let HttpLabels { route, method, .. } = labels;
        self.http_seconds
            .get_or_create(&RouteLabels { route, method })
            .observe(took.as_secs_f64());
    }

    /// Counts a binary request that was answered; `status` is 0 for success.
    pub(crate) fn tcp(&self, message: &'static str, status: u16) {
        self.tcp_requests
            .get_or_create(&TcpLabels { message, status })
            .inc();
    }

    /// Counts a page of a stream that was made. Subscribers share it, so it is sent more often.
    pub(crate) fn count_stream_page(&self) {
        self.stream_pages.inc();
    }

    /// All counters as text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

struct StoreCounters {
    store: StoreHandle,
    connections: Connections,
    memory: MemoryBudget,
}

impl fmt::Debug for StoreCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreCounters")
    }
}

impl Collector for StoreCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let stats = self.store.store().stats();
        for row in counters(&stats) {
            row.encode(&ConstCounter::new(row.value), &mut encoder)?;
        }
        for row in gauges(&stats).into_iter().chain(self.server_gauges()) {
            let value = i64::try_from(row.value).unwrap_or(i64::MAX);
            row.encode(&ConstGauge::new(value), &mut encoder)?;
        }
        Ok(())
    }
}

impl StoreCounters {
    fn server_gauges(&self) -> [Row; 5] {
        let Self {
            store,
            connections,
            memory,
        } = self;
        let row = |name, help, value: usize| Row::new(name, help, value as u64);
        [
            row(
                "connections",
                "Open connections on both ports",
                connections.open_count(),
            ),
            row(
                "memory_budget_bytes",
                "What large requests and answers may hold together",
                memory.total_bytes(),
            ),
            row(
                "memory_used_bytes",
                "What large requests and answers hold together",
                memory.used_bytes(),
            ),
            row(
                "memory_waiting_requests",
                "Large requests that wait for memory",
                memory.waiting(),
            ),
            row(
                "queue_commands",
                "Commands that wait for the writer",
                store.queued(),
            ),
        ]
    }
}

/// A value that is read at each scrape.
struct Row {
    name: &'static str,
    help: &'static str,
    value: u64,
}

impl Row {
    fn new(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, value }
    }

    fn encode(
        &self,
        metric: &impl EncodeMetric,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> fmt::Result {
        let kind = metric.metric_type();
        metric.encode(encoder.encode_descriptor(self.name, self.help, None, kind)?)
    }
}

fn counters(stats: &Stats) -> [Row; 7] {
    [
        Row::new("turns", "Turns ever appended", stats.turns),
        Row::new("contexts", "Contexts ever created", stats.contexts),
        Row::new("blobs", "Distinct blobs", stats.blobs),
        Row::new("bundles", "Registry bundles ever published", stats.bundles),
        Row::new("events", "Events in the feed", stats.events),
        Row::new(
            "commit_groups",
            "Groups committed since start",
            stats.groups,
        ),
        Row::new("commands", "Commands logged since start", stats.commands),
    ]
}

fn gauges(stats: &Stats) -> [Row; 7] {
    [
        Row::new("types", "Types in the registry", stats.types),
        Row::new(
            "blob_raw_bytes",
            "Uncompressed bytes of all distinct blobs",
            stats.blob_raw_bytes,
        ),
        Row::new(
            "blob_stored_bytes",
            "Bytes of all distinct blobs as kept",
            stats.blob_stored_bytes,
        ),
        Row::new(
            "log_bytes",
            "Bytes of log up to its last frame",
            stats.log_bytes,
        ),
        Row::new(
            "log_position",
            "The last frame's position in the log",
            stats.log_position,
        ),
        Row::new("index_bytes", "Bytes of index on disk", stats.index_bytes),
        Row::new(
            "poisoned",
            "1 when the log cannot be written until a restart",
            stats.poisoned.into(),
        ),
    ]
}
