//! Runs a search: filter, find candidates by a cheap score, then score the best ones again.
//!
//! The order of equal scores depends on visible entries only: the later entry comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::filter::{Filter, entries_with_phrases, newest_matches};
use super::index::Index;
use super::index_view::IndexView;
use super::query::ParsedQuery;
use super::rerank::{RERANKED, rerank};
use super::scoring::{ScoreTable, Scoring};
use super::sweep::Sweep;
use super::terms::ScoredTerm;
use super::{Hit, Query, Scope, Texts};

/// The part of a neighbour's score that the first pass adds to an entry. [`super::PREVIOUS`] and
/// [`super::NEXT`] replace it when the best entries are scored again. Two neighbours lend 0.6 at
/// most, so of comparable entries the one that has the term itself wins.
pub const NEIGHBOUR: f32 = 0.3;

/// The hits that were scored again, in order, and the remaining ones, in the order of the first
/// pass.
pub(super) struct RankedHits {
    pub(super) first: Vec<Hit>,
    pub(super) rest: Vec<Hit>,
}

impl Index {
    /// Finds entries, the best first. Reads texts only when the query has phrases, and returns the
    /// errors of `texts`.
    pub fn search<T: Texts + ?Sized>(
        &self,
        scope: &Scope<'_>,
        query: &Query<'_>,
        texts: &T,
    ) -> Result<Vec<Hit>, T::Error> {
        let view = IndexView::new(self, scope);
        let Some(filter) = Filter::from_query(self, query) else {
            return Ok(Vec::new());
        };
        let parsed = ParsedQuery::parse(query.text);
        // Only stop words or punctuation. Without this check the next branch would return the newest
        // entries, as for a blank query.
        if parsed.is_unsearchable() {
            return Ok(Vec::new());
        }
        // Without terms there is nothing to rank by, so the newest entries that fit come first.
        if parsed.terms.is_empty() {
            return newest_matches(&view, &filter, &parsed.phrases, query.limit, texts);
        }
        let found = match &parsed.phrases[..] {
            [] => None,
            phrases => Some(entries_with_phrases(&view, &filter, phrases, texts)?),
        };
        let terms = ScoredTerm::select(&view, &parsed);
        let scoring = Scoring::new(&view, &terms);
        // At least as many as are scored again, so that a small limit gives the same first hits as
        // a large one.
        let count = query.limit.max(RERANKED);
        // Every entry with the phrases is a match already, so no entry can come in as context.
        let (hits, filter) = match found {
            Some(found) => (score_exact_entries(&scoring, &found), None),
            None => (
                Sweep::new(&scoring, &filter, count).find_best(),
                Some(&filter),
            ),
        };
        Ok(rerank(&scoring, &parsed, filter, hits).into_page(query.limit, query.context_max))
    }
}

/// Scores exactly these entries and sorts them.
fn score_exact_entries(scoring: &Scoring<'_>, entries: &[u32]) -> Vec<Hit> {
    let view = scoring.view;
    // An entry's score has a share of its neighbours' scores, so those are needed too.
    let known = ScoreTable::new(scoring, view.with_neighbours(entries, 1));
    let near = |entry: Option<u32>| entry.map(|entry| known.get(entry));
    let hit = |entry: &u32| {
        let (before, after) = (
            near(view.neighbour_before(*entry)),
            near(view.neighbour_after(*entry)),
        );
        Hit::matching(
            *entry,
            scoring.score_with_neighbours(known.get(*entry), before, after),
        )
    };
    let mut hits: Vec<Hit> = entries.iter().map(hit).collect();
    sort_hits(&mut hits);
    hits
}

/// Sorts the best hit first; of equal scores the later entry.
pub(super) fn sort_hits(hits: &mut [Hit]) {
    hits.sort_unstable_by_key(|hit| Reverse(rank_key(*hit)));
}

/// A sort key. Scores are never negative, so their bits sort like the scores.
#[inline]
fn rank_key(hit: Hit) -> (u32, u32) {
    (hit.score.to_bits(), hit.entry)
}

/// A bounded heap of the best hits so far.
pub(super) struct BestHits {
    count: usize,
    hits: BinaryHeap<Reverse<(u32, u32)>>,
}

impl BestHits {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            hits: BinaryHeap::new(),
        }
    }

    /// How many hits the heap keeps.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn would_keep(&self, hit: Hit) -> bool {
        self.hits.len() < self.count
            || self
                .hits
                .peek()
                .is_some_and(|Reverse(worst)| rank_key(hit) > *worst)
    }

    /// Adds a hit if the heap is not full or the hit beats the worst one.
    #[inline]
    pub(super) fn offer(&mut self, hit: Hit) {
        if self.would_keep(hit) {
            self.hits.push(Reverse(rank_key(hit)));
            // The heap's top is the worst hit, because keys are reversed.
            if self.hits.len() > self.count {
                self.hits.pop();
            }
        }
    }

    /// The worst score in a full heap; 0 while the heap is not full.
    pub(super) fn floor(&self) -> f32 {
        let full = self.hits.len() >= self.count;
        self.hits
            .peek()
            .filter(|_| full)
            .map_or(0.0, |Reverse((score, _))| f32::from_bits(*score))
    }

    /// All hits, the best first.
    pub(super) fn into_sorted(self) -> Vec<Hit> {
        let ascending = self.hits.into_sorted_vec().into_iter();
        ascending
            .map(|Reverse((score, entry))| Hit::matching(entry, f32::from_bits(score)))
            .collect()
    }
}
