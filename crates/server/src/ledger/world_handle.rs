//! One world: its state for readers, and the only way to write to it.
//!
//! [`DurableState`] keeps the world in step with its records. This module adds what only worlds
//! have: contexts that are created at the first write (the world `default` has none until then),
//! subscribers to its entries, and an attached writer.
//!
//! A write goes through five steps: lock the log, decide from the world, append to the store, wait
//! for long reads, apply. Only the last step holds the write lock. If the append finds that another
//! writer moved the head, the handle applies the foreign facts and the caller decides again.

use std::sync::Arc;

use tokio::sync::watch;
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::{Ids, Name};
use turnkeep_ledger::log::{ForkBase, WorldContexts, WorldLog};
use turnkeep_ledger::record;
use turnkeep_ledger::{Fault, Viewer, World};
use turnkeep_store::{Appended, Command, Outcome, Store};
use turnkeep_types::Timestamp;

use super::change_notifier::WorldChangeNotifier;
use super::error::LedgerError;
use super::in_flight::InFlight;
use super::pages::Pages;
use super::world_creation::initial_facts;
use super::worlds::LedgerServices;
use super::writer::WriterSlot;
use crate::durable_state::{AppendResult, DurableState, RecordLog};

/// The right to write to a world, held by one task at a time.
pub(super) type WorldWriteGuard<'a> = crate::durable_state::WriteGuard<'a, WorldLog>;

impl RecordLog for WorldLog {
    type State = World;
    type Fact = Fact;
    type Error = LedgerError;

    fn append_command(
        &self,
        _store: &Store,
        facts: &[Fact],
    ) -> Result<Option<Command>, LedgerError> {
        Ok(Self::append_command(self, facts)?)
    }

    fn record_appended(&mut self, appended: &Appended) {
        Self::record_appended(self, appended);
    }

    fn read_new_facts(&mut self, store: &Store) -> Result<Vec<Fact>, LedgerError> {
        let mut facts = Vec::new();
        Self::read_new_facts(self, store, |_, fact| facts.push(fact))?;
        Ok(facts)
    }

    fn apply(world: &mut World, fact: Fact) {
        world.apply(fact);
    }

    fn unexpected_outcome(outcome: &Outcome) -> LedgerError {
        LedgerError::Abandoned(format!("an append ended as {outcome:?}"))
    }
}

/// A world in memory with its log.
pub(crate) struct WorldHandle {
    name: Name,
    durable: DurableState<WorldLog>,
    /// The number of entries after the last commit.
    changed: watch::Sender<u32>,
    pages: Pages,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) writer: WriterSlot,
    pub(super) services: Arc<LedgerServices>,
}

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
            durable: DurableState::new(world, log),
            changed,
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
        self.durable.read(look)
    }

    /// Reads the world for as long as it takes, on a thread that may block. Only commits of this
    /// world wait for it.
    pub(crate) fn read_long<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        self.durable.read_long(look)
    }

    /// Like [`Self::read_long`], for a task on a thread of its own.
    pub(super) async fn read_long_async<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        self.durable.read_long_async(look).await
    }

    /// The version of the world. Every commit increments it.
    pub(crate) fn version(&self) -> u64 {
        self.durable.version()
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
    pub(super) async fn lock_for_writing(&self) -> WorldWriteGuard<'_> {
        self.durable.lock_for_writing().await
    }

    /// Makes facts durable in one append and applies them. After any error none of
    /// these facts was written.
    ///
    /// Callers run it in a task of its own: a caller that is cancelled between the two steps would
    /// leave durable facts out of the world.
    pub(super) async fn commit(
        &self,
        guard: &mut WorldWriteGuard<'_>,
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
        match DurableState::append(&self.services.store, log, &facts).await? {
            AppendResult::Appended => {
                self.apply_facts(facts).await;
                Ok(())
            }
            AppendResult::HeadMoved { foreign, refusal } => {
                self.apply_facts(foreign).await;
                Err(refusal.into())
            }
        }
    }

    async fn apply_facts(&self, facts: Vec<Fact>) {
        let is_change = WorldChangeNotifier::is_change(&facts);
        let position = self.durable.apply(facts, World::position).await;
        // Sent after the lock is released: subscribers read the world at once.
        self.changed.send_replace(position);
        if is_change {
            self.services.changes.notify(&self.name);
        }
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
        let guard = self.lock_for_writing().await;
        guard.0.as_ref().map(WorldLog::contexts)
    }

    /// Reads the world together with its log; `None` if a commit is under way or the world has no
    /// log yet.
    pub(super) fn read_with_log<T>(&self, look: impl FnOnce(&World, &WorldLog) -> T) -> Option<T> {
        let guard = self.durable.try_lock_for_writing()?;
        let log = guard.0.as_ref()?;
        Some(self.read(|world| look(world, log)))
    }

    /// Reads the world together with its log, while no commit is under way.
    pub(super) async fn between_commits<T>(
        &self,
        look: impl FnOnce(&World) -> T,
    ) -> (Option<WorldLog>, T) {
        let guard = self.lock_for_writing().await;
        (guard.0.clone(), self.read(look))
    }
}
