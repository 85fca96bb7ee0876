//! All worlds: found in the store at start, and those that were made since.
//!
//! A world that cannot be read is kept by its name with the reason: its routes say so, its name
//! stays taken, and the others work. The search index of a world with many entries is kept in a
//! checkpoint, written at the start after a long tail and when the server stops; without it the
//! start only takes longer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_ledger::checkpoint::{self, Checkpoint};
use turnkeep_ledger::config::Profile;
use turnkeep_ledger::ids::{Ids, Name, TokenId};
use turnkeep_ledger::log::{self, FoundWorld, LoadError, LoadedWorld, WorldLog};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Config, Principal, World};
use turnkeep_store::Store;
use turnkeep_types::{Clock, ContextId, Timestamp};

use super::error::LedgerError;
use super::news::{News, Teller};
use super::rehydrations::Rehydrations;
use super::room::Room;
use crate::handle::StoreHandle;

/// The world that is there from the first start, and whose envelopes `POST /invocations` takes.
pub(crate) const DEFAULT_WORLD: &str = "default";

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
    pub(super) rehydrations: Rehydrations,
}

impl Keeper {
    /// Runs work to its end even if whoever waits for it goes away.
    pub(super) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.tasks
            .spawn(work)
            .await
            .map_err(|error| LedgerError::Abandoned(error.to_string()))
    }

    /// Lets work go on that nobody waits for.
    pub(super) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(work));
    }

    /// Runs work that takes long on a thread of its own.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.tasks
            .spawn_blocking(work)
            .await
            .map_err(|error| LedgerError::Abandoned(error.to_string()))
    }

    /// Publishes the types of records, once.
    pub(super) async fn publish(&self) -> Result<(), LedgerError> {
        let put = async || {
            for bundle in Room::bundles() {
                self.store.run(bundle).await?;
            }
            Ok::<(), LedgerError>(())
        };
        self.published.get_or_try_init(put).await.copied()
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

/// Where checkpoints are, in the data directory.
const CHECKPOINTS: &str = "worlds";
/// Entries that are indexed again at a start rather than kept in a checkpoint.
const TAIL_ENTRIES_MAX: usize = 4096;
/// Bytes of their texts.
const TAIL_BYTES_MAX: usize = 1 << 20;

/// A world that could not be read.
struct Unreadable {
    error: LoadError,
    contexts: [ContextId; 3],
    /// What its audit says, if that could be read: whose tokens count.
    audit: Option<World>,
}

/// All worlds of the server.
pub(crate) struct Worlds {
    rooms: RwLock<BTreeMap<Name, Arc<Room>>>,
    unreadable: BTreeMap<Name, Unreadable>,
    /// How many entries the checkpoint of a world has.
    kept: Mutex<BTreeMap<Name, u32>>,
    /// One world is made at a time.
    pub(super) making: tokio::sync::Mutex<()>,
    pub(super) keeper: Arc<Keeper>,
}

impl Worlds {
    /// Reads every world from the store.
    pub(crate) fn open(
        store: StoreHandle,
        clock: Arc<dyn Clock>,
        (tasks, stopping): (TaskTracker, CancellationToken),
        seed: &[u8; 32],
    ) -> Arc<Self> {
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
            rehydrations: Rehydrations::default(),
        };
        let mut worlds = Self {
            rooms: RwLock::default(),
            unreadable: BTreeMap::new(),
            kept: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            keeper: Arc::new(keeper),
        };
        for FoundWorld { name, contexts } in log::find_worlds(worlds.keeper.store.store()) {
            if let Err(error) = worlds.load(&name, contexts) {
                tracing::error!(world = %name, %error, "the world cannot be read; the others are served");
                for context in contexts {
                    worlds.keeper.own(context, &name);
                }
                let audit = log::load_audit(worlds.keeper.store.store(), contexts)
                    .ok()
                    .flatten();
                worlds.unreadable.insert(
                    name,
                    Unreadable {
                        error,
                        contexts,
                        audit,
                    },
                );
            }
        }
        if let Ok(None) = worlds.find(DEFAULT_WORLD)
            && let Some(name) = Name::new(DEFAULT_WORLD)
        {
            let start = WorldTime::at(worlds.keeper.clock.now());
            worlds.add(
                World::new(Config::new(name, Profile::Narrative, start)),
                None,
            );
        }
        worlds.keep();
        Arc::new(worlds)
    }

    fn load(&self, name: &Name, contexts: [ContextId; 3]) -> Result<(), LoadError> {
        let store = self.keeper.store.store();
        let checkpoint = read_checkpoint(store, name);
        let kept = checkpoint.as_ref().map_or(0, Checkpoint::len);
        let Some(LoadedWorld { world, log: place }) =
            checkpoint::load(store, contexts, checkpoint)?
        else {
            return Ok(());
        };
        // A checkpoint of more entries than there are was not used.
        let kept = if kept <= world.position() { kept } else { 0 };
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), kept);
        self.add(world, Some(place));
        Ok(())
    }

    /// Writes the checkpoints of worlds whose tail is long. What cannot be written is read from the
    /// log.
    pub(crate) fn keep(&self) {
        let store = self.keeper.store.store();
        for room in self.list() {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = kept.entry(room.name().clone()).or_default();
            let position = room.read(World::position);
            if !room.read(|world| is_long(world, *kept)) {
                continue;
            }
            let Some(bytes) = room.read(|world| checkpoint::encode(world, store.id())) else {
                continue;
            };
            match write_checkpoint(store, room.name(), &bytes) {
                Ok(()) => *kept = position,
                Err(error) => {
                    tracing::warn!(world = %room.name(), %error, "no checkpoint was written")
                }
            }
        }
    }

    pub(super) fn add(&self, world: World, place: Option<WorldLog>) -> Arc<Room> {
        let contexts = place.as_ref().map(WorldLog::contexts);
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
        self.rooms
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(world)
            .cloned()
    }

    /// The world of this name, if there is one; an error if it is there and cannot be read.
    pub(crate) fn find(&self, world: &str) -> Result<Option<Arc<Room>>, LedgerError> {
        match self.unreadable.get(world) {
            Some(unreadable) => Err(LedgerError::Unreadable(unreadable.error.clone())),
            None => Ok(self.get(world)),
        }
    }

    /// The name of another world that differs from this one by upper and lower case only.
    pub(super) fn find_other_spelling(&self, name: &Name) -> Option<Name> {
        let rooms = self.rooms.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = rooms.keys().chain(self.unreadable.keys());
        all.find(|other| *other != name && other.as_str().eq_ignore_ascii_case(name.as_str()))
            .cloned()
    }

    /// Every world that can be read, by name.
    pub(crate) fn list(&self) -> Vec<Arc<Room>> {
        self.rooms
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Word of every world that changes from now on.
    pub(crate) fn news(&self) -> News {
        self.keeper.teller.listen()
    }

    /// What rehydrations took along since the start.
    pub(crate) fn rehydrations(&self) -> &Rehydrations {
        &self.keeper.rehydrations
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.keeper.clock.now()
    }

    /// The contexts of a world that cannot be read.
    pub(crate) fn unreadable(&self, world: &str) -> Option<[ContextId; 3]> {
        self.unreadable
            .get(world)
            .map(|unreadable| unreadable.contexts)
    }

    /// The name of the world whose context this is, whether it can be read or not.
    pub(crate) fn name_of(&self, context: ContextId) -> Option<Name> {
        self.keeper.owner_of(context)
    }

    /// The world whose context this is, if it can be read.
    pub(crate) fn owner_of(&self, context: ContextId) -> Option<Arc<Room>> {
        self.get(self.name_of(context)?.as_str())
    }

    /// Whether this context is a world's.
    pub(crate) fn own(&self, context: ContextId) -> bool {
        let contexts = self
            .keeper
            .contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.contains_key(&context)
    }

    /// How many contexts are those of worlds.
    pub(crate) fn context_count(&self) -> u64 {
        self.keeper
            .contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len() as u64
    }

    /// Whether any context is a world's.
    pub(crate) fn own_any(&self) -> bool {
        !self
            .keeper
            .contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// Whose token this is, if it counts now; an error if it counts in a world that cannot
    /// be read, or if nobody can tell because its audit is damaged.
    pub(crate) fn principal_of(
        &self,
        secret: &str,
        now: Timestamp,
    ) -> Result<Option<(Arc<Room>, Principal, TokenId)>, LedgerError> {
        let Some(world) = token_world(secret) else {
            return Ok(None);
        };
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        if let Some(Unreadable { error, audit, .. }) = self.unreadable.get(world) {
            let counts = audit
                .as_ref()
                .is_none_or(|world| world.token_at(&hash, now).is_some());
            return if counts {
                Err(LedgerError::Unreadable(error.clone()))
            } else {
                Ok(None)
            };
        }
        let Some(room) = self.get(world) else {
            return Ok(None);
        };
        let found = room.read(|world| {
            let token = world.token_at(&hash, now)?;
            Some((
                Principal::Person {
                    id: token.person.clone(),
                    write: token.write,
                },
                token.id,
            ))
        });
        Ok(found.map(|(principal, id)| (room, principal, id)))
    }
}

impl Keeper {
    /// Notes whose context this is.
    pub(super) fn own(&self, context: ContextId, world: &Name) {
        let mut contexts = self
            .contexts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.insert(context, world.clone());
    }

    fn owner_of(&self, context: ContextId) -> Option<Name> {
        self.contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&context)
            .cloned()
    }
}

