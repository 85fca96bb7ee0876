//! Counters of the rehydrations of all worlds since the server started.
//!
//! The counters have no labels, so their number does not grow with worlds or people, and they name
//! none.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use turnkeep_ledger::epoch::RehydrationCounts;

/// The counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rehydrations {
    count: Counter,
    carried: Counter,
    dropped: Counter,
}

impl Rehydrations {
    /// Counts a recorded rehydration.
    pub(super) fn add(&self, carried: RehydrationCounts) {
        self.count.inc();
        self.carried.inc_by(carried.entries);
        self.dropped.inc_by(carried.dropped);
    }

    /// Adds the counters to the registry.
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
