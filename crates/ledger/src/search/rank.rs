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

use super::index::Index;
use super::query::{Wanted, Wish, certain_terms};
use super::scratch::Scratch;
use super::surroundings::View;
use super::{Hit, Query, Scope, Texts, Window};

/// How soon more of the same word stops to matter.
const K1: f32 = 0.9;

/// How much the length of an entry matters.
const B: f32 = 0.4;

/// The part of a neighbour's score that an entry gets.
pub const NEIGHBOUR: f32 = 0.3;

/// The part of a term's weight that an entry gets when it or its surroundings have the term.
pub const SESSION: f32 = 0.1;

/// So many of the best get the part for their surroundings; those behind them keep their places.
pub const RERANKED: usize = 40;

/// Of a longer query the rarest terms count.
const TERMS_MAX: usize = u32::BITS as usize;

/// Lengths up to this have their part of the score worked out beforehand.
const LENGTHS: usize = 256;

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
        let terms = Term::all(&view, &wanted);
        if !wanted.phrases.is_empty() {
            let found = with_phrases(&view, &filter, &wanted.phrases, texts)?;
            return Ok(self.scored(&view, &terms, query.limit, |scores| scores.exactly(&found)));
        }
        Ok(self.scored(&view, &terms, query.limit, |scores| scores.best(&filter, query.limit.max(RERANKED))))
    }

    /// Scores all entries, lets `choose` take some, and ranks those.
    fn scored(
        &self,
        view: &View<'_>,
        terms: &[Term],
        limit: usize,
        choose: impl FnOnce(&Scores<'_>) -> Vec<Hit>,
    ) -> Vec<Hit> {
        let mut scratch = self.scratch.take(view.at);
        add_all(view, terms, &mut scratch);
        let scores = Scores { view, terms, scratch: &scratch };
        let mut hits = choose(&scores);
        scores.rerank(&mut hits);
        hits.truncate(limit);
        self.scratch.give(scratch);
        hits
    }
}

/// Which entries may be hits, of those that are visible.
struct Filter {
    author: Option<u32>,
    window: Window,
}

impl Filter {
    /// None when nothing can pass: nobody of that name has written.
    fn of(index: &Index, query: &Query<'_>) -> Option<Self> {
        let author = match query.author {
            Some(author) => Some(index.authors.find(author)?),
            None => None,
        };
        Some(Self { author, window: query.window })
    }

    #[inline]
    fn passes(&self, view: &View<'_>, number: u32) -> bool {
        let entries = &view.index.entries;
        self.author.is_none_or(|author| author == entries.authors[number as usize])
            && self.window.holds(entries.times[number as usize])
    }
}

fn has_phrases<T: Texts + ?Sized>(number: u32, phrases: &[&str], texts: &T) -> Result<bool, T::Error> {
    if phrases.is_empty() {
        return Ok(true);
    }
    let text = texts.text(number)?;
    Ok(phrases.iter().all(|phrase| text.contains(phrase)))
}

/// The newest entries that pass; nothing is ranked.
fn newest<T: Texts + ?Sized>(
    view: &View<'_>,
    filter: &Filter,
    phrases: &[&str],
    limit: usize,
    texts: &T,
) -> Result<Vec<Hit>, T::Error> {
    let mut hits = Vec::new();
    for entry in view.newest_first().filter(|entry| filter.passes(view, *entry)) {
        if hits.len() >= limit {
            break;
        }
        if has_phrases(entry, phrases, texts)? {
            hits.push(Hit { entry, score: 0.0 });
        }
    }
    Ok(hits)
}

/// All entries that pass and have the phrases.
fn with_phrases<T: Texts + ?Sized>(
    view: &View<'_>,
    filter: &Filter,
    phrases: &[&str],
    texts: &T,
) -> Result<Vec<u32>, T::Error> {
    let mut found = Vec::new();
    let mut check = |entry: u32| {
        if filter.passes(view, entry) && has_phrases(entry, phrases, texts)? {
            found.push(entry);
        }
        Ok(())
    };
    match rarest_certain(view, phrases) {
        None => view.newest_first().try_for_each(&mut check)?,
        Some(None) => {}
        Some(Some(term)) => {
            let postings = view.lists(term).flat_map(super::postings::List::iter);
            postings
                .map(|posting| posting.entry)
                .filter(|entry| *entry < view.at)
                .try_for_each(&mut check)?;
        }
    }
    Ok(found)
}

