//! The ranking: filter, find the best by a cheap score, look at those again.
//!
//! Only the order among visible entries breaks ties.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::filter::{Filter, newest, with_phrases};
use super::index::Index;
use super::query::Wanted;
use super::rerank::{RERANKED, rerank};
use super::scoring::{Known, Scoring};
use super::surroundings::View;
use super::sweep::Sweep;
use super::terms::Term;
use super::{Hit, Query, Scope, Texts};

/// The part of what a neighbour has to lend that the sweep gives an entry, to find what is worth a
/// second look. The second look has its own parts.
pub const NEIGHBOUR: f32 = 0.3;

/// What was found: what was looked at again, in order, and the rest, in its own order.
pub(super) struct Ranked {
    pub(super) first: Vec<Hit>,
    pub(super) rest: Vec<Hit>,
}

impl Index {
    /// Finds entries, the best first. An error is that of `texts`, which is asked when there are
    /// phrases.
    pub fn search<T: Texts + ?Sized>(
        &self,
        scope: &Scope<'_>,
        query: &Query<'_>,
        texts: &T,
    ) -> Result<Vec<Hit>, T::Error> {
        let view = View::new(self, scope);
        let Some(filter) = Filter::of(self, query) else {
            return Ok(Vec::new());
        };
        let wanted = Wanted::of(query.text);
        if wanted.is_out_of_reach() {
            return Ok(Vec::new());
        }
        if wanted.terms.is_empty() {
            return newest(&view, &filter, &wanted.phrases, query.limit, texts);
        }
        let found = match &wanted.phrases[..] {
            [] => None,
            phrases => Some(with_phrases(&view, &filter, phrases, texts)?),
        };
        let terms = Term::all(&view, &wanted);
        let scoring = Scoring::new(&view, &terms);
        let count = query.limit.max(RERANKED);
        // Whatever has the phrases is a match, so nothing is context.
        let (hits, filter) = match found {
            Some(found) => (exactly(&scoring, &found), None),
            None => (Sweep::new(&scoring, &filter, count).run(), Some(&filter)),
        };
        Ok(rerank(&scoring, &wanted, filter, hits).take(query.limit, query.context_max))
    }
}

/// Exactly these entries, in order.
fn exactly(scoring: &Scoring<'_>, entries: &[u32]) -> Vec<Hit> {
    let view = scoring.view;
    let known = Known::new(scoring, view.within(entries, 1));
    let near = |entry: Option<u32>| entry.map(|entry| known.slot(entry));
    let hit = |entry: &u32| {
        let (before, after) = (near(view.before(*entry)), near(view.after(*entry)));
        Hit::matching(*entry, scoring.joint(known.slot(*entry), before, after))
    };
    let mut hits: Vec<Hit> = entries.iter().map(hit).collect();
    sort(&mut hits);
    hits
}

/// The best first; of equals the later one.
pub(super) fn sort(hits: &mut [Hit]) {
    hits.sort_unstable_by_key(|hit| Reverse(key(*hit)));
}

/// Scores are not negative, so their bits are in their order.
#[inline]
fn key(hit: Hit) -> (u32, u32) {
    (hit.score.to_bits(), hit.entry)
}

/// The best hits so far.
pub(super) struct Best {
    count: usize,
    hits: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Best {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            hits: BinaryHeap::new(),
        }
    }

    /// How many are wanted.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn wants(&self, hit: Hit) -> bool {
        self.hits.len() < self.count
            || self
                .hits
                .peek()
                .is_some_and(|Reverse(worst)| key(hit) > *worst)
    }

    /// Takes a hit that is better than the worst of enough.
    #[inline]
    pub(super) fn offer(&mut self, hit: Hit) {
        if self.wants(hit) {
            self.hits.push(Reverse(key(hit)));
            if self.hits.len() > self.count {
                self.hits.pop();
            }
        }
    }

    /// The worst score of `count` hits; 0 when there are fewer.
    pub(super) fn floor(&self) -> f32 {
        let full = self.hits.len() >= self.count;
        self.hits
            .peek()
            .filter(|_| full)
            .map_or(0.0, |Reverse((score, _))| f32::from_bits(*score))
    }

    /// All of them, in order.
    pub(super) fn into_sorted(self) -> Vec<Hit> {
        let ascending = self.hits.into_sorted_vec().into_iter();
        ascending
            .map(|Reverse((score, entry))| Hit::matching(entry, f32::from_bits(score)))
            .collect()
    }
}
