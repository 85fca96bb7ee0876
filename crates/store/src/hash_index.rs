//! An index from hashes to row numbers. One writer extends it while readers look up without locks.
//!
//! Each shard is an open-addressing table with linear probing. A slot packs 24 bits of the hash
//! (bits 40 to 63) with the row number plus one (bits 0 to 39); 0 is an empty slot. The 24 bits
//! rule out most other rows, so a probe rarely reads the table that it indexes. Shards grow one at
//! a time: growing copies one shard, and readers continue in its old copy meanwhile. A reader with
//! the old copy misses only rows that were added after its lookup began.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;

/// Growing stalls the writer while it copies one shard, so a shard is a small part of the index.
const SHARDS: usize = 256;
const ROW_BITS: u32 = 40;
const ROW_MASK: u64 = (1 << ROW_BITS) - 1;
/// An empty index takes 256 · 8 slots, or 16 KiB.
const FIRST_SLOTS: usize = 8;

type Slots = Box<[AtomicU64]>;

/// The index; see the module for its layout.
pub(crate) struct HashIndex {
    shards: Box<[Shard]>,
}

struct Shard {
    slots: ArcSwap<Slots>,
    used: AtomicUsize,
}

impl HashIndex {
    pub(crate) fn new() -> Self {
        let shard = || Shard {
            slots: ArcSwap::from_pointee(empty_slots(FIRST_SLOTS)),
            used: AtomicUsize::new(0),
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// Finds a row with this hash that `is_it` confirms.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u64) -> bool) -> Option<u64> {
        let slots = self.shard(hash).slots.load();
        for at in probe_sequence(hash, slots.len()) {
            let slot = slots[at].load(Ordering::Acquire);
            // Rows are never removed, so an empty slot ends every probe sequence.
            if slot == 0 {
                return None;
            }
            let row = (slot & ROW_MASK) - 1;
            if slot >> ROW_BITS == fingerprint(hash) && is_it(row) {
                return Some(row);
            }
        }
        None
    }

    /// Adds a row that is not in the index. Growing calls `hash_of` for each row of the shard. Only
    /// the writer may call this.
    pub(crate) fn insert(&self, hash: u64, row: u64, hash_of: impl Fn(u64) -> u64) {
        let shard = self.shard(hash);
        // Relaxed, because only the writer reads it.
        let used = shard.used.fetch_add(1, Ordering::Relaxed) + 1;
        let slots = shard.slots.load();
        // Above three quarters full, probe sequences become long.
        if used * 4 <= slots.len() * 3 {
            store_row(&slots, hash, row);
            return;
        }
        let grown = empty_slots(slots.len() * 2);
        for slot in &**slots {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                let row = (slot & ROW_MASK) - 1;
                store_row(&grown, hash_of(row), row);
            }
        }
        store_row(&grown, hash, row);
        // The grown copy is complete before readers can see it.
        shard.slots.store(Arc::new(grown));
    }

    fn shard(&self, hash: u64) -> &Shard {
        &self.shards[(hash >> 56) as usize]
    }
}

fn empty_slots(slots: usize) -> Slots {
    (0..slots).map(|_| AtomicU64::new(0)).collect()
}

/// Stores a row in the first free slot of its probe sequence. A quarter of the slots is always
/// free.
fn store_row(slots: &Slots, hash: u64, row: u64) {
    assert!(row < ROW_MASK, "an index is full");
    let free = probe_sequence(hash, slots.len()).find(|&at| slots[at].load(Ordering::Relaxed) == 0);
    if let Some(at) = free {
        slots[at].store(
            (fingerprint(hash) << ROW_BITS) | (row + 1),
            Ordering::Release,
        );
    }
}

/// The 24 bits that a slot keeps. They do not overlap with the bits that choose the shard (the top
/// ones) or, unless the shard is huge, the first slot (the low ones).
fn fingerprint(hash: u64) -> u64 {
    (hash >> 32) & 0xff_ffff
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "masked by the number of slots"
)]
fn probe_sequence(hash: u64, slots: usize) -> impl Iterator<Item = usize> {
    let first = hash as usize;
    (0..slots).map(move |step| first.wrapping_add(step) & (slots - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(n: u64) -> u64 {
        u64::from_le_bytes(
            blake3::hash(&n.to_le_bytes()).as_bytes()[..8]
                .try_into()
                .unwrap(),
        )
    }

    #[test]
    fn every_inserted_row_is_found_and_no_other() {
        let index = HashIndex::new();
        for row in 0..50_000 {
            index.insert(spread(row), row, spread);
        }
        for row in 0..50_000 {
            assert_eq!(index.find(spread(row), |r| r == row), Some(row));
        }
        assert_eq!(index.find(spread(50_001), |_| false), None);
    }

    #[test]
    fn equal_hashes_are_told_apart_by_the_caller() {
        let index = HashIndex::new();
        for row in 0..20 {
            index.insert(7, row, |_| 7);
        }
        assert_eq!(index.find(7, |r| r == 13), Some(13));
    }
}
