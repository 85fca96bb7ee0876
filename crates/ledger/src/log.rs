//! A world in the store: three contexts, read in order and appended to with one command.
//!
//! The contexts are found by their labels. A world exists once its configuration is recorded, which
//! is the first record of its audit context. Everything that a request writes to the three contexts
//! is one append command. The command expects the head of the reality context, so the store rejects
//! it if another append came first. Damaged or missing records are a [`LoadError`].

use bytes::Bytes;
use turnkeep_store::{
    Append, AppendPart, Appended, Command, CreateContext, Key, Labels, NewBlob, NewTurn, ReadError,
    Store, Turn,
};
use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::fact::{Fact, Family};
use crate::ids::Name;
use crate::reading::{PAGE_TURNS, TurnFact, TurnRange, read_whole_page};
use crate::record::{self, RecordError};
use crate::world::World;

/// The label that names the world of a context.
pub const WORLD_LABEL: &str = "turnkeep.ledger.world";
/// The label that names the family of a context.
pub const FAMILY_LABEL: &str = "turnkeep.ledger.family";
/// The encoding of payloads: msgpack.
const MSGPACK: u32 = 1;
/// The largest record is an operator's text of 1 MiB, or a pack.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// Bytes that are gathered before they are hashed.
const HASHED_PIECE_BYTES: usize = 64 << 10;

/// Why a world cannot be read from the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The store cannot read a context.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot read the bytes of a turn.
    #[error("turn {turn}: {error}")]
    Turn {
        /// The turn.
        turn: TurnId,
        /// The store's error.
        error: ReadError,
    },
    /// A turn is not a valid record.
    #[error("turn {turn}: {error}")]
    Record {
        /// The turn.
        turn: TurnId,
        /// What is wrong with it.
        error: RecordError,
    },
    /// The audit context has no configuration.
    #[error("the world {0} has no configuration")]
    NoConfiguration(Name),
}

impl LoadError {
    /// The damaged turn, if the error is about one.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::Turn { turn, .. } | Self::Record { turn, .. } => Some(*turn),
            Self::Read(ReadError::LostTurn(lost)) => Some(lost.turn),
            Self::Read(_) | Self::NoConfiguration(_) => None,
        }
    }
}

/// Why a fact cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrecordable {
    /// The record is too large for a turn.
    #[error("a record of {bytes} bytes is over the limit of {RECORD_BYTES_MAX}")]
    TooLarge {
        /// The size of the record.
        bytes: usize,
    },
    /// Decoding the record would not return the fact, so it must not enter the log.
    #[error("a record of type {declared} would not be read back as it was written")]
    Unreadable {
        /// The record's type.
        declared: String,
    },
}

/// The contexts of a world, one per family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldContexts {
    /// The context of the evidence.
    pub reality: ContextId,
    /// The context of the audit.
    pub audit: ContextId,
    /// The context of scenes, notes and epochs.
    pub derived: ContextId,
}

impl WorldContexts {
    /// All three contexts.
    pub fn all(self) -> [ContextId; 3] {
        [self.reality, self.audit, self.derived]
    }
}

/// The contexts of a world, and how far each was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldLog {
    reality: ContextProgress,
    audit: ContextProgress,
    derived: ContextProgress,
}

/// How many turns of reality there are, and a hash of their ids and payload hashes. Two logs with
/// equal values have the same records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RealityTurns {
    /// How many.
    pub count: u32,
    /// BLAKE3 over all of them, in order.
    pub hash: [u8; 32],
}

/// A context and the last turn that was read or appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContextProgress {
    context: ContextId,
    head: Option<TurnId>,
    turns: u32,
}

const FAMILIES: [Family; 3] = [Family::Reality, Family::Audit, Family::Derived];

impl Family {
    /// The family's word in labels.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reality => "REALITY",
            Self::Audit => "AUDIT",
            Self::Derived => "DERIVED",
        }
    }

    /// The family's index in arrays of three.
    fn index(self) -> usize {
        match self {
            Self::Reality => 0,
            Self::Audit => 1,
            Self::Derived => 2,
        }
    }
}

