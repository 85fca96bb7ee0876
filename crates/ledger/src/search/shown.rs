//! Which entries some classes have, a bit each: what every search asks of every posting.
//!
//! Making the bits costs a look at every entry, so they are kept from one search to the next and
//! only brought up to date. They belong to a set of classes; a class that came later has only later
//! entries.

use std::sync::{Mutex, PoisonError};

use super::columns::Columns;

/// More are not kept.
const POOLED_MAX: usize = 32;

/// The entries of some classes.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// By class number.
    readable: Vec<bool>,
    bits: Vec<u64>,
    /// Entries that were looked at.
    len: u32,
    count: u64,
    length: u64,
}

/// How many entries there are, and how many words they have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) count: u64,
    pub(super) length: u64,
}

impl Shown {
    /// Looks at the entries up to this number.
    fn extend(&mut self, columns: &Columns, readable: Vec<bool>, to: u32) {
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

    /// Whether an entry that was looked at is among them.
    #[inline]
    pub(super) fn has(&self, number: u32) -> bool {
        self.bits
            .get(number as usize / 64)
            .is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    /// The same for all that were looked at, a bit each.
    pub(super) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The last before this number.
    #[inline]
    pub(super) fn before(&self, number: u32) -> Option<u32> {
        let mut word = number as usize / 64;
        let mut bits = self.bits.get(word).copied().unwrap_or(0) & !(u64::MAX << (number % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.bits[word];
        }
        Some(at(word, bits.ilog2()))
    }

    /// The first from this number on.
    #[inline]
    pub(super) fn from(&self, number: u32) -> Option<u32> {
        let mut word = number as usize / 64;
        let mut bits = self.bits.get(word)? & u64::MAX << (number % 64);
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(at(word, bits.trailing_zeros()))
    }

    /// How many there are before a number, and how long they are.
    pub(super) fn extent(&self, columns: &Columns, at: u32) -> Extent {
        let mut extent = Extent {
            count: self.count,
            length: self.length,
        };
        let mut next = self.from(at);
        while let Some(number) = next.filter(|number| *number < self.len) {
            extent.count -= 1;
            extent.length -= u64::from(columns.length(number));
            next = self.from(number + 1);
        }
        extent
    }

    /// Whether these are the entries of those classes; either may know of classes that the other
    /// does not.
    fn is_of(&self, readable: &[bool]) -> bool {
        readable.get(..self.readable.len()) == Some(&self.readable)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers of entries are below 2^32"
)]
fn at(word: usize, bit: u32) -> u32 {
    word as u32 * 64 + bit
}

/// What no search uses.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Shown>>);

impl Pool {
    /// The entries of some classes, by class number, up to this number at least.
    pub(super) fn take(&self, columns: &Columns, readable: Vec<bool>, to: u32) -> Shown {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pool.iter().position(|shown| shown.is_of(&readable));
        let kept = place.map(|place| pool.remove(place));
        drop(pool);
        let mut shown = kept.unwrap_or_default();
        shown.extend(columns, readable, to);
        shown
    }

    /// Takes them back; the oldest of too many goes.
    pub(super) fn give(&self, shown: Shown) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !pool.iter().any(|other| other.readable == shown.readable) {
            pool.push(shown);
        }
        if pool.len() > POOLED_MAX {
            pool.remove(0);
        }
    }
}

/// A clone of an index has a pool of its own.
impl Clone for Pool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Entry;
    use super::*;

    fn columns(classes: &[u32]) -> Columns {
        let mut columns = Columns::default();
        for (class, length) in classes.iter().zip(1..) {
            columns.push(Entry {
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
        let pool = Pool::default();
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
            let shown = pool.take(&all, readable.clone(), to);
            let expect: Vec<u32> = (0..to)
                .filter(|number| readable[classes[*number as usize] as usize])
                .collect();
            let found: Vec<u32> = std::iter::successors(shown.from(0), |last| shown.from(last + 1))
                .filter(|number| *number < to)
                .collect();
            assert_eq!(found, expect);
            for at in 0..=to {
                let before = expect.partition_point(|number| *number < at);
                assert_eq!(
                    shown.before(at),
                    before.checked_sub(1).map(|index| expect[index])
                );
                let length = expect[..before]
                    .iter()
                    .map(|number| u64::from(number + 1))
                    .sum();
                assert_eq!(
                    shown.extent(&all, at),
                    Extent {
                        count: before as u64,
                        length
                    }
                );
            }
            pool.give(shown);
        }
    }
}
