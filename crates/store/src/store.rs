//! The public handle of a store: open it, submit commands, read.
//!
//! Opening recovers the state and starts the writer and checkpoint threads. Commands go through a
//! bounded queue; a full queue rejects them at once. Reads go straight to the tables and never
//! wait.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};

use turnkeep_journal::{
    Committer, CommitterError, CommitterLimits, LogReader, Recovered, Storage, TornTail,
    spawn_committer,
};
use turnkeep_types::{BlobHash, BlobPrefix, Clock, ContextId, TurnId};

use crate::acknowledged::{Acknowledged, AcknowledgedFile};
use crate::checkpoint::{self, Checkpointer};
use crate::command::{Command, Outcome, Refusal};
use crate::event::Event;
use crate::feed_cursor::FeedCursor;
use crate::fs_roots::FsRoot;
use crate::read::{Context, Payload, ReadError, StoreReader, Turn};
use crate::recovery::{self, LostIds, Opened};
use crate::registry::Registry;
use crate::state::State;
use crate::writer::{CommitHook, Counters, Submission, Writer, WriterParts};

/// When the writer may acknowledge a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the command's frame was synced.
    Fsync,
    /// After the frame was written to the operating system. A sync follows every 100 ms.
    Os,
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// When the writer may acknowledge a command.
    pub durability: Durability,
    /// The size of a log segment.
    pub segment_bytes: u64,
    /// How much log may follow the last checkpoint.
    pub checkpoint_every_bytes: u64,
    /// How many commands may wait for the writer.
    pub queue_commands_max: usize,
    /// How many commands share one frame at most.
    pub group_commands_max: usize,
    /// Random bytes from the caller. They identify this writer and, if it is new, the store.
    pub random: [u8; 32],
    /// Rejects every command, because the storage does not keep what is written to it.
    pub read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            segment_bytes: 64 << 20,
            checkpoint_every_bytes: 64 << 20,
            queue_commands_max: 8192,
            group_commands_max: 1024,
            random: [0; 32],
            read_only: false,
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] turnkeep_journal::OpenError),
    /// A file or a thread could not be created.
    #[error("the store cannot be opened: {0}")]
    Io(#[from] std::io::Error),
    /// The log ends before a frame that was durable.
    #[error(
        "the log went back: it ends at frame {last}, but frame {known} was written and acknowledged; put the missing segment back, or run `turnkeep verify`, then `turnkeep repair`"
    )]
    MissingFrames {
        /// The log's last frame.
        last: u64,
        /// The last frame that the index knows to have been durable.
        known: u64,
    },
    /// The index claims more ids than can have been lost.
    #[error(
        "the index says that {turns} turns and {contexts} contexts are missing from the log, which cannot be: restore the file `index/acknowledged` from a copy, or delete it if no turn was lost"
    )]
    ImpossibleLoss {
        /// Turns that it says are missing.
        turns: u64,
        /// Contexts that it says are missing.
        contexts: u64,
    },
    /// A frame cannot be read back.
    #[error(transparent)]
    Read(#[from] turnkeep_journal::ReadError),
    /// A frame was written after other turns or contexts than the log before it holds.
    #[error("frame {position} does not follow from the log before it: run `turnkeep verify`")]
    Diverged {
        /// The frame.
        position: u64,
    },
    /// An import or a repair into this directory was interrupted.
    #[error(
        "an import or repair into this directory did not end: delete the directory and run it again"
    )]
    Unfinished,
    /// The frame is sound, but a record in it does not fit its kind: a bug or a forgery.
    #[error("the log holds a malformed command at frame {position}: run `turnkeep verify`")]
    MalformedCommand {
        /// The frame.
        position: u64,
    },
    /// The log holds a command that this version does not know.
    #[error(
        "the log holds a command of kind {kind} version {version} at frame {position}, which this version of turnkeep does not know: use a newer one"
    )]
    UnknownCommand {
        /// Its kind.
        kind: u8,
        /// Its version.
        version: u8,
        /// The frame.
        position: u64,
    },
}

