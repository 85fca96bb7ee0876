//! Keeps captured turns in the store of this process, without a connection.
//!
//! The turns pass the same limits as those of clients and have the same idempotency keys, so a turn
//! that is kept here and over a connection is stored once. Contexts and bundles are never deleted,
//! so each session's context is looked up once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use turnkeep_store::blob::verifying_bytes;
use turnkeep_store::{
    Append, AppendPart, Command, CreateContext, NewBlob, NewTurn, Outcome, projection,
};
use turnkeep_types::broker::{FoundTurn, Stored};
use turnkeep_types::{Compression, ContextId};
use turnkeep_wire::capture;

use super::sinks::TurnKeeper;
use crate::convert;
use crate::error::ApiError;
use crate::guarded_store::{WriteGrant, WriteTarget};
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// The most sessions whose context is cached. Looking a context up again is safe, only slower.
const CONTEXTS_MAX: usize = 4096;

/// Keeps captured turns in the store of this process.
pub(crate) struct StoreKeeper {
    shared: Arc<Shared>,
    runtime: Handle,
    published: OnceCell<()>,
    contexts: Mutex<HashMap<String, ContextId>>,
}

impl StoreKeeper {
    /// Must be called on the server's runtime.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            runtime: Handle::current(),
            published: OnceCell::new(),
            contexts: Mutex::default(),
        }
    }

    async fn keep_turn(&self, turn: &FoundTurn) -> Result<Stored, ApiError> {
        self.published.get_or_try_init(|| self.publish()).await?;
        let context = self.find_context(turn).await?;
        let grant = self
            .shared
            .store
            .grant_write(WriteTarget::Context(context))?;
        let command = self.append_command(context, turn).await?;
        let Outcome::Appended(appended) = self.shared.store.run(grant, command).await? else {
            return Err(ApiError::internal("an append had another outcome"));
        };
        let stored = appended.turns.first();
        let stored = stored.ok_or_else(|| ApiError::internal("an append without a turn"))?;
        Ok(Stored {
            context,
            turn: stored.turn,
        })
    }

    async fn publish(&self) -> Result<(), ApiError> {
        let json = Bytes::from_static(capture::BUNDLE.as_bytes());
        self.shared
            .publish_bundle(capture::BUNDLE_ID.to_owned(), json)
            .await?;
        Ok(())
    }

    /// Returns the context of the turn's session. Creates and labels it for the first turn.
    async fn find_context(&self, turn: &FoundTurn) -> Result<ContextId, ApiError> {
        if let Some(context) = self.lock_contexts().get(&turn.session) {
            return Ok(*context);
        }
        let create = CreateContext {
            key: convert::key(&self.shared.policy, capture::context_key(&turn.session))?,
            ..CreateContext::default()
        };
        let create = Command::CreateContext(create);
        let created = self.shared.store.run(WriteGrant::NEW_OBJECT, create).await;
        let Outcome::Created(created) = created? else {
            return Err(ApiError::internal("a creation had another outcome"));
        };
        let context = created.context;
        if let Err(error) = self.label_empty(context, turn).await {
            // A turn is kept even if its context cannot have these labels.
            tracing::warn!(%error, %context, "a context has no labels");
        }
        let mut contexts = self.lock_contexts();
        // Clearing is enough: the keys find the contexts again.
        if contexts.len() >= CONTEXTS_MAX {
            contexts.clear();
        }
        contexts.insert(turn.session.clone(), context);
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
    async fn append_command(
        &self,
        context: ContextId,
        turn: &FoundTurn,
    ) -> Result<Command, ApiError> {
        let payload_bytes = turn.content.len() + turn.text.as_ref().map_or(0, String::len);
        if payload_bytes < LARGE_FROM_BYTES {
            return self.make_append(context, turn);
        }
        // For the payload, and for its compressed form.
        let bytes = payload_bytes + verifying_bytes(payload_bytes, 0, Compression::None);
        let permit = self.shared.memory.acquire(bytes).await?;
        permit.during_command(|| self.make_append(context, turn))
    }

    fn make_append(&self, context: ContextId, turn: &FoundTurn) -> Result<Command, ApiError> {
        let policy = &self.shared.policy;
        let payload = NewBlob::from_raw(capture::payload(turn), policy.limits.blob_bytes_max)?;
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
        Ok(Command::Append(Append {
            parts: vec![part],
            key: convert::key(policy, capture::turn_key(turn))?,
            strict: policy.strict_types,
        }))
    }

    fn lock_contexts(&self) -> MutexGuard<'_, HashMap<String, ContextId>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
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
