//! A view of the index: which entries it shows, its figures, and what stands beside an entry in it.
//!
//! Hidden entries are stepped over and have no say, not even their times: two entries are
//! neighbours when no visible one is between them, however many hidden ones are. Lists hold the
//! postings of all classes; nothing reads one but through [`View::shows`].

use std::cell::OnceCell;

use super::index::Index;
use super::postings::List;
use super::shown::{Extent, Shown};
use super::{ClassId, Scope};

/// Entries further apart in world time are no neighbours: half an hour.
pub const REACH_MILLIS: u64 = 30 * 60 * 1000;

/// The index as one reader sees it at one position.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) index: &'a Index,
    shown: Shown,
    /// The numbers of the classes that it may read.
    classes: Vec<u32>,
    pub(super) at: u32,
    extent: OnceCell<Extent>,
}

impl<'a> View<'a> {
    /// The view of a scope.
    pub(super) fn new(index: &'a Index, scope: &Scope<'_>) -> Self {
        let at = scope.at.min(index.len());
        let mut readable = vec![false; index.classes.len()];
        let number = |id: &ClassId| index.class_numbers.get(id).copied();
        let mut classes: Vec<u32> = scope.classes.iter().filter_map(number).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in &classes {
            readable[*class as usize] = true;
        }
        let shown = index.pool.take(&index.entries, readable, at);
        Self {
            index,
            shown,
            classes,
            at,
            extent: OnceCell::new(),
        }
    }

    /// How many entries it shows, and how many words they have.
    pub(super) fn extent(&self) -> Extent {
        *self
            .extent
            .get_or_init(|| self.shown.extent(&self.index.entries, self.at))
    }

    /// Whether it shows an entry before its position.
    #[inline]
    pub(super) fn shows(&self, number: u32) -> bool {
        self.shown.has(number)
    }

    /// Which entries it shows, a bit each, as [`Self::shows`] tells.
    pub(super) fn shown_bits(&self) -> &[u64] {
        self.shown.bits()
    }

    /// The number of an entry's author.
    #[inline]
    pub(super) fn author(&self, number: u32) -> u32 {
        self.index
            .bylines
            .author(self.index.entries.bylines[number as usize])
    }

    /// The list of a term, with postings that it does not show.
    pub(super) fn list(&self, term: u32) -> Option<&'a List> {
        self.index.lists.get(term as usize)
    }

    /// The entries that it shows and that have a term, the newest first.
    pub(super) fn newest_with(&self, term: u32, before: u32) -> impl Iterator<Item = u32> {
        let lists = self.list(term).into_iter();
        let before = before.min(self.at);
        lists
            .flat_map(move |list| list.backward(before))
            .filter(|entry| self.shows(*entry))
    }

    /// How long the list of a term is, with what it does not show: how much work it is, nothing
    /// else.
    pub(super) fn postings(&self, term: u32) -> u32 {
        self.list(term).map_or(0, List::len)
    }

    /// In how many of its entries a term occurs.
    pub(super) fn frequency(&self, term: u32) -> u64 {
        let Some(list) = self.list(term) else {
            return 0;
        };
        let Some(tally) = self.index.tallies.get(&term) else {
            let before = list.iter().take_while(|posting| posting.entry < self.at);
            return before.filter(|posting| self.shows(posting.entry)).count() as u64;
        };
        let of = |class: &u32| u64::from(tally.get(*class as usize).copied().unwrap_or(0));
        let all: u64 = self.classes.iter().map(of).sum();
        let classes = &self.index.entries.classes;
        let readable = |entry: u32| self.classes.binary_search(&classes[entry as usize]).is_ok();
        // A checkpoint that was made up may count less than there is.
        all.saturating_sub(
            list.from(self.at)
                .filter(|posting| readable(posting.entry))
                .count() as u64,
        )
    }

    /// All entries that it shows, the newest first.
    pub(super) fn newest_first(&self, before: u32) -> impl Iterator<Item = u32> {
        let before = before.min(self.at);
        std::iter::successors(self.shown.before(before), |number| {
            self.shown.before(*number)
        })
    }

    /// The entry before a number, however far it is.
    #[inline]
    pub(super) fn last_before(&self, number: u32) -> Option<u32> {
        self.shown.before(number.min(self.at))
    }

    /// The entry from a number on, however far it is.
    #[inline]
    pub(super) fn first_from(&self, number: u32) -> Option<u32> {
        self.shown.from(number).filter(|found| *found < self.at)
    }

    /// The neighbour before an entry.
    #[inline]
    pub(super) fn before(&self, number: u32) -> Option<u32> {
        self.last_before(number)
            .filter(|before| self.near(*before, number))
    }

    /// The neighbour after an entry.
    #[inline]
    pub(super) fn after(&self, number: u32) -> Option<u32> {
        self.first_from(number + 1)
            .filter(|after| self.near(number, *after))
    }

    /// Whether two entries are close enough in time to be neighbours.
    #[inline]
    pub(super) fn near(&self, one: u32, other: u32) -> bool {
        let times = &self.index.entries.times;
        times[one as usize].abs_diff(times[other as usize]) <= REACH_MILLIS
    }

    /// These entries and those within so many steps of them, ascending.
    pub(super) fn within(&self, entries: &[u32], steps: usize) -> Vec<u32> {
        let mut near = Vec::with_capacity(entries.len() * (2 * steps + 1));
        for entry in entries {
            near.push(*entry);
            for step in [Self::before, Self::after] {
                near.extend(
                    std::iter::successors(step(self, *entry), |at| step(self, *at)).take(steps),
                );
            }
        }
        near.sort_unstable();
        near.dedup();
        near
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.index.pool.give(std::mem::take(&mut self.shown));
    }
}