/// The turns that a fork shares with its origin: its reality and derived contexts begin behind
/// them. A fork has an audit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForkBase {
    /// The last shared turn of reality.
    pub reality: Option<TurnId>,
    /// The last shared turn of the derived context.
    pub derived: Option<TurnId>,
}

impl ForkBase {
    fn turn_of(self, family: Family) -> Option<TurnId> {
        match family {
            Family::Reality => self.reality,
            Family::Audit => None,
            Family::Derived => self.derived,
        }
    }
}

/// The commands that create the contexts of a world. The audit context has an idempotency key, so
/// it is created once. The others may begin at a turn of the origin and have no key: each attempt
/// creates new ones, and the newest count.
pub fn create_contexts(world: &Name, base: ForkBase) -> [Command; 3] {
    FAMILIES.map(|family| {
        let mut labels = Labels::new();
        labels.insert(WORLD_LABEL.to_owned(), world.to_string());
        labels.insert(FAMILY_LABEL.to_owned(), family.word().to_owned());
        let key = Key::new(format!("turnkeep.ledger:{world}:{}", family.word()).into());
        // With a key, a second attempt for a fork would get the contexts of the first, at another
        // base.
        let key = key.filter(|_| family == Family::Audit);
        Command::CreateContext(CreateContext {
            base: base.turn_of(family),
            labels,
            key,
        })
    })
}

/// Whether the configuration of a world is recorded in its audit context.
pub fn is_configured(store: &Store, audit: ContextId) -> Result<bool, LoadError> {
    Ok(store.context(audit)?.head.is_some())
}

/// A world that has all three contexts in the store.
#[derive(Debug, Clone)]
pub struct FoundWorld {
    /// The name of the world.
    pub name: Name,
    /// Its contexts.
    pub contexts: WorldContexts,
}

/// A world with its position in the store.
#[derive(Debug)]
pub struct LoadedWorld {
    /// The state.
    pub world: World,
    /// The contexts, read up to the state.
    pub log: WorldLog,
    /// How many entries came from a checkpoint; the others came from the log.
    pub restored_entries: u32,
}

/// The worlds that have all three contexts in the store, by name.
pub fn find_worlds(store: &Store) -> Vec<FoundWorld> {
    let mut found: std::collections::BTreeMap<Name, [Option<ContextId>; 3]> =
        std::collections::BTreeMap::new();
    for context in store.contexts(None) {
        let world = context
            .labels
            .get(WORLD_LABEL)
            .and_then(|name| Name::new(name));
        let word = context.labels.get(FAMILY_LABEL);
        let family = FAMILIES
            .into_iter()
            .find(|family| word.is_some_and(|word| word == family.word()));
        if let (Some(world), Some(family)) = (world, family)
            && let Some(place) = found.entry(world).or_default().get_mut(family.index())
        {
            // The store lists the newest context first. An older one is left from an attempt that
            // failed.
            place.get_or_insert(context.id);
        }
    }
    let mut worlds = Vec::with_capacity(found.len());
    for (name, contexts) in found {
        if let [Some(reality), Some(audit), Some(derived)] = contexts {
            let contexts = WorldContexts {
                reality,
                audit,
                derived,
            };
            worlds.push(FoundWorld { name, contexts });
        }
    }
    worlds
}

/// The context in which a record was written, if a turn that this context shows has this blob. A
/// fork shows turns of its origin's context.
pub fn find_writing_context(
    store: &Store,
    context: ContextId,
    blob: BlobHash,
) -> Result<Option<ContextId>, ReadError> {
    let mut from = 0;
    loop {
        let turns = store.range(context, from, PAGE_TURNS as usize)?;
        if let Some(found) = turns.iter().find(|turn| turn.hash == blob) {
            return Ok(Some(found.context));
        }
        let Some(last) = turns.last() else {
            return Ok(None);
        };
        from = last.depth + 1;
    }
}

