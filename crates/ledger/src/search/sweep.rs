//! Finding the best entries: one pass over the ledger, a window of entries at a time.
//!
//! `floor` is a score that enough entries are known to reach. A term's bound is the most that an
//! entry can get by it, its own posting and what its neighbours lend together; a neighbour lends a
//! term only to an entry that has it not. Where the bounds of the most frequent terms together stay
//! below the floor, an entry must have one of the others, or stand beside one that has, to be among
//! the best. So the windows are chosen by those others, which are called essential, and the
//! frequent terms are added only there.
//!
//! An entry that does best has a score of its own, or a neighbour's, of at least the best's part `1
//! / (1 + 2 * NEIGHBOUR)`; such entries are strong, and only these are looked at together with
//! their neighbours; where a window has one term only, nobody lends it to anybody who has it, and
//! the neighbours of most are left alone, too. A neighbour in another window is looked up by
//! itself, and entries at the edges of a window count as strong where frequent terms were left out
//! beyond them. Nothing that would win is left out, and scores are the same, to the bit, as if
//! everything had been added for all entries.

use std::ops::Range;

use super::Hit;
use super::columns::LONG;
use super::filter::Filter;
use super::postings::Cursor;
use super::rank::{Best, NEIGHBOUR};
use super::scoring::{Scoring, Slot};
use super::terms::LENGTHS;

/// Entries that are worked on at a time, so that their slots stay near the processor. Tests have
/// small worlds, and edges of windows in them all the same.
const WINDOW: u32 = if cfg!(test) { 1 << 7 } else { 1 << 12 };

/// So many entries with the rarest terms are looked at first, for a floor to begin with.
const FIRST_LOOKS: usize = 256;

/// Bounds are compared with some room for rounding.
const ROOM: f32 = 1.0001;

/// In a window with fewer entries of the essential terms than one in so many, the others are looked
/// up.
const SPARSE: u32 = 64;

/// Neighbours of neighbours lend to neighbours.
const LENDING_STEPS: usize = 2;

/// A pass over a view.
pub(super) struct Sweep<'a> {
    scoring: &'a Scoring<'a>,
    filter: &'a Filter,
    /// By term, as the following two.
    cursors: Vec<Cursor<'a>>,
    once: Vec<[f32; LENGTHS]>,
    /// What this term and those behind it add at most.
    left: Vec<f32>,
    window: Range<u32>,
    slots: Box<[Slot; WINDOW as usize]>,
    /// Which slots are not zero, a bit each.
    touched: Box<[u64; WINDOW as usize / 64]>,
    /// The terms that were added in the window.
    present: u32,
    best: Best,
    floor: f32,
    /// Entries before this one need not be offered any more.
    offered: u32,
}

