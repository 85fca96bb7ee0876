//! In which blocks of entries the words are that say nothing: no postings, for they are everywhere,
//! but enough to find somebody who is called so.
//!
//! A block has a word when any of its entries has, whoever may read it; that only decides which
//! entries are looked at.

use super::stem::{STOPS, stop_number};

/// Entries of a block.
const BLOCK: u32 = 32;

/// The blocks of each word, a bit each.
#[derive(Debug, Clone, Default)]
pub(super) struct Stops(Vec<Vec<u64>>);

impl Stops {
    /// Notes that an entry has a word that says nothing.
    pub(super) fn note(&mut self, word: &str, entry: u32) {
        let Some(word) = stop_number(word) else {
            return;
        };
        if self.0.is_empty() {
            self.0.resize(STOPS, Vec::new());
        }
        let (place, blocks) = ((entry / BLOCK) as usize, &mut self.0[word]);
        if blocks.len() <= place / 64 {
            blocks.resize(place / 64 + 1, 0);
        }
        blocks[place / 64] |= 1 << (place % 64);
    }

    /// Whether an entry may have a word.
    pub(super) fn may_have(&self, word: usize, entry: u32) -> bool {
        let place = (entry / BLOCK) as usize;
        let bits = self.0.get(word).and_then(|blocks| blocks.get(place / 64));
        bits.is_some_and(|bits| bits >> (place % 64) & 1 == 1)
    }

    /// The last entry before this one that lies in another block.
    pub(super) fn block_before(entry: u32) -> u32 {
        entry / BLOCK * BLOCK
    }

    /// The bits of each word.
    pub(super) fn rows(&self) -> &[Vec<u64>] {
        &self.0
    }

    /// Those of rows that were read; `None` if there are too many.
    pub(super) fn of_rows(rows: Vec<Vec<u64>>) -> Option<Self> {
        (rows.is_empty() || rows.len() == STOPS).then_some(Self(rows))
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0
            .iter()
            .map(|blocks| blocks.capacity() * size_of::<u64>() + size_of::<Vec<u64>>())
            .sum()
    }
}
