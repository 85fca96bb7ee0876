//! Notifies the owner which worlds changed, but not what changed in them.
//!
//! An audit line alone is not a change: a client that reads again after each notification, and is
//! audited for it, would never stop. A slow subscriber misses single notifications and learns
//! instead that any world may have changed.

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::Name;

/// How many notifications may wait for a subscriber.
const CHANGES_MAX: usize = 256;

/// Sends the names of worlds that changed.
#[derive(Debug)]
pub(super) struct WorldChangeNotifier(Sender<Name>);

impl Default for WorldChangeNotifier {
    fn default() -> Self {
        Self(Sender::new(CHANGES_MAX))
    }
}

impl WorldChangeNotifier {
    /// Whether these facts change a world visibly for its owner.
    pub(super) fn is_change(recorded: &[Fact]) -> bool {
        recorded
            .iter()
            .any(|fact| !matches!(fact, Fact::AuditLine(_)))
    }

    /// Notifies all subscribers that a world was created or changed.
    pub(super) fn notify(&self, world: &Name) {
        // An error means that there is no subscriber.
        self.0.send(world.clone()).ok();
    }

    pub(super) fn subscribe(&self) -> WorldChanges {
        WorldChanges(self.0.subscribe())
    }
}

/// A subscription to changes of worlds.
#[derive(Debug)]
pub(crate) struct WorldChanges(Receiver<Name>);

impl WorldChanges {
    /// The next world that changed, or `None` if notifications were missed. It never returns once
    /// the server has no worlds any more.
    pub(crate) async fn next(&mut self) -> Option<Name> {
        match self.0.recv().await {
            Ok(world) => Some(world),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
