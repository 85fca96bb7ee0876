//! A world in the store: three contexts, and one append for all that a request writes.
//!
//! The contexts are found by their labels. A world exists once its configuration is recorded, which
//! is the first record of its audit context. What a request writes over several contexts is one
//! command, guarded by the head that reality had when it was decided.

use bytes::Bytes;
use turnkeep_store::{
    Append, AppendPart, Appended, Command, CreateContext, Key, Labels, NewBlob, NewTurn, ReadError,
    Store, Turn,
};
use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::fact::{Fact, Family};
use crate::ids::Name;
use crate::reading::{PAGE_TURNS, Turns, whole_page};
use crate::record::{self, RecordError};
use crate::world::World;

/// The label that names the world of a context.
pub const WORLD_LABEL: &str = "turnkeep.ledger.world";
/// The label that names the family of a context.
pub const FAMILY_LABEL: &str = "turnkeep.ledger.family";
/// The encoding of payloads: msgpack.
const MSGPACK: u32 = 1;
/// A record holds at most an operator's text of 1 MiB, or a pack.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// Why a world cannot be read from the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The store cannot give what it holds.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A turn whose bytes the store cannot give.
    #[error("turn {turn}: {error}")]
    Turn {
        /// The turn.
        turn: TurnId,
        /// What is wrong.
        error: ReadError,
    },
    /// A turn that is no record.
    #[error("turn {turn}: {error}")]
    Record {
        /// The turn.
        turn: TurnId,
        /// What is wrong.
        error: RecordError,
    },
    /// A world without a beginning.
    #[error("the world {0} has no configuration")]
    NoConfiguration(Name),
}

impl LoadError {
    /// The turn that is damaged, where it is one.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::Turn { turn, .. } | Self::Record { turn, .. } => Some(*turn),
            Self::Read(ReadError::LostTurn(lost)) => Some(lost.turn),
            Self::Read(_) | Self::NoConfiguration(_) => None,
        }
    }
}

/// A fact that cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrecordable {
    /// No turn can hold it.
    #[error("a record of {bytes} bytes is over the limit of {RECORD_BYTES_MAX}")]
    TooLarge {
        /// How large it would be.
        bytes: usize,
    },
    /// It would not be read back as it is, so it must never enter the log.
    #[error("a record of type {declared} would not be read back as it was written")]
    Unreadable {
        /// Its type.
        declared: String,
    },
}

/// The contexts of a world, and how far they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    families: [Stretch; 3],
}

/// A context and the last turn that was taken over from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    context: ContextId,
    head: Option<TurnId>,
    turns: u32,
}

const FAMILIES: [Family; 3] = [Family::Reality, Family::Audit, Family::Derived];

impl Family {
    /// The family's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reality => "REALITY",
            Self::Audit => "AUDIT",
            Self::Derived => "DERIVED",
        }
    }

    /// Its place among the three.
    fn index(self) -> usize {
        match self {
            Self::Reality => 0,
            Self::Audit => 1,
            Self::Derived => 2,
        }
    }
}

/// The turns with which the contexts of a world begin, if it is a fork: the last ones that it
/// shares with its origin. Its audit is its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Base {
    /// The last turn of reality.
    pub reality: Option<TurnId>,
    /// The last turn of what was made from it.
    pub derived: Option<TurnId>,
}

impl Base {
    fn of(self, family: Family) -> Option<TurnId> {
        match family {
            Family::Reality => self.reality,
            Family::Audit => None,
            Family::Derived => self.derived,
        }
    }
}

/// The commands that make the contexts of a world. Those that a fork may share begin with a turn of
/// its origin, so each attempt makes new ones, of which the newest count; the audit has a key and
/// is made once.
pub fn create_contexts(world: &Name, base: Base) -> [Command; 3] {
    FAMILIES.map(|family| {
        let labels = [(WORLD_LABEL, world.as_str()), (FAMILY_LABEL, family.word())];
        let labels: Labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let key = Key::new(format!("turnkeep.ledger:{world}:{}", family.word()).into());
        let key = key.filter(|_| family == Family::Audit);
        Command::CreateContext(CreateContext {
            base: base.of(family),
            labels,
            key,
        })
    })
}

/// Whether a world's configuration is recorded in its audit context.
pub fn has_begun(store: &Store, audit: ContextId) -> Result<bool, LoadError> {
    Ok(store.context(audit)?.head.is_some())
}

/// The worlds that have contexts in the store, each with them in the order of the families.
pub fn find_worlds(store: &Store) -> Vec<(Name, [ContextId; 3])> {
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
            // Newest first: an older one was made by an attempt that broke off.
            place.get_or_insert(context.id);
        }
    }
    let whole = |(world, [a, b, c]): (Name, [Option<ContextId>; 3])| Some((world, [a?, b?, c?]));
    found.into_iter().filter_map(whole).collect()
}

