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
        for (name, help, value) in counters(&stats) {
            let metric = ConstCounter::new(value);
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        let now = [
            (
                "connections",
                "Open connections on both ports",
                self.connections.open_count(),
            ),
            (
                "memory_budget_bytes",
                "What large requests and answers may hold together",
                self.memory.total_bytes(),
            ),
            (
                "memory_used_bytes",
                "What large requests and answers hold together",
                self.memory.used_bytes(),
            ),
            (
                "memory_waiting_requests",
                "Large requests that wait for memory",
                self.memory.waiting(),
            ),
            (
                "queue_commands",
                "Commands that wait for the writer",
                self.store.queued(),
            ),
        ];
        let now = now.map(|(name, help, value)| (name, help, value as u64));
        for (name, help, value) in gauges(&stats).into_iter().chain(now) {
            let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        Ok(())
    }
}

type Row = (&'static str, &'static str, u64);

fn counters(stats: &Stats) -> [Row; 7] {
    [
        ("turns", "Turns ever appended", stats.turns),
        ("contexts", "Contexts ever created", stats.contexts),
        ("blobs", "Distinct blobs", stats.blobs),
        ("bundles", "Registry bundles ever published", stats.bundles),
        ("events", "Events in the feed", stats.events),
        (
            "commit_groups",
            "Groups committed since start",
            stats.groups,
        ),
        ("commands", "Commands logged since start", stats.commands),
    ]
}

fn gauges(stats: &Stats) -> [Row; 7] {
    [
        ("types", "Types in the registry", stats.types),
        (
            "blob_raw_bytes",
            "Uncompressed bytes of all distinct blobs",
            stats.blob_raw_bytes,
        ),
        (
            "blob_stored_bytes",
            "Bytes of all distinct blobs as kept",
            stats.blob_stored_bytes,
        ),
        (
            "log_bytes",
            "Bytes of log up to its last frame",
            stats.log_bytes,
        ),
        (
            "log_position",
            "The last frame's position in the log",
            stats.log_position,
        ),
        ("index_bytes", "Bytes of index on disk", stats.index_bytes),
        (
            "poisoned",
            "1 when the log cannot be written until a restart",
            stats.poisoned.into(),
        ),
    ]
}
