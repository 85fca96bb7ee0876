//! The ranking: filter, score, neighbours, surroundings.
//!
//! Only the order among visible entries breaks ties.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::filter::{Filter, newest, with_phrases};
use super::index::Index;
use super::query::Wanted;
use super::scoring::{Known, Scoring};
use super::surroundings::{SESSION_STEPS, View};
use super::sweep::Sweep;
use super::terms::Term;
use super::{Hit, Query, Scope, Texts};

/// The part of what a neighbour has to lend that an entry gets.
pub const NEIGHBOUR: f32 = 0.3;

/// The part of a term's weight that an entry gets when it or its surroundings have the term.
pub const SESSION: f32 = 0.1;

/// So many of the best get the part for their surroundings; those behind them keep their places.
pub const RERANKED: usize = 10;

/// As [`RERANKED`], in a view of at most [`SMALL`] entries, where it costs little.
pub const RERANKED_SMALL: usize = 200;

/// A view of so many entries is small.
pub const SMALL: u64 = 20_000;

impl Index {
    /// Finds entries, the best first. An error is that of `texts`, which is asked when there are phrases.
    pub fn search<T: Texts + ?Sized>(
        &self,
        scope: &Scope<'_>,
        query: &Query<'_>,
        texts: &T,
    ) -> Result<Vec<Hit>, T::Error> {
        let view = View::new(self, scope);
        let Some(filter) = Filter::of(self, query) else { return Ok(Vec::new()) };
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
        let mut hits = match found {
            Some(found) => exactly(&scoring, &found),
            None => Sweep::new(&scoring, &filter, query.limit.max(reranked(&view))).run(),
        };
        rerank(&scoring, &mut hits);
        hits.truncate(query.limit);
        Ok(hits)
    }
}

/// How many of the best get the part for their surroundings.
fn reranked(view: &View<'_>) -> usize {
    if view.extent().count <= SMALL { RERANKED_SMALL } else { RERANKED }
}

/// Exactly these entries, in order.
fn exactly(scoring: &Scoring<'_>, entries: &[u32]) -> Vec<Hit> {
    let view = scoring.view;
    let known = Known::new(scoring, view.within(entries, 1));
    let near = |entry: Option<u32>| entry.map(|entry| known.slot(entry));
    let hit = |entry: &u32| {
        let (before, after) = (near(view.before(*entry)), near(view.after(*entry)));
        Hit { entry: *entry, score: scoring.joint(known.slot(*entry), before, after) }
    };
    let mut hits: Vec<Hit> = entries.iter().map(hit).collect();
    sort(&mut hits);
    hits
}

/// Adds the part for their surroundings to the first of these, and puts them in order again.
fn rerank(scoring: &Scoring<'_>, hits: &mut [Hit]) {
    let first = hits.len().min(reranked(scoring.view));
    let first = &mut hits[..first];
    let entries: Vec<u32> = first.iter().map(|hit| hit.entry).collect();
    let known = Known::new(scoring, scoring.view.within(&entries, SESSION_STEPS));
    for hit in &mut *first {
        hit.score += SESSION * scoring.weight(terms_around(scoring.view, &known, hit.entry));
    }
    sort(first);
}

/// Which of the query's terms an entry or its surroundings have.
fn terms_around(view: &View<'_>, known: &Known, entry: u32) -> u32 {
    let mut terms = known.slot(entry).terms;
    for step in [View::before, View::after] {
        let steps = std::iter::successors(step(view, entry), |at| step(view, *at)).take(SESSION_STEPS);
        terms = steps.fold(terms, |terms, entry| terms | known.slot(entry).terms);
    }
    terms
}

/// The best first; of equals the later one.
fn sort(hits: &mut [Hit]) {
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
        Self { count, hits: BinaryHeap::new() }
    }

    /// How many are wanted.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn wants(&self, hit: Hit) -> bool {
        self.hits.len() < self.count || self.hits.peek().is_some_and(|Reverse(worst)| key(hit) > *worst)
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
        self.hits.peek().filter(|_| full).map_or(0.0, |Reverse((score, _))| f32::from_bits(*score))
    }

    /// All of them, in order.
    pub(super) fn into_sorted(self) -> Vec<Hit> {
        let ascending = self.hits.into_sorted_vec().into_iter();
        ascending.map(|Reverse((score, entry))| Hit { entry, score: f32::from_bits(score) }).collect()
    }
}