pub(super) fn checkpoint_name(world: &Name) -> String {
    format!("{CHECKPOINTS}/{world}.ckpt")
}

/// Whether a world has many entries behind so many, or much text in them.
fn is_long(world: &World, kept: u32) -> bool {
    let tail = world.all_entries().get(kept as usize..).unwrap_or_default();
    tail.len() >= TAIL_ENTRIES_MAX
        || tail.iter().map(|entry| entry.text.len()).sum::<usize>() > TAIL_BYTES_MAX
}

/// The checkpoint of a world, if there is one that is whole and its own.
pub(super) fn read_checkpoint(store: &Store, world: &Name) -> Option<Checkpoint> {
    let file = store.storage().open(&checkpoint_name(world)).ok()?;
    let bytes = file.read(0..file.len()).ok()?;
    let checkpoint = Checkpoint::decode(&bytes, world.as_str(), store.id());
    if checkpoint.is_none() {
        tracing::info!(%world, "its checkpoint is not used: it is read from the log alone");
    }
    checkpoint
}

/// Writes beside the name, then renames: a crash leaves the old one or the new one.
fn write_checkpoint(store: &Store, world: &Name, bytes: &[u8]) -> std::io::Result<()> {
    let (name, beside) = (checkpoint_name(world), format!("{CHECKPOINTS}/{world}.new"));
    let file = store.storage().create(&beside, 0)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    store.storage().rename(&beside, &name)
}

/// What a person's token begins with.
const TOKEN_PREFIX: &str = "tkp.";

/// The text of a new token: it names its world, so that it is found without a search.
pub(crate) fn token_text(world: &Name, ids: &mut Ids) -> String {
    format!(
        "{TOKEN_PREFIX}{world}.{:032x}{:032x}",
        ids.draw(),
        ids.draw()
    )
}

/// The world that a token's text names.
fn token_world(secret: &str) -> Option<&str> {
    secret
        .strip_prefix(TOKEN_PREFIX)?
        .rsplit_once('.')
        .map(|(world, _)| world)
}
