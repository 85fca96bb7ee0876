//! A bitmap of the entries that a set of audience classes can read.
//!
//! Every search tests many postings for visibility. Building the bitmap visits every entry, so a
//! pool keeps bitmaps between searches and extends them by the new entries. A bitmap belongs to one
//! set of classes. A class that is created later has only later entries, so an older bitmap stays
//! correct for the entries that it covers.

use std::sync::{Mutex, PoisonError};

use super::columns::Columns;

/// The pool drops the oldest bitmap beyond this number.
const POOLED_MAX: usize = 32;

/// The visible entries of one set of classes.
#[derive(Debug, Default)]
pub(super) struct VisibleEntries {
    /// Indexed by class number.
    readable: Vec<bool>,
    bits: Vec<u64>,
    /// The number of entries that the bitmap covers.
    len: u32,
    count: u64,
    length: u64,
}

/// How many entries there are, and how many words they have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ViewTotals {
    pub(super) count: u64,
    pub(super) length: u64,
}

impl VisibleEntries {
    /// Covers the entries up to this number. `readable` may know classes that are new since.
    fn extend_to(&mut self, columns: &Columns, readable: Vec<bool>, to: u32) {
        self.readable = readable;
        self.bits
            .resize((to.max(self.len) as usize).div_ceil(64), 0);
        for number in self.len..to {
            if self.readable[columns.classes[number as usize] as usize] {
                self.bits[number as usize / 64] |= 1 << (number % 64);
                self.count += 1;
                self.length += u64::from(columns.length(number));
            }
        }
        self.len = self.len.max(to);
    }

    /// Whether a covered entry is visible.
    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        self.bits
            .get(number as usize / 64)
            .is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    /// One bit per covered entry.
    pub(super) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The last visible entry before a number.
    #[inline]
    pub(super) fn last_before(&self, number: u32) -> Option<u32> {
        let mut word = number as usize / 64;
        // Masks the bits from `number` on, then walks back over empty words.
        let mut bits = self.bits.get(word).copied().unwrap_or(0) & !(u64::MAX << (number % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.bits[word];
        }
        Some(entry_at(word, bits.ilog2()))
    }

    /// The first visible entry from a number on.
    #[inline]
    pub(super) fn first_from(&self, number: u32) -> Option<u32> {
        let mut word = number as usize / 64;
        // Masks the bits before `number`, then walks on over empty words.
        let mut bits = self.bits.get(word)? & u64::MAX << (number % 64);
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(entry_at(word, bits.trailing_zeros()))
    }

    /// Counts the visible entries before a number. It subtracts those from `at` on, because most
    /// searches read near the end of the ledger.
    pub(super) fn totals(&self, columns: &Columns, at: u32) -> ViewTotals {
        let mut totals = ViewTotals {
            count: self.count,
            length: self.length,
        };
        let mut next = self.first_from(at);
        while let Some(number) = next.filter(|number| *number < self.len) {
            totals.count -= 1;
            totals.length -= u64::from(columns.length(number));
            next = self.first_from(number + 1);
        }
        totals
    }

    /// Whether the bitmap belongs to this set of classes. `readable` may have more classes than the
    /// bitmap: those are newer than its entries.
    fn matches_classes(&self, readable: &[bool]) -> bool {
        readable.get(..self.readable.len()) == Some(&self.readable)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers of entries are below 2^32"
)]
fn entry_at(word: usize, bit: u32) -> u32 {
    word as u32 * 64 + bit
}

/// The bitmaps that no search uses at the moment.
#[derive(Debug, Default)]
pub(super) struct VisibleEntriesPool(Mutex<Vec<VisibleEntries>>);

impl VisibleEntriesPool {
    /// Takes a bitmap of these classes that covers at least the entries before `to`.
    pub(super) fn acquire(
        &self,
        columns: &Columns,
        readable: Vec<bool>,
        to: u32,
    ) -> VisibleEntries {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pool
            .iter()
            .position(|visible| visible.matches_classes(&readable));
        // The lock is released before the bitmap is extended, which may take long.
        let kept = place.map(|place| pool.remove(place));
        drop(pool);
        let mut visible = kept.unwrap_or_default();
        visible.extend_to(columns, readable, to);
        visible
    }

    /// Returns a bitmap to the pool, which drops its oldest one when it is full.
    pub(super) fn release(&self, visible: VisibleEntries) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Two searches of the same classes may run at once; one bitmap is enough.
        if !pool.iter().any(|other| other.readable == visible.readable) {
            pool.push(visible);
        }
        if pool.len() > POOLED_MAX {
            pool.remove(0);
        }
    }
}

/// A cloned index starts with an empty pool.
impl Clone for VisibleEntriesPool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::EntryFigures;
    use super::*;

    fn columns(classes: &[u32]) -> Columns {
        let mut columns = Columns::default();
        for (class, length) in classes.iter().zip(1..) {
            columns.push(EntryFigures {
                time: 0,
                class: *class,
                byline: 0,
                length,
            });
        }
        columns
    }

    #[test]
    fn kept_bits_are_brought_up_to_date_and_never_those_of_other_classes() {
        let pool = VisibleEntriesPool::default();
        let classes: Vec<u32> = (0..500)
            .map(|number| if number < 200 { number % 2 } else { number % 3 })
            .collect();
        let all = columns(&classes);
        for (readable, to) in [
            (vec![true, false], 150),
            (vec![true, false], 200),
            (vec![true, false, true], 500),
            (vec![true, false, false], 500),
            (vec![false, true, false], 320),
            (vec![true, false, true], 500),
        ] {
            let visible = pool.acquire(&all, readable.clone(), to);
            let expect: Vec<u32> = (0..to)
                .filter(|number| readable[classes[*number as usize] as usize])
                .collect();
            let found: Vec<u32> =
                std::iter::successors(visible.first_from(0), |last| visible.first_from(last + 1))
                    .filter(|number| *number < to)
                    .collect();
            assert_eq!(found, expect);
            for at in 0..=to {
                let before = expect.partition_point(|number| *number < at);
                assert_eq!(
                    visible.last_before(at),
                    before.checked_sub(1).map(|index| expect[index])
                );
                let length = expect[..before]
                    .iter()
                    .map(|number| u64::from(number + 1))
                    .sum();
                assert_eq!(
                    visible.totals(&all, at),
                    ViewTotals {
                        count: before as u64,
                        length
                    }
                );
            }
            pool.release(visible);
        }
    }
}
