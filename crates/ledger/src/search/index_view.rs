//! The index as one reader may see it at one position: visible entries, their totals, and
//! neighbours.
//!
//! Hidden entries have no influence: two visible entries are neighbours when no visible entry is
//! between them, however many hidden ones are. Posting lists hold entries of all classes, so every
//! caller that reads a list filters it with [`IndexView::is_visible`] or
//! [`IndexView::visible_bits`]. The length of an unfiltered list may only decide how much work a
//! search does.

use std::cell::OnceCell;

use super::index::Index;
use super::postings::PostingList;
use super::visible::{ViewTotals, VisibleEntries};
use super::{ClassId, Scope};

/// Half an hour of world time. Entries further apart are not neighbours.
pub const REACH_MILLIS: u64 = 30 * 60 * 1000;

/// The rarest of several terms that an entry must all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RarestTerm {
    /// One of the terms occurs in no entry.
    Missing,
    /// The number of the term with the shortest list.
    Known(u32),
}

/// The index as one reader sees it at one position.
#[derive(Debug)]
pub(super) struct IndexView<'a> {
    pub(super) index: &'a Index,
    visible: VisibleEntries,
    /// The sorted numbers of the readable classes.
    classes: Vec<u32>,
    pub(super) at: u32,
    totals: OnceCell<ViewTotals>,
}

impl<'a> IndexView<'a> {
    /// Makes the view of a scope.
    pub(super) fn new(index: &'a Index, scope: &Scope<'_>) -> Self {
        // A position behind the end means the whole index.
        let at = scope.at.min(index.len());
        let mut readable = vec![false; index.classes.len()];
        let number = |id: &ClassId| index.class_numbers.get(id).copied();
        let mut classes: Vec<u32> = scope.classes.iter().filter_map(number).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in &classes {
            readable[*class as usize] = true;
        }
        let visible = index.pool.acquire(&index.entries, readable, at);
        Self {
            index,
            visible,
            classes,
            at,
            totals: OnceCell::new(),
        }
    }

    /// The number of visible entries and the number of their words.
    pub(super) fn totals(&self) -> ViewTotals {
        *self
            .totals
            .get_or_init(|| self.visible.totals(&self.index.entries, self.at))
    }

    /// Whether an entry before the view's position is visible. Callers never ask about later ones:
    /// the pooled bitmap may cover them too.
    #[inline]
    pub(super) fn is_visible(&self, number: u32) -> bool {
        self.visible.contains(number)
    }

    /// One bit per entry, as [`Self::is_visible`] answers.
    pub(super) fn visible_bits(&self) -> &[u64] {
        self.visible.bits()
    }

    /// The number of an entry's author.
    #[inline]
    pub(super) fn author_of(&self, number: u32) -> u32 {
        self.index
            .bylines
            .author(self.index.entries.bylines[number as usize])
    }