/// Why a command was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Too many commands wait for the writer.
    #[error("too many commands wait for the writer")]
    Full,
    /// The store is shutting down.
    #[error("the store is shutting down")]
    Closed,
}

/// Counters for `stats` and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Turns ever appended.
    pub turns: u64,
    /// Contexts ever created.
    pub contexts: u64,
    /// Distinct blobs.
    pub blobs: u64,
    /// Uncompressed bytes of all distinct blobs.
    pub blob_raw_bytes: u64,
    /// Stored bytes of all distinct blobs.
    pub blob_stored_bytes: u64,
    /// How many of the turns were lost to damage.
    pub lost_turns: u64,
    /// How many of the contexts lost their creation record to damage.
    pub lost_contexts: u64,
    /// Bundles ever published.
    pub bundles: u64,
    /// Types known.
    pub types: u64,
    /// The last event's position.
    pub events: u64,
    /// The last frame's position in the log.
    pub log_position: u64,
    /// Bytes of log up to its last frame.
    pub log_bytes: u64,
    /// Bytes of index on disk.
    pub index_bytes: u64,
    /// Groups committed since start.
    pub groups: u64,
    /// Commands logged since start.
    pub commands: u64,
    /// Whether the writer is poisoned.
    pub poisoned: bool,
}

/// A handle on an open store. Cloning is cheap. The writer stops after [`Store::close`] or when the
/// last handle is dropped.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    state: Arc<State>,
    log: LogReader,
    storage: Arc<dyn Storage>,
    hook: Arc<OnceLock<CommitHook>>,
    counters: Arc<Counters>,
    recovered: Recovered,
    lost_ids: Option<LostIds>,
    committer: Committer<Submission>,
    is_read_only: bool,
}

