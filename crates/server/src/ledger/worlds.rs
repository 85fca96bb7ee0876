//! All worlds of the server: those found in the store at the start, and those created since.
//!
//! A world that cannot be read keeps its name and the error. Its routes return the error, and the
//! other worlds work. The evidence of a world with many entries is stored in a checkpoint.
//! Checkpoints are written at the start, if many entries had to be indexed, and when the server
//! stops. Without a checkpoint the start only takes longer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_ledger::checkpoint::{self, Checkpoint};
use turnkeep_ledger::config::Profile;
use turnkeep_ledger::ids::{Ids, Name, TokenId};
use turnkeep_ledger::log::{self, FoundWorld, LoadError, LoadedWorld, WorldContexts, WorldLog};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Config, Principal, World};
use turnkeep_store::Store;
use turnkeep_types::{Clock, ContextId, Timestamp};

use super::change_notifier::{WorldChangeNotifier, WorldChanges};
use super::error::LedgerError;
use super::rehydrations::Rehydrations;
use super::world_handle::WorldHandle;
use crate::handle::StoreHandle;

/// The world that exists from the first start. `POST /invocations` sends envelopes to it.
pub(crate) const DEFAULT_WORLD: &str = "default";

/// What every world needs from the server.
pub(super) struct LedgerServices {
    pub(super) store: StoreHandle,
    pub(super) clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
    published: OnceCell<()>,
    ids: Mutex<Ids>,
    contexts: RwLock<HashMap<ContextId, Name>>,
    pub(super) changes: WorldChangeNotifier,
    pub(super) rehydrations: Rehydrations,
}

impl LedgerServices {
    /// Runs work to its end, even if the caller is cancelled.
    pub(super) async fn run_to_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.tasks
            .spawn(work)
            .await
            .map_err(|error| LedgerError::Abandoned(error.to_string()))
    }

    /// Runs work that no caller waits for.
    pub(super) fn spawn_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(work));
    }

    /// Runs long work on a thread that may block.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.tasks
            .spawn_blocking(work)
            .await
            .map_err(|error| LedgerError::Abandoned(error.to_string()))
    }

    /// Publishes the types of records, once per start.
    pub(super) async fn publish_record_types(&self) -> Result<(), LedgerError> {
        let put = async || {
            for bundle in WorldHandle::record_type_commands() {
                self.store.run(bundle).await?;
            }
            Ok::<(), LedgerError>(())
        };
        self.published.get_or_try_init(put).await.copied()
    }

    /// Makes a source of random ids, seeded from the server's own source.
    pub(super) fn new_ids(&self) -> Ids {
        let mut source = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // Each request gets a source of its own, so that requests do not share a lock while they
        // draw.
        let mut seed = [0; 32];
        let (low, high) = seed.split_at_mut(16);
        low.copy_from_slice(&source.draw().to_le_bytes());
        high.copy_from_slice(&source.draw().to_le_bytes());
        Ids::from_seed(&seed)
    }
}

/// The directory of checkpoints in the data directory.
const CHECKPOINTS: &str = "worlds";
/// With fewer new entries than this, a checkpoint is not written again.
const TAIL_ENTRIES_MAX: usize = 4096;
/// With less new text than this, a checkpoint is not written again.
const TAIL_BYTES_MAX: usize = 1 << 20;

/// A world that could not be read.
struct Unreadable {
    error: LoadError,
    contexts: WorldContexts,
    /// The audit, if it could be read. It tells which tokens are valid.
    audit: Option<World>,
}

/// The holder of a valid token.
pub(crate) struct TokenHolder {
    pub(crate) world: Arc<WorldHandle>,
    pub(crate) principal: Principal,
    pub(crate) token: TokenId,
}

/// All worlds of the server.
pub(crate) struct Worlds {
    handles: RwLock<BTreeMap<Name, Arc<WorldHandle>>>,
    unreadable: BTreeMap<Name, Unreadable>,
    /// The number of entries in the checkpoint of each world.
    checkpointed: Mutex<BTreeMap<Name, u32>>,
    /// Held while a world is created: one at a time.
    pub(super) creating: tokio::sync::Mutex<()>,
    pub(super) services: Arc<LedgerServices>,
}

