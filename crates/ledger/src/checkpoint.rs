//! The search index of a world on disk, so that a start need not index every entry again.
//!
//! Little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `TKWORLDX` |
//! | 4 | version, 2 |
//! | 16 | the store's id |
//! | 1, then its bytes | the world's name |
//! | 4 | how many entries the index has |
//! | 16 | the id of the last of them |
//! | 32 | BLAKE3 of all before |
//! | rest | the index, with a hash of its own |
//!
//! A checkpoint is never evidence. A damaged one, or one of another version, store or ledger, is
//! ignored, and the world is loaded from the log alone. Entry ids are random, so the last entry's
//! id tells whether the index belongs to this ledger. Entries are read from the log in any case;
//! the caller decodes the index while other threads read them.

use bytes::Bytes;
use turnkeep_store::Store;

use crate::fact::Fact;
use crate::ids::EntryId;
use crate::log::{self, LoadError, LoadedWorld, WorldContexts, WorldLog};
use crate::search::Index;
use crate::world::World;

const MAGIC: &[u8; 8] = b"TKWORLDX";
const VERSION: u32 = 2;
const HASH_BYTES: usize = 32;

/// A stored index, still as bytes, and the last entry in it.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// A slice of the file's bytes, without a copy.
    index: Bytes,
    end: IndexEnd,
}

/// How many entries an index has, and the id of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexEnd {
    count: u32,
    last: EntryId,
}

/// Encodes the checkpoint of a world; `None` for a world without entries.
pub fn encode(world: &World, store: [u8; 16]) -> Option<Vec<u8>> {
    let end = IndexEnd {
        count: world.position(),
        last: world.all_entries().last()?.id,
    };
    let mut bytes = header(world.config.world.as_str(), store, end);
    bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
    bytes.extend_from_slice(&world.index().encode());
    Some(bytes)
}