impl Store {
    /// Opens the data directory behind `storage` and starts the writer. The caller must hold the
    /// directory's lock.
    pub fn open(
        storage: Arc<dyn Storage>,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let Opened {
            log,
            recovered,
            applier,
            progress,
            lost_ids,
        } = recovery::open(&storage, options)?;
        let reader = log.reader();
        let state = applier.state.clone();
        let hook = Arc::new(OnceLock::new());
        let counters = Arc::new(Counters::default());
        let store_id = recovered.store_id;
        let checkpointer = Checkpointer::start(
            storage.clone(),
            reader.clone(),
            store_id,
            options.checkpoint_every_bytes,
            progress,
        )?;
        let acknowledged = Acknowledged::from_state(
            store_id,
            &state,
            reader.last_position(),
            reader.last_durable(),
        );
        let writer = Writer::new(WriterParts {
            applier,
            clock,
            hook: hook.clone(),
            counters: counters.clone(),
            checkpointer,
            acknowledged: AcknowledgedFile::open(&*storage, &acknowledged)?,
            store_id,
            log: reader.clone(),
        });
        let limits = CommitterLimits {
            queue_inputs_max: options.queue_commands_max,
            group_commands_max: options.group_commands_max,
        };
        // Last of all: from here on the log changes.
        let committer = spawn_committer(log, writer, limits)?;
        let inner = Inner {
            state,
            log: reader,
            storage,
            hook,
            counters,
            recovered,
            lost_ids,
            committer,
            is_read_only: options.read_only,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Queues a command. If this returns `Ok`, the writer's thread calls `reply` once; `reply` must
    /// not block. An invalid command gets its reply at once, on the caller's thread.
    pub fn submit(
        &self,
        command: Command,
        reply: impl FnOnce(Result<Outcome, Refusal>) + Send + 'static,
    ) -> Result<(), SubmitError> {
        if self.0.is_read_only {
            reply(Err(Refusal::ReadOnly));
            return Ok(());
        }
        // `new` has sent the rejection already.
        let Some(submission) = Submission::new(command, Box::new(reply)) else {
            return Ok(());
        };
        self.0.committer.submit(submission).map_err(|e| match e {
            CommitterError::Full => SubmitError::Full,
            CommitterError::Closed => SubmitError::Closed,
        })
    }

    /// Submits a command and waits for the reply. Only for threads that may block.
    pub fn run(&self, command: Command) -> Result<Outcome, Refusal> {
        let (send, receive) = sync_channel(1);
        let mut waiting = Some(command);
        while let Some(command) = waiting.take() {
            let send = send.clone();
            // The receiver below lives until the reply arrives, so sending cannot fail.
            let reply = move |outcome| match send.send(outcome) {
                Ok(()) | Err(_) => {}
            };
            match self.submit(command.clone(), reply) {
                Ok(()) => {}
                Err(SubmitError::Closed) => return Err(Refusal::Closed),
                Err(SubmitError::Full) => {
                    // The queue drains with every sync, so a retry succeeds soon.
                    waiting = Some(command);
                    std::thread::yield_now();
                }
            }
        }
        receive.recv().unwrap_or(Err(Refusal::Closed))
    }

    /// Returns whether the store rejects every command. See [`Options::read_only`].
    pub fn is_read_only(&self) -> bool {
        self.0.is_read_only
    }

    /// Finishes the queued commands, stops the writer, writes a checkpoint and waits for all of it.
    /// Further calls do nothing.
    pub fn close(&self) {
        self.0.committer.close();
    }

    /// Makes the writer's thread call `hook` with the last event's position after every commit.
    /// Only the first hook of a store counts.
    pub fn on_commit(&self, hook: impl Fn(u64) + Send + Sync + 'static) {
        self.0.hook.get_or_init(|| Box::new(hook));
    }

    fn reader(&self) -> StoreReader<'_> {
        StoreReader {
            state: &self.0.state,
            log: &self.0.log,
        }
    }

    /// Returns a context's current head and labels.
    pub fn context(&self, id: ContextId) -> Result<Context, ReadError> {
        self.reader().context(id)
    }

    /// Iterates over contexts, newest first, starting below `before`. `None` starts at the newest.
    pub fn contexts(&self, before: Option<ContextId>) -> impl Iterator<Item = Context> + '_ {
        let newest = self.0.state.contexts.len();
        // A context that is created during the iteration is not part of it.
        let from = before.map_or(newest, |id| newest.min(id.get() - 1));
        (1..=from)
            .rev()
            .filter_map(ContextId::new)
            .filter_map(|id| self.context(id).ok())
    }

    /// Returns one turn, without its payload.
    pub fn turn(&self, id: TurnId) -> Result<Turn, ReadError> {
        self.reader().turn(id)
    }

    /// The `limit` turns nearest to the head, oldest first.
    pub fn last(&self, context: ContextId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.reader().last(context, limit)
    }

    /// The `limit` turns that end with `turn`, oldest first.
    pub fn up_to(&self, turn: TurnId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.reader().up_to(turn, limit)
    }

    /// The nearest `limit` ancestors of `turn`, that turn excluded, oldest first.
    pub fn before(&self, turn: TurnId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.reader().before(turn, limit)
    }

    /// The turns of depths `start..start + limit` on the head's path, oldest first.
    pub fn range(
        &self,
        context: ContextId,
        start: u32,
        limit: usize,
    ) -> Result<Vec<Turn>, ReadError> {
        self.reader().range(context, start, limit)
    }

    /// The filesystem root of a turn, or of its nearest ancestor that has one.
    pub fn fs_root(&self, turn: TurnId) -> Result<Option<FsRoot>, ReadError> {
        self.reader().fs_root(turn)
    }

    /// Reads a turn's payload and verifies its checksum.
    pub fn payload(&self, turn: &Turn) -> Result<Payload, ReadError> {
        self.reader().payload(turn)
    }

