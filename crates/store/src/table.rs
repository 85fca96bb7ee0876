//! Append-only tables of fixed-width rows. One writer extends a table while any number of readers
//! read it, without locks and without copies.
//!
//! Invariant: a row below [`Table::len`] is complete. The writer stores the row's words first and
//! raises `len` (release) afterwards; readers load `len` (acquire) first. Words of a complete row
//! change only through [`Table::set_word`]. Rows live in chunks that never move, so growing costs
//! no copy and no pause. A full table panics: 17 thousand million rows are beyond any disk.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chunk of turns, at six words, takes 192 KiB. A new chunk is the only allocation of an append.
const CHUNK_ROWS: usize = 4096;
const CHUNKS_PER_BLOCK: usize = 4096;
const BLOCKS: usize = 1024;

/// The most rows of a table: about 17 thousand million.
pub(crate) const ROWS_MAX: u64 = (BLOCKS * CHUNKS_PER_BLOCK * CHUNK_ROWS) as u64;

type Chunk = Box<[AtomicU64]>;
type Block = Box<[OnceLock<Chunk>]>;

/// A table whose rows are `W` words.
pub(crate) struct Table<const W: usize> {
    blocks: Box<[OnceLock<Block>]>,
    len: AtomicU64,
}

impl<const W: usize> Table<W> {
    pub(crate) fn new() -> Self {
        Self {
            blocks: empty_slots(BLOCKS),
            len: AtomicU64::new(0),
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Appends a row and returns its number. Only the writer may call this.
    pub(crate) fn push(&self, row: [u64; W]) -> u64 {
        let number = self.len.load(Ordering::Relaxed);
        assert!(number < ROWS_MAX, "a table is full");
        let at = RowPlace::locate(number);
        let block = self.blocks[at.block].get_or_init(|| empty_slots(CHUNKS_PER_BLOCK));
        let chunk = block[at.chunk]
            .get_or_init(|| (0..CHUNK_ROWS * W).map(|_| AtomicU64::new(0)).collect());
        // Relaxed is enough: no reader looks at the row before `len` covers it.
        for (slot, word) in chunk[at.row * W..].iter().zip(row) {
            slot.store(word, Ordering::Relaxed);
        }
        // Release: a reader that sees the new length also sees the words above.
        self.len.store(number + 1, Ordering::Release);
        number
    }

    /// The row with this number.
    pub(crate) fn get(&self, number: u64) -> Option<[u64; W]> {
        let words = self.row_words(number)?;
        Some(std::array::from_fn(|i| words[i].load(Ordering::Acquire)))
    }

    /// One word of a row.
    pub(crate) fn read_word(&self, number: u64, column: usize) -> Option<u64> {
        Some(self.row_words(number)?[column].load(Ordering::Acquire))
    }

    /// Changes one word of a complete row. Only the writer may call this.
    pub(crate) fn set_word(&self, number: u64, column: usize, word: u64) {
        let words = self
            .row_words(number)
            .expect("only rows that exist are changed");
        words[column].store(word, Ordering::Release);
    }

    fn row_words(&self, number: u64) -> Option<&[AtomicU64]> {
        if number >= self.len() {
            return None;
        }
        let at = RowPlace::locate(number);
        let chunk = self.blocks[at.block].get()?[at.chunk].get()?;
        Some(&chunk[at.row * W..(at.row + 1) * W])
    }
}

/// Where a row lies: a block, a chunk of the block and a row of the chunk.
struct RowPlace {
    block: usize,
    chunk: usize,
    row: usize,
}

impl RowPlace {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rows are below ROWS_MAX, which fits usize"
    )]
    fn locate(number: u64) -> Self {
        let number = number as usize;
        let chunk = number / CHUNK_ROWS;
        Self {
            block: chunk / CHUNKS_PER_BLOCK,
            chunk: chunk % CHUNKS_PER_BLOCK,
            row: number % CHUNK_ROWS,
        }
    }
}

/// An append-only list of values that do not fit words, with the same guarantees and limits.
pub(crate) struct List<T> {
    blocks: Box<[OnceLock<ListBlock<T>>]>,
    len: AtomicU64,
}

type ListBlock<T> = Box<[OnceLock<Box<[OnceLock<T>]>>]>;

impl<T> List<T> {
    pub(crate) fn new() -> Self {
        Self {
            blocks: empty_slots(BLOCKS),
            len: AtomicU64::new(0),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Appends a value and returns its number. Only the writer may call this.
    pub(crate) fn push(&self, value: T) -> u64 {
        let number = self.len();
        assert!(number < ROWS_MAX, "a list is full");
        let at = RowPlace::locate(number);
        let block = self.blocks[at.block].get_or_init(|| empty_slots(CHUNKS_PER_BLOCK));
        let chunk = block[at.chunk].get_or_init(|| empty_slots(CHUNK_ROWS));
        // `set` fails only if the slot is taken, which a second writer would cause.
        let fresh = chunk[at.row].set(value).is_ok();
        assert!(fresh, "a list has one writer");
        self.len.store(number + 1, Ordering::Release);
        number
    }

    /// The value with this number.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        if number >= self.len() {
            return None;
        }
        let at = RowPlace::locate(number);
        self.blocks[at.block].get()?[at.chunk].get()?[at.row].get()
    }
}

fn empty_slots<T>(slots: usize) -> Box<[OnceLock<T>]> {
    (0..slots).map(|_| OnceLock::new()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_across_chunks() {
        let table = Table::<2>::new();
        for i in 0..10_000 {
            assert_eq!(table.push([i, i * 7]), i);
        }
        assert_eq!(table.get(9_999), Some([9_999, 69_993]));
        assert_eq!(table.get(10_000), None);
        table.set_word(4_096, 1, 5);
        assert_eq!(table.read_word(4_096, 1), Some(5));
    }

    #[test]
    fn a_reader_never_sees_half_a_row() {
        let table = Table::<2>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|i| _ = table.push([i, !i])));
            while table.len() < 200_000 {
                let last = table.len().saturating_sub(1);
                if let Some([a, b]) = table.get(last) {
                    assert_eq!((a, b), (last, !last));
                }
            }
        });
    }
}