/// The context in which a record that this context shows was written, if one of its turns holds
/// this blob.
pub fn written_in(
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

impl Place {
    /// A world of which nothing was read yet.
    pub fn new(contexts: [ContextId; 3]) -> Self {
        Self {
            families: contexts.map(|context| Stretch {
                context,
                head: None,
                turns: 0,
            }),
        }
    }

    /// The contexts, in the order of the families.
    pub fn contexts(&self) -> [ContextId; 3] {
        self.families.map(|stretch| stretch.context)
    }

    fn of(&self, family: Family) -> &Stretch {
        let [reality, audit, derived] = &self.families;
        match family {
            Family::Reality => reality,
            Family::Audit => audit,
            Family::Derived => derived,
        }
    }

    /// One append of all of these facts, guarded by the head of reality; None for none.
    pub fn append(&self, facts: &[Fact]) -> Result<Option<Command>, Unrecordable> {
        let part = |(family, facts): (Family, Vec<&Fact>)| {
            let stretch = self.of(family);
            let expected_head = (family == Family::Reality).then_some(stretch.head);
            let turns = facts.into_iter().map(turn).collect::<Result<Vec<_>, _>>()?;
            Ok(AppendPart {
                context: stretch.context,
                parent: None,
                expected_head,
                turns,
            })
        };
        let written = record::by_family(facts)
            .into_iter()
            .filter(|(_, facts)| !facts.is_empty());
        let parts = written.map(part).collect::<Result<Vec<_>, _>>()?;
        Ok((!parts.is_empty()).then_some(Command::Append(Append {
            parts,
            key: None,
            strict: false,
        })))
    }

    /// Notes what an append of ours added.
    pub fn advance(&mut self, appended: &Appended) {
        for row in &appended.turns {
            if let Some(stretch) = self
                .families
                .iter_mut()
                .find(|stretch| stretch.context == row.context)
            {
                (stretch.head, stretch.turns) = (Some(row.turn), row.depth + 1);
            }
        }
    }

    /// Passes over what is there: the caller has taken it over already.
    pub fn skip(&mut self, store: &Store) -> Result<(), LoadError> {
        for stretch in &mut self.families {
            let context = store.context(stretch.context)?;
            (stretch.head, stretch.turns) = (
                context.head,
                context.head.map_or(0, |_| context.head_depth + 1),
            );
        }
        Ok(())
    }

    /// Walks over the turns of a family that were taken over, from the first on.
    pub(crate) fn walk(
        &self,
        store: &Store,
        family: Family,
        mut take: impl FnMut(&Turn) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let Stretch {
            context,
            turns: end,
            ..
        } = *self.of(family);
        let mut from = 0;
        while from < end {
            let count = PAGE_TURNS.min(end - from);
            whole_page(store, context, from, count)?
                .iter()
                .try_for_each(&mut take)?;
            from += count;
        }
        Ok(())
    }

    /// Reads what was appended since, in the order audit, reality, derived; `take` gets each fact
    /// with its turn.
    pub fn catch_up(
        &mut self,
        store: &Store,
        mut take: impl FnMut(TurnId, Fact),
    ) -> Result<(), LoadError> {
        let [reality, audit, derived] = &mut self.families;
        [audit, reality, derived]
            .into_iter()
            .try_for_each(|stretch| stretch.catch_up(store, &mut take))
    }
}

impl Stretch {
    fn catch_up(
        &mut self,
        store: &Store,
        mut take: impl FnMut(TurnId, Fact),
    ) -> Result<(), LoadError> {
        let context = store.context(self.context)?;
        let Some(head) = context.head else {
            return Ok(());
        };
        let turns = Turns {
            context: self.context,
            from: self.turns,
            end: context.head_depth + 1,
        };
        turns.each(store, |page| {
            for (turn, fact) in page {
                take(turn, fact);
            }
        })?;
        (self.head, self.turns) = (Some(head), turns.end);
        Ok(())
    }
}

/// The fact that a turn holds.
pub(crate) fn fact_of(store: &Store, turn: &Turn) -> Result<Fact, LoadError> {
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

fn turn(fact: &Fact) -> Result<NewTurn, Unrecordable> {
    let (declared, payload) = record::encode(fact);
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

/// Reads only what a world's audit says of it: how it is set up, its people and its tokens.
pub fn load_audit(store: &Store, contexts: [ContextId; 3]) -> Result<Option<World>, LoadError> {
    let mut world: Option<World> = None;
    let [_, mut audit, _] = Place::new(contexts).families;
    audit.catch_up(store, |_, fact| match (&mut world, fact) {
        (Some(world), fact) => world.apply(fact),
        (none, Fact::Config(config)) => *none = Some(World::new(*config)),
        (None, _) => {}
    })?;
    Ok(world)
}

/// Reads a world from the store. None if it was never completed.
pub fn load(store: &Store, contexts: [ContextId; 3]) -> Result<Option<(World, Place)>, LoadError> {
    let mut place = Place::new(contexts);
    let mut world: Option<World> = None;
    place.catch_up(store, |_, fact| match (&mut world, fact) {
        (Some(world), fact) => world.apply(fact),
        (none, Fact::Config(config)) => *none = Some(World::new(*config)),
        (None, _) => {}
    })?;
    Ok(world.map(|world| (world, place)))
}
