//! All worlds: found in the store at start, made and forked while it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_ledger::as_of::Point;
use turnkeep_ledger::config::{Person, Profile};
use turnkeep_ledger::fact::{Fact, Fork};
use turnkeep_ledger::ids::{Ids, Name, TokenId};
use turnkeep_ledger::log::{self, Place};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Code, Config, Fault, Principal, World};
use turnkeep_types::{Clock, ContextId, Timestamp, TurnId};

use super::error::LedgerError;
use super::news::{News, Teller};
use super::room::Room;
use crate::handle::StoreHandle;

/// The world that is there from the first start.
pub(crate) const DEFAULT: &str = "default";

/// What every room needs of the server.
pub(super) struct Keeper {
    pub(super) store: StoreHandle,
    pub(super) clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
    published: OnceCell<()>,
    ids: Mutex<Ids>,
    contexts: RwLock<HashMap<ContextId, Name>>,
    pub(super) teller: Teller,
}

impl Keeper {
    /// Runs work to its end even if whoever waits for it goes away.
    pub(super) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.tasks.spawn(work).await.map_err(|error| LedgerError::Abandoned(error.to_string()))
    }

    /// Publishes the types of records, once.
    pub(super) async fn publish(&self) -> Result<(), LedgerError> {
        let put = async || self.store.run(Room::bundle()).await.map(drop);
        Ok(self.published.get_or_try_init(put).await.copied()?)
    }

    /// New random ids, from the server's own source.
    pub(super) fn ids(&self) -> Ids {
        let mut source = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seed = [0; 32];
        let (low, high) = seed.split_at_mut(16);
        low.copy_from_slice(&source.draw().to_le_bytes());
        high.copy_from_slice(&source.draw().to_le_bytes());
        Ids::from_seed(&seed)
    }
}

/// All worlds of the server.
#[derive(Clone)]
pub(crate) struct Worlds {
    rooms: Arc<RwLock<BTreeMap<Name, Arc<Room>>>>,
    /// One world is made at a time.
    making: Arc<tokio::sync::Mutex<()>>,
    keeper: Arc<Keeper>,
}

impl Worlds {
    /// Reads every world from the store.
    pub(crate) fn open(
        store: StoreHandle,
        clock: Arc<dyn Clock>,
        (tasks, stopping): (TaskTracker, CancellationToken),
        seed: &[u8; 32],
    ) -> Result<Self, LedgerError> {
        let ids = Mutex::new(Ids::from_seed(seed));
        let keeper = Keeper {
            store,
            clock,
            tasks,
            stopping,
            published: OnceCell::new(),
            ids,
            contexts: RwLock::default(),
            teller: Teller::default(),
        };
        let worlds = Self { rooms: Arc::default(), making: Arc::default(), keeper: Arc::new(keeper) };
        for (_, contexts) in log::find_worlds(worlds.keeper.store.store()) {
            if let Some((world, place)) = log::load(worlds.keeper.store.store(), contexts)? {
                worlds.add(world, Some(place));
            }
        }
        if worlds.get(DEFAULT).is_none()
            && let Some(name) = Name::new(DEFAULT)
        {
            let start = WorldTime::at(worlds.keeper.clock.now());
            worlds.add(World::new(Config::new(name, Profile::Narrative, start)), None);
        }
        Ok(worlds)
    }

    fn add(&self, world: World, place: Option<Place>) -> Arc<Room> {
        let contexts = place.as_ref().map(Place::contexts);
        let room = Room::new(world, place, Arc::clone(&self.keeper));
        for context in contexts.into_iter().flatten() {
            self.keeper.own(context, room.name());
        }
        let mut rooms = self.rooms.write().unwrap_or_else(PoisonError::into_inner);
        rooms.insert(room.name().clone(), Arc::clone(&room));
        room
    }

    /// The world of this name.
    pub(crate) fn get(&self, world: &str) -> Option<Arc<Room>> {
        self.rooms.read().unwrap_or_else(PoisonError::into_inner).get(world).cloned()
    }

