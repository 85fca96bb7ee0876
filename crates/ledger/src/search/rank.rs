//! The ranking: filter, score, neighbours, surroundings.
//!
//! Scores are sums in query order of numbers that depend on the view's figures and on the entry alone, so
//! they are the same bits whatever is hidden. Only the order among visible entries breaks ties.
//!
//! An entry that does best has a score of its own, or a neighbour's, of at least the best's part
//! `1 / (1 + 2 * NEIGHBOUR)`. So only those at or above that part of the worst that can still win are
//! looked at together with their neighbours; nothing that would win is left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::filter::{Filter, newest, with_phrases};
use super::gather::Gathering;
use super::index::Index;
use super::query::Wanted;
use super::scratch::Scratch;
use super::surroundings::{SESSION_STEPS, View};
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
        if wanted.terms.is_empty() {
            return newest(&view, &filter, &wanted.phrases, query.limit, texts);
        }
        let found = match &wanted.phrases[..] {
            [] => None,
            phrases => Some(with_phrases(&view, &filter, phrases, texts)?),
        };
        let terms = Term::all(&view, &wanted);
        let mut gathering = Gathering::new(&view, &terms, self.scratch.take(view.at));
        let mut hits = match found {
            Some(found) => exactly(&mut gathering, &found),
            None => best(&mut gathering, &filter, query.limit),
        };
        rerank(&mut gathering, &mut hits);
        hits.truncate(query.limit);
        self.scratch.give(gathering.scratch);
        Ok(hits)
    }
}

/// How many of the best get the part for their surroundings.
fn reranked(view: &View<'_>) -> usize {
    if view.count <= SMALL { RERANKED_SMALL } else { RERANKED }
}

/// Exactly these entries, in order.
fn exactly(gathering: &mut Gathering<'_>, entries: &[u32]) -> Vec<Hit> {
    gathering.add_for(entries);
    let scores = Scores::of(gathering);
    let mut hits: Vec<Hit> = entries.iter().map(|entry| scores.with_neighbours(*entry)).collect();
    sort(&mut hits);
    hits
}

/// The best that pass, in order; some more than `limit`.
fn best(gathering: &mut Gathering<'_>, filter: &Filter, limit: usize) -> Vec<Hit> {
    let (view, terms) = (gathering.view, gathering.terms);
    let count = limit.max(reranked(view));
    gathering.add_for_best(|scratch| Scores { view, terms, scratch }.floor(filter, count));
    Scores::of(gathering).best(filter, count)
}

/// Adds the part for their surroundings to the first of these, and puts them in order again.
fn rerank(gathering: &mut Gathering<'_>, hits: &mut [Hit]) {
    let first = hits.len().min(reranked(gathering.view));
    let first = &mut hits[..first];
    let entries: Vec<u32> = first.iter().map(|hit| hit.entry).collect();
    gathering.note_around(&entries, SESSION_STEPS);
    let scores = Scores::of(gathering);
    for hit in &mut *first {
        hit.score += SESSION * scores.weight(scores.view.terms_around(hit.entry, scores.scratch));
    }
    sort(first);
}

/// What the entries scored, each by itself.
struct Scores<'a> {
    view: &'a View<'a>,
    terms: &'a [Term],
    scratch: &'a Scratch,
}

impl<'a> Scores<'a> {
    fn of(gathering: &'a Gathering<'_>) -> Self {
        Self { view: gathering.view, terms: gathering.terms, scratch: &gathering.scratch }
    }

    fn with_neighbours(&self, entry: u32) -> Hit {
        self.joint(entry, self.view.before(entry), self.view.after(entry))
    }

    /// With what its neighbours lend it.
    #[inline]
    fn joint(&self, entry: u32, before: Option<u32>, after: Option<u32>) -> Hit {
        let slot = self.scratch.slot(entry);
        let lent = |neighbour| self.lent(neighbour, slot.terms);
        Hit { entry, score: slot.score + NEIGHBOUR * (lent(before) + lent(after)) }
    }

