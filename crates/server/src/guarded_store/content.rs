//! Access to content: payloads, blobs and the event feed.
//!
//! A handler asks for access, and gets a [`ContentReader`] at once unless worlds may own the
//! content. Otherwise [`GuardedStore::record_read`] adds a line to the audit of each of these worlds
//! first. If a line cannot be written, the read fails.
//!
//! A blob belongs to a world if one of the world's turns holds it. Finding out takes a search, so
//! only a blob that decodes as a record is searched for.

use std::io::{self, Write};
use std::sync::Arc;

use serde_json::json;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::log::FoundWorld;
use turnkeep_ledger::{Principal, log, record};
use turnkeep_store::{Context, Event, FeedCursor, Payload, ReadError, Store, Turn, archive};
use turnkeep_types::{BlobHash, ContextId, TurnId};

use super::GuardedStore;
use crate::error::ApiError;
use crate::ledger::{WorldHandle, Worlds};
use crate::memory::LARGE_FROM_BYTES;

/// Reads content. Holding one means that the store has recorded the read where that is needed.
#[derive(Clone)]
pub(crate) struct ContentReader(Store);

impl ContentReader {
    pub(crate) fn payload(&self, turn: &Turn) -> Result<Payload, ReadError> {
        self.0.payload(turn)
    }

    pub(crate) fn blob(&self, hash: BlobHash) -> Result<Payload, ReadError> {
        self.0.blob(hash)
    }

    /// Reads the events of a context, or of all contexts, after a position.
    pub(crate) fn feed(&self, context: Option<ContextId>, after: u64) -> FeedCursor {
        match context {
            Some(context) => self.0.feed_of(&[context], after),
            None => self.0.feed(after),
        }
    }

    /// The event at a position.
    pub(crate) fn event(&self, position: u64) -> Option<Event> {
        self.0.event(position)
    }

    pub(crate) fn turn(&self, id: TurnId) -> Result<Turn, ReadError> {
        self.0.turn(id)
    }

    pub(crate) fn context(&self, id: ContextId) -> Result<Context, ReadError> {
        self.0.context(id)
    }

    /// The position of the newest event.
    pub(crate) fn last_position(&self) -> u64 {
        self.0.last_position()
    }

    /// Writes the whole log as one portable file.
    pub(crate) fn export(&self, out: &mut dyn Write) -> io::Result<()> {
        archive::export(&self.0, out, |_, _| ())
    }
}

/// The answer to a request for access.
pub(crate) enum ContentAccess {
    /// No world owns the content.
    Open(ContentReader),
    /// Worlds may own the content: their audits come first.
    NeedsRecord(UnrecordedRead),
}

/// A read that has to be recorded before it happens.
pub(crate) enum UnrecordedRead {
    /// Turns of these worlds. `how` names the route in the audit line.
    Turns {
        worlds: Vec<Arc<WorldHandle>>,
        how: &'static str,
    },
    /// A blob that may be a world's record.
    Blob { hash: BlobHash, bytes: usize },
    /// Everything that any world holds.
    Everything { how: &'static str },
}

/// What the audit line of a followed feed says.
const HOW_EVENTS: &str = "events";

impl GuardedStore {
    /// Requests access to the payloads of turns that were written in these contexts.
    pub(crate) fn access_turns(
        &self,
        contexts: impl Iterator<Item = ContextId>,
        how: &'static str,
    ) -> ContentAccess {
        let worlds = worlds_of_contexts(&self.worlds, contexts);
        if worlds.is_empty() {
            return ContentAccess::Open(self.reader());
        }
        ContentAccess::NeedsRecord(UnrecordedRead::Turns { worlds, how })
    }

    /// Requests access to a blob.
    pub(crate) fn access_blob(&self, hash: BlobHash) -> ContentAccess {
        let bytes = self.store().has_blob(hash).unwrap_or_default() as usize;
        // A small blob is decoded here. Decoding a large one needs a memory permit, so it is left
        // to `record_read`.
        let may_be_record = self.worlds.owns_any_context()
            && (bytes >= LARGE_FROM_BYTES || is_record(self.store(), hash));
        if may_be_record {
            ContentAccess::NeedsRecord(UnrecordedRead::Blob { hash, bytes })
        } else {
            ContentAccess::Open(self.reader())
        }
    }

    /// Requests access to the events of a context, or of all contexts.
    pub(crate) fn access_feed(&self, context: Option<ContextId>) -> ContentAccess {
        match context {
            Some(context) => self.access_turns([context].into_iter(), HOW_EVENTS),
            None if self.worlds.owns_any_context() => {
                ContentAccess::NeedsRecord(UnrecordedRead::Everything { how: HOW_EVENTS })
            }
            None => ContentAccess::Open(self.reader()),
        }
    }

    /// Opens the payloads of turns that were written in these contexts.
    pub(crate) async fn open_turns(
        &self,
        contexts: impl Iterator<Item = ContextId>,
        how: &'static str,
    ) -> Result<ContentReader, ApiError> {
        self.open_content(self.access_turns(contexts, how)).await
    }

