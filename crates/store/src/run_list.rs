//! A list of numbers that mostly count up by one, stored as runs.
//!
//! Example: 7, 8, 9, 1, 2 is stored as two runs, (from index 0: 7) and (from index 3: 1). Like a
//! [`Table`] it has one writer and any number of readers without locks. Invariant: a run is in the
//! table before the length covers its first number, so a reader always finds the run that it needs.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::table::Table;

// The words of a run.
const BEGIN: usize = 0;
const FIRST: usize = 1;

/// The list.
pub(crate) struct RunList {
    /// The index at which a run begins, and its first number.
    runs: Table<2>,
    len: AtomicU64,
}

impl RunList {
    pub(crate) fn new() -> Self {
        Self {
            runs: Table::new(),
            len: AtomicU64::new(0),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Appends a number. Only the writer may call this.
    pub(crate) fn push(&self, number: u64) {
        let at = self.len.load(Ordering::Relaxed);
        let last = self
            .runs
            .len()
            .checked_sub(1)
            .and_then(|run| self.runs.get(run));
        // One run per change of kind: a store of appends only has few runs, however many turns.
        if last.is_none_or(|[begin, first]| first.wrapping_add(at - begin) != number) {
            self.runs.push([at, number]);
        }
        self.len.store(at + 1, Ordering::Release);
    }

    /// The number at an index.
    pub(crate) fn get(&self, at: u64) -> Option<u64> {
        if at >= self.len() {
            return None;
        }
        let [begin, first] = self.runs.get(self.last_run_up_to(BEGIN, at)?)?;
        Some(first.wrapping_add(at - begin))
    }

    /// Counts the numbers that are at most `number`. Only for a list whose numbers never descend.
    pub(crate) fn count_up_to(&self, number: u64) -> u64 {
        // Before the runs: a run that the writer adds meanwhile must not lengthen the one before.
        let len = self.len();
        let run = self.last_run_up_to(FIRST, number);
        let Some((run, [begin, first])) = run.and_then(|run| Some((run, self.runs.get(run)?)))
        else {
            return 0;
        };
        let end = self.runs.read_word(run + 1, BEGIN).unwrap_or(len);
        (begin + (number - first) + 1).min(end).min(len)
    }

    /// Searches for the last run whose word in this column is at most `number`.
    fn last_run_up_to(&self, column: usize, number: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.runs.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.runs.read_word(middle, column)? <= number {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// How many runs the list takes, at 16 bytes each.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> u64 {
        self.runs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_whatever_runs_they_form() {
        let numbers = [7, 8, 9, 1, 3, 4, 4, 5, 0, 1, 2];
        let runs = RunList::new();
        for (len, &number) in numbers.iter().enumerate() {
            assert_eq!(runs.get(len as u64), None);
            runs.push(number);
            let read: Vec<_> = (0..runs.len()).map_while(|at| runs.get(at)).collect();
            assert_eq!(read, numbers[..=len]);
        }
        assert_eq!(runs.runs(), 5);
    }

    #[test]
    fn numbers_up_to_a_number_are_counted_across_runs_and_repeats() {
        let numbers = [3, 4, 5, 5, 5, 9, 10, 20];
        let runs = RunList::new();
        for len in 0..=numbers.len() {
            for number in 0..25 {
                let count = numbers[..len].iter().filter(|n| **n <= number).count();
                assert_eq!(runs.count_up_to(number), count as u64, "{number} of {len}");
            }
            if let Some(next) = numbers.get(len) {
                runs.push(*next);
            }
        }
    }

    #[test]
    fn a_reader_finds_every_number_that_the_length_covers() {
        let runs = RunList::new();
        let number = |at: u64| at + at / 3 * 100;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000).for_each(|at| runs.push(number(at))));
            while runs.len() < 100_000 {
                if let Some(last) = runs.len().checked_sub(1) {
                    assert_eq!(runs.get(last), Some(number(last)));
                }
            }
        });
    }
}