    /// The share of a neighbour's score that is due, by weight, to terms which are not among these.
    #[inline]
    fn lent(&self, neighbour: Option<u32>, terms: u32) -> f32 {
        let Some(neighbour) = neighbour else { return 0.0 };
        let slot = self.scratch.slot(neighbour);
        match slot.terms & !terms {
            0 => 0.0,
            all if all == slot.terms => slot.score,
            some => slot.score * (self.weight(some) / self.weight(slot.terms)),
        }
    }

    /// The weight of all these terms.
    #[inline]
    fn weight(&self, terms: u32) -> f32 {
        let (mut rest, mut sum) = (terms, 0.0);
        while let Some(term) = self.terms.get(rest.trailing_zeros() as usize) {
            sum += term.weight;
            rest &= rest - 1;
        }
        sum
    }

    /// The `count` best of those that pass, in order.
    fn best(&self, filter: &Filter, count: usize) -> Vec<Hit> {
        let floor = self.floor(filter, count);
        let is_strong = |entry: u32| self.is_strong(entry, floor);
        let is_weak_hit = |entry: &u32| !is_strong(*entry) && filter.passes(self.view, *entry);
        let mut best = Best::new(count);
        for entry in self.scratch.touched.iter().copied().filter(|entry| is_strong(*entry)) {
            let (before, after) = (self.view.before(entry), self.view.after(entry));
            if filter.passes(self.view, entry) {
                best.offer(self.joint(entry, before, after));
            }
            // A weak entry between two strong ones is the earlier one's to offer.
            if let Some(weak) = after.filter(is_weak_hit) {
                best.offer(self.joint(weak, Some(entry), self.view.after(weak)));
            }
            if let Some(weak) = before.filter(is_weak_hit) {
                let earlier = self.view.before(weak);
                if !earlier.is_some_and(is_strong) {
                    best.offer(self.joint(weak, earlier, Some(entry)));
                }
            }
        }
        best.into_sorted()
    }

    /// Whether an entry may be among the best, or make a neighbour be so.
    #[inline]
    fn is_strong(&self, entry: u32, floor: f32) -> bool {
        let slot = self.scratch.slot(entry);
        slot.terms != 0 && slot.score * (1.0 + 2.0 * NEIGHBOUR) * 1.0001 >= floor
    }

    /// A score that `count` entries that pass reach by themselves; 0 when there are fewer.
    fn floor(&self, filter: &Filter, count: usize) -> f32 {
        let mut best = Best::new(count);
        for entry in self.scratch.touched.iter().copied() {
            let hit = Hit { entry, score: self.scratch.slot(entry).score };
            if best.wants(hit) && filter.passes(self.view, entry) {
                best.offer(hit);
            }
        }
        best.floor()
    }
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
struct Best {
    count: usize,
    hits: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Best {
    fn new(count: usize) -> Self {
        Self { count, hits: BinaryHeap::new() }
    }

    #[inline]
    fn wants(&self, hit: Hit) -> bool {
        self.hits.len() < self.count || self.hits.peek().is_some_and(|Reverse(worst)| key(hit) > *worst)
    }

    #[inline]
    fn offer(&mut self, hit: Hit) {
        if self.wants(hit) {
            self.hits.push(Reverse(key(hit)));
            if self.hits.len() > self.count {
                self.hits.pop();
            }
        }
    }

    /// The worst score of `count` hits; 0 when there are fewer.
    fn floor(&self) -> f32 {
        let full = self.hits.len() >= self.count;
        self.hits.peek().filter(|_| full).map_or(0.0, |Reverse((score, _))| f32::from_bits(*score))
    }

    fn into_sorted(self) -> Vec<Hit> {
        let ascending = self.hits.into_sorted_vec().into_iter();
        ascending.map(|Reverse((score, entry))| Hit { entry, score: f32::from_bits(score) }).collect()
    }
}