    /// Opens a blob.
    pub(crate) async fn open_blob(&self, hash: BlobHash) -> Result<ContentReader, ApiError> {
        self.open_content(self.access_blob(hash)).await
    }

    /// Opens the events of a context, or of all contexts.
    pub(crate) async fn open_feed(
        &self,
        context: Option<ContextId>,
    ) -> Result<ContentReader, ApiError> {
        self.open_content(self.access_feed(context)).await
    }

    /// Opens the whole store.
    pub(crate) async fn open_everything(
        &self,
        how: &'static str,
    ) -> Result<ContentReader, ApiError> {
        self.record_read(UnrecordedRead::Everything { how }).await
    }

    /// Opens the directories on the way to a path. A directory lists names and hashes, which is
    /// structure. The caller opens what it finds there with [`GuardedStore::open_blob`].
    pub(crate) fn open_directories(&self) -> ContentReader {
        self.reader()
    }

    /// Records the read if that is needed, and opens the content.
    pub(crate) async fn open_content(
        &self,
        access: ContentAccess,
    ) -> Result<ContentReader, ApiError> {
        match access {
            ContentAccess::Open(reader) => Ok(reader),
            ContentAccess::NeedsRecord(read) => self.record_read(read).await,
        }
    }

    /// Adds a line to the audit of each world whose content is read, then opens the content.
    pub(crate) async fn record_read(
        &self,
        read: UnrecordedRead,
    ) -> Result<ContentReader, ApiError> {
        match read {
            UnrecordedRead::Turns { worlds, how } => add_audit_lines(&worlds, how).await?,
            UnrecordedRead::Blob { hash, bytes } => {
                let worlds = self.find_worlds_of_blob(hash, bytes).await?;
                add_audit_lines(&worlds, "blob").await?;
            }
            UnrecordedRead::Everything { how } => {
                for world in self.worlds.list() {
                    // A world without contexts has written nothing that could be read.
                    if world.contexts().await.is_some() {
                        add_audit_lines(&[world], how).await?;
                    }
                }
            }
        }
        Ok(self.reader())
    }

    /// The worlds of which a blob is a record. The search runs on a worker thread, under a permit
    /// for the blob's bytes.
    async fn find_worlds_of_blob(
        &self,
        hash: BlobHash,
        bytes: usize,
    ) -> Result<Vec<Arc<WorldHandle>>, ApiError> {
        let permit = self.memory.acquire(bytes).await?;
        let (store, worlds) = (self.store().clone(), Arc::clone(&self.worlds));
        let search = move || permit.during(|| worlds_of_blob(&store, &worlds, hash));
        self.workers.run_large(search).await
    }

    fn reader(&self) -> ContentReader {
        ContentReader(self.store().clone())
    }
}

/// The worlds that own contexts, each once. Worlds that cannot be read are left out: their audit
/// takes no line.
fn worlds_of_contexts(
    worlds: &Worlds,
    contexts: impl Iterator<Item = ContextId>,
) -> Vec<Arc<WorldHandle>> {
    let mut found: Vec<Arc<WorldHandle>> = Vec::new();
    let mut previous = None;
    for context in contexts {
        // The turns of a page mostly come from one context: look each run of them up once.
        if previous.replace(context) == Some(context) {
            continue;
        }
        let Some(world) = worlds.world_of_context(context) else {
            continue;
        };
        if !found.iter().any(|known| known.name() == world.name()) {
            found.push(world);
        }
    }
    found
}

fn worlds_of_blob(
    store: &Store,
    worlds: &Worlds,
    hash: BlobHash,
) -> Result<Vec<Arc<WorldHandle>>, ApiError> {
    if !is_record(store, hash) {
        return Ok(Vec::new());
    }
    let mut written_in = Vec::new();
    for FoundWorld { contexts, .. } in log::find_worlds(store) {
        for context in contexts.all() {
            written_in.extend(log::find_writing_context(store, context, hash)?);
        }
    }
    Ok(worlds_of_contexts(worlds, written_in.into_iter()))
}

/// Whether a blob decodes as a record of the ledger.
fn is_record(store: &Store, hash: BlobHash) -> bool {
    let Ok(payload) = store.blob(hash) else {
        return false;
    };
    payload
        .into_raw_bytes()
        .is_ok_and(|raw| record::is_record(&raw))
}

/// Records in each world's audit that the owner read its records past the ledger.
async fn add_audit_lines(worlds: &[Arc<WorldHandle>], how: &str) -> Result<(), ApiError> {
    for world in worlds {
        let line = AuditLine {
            at: world.now(),
            principal: Principal::Owner.key(),
            what: "store-read".to_owned(),
            request: None,
            details: json!({ "how": how }).to_string(),
        };
        world.record(vec![Fact::AuditLine(line)]).await?;
    }
    Ok(())
}
