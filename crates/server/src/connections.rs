//! How many connections both ports may hold together.
//!
//! The process raises its file limit to the hard limit and reserves some files for the log. So a
//! flood of connections gets refusals and cannot make an append fail.

use std::sync::Arc;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Files that are reserved for the log, the index and the listeners: without them, many connections
/// could stop the writer.
const FILES_KEPT_BACK: u64 = 128;
/// The limit where the system sets none.
const CONNECTIONS_MAX: u64 = 1 << 20;

/// Counts connections against a maximum. The two ports share one; the broker's socket has its own.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    free: Arc<Semaphore>,
    max: usize,
}

impl Connections {
    /// Allows `max` connections.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(max)),
            max,
        }
    }

    /// A slot for one connection, held until the permit is dropped; none if the server is full.
    pub(crate) fn try_open(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Connections that are open now.
    pub(crate) fn open_count(&self) -> usize {
        self.max - self.free.available_permits()
    }
}

/// Raises the process's file limit to the hard limit. Returns how many connections it allows.
pub(crate) fn raise_file_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the file limit could not be raised");
        limit = getrlimit(Resource::Nofile);
    }
    let files = limit.current.unwrap_or(CONNECTIONS_MAX);
    // A very low limit still allows a few connections; an append may then fail for want of a file.
    let connections = files
        .saturating_sub(FILES_KEPT_BACK)
        .clamp(16, CONNECTIONS_MAX);
    usize::try_from(connections).unwrap_or(usize::MAX >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_permit_is_dropped() {
        let connections = Connections::new(1);
        let first = connections.try_open();
        assert!(first.is_some() && connections.try_open().is_none());
        assert_eq!(connections.open_count(), 1);
        drop(first);
        assert!(connections.try_open().is_some());
    }
}
