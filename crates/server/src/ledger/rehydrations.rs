//! What the rehydrations of all worlds took along since the server started, for its counters.
//!
//! The counters have no labels: how many there are does not grow with worlds or people, and none is
//! named.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use turnkeep_ledger::epoch::RehydrationCounts;

/// What rehydrations took along.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rehydrations {
    count: Counter,
    carried: Counter,
    dropped: Counter,
}

impl Rehydrations {
    /// Counts one that was recorded.
    pub(super) fn count(&self, carried: RehydrationCounts) {
        self.count.inc();
        self.carried.inc_by(carried.entries);
        self.dropped.inc_by(carried.dropped);
    }

    /// Shows the counters among the others.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            (
                "rehydrations",
                "Times that an attached writer was full and began anew",
                &self.count,
            ),
            (
                "rehydration_carried_entries",
                "Entries that rehydrations quoted",
                &self.carried,
            ),
            (
                "rehydration_dropped_entries",
                "Entries that rehydrations left out",
                &self.dropped,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}
