//! One world: its state for readers, and the only way to write to it.
//!
//! Readers hold a read lock while they make an answer. A commit takes the write lock only to apply
//! facts that are durable already. Before that it waits for long reads (`long_reads`), so that
//! short reads, which run on the runtime's threads, never queue behind a writer that waits for a
//! long read. The world `default` has no contexts until its first write.
//!
//! A write goes through five steps: lock the log, decide from the world, append to the store, wait
//! for long reads, apply. Only the last step holds the write lock. If the append finds that another
//! writer moved the head, the handle applies the foreign facts and the caller decides again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Mutex, MutexGuard, watch};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::{Ids, Name};
use turnkeep_ledger::log::{ForkBase, WorldContexts, WorldLog};
use turnkeep_ledger::record;
use turnkeep_ledger::{Fault, Viewer, World};
use turnkeep_store::{Command, Outcome, Refusal};
use turnkeep_types::Timestamp;

use super::change_notifier::WorldChangeNotifier;
use super::error::LedgerError;
use super::in_flight::InFlight;
use super::pages::Pages;
use super::world_creation::initial_facts;
use super::worlds::LedgerServices;
use super::writer::WriterSlot;

/// A world in memory with its log.
pub(crate) struct WorldHandle {
    name: Name,
    world: RwLock<World>,
    /// Long reads hold it shared, and applying facts holds it exclusively.
    long_reads: tokio::sync::RwLock<()>,
    /// The position in the store. Its lock is the right to write.
    log: Mutex<Option<WorldLog>>,
    /// The number of entries after the last commit.
    changed: watch::Sender<u32>,
    /// Counts commits. It only changes while the world's write lock is held.
    version: AtomicU64,
    pages: Pages,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) writer: WriterSlot,
    pub(super) services: Arc<LedgerServices>,
}

/// The right to write to a world, held by one task at a time.
pub(super) struct WriteGuard<'a>(MutexGuard<'a, Option<WorldLog>>);

impl WorldHandle {
    /// Makes the handle of a loaded world, or of one that has no contexts yet.
    pub(super) fn new(
        world: World,
        log: Option<WorldLog>,
        services: Arc<LedgerServices>,
    ) -> Arc<Self> {
        let (changed, _) = watch::channel(world.position());
        Arc::new(Self {
            name: world.config.world.clone(),
            world: RwLock::new(world),
            long_reads: tokio::sync::RwLock::default(),
            log: Mutex::new(log),
            changed,
            version: AtomicU64::new(1),
            pages: Pages::default(),
            in_flight: Arc::default(),
            writer: WriterSlot::default(),
            services,
        })
    }

