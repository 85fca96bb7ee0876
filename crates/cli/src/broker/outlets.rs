//! What the broker's sinks reach from here: the desktop's clipboard and the turn store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use turnkeep_client::capture::{CaptureStore, Kept};
use turnkeep_pty::desktop::{Adapter, ClipboardProvider};
use turnkeep_server::broker::{Clipboard, Keeper, Outlets};
use turnkeep_types::broker::{FoundTurn, Reason, Refusal, Stored};

use crate::config::Config;
use crate::desktop::desktop_environment;
use crate::http::{Call, Http};
use crate::session::{Need, StoreSession};

/// How long a turn waits for the labels of its context.
const LABEL_TIME_MAX: Duration = Duration::from_secs(2);

/// The outlets that this process can offer. To be called on the runtime that serves them.
pub(crate) fn outlets(config: &Config) -> Outlets {
    let clipboard = DesktopClipboard {
        adapter: config.desktop.clipboard.value,
        open: Mutex::new(None),
    };
    let keeper = StoreKeeper {
        config: config.clone(),
        runtime: Handle::current(),
    };
    Outlets {
        clipboard: Some(Arc::new(clipboard)),
        keeper: Some(Arc::new(keeper)),
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

/// Keeps turns through the client, in the store that every command finds.
struct StoreKeeper {
    config: Config,
    runtime: Handle,
}

impl Keeper for StoreKeeper {
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String> {
        let kept = self.runtime.block_on(keep(&self.config, turn));
        let stored = kept.map(|kept| Stored {
            context: kept.context,
            turn: kept.ack.turn,
        });
        stored.map_err(|error| format!("{error:#}"))
    }
}

/// Keeps a turn in the store that is within reach; starts one where there is none.
pub(crate) async fn keep(config: &Config, turn: &FoundTurn) -> Result<Kept> {
    let mut session = StoreSession::open(config, Need::Write).await?;
    let kept = keep_in(&mut session, turn).await;
    session.close().await;
    kept
}

async fn keep_in(session: &mut StoreSession, turn: &FoundTurn) -> Result<Kept> {
    let store = CaptureStore::new(session.binary_client().await?);
    let context = store.context(&turn.session).await?;
    // A label that cannot be set, or not soon, is no reason not to keep the turn.
    let path = format!("/v1/contexts/{context}");
    let labelled =
        tokio::time::timeout(LABEL_TIME_MAX, label(&mut session.http, &path, turn)).await;
    if let Err(error) = labelled.unwrap_or_else(|_| Err(anyhow!("the server does not answer"))) {
        tracing::warn!(error = format!("{error:#}"), %context, "a context has no labels");
    }
    Ok(store.keep(turn).await?)
}

/// Writes on a context that is still empty whose turns it will hold. From the first turn on its
/// labels are its owner's: what is changed or taken off stays so.
async fn label(http: &mut Http, path: &str, turn: &FoundTurn) -> Result<()> {
    let found = http.json(Call::get(path)).await?;
    if found["head_turn_id"] != "0" {
        return Ok(());
    }
    let wanted = [
        ("session", Some(&turn.session)),
        ("name", turn.name.as_ref()),
        ("preset", turn.preset.as_ref()),
    ];
    let wanted = wanted
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.as_str().into())));
    let labels: Map<String, Value> = wanted.collect();
    http.json(Call::patch(path, &json!({ "labels": labels })))
        .await?;
    Ok(())
}