    /// Every world, by name.
    pub(crate) fn list(&self) -> Vec<Arc<Room>> {
        self.rooms.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Word of every world that changes from now on.
    pub(crate) fn news(&self) -> News {
        self.keeper.teller.listen()
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.keeper.clock.now()
    }

    /// The world whose context this is.
    pub(crate) fn owner_of(&self, context: ContextId) -> Option<Arc<Room>> {
        let name = self.keeper.owner_of(context)?;
        self.get(name.as_str())
    }

    /// Whether any context is a world's.
    pub(crate) fn own_any(&self) -> bool {
        !self.keeper.contexts.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whose token this is, if it counts now.
    pub(crate) fn principal_of(
        &self,
        secret: &str,
        now: Timestamp,
    ) -> Option<(Arc<Room>, Principal, TokenId)> {
        let room = self.get(token_world(secret)?)?;
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        let found = room.read(|world| {
            let token = world.token_of_secret(&hash)?;
            let counts = token.expires_at.is_none_or(|end| now < end);
            counts.then(|| (Principal::Person { id: token.person.clone(), write: token.write }, token.id))
        });
        found.map(|(principal, id)| (room, principal, id))
    }

    /// Makes a world.
    pub(crate) async fn create(
        &self,
        config: Config,
        persons: Vec<Person>,
    ) -> Result<Arc<Room>, LedgerError> {
        let mut world = World::new(config);
        for person in persons {
            world.apply(Fact::Person(person));
        }
        self.make(world, None).await
    }

    /// Makes a world that shares the past of another, up to the last beat that a point covers.
    pub(crate) async fn fork(
        &self,
        origin: &Room,
        world: Name,
        point: Option<&Point>,
    ) -> Result<Arc<Room>, LedgerError> {
        let contexts = origin.contexts().await;
        let contexts = contexts.ok_or_else(|| Fault::new(Code::NotFound, "at", "nothing was written yet"))?;
        let (base, past) = shared_past(&self.keeper, contexts, point)?;
        let mut fork = origin.read(|origin| {
            let mut config = origin.config.clone();
            config.world = world;
            let mut fork = World::new(config);
            origin.people.iter().cloned().for_each(|person| fork.apply(Fact::Person(person)));
            fork
        });
        for fact in past {
            fork.apply(fact);
        }
        fork.apply(Fact::Forked(Fork { from: origin.name().clone(), position: fork.position() }));
        self.make(fork, base).await
    }

    /// Makes a world even if whoever asked for it goes away.
    async fn make(&self, world: World, base: Option<TurnId>) -> Result<Arc<Room>, LedgerError> {
        let worlds = self.clone();
        self.keeper.finish(async move { worlds.make_to_the_end(world, base).await }).await?
    }

    async fn make_to_the_end(&self, world: World, base: Option<TurnId>) -> Result<Arc<Room>, LedgerError> {
        let _one = self.making.lock().await;
        let name = world.config.world.clone();
        if self.get(name.as_str()).is_some() {
            return Err(Fault::new(Code::NameTaken, "world_id", "there is a world of this name").into());
        }
        let room = Room::new(world, None, Arc::clone(&self.keeper));
        room.settle(base).await?;
        let contexts = room.contexts().await;
        for context in contexts.into_iter().flatten() {
            self.keeper.own(context, &name);
        }
        self.rooms.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::clone(&room));
        self.keeper.teller.tell_of(room.name());
        Ok(room)
    }
}

impl Keeper {
    /// Notes whose context this is.
    pub(super) fn own(&self, context: ContextId, world: &Name) {
        let mut contexts = self.contexts.write().unwrap_or_else(PoisonError::into_inner);
        contexts.insert(context, world.clone());
    }

    fn owner_of(&self, context: ContextId) -> Option<Name> {
        self.contexts.read().unwrap_or_else(PoisonError::into_inner).get(&context).cloned()
    }
}

/// The facts of a world's reality up to the last beat that a point covers, and the turn of that beat.
fn shared_past(
    keeper: &Keeper,
    contexts: [ContextId; 3],
    point: Option<&Point>,
) -> Result<(Option<TurnId>, Vec<Fact>), LedgerError> {
    let mut facts = Vec::new();
    let mut kept = (None, 0);
    let mut shared = 0;
    Place::new(contexts).reality(keeper.store.store(), |turn, fact| {
        let covered = match &fact {
            Fact::Outcome(outcome) if point.is_none_or(|point| point.covers(shared, outcome)) => {
                Some(outcome.position)
            }
            _ => None,
        };
        facts.push(fact);
        if let Some(position) = covered {
            (kept, shared) = ((Some(turn), facts.len()), position);
        }
    })?;
    facts.truncate(kept.1);
    Ok((kept.0, facts))
}

/// What a person's token begins with.
const TOKEN_PREFIX: &str = "tkp.";

/// The text of a new token: it names its world, so that it is found without a search.
pub(crate) fn token_text(world: &Name, ids: &mut Ids) -> String {
    format!("{TOKEN_PREFIX}{world}.{:032x}{:032x}", ids.draw(), ids.draw())
}

/// The world that a token's text names.
fn token_world(secret: &str) -> Option<&str> {
    secret.strip_prefix(TOKEN_PREFIX)?.rsplit_once('.').map(|(world, _)| world)
}
