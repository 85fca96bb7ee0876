//! What the broker's sinks reach from here: the desktop's clipboard and the turn store.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use turnkeep_client::capture::{CaptureStore, Kept};
use turnkeep_pty::desktop::{Adapter, ClipboardProvider};
use turnkeep_server::broker::{Clipboard, Keeper, Outlets};
use turnkeep_types::broker::{FoundTurn, Reason, Refusal, Stored};

use crate::config::Config;
use crate::desktop::surroundings;
use crate::http::{Call, Http};
use crate::session::{Need, Session};

/// The outlets that this process can offer. To be called on the runtime that serves them.
pub(crate) fn outlets(config: &Config) -> Outlets {
    let clipboard = DesktopClipboard { adapter: config.desktop.clipboard.value, open: Mutex::new(None) };
    let keeper = StoreKeeper { config: config.clone(), runtime: Handle::current() };
    Outlets { clipboard: Some(Arc::new(clipboard)), keeper: Some(Arc::new(keeper)) }
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
        Ok(opened.map_err(|error| Refusal::new(Reason::NoClipboard, error.to_string()))?.part)
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

/// Keeps turns through the client, in the store that every command finds.
struct StoreKeeper {
    config: Config,
    runtime: Handle,
}

impl Keeper for StoreKeeper {
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String> {
        let kept = self.runtime.block_on(keep(&self.config, turn));
        let stored = kept.map(|kept| Stored { context: kept.context, turn: kept.ack.turn });
        stored.map_err(|error| format!("{error:#}"))
    }
}

/// Keeps a turn in the store that is within reach; starts one where there is none.
pub(crate) async fn keep(config: &Config, turn: &FoundTurn) -> Result<Kept> {
    let mut session = Session::open(config, Need::Write).await?;
    let kept = keep_in(&mut session, turn).await;
    session.close().await;
    kept
}

async fn keep_in(session: &mut Session, turn: &FoundTurn) -> Result<Kept> {
    let kept = CaptureStore::new(session.client().await?).keep(turn).await?;
    // The turn is durable: a label that cannot be set is no reason to say otherwise.
    if let Err(error) = label(&mut session.http, &format!("/v1/contexts/{}", kept.context), turn).await {
        tracing::warn!(error = format!("{error:#}"), context = %kept.context, "a context has no labels");
    }
    Ok(kept)
}

/// Writes on a context whose turns it holds, where that is not written yet.
async fn label(http: &mut Http, path: &str, turn: &FoundTurn) -> Result<()> {
    let found = http.json(Call::get(path)).await?;
    let mut labels = found.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let wanted =
        [("session", Some(&turn.session)), ("name", turn.name.as_ref()), ("preset", turn.preset.as_ref())];
    let before = labels.len();
    for (key, value) in wanted.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        labels.entry(key).or_insert_with(|| value.as_str().into());
    }
    if labels.len() > before {
        http.json(Call::patch(path, &json!({ "labels": labels }))).await?;
    }
    Ok(())
}