impl<'a> Sweep<'a> {
    /// For the `count` best of those that pass.
    #[cfg_attr(
        not(test),
        expect(clippy::large_stack_arrays, reason = "moved to the heap at once")
    )]
    pub(super) fn new(scoring: &'a Scoring<'a>, filter: &'a Filter, count: usize) -> Self {
        let lists = scoring
            .terms
            .iter()
            .filter_map(|term| scoring.view.list(term.number));
        let mut left: Vec<f32> = scoring.terms.iter().map(|term| term.bound).collect();
        for index in (1..left.len()).rev() {
            left[index - 1] += left[index];
        }
        Self {
            scoring,
            filter,
            cursors: lists.map(|list| list.cursor()).collect(),
            once: scoring
                .terms
                .iter()
                .map(|term| scoring.curve.scores_of_one(term))
                .collect(),
            left,
            window: 0..0,
            slots: Box::new([Slot::default(); WINDOW as usize]),
            touched: Box::new([0; WINDOW as usize / 64]),
            present: 0,
            best: Best::new(count),
            floor: 0.0,
            offered: 0,
        }
    }

    /// The best, in order.
    pub(super) fn run(mut self) -> Vec<Hit> {
        let range = self.range();
        self.floor = self.first_floor();
        let mut start = range.start;
        while let Some(next) = self.next_essential(start).filter(|next| *next < range.end) {
            let base = next / WINDOW * WINDOW;
            self.window = base.max(start)..base.saturating_add(WINDOW).min(range.end);
            self.work();
            start = self.window.end;
        }
        self.best.into_sorted()
    }

    /// All that passes, and what stands beside it.
    fn range(&self) -> Range<u32> {
        let (view, inner) = (self.scoring.view, self.filter.range(self.scoring.view));
        let start = view.last_before(inner.start).unwrap_or(inner.start);
        let end = view
            .first_from(inner.end)
            .map_or(inner.end, |after| after + 1);
        start..end
    }

    /// A score that enough of the newest entries with the rarest terms reach; 0 when there are
    /// fewer.
    fn first_floor(&self) -> f32 {
        let (view, range) = (self.scoring.view, self.filter.range(self.scoring.view));
        let mut entries: Vec<u32> = Vec::with_capacity(FIRST_LOOKS);
        for term in self.scoring.terms {
            let newest = view.newest_with(term.number, range.end);
            let inside = newest
                .take_while(|entry| *entry >= range.start)
                .take(FIRST_LOOKS - entries.len());
            entries.extend(inside.filter(|entry| self.filter.passes(view, *entry)));
        }
        entries.sort_unstable();
        entries.dedup();
        let mut best = Best::new(self.best.count());
        for (entry, slot) in entries.iter().zip(self.scoring.slots(&entries)) {
            best.offer(Hit::matching(*entry, slot.score));
        }
        best.floor()
    }

    /// How many of the terms are essential.
    fn essential(&self) -> usize {
        self.left
            .iter()
            .position(|left| left * ROOM < self.floor)
            .unwrap_or(self.left.len())
    }

    /// The first entry from here on with an essential term, visible or not.
    fn next_essential(&mut self, start: u32) -> Option<u32> {
        let essential = self.essential();
        let cursors = self.cursors[..essential].iter_mut();
        cursors
            .map(|cursor| {
                cursor.seek(start);
                cursor.next.entry
            })
            .min()
    }

    /// Adds up and looks through the window.
    fn work(&mut self) {
        self.present = 0;
        let essential = self.essential();
        (0..essential).for_each(|term| self.add(term));
        let touched: u32 = self.touched.iter().map(|bits| bits.count_ones()).sum();
        if touched > 0 {
            if essential < self.cursors.len() {
                self.add_frequent(essential, touched);
            }
            self.look_through(essential);
            self.clear();
        }
    }

    /// Adds a term for all entries of the window.
    fn add(&mut self, term: usize) {
        let (scoring, what, once) = (self.scoring, &self.scoring.terms[term], &self.once[term]);
        let (slots, touched) = (&mut self.slots, &mut self.touched);
        let (shown, lengths) = (
            scoring.view.shown_bits(),
            scoring.view.index.entries.short_lengths(),
        );
        let cursor = &mut self.cursors[term];
        cursor.seek(self.window.start);
        if cursor.next.entry < self.window.end {
            self.present |= what.bit;
        }
        cursor.pass(self.window.end, |posting| {
            let entry = posting.entry as usize;
            let short = lengths.get(entry).copied().unwrap_or(LONG);
            let score = if posting.count == 1 && short != LONG {
                once[usize::from(short)]
            } else {
                scoring.curve.score(
                    what,
                    posting.count,
                    scoring.view.index.entries.length(posting.entry),
                )
            };
            // Which entries are hidden cannot be foreseen, so nothing branches on it.
            let is_shown = shown
                .get(entry / 64)
                .map_or(0, |bits| bits >> (entry % 64) & 1);
            let all = if is_shown == 1 { u32::MAX } else { 0 };
            let place = entry % WINDOW as usize;
            slots[place].add(f32::from_bits(score.to_bits() & all), what.bit & all);
            touched[place / 64] |= is_shown << (place % 64);
        });
    }

    /// Adds the terms that are not essential, where it matters.
    fn add_frequent(&mut self, essential: usize, touched: u32) {
        if touched * SPARSE > self.window.end - self.window.start {
            (essential..self.cursors.len()).for_each(|term| self.add(term));
            return;
        }
        let near = self
            .scoring
            .view
            .within(&self.touched_entries(), LENDING_STEPS);
        let inside: Vec<u32> = near
            .into_iter()
            .filter(|entry| self.window.contains(entry))
            .collect();
        for term in essential..self.cursors.len() {
            self.add_at(term, &inside);
        }
    }

    /// Adds a term for these entries of the window, which ascend.
    fn add_at(&mut self, term: usize, entries: &[u32]) {
        let (scoring, what) = (self.scoring, &self.scoring.terms[term]);
        let cursor = &mut self.cursors[term];
        for entry in entries {
            cursor.seek(*entry);
            if cursor.next.entry == *entry {
                let length = scoring.view.index.entries.length(*entry);
                let place = (entry % WINDOW) as usize;
                self.slots[place].add(
                    scoring.curve.score(what, cursor.next.count, length),
                    what.bit,
                );
                self.touched[place / 64] |= 1 << (place % 64);
                self.present |= what.bit;
            }
        }
    }

    fn touched_entries(&self) -> Vec<u32> {
        let base = self.window.start / WINDOW * WINDOW;
        let mut entries = Vec::new();
        for (word, bits) in (0..).zip(self.touched.iter()) {
            let mut rest = *bits;
            while rest != 0 {
                entries.push(base + word * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        entries
    }

    /// Offers the strong entries of the window and those beside them.
    fn look_through(&mut self, essential: usize) {
        let base = self.window.start / WINDOW * WINDOW;
        let (first, last) = self.edges();
        let (front, back) = self.beyond(essential);
        front
            .into_iter()
            .flatten()
            .for_each(|entry| self.offer_around(entry));
        for word in 0..self.touched.len() {
            let mut rest = self.touched[word];
            while rest != 0 {
                let place = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let slot = self.slots[place];
                if slot.score * ((1.0 + 2.0 * NEIGHBOUR) * ROOM) < self.floor {
                    continue;
                }
                let entry = base + u32::try_from(place).unwrap_or(u32::MAX);
                if !self.is_alone(slot) || Some(entry) == first || Some(entry) == last {
                    self.offer_around(entry);
                } else if slot.score >= self.floor {
                    self.offer(entry);
                }
            }
        }
        back.into_iter()
            .flatten()
            .for_each(|entry| self.offer_around(entry));
    }

    /// The first and the last entry of the window: what stands beside them is in another one.
    fn edges(&self) -> (Option<u32>, Option<u32>) {
        let view = self.scoring.view;
        (
            view.first_from(self.window.start),
            view.last_before(self.window.end),
        )
    }

    /// The entries at the edges of the window with an essential term, if there are others: those
    /// were left out beyond the edges, where they may make an entry win beside one that is not
    /// strong.
    fn beyond(&self, essential: usize) -> ([Option<u32>; 2], [Option<u32>; 2]) {
        if essential == self.cursors.len() {
            return ([None; 2], [None; 2]);
        }
        let view = self.scoring.view;
        let mask = self.scoring.terms[..essential]
            .iter()
            .fold(0, |mask, term| mask | term.bit);
        let counts =
            |entry: &u32| self.window.contains(entry) && self.slot(*entry).terms & mask != 0;
        let (first, last) = self.edges();
        let second = first.and_then(|first| view.first_from(first + 1));
        let last_but_one = last.and_then(|last| view.last_before(last));
        (
            [first, second].map(|entry| entry.filter(counts)),
            [last_but_one, last].map(|entry| entry.filter(counts)),
        )
    }

    /// Whether nobody in the window has anything to lend to the entry of this slot, or it enough to
    /// lend to make another one win.
    fn is_alone(&self, slot: Slot) -> bool {
        let lends = slot.score * (2.0 * NEIGHBOUR * ROOM) >= self.floor;
        slot.terms == self.present && slot.terms.is_power_of_two() && !lends
    }

    fn offer_around(&mut self, entry: u32) {
        let view = self.scoring.view;
        for entry in [view.before(entry), Some(entry), view.after(entry)]
            .into_iter()
            .flatten()
        {
            self.offer(entry);
        }
    }

    fn offer(&mut self, entry: u32) {
        if entry < self.offered {
            return;
        }
        self.offered = entry + 1;
        let view = self.scoring.view;
        // What has no term of its own comes in as context of what has, after the sweep.
        if self.slot(entry).terms != 0 && self.filter.passes(view, entry) {
            let near = |entry: Option<u32>| entry.map(|entry| self.slot(entry));
            let (before, after) = (near(view.before(entry)), near(view.after(entry)));
            let score = self.scoring.joint(self.slot(entry), before, after);
            self.best.offer(Hit::matching(entry, score));
            self.floor = self.floor.max(self.best.floor());
        }
    }

    fn slot(&self, entry: u32) -> Slot {
        if self.window.contains(&entry) {
            self.slots[(entry % WINDOW) as usize]
        } else {
            self.scoring.slot(entry)
        }
    }

    fn clear(&mut self) {
        self.present = 0;
        for (bits, slots) in self.touched.iter_mut().zip(self.slots.chunks_mut(64)) {
            if *bits != 0 {
                slots.fill(Slot::default());
                *bits = 0;
            }
        }
    }
}