impl WorldLog {
    /// Makes a log of which nothing is read yet.
    pub fn new(contexts: WorldContexts) -> Self {
        Self {
            reality: ContextProgress::unread(contexts.reality),
            audit: ContextProgress::unread(contexts.audit),
            derived: ContextProgress::unread(contexts.derived),
        }
    }

    /// The contexts of the world.
    pub fn contexts(&self) -> WorldContexts {
        WorldContexts {
            reality: self.reality.context,
            audit: self.audit.context,
            derived: self.derived.context,
        }
    }

    fn progress_of(&self, family: Family) -> &ContextProgress {
        match family {
            Family::Reality => &self.reality,
            Family::Audit => &self.audit,
            Family::Derived => &self.derived,
        }
    }

    fn all_progress(&mut self) -> [&mut ContextProgress; 3] {
        [&mut self.reality, &mut self.audit, &mut self.derived]
    }

    /// The command that appends all of these facts, or `None` without facts. It expects the head of
    /// reality to be the one that was read last.
    pub fn append_command(&self, facts: &[Fact]) -> Result<Option<Command>, Unrecordable> {
        let mut parts = Vec::new();
        for family in FAMILIES {
            let mut turns = Vec::new();
            for fact in facts.iter().filter(|fact| fact.family() == family) {
                turns.push(encode_turn(fact)?);
            }
            if turns.is_empty() {
                continue;
            }
            let progress = self.progress_of(family);
            parts.push(AppendPart {
                context: progress.context,
                // The head: other requests may append audit lines meanwhile without touching reality.
                parent: None,
                // Only reality decides a request, so only its head is guarded.
                expected_head: (family == Family::Reality).then_some(progress.head),
                turns,
            });
        }
        Ok((!parts.is_empty()).then_some(Command::Append(Append {
            parts,
            // A repeat is recognized by its recorded outcome before a command is made.
            key: None,
            strict: false,
        })))
    }

    /// Advances past the turns that our own append added.
    pub fn record_appended(&mut self, appended: &Appended) {
        for row in &appended.turns {
            for progress in self.all_progress() {
                if progress.context == row.context {
                    progress.head = Some(row.turn);
                    progress.turns = row.depth + 1;
                }
            }
        }
    }

    /// Advances to the current heads without reading: the caller already has these facts.
    pub fn skip_to_end(&mut self, store: &Store) -> Result<(), LoadError> {
        for progress in self.all_progress() {
            let context = store.context(progress.context)?;
            progress.head = context.head;
            progress.turns = context.head.map_or(0, |_| context.head_depth + 1);
        }
        Ok(())
    }

    /// Marks the first turns of reality as read: the caller has their facts from elsewhere.
    pub(crate) fn skip_reality(&mut self, turns: u32) {
        self.reality.turns = turns;
    }

    /// Hashes the turns of reality that were read or appended.
    pub(crate) fn hash_reality(&self, store: &Store) -> Result<RealityTurns, LoadError> {
        let mut hasher = blake3::Hasher::new();
        // Large pieces are hashed several times faster than many small ones.
        let mut piece = Vec::with_capacity(2 * HASHED_PIECE_BYTES);
        self.visit_turns(store, Family::Reality, |turn| {
            piece.extend_from_slice(&turn.id.get().to_le_bytes());
            piece.extend_from_slice(turn.hash.as_bytes());
            if piece.len() >= HASHED_PIECE_BYTES {
                hasher.update(&piece);
                piece.clear();
            }
            Ok(())
        })?;
        hasher.update(&piece);
        Ok(RealityTurns {
            count: self.reality.turns,
            hash: *hasher.finalize().as_bytes(),
        })
    }

    /// Reads the audit and makes the world from it; `None` if the world was never completed.
    pub(crate) fn read_audit(&mut self, store: &Store) -> Result<Option<World>, LoadError> {
        let mut world: Option<World> = None;
        self.audit
            .read_new_facts(store, |_, fact| apply_loaded(&mut world, fact))?;
        Ok(world)
    }

