//! The connections of one port that have not shown a token yet.
//!
//! Anyone who reaches a port can open connections and send nothing. They cost files and memory, so
//! only [`UNAUTHENTICATED_MAX`] of them may be open at a time. For each further one the server closes
//! the connection that it heard least recently. So a flood of silent connections neither keeps an
//! honest client out nor ends one that sends requests without a token, such as a health check. A
//! connection leaves the list when it shows a token, and when it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Connections of one port that have not shown a token.
pub(crate) const UNAUTHENTICATED_MAX: usize = 1000;

/// The list of one port.
#[derive(Debug, Clone)]
pub(crate) struct Unauthenticated {
    list: Arc<Mutex<List>>,
    max: usize,
}

#[derive(Debug, Default)]
struct List {
    last_number: u64,
    /// In the order in which they were accepted.
    silent: BTreeMap<u64, CancellationToken>,
}

/// A connection in the list.
#[derive(Debug, Clone)]
pub(crate) struct Newcomer(Arc<Place>);

#[derive(Debug)]
struct Place {
    list: Arc<Mutex<List>>,
    /// Changes only under the list's lock.
    number: AtomicU64,
    evicted: CancellationToken,
}

impl Unauthenticated {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            list: Arc::default(),
            max,
        }
    }

    /// Adds a connection. If there are too many, this evicts the least recently heard one.
    pub(crate) fn enter(&self) -> Newcomer {
        let evicted = CancellationToken::new();
        let mut list = lock(&self.list);
        let number = list.insert_last(evicted.clone());
        while list.silent.len() > self.max {
            let Some((_, oldest)) = list.silent.pop_first() else {
                break;
            };
            oldest.cancel();
        }
        drop(list);
        Newcomer(Arc::new(Place {
            list: Arc::clone(&self.list),
            number: AtomicU64::new(number),
            evicted,
        }))
    }
}

impl List {
    fn insert_last(&mut self, evicted: CancellationToken) -> u64 {
        self.last_number += 1;
        self.silent.insert(self.last_number, evicted);
        self.last_number
    }
}

impl Newcomer {
    /// The connection has sent a request. Without a token it stays in the list, as the last that
    /// has to go.
    pub(crate) fn heard(&self) {
        let mut list = lock(&self.0.list);
        if let Some(evicted) = list.silent.remove(&self.0.number.load(Ordering::Relaxed)) {
            let number = list.insert_last(evicted);
            self.0.number.store(number, Ordering::Relaxed);
        }
    }

    /// The connection has shown a token, or needs none.
    pub(crate) fn authenticated(&self) {
        self.0.leave();
    }

    /// Waits until the connection is evicted; forever if it never is.
    pub(crate) async fn evicted(&self) {
        self.0.evicted.cancelled().await;
    }
}

impl Place {
    fn leave(&self) {
        let mut list = lock(&self.list);
        list.silent.remove(&self.number.load(Ordering::Relaxed));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

fn lock(list: &Mutex<List>) -> MutexGuard<'_, List> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(newcomer: &Newcomer) -> bool {
        newcomer.0.evicted.is_cancelled()
    }

    #[test]
    fn the_least_recently_heard_makes_place() {
        let port = Unauthenticated::new(2);
        let (first, second) = (port.enter(), port.enter());
        first.heard();
        let third = port.enter();
        assert!(!is_evicted(&first) && is_evicted(&second) && !is_evicted(&third));
        second.heard();
        first.authenticated();
        first.heard();
        let (fourth, fifth) = (port.enter(), port.enter());
        assert!(
            !is_evicted(&first) && is_evicted(&third),
            "one that has left does not come back"
        );
        assert!(!is_evicted(&fourth) && !is_evicted(&fifth));
    }

    #[test]
    fn the_oldest_without_a_token_makes_place() {
        let port = Unauthenticated::new(2);
        let (first, second) = (port.enter(), port.enter());
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let third = port.enter();
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&third));
        second.authenticated();
        let fourth = port.enter();
        assert!(
            !is_evicted(&second) && !is_evicted(&third),
            "a token frees a place"
        );
        drop(fourth);
        let fifth = port.enter();
        assert!(!is_evicted(&third) && !is_evicted(&fifth), "so does an end");
        let sixth = port.enter();
        assert!(is_evicted(&third) && !is_evicted(&second) && !is_evicted(&sixth));
    }
}
