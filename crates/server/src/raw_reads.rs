//! The store's own ways to a world's contexts. They are the owner's: nothing is written there past
//! the ledger, and who reads content there reads past every view, which leaves a line in the
//! world's audit before the answer. Ids, parents and depths are structure, not content: reading
//! them leaves no line.
//!
//! A context that starts from a world's turn shows that world's turns; they count by where they
//! were written. A blob is a world's if one of its turns holds it: only what can be read as a
//! record is looked for there. Nothing is written to a world that cannot be read either; the owner
//! reads it without a line, because none can be left.

use std::sync::Arc;

use serde_json::json;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::log::FoundWorld;
use turnkeep_ledger::{Code, Principal, log, record};
use turnkeep_types::{BlobHash, ContextId, TurnId};
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

impl Shared {
    /// Refuses to write to a world's context past its ledger.
    pub(crate) fn refuse_world(&self, context: ContextId) -> Result<(), ApiError> {
        let Some(name) = self.worlds.context_owner(context) else {
            return Ok(());
        };
        let message =
            format!("context {context} is the world {name}'s: write to it through its ledger");
        let error = ApiError::new(ErrorCode::Forbidden, message).word(Code::Forbidden);
        Err(error.with("world_id", name.as_str()))
    }

    /// The same for the context in which a turn was written.
    pub(crate) fn refuse_world_of(&self, turn: TurnId) -> Result<(), ApiError> {
        let context = self.store.store().turn(turn).map(|turn| turn.context);
        context.map_or(Ok(()), |context| self.refuse_world(context))
    }

    /// The worlds in whose contexts something was written.
    pub(crate) fn worlds_of(
        &self,
        contexts: impl Iterator<Item = ContextId>,
    ) -> Vec<Arc<WorldHandle>> {
        let (mut handles, mut last): (Vec<Arc<WorldHandle>>, _) = (Vec::new(), None);
        for context in contexts {
            if last.replace(context) == Some(context) {
                continue;
            }
            let new = self.worlds.world_of_context(context);
            let new = new.filter(|new| !handles.iter().any(|known| known.name() == new.name()));
            handles.extend(new);
        }
        handles
    }

    /// Leaves a line in each of these worlds: its records were read as they are.
    pub(crate) async fn note_raw_read(
        &self,
        handles: &[Arc<WorldHandle>],
        how: &str,
    ) -> Result<(), ApiError> {
        for handle in handles {
            let line = AuditLine {
                at: handle.now(),
                principal: Principal::Owner.key(),
                what: "store-read".to_owned(),
                request: None,
                details: json!({ "how": how }).to_string(),
            };
            handle.record(vec![Fact::AuditLine(line)]).await?;
        }
        Ok(())
    }

    /// Whether a blob of so many bytes may be a world's record; a large one is not looked at yet.
    pub(crate) fn may_be_a_record(&self, hash: BlobHash, len: u32) -> bool {
        self.worlds.owns_any_context() && (len as usize >= LARGE_FROM_BYTES || self.is_record(hash))
    }

    fn is_record(&self, hash: BlobHash) -> bool {
        let payload = self.store.store().blob(hash).ok();
        payload.is_some_and(|payload| {
            payload
                .into_raw_bytes()
                .is_ok_and(|raw| record::is_record(&raw))
        })
    }

    /// Leaves a line in each world of which this blob is a record.
    pub(crate) async fn note_blob_read(self: &Arc<Self>, hash: BlobHash) -> Result<(), ApiError> {
        let len = self.store.store().has_blob(hash).unwrap_or_default();
        if !self.may_be_a_record(hash, len) {
            return Ok(());
        }
        let permit = self.memory.acquire(len as usize).await?;
        let reader = Arc::clone(self);
        let look = move || permit.during(|| reader.worlds_of_blob(hash));
        self.note_raw_read(&self.work_on_large(look).await?, "blob")
            .await
    }

    fn worlds_of_blob(&self, hash: BlobHash) -> Result<Vec<Arc<WorldHandle>>, ApiError> {
        if !self.is_record(hash) {
            return Ok(Vec::new());
        }
        let store = self.store.store();
        let mut written = Vec::new();
        for FoundWorld { contexts, .. } in log::find_worlds(store) {
            for context in contexts.all() {
                written.extend(log::find_writing_context(store, context, hash)?);
            }
        }
        Ok(self.worlds_of(written.into_iter()))
    }

    /// Whether whoever follows a context, or all of them, follows a world's.
    pub(crate) fn reaches_worlds(&self, context: Option<ContextId>) -> bool {
        context.map_or_else(
            || self.worlds.owns_any_context(),
            |context| self.worlds.context_owner(context).is_some(),
        )
    }

    /// Leaves a line where somebody begins to follow a world's context, or all contexts.
    pub(crate) async fn note_subscription(
        &self,
        context: Option<ContextId>,
    ) -> Result<(), ApiError> {
        match context {
            Some(context) => {
                self.note_raw_read(&self.worlds_of([context].into_iter()), "events")
                    .await
            }
            None => self.note_raw_read_of_all("events").await,
        }
    }

    /// Leaves a line in every world that has written anything.
    pub(crate) async fn note_raw_read_of_all(&self, how: &str) -> Result<(), ApiError> {
        for handle in self.worlds.list() {
            if handle.contexts().await.is_some() {
                self.note_raw_read(&[handle], how).await?;
            }
        }
        Ok(())
    }
}
