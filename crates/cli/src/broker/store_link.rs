//! The way of captured turns from this process to the turn store.
//!
//! If a server runs, the link connects to it once and keeps the connection. When the connection is
//! lost, the link finds the store anew and passes the same turns again, which is safe because they
//! have idempotency keys. If no server runs, the link starts one for each call and ends it
//! afterwards, so that other commands can use the data directory in between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::sync::Mutex;
use turnkeep_client::Error;
use turnkeep_client::capture::{CaptureConnection, Kept};
use turnkeep_types::ContextId;
use turnkeep_types::broker::FoundTurn;
use turnkeep_wire::capture::context_labels;

use crate::config::Config;
use crate::http::{Call, Http, Target};
use crate::session::{Need, StoreSession};

/// How long a turn waits for the labels of its context.
const LABEL_TIME_MAX: Duration = Duration::from_secs(2);
/// A connection that was unused for longer is opened anew: what lies between may have forgotten it,
/// and then the next turn would wait for an answer that never comes.
const IDLE_MAX: Duration = Duration::from_mins(1);

/// The results of one call, one per turn.
pub(crate) type KeptTurns = Vec<Result<Kept, Error>>;

/// The way to the store that this configuration names.
pub(crate) struct StoreLink {
    config: Config,
    kept_open: Mutex<Option<KeptOpen>>,
}

/// The connection of the last call.
struct KeptOpen {
    connection: Arc<StoreConnection>,
    used_at: Instant,
}

/// A connection to a store's server.
struct StoreConnection {
    store: CaptureConnection,
    /// Where the labels of contexts are set: the binary protocol has no request for it.
    http: Target,
}

impl StoreLink {
    /// A link that is opened when it is first used.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            kept_open: Mutex::new(None),
        }
    }

    /// Keeps turns in their order and waits until they are durable. Fails as a whole if there is no
    /// way to the store.
    pub(crate) async fn keep(&self, turns: &[FoundTurn]) -> Result<KeptTurns> {
        // A statement of its own, so that the lock is free while the turns are sent.
        let open = usable(&mut *self.kept_open.lock().await);
        if let Some(connection) = open {
            let kept = connection.keep(turns).await;
            if !connection.store.is_lost() {
                return Ok(kept);
            }
        }
        self.keep_anew(turns).await
    }

    /// Finds the store and keeps the turns there.
    async fn keep_anew(&self, turns: &[FoundTurn]) -> Result<KeptTurns> {
        // Held until the store is reached: others would only compete for the data directory.
        let mut kept_open = self.kept_open.lock().await;
        // Another caller may have connected while this one waited for the lock.
        if let Some(connection) = usable(&mut kept_open) {
            drop(kept_open);
            return Ok(connection.keep(turns).await);
        }
        let mut session = StoreSession::open(&self.config, Need::Write).await?;
        if session.is_own() {
            let kept = keep_once(&mut session, turns).await;
            session.close().await;
            return kept;
        }
        let connection = Arc::new(StoreConnection::open(&mut session).await?);
        *kept_open = Some(KeptOpen {
            connection: Arc::clone(&connection),
            used_at: Instant::now(),
        });
        drop(kept_open);
        Ok(connection.keep(turns).await)
    }

    /// Keeps one turn.
    pub(crate) async fn keep_one(&self, turn: &FoundTurn) -> Result<Kept> {
        let kept = self.keep(std::slice::from_ref(turn)).await?.pop();
        Ok(kept.ok_or_else(|| anyhow!("the store gave no answer"))??)
    }
}

/// Keeps turns over a connection that ends with the command's own server.
async fn keep_once(session: &mut StoreSession, turns: &[FoundTurn]) -> Result<KeptTurns> {
    let connection = StoreConnection::open(session).await?;
    Ok(connection.keep(turns).await)
}

/// The connection of an earlier call, if it can be used again.
fn usable(kept_open: &mut Option<KeptOpen>) -> Option<Arc<StoreConnection>> {
    let last = kept_open.as_mut()?;
    if last.connection.store.is_lost() || last.used_at.elapsed() > IDLE_MAX {
        *kept_open = None;
        return None;
    }
    last.used_at = Instant::now();
    Some(Arc::clone(&last.connection))
}

impl StoreConnection {
    async fn open(session: &mut StoreSession) -> Result<Self> {
        let client = session.binary_client().await?;
        Ok(Self {
            store: CaptureConnection::open(client).await?,
            http: session.http.target().clone(),
        })
    }

    async fn keep(&self, turns: &[FoundTurn]) -> KeptTurns {
        for turn in turns {
            // A context that is not found here is not found below either, where that is reported.
            if let Ok(context) = self.store.find_context(&turn.session).await
                && context.is_new
            {
                self.label(context.id, turn).await;
            }
        }
        self.store.keep(turns).await
    }

    /// Labels a context that has no turn yet. From the first turn on, the labels belong to the
    /// user, who may have changed or removed them.
    async fn label(&self, context: ContextId, turn: &FoundTurn) {
        let labels = json!({ "labels": context_labels(turn) });
        let call = Call::patch(format!("/v1/contexts/{context}"), &labels);
        let mut http = Http::new(self.http.clone());
        let labelled = match tokio::time::timeout(LABEL_TIME_MAX, http.json(call)).await {
            Ok(answered) => answered,
            Err(_) => Err(anyhow!("the server does not answer")),
        };
        // A turn is kept even if its context has no labels.
        if let Err(error) = labelled {
            tracing::warn!(error = format!("{error:#}"), %context, "a context has no labels");
        }
    }
}
