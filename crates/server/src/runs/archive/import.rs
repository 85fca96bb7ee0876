//! Reads a run from an archive that may be hostile.
//!
//! Nothing is written before all of the archive is checked (`checked_archive`). After that, only the
//! store itself can fail, and a copy that is not complete is never seen (`new_copy`).
//!
//! The imported run is the same run: its events have the same bytes, and it has the same id. If the
//! server has or had a run of that id, the import is refused, unless the caller wants a copy with
//! another id.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use turnkeep_runtime::decide::{CopyOrigin, KeptByCopy, RunCopy};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{IdSource, RunId};
use turnkeep_store::{Append, AppendPart, Command, NewBlob, Refusal, Store};
use turnkeep_types::ContextId;

use super::ArchiveError;
use super::checked_archive::CheckedArchive;
use super::layout::{self, RecordPages};
use super::new_copy::NewCopy;
use crate::runs::run_directory;
use crate::runs::run_log;
use crate::runs::services::RunServices;
use crate::runs::{RunError, RunHandle, Runs};

/// How many blobs may wait for the writer, and how many bytes of them.
const BLOBS_WAITING_MAX: usize = 64;
const BLOB_BYTES_WAITING_MAX: usize = 16 << 20;

/// What a caller wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImportRequest {
    /// Whether the run gets a new id.
    pub(crate) as_copy: bool,
    /// The run's directory on this machine, if it is another one.
    pub(crate) cwd: Option<String>,
    pub(crate) key: Option<RequestKey>,
}

/// Imports a run, even if the caller disconnects. All of it, or nothing.
pub(crate) async fn import_run(
    runs: &Arc<Runs>,
    file: File,
    request: ImportRequest,
) -> Result<Arc<RunHandle>, ArchiveError> {
    let all = Arc::clone(runs);
    let work = async move { import_to_end(&all, file, request).await };
    runs.services.run_to_end(work).await?
}

async fn import_to_end(
    runs: &Runs,
    file: File,
    request: ImportRequest,
) -> Result<Arc<RunHandle>, ArchiveError> {
    let services = Arc::clone(&runs.services);
    if let Some(cwd) = request.cwd.clone() {
        let checked = services.run_blocking(move || run_directory::check(&cwd));
        checked.await?.map_err(ArchiveError::BadDirectory)?;
    }
    // Before the lock: checking a large archive takes long, and other creations must not wait for it.
    let check = move || CheckedArchive::open(BufReader::new(file));
    let archive = services.run_blocking(check).await??;
    let _creating = runs.creating.lock().await;
    if let Some(earlier) = runs.find_created(request.key.as_ref())? {
        return Ok(earlier);
    }
    let id = if request.as_copy {
        IdSource::draw(&mut services.new_ids())
    } else {
        archive.manifest.run
    };
    services.publish_record_types().await?;
    let writer = Arc::clone(&services);
    let write = move || {
        check_unused(writer.store.store(), id)?;
        archive.write(&writer, id)
    };
    let copy = services.run_blocking(write).await??;
    let settled = RunCopy {
        origin: CopyOrigin::Import,
        title: None,
        cwd: request.cwd,
        keeps: KeptByCopy::default(),
    };
    copy.publish(runs, settled, request.key).await
}

/// A deleted run still has its id: its records are in the log.
fn check_unused(store: &Store, id: RunId) -> Result<(), ArchiveError> {
    let is_used = run_log::find_runs(store).iter().any(|run| run.id == id);
    if is_used {
        Err(ArchiveError::RunExists(id))
    } else {
        Ok(())
    }
}

impl<R: Read + Seek> CheckedArchive<R> {
    /// Writes everything into contexts that no reader sees yet. It blocks.
    fn write(mut self, services: &RunServices, id: RunId) -> Result<NewCopy, ArchiveError> {
        let store = services.store.store();
        self.write_blobs(store)?;
        let mut copy = NewCopy::begin(services, id, None)?;
        for count in self.manifest.transcripts.clone() {
            let context = copy.add_transcript(services, count.node, None)?;
            self.append_records(store, context, layout::transcript_records(count.node))?;
        }
        let events = copy.events();
        self.append_records(store, events, layout::EVENT_RECORDS.to_owned())?;
        Ok(copy)
    }

    /// Writes the blobs first: records that name them must find them.
    fn write_blobs(&mut self, store: &Store) -> Result<(), ArchiveError> {
        let mut writer = BlobWriter::new(store);
        for place in self.blobs.values() {
            let content = layout::read_blob_at(&mut self.zip, *place)?;
            writer.put(content)?;
        }
        for artifact in std::mem::take(&mut self.artifacts) {
            let content = self.read_artifact(&artifact)?;
            writer.put(content)?;
        }
        writer.wait_for_all()
    }

    fn append_records(
        &mut self,
        store: &Store,
        context: ContextId,
        entry: String,
    ) -> Result<(), ArchiveError> {
        let mut pages = RecordPages::new(entry);
        loop {
            let page = pages.read_page(&mut self.zip)?;
            if page.is_empty() {
                return Ok(());
            }
            let mut turns = Vec::with_capacity(page.len());
            for record in page {
                turns.push(run_log::new_turn(record.declared, record.payload)?);
            }
            let part = AppendPart {
                context,
                parent: None,
                expected_head: None,
                turns,
            };
            store.run(Command::Append(Append {
                parts: vec![part],
                key: None,
                strict: false,
            }))?;
        }
    }
}

/// Puts blobs into the store, several at a time: each would otherwise wait for a sync of its own.
struct BlobWriter<'a> {
    store: &'a Store,
    waiting: usize,
    waiting_bytes: usize,
    reply: std::sync::mpsc::SyncSender<Result<(), Refusal>>,
    replies: std::sync::mpsc::Receiver<Result<(), Refusal>>,
}

impl<'a> BlobWriter<'a> {
    fn new(store: &'a Store) -> Self {
        let (reply, replies) = sync_channel(BLOBS_WAITING_MAX);
        Self {
            store,
            waiting: 0,
            waiting_bytes: 0,
            reply,
            replies,
        }
    }

    fn put(&mut self, content: Bytes) -> Result<(), ArchiveError> {
        let bytes = content.len();
        let blob = NewBlob::from_raw(content, layout::BLOB_BYTES_MAX as usize)
            .map_err(|_| RunError::TooLarge { bytes })?;
        if self.waiting == BLOBS_WAITING_MAX || self.waiting_bytes > BLOB_BYTES_WAITING_MAX {
            self.wait_for_all()?;
        }
        let reply = self.reply.clone();
        let answer = move |outcome: Result<_, Refusal>| {
            // The channel has space for every submitted blob, so it is never full. It is closed if
            // an error has ended the import, and then the reply does not matter.
            reply.try_send(outcome.map(drop)).ok();
        };
        if self
            .store
            .submit(Command::PutBlob(blob.clone()), answer)
            .is_ok()
        {
            self.waiting += 1;
            self.waiting_bytes += bytes;
        } else {
            // The queue is full: this one waits for its turn.
            self.store.run(Command::PutBlob(blob))?;
        }
        Ok(())
    }

    fn wait_for_all(&mut self) -> Result<(), ArchiveError> {
        while self.waiting > 0 {
            self.waiting -= 1;
            self.replies.recv().map_err(|_| Refusal::Closed)??;
        }
        self.waiting_bytes = 0;
        Ok(())
    }
}
