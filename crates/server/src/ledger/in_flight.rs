//! The running requests of a world by id. They are in memory only: after a crash, an id without an
//! outcome is free again.
//!
//! At most one request per id runs. The same request from the same caller waits for it and then
//! finds its outcome; any other use of the id is rejected.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use turnkeep_ledger::{Fault, Principal, outcome};

/// The running requests of one world.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<Arc<str>, RunningRequest>>);

#[derive(Debug)]
struct RunningRequest {
    principal: String,
    fingerprint: [u8; 32],
    done: watch::Receiver<()>,
}

/// What a request with an id may do.
pub(super) enum RequestSlot {
    /// Run. The id is reserved until the permit is dropped.
    Run(RequestPermit),
    /// Wait: the same request is running. This channel closes when it ends.
    Wait(watch::Receiver<()>),
}

/// Reserves a request id until it is dropped.
pub(super) struct RequestPermit {
    in_flight: Arc<InFlight>,
    request: Arc<str>,
    _done: watch::Sender<()>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, RunningRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves an id, or waits for the same request. Rejects an id that runs for another caller or
    /// for another request.
    pub(super) fn admit(
        self: &Arc<Self>,
        principal: &Principal,
        request: &Arc<str>,
        fingerprint: &[u8; 32],
    ) -> Result<RequestSlot, Fault> {
        // One lock for lookup and insert: two equal requests cannot both run.
        let mut running = self.lock();
        match running.get(request) {
            Some(other) if other.principal != principal.key() => Err(outcome::foreign_id_fault()),
            Some(other) if other.fingerprint != *fingerprint => Err(outcome::reused_id_fault()),
            Some(same) => Ok(RequestSlot::Wait(same.done.clone())),
            None => {
                let (sender, done) = watch::channel(());
                let row = RunningRequest {
                    principal: principal.key(),
                    fingerprint: *fingerprint,
                    done,
                };
                running.insert(Arc::clone(request), row);
                Ok(RequestSlot::Run(RequestPermit {
                    in_flight: Arc::clone(self),
                    request: Arc::clone(request),
                    _done: sender,
                }))
            }
        }
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.request);
    }
}
