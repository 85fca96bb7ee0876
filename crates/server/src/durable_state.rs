//! A state in memory that follows its records in the store: a world or a run.
//!
//! The store has the records; the state is what they make. Two rules keep them in step:
//!
//! - A fact is applied only after its record is durable, and in the order of the log.
//! - An append names the head that the decision was made at. If another writer moved the head, the
//!   append writes nothing, the caller applies the foreign facts and decides again.
//!
//! Readers hold a read lock while they make an answer. Applying facts takes the write lock only
//! after it has waited for long reads (`long_reads`), so that short reads, which run on the threads
//! of the async runtime, never queue behind a writer that waits for a long read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use tokio::sync::{Mutex, MutexGuard};
use turnkeep_store::{Appended, Command, Outcome, Refusal, Store};

use crate::handle::StoreHandle;

/// The records of one state in the store, and how far they were read.
pub(crate) trait RecordLog: Clone + Send {
    type State: Send + Sync;
    type Fact: Send;
    type Error: From<Refusal>;

    /// The command that appends these facts at the head that was read last; `None` without facts.
    fn append_command(
        &self,
        store: &Store,
        facts: &[Self::Fact],
    ) -> Result<Option<Command>, Self::Error>;

    /// Advances past the turns that our own append added.
    fn record_appended(&mut self, appended: &Appended);

    /// Reads the facts that were appended since. After an error the position is not used again.
    fn read_new_facts(&mut self, store: &Store) -> Result<Vec<Self::Fact>, Self::Error>;

    /// Adds a fact to the state. It cannot fail: the fact is durable.
    fn apply(state: &mut Self::State, fact: Self::Fact);

    /// The error for an outcome that an append cannot have.
    fn unexpected_outcome(outcome: &Outcome) -> Self::Error;
}

/// What became of an append.
#[derive(Debug)]
pub(crate) enum AppendResult<Fact> {
    /// The facts are durable. The caller applies them.
    Appended,
    /// Another writer was faster, and nothing was written. The caller applies the foreign facts.
    HeadMoved {
        /// What the other writer appended.
        foreign: Vec<Fact>,
        /// What the store said.
        refusal: Refusal,
    },
}

/// A state in memory with its log.
pub(crate) struct DurableState<L: RecordLog> {
    state: RwLock<L::State>,
    /// Long reads hold it shared, and applying facts holds it exclusively.
    long_reads: tokio::sync::RwLock<()>,
    /// The position in the store. Its lock is the right to write.
    log: Mutex<Option<L>>,
    /// Counts commits. It only changes while the write lock of the state is held.
    version: AtomicU64,
}

/// The right to write, held by one task at a time. It gives access to the log, which is absent
/// until the first write.
pub(crate) struct WriteGuard<'a, L>(pub(crate) MutexGuard<'a, Option<L>>);

impl<L: RecordLog> DurableState<L> {
    pub(crate) fn new(state: L::State, log: Option<L>) -> Self {
        Self {
            state: RwLock::new(state),
            long_reads: tokio::sync::RwLock::default(),
            log: Mutex::new(log),
            version: AtomicU64::new(1),
        }
    }

    /// Reads the state briefly. It may run on a thread of the async runtime.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&L::State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the state for as long as it takes, on a thread that may block. Only commits of this
    /// state wait for it.
    pub(crate) fn read_long<T>(&self, look: impl FnOnce(&L::State) -> T) -> T {
        let _reading = self.long_reads.blocking_read();
        self.read(look)
    }

    /// Like [`Self::read_long`], for a task on a thread of its own.
    pub(crate) async fn read_long_async<T>(&self, look: impl FnOnce(&L::State) -> T) -> T {
        let _reading = self.long_reads.read().await;
        self.read(look)
    }

    /// The version of the state. Every commit increments it.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Waits for the right to write.
    pub(crate) async fn lock_for_writing(&self) -> WriteGuard<'_, L> {
        WriteGuard(self.log.lock().await)
    }

    /// Takes the right to write, unless another task holds it.
    pub(crate) fn try_lock_for_writing(&self) -> Option<WriteGuard<'_, L>> {
        Some(WriteGuard(self.log.try_lock().ok()?))
    }

    /// Makes facts durable in one append. After any error none of them was written.
    pub(crate) async fn append(
        store: &StoreHandle,
        log: &mut L,
        facts: &[L::Fact],
    ) -> Result<AppendResult<L::Fact>, L::Error> {
        let Some(command) = log.append_command(store.store(), facts)? else {
            return Ok(AppendResult::Appended);
        };
        match store.run(command).await {
            Ok(Outcome::Appended(appended)) => {
                log.record_appended(&appended);
                Ok(AppendResult::Appended)
            }
            Ok(other) => Err(L::unexpected_outcome(&other)),
            Err(refusal @ Refusal::HeadMoved { .. }) => {
                // The position moves only with the facts: a failed read must not skip any of them.
                let mut read = log.clone();
                let foreign = read.read_new_facts(store.store())?;
                *log = read;
                Ok(AppendResult::HeadMoved { foreign, refusal })
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Applies durable facts. `look` reads the new state before any reader does.
    pub(crate) async fn apply<T>(
        &self,
        facts: Vec<L::Fact>,
        look: impl FnOnce(&L::State) -> T,
    ) -> T {
        // Waits for long reads here, not at the lock below, which short reads use.
        let _no_long_reads = self.long_reads.write().await;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for fact in facts {
            L::apply(&mut state, fact);
        }
        // Incremented under the write lock, so that a reader never pairs a new version with an old
        // state.
        self.version.fetch_add(1, Ordering::AcqRel);
        look(&state)
    }
}