impl Worlds {
    /// Loads all worlds from the store.
    pub(crate) fn open(
        store: StoreHandle,
        clock: Arc<dyn Clock>,
        (tasks, stopping): (TaskTracker, CancellationToken),
        seed: &[u8; 32],
    ) -> Arc<Self> {
        let ids = Mutex::new(Ids::from_seed(seed));
        let services = LedgerServices {
            store,
            clock,
            tasks,
            stopping,
            published: OnceCell::new(),
            ids,
            contexts: RwLock::default(),
            changes: WorldChangeNotifier::default(),
            rehydrations: Rehydrations::default(),
        };
        let mut worlds = Self {
            handles: RwLock::default(),
            unreadable: BTreeMap::new(),
            checkpointed: Mutex::default(),
            creating: tokio::sync::Mutex::default(),
            services: Arc::new(services),
        };
        for FoundWorld { name, contexts } in log::find_worlds(worlds.services.store.store()) {
            if let Err(error) = worlds.load(&name, contexts) {
                tracing::error!(world = %name, %error, "the world cannot be read; the others are served");
                worlds.add_unreadable(name, contexts, error);
            }
        }
        worlds.add_default();
        worlds.write_checkpoints();
        Arc::new(worlds)
    }

    fn add_unreadable(&mut self, name: Name, contexts: WorldContexts, error: LoadError) {
        // Its contexts are still a world's: the store's own routes must not write to them.
        for context in contexts.all() {
            self.services.claim_context(context, &name);
        }
        // Tokens of an unreadable world are checked against its audit: a valid one gets the error,
        // an invalid one is unauthorized.
        let audit = log::load_audit(self.services.store.store(), contexts);
        let unreadable = Unreadable {
            error,
            contexts,
            audit: audit.ok().flatten(),
        };
        self.unreadable.insert(name, unreadable);
    }

    /// Adds the world `default` unless it exists. It gets its contexts with its first record.
    fn add_default(&self) {
        // An unreadable `default` must not be replaced by an empty one.
        if let Ok(None) = self.find(DEFAULT_WORLD)
            && let Some(name) = Name::new(DEFAULT_WORLD)
        {
            let start = WorldTime::from_timestamp(self.services.clock.now());
            let config = Config::new(name, Profile::Narrative, start);
            self.add(World::new(config), None);
        }
    }

