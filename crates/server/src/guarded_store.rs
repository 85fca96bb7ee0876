//! The store as the handlers of both ports see it. [`GuardedStore`] wraps the store's handle and is
//! the handlers' only way to contexts, turns and blobs, so the rules about worlds live here alone.
//!
//! A world owns its contexts. Three rules protect them from the store's own routes:
//!
//! - A write needs a [`WriteGrant`]. The store grants none for a world's context: its ledger alone
//!   writes there. The same holds for the contexts of a run.
//! - Content (payloads, blobs, the event feed) needs a [`ContentReader`]. If a world owns the
//!   content, the store first records the read in that world's audit.
//! - Structure (ids, parents, depths, types, lengths, hashes) needs neither, and reading it leaves
//!   no audit line.
//!
//! A turn belongs to the context in which it was written, also where a fork shows it. A world that
//! cannot be read keeps its contexts: writes are refused, and reads leave no line because none can
//! be recorded.

mod content;

use std::sync::Arc;

use tokio::sync::watch;
use turnkeep_store::{
    AppendedTurn, Command, Context, CreateContext, Created, FsRoot, Outcome, ReadError, Registry,
    Stats, Store, Turn,
};
use turnkeep_types::{BlobHash, BlobPrefix, ContextId, TurnId};
use turnkeep_wire::ErrorCode;

pub(crate) use content::{ContentAccess, ContentReader};

use crate::error::ApiError;
use crate::handle::{Answer, StoreHandle, SubmitPermit};
use crate::ledger::Worlds;
use crate::memory::MemoryBudget;
use crate::runs::Runs;
use crate::workers::Workers;

/// The store behind the rules about worlds.
pub(crate) struct GuardedStore {
    handle: StoreHandle,
    worlds: Arc<Worlds>,
    runs: Arc<Runs>,
    memory: MemoryBudget,
    workers: Workers,
}

/// What a command changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTarget {
    /// A context: its turns or its labels.
    Context(ContextId),
    /// A turn: its filesystem root.
    Turn(TurnId),
}

/// The permission to submit commands that change one target, or that make something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteGrant(Option<WriteTarget>);

impl WriteGrant {
    /// Covers commands that make a context, a blob or a bundle: no world owns what is new.
    pub(crate) const NEW_OBJECT: Self = Self(None);

    fn covers(self, command: &Command) -> bool {
        match command {
            Command::CreateContext(_) | Command::PutBlob(_) | Command::PutBundle { .. } => true,
            Command::Append(append) => append
                .parts
                .iter()
                .all(|part| self.0 == Some(WriteTarget::Context(part.context))),
            Command::SetLabels { context, .. } => self.0 == Some(WriteTarget::Context(*context)),
            Command::AttachFs { turn, .. } => self.0 == Some(WriteTarget::Turn(*turn)),
        }
    }
}

/// A turn that was appended.
pub(crate) struct AppendedOne {
    pub(crate) turn: AppendedTurn,
    /// Whether an earlier request with the same key did it.
    pub(crate) replayed: bool,
}

/// What a [`GuardedStore`] is made from.
pub(crate) struct GuardedParts {
    pub(crate) handle: StoreHandle,
    pub(crate) worlds: Arc<Worlds>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) memory: MemoryBudget,
    pub(crate) workers: Workers,
}

impl GuardedStore {
    pub(crate) fn new(parts: GuardedParts) -> Self {
        Self {
            handle: parts.handle,
            worlds: parts.worlds,
            runs: parts.runs,
            memory: parts.memory,
            workers: parts.workers,
        }
    }

    /// Grants a write, unless a world or a run owns the target.
    pub(crate) fn grant_write(&self, target: WriteTarget) -> Result<WriteGrant, ApiError> {
        let context = match target {
            WriteTarget::Context(context) => Some(context),
            // No world owns a turn that does not exist. The store rejects the command itself.
            WriteTarget::Turn(turn) => self.turn(turn).ok().map(|turn| turn.context),
        };
        if let Some(context) = context
            && let Some(run) = self.runs.context_owner(context)
        {
            let message = format!("context {context} belongs to the run {run}: fork it to go on");
            let error = ApiError::new(ErrorCode::Forbidden, message);
            return Err(error.with("runId", run.to_string()));
        }
        if let Some(context) = context
            && let Some(world) = self.worlds.context_owner(context)
        {
            let message = format!(
                "context {context} belongs to the world {world}: write to it through its ledger"
            );
            let error = ApiError::new(ErrorCode::Forbidden, message);
            return Err(error.with("world_id", world.as_str()));
        }
        Ok(WriteGrant(Some(target)))
    }

    /// Runs a command to its outcome.
    pub(crate) async fn run(
        &self,
        grant: WriteGrant,
        command: Command,
    ) -> Result<Outcome, ApiError> {
        Ok(self.submit(grant, command).await?.await?)
    }

    /// Runs an append of one turn.
    pub(crate) async fn append_one(
        &self,
        grant: WriteGrant,
        command: Command,
    ) -> Result<AppendedOne, ApiError> {
        match self.run(grant, command).await? {
            Outcome::Appended(appended) => match appended.turns.into_iter().next() {
                Some(turn) => Ok(AppendedOne {
                    turn,
                    replayed: appended.replayed,
                }),
                None => Err(ApiError::internal("an append without a turn")),
            },
            _ => Err(ApiError::internal("an append had another outcome")),
        }
    }

