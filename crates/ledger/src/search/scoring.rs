//! What an entry scores by its own words, and with what its neighbours lend it.
//!
//! Scores are sums over the terms, the rarest first, of numbers that depend on the view's figures
//! and on the entry alone, so they are the same bits however and in whatever order entries are
//! looked at.

use super::rank::NEIGHBOUR;
use super::surroundings::View;
use super::terms::{Curve, Term};

/// What an entry scored.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Slot {
    /// The sum over the terms.
    pub(super) score: f32,
    /// Which of the query's terms it has, by bit.
    pub(super) terms: u32,
}

impl Slot {
    /// Adds a term's part.
    #[inline]
    pub(super) fn add(&mut self, score: f32, term: u32) {
        self.score += score;
        self.terms |= term;
    }
}

/// A query's terms in a view.
pub(super) struct Scoring<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) terms: &'a [Term],
    pub(super) curve: Curve,
}

impl<'a> Scoring<'a> {
    /// Of these terms in this view.
    pub(super) fn new(view: &'a View<'a>, terms: &'a [Term]) -> Self {
        Self {
            view,
            terms,
            curve: Curve::of(view),
        }
    }

    /// What one entry scores by itself.
    pub(super) fn slot(&self, entry: u32) -> Slot {
        let mut slot = Slot::default();
        let length = self.view.index.entries.length(entry);
        for term in self.terms {
            let count = self
                .view
                .list(term.number)
                .and_then(|list| list.find(entry));
            if let Some(count) = count {
                slot.add(self.curve.score(term, count, length), term.bit);
            }
        }
        slot
    }

    /// What these entries, which ascend and are visible, score by themselves.
    pub(super) fn slots(&self, entries: &[u32]) -> Vec<Slot> {
        let mut slots = vec![Slot::default(); entries.len()];
        for term in self.terms {
            let Some(list) = self.view.list(term.number) else {
                continue;
            };
            list.meet(entries, |place, posting| {
                let length = self.view.index.entries.length(posting.entry);
                slots[place].add(self.curve.score(term, posting.count, length), term.bit);
            });
        }
        slots
    }

    /// The score with what the neighbours lend.
    #[inline]
    pub(super) fn joint(&self, own: Slot, before: Option<Slot>, after: Option<Slot>) -> f32 {
        own.score + NEIGHBOUR * (self.lent(before, own.terms) + self.lent(after, own.terms))
    }

    /// The share of a neighbour's score that is due, by weight, to terms which are not among these.
    #[inline]
    pub(super) fn lent(&self, neighbour: Option<Slot>, terms: u32) -> f32 {
        let Some(slot) = neighbour else { return 0.0 };
        match slot.terms & !terms {
            0 => 0.0,
            all if all == slot.terms => slot.score,
            some => slot.score * (self.weight(some) / self.weight(slot.terms)),
        }
    }

    /// All terms, by bit.
    pub(super) fn all_terms(&self) -> u32 {
        self.terms.iter().fold(0, |all, term| all | term.bit)
    }

    /// The weight of all terms.
    pub(super) fn whole_weight(&self) -> f32 {
        self.terms.iter().map(|term| term.weight).sum()
    }

    /// The weight of all these terms.
    #[inline]
    pub(super) fn weight(&self, terms: u32) -> f32 {
        let (mut rest, mut sum) = (terms, 0.0);
        while let Some(term) = self.terms.get(rest.trailing_zeros() as usize) {
            sum += term.weight;
            rest &= rest - 1;
        }
        sum
    }
}

/// What some entries score by themselves.
pub(super) struct Known {
    entries: Vec<u32>,
    slots: Vec<Slot>,
}

impl Known {
    /// Of these entries, which ascend and are visible.
    pub(super) fn new(scoring: &Scoring<'_>, entries: Vec<u32>) -> Self {
        Self {
            slots: scoring.slots(&entries),
            entries,
        }
    }

    /// That of an entry; nothing if it is not among them.
    pub(super) fn slot(&self, entry: u32) -> Slot {
        self.entries
            .binary_search(&entry)
            .map_or_else(|_| Slot::default(), |place| self.slots[place])
    }
}
