//! The evidence of a world on disk, so that a start need not decode and index every entry again.
//!
//! Little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `TKWORLDX` |
//! | 4 | version, 3 |
//! | 16 | the store's id |
//! | 1, then its bytes | the world's name |
//! | 4 | how many entries it has |
//! | 4 | how many turns of the reality context it holds |
//! | 32 | BLAKE3 of those turns: id and payload hash of each |
//! | 8 | the length of the index |
//! | 32 | BLAKE3 of all before |
//! | its length | the search index, with a hash of its own |
//! | rest | the numbers of entries by id, the facts of reality, then the BLAKE3 of both |
//!
//! A checkpoint is never evidence. A damaged one, or one of another version, store or ledger, is
//! ignored, and the world is loaded from the log alone. The hash over the turns proves that the log
//! still has exactly the records that the checkpoint was made from.
//!
//! A start uses three threads: one decodes the index, one hashes the turns of the log, one decodes
//! the facts. The caller applies the facts as they come, and reads from the log what came later.

mod reality;

use std::sync::mpsc::sync_channel;
use std::thread;

use bytes::Bytes;
use turnkeep_store::Store;

use crate::log::{self, LoadError, LoadedWorld, RealityTurns, WorldContexts, WorldLog};
use crate::numbers::EntryNumbers;
use crate::search::Index;
use crate::world::World;

const MAGIC: &[u8; 8] = b"TKWORLDX";
const VERSION: u32 = 3;
const HASH_BYTES: usize = 32;
/// Pages of facts that may wait to be applied; this bounds the memory.
const PAGES_AHEAD: usize = 4;

/// A stored checkpoint, still as bytes. Only its header is checked.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    header: Header,
    /// Slices of the file's bytes, without a copy.
    index: Bytes,
    facts: Bytes,
}

/// The part of a checkpoint that says what it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    entries: u32,
    turns: RealityTurns,
    index_bytes: u64,
}

impl Header {
    fn encode(&self, world: &str, store: [u8; 16]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&store);
        bytes.push(u8::try_from(world.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(world.as_bytes());
        bytes.extend_from_slice(&self.entries.to_le_bytes());
        bytes.extend_from_slice(&self.turns.count.to_le_bytes());
        bytes.extend_from_slice(&self.turns.hash);
        bytes.extend_from_slice(&self.index_bytes.to_le_bytes());
        bytes
    }

    /// Reads the numbers at the end of an encoded header.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, index_bytes) = bytes.split_last_chunk()?;
        let (bytes, hash) = bytes.split_last_chunk()?;
        let (bytes, count) = bytes.split_last_chunk()?;
        let entries = bytes.last_chunk()?;
        Some(Self {
            entries: u32::from_le_bytes(*entries),
            turns: RealityTurns {
                count: u32::from_le_bytes(*count),
                hash: *hash,
            },
            index_bytes: u64::from_le_bytes(*index_bytes),
        })
    }
}

/// Encodes the checkpoint of a world that is read up to `log`; `None` for a world without entries,
/// or if the log cannot be read.
pub fn encode(world: &World, log: &WorldLog, store: &Store) -> Option<Vec<u8>> {
    if world.position() == 0 {
        return None;
    }
    let turns = log.hash_reality(store).ok()?;
    Some(encode_parts(world, turns, store.id()))
}

fn encode_parts(world: &World, turns: RealityTurns, store: [u8; 16]) -> Vec<u8> {
    let index = world.index().encode();
    let mut facts = Vec::new();
    world.entry_numbers().encode(&mut facts);
    reality::encode(world, &mut facts);
    let header = Header {
        entries: world.position(),
        turns,
        index_bytes: index.len() as u64,
    };
    let mut bytes = header.encode(world.config.world.as_str(), store);
    bytes.reserve_exact(index.len() + facts.len() + 2 * HASH_BYTES);
    bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
    bytes.extend_from_slice(&index);
    bytes.extend_from_slice(&facts);
    bytes.extend_from_slice(blake3::hash(&facts).as_bytes());
    bytes
}