    /// The posting list of a term, hidden entries included.
    pub(super) fn posting_list(&self, term: u32) -> Option<&'a PostingList> {
        self.index.lists.get(term as usize)
    }

    /// The visible entries with a term, the newest first.
    pub(super) fn newest_with(&self, term: u32, before: u32) -> impl Iterator<Item = u32> {
        let lists = self.posting_list(term).into_iter();
        let before = before.min(self.at);
        lists
            .flat_map(move |list| list.entries_before(before))
            .filter(|entry| self.is_visible(*entry))
    }

    /// The length of a term's posting list, hidden entries included. Use it only to estimate work.
    pub(super) fn list_len(&self, term: u32) -> u32 {
        self.posting_list(term).map_or(0, PostingList::len)
    }

    /// Counts the visible entries with a term.
    pub(super) fn entry_frequency(&self, term: u32) -> u64 {
        let Some(list) = self.posting_list(term) else {
            return 0;
        };
        let Some(tally) = self.index.class_tallies.get(&term) else {
            // Short lists have no tally, and counting them is fast.
            let before = list.iter().take_while(|posting| posting.entry < self.at);
            return before
                .filter(|posting| self.is_visible(posting.entry))
                .count() as u64;
        };
        let mut readable_postings = 0_u64;
        for class in &self.classes {
            readable_postings += u64::from(tally.get(*class as usize).copied().unwrap_or(0));
        }
        // The tally covers the whole list, so postings from the view's position on are subtracted.
        // The bitmap need not cover those, so their class is looked up.
        let classes = &self.index.entries.classes;
        let is_readable = |entry: u32| self.classes.binary_search(&classes[entry as usize]).is_ok();
        let later = list
            .postings_from(self.at)
            .filter(|posting| is_readable(posting.entry))
            .count() as u64;
        // The subtraction saturates because a forged checkpoint may have too small a tally.
        readable_postings.saturating_sub(later)
    }

    /// Selects the term with the shortest list, or `None` when there are no terms. A term without a
    /// number occurs in no entry.
    pub(super) fn rarest_term(
        &self,
        terms: impl Iterator<Item = Option<u32>>,
    ) -> Option<RarestTerm> {
        let mut rarest: Option<(u32, u32)> = None;
        let mut has_missing = false;
        for term in terms {
            match term {
                None => has_missing = true,
                Some(term) => {
                    let candidate = (self.list_len(term), term);
                    rarest = Some(rarest.map_or(candidate, |rarest| rarest.min(candidate)));
                }
            }
        }
        if has_missing {
            return Some(RarestTerm::Missing);
        }
        rarest.map(|(_, term)| RarestTerm::Known(term))
    }

    /// All visible entries before a number, the newest first.
    pub(super) fn newest_first(&self, before: u32) -> impl Iterator<Item = u32> {
        let before = before.min(self.at);
        std::iter::successors(self.visible.last_before(before), |number| {
            self.visible.last_before(*number)
        })
    }

    /// The last visible entry before a number, at any distance in time.
    #[inline]
    pub(super) fn last_before(&self, number: u32) -> Option<u32> {
        self.visible.last_before(number.min(self.at))
    }

    /// The first visible entry from a number on, at any distance in time.
    #[inline]
    pub(super) fn first_from(&self, number: u32) -> Option<u32> {
        self.visible
            .first_from(number)
            .filter(|found| *found < self.at)
    }

    /// The visible entry directly before an entry, if it is close in time.
    #[inline]
    pub(super) fn neighbour_before(&self, number: u32) -> Option<u32> {
        self.last_before(number)
            .filter(|before| self.are_close(*before, number))
    }

    /// The visible entry directly after an entry, if it is close in time.
    #[inline]
    pub(super) fn neighbour_after(&self, number: u32) -> Option<u32> {
        self.first_from(number + 1)
            .filter(|after| self.are_close(number, *after))
    }

    /// Whether two entries are close enough in world time to be neighbours.
    #[inline]
    pub(super) fn are_close(&self, one: u32, other: u32) -> bool {
        let times = &self.index.entries.times;
        times[one as usize].abs_diff(times[other as usize]) <= REACH_MILLIS
    }

    /// These entries and their neighbours within `steps`, ascending.
    pub(super) fn with_neighbours(&self, entries: &[u32], steps: usize) -> Vec<u32> {
        let mut near = Vec::with_capacity(entries.len() * (2 * steps + 1));
        for entry in entries {
            near.push(*entry);
            for step in [Self::neighbour_before, Self::neighbour_after] {
                let mut next = step(self, *entry);
                for _ in 0..steps {
                    let Some(neighbour) = next else { break };
                    near.push(neighbour);
                    next = step(self, neighbour);
                }
            }
        }
        near.sort_unstable();
        near.dedup();
        near
    }
}

impl Drop for IndexView<'_> {
    fn drop(&mut self) {
        // The bitmap is reused by the next search of the same classes.
        self.index.pool.release(std::mem::take(&mut self.visible));
    }
}