    /// Reads a blob and verifies its checksum.
    pub fn blob(&self, hash: BlobHash) -> Result<Payload, ReadError> {
        self.reader().blob(hash)
    }

    /// A blob's uncompressed length. Returns an error if the blob is unknown or was lost to damage.
    pub fn blob_len(&self, hash: BlobHash) -> Result<u32, ReadError> {
        self.reader().blob_len(hash)
    }

    /// A blob's uncompressed length, if the store holds the blob.
    pub fn has_blob(&self, hash: BlobHash) -> Option<u32> {
        let row = self.0.state.find_blob(&hash)?;
        Some(self.0.state.blob(row)?.raw_len)
    }

    /// Up to `max` blobs whose hashes begin with these digits. The cost grows with the number of
    /// blobs in the store.
    pub fn blobs_with_prefix(&self, prefix: &BlobPrefix, max: usize) -> Vec<BlobHash> {
        self.0.state.blobs_with_prefix(prefix, max)
    }

    /// The current registry, as a snapshot that never changes.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.state.registry.load_full()
    }

    /// The event at a position; `None` beyond the end.
    pub fn event(&self, position: u64) -> Option<Event> {
        self.0.state.event(position)
    }

    /// Reads all events after a position.
    pub fn feed(&self, after: u64) -> FeedCursor {
        FeedCursor::of_all(self.0.state.clone(), after)
    }

    /// Reads the events of some contexts after a position: their creations, the turns that were
    /// appended to them, and the roots that were attached to these turns later. The context of a
    /// lost turn is unknown, so the events of lost turns are included too. The cost depends on
    /// these events, not on all events of the store.
    pub fn feed_of(&self, contexts: &[ContextId], after: u64) -> FeedCursor {
        FeedCursor::of_contexts(self.0.state.clone(), contexts, after)
    }

    /// How many events and turns the readers of the feed have looked at so far.
    #[cfg(any(test, feature = "dev"))]
    pub fn feed_steps(&self) -> u64 {
        self.0.state.feed_steps.load(Relaxed)
    }

    /// The last event's position, 0 for none.
    pub fn last_position(&self) -> u64 {
        self.0.state.events.len()
    }

    /// The torn tail that was cut when the store was opened, if there was one.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.0.recovered.torn.as_ref()
    }

    /// The acknowledged ids that were missing from the log when the store was opened. They are
    /// marked as lost.
    pub fn lost_ids(&self) -> Option<&LostIds> {
        self.0.lost_ids.as_ref()
    }

    /// The storage of the data directory, for files of other components. Names under `index/` and
    /// `log/` belong to the store.
    pub fn storage(&self) -> &dyn Storage {
        &*self.0.storage
    }

    /// The log behind the store, for export.
    pub fn log(&self) -> &LogReader {
        &self.0.log
    }

    /// The store's id, which never changes.
    pub fn id(&self) -> [u8; 16] {
        self.0.recovered.store_id
    }

    /// Returns the current counters.
    pub fn stats(&self) -> Stats {
        let (state, log) = (&self.0.state, &self.0.log);
        let registry = state.registry.load();
        Stats {
            turns: state.turns.len(),
            contexts: state.contexts.len(),
            blobs: state.blobs.len(),
            blob_raw_bytes: state.blob_raw_bytes.load(Relaxed),
            blob_stored_bytes: state.blob_stored_bytes.load(Relaxed),
            lost_turns: state.lost_turns.load(Relaxed),
            lost_contexts: state.lost_contexts.load(Relaxed),
            bundles: registry.bundles().len() as u64,
            types: registry.types().count() as u64,
            events: state.events.len(),
            log_position: log.last_position().0,
            log_bytes: log.bytes_used(),
            index_bytes: checkpoint::bytes_on_disk(&*self.0.storage),
            groups: self.0.counters.groups.load(Relaxed),
            commands: self.0.counters.commands.load(Relaxed),
            poisoned: self.0.counters.poisoned.load(Relaxed),
        }
    }
}