/// Of the terms that every entry with these phrases has, the one with the fewest entries; `Some(None)`
/// when there is one that no entry has, `None` when nothing is certain.
fn rarest_certain(view: &View<'_>, phrases: &[&str]) -> Option<Option<u32>> {
    let certain = phrases.iter().flat_map(|phrase| certain_terms(phrase));
    let known = certain.map(|term| view.index.terms.find(&term));
    known.map(|term| (term.map_or(0, |term| view.frequency(term)), term)).min().map(|(_, term)| term)
}

/// A term of the query that occurs in the view.
struct Term {
    number: u32,
    /// Its own bit.
    bit: u32,
    weight: f32,
}

impl Term {
    /// Those that occur, in query order; of too many the rarest. The parts of an identifier that occurs
    /// as a whole say nothing more, and are left out.
    fn all(view: &View<'_>, wanted: &Wanted<'_>) -> Vec<Self> {
        let look_up = |wish: &Wish| {
            let number = view.index.terms.find(&wish.term)?;
            Some((view.frequency(number), number)).filter(|(frequency, _)| *frequency > 0)
        };
        let known: Vec<Option<(u64, u32)>> = wanted.terms.iter().map(look_up).collect();
        let mut found: Vec<(u64, usize, u32)> = Vec::new();
        for (place, (wish, known_as)) in wanted.terms.iter().zip(&known).enumerate() {
            match known_as {
                Some((frequency, number)) if !wish.is_said_by(|whole| known[whole].is_some()) => {
                    found.push((*frequency, place, *number));
                }
                _ => {}
            }
        }
        if found.len() > TERMS_MAX {
            found.sort_unstable();
            found.truncate(TERMS_MAX);
            found.sort_unstable_by_key(|(_, place, _)| *place);
        }
        let numbered = found.into_iter().enumerate();
        numbered
            .map(|(bit, (frequency, _, number))| Self {
                number,
                bit: 1 << bit,
                weight: weight(view.count, frequency),
            })
            .collect()
    }
}

/// How much a term tells that occurs in `frequency` of `count` entries.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a ratio of counts")]
fn weight(count: u64, frequency: u64) -> f32 {
    let (count, frequency) = (count as f64, frequency as f64);
    (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln() as f32
}

/// What a posting adds, by the entry's length.
struct Curve {
    average: f32,
    /// For the lengths up to [`LENGTHS`].
    damping: Vec<f32>,
}

impl Curve {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a mean length")]
    fn of(view: &View<'_>) -> Self {
        let average = (view.length as f64 / view.count.max(1) as f64).max(f64::MIN_POSITIVE) as f32;
        let damping = (0..LENGTHS as u32).map(|length| damping(length, average)).collect();
        Self { average, damping }
    }

    #[inline]
    fn damping(&self, length: u32) -> f32 {
        let ready = self.damping.get(length as usize).copied();
        ready.unwrap_or_else(|| damping(length, self.average))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a length in words")]
fn damping(length: u32, average: f32) -> f32 {
    K1 * (1.0 - B + B * (length as f32 / average))
}

/// Adds up what every entry scores by itself.
fn add_all(view: &View<'_>, terms: &[Term], scratch: &mut Scratch) {
    let curve = Curve::of(view);
    for term in terms {
        let top = term.weight * (K1 + 1.0);
        for list in view.lists(term.number) {
            for posting in list.iter().take_while(|posting| posting.entry < view.at) {
                let count = f32::from(posting.count);
                let score = top * (count / (count + curve.damping(view.index.entries.length(posting.entry))));
                scratch.add(posting.entry, score, term.bit);
            }
        }
    }
}

/// What the entries scored, each by itself.
struct Scores<'a> {
    view: &'a View<'a>,
    terms: &'a [Term],
    scratch: &'a Scratch,
}

impl Scores<'_> {
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

    /// Exactly these entries, in order.
    fn exactly(&self, entries: &[u32]) -> Vec<Hit> {
        let joint = |entry: &u32| self.joint(*entry, self.view.before(*entry), self.view.after(*entry));
        let mut hits: Vec<Hit> = entries.iter().map(joint).collect();
        sort(&mut hits);
        hits
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

    /// Adds the part for their surroundings to the first of these, and puts them in order again.
    fn rerank(&self, hits: &mut [Hit]) {
        let first = hits.len().min(RERANKED);
        for hit in &mut hits[..first] {
            hit.score += SESSION * self.weight(self.view.terms_around(hit.entry, self.scratch));
        }
        sort(&mut hits[..first]);
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