    /// The world's name.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Reads the world briefly. It may run on a thread of the runtime.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.world.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the world for as long as it takes, on a thread that may block. Only commits of this
    /// world wait for it.
    pub(crate) fn read_long<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        let _reading = self.long_reads.blocking_read();
        self.read(look)
    }

    /// Like [`Self::read_long`], for a task on a thread of its own.
    pub(super) async fn read_long_async<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        let _reading = self.long_reads.read().await;
        self.read(look)
    }

    /// The version of the world. Every commit increments it.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The pages that subscribers share.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The number of entries, and a notification at every commit.
    pub(crate) fn subscribe_position(&self) -> watch::Receiver<u32> {
        self.changed.subscribe()
    }

    /// Waits until the reader sees more than `place` entries. Hidden entries do not end the wait.
    pub(crate) async fn wait_for_entries(&self, viewer: &Viewer, place: u64) {
        let mut changed = self.subscribe_position();
        loop {
            // Marks the current value as seen before the count, so that a commit in between wakes
            // the loop.
            changed.borrow_and_update();
            if self.read(|world| world.view(viewer.clone()).count()) > place {
                return;
            }
            if changed.changed().await.is_err() {
                // The sender is part of this handle, so it cannot close while the handle is
                // borrowed.
                return std::future::pending().await;
            }
        }
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.services.clock.now()
    }

    /// A source of random ids.
    pub(crate) fn ids(&self) -> Ids {
        self.services.new_ids()
    }

    /// Records facts that need no decision: configuration, people, tokens, audit lines.
    pub(crate) async fn record(self: &Arc<Self>, facts: Vec<Fact>) -> Result<(), LedgerError> {
        self.record_decided(|_| Ok(facts)).await
    }

    /// Records the facts that `decide` returns. No other write happens in between.
    pub(crate) async fn record_decided(
        self: &Arc<Self>,
        decide: impl FnOnce(&World) -> Result<Vec<Fact>, Fault> + Send + 'static,
    ) -> Result<(), LedgerError> {
        let handle = Arc::clone(self);
        let work = async move {
            let mut guard = handle.lock_for_writing().await;
            let facts = handle.read(decide)?;
            handle.commit(&mut guard, facts).await?;
            drop(guard);
            // The facts may have changed the writer's configuration. Its process may be busy with a
            // beat, so the caller does not wait until it is ended.
            let services = Arc::clone(&handle.services);
            services.spawn_background(async move { handle.end_outdated_writer().await });
            Ok(())
        };
        self.services.run_to_end(work).await?
    }

    /// Waits for the right to write.
    pub(super) async fn lock_for_writing(&self) -> WriteGuard<'_> {
        WriteGuard(self.log.lock().await)
    }

    /// Makes facts durable in one append and applies them. After any error none of
    /// these facts was written.
    ///
    /// Callers run it in a task of its own: a caller that is cancelled between the two steps would
    /// leave durable facts out of the world.
    pub(super) async fn commit(
        &self,
        guard: &mut WriteGuard<'_>,
        facts: Vec<Fact>,
    ) -> Result<(), LedgerError> {
        // A line about a read cannot be kept there; the owner reads all the same.
        if self.services.store.store().is_read_only() && !WorldChangeNotifier::is_change(&facts) {
            return Ok(());
        }
        // A store of an older program may lack record types that this program writes.
        self.services.publish_record_types().await?;
        // The world `default` gets its contexts with its first write.
        if guard.0.is_none() {
            let facts = self.read(initial_facts);
            let log = self
                .services
                .create_log(&self.name, ForkBase::default(), facts)
                .await?;
            for context in log.contexts().all() {
                self.services.claim_context(context, &self.name);
            }
            *guard.0 = Some(log);
        }
        let Some(log) = guard.0.as_mut() else {
            return Ok(());
        };
        let Some(command) = log.append_command(&facts)? else {
            return Ok(());
        };
        match self.services.store.run(command).await {
            Ok(Outcome::Appended(appended)) => log.record_appended(&appended),
            Ok(other) => {
                return Err(LedgerError::Abandoned(format!(
                    "an append ended as {other:?}"
                )));
            }
            // Another writer appended to the context. The caller decides again with these facts.
            Err(Refusal::HeadMoved {
                context,
                expected,
                actual,
            }) => {
                self.apply_foreign_facts(log).await?;
                return Err(Refusal::HeadMoved {
                    context,
                    expected,
                    actual,
                }
                .into());
            }
            Err(refusal) => return Err(refusal.into()),
        }
        self.apply_facts(facts).await;
        Ok(())
    }

    async fn apply_facts(&self, facts: Vec<Fact>) {
        let is_change = WorldChangeNotifier::is_change(&facts);
        // Waits for long reads here, not at the lock below, which short reads use.
        let _no_long_reads = self.long_reads.write().await;
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        for fact in facts {
            world.apply(fact);
        }
        let position = world.position();
        // Incremented under the write lock, so that a reader never pairs a new version with an old
        // world.
        self.version.fetch_add(1, Ordering::AcqRel);
        drop(world);
        // Sent after the lock is released: subscribers read the world at once.
        self.changed.send_replace(position);
        if is_change {
            self.services.changes.notify(&self.name);
        }
    }

    /// Reads and applies facts that another writer appended to the world's contexts.
    async fn apply_foreign_facts(&self, log: &mut WorldLog) -> Result<(), LedgerError> {
        let mut facts = Vec::new();
        // The position moves only with the facts: a failed read must not skip any of them.
        let mut read = log.clone();
        read.read_new_facts(self.services.store.store(), |_, fact| facts.push(fact))?;
        *log = read;
        self.apply_facts(facts).await;
        Ok(())
    }

    /// The commands that publish the types of the ledger's records.
    pub(super) fn record_type_commands() -> impl Iterator<Item = Command> {
        record::BUNDLES.iter().map(|bundle| {
            let json = bytes::Bytes::from_static(bundle.json.as_bytes());
            Command::PutBundle {
                id: bundle.id.to_owned(),
                json,
            }
        })
    }

    /// The contexts of the world, if it has any yet.
    pub(crate) async fn contexts(&self) -> Option<WorldContexts> {
        self.log.lock().await.as_ref().map(WorldLog::contexts)
    }

    /// Reads the world together with its log; `None` if a commit is under way or the world has no
    /// log yet.
    pub(super) fn read_with_log<T>(&self, look: impl FnOnce(&World, &WorldLog) -> T) -> Option<T> {
        let log = self.log.try_lock().ok()?;
        let log = log.as_ref()?;
        Some(self.read(|world| look(world, log)))
    }

    /// Reads the world together with its log, while no commit is under way.
    pub(super) async fn between_commits<T>(
        &self,
        look: impl FnOnce(&World) -> T,
    ) -> (Option<WorldLog>, T) {
        let log = self.log.lock().await;
        (log.clone(), self.read(look))
    }
}
