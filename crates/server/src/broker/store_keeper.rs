//! Keeps captured turns in the store of this process, without a connection.
//!
//! The turns pass the same limits as those of clients and have the same idempotency keys, so a turn
//! that is kept here and over a connection is stored once. The turns of one session enter its
//! context in the order of the calls: a call waits for the calls before it. When the store refuses
//! a turn for now, the calls that wait behind it fail too, because a retry of the refused turn would
//! be appended behind theirs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use turnkeep_store::blob::verifying_bytes;
use turnkeep_store::{AppendPart, Command, CreateContext, NewBlob, NewTurn, projection};
use turnkeep_types::broker::{FoundTurn, Stored};
use turnkeep_types::{Compression, ContextId};
use turnkeep_wire::{ErrorCode, capture};

use super::sinks::TurnKeeper;
use crate::convert;
use crate::error::ApiError;
use crate::guarded_store::WriteTarget;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// The most sessions that are cached. Looking a context up again is safe, only slower.
const SESSIONS_MAX: usize = 4096;

/// Keeps captured turns in the store of this process.
pub(crate) struct StoreKeeper {
    shared: Arc<Shared>,
    runtime: Handle,
    has_published: OnceCell<()>,
    sessions: Mutex<HashMap<String, Arc<KeptSession>>>,
}

/// A session whose turns are kept.
#[derive(Default)]
struct KeptSession {
    /// The context, once it was looked up; contexts are never deleted. The lock is held while a
    /// turn is appended. It is fair, so the calls get it in the order in which they came.
    context: tokio::sync::Mutex<Option<ContextId>>,
    /// How many calls have failed so far and may be repeated.
    failures: AtomicU64,
}

impl StoreKeeper {
    /// Must be called on the server's runtime.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            runtime: Handle::current(),
            has_published: OnceCell::new(),
            sessions: Mutex::default(),
        }
    }

    async fn keep_turn(&self, turn: &FoundTurn) -> Result<Stored, ApiError> {
        let session = self.find_session(&turn.session);
        // Read before the wait: a failure that comes during the wait must stop this call.
        let failures_before = session.failures.load(Ordering::SeqCst);
        let mut context = session.context.lock().await;
        let kept = if session.failures.load(Ordering::SeqCst) == failures_before {
            self.append_turn(&mut context, turn).await
        } else {
            let message = "a turn before this one was refused: keep them again, in their order";
            Err(ApiError::new(ErrorCode::Unavailable, message))
        };
        // A turn that can never be kept is not tried again, so the later ones may go on.
        if kept.as_ref().is_err_and(|error| error.code.is_retryable()) {
            session.failures.fetch_add(1, Ordering::SeqCst);
        }
        kept
    }

    fn find_session(&self, id: &str) -> Arc<KeptSession> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(id) {
            // Only unused sessions may go: with two copies of a session, its turns could change
            // their order. The sinks bound how many are in use.
            sessions.retain(|_, session| Arc::strong_count(session) > 1);
        }
        Arc::clone(sessions.entry(id.to_owned()).or_default())
    }

    async fn append_turn(
        &self,
        context: &mut Option<ContextId>,
        turn: &FoundTurn,
    ) -> Result<Stored, ApiError> {
        // Once is enough: published bundles never change.
        self.has_published
            .get_or_try_init(|| self.publish_bundle())
            .await?;
        let context = match *context {
            Some(context) => context,
            None => *context.insert(self.find_context(turn).await?),
        };
        let store = &self.shared.store;
        let grant = store.grant_write(WriteTarget::Context(context))?;
        let command = self.make_append(context, turn).await?;
        let appended = store.append_one(grant, command).await?;
        Ok(Stored {
            context,
            turn: appended.turn.turn,
        })
    }

    async fn publish_bundle(&self) -> Result<(), ApiError> {
        let json = Bytes::from_static(capture::BUNDLE.as_bytes());
        self.shared
            .publish_bundle(capture::BUNDLE_ID.to_owned(), json)
            .await?;
        Ok(())
    }

    /// Returns the context of the turn's session. Creates and labels it for the first turn.
    async fn find_context(&self, turn: &FoundTurn) -> Result<ContextId, ApiError> {
        let create = CreateContext {
            key: convert::key(&self.shared.policy, capture::context_key(&turn.session))?,
            ..CreateContext::default()
        };
        // A key of the session: the context is made once, however often a broker starts.
        let context = self.shared.store.create_context(create).await?.context;
        if let Err(error) = self.label_empty(context, turn).await {
            // A turn is kept even if its context cannot have these labels.
            tracing::warn!(%error, %context, "a context has no labels");
        }
        Ok(context)
    }

    /// Labels a context that has no turn yet. From the first turn on, the labels belong to the
    /// user, who may have changed or removed them.
    async fn label_empty(&self, context: ContextId, turn: &FoundTurn) -> Result<(), ApiError> {
        let store = &self.shared.store;
        if store.context(context)?.head.is_some() {
            return Ok(());
        }
        let labels = convert::labels(&self.shared.policy, capture::context_labels(turn))?;
        let command = Command::SetLabels { context, labels };
        let grant = store.grant_write(WriteTarget::Context(context))?;
        store.run(grant, command).await?;
        Ok(())
    }

    /// Makes the command that appends the turn. A large one needs a permit.
    async fn make_append(&self, context: ContextId, turn: &FoundTurn) -> Result<Command, ApiError> {
        let payload_bytes = turn.content.len() + turn.text.as_ref().map_or(0, String::len);
        if payload_bytes < LARGE_FROM_BYTES {
            return self.encode_append(context, turn);
        }
        // For the payload, and for its compressed form.
        let bytes = payload_bytes + verifying_bytes(payload_bytes, 0, Compression::None);
        let permit = self.shared.memory.acquire(bytes).await?;
        permit.during_command(|| self.encode_append(context, turn))
    }

    fn encode_append(&self, context: ContextId, turn: &FoundTurn) -> Result<Command, ApiError> {
        let policy = &self.shared.policy;
        let payload = NewBlob::from_raw(
            capture::encode_turn_payload(turn),
            policy.limits.blob_bytes_max,
        )?;
        let new_turn = NewTurn {
            declared: capture::turn_type(),
            encoding: projection::ENCODING_MSGPACK,
            payload,
            fs_root: None,
        };
        let part = AppendPart {
            context,
            parent: None,
            expected_head: None,
            turns: vec![new_turn],
        };
        let key = convert::key(policy, capture::turn_key(turn))?;
        Ok(convert::append_part(policy, part, key))
    }
}

impl TurnKeeper for StoreKeeper {
    /// Called on a thread that may block: a sink's.
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String> {
        self.runtime
            .block_on(self.keep_turn(turn))
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