fn header(world: &str, store: [u8; 16], end: IndexEnd) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&store);
    bytes.push(u8::try_from(world.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(world.as_bytes());
    bytes.extend_from_slice(&end.count.to_le_bytes());
    bytes.extend_from_slice(&end.last.0.to_le_bytes());
    bytes
}

/// Reads the end from a header.
fn read_end(head: &[u8]) -> Option<IndexEnd> {
    let (rest, last) = head.split_last_chunk()?;
    Some(IndexEnd {
        count: u32::from_le_bytes(*rest.last_chunk()?),
        last: EntryId(u128::from_le_bytes(*last)),
    })
}

impl Checkpoint {
    /// Decodes the bytes, if they are an intact checkpoint of this world in this store.
    pub fn decode(bytes: &Bytes, world: &str, store: [u8; 16]) -> Option<Self> {
        let end = Self::check(bytes, world, store)?;
        let index_start = header(world, store, end).len() + HASH_BYTES;
        Some(Self {
            index: bytes.slice(index_start..),
            end,
        })
    }

    /// Checks header and hashes, and returns the end.
    fn check(bytes: &[u8], world: &str, store: [u8; 16]) -> Option<IndexEnd> {
        let nothing = IndexEnd {
            count: 0,
            last: EntryId(0),
        };
        let (head, rest) = bytes.split_at_checked(header(world, store, nothing).len())?;
        let (hash, index) = rest.split_at_checked(HASH_BYTES)?;
        let end = read_end(head)?;
        // Compares magic bytes, version, store and world at once.
        let ours = head == header(world, store, end) && hash == blake3::hash(head).as_bytes();
        (ours && Index::is_intact(index)).then_some(end)
    }

    /// How many entries it has.
    pub fn len(&self) -> u32 {
        self.end.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes the index, if it has as many entries as the header says.
    fn index(&self) -> Option<Index> {
        Index::decode_intact(&self.index)
            .ok()
            .filter(|index| index.len() == self.end.count)
    }

    /// Whether the world has the checkpoint's last entry at its position.
    fn matches_world(&self, world: &World) -> bool {
        let entry = self
            .end
            .count
            .checked_sub(1)
            .and_then(|number| world.entry(number));
        entry.is_some_and(|entry| entry.id == self.end.last)
    }
}

/// Loads a world from the store, with the index of a checkpoint if there is one. Returns `None` if
/// the world was never completed. The result is the same as without the checkpoint.
pub fn load(
    store: &Store,
    contexts: WorldContexts,
    checkpoint: Option<Checkpoint>,
) -> Result<Option<LoadedWorld>, LoadError> {
    if let Some(checkpoint) = checkpoint
        && let Some(resumed) = load_with_index(store, contexts, &checkpoint)?
    {
        return Ok(Some(resumed));
    }
    log::load(store, contexts)
}

/// Returns `None` if the checkpoint does not belong to this ledger.
fn load_with_index(
    store: &Store,
    contexts: WorldContexts,
    checkpoint: &Checkpoint,
) -> Result<Option<LoadedWorld>, LoadError> {
    let mut log = WorldLog::new(contexts);
    let mut world: Option<World> = None;
    log.read_new_facts(store, |_, fact| match (&mut world, fact) {
        (Some(world), fact) => {
            // The index is decoded only now, because other threads already read the entries
            // behind the first one. A damaged index is not adopted, and entries are indexed.
            if matches!(fact, Fact::Entry(_))
                && world.position() == 0
                && let Some(index) = checkpoint.index()
            {
                world.adopt_index(index);
            }
            world.apply(fact);
        }
        (none, Fact::Config(config)) => *none = Some(World::new(*config)),
        (None, _) => {}
    })?;
    Ok(world
        .filter(|world| checkpoint.matches_world(world))
        .map(|world| LoadedWorld { world, log }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnkeep_types::Timestamp;

    use super::*;
    use crate::config::{Config, Profile};
    use crate::entry::{Author, AuthorClass, Channel, Entry};
    use crate::ids::{BundleId, Name};
    use crate::time::WorldTime;

    const STORE: [u8; 16] = [7; 16];

    fn world() -> World {
        let time = WorldTime::from_timestamp(Timestamp(1_763_197_200_000));
        let mut world = World::new(Config::new(
            Name::new("w").unwrap(),
            Profile::Narrative,
            time.clone(),
        ));
        for number in 0..20 {
            world.apply(Fact::Entry(Entry {
                id: EntryId(number),
                bundle: BundleId(1),
                request: Arc::from("r"),
                time: time.clone(),
                author: Author {
                    class: AuthorClass::Person,
                    id: Name::new("ANN").unwrap(),
                },
                label: "Ann".into(),
                visible_to: (number % 3 == 0).then(|| Box::from([Name::new("BOB").unwrap()])),
                channel: Channel::People,
                text: format!("It is ticket PAY-{number} again.").into(),
                reply_to: None,
            }));
        }
        world
    }

    #[test]
    fn a_checkpoint_reads_back_only_as_a_whole_and_only_in_its_place() {
        let whole = Bytes::from(encode(&world(), STORE).unwrap());
        let read = |bytes: &[u8]| Checkpoint::decode(&Bytes::copy_from_slice(bytes), "w", STORE);
        let back = read(&whole).expect("a whole checkpoint");
        assert_eq!((back.len(), back.end.last), (20, EntryId(19)));
        assert!(back.index().expect("an index").encode() == world().index().encode());
        assert!(
            Checkpoint::decode(&whole, "v", STORE).is_none(),
            "another world"
        );
        assert!(
            Checkpoint::decode(&whole, "w", [8; 16]).is_none(),
            "another store"
        );
        for at in 0..whole.len() {
            assert!(read(&whole[..at]).is_none(), "cut at {at}");
            let mut damaged = whole.to_vec();
            damaged[at] ^= 1 << (at % 8);
            assert!(read(&damaged).is_none(), "flipped at {at}");
        }
        assert!(
            read(&[&whole[..], b"x"].concat()).is_none(),
            "more than there was"
        );
    }

    #[test]
    fn an_index_that_does_not_fit_its_header_is_not_used() {
        let end = IndexEnd {
            count: 19,
            last: EntryId(18),
        };
        let mut bytes = header("w", STORE, end);
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        bytes.extend_from_slice(&world().index().encode());
        let made_up = Checkpoint::decode(&bytes.into(), "w", STORE).expect("both hashes are right");
        assert!(made_up.index().is_none());
    }

    #[test]
    fn a_world_without_entries_has_no_checkpoint() {
        let time = WorldTime::from_timestamp(Timestamp(1));
        let empty = World::new(Config::new(
            Name::new("w").unwrap(),
            Profile::Narrative,
            time,
        ));
        assert!(encode(&empty, STORE).is_none());
    }
}
