//! Scores an entry by its own words, and by what its neighbours lend to it.
//!
//! A score is a sum over the terms, the rarest first. Each addend depends on the view's totals and
//! on the entry alone. The order of the additions is fixed, so the bits of a score are the same
//! whichever code path computes it.

use super::index_view::IndexView;
use super::rank::NEIGHBOUR;
use super::terms::{LengthCurve, ScoredTerm};

/// The score of an entry from its own words.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct OwnScore {
    /// The sum over the terms.
    pub(super) score: f32,
    /// A mask of the query terms that the entry has.
    pub(super) terms: u32,
}

impl OwnScore {
    /// Adds the score of one term.
    #[inline]
    pub(super) fn add(&mut self, score: f32, term: u32) {
        self.score += score;
        self.terms |= term;
    }
}

/// The terms of a query with their weights in a view.
pub(super) struct Scoring<'a> {
    pub(super) view: &'a IndexView<'a>,
    pub(super) terms: &'a [ScoredTerm],
    pub(super) curve: LengthCurve,
}

impl<'a> Scoring<'a> {
    /// Prepares scoring for these terms in this view.
    pub(super) fn new(view: &'a IndexView<'a>, terms: &'a [ScoredTerm]) -> Self {
        Self {
            view,
            terms,
            curve: LengthCurve::for_view(view),
        }
    }

    /// Scores one entry.
    pub(super) fn score_entry(&self, entry: u32) -> OwnScore {
        let mut own = OwnScore::default();
        let length = self.view.index.entries.length(entry);
        for term in self.terms {
            let count = self
                .view
                .posting_list(term.number)
                .and_then(|list| list.count_in(entry));
            if let Some(count) = count {
                own.add(self.curve.posting_score(term, count, length), term.bit);
            }
        }
        own
    }

    /// Scores these visible entries, which must ascend.
    pub(super) fn score_entries(&self, entries: &[u32]) -> Vec<OwnScore> {
        let mut scores = vec![OwnScore::default(); entries.len()];
        // Term by term, in the order of `score_entry`: the bits of each sum are then the same.
        for term in self.terms {
            let Some(list) = self.view.posting_list(term.number) else {
                continue;
            };
            list.visit_matches(entries, |place, posting| {
                let length = self.view.index.entries.length(posting.entry);
                scores[place].add(
                    self.curve.posting_score(term, posting.count, length),
                    term.bit,
                );
            });
        }
        scores
    }

    /// The score of an entry together with what its two neighbours lend.
    #[inline]
    pub(super) fn score_with_neighbours(
        &self,
        own: OwnScore,
        before: Option<OwnScore>,
        after: Option<OwnScore>,
    ) -> f32 {
        own.score
            + NEIGHBOUR * (self.lent_score(before, own.terms) + self.lent_score(after, own.terms))
    }

    /// The part of a neighbour's score that comes from terms the entry itself lacks. A term that
    /// both have is lent nothing, so that long talk about one word does not outrank a rare match.
    #[inline]
    pub(super) fn lent_score(&self, neighbour: Option<OwnScore>, terms: u32) -> f32 {
        let Some(own) = neighbour else { return 0.0 };
        match own.terms & !terms {
            0 => 0.0,
            all if all == own.terms => own.score,
            // The neighbour's score is divided among its terms by weight. The exact parts are not
            // stored.
            some => own.score * (self.weight_of(some) / self.weight_of(own.terms)),
        }
    }

    /// The mask of all terms.
    pub(super) fn all_terms(&self) -> u32 {
        self.terms.iter().fold(0, |all, term| all | term.bit)
    }

    /// The weight of all terms together.
    pub(super) fn total_weight(&self) -> f32 {
        self.terms.iter().map(|term| term.weight).sum()
    }

    /// The weight of the terms in a mask.
    #[inline]
    pub(super) fn weight_of(&self, terms: u32) -> f32 {
        let (mut rest, mut sum) = (terms, 0.0);
        // Bit numbers are indexes into the terms. Of an empty mask it is 32, which is no term.
        while let Some(term) = self.terms.get(rest.trailing_zeros() as usize) {
            sum += term.weight;
            rest &= rest - 1;
        }
        sum
    }
}

/// The scores of a set of entries.
pub(super) struct ScoreTable {
    entries: Vec<u32>,
    scores: Vec<OwnScore>,
}

impl ScoreTable {
    /// Scores these visible entries, which must ascend.
    pub(super) fn new(scoring: &Scoring<'_>, entries: Vec<u32>) -> Self {
        Self {
            scores: scoring.score_entries(&entries),
            entries,
        }
    }

    /// The score of an entry, or zero if the table does not have it.
    pub(super) fn get(&self, entry: u32) -> OwnScore {
        self.entries
            .binary_search(&entry)
            .map_or_else(|_| OwnScore::default(), |place| self.scores[place])
    }
}
