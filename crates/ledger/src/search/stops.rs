//! Records which blocks of entries contain each stop word.
//!
//! Stop words occur almost everywhere, so they have no postings. A person may still be called
//! `Will`, and [`super::Index::entries_naming`] must find the name. A block has a word when any of
//! its entries has it, visible or not. That only decides which entries are visited: the caller
//! checks each text.

use super::stem::{STOP_WORD_COUNT, stop_word_number};

/// Entries per block.
const BLOCK_ENTRIES: u32 = 32;

/// One bit per block, for each stop word.
#[derive(Debug, Clone, Default)]
pub(super) struct StopBlocks(Vec<Vec<u64>>);

impl StopBlocks {
    /// Records that an entry has a stop word.
    pub(super) fn record(&mut self, word: &str, entry: u32) {
        let Some(word) = stop_word_number(word) else {
            return;
        };
        if self.0.is_empty() {
            self.0.resize(STOP_WORD_COUNT, Vec::new());
        }
        let (place, blocks) = ((entry / BLOCK_ENTRIES) as usize, &mut self.0[word]);
        if blocks.len() <= place / 64 {
            blocks.resize(place / 64 + 1, 0);
        }
        blocks[place / 64] |= 1 << (place % 64);
    }

    /// Whether an entry may have a stop word.
    pub(super) fn may_have(&self, word: usize, entry: u32) -> bool {
        let place = (entry / BLOCK_ENTRIES) as usize;
        let bits = self.0.get(word).and_then(|blocks| blocks.get(place / 64));
        bits.is_some_and(|bits| bits >> (place % 64) & 1 == 1)
    }

    /// The first entry of the block, which is the exclusive end of all earlier blocks.
    pub(super) fn block_before(entry: u32) -> u32 {
        entry / BLOCK_ENTRIES * BLOCK_ENTRIES
    }

    /// The block bits of each stop word.
    pub(super) fn rows(&self) -> &[Vec<u64>] {
        &self.0
    }

    /// Makes the table from the rows of a checkpoint; `None` if the number of rows is wrong.
    pub(super) fn from_rows(rows: Vec<Vec<u64>>) -> Option<Self> {
        (rows.is_empty() || rows.len() == STOP_WORD_COUNT).then_some(Self(rows))
    }

    /// Estimates the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0
            .iter()
            .map(|blocks| blocks.capacity() * size_of::<u64>() + size_of::<Vec<u64>>())
            .sum()
    }
}