    fn load(&self, name: &Name, contexts: WorldContexts) -> Result<(), LoadError> {
        let store = self.services.store.store();
        let checkpoint = read_checkpoint(store, name);
        // Contexts without a configuration are left over from a creation that failed.
        let Some(loaded) = checkpoint::load(store, contexts, checkpoint)? else {
            return Ok(());
        };
        let LoadedWorld {
            world,
            log,
            restored_entries,
        } = loaded;
        self.checkpointed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), restored_entries);
        self.add(world, Some(log));
        Ok(())
    }

    /// Writes the checkpoints of worlds with many new entries. A failure is logged; the next start
    /// then reads the log.
    pub(crate) fn write_checkpoints(&self) {
        let store = self.services.store.store();
        for handle in self.list() {
            let mut kept = self
                .checkpointed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let kept = kept.entry(handle.name().clone()).or_default();
            let position = handle.read(World::position);
            // Reading a short tail from the log is cheaper than writing the whole world.
            if !handle.read(|world| has_long_tail(world, *kept)) {
                continue;
            }
            let encoded = handle.read_with_log(|world, log| checkpoint::encode(world, log, store));
            let Some(bytes) = encoded.flatten() else {
                continue;
            };
            match write_checkpoint(store, handle.name(), &bytes) {
                Ok(()) => *kept = position,
                Err(error) => {
                    tracing::warn!(world = %handle.name(), %error, "no checkpoint was written");
                }
            }
        }
    }

    pub(super) fn add(&self, world: World, log: Option<WorldLog>) -> Arc<WorldHandle> {
        let contexts = log.as_ref().map(WorldLog::contexts);
        let handle = WorldHandle::new(world, log, Arc::clone(&self.services));
        // Claimed before the world is listed: from then on no route of the store may write to them.
        for context in contexts.into_iter().flat_map(WorldContexts::all) {
            self.services.claim_context(context, handle.name());
        }
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        handles.insert(handle.name().clone(), Arc::clone(&handle));
        handle
    }

    /// The world of this name, if it can be read.
    pub(crate) fn get(&self, world: &str) -> Option<Arc<WorldHandle>> {
        self.handles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(world)
            .cloned()
    }

    /// The world of this name; an error if it exists and cannot be read.
    pub(crate) fn find(&self, world: &str) -> Result<Option<Arc<WorldHandle>>, LedgerError> {
        match self.unreadable.get(world) {
            Some(unreadable) => Err(LedgerError::Unreadable(unreadable.error.clone())),
            None => Ok(self.get(world)),
        }
    }

    /// The name of another world that differs from this one only in upper and lower case.
    pub(super) fn find_other_spelling(&self, name: &Name) -> Option<Name> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        // The names of unreadable worlds stay taken.
        let mut all = handles.keys().chain(self.unreadable.keys());
        all.find(|other| *other != name && other.as_str().eq_ignore_ascii_case(name.as_str()))
            .cloned()
    }

    /// All worlds that can be read, by name.
    pub(crate) fn list(&self) -> Vec<Arc<WorldHandle>> {
        self.handles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Subscribes to changes of all worlds.
    pub(crate) fn subscribe_changes(&self) -> WorldChanges {
        self.services.changes.subscribe()
    }

    /// The counters of rehydrations.
    pub(crate) fn rehydrations(&self) -> &Rehydrations {
        &self.services.rehydrations
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.services.clock.now()
    }

    /// The contexts of a world that cannot be read.
    pub(crate) fn unreadable_contexts(&self, world: &str) -> Option<WorldContexts> {
        self.unreadable
            .get(world)
            .map(|unreadable| unreadable.contexts)
    }

    /// The name of the world that owns a context, whether it can be read or not.
    pub(crate) fn context_owner(&self, context: ContextId) -> Option<Name> {
        self.services.context_owner(context)
    }

    /// The world that owns a context, if it can be read.
    pub(crate) fn world_of_context(&self, context: ContextId) -> Option<Arc<WorldHandle>> {
        self.get(self.context_owner(context)?.as_str())
    }

    /// Whether a world owns this context.
    pub(crate) fn owns_context(&self, context: ContextId) -> bool {
        let contexts = self
            .services
            .contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.contains_key(&context)
    }

    /// The number of contexts that worlds own.
    pub(crate) fn context_count(&self) -> u64 {
        self.services
            .contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len() as u64
    }

    /// Whether worlds own any context.
    pub(crate) fn owns_any_context(&self) -> bool {
        !self
            .services
            .contexts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// Finds the holder of a valid token. Returns an error if the token's world cannot be read,
    /// unless its audit shows that the token is not valid.
    pub(crate) fn find_token_holder(
        &self,
        secret: &str,
        now: Timestamp,
    ) -> Result<Option<TokenHolder>, LedgerError> {
        let Some(world) = token_world(secret) else {
            return Ok(None);
        };
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        if let Some(Unreadable { error, audit, .. }) = self.unreadable.get(world) {
            return match audit {
                Some(world) if world.token_at(&hash, now).is_none() => Ok(None),
                _ => Err(LedgerError::Unreadable(error.clone())),
            };
        }
        let Some(handle) = self.get(world) else {
            return Ok(None);
        };
        let token = handle.read(|world| world.token_at(&hash, now).cloned());
        Ok(token.map(|token| TokenHolder {
            world: handle,
            principal: Principal::Person {
                id: token.person,
                write: token.write,
            },
            token: token.id,
        }))
    }
}

impl LedgerServices {
    /// Records which world owns a context.
    pub(super) fn claim_context(&self, context: ContextId, world: &Name) {
        let mut contexts = self
            .contexts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.insert(context, world.clone());
    }

    fn context_owner(&self, context: ContextId) -> Option<Name> {
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

/// Whether a world has many entries, or much text, behind its checkpoint.
fn has_long_tail(world: &World, kept: u32) -> bool {
    let tail = world.all_entries().get(kept as usize..).unwrap_or_default();
    tail.len() >= TAIL_ENTRIES_MAX
        || tail.iter().map(|entry| entry.text.len()).sum::<usize>() > TAIL_BYTES_MAX
}

/// Reads the checkpoint of a world, if it is intact.
pub(super) fn read_checkpoint(store: &Store, world: &Name) -> Option<Checkpoint> {
    let file = store.storage().open(&checkpoint_name(world)).ok()?;
    let bytes = file.read(0..file.len()).ok()?;
    let checkpoint = Checkpoint::decode(&bytes, world.as_str(), store.id());
    if checkpoint.is_none() {
        tracing::info!(%world, "its checkpoint is not used: it is read from the log alone");
    }
    checkpoint
}

/// Writes a new file, then renames it, so that a crash leaves the old checkpoint or the new one.
fn write_checkpoint(store: &Store, world: &Name, bytes: &[u8]) -> std::io::Result<()> {
    let (name, temporary) = (checkpoint_name(world), format!("{CHECKPOINTS}/{world}.new"));
    let file = store.storage().create(&temporary, 0)?;
    file.write_at(0, bytes)?;
    // The rename must not become durable before the content.
    file.sync()?;
    store.storage().rename(&temporary, &name)
}

/// The prefix of a person's token.
const TOKEN_PREFIX: &str = "tkp.";

/// Makes the text of a new token. It names its world, so that no search is needed to check it.
pub(crate) fn token_text(world: &Name, ids: &mut Ids) -> String {
    format!(
        "{TOKEN_PREFIX}{world}.{:032x}{:032x}",
        ids.draw(),
        ids.draw()
    )
}

/// The world that a token names.
fn token_world(secret: &str) -> Option<&str> {
    secret
        .strip_prefix(TOKEN_PREFIX)?
        .rsplit_once('.')
        .map(|(world, _)| world)
}
