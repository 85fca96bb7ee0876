//! Word of worlds that changed, for the owner: which, never what.
//!
//! A world changed when something was recorded in it, except that somebody looked: a line of audit
//! alone is no news, or whoever looks again on news would never come to rest. Who is slow misses
//! word of single changes and is told of every world instead.

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::Name;

/// Changes that may wait for whoever listens.
const CHANGES_MAX: usize = 256;

/// Where worlds say that they changed.
#[derive(Debug)]
pub(super) struct Teller(Sender<Name>);

impl Default for Teller {
    fn default() -> Self {
        Self(Sender::new(CHANGES_MAX))
    }
}

impl Teller {
    /// Whether what was recorded in a world is worth telling.
    pub(super) fn is_news(recorded: &[Fact]) -> bool {
        recorded
            .iter()
            .any(|fact| !matches!(fact, Fact::AuditLine(_)))
    }

    /// Tells whoever listens that a world is there or changed.
    pub(super) fn tell_of(&self, world: &Name) {
        // An error says that nobody listens.
        self.0.send(world.clone()).ok();
    }

    /// Begins to listen.
    pub(super) fn listen(&self) -> News {
        News(self.0.subscribe())
    }
}

/// Word of worlds, from now on.
#[derive(Debug)]
pub(crate) struct News(Receiver<Name>);

impl News {
    /// The next world that changed; none when word of some was missed. Never, once there are no
    /// more worlds.
    pub(crate) async fn next(&mut self) -> Option<Name> {
        match self.0.recv().await {
            Ok(world) => Some(world),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
