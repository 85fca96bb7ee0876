//! Memory of a search: what each entry scored so far, kept from one search to the next.
//!
//! A slot is all zero between searches; a search clears what it touched when it ends. The pool holds as
//! many as searches ran at once, up to [`POOLED_MAX`].

use std::sync::{Mutex, PoisonError};

/// More are not kept.
const POOLED_MAX: usize = 4;

/// What an entry scored.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    /// The sum over the terms so far.
    pub(super) score: f32,
    /// Which of the query's terms it has, by bit.
    pub(super) terms: u32,
}

/// Slots by entry, and which of them are not zero.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) slots: Vec<Slot>,
    pub(super) touched: Vec<u32>,
}

impl Scratch {
    /// Adds a term's part of the score of an entry.
    #[inline]
    pub(super) fn add(&mut self, entry: u32, score: f32, term: u32) {
        let slot = &mut self.slots[entry as usize];
        if slot.terms == 0 {
            self.touched.push(entry);
        }
        slot.score += score;
        slot.terms |= term;
    }

    /// What an entry scored.
    #[inline]
    pub(super) fn slot(&self, entry: u32) -> Slot {
        self.slots[entry as usize]
    }

    fn clear(&mut self) {
        for entry in self.touched.drain(..) {
            self.slots[entry as usize] = Slot::default();
        }
    }
}

/// Scratches that no search uses.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Scratch>>);

impl Pool {
    /// A clear scratch for entries before `end`.
    pub(super) fn take(&self, end: u32) -> Scratch {
        let pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = pooled.unwrap_or_default();
        if scratch.slots.len() < end as usize {
            scratch.slots.resize(end as usize, Slot::default());
        }
        scratch
    }

    /// Takes a scratch back.
    pub(super) fn give(&self, mut scratch: Scratch) {
        scratch.clear();
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED_MAX {
            pool.push(scratch);
        }
    }
}

/// A clone of an index has a pool of its own.
impl Clone for Pool {
    fn clone(&self) -> Self {
        Self::default()
    }
}