    /// Runs the creation of a context.
    pub(crate) async fn create_context(&self, create: CreateContext) -> Result<Created, ApiError> {
        let command = Command::CreateContext(create);
        match self.run(WriteGrant::NEW_OBJECT, command).await? {
            Outcome::Created(created) => Ok(created),
            _ => Err(ApiError::internal("a creation had another outcome")),
        }
    }

    /// Waits for a place in the writer's queue and submits a command.
    pub(crate) async fn submit(
        &self,
        grant: WriteGrant,
        command: Command,
    ) -> Result<Answer, ApiError> {
        let permit = self.handle.permit().await?;
        self.submit_with(permit, grant, command)
    }

    /// A place in the writer's queue, if one is free now.
    pub(crate) fn try_permit(&self) -> Option<SubmitPermit> {
        self.handle.try_permit()
    }

    /// Submits a command without waiting.
    pub(crate) fn submit_with(
        &self,
        permit: SubmitPermit,
        grant: WriteGrant,
        command: Command,
    ) -> Result<Answer, ApiError> {
        // A handler checks the target before it decodes the request. This catches a handler that
        // then builds a command for another target.
        if !grant.covers(&command) {
            return Err(ApiError::internal("a command exceeds its write grant"));
        }
        Ok(self.handle.submit_with(permit, command))
    }
}

/// Structure: what every handler may read.
impl GuardedStore {
    pub(crate) fn context(&self, id: ContextId) -> Result<Context, ReadError> {
        self.store().context(id)
    }

    /// All contexts below `before`, newest first.
    pub(crate) fn contexts(&self, before: Option<ContextId>) -> impl Iterator<Item = Context> + '_ {
        self.store().contexts(before)
    }

    pub(crate) fn is_owned_by_world(&self, context: ContextId) -> bool {
        self.worlds.owns_context(context)
    }

    pub(crate) fn turn(&self, id: TurnId) -> Result<Turn, ReadError> {
        self.store().turn(id)
    }

    /// The last turns of a context, oldest first.
    pub(crate) fn last_turns(
        &self,
        context: ContextId,
        limit: usize,
    ) -> Result<Vec<Turn>, ReadError> {
        self.store().last(context, limit)
    }

    /// A turn and those before it, oldest first.
    pub(crate) fn turns_up_to(&self, turn: TurnId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.store().up_to(turn, limit)
    }

    /// The turns before a turn, oldest first.
    pub(crate) fn turns_before(&self, turn: TurnId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.store().before(turn, limit)
    }

    /// The turns of a context from a depth on, oldest first.
    pub(crate) fn turns_from_depth(
        &self,
        context: ContextId,
        depth: u32,
        limit: usize,
    ) -> Result<Vec<Turn>, ReadError> {
        self.store().range(context, depth, limit)
    }

    pub(crate) fn fs_root(&self, turn: TurnId) -> Result<Option<FsRoot>, ReadError> {
        self.store().fs_root(turn)
    }

    /// The uncompressed length of a blob.
    pub(crate) fn blob_len(&self, hash: BlobHash) -> Result<u32, ReadError> {
        self.store().blob_len(hash)
    }

    pub(crate) fn has_blob(&self, hash: BlobHash) -> bool {
        self.store().has_blob(hash).is_some()
    }

    pub(crate) fn blobs_with_prefix(&self, prefix: &BlobPrefix, max: usize) -> Vec<BlobHash> {
        self.store().blobs_with_prefix(prefix, max)
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.store().registry()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.store().stats()
    }

    /// The position of the newest event.
    pub(crate) fn last_position(&self) -> u64 {
        self.store().last_position()
    }

    /// Watches the position of the newest event.
    pub(crate) fn watch_position(&self) -> watch::Receiver<u64> {
        self.handle.position()
    }

    /// The store itself, for the routes of the ledger: they check the caller and record the read
    /// themselves.
    pub(crate) fn ledger_store(&self) -> &Store {
        self.store()
    }

    fn store(&self) -> &Store {
        self.handle.store()
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_store::{Append, AppendPart};

    use super::*;

    #[test]
    fn a_grant_covers_its_target_and_what_is_new() {
        let context = |id| ContextId::new(id).unwrap();
        let append = |ids: &[u64]| {
            let parts = ids.iter().map(|id| AppendPart {
                context: context(*id),
                parent: None,
                expected_head: None,
                turns: Vec::new(),
            });
            Command::Append(Append {
                parts: parts.collect(),
                key: None,
                strict: false,
            })
        };
        let turn = TurnId::new(1).unwrap();
        let attach = Command::AttachFs {
            turn,
            root: BlobHash::of(b""),
        };
        let to_context = WriteGrant(Some(WriteTarget::Context(context(1))));
        let to_turn = WriteGrant(Some(WriteTarget::Turn(turn)));
        assert!(to_context.covers(&append(&[1])));
        assert!(!to_context.covers(&append(&[2])));
        assert!(!to_context.covers(&append(&[1, 2])), "every part counts");
        assert!(!to_context.covers(&attach) && to_turn.covers(&attach));
        assert!(!WriteGrant::NEW_OBJECT.covers(&append(&[1])));
        let bundle = Command::PutBundle {
            id: String::new(),
            json: bytes::Bytes::new(),
        };
        assert!(WriteGrant::NEW_OBJECT.covers(&bundle) && to_turn.covers(&bundle));
    }
}
