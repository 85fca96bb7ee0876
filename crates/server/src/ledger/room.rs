//! One world: its state for readers, and the one place from which it is written.
//!
//! Readers hold a read lock for as long as an answer takes; the writer takes the write lock only to
//! take facts over that are durable. It waits for long readers before it asks for that lock, so
//! that nobody who looks shortly, on the runtime's own thread, ever stands behind it. The world
//! `default` has no contexts until it is first written to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Mutex, MutexGuard, watch};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::{Ids, Name};
use turnkeep_ledger::log::{ForkBase, WorldLog};
use turnkeep_ledger::record;
use turnkeep_ledger::{Fault, Viewer, World};
use turnkeep_store::{Command, Outcome, Refusal};
use turnkeep_types::{ContextId, Timestamp};

use super::error::LedgerError;
use super::in_flight::InFlight;
use super::making::beginning;
use super::news::Teller;
use super::pages::Pages;
use super::worlds::Keeper;
use super::writer::Seat;

/// A world.
pub(crate) struct Room {
    name: Name,
    world: RwLock<World>,
    /// Held by those who read for long, and by whoever takes facts over.
    studies: tokio::sync::RwLock<()>,
    place: Mutex<Option<WorldLog>>,
    changed: watch::Sender<u32>,
    /// Counts commits; it changes only while the world's write lock is held.
    version: AtomicU64,
    pages: Pages,
    pub(super) flights: Arc<InFlight>,
    pub(super) seat: Seat,
    pub(super) keeper: Arc<Keeper>,
}

/// The right to write, one at a time.
pub(super) struct Pen<'a>(MutexGuard<'a, Option<WorldLog>>);

impl Room {
    /// A world as it was read from its contexts, or one that has none yet.
    pub(super) fn new(world: World, place: Option<WorldLog>, keeper: Arc<Keeper>) -> Arc<Self> {
        let (changed, _) = watch::channel(world.position());
        Arc::new(Self {
            name: world.config.world.clone(),
            world: RwLock::new(world),
            studies: tokio::sync::RwLock::default(),
            place: Mutex::new(place),
            changed,
            version: AtomicU64::new(1),
            pages: Pages::default(),
            flights: Arc::default(),
            seat: Seat::default(),
            keeper,
        })
    }

    /// The world's name.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Reads the world shortly: it may be on the thread that serves everybody.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.world.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the world for as long as it takes, on a thread that may wait. Commits of this world
    /// wait for it, and nothing else does.
    pub(crate) fn study<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        let _reading = self.studies.blocking_read();
        self.read(look)
    }

    /// The same for a task that has a thread of its own.
    pub(super) async fn study_here<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        let _reading = self.studies.read().await;
        self.read(look)
    }

    /// Which version of the world a look sees; every commit makes a new one.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The pages that subscribers share.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Word of every commit: how many entries there are.
    pub(crate) fn changed(&self) -> watch::Receiver<u32> {
        self.changed.subscribe()
    }

    /// Waits until a reader may see more entries than so many. What is hidden from the reader ends
    /// no wait.
    pub(crate) async fn wait_for_news(&self, viewer: &Viewer, place: u64) {
        let mut changed = self.changed();
        loop {
            changed.borrow_and_update();
            if self.read(|world| world.view(viewer.clone()).count()) > place {
                return;
            }
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.keeper.clock.now()
    }

    /// New random ids.
    pub(crate) fn ids(&self) -> Ids {
        self.keeper.ids()
    }

    /// Records facts that need no decision: configuration, people, tokens, lines of audit.
    pub(crate) async fn record(self: &Arc<Self>, facts: Vec<Fact>) -> Result<(), LedgerError> {
        self.record_what(|_| Ok(facts)).await
    }

    /// Records what a look at the world amounts to; nobody else writes in between.
    pub(crate) async fn record_what(
        self: &Arc<Self>,
        decide: impl FnOnce(&World) -> Result<Vec<Fact>, Fault> + Send + 'static,
    ) -> Result<(), LedgerError> {
        let room = Arc::clone(self);
        let work = async move {
            let mut pen = room.pen().await;
            let facts = room.read(decide)?;
            room.commit(&mut pen, facts).await?;
            drop(pen);
            let keeper = Arc::clone(&room.keeper);
            keeper.beside(async move { room.dismiss_writer().await });
            Ok(())
        };
        self.keeper.finish(work).await?
    }

    /// Waits for the right to write.
    pub(super) async fn pen(&self) -> Pen<'_> {
        Pen(self.place.lock().await)
    }

    /// Makes facts durable in one append and takes them over. On any error nothing was written.
    ///
    /// Callers run it in a task of its own: one that goes away must not keep what is durable out of
    /// the world.
    pub(super) async fn commit(
        &self,
        pen: &mut Pen<'_>,
        facts: Vec<Fact>,
    ) -> Result<(), LedgerError> {
        if pen.0.is_none() {
            let beginning = self.read(beginning);
            let place = self
                .keeper
                .found(&self.name, ForkBase::default(), beginning)
                .await?;
            place
                .contexts()
                .into_iter()
                .for_each(|context| self.keeper.own(context, &self.name));
            *pen.0 = Some(place);
        }
        let Some(place) = pen.0.as_mut() else {
            return Ok(());
        };
        let Some(command) = place.append_command(&facts)? else {
            return Ok(());
        };
        match self.keeper.store.run(command).await {
            Ok(Outcome::Appended(appended)) => place.record_appended(&appended),
            Ok(other) => {
                return Err(LedgerError::Abandoned(format!(
                    "an append ended as {other:?}"
                )));
            }
            Err(Refusal::HeadMoved {
                context,
                expected,
                actual,
            }) => {
                self.catch_up(place).await?;
                return Err(Refusal::HeadMoved {
                    context,
                    expected,
                    actual,
                }
                .into());
            }
            Err(refusal) => return Err(refusal.into()),
        }
        self.take_over(facts).await;
        Ok(())
    }

    async fn take_over(&self, facts: Vec<Fact>) {
        let is_news = Teller::is_news(&facts);
        let _alone = self.studies.write().await;
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        for fact in facts {
            world.apply(fact);
        }
        let position = world.position();
        self.version.fetch_add(1, Ordering::AcqRel);
        drop(world);
        self.changed.send_replace(position);
        if is_news {
            self.keeper.teller.tell_of(&self.name);
        }
    }

    /// Somebody else wrote to the world's contexts: reads what is there.
    async fn catch_up(&self, place: &mut WorldLog) -> Result<(), LedgerError> {
        let mut facts = Vec::new();
        place.read_new_facts(self.keeper.store.store(), |_, fact| facts.push(fact))?;
        self.take_over(facts).await;
        Ok(())
    }

    /// Publishes the types of the ledger's records.
    pub(super) fn bundles() -> impl Iterator<Item = Command> {
        record::BUNDLES.iter().map(|bundle| {
            let json = bytes::Bytes::from_static(bundle.json.as_bytes());
            Command::PutBundle {
                id: bundle.id.to_owned(),
                json,
            }
        })
    }

    /// The contexts that the world has, if it has any.
    pub(crate) async fn contexts(&self) -> Option<[ContextId; 3]> {
        self.place.lock().await.as_ref().map(WorldLog::contexts)
    }

    /// The same, and how far they were read, with a look at the world as it is then: no commit is
    /// under way.
    pub(super) async fn between_commits<T>(
        &self,
        look: impl FnOnce(&World) -> T,
    ) -> (Option<WorldLog>, T) {
        let place = self.place.lock().await;
        (place.clone(), self.read(look))
    }
}
