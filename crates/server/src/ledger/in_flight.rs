//! Requests that run now, by id, in memory only: after a crash an id without an outcome is free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use turnkeep_ledger::{Fault, Principal, outcome};

/// The requests of a world that run now.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<Arc<str>, Running>>);

#[derive(Debug)]
struct Running {
    principal: String,
    fingerprint: [u8; 32],
    done: watch::Receiver<()>,
}

/// What may be done with an id.
pub(super) enum Entry {
    /// It is ours until the pass is dropped.
    Ours(Pass),
    /// The same request runs; when it ends, this channel closes.
    Wait(watch::Receiver<()>),
}

/// The right to use an id; given back when dropped.
pub(super) struct Pass {
    flights: Arc<InFlight>,
    request: Arc<str>,
    _done: watch::Sender<()>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for an id. Somebody else's, or one that runs for something else, is refused.
    pub(super) fn enter(
        self: &Arc<Self>,
        principal: &Principal,
        request: &Arc<str>,
        fingerprint: &[u8; 32],
    ) -> Result<Entry, Fault> {
        let mut running = self.lock();
        match running.get(request) {
            Some(other) if other.principal != principal.key() => Err(outcome::foreign_id_fault()),
            Some(other) if other.fingerprint != *fingerprint => Err(outcome::reused_id_fault()),
            Some(same) => Ok(Entry::Wait(same.done.clone())),
            None => {
                let (sender, done) = watch::channel(());
                let row = Running {
                    principal: principal.key(),
                    fingerprint: *fingerprint,
                    done,
                };
                running.insert(Arc::clone(request), row);
                Ok(Entry::Ours(Pass {
                    flights: Arc::clone(self),
                    request: Arc::clone(request),
                    _done: sender,
                }))
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.request);
    }
}
