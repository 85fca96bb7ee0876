//! The store's own ways to a world's contexts. They are the owner's: nothing is written there past the ledger,
//! and who reads there reads past every view, which leaves a line in the world's audit before the answer.
//!
//! A context that starts from a world's turn shows that world's turns; they count by where they were written.

use std::sync::Arc;

use serde_json::json;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::{Code, Principal};
use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;
use crate::ledger::Room;
use crate::shared::Shared;

impl Shared {
    /// Refuses to write to a world's context past its ledger.
    pub(crate) fn refuse_world(&self, context: ContextId) -> Result<(), ApiError> {
        let Some(room) = self.worlds.owner_of(context) else { return Ok(()) };
        let name = room.name();
        let message = format!("context {context} is the world {name}'s: write to it through its ledger");
        let error = ApiError::new(ErrorCode::Forbidden, message).word(Code::Forbidden);
        Err(error.with("world_id", name.as_str()))
    }

    /// The same for the context in which a turn was written.
    pub(crate) fn refuse_world_of(&self, turn: TurnId) -> Result<(), ApiError> {
        let context = self.store.store().turn(turn).map(|turn| turn.context);
        context.map_or(Ok(()), |context| self.refuse_world(context))
    }

    /// The worlds in whose contexts something was written.
    pub(crate) fn worlds_of(&self, contexts: impl Iterator<Item = ContextId>) -> Vec<Arc<Room>> {
        let (mut rooms, mut last): (Vec<Arc<Room>>, _) = (Vec::new(), None);
        for context in contexts {
            if last.replace(context) == Some(context) {
                continue;
            }
            let new = self.worlds.owner_of(context);
            let new = new.filter(|new| !rooms.iter().any(|known| known.name() == new.name()));
            rooms.extend(new);
        }
        rooms
    }

    /// Leaves a line in each of these worlds: its records were read as they are.
    pub(crate) async fn note_raw_read(&self, rooms: &[Arc<Room>], how: &str) -> Result<(), ApiError> {
        for room in rooms {
            let line = AuditLine {
                at: room.now(),
                principal: Principal::Owner.key(),
                what: "store-read".to_owned(),
                request: None,
                details: json!({ "how": how }).to_string(),
            };
            room.record(vec![Fact::Line(line)]).await?;
        }
        Ok(())
    }

    /// Whether whoever follows a context, or all of them, follows a world's.
    pub(crate) fn reaches_worlds(&self, context: Option<ContextId>) -> bool {
        context.map_or_else(|| self.worlds.own_any(), |context| self.worlds.owner_of(context).is_some())
    }

    /// Leaves a line where somebody begins to follow a world's context, or all contexts.
    pub(crate) async fn note_subscription(&self, context: Option<ContextId>) -> Result<(), ApiError> {
        match context {
            Some(context) => self.note_raw_read(&self.worlds_of([context].into_iter()), "events").await,
            None => self.note_raw_read_of_all("events").await,
        }
    }

    /// Leaves a line in every world that has written anything.
    pub(crate) async fn note_raw_read_of_all(&self, how: &str) -> Result<(), ApiError> {
        for room in self.worlds.list() {
            if room.contexts().await.is_some() {
                self.note_raw_read(&[room], how).await?;
            }
        }
        Ok(())
    }
}