    /// Visits the turns of a family that were read or appended, from the first on.
    pub(crate) fn visit_turns(
        &self,
        store: &Store,
        family: Family,
        mut take: impl FnMut(&Turn) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let ContextProgress {
            context,
            turns: end,
            ..
        } = *self.progress_of(family);
        let mut from = 0;
        while from < end {
            let count = PAGE_TURNS.min(end - from);
            for turn in &read_whole_page(store, context, from, count)? {
                take(turn)?;
            }
            from += count;
        }
        Ok(())
    }

    /// Reads the facts that were appended since, and passes each with its turn to `take`. The audit
    /// comes first, because it begins with the configuration that the world is made from.
    pub fn read_new_facts(
        &mut self,
        store: &Store,
        mut take: impl FnMut(TurnId, Fact),
    ) -> Result<(), LoadError> {
        self.audit.read_new_facts(store, &mut take)?;
        self.reality.read_new_facts(store, &mut take)?;
        self.derived.read_new_facts(store, &mut take)
    }
}

impl ContextProgress {
    fn unread(context: ContextId) -> Self {
        Self {
            context,
            head: None,
            turns: 0,
        }
    }

    fn read_new_facts(
        &mut self,
        store: &Store,
        mut take: impl FnMut(TurnId, Fact),
    ) -> Result<(), LoadError> {
        let context = store.context(self.context)?;
        let Some(head) = context.head else {
            return Ok(());
        };
        let turns = TurnRange {
            context: self.context,
            from: self.turns,
            end: context.head_depth + 1,
        };
        turns.visit_pages(store, |page| {
            for TurnFact { turn, fact } in page {
                take(turn, fact);
            }
        })?;
        (self.head, self.turns) = (Some(head), turns.end);
        Ok(())
    }
}

/// Reads and decodes the fact of a turn.
pub(crate) fn read_fact(store: &Store, turn: &Turn) -> Result<Fact, LoadError> {
    let unread = |error| LoadError::Turn {
        turn: turn.id,
        error,
    };
    let payload = store.payload(turn).map_err(unread)?;
    let raw = payload.raw().map_err(unread)?;
    record::decode(&turn.declared, &raw).map_err(|error| LoadError::Record {
        turn: turn.id,
        error,
    })
}

fn encode_turn(fact: &Fact) -> Result<NewTurn, Unrecordable> {
    let (declared, payload) = record::encode(fact);
    // A record that cannot be read back would make the world unreadable for ever.
    if record::decode(&declared, &payload).as_ref() != Ok(fact) {
        return Err(Unrecordable::Unreadable {
            declared: declared.id.to_string(),
        });
    }
    let payload = NewBlob::from_raw(Bytes::clone(&payload), RECORD_BYTES_MAX).map_err(|_| {
        Unrecordable::TooLarge {
            bytes: payload.len(),
        }
    })?;
    Ok(NewTurn {
        declared,
        encoding: MSGPACK,
        payload,
        fs_root: None,
    })
}

/// Loads only the audit of a world: its configuration, its people and its tokens.
pub fn load_audit(store: &Store, contexts: WorldContexts) -> Result<Option<World>, LoadError> {
    WorldLog::new(contexts).read_audit(store)
}

/// Loads a world from the store. Returns `None` if the world was never completed.
pub fn load(store: &Store, contexts: WorldContexts) -> Result<Option<LoadedWorld>, LoadError> {
    let mut log = WorldLog::new(contexts);
    let mut world: Option<World> = None;
    log.read_new_facts(store, |_, fact| apply_loaded(&mut world, fact))?;
    Ok(world.map(|world| LoadedWorld {
        world,
        log,
        restored_entries: 0,
    }))
}

/// Applies a fact, or makes the world from its first configuration. Facts before that are ignored.
fn apply_loaded(world: &mut Option<World>, fact: Fact) {
    match (world, fact) {
        (Some(world), fact) => world.apply(fact),
        (none, Fact::Config(config)) => *none = Some(World::new(*config)),
        (None, _) => {}
    }
}
