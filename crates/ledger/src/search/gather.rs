//! Adding up what entries score by themselves.
//!
//! Terms are added the rarest first, for all entries. Once the terms that are left cannot lift an entry
//! that has none of those before into the best, they are only looked up where it matters: at the entries
//! that have one, and beside them. What an entry can get from the terms that are left, with all that its
//! neighbours lend, is at most the sum of their bounds, since a neighbour lends a term only to an entry
//! that has it not. So the best are the same, to the bit, as if everything had been added.

use super::index::ClassLists;
use super::postings::{Posting, Postings};
use super::scratch::Scratch;
use super::surroundings::View;
use super::terms::{Curve, Term};

/// Entries that are worked on at a time, at least, so that their slots stay near the processor.
const STRIDE_MIN: usize = 1 << 15;

/// Times that lists are taken up again at most, all lists together: each costs a look at far memory.
const VISITS_MAX: usize = 1 << 13;

/// Looking a term up costs about so many times as much as adding it.
const LOOK_UP_COST: u64 = 12;

/// Neighbours of neighbours lend to neighbours.
const LENDING_STEPS: usize = 2;

/// Scores in the making.
pub(super) struct Gathering<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) terms: &'a [Term],
    pub(super) scratch: Scratch,
    curve: Curve,
    /// The terms before this one were added for all entries.
    added: usize,
}

impl<'a> Gathering<'a> {
    /// Nothing is added yet; `scratch` is clear.
    pub(super) fn new(view: &'a View<'a>, terms: &'a [Term], scratch: Scratch) -> Self {
        Self { view, terms, scratch, curve: Curve::of(view), added: 0 }
    }

    /// Adds what it takes to know the best; `floor` is a score that enough entries reach already.
    pub(super) fn add_for_best(&mut self, floor: impl Fn(&Scratch) -> f32) {
        let terms = self.terms;
        for (index, term) in terms.iter().enumerate() {
            let left = &terms[index..];
            let work: u64 = left.iter().map(|term| term.frequency).sum();
            let is_cheaper = work > self.scratch.touched.len() as u64 * LOOK_UP_COST;
            let bound: f32 = left.iter().map(|term| term.bound).sum();
            if is_cheaper && bound * 1.0001 < floor(&self.scratch) {
                let near = self.view.within(&self.scratch.touched, LENDING_STEPS);
                return self.look_up(&near);
            }
            self.add(term);
            self.added = index + 1;
        }
    }

    /// Adds what it takes to know the scores of these entries.
    pub(super) fn add_for(&mut self, entries: &[u32]) {
        let near = self.view.within(entries, 1);
        self.look_up(&near);
    }

    /// Notes which terms these entries and those in their surroundings have, without scoring them.
    pub(super) fn note_around(&mut self, entries: &[u32], steps: usize) {
        let near = self.view.within(entries, steps);
        let terms = self.terms;
        for term in &terms[self.added..] {
            let scratch = &mut self.scratch;
            meet(self.view, term, &near, |posting| scratch.add(posting.entry, 0.0, term.bit));
        }
    }

    /// Adds a term for all entries.
    fn add(&mut self, term: &Term) {
        let lists = self.view.lists(term.number);
        let mut cursors: Vec<Cursor<'_>> = lists.map(|list| Cursor::new(list.iter())).collect();
        let once = self.curve.scores_of_one(term);
        let stride = STRIDE_MIN.max(self.view.at as usize * cursors.len() / VISITS_MAX);
        for end in (0..self.view.at).step_by(stride).skip(1).chain([self.view.at]) {
            for cursor in &mut cursors {
                while let Some(posting) = cursor.next_before(end) {
                    let length = self.view.index.entries.length(posting.entry);
                    let score = match once.get(length as usize) {
                        Some(score) if posting.count == 1 => *score,
                        _ => self.curve.score(term, posting.count, length),
                    };
                    self.scratch.add(posting.entry, score, term.bit);
                }
            }
        }
    }

    /// Adds the terms that are left, for these entries only.
    fn look_up(&mut self, near: &[(u32, u32)]) {
        let terms = self.terms;
        for term in &terms[self.added..] {
            meet(self.view, term, near, |posting| self.score(term, posting));
        }
    }

    #[inline]
    fn score(&mut self, term: &Term, posting: Posting) {
        let length = self.view.index.entries.length(posting.entry);
        let score = self.curve.score(term, posting.count, length);
        self.scratch.add(posting.entry, score, term.bit);
    }
}

/// Gives the postings of a term in these entries, which are sorted by class and number.
fn meet(view: &View<'_>, term: &Term, near: &[(u32, u32)], mut each: impl FnMut(Posting)) {
    let mut rest = near;
    let lists = view.index.lists.get(term.number as usize).into_iter().flat_map(ClassLists::as_pairs);
    for (class, list) in lists {
        rest = &rest[rest.partition_point(|(other, _)| *other < class)..];
        let (same, after) = rest.split_at(rest.partition_point(|(other, _)| *other == class));
        list.meet(same.iter().map(|(_, entry)| *entry), &mut each);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
}

/// A place in a list.
struct Cursor<'a> {
    rest: Postings<'a>,
    next: Option<Posting>,
}

impl<'a> Cursor<'a> {
    fn new(mut rest: Postings<'a>) -> Self {
        Self { next: rest.next(), rest }
    }

    #[inline]
    fn next_before(&mut self, end: u32) -> Option<Posting> {
        let posting = self.next.filter(|posting| posting.entry < end)?;
        self.next = self.rest.next();
        Some(posting)
    }
}
