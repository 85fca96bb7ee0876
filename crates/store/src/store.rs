//! The store's one door: open it, submit commands, read.

use std::sync::Arc;

use turnkeep_journal::Storage;
use turnkeep_types::{BlobHash, Clock, ContextId, TurnId};

use crate::command::{Command, Outcome, Refusal};
use crate::event::Event;
use crate::read::{Context, Payload, ReadError, Turn};
use crate::registry::Registry;

/// When an ack may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the log's frame was synced.
    Fsync,
    /// After it was handed to the operating system, which is told to sync every 100 ms.
    Os,
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// When an ack may be given.
    pub durability: Durability,
    /// The size of a log segment.
    pub segment_bytes: u64,
    /// How much log may lie beyond the last index checkpoint.
    pub checkpoint_every_bytes: u64,
    /// Commands that may wait for the writer.
    pub queue_commands_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            segment_bytes: 64 << 20,
            checkpoint_every_bytes: 64 << 20,
            queue_commands_max: 8192,
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] turnkeep_journal::OpenError),
    /// The log holds a command that this version does not know.
    #[error("the log holds a command of kind {kind} version {version} at frame {position}, which this version of turnkeep does not know: use a newer one")]
    UnknownCommand {
        /// Its kind.
        kind: u8,
        /// Its version.
        version: u8,
        /// The frame.
        position: u64,
    },
}

/// Why a command was not even queued.
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
    /// The same as kept.
    pub blob_stored_bytes: u64,
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

/// A handle on an open store; cheap to clone. The writer stops when [`Store::close`] is called.
#[derive(Clone)]
pub struct Store {}

#[expect(clippy::unused_self, clippy::needless_pass_by_value, reason = "signatures first")]
impl Store {
    /// Opens the data directory behind `storage`, which must be locked by the caller, and starts the writer.
    pub fn open(
        _storage: Arc<dyn Storage>,
        _options: Options,
        _clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        todo!()
    }

    /// Queues a command. `reply` is called exactly once, on the writer's thread, and must not block.
    pub fn submit(
        &self,
        _command: Command,
        _reply: impl FnOnce(Result<Outcome, Refusal>) + Send + 'static,
    ) -> Result<(), SubmitError> {
        todo!()
    }

    /// Submits and waits. For tests, tools and threads that may block.
    pub fn run(&self, _command: Command) -> Result<Outcome, Refusal> {
        todo!()
    }

    /// Stops the writer after what is queued, writes a checkpoint and waits for both. Idempotent.
    pub fn close(&self) {
        todo!()
    }

    /// Calls `hook` with the last event's position after every commit, on the writer's thread.
    pub fn on_commit(&self, _hook: impl Fn(u64) + Send + Sync + 'static) {
        todo!()
    }

    /// A context as it is now.
    pub fn context(&self, _id: ContextId) -> Result<Context, ReadError> {
        todo!()
    }

    /// Contexts, newest created first, from below `before` (none: from the newest) on.
    pub fn contexts(&self, _before: Option<ContextId>) -> impl Iterator<Item = Context> + '_ {
        std::iter::empty()
    }

    /// One turn.
    pub fn turn(&self, _id: TurnId) -> Result<Turn, ReadError> {
        todo!()
    }

    /// The `limit` turns nearest to the head, oldest first.
    pub fn last(&self, _context: ContextId, _limit: usize) -> Result<Vec<Turn>, ReadError> {
        todo!()
    }

    /// The nearest `limit` ancestors of `turn`, that turn excluded, oldest first.
    pub fn before(&self, _turn: TurnId, _limit: usize) -> Result<Vec<Turn>, ReadError> {
        todo!()
    }

    /// The turns of depths `start..start + limit` on the head's path, oldest first.
    pub fn range(&self, _context: ContextId, _start: u32, _limit: usize) -> Result<Vec<Turn>, ReadError> {
        todo!()
    }

    /// A turn's payload, checked.
    pub fn payload(&self, _turn: &Turn) -> Result<Payload, ReadError> {
        todo!()
    }

    /// A blob, checked.
    pub fn blob(&self, _hash: BlobHash) -> Result<Payload, ReadError> {
        todo!()
    }

    /// Whether the store holds a blob, and its uncompressed length.
    pub fn has_blob(&self, _hash: BlobHash) -> Option<u32> {
        todo!()
    }

    /// The registry as it is now; the snapshot never changes.
    pub fn registry(&self) -> Arc<Registry> {
        todo!()
    }

    /// The event at a position; none beyond the end.
    pub fn event(&self, _position: u64) -> Option<Event> {
        todo!()
    }

    /// The last event's position, 0 for none.
    pub fn last_position(&self) -> u64 {
        todo!()
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        todo!()
    }
}