impl Checkpoint {
    /// Splits the bytes, if they have the header of a checkpoint of this world in this store. The
    /// hashes of index and facts are checked when they are decoded.
    pub fn decode(bytes: &Bytes, world: &str, store: [u8; 16]) -> Option<Self> {
        let empty = Header {
            entries: 0,
            turns: RealityTurns::default(),
            index_bytes: 0,
        };
        let header_end = empty.encode(world, store).len();
        let header_bytes = bytes.get(..header_end)?;
        let header = Header::decode(header_bytes)?;
        let index_start = header_end + HASH_BYTES;
        let hash = bytes.get(header_end..index_start)?;
        // Compares magic bytes, version, store and world at once.
        let is_ours = header_bytes == header.encode(world, store)
            && hash == blake3::hash(header_bytes).as_bytes();
        let index_end = usize::try_from(header.index_bytes)
            .ok()
            .and_then(|length| index_start.checked_add(length))
            .filter(|end| is_ours && *end <= bytes.len())?;
        Some(Self {
            header,
            index: bytes.slice(index_start..index_end),
            facts: bytes.slice(index_end..),
        })
    }

    /// How many entries it has.
    pub fn len(&self) -> u32 {
        self.header.entries
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes the index, if it is intact and has as many entries as the header says.
    fn index(&self) -> Option<Index> {
        Index::decode(&self.index)
            .ok()
            .filter(|index| index.len() == self.header.entries)
    }

    /// The numbers of entries and the encoded facts, if they are intact.
    fn facts(&self) -> Option<(EntryNumbers, &[u8])> {
        let (facts, hash) = self.facts.split_last_chunk::<HASH_BYTES>()?;
        if blake3::hash(facts) != *hash {
            return None;
        }
        EntryNumbers::decode(facts)
    }

    /// Applies the facts to a world without entries, with the index. Returns `None` if the result is
    /// not the world that the log makes; then it must be discarded.
    fn restore(&self, store: &Store, contexts: WorldContexts, world: &mut World) -> Option<()> {
        let mut log = WorldLog::new(contexts);
        log.skip_reality(self.header.turns.count);
        let index = thread::scope(|scope| {
            // Without a thread, the world is read from the log.
            let index = thread::Builder::new()
                .spawn_scoped(scope, || self.index())
                .ok()?;
            let turns = thread::Builder::new()
                .spawn_scoped(scope, || log.hash_reality(store))
                .ok()?;
            let (numbers, facts) = self.facts()?;
            world.expect_index(self.header.entries, numbers);
            let (sender, pages) = sync_channel(PAGES_AHEAD);
            let send = move || reality::decode(facts, |page| sender.send(page).is_ok());
            let facts = thread::Builder::new().spawn_scoped(scope, send).ok()?;
            for page in pages {
                for fact in page {
                    world.apply(fact);
                }
            }
            // A panic in a thread counts as damage: the log alone then decides.
            facts.join().ok()??;
            let is_same_log = turns.join().ok()?.ok()? == self.header.turns;
            let index = index.join().ok()??;
            (is_same_log && index.len() == world.position()).then_some(index)
        })?;
        world.adopt_index(index);
        Some(())
    }
}

/// Loads a world from the store, with the help of a checkpoint if there is one. Returns `None` if
/// the world was never completed. The world is the same as without the checkpoint. Only damage to
/// the bytes of an old record is not noticed here; `verify` finds it.
pub fn load(
    store: &Store,
    contexts: WorldContexts,
    checkpoint: Option<Checkpoint>,
) -> Result<Option<LoadedWorld>, LoadError> {
    if let Some(checkpoint) = checkpoint
        && let Some(loaded) = load_with_checkpoint(store, contexts, &checkpoint)?
    {
        return Ok(Some(loaded));
    }
    log::load(store, contexts)
}

/// Returns `None` if the checkpoint does not belong to this ledger, or if there is no world.
fn load_with_checkpoint(
    store: &Store,
    contexts: WorldContexts,
    checkpoint: &Checkpoint,
) -> Result<Option<LoadedWorld>, LoadError> {
    let mut log = WorldLog::new(contexts);
    // The audit comes first, as in a load from the log: it has the configuration.
    let Some(mut world) = log.read_audit(store)? else {
        return Ok(None);
    };
    if checkpoint.restore(store, contexts, &mut world).is_none() {
        return Ok(None);
    }
    log.skip_reality(checkpoint.header.turns.count);
    log.read_new_facts(store, |_, fact| world.apply(fact))?;
    Ok(Some(LoadedWorld {
        world,
        log,
        restored_entries: checkpoint.len(),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnkeep_types::Timestamp;

    use super::*;
    use crate::config::{Config, Profile};
    use crate::entry::{Author, AuthorClass, Channel, Entry};
    use crate::fact::{BundleCommit, Fact, ItemKind, PocketItem, ProposedBy};
    use crate::ids::{BundleId, EntryId, ItemId, Name};
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
                reply_to: (number % 5 == 4).then(|| EntryId(number - 1)),
            }));
        }
        world
    }

    const TURNS: RealityTurns = RealityTurns {
        count: 41,
        hash: [9; 32],
    };

    /// All facts of a checkpoint, if every part of it is intact.
    fn read_whole(bytes: &[u8], world: &str, store: [u8; 16]) -> Option<Vec<Fact>> {
        let checkpoint = Checkpoint::decode(&Bytes::copy_from_slice(bytes), world, store)?;
        checkpoint.index()?;
        let mut facts = Vec::new();
        reality::decode(checkpoint.facts()?.1, |page| {
            facts.extend(page);
            true
        })?;
        Some(facts)
    }

    #[test]
    fn a_checkpoint_reads_back_only_as_a_whole_and_only_in_its_place() {
        let world = world();
        let whole = encode_parts(&world, TURNS, STORE);
        let facts = read_whole(&whole, "w", STORE).expect("a whole checkpoint");
        let mut back = World::new(world.config.clone());
        for fact in facts {
            back.apply(fact);
        }
        assert_eq!(back.all_entries(), world.all_entries());
        assert!(encode_parts(&back, TURNS, STORE) == whole);
        let header = Checkpoint::decode(&whole.clone().into(), "w", STORE).map(|read| read.header);
        assert_eq!(header.map(|header| header.turns), Some(TURNS));
        assert!(read_whole(&whole, "v", STORE).is_none(), "another world");
        assert!(read_whole(&whole, "w", [8; 16]).is_none(), "another store");
        for at in 0..whole.len() {
            assert!(
                read_whole(&whole[..at], "w", STORE).is_none(),
                "cut at {at}"
            );
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(
                read_whole(&damaged, "w", STORE).is_none(),
                "flipped at {at}"
            );
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(
            read_whole(&longer, "w", STORE).is_none(),
            "more than there was"
        );
    }

    #[test]
    fn the_items_of_a_bundle_keep_their_order() {
        let mut world = world();
        let item = |id: u128, entry: u128| {
            Fact::Item(PocketItem {
                id: ItemId(id),
                kind: ItemKind::Message,
                entry: EntryId(entry),
                title: None,
                time: None,
                location: None,
                notes: None,
                supersedes: None,
            })
        };
        // As a writer may list them: not in the order of their entries.
        for fact in [item(1, 19), item(2, 3), item(3, 7)] {
            world.apply(fact);
        }
        world.apply(Fact::Bundle(BundleCommit {
            id: BundleId(1),
            request: Arc::from("r"),
            proposed_by: ProposedBy {
                engine: "test".to_owned(),
                actor: "test".to_owned(),
            },
            entries: 20,
        }));
        let order =
            |world: &World| -> Vec<ItemId> { world.items_from(0).map(|row| row.item.id).collect() };
        let mut restored = World::new(world.config.clone());
        let whole = encode_parts(&world, TURNS, STORE);
        for fact in read_whole(&whole, "w", STORE).unwrap() {
            restored.apply(fact);
        }
        assert_eq!(order(&world), [ItemId(1), ItemId(2), ItemId(3)]);
        assert_eq!(order(&restored), order(&world));
    }

    #[test]
    fn damaged_facts_behind_a_correct_hash_are_rejected_or_read_but_never_panic() {
        let mut facts = Vec::new();
        reality::encode(&world(), &mut facts);
        let read = |bytes: &[u8]| reality::decode(bytes, |_| true);
        assert!(read(&facts).is_some());
        for at in 0..facts.len() {
            let mut damaged = facts.clone();
            damaged[at] ^= 1 << (at % 8);
            // A changed letter of a text is still a text; the hash is there to reject that.
            read(&damaged);
            // A cut between two facts is a shorter list of facts.
            read(&facts[..at]);
        }
    }

    #[test]
    fn an_index_that_does_not_fit_its_header_is_not_used() {
        let world = world();
        let index = world.index().encode();
        let header = Header {
            entries: 19,
            turns: TURNS,
            index_bytes: index.len() as u64,
        };
        let mut bytes = header.encode("w", STORE);
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        bytes.extend_from_slice(&index);
        let made_up = Checkpoint::decode(&bytes.into(), "w", STORE).expect("the header is right");
        assert!(made_up.index().is_none());
    }
}
