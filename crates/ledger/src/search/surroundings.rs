//! A view of the index: which entries it shows, its figures, and what stands beside an entry in it.
//!
//! Hidden entries are stepped over and have no say, not even their times: two entries are neighbours when
//! no visible one is between them, however many hidden ones are.

use super::index::Index;
use super::postings::List;
use super::scratch::Scratch;
use super::{ClassId, Scope};

/// Entries further apart in world time are no neighbours: half an hour.
pub const REACH_MILLIS: u64 = 30 * 60 * 1000;

/// So many entries on each side are an entry's surroundings, as long as each is the next one's neighbour.
pub const SESSION_STEPS: usize = 12;

/// The index as one reader sees it at one position.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) index: &'a Index,
    /// By class number.
    readable: Vec<bool>,
    pub(super) at: u32,
    /// How many entries it shows.
    pub(super) count: u64,
    /// Their words.
    pub(super) length: u64,
}

impl<'a> View<'a> {
    /// The view of a scope.
    pub(super) fn new(index: &'a Index, scope: &Scope<'_>) -> Self {
        let at = scope.at.min(index.len());
        let mut readable = vec![false; index.classes.len()];
        let number = |id: &ClassId| index.class_numbers.get(id).copied();
        for class in scope.classes.iter().filter_map(number) {
            readable[class as usize] = true;
        }
        let shown = index.classes.iter().zip(&readable).filter(|(_, readable)| **readable);
        let figures = shown.map(|(class, _)| class.before(at, &index.entries));
        let (count, length) = figures.fold((0, 0), |sum, class| (sum.0 + class.0, sum.1 + class.1));
        Self { index, readable, at, count, length }
    }

    /// Whether it shows an entry before its position.
    #[inline]
    pub(super) fn shows(&self, number: u32) -> bool {
        self.readable[self.index.entries.classes[number as usize] as usize]
    }

    /// The lists of a term that it may read.
    pub(super) fn lists(&self, term: u32) -> impl Iterator<Item = &'a List> {
        let lists = self.index.lists.get(term as usize).into_iter();
        let pairs = lists.flat_map(super::index::ClassLists::as_pairs);
        pairs.filter(|(class, _)| self.readable[*class as usize]).map(|(_, list)| list)
    }

    /// In how many of its entries a term occurs.
    pub(super) fn frequency(&self, term: u32) -> u64 {
        self.lists(term).map(|list| u64::from(list.len_before(self.at))).sum()
    }

    /// All entries that it shows, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = u32> {
        (0..self.at).rev().filter(|number| self.shows(*number))
    }

    /// The neighbour before an entry.
    #[inline]
    pub(super) fn before(&self, number: u32) -> Option<u32> {
        let before = (0..number).rev().find(|other| self.shows(*other))?;
        self.near(before, number).then_some(before)
    }

    /// The neighbour after an entry.
    #[inline]
    pub(super) fn after(&self, number: u32) -> Option<u32> {
        let after = (number + 1..self.at).find(|other| self.shows(*other))?;
        self.near(number, after).then_some(after)
    }

    #[inline]
    fn near(&self, one: u32, other: u32) -> bool {
        let times = &self.index.entries.times;
        times[one as usize].abs_diff(times[other as usize]) <= REACH_MILLIS
    }

    /// These entries and those within so many steps of them, by class and number.
    pub(super) fn within(&self, entries: &[u32], steps: usize) -> Vec<(u32, u32)> {
        let mut near = Vec::with_capacity(entries.len() * (2 * steps + 1));
        let class = |entry: u32| self.index.entries.classes[entry as usize];
        for entry in entries {
            near.push((class(*entry), *entry));
            for step in [Self::before, Self::after] {
                let steps = std::iter::successors(step(self, *entry), |at| step(self, *at)).take(steps);
                near.extend(steps.map(|entry| (class(entry), entry)));
            }
        }
        near.sort_unstable();
        near.dedup();
        near
    }

    /// Which of the query's terms an entry or its surroundings have.
    pub(super) fn terms_around(&self, number: u32, scratch: &Scratch) -> u32 {
        let mut terms = scratch.slot(number).terms;
        for step in [Self::before, Self::after] {
            let mut at = number;
            for _ in 0..SESSION_STEPS {
                let Some(next) = step(self, at) else { break };
                terms |= scratch.slot(next).terms;
                at = next;
            }
        }
        terms
    }
}
