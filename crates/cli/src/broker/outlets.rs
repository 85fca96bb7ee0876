//! What the broker's sinks reach from here: the desktop's clipboard, the turn store and the nodes of
//! runs.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::runtime::Handle;
use turnkeep_pty::desktop::{Adapter, ClipboardProvider};
use turnkeep_server::broker::{Clipboard, NodeChat, Outlets, TurnKeeper};
use turnkeep_session::broker::NodeAddress;
use turnkeep_types::broker::{FoundTurn, Reason, Refusal, Stored};
use turnkeep_wire::percent_encode;

use super::serve::ServerParts;
use super::store_link::StoreLink;
use crate::config::Config;
use crate::desktop::desktop_environment;
use crate::http::Call;
use crate::session::StoreSession;

/// The outlets that this process can offer. Must be called on the runtime that serves them.
/// `beside` is the server of this process, if there is one.
pub(crate) fn outlets(config: &Config, beside: Option<&ServerParts>) -> Outlets {
    let clipboard = DesktopClipboard {
        adapter: config.desktop.clipboard.value,
        open: Mutex::new(None),
    };
    let (keeper, nodes): (Arc<dyn TurnKeeper>, Arc<dyn NodeChat>) = match beside {
        Some(server) => (Arc::clone(&server.store), Arc::clone(&server.nodes)),
        None => (
            Arc::new(LinkedStore {
                link: StoreLink::new(config.clone()),
                runtime: Handle::current(),
            }),
            Arc::new(LinkedNodes {
                config: config.clone(),
                runtime: Handle::current(),
            }),
        ),
    };
    Outlets {
        clipboard: Some(Arc::new(clipboard)),
        keeper: Some(keeper),
        nodes: Some(nodes),
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
        let opened = desktop_environment().clipboard(self.adapter);
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

/// Reaches the nodes of the server that every command finds, for a broker that runs without one.
struct LinkedNodes {
    config: Config,
    runtime: Handle,
}

impl LinkedNodes {
    async fn send(&self, to: &NodeAddress, text: &str) -> Result<(), Refusal> {
        let opened = StoreSession::open_served(&self.config).await;
        let no_runtime = |error| Refusal::new(Reason::NoRuntime, format!("{error:#}"));
        let mut session = opened.map_err(no_runtime)?;
        let path = format!("/api/runs/{}/chat", percent_encode(&to.run));
        let body = json!({ "content": text, "nodeId": to.node });
        let sent = session.http.json(Call::post(path, &body)).await;
        sent.map(drop)
            .map_err(|error| Refusal::new(Reason::SinkFailed, format!("{error:#}")))
    }
}

impl NodeChat for LinkedNodes {
    fn say(&self, to: &NodeAddress, text: &str) -> Result<(), Refusal> {
        self.runtime.block_on(self.send(to, text))
    }
}
