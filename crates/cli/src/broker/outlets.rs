//! What the broker's sinks reach from here: the desktop's clipboard and the turn store.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use turnkeep_pty::desktop::{Adapter, ClipboardProvider};
use turnkeep_server::broker::{Clipboard, Outlets, TurnKeeper};
use turnkeep_types::broker::{FoundTurn, Reason, Refusal, Stored};

use super::store_link::StoreLink;
use crate::config::Config;
use crate::desktop::surroundings;

/// The outlets that this process can offer. Must be called on the runtime that serves them.
/// `own_store` keeps turns in the store of this process, if there is one.
pub(crate) fn outlets(config: &Config, own_store: Option<Arc<dyn TurnKeeper>>) -> Outlets {
    let clipboard = DesktopClipboard {
        adapter: config.desktop.clipboard.value,
        open: Mutex::new(None),
    };
    let keeper = own_store.unwrap_or_else(|| {
        Arc::new(LinkedStore {
            link: StoreLink::new(config.clone()),
            runtime: Handle::current(),
        })
    });
    Outlets {
        clipboard: Some(Arc::new(clipboard)),
        keeper: Some(keeper),
    }
}

/// The clipboard of the desktop that is there when it is first needed.
struct DesktopClipboard {
    adapter: Adapter,
    /// Stays open: an X11 clipboard is served by whoever set it.
    open: Mutex<Option<Box<dyn ClipboardProvider>>>,
}

impl DesktopClipboard {
    fn provider(&self) -> Result<Box<dyn ClipboardProvider>, Refusal> {
        let opened = surroundings().clipboard(self.adapter);
        Ok(opened
            .map_err(|error| Refusal::new(Reason::NoClipboard, error.to_string()))?
            .provider)
    }
}

impl Clipboard for DesktopClipboard {
    fn write(&self, content: &[u8]) -> Result<(), Refusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut provider = match open.take() {
            Some(provider) => provider,
            None => self.provider()?,
        };
        let written = provider.write(content);
        written.map_err(|error| Refusal::new(Reason::SinkFailed, error.to_string()))?;
        // One that failed is not kept: the desktop may have been restarted.
        *open = Some(provider);
        Ok(())
    }
}

/// Keeps turns in the store that every command finds, for a broker that runs without a server.
struct LinkedStore {
    link: StoreLink,
    runtime: Handle,
}

impl TurnKeeper for LinkedStore {
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String> {
        let kept = self.runtime.block_on(self.link.keep_one(turn));
        let stored = kept.map(|kept| Stored {
            context: kept.context,
            turn: kept.ack.turn,
        });
        stored.map_err(|error| format!("{error:#}"))
    }
}
