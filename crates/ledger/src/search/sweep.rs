//! Finds the best entries in one pass over the ledger, one window of entries at a time.
//!
//! The pass skips entries that cannot win, as the WAND family of algorithms does. `floor` is a
//! score that enough entries are known to reach. A term's `score_max` bounds what one entry can
//! gain from the term: by its own posting, or from its neighbours if it lacks the term. Terms are
//! sorted from rare to frequent. A suffix of the list whose bounds add up to less than the floor
//! cannot lift an entry over the floor alone; the terms before that suffix are *essential*. A
//! winner has an essential term or is the neighbour of an entry that has one.
//!
//! Worked example: the query is `refund deadline monday`, with bounds 5.0, 2.0 and 0.8, and the
//! floor is 3.1. `deadline` and `monday` together add at most 2.8, so only `refund` is essential.
//! The pass jumps from posting to posting of `refund`, and looks up the other two terms only in the
//! windows where it stops. At a floor of 0.7 all three terms are essential.
//!
//! Invariant: hits and scores are the same, to the bit, as if every term were added for every
//! entry. Three rules keep it. Only entries with at least `1 / (1 + 2 * NEIGHBOUR)` of the floor
//! can win or make a neighbour win, so weaker ones are skipped. A neighbour in another window is
//! scored by itself. Entries at the edges of a window are offered even if weak, because
//! non-essential terms were not added beyond the edge.

use std::ops::Range;

use super::Hit;
use super::columns::LONG;
use super::filter::Filter;
use super::postings::Cursor;
use super::rank::{BestHits, NEIGHBOUR};
use super::scoring::{OwnScore, Scoring};
use super::terms::PRECOMPUTED_LENGTHS;

/// Entries per window; small enough that the scores of a window stay in the processor's cache.
/// Tests use small worlds and still need several windows.
const WINDOW_ENTRIES: u32 = if cfg!(test) { 1 << 7 } else { 1 << 12 };

/// How many entries with the rarest terms are scored before the pass, for an initial floor.
const FIRST_FLOOR_ENTRIES: usize = 256;

/// Factor that keeps a rounding error in a bound from excluding a winner. A sum of 32 terms in `f32`
/// is wrong by about 2e-6 of its value at most.
const ROUNDING_MARGIN: f32 = 1.0001;

/// A window is sparse when fewer than one in so many entries has an essential term. In a sparse
/// window, looking up the other terms entry by entry is cheaper than reading their lists.
const SPARSE_WINDOW_RATIO: u32 = 64;

/// An essential entry's neighbour may win, and that neighbour's neighbours lend to it.
const LENDING_STEPS: usize = 2;

/// The state of one pass over a view.
pub(super) struct Sweep<'a> {
    scoring: &'a Scoring<'a>,
    filter: &'a Filter,
    /// Indexed by term, like the next two fields.
    cursors: Vec<Cursor<'a>>,
    single_scores: Vec<[f32; PRECOMPUTED_LENGTHS]>,
    /// The sum of `score_max` of this term and all later ones.
    remaining_max: Vec<f32>,
    window: Range<u32>,
    scores: Box<[OwnScore; WINDOW_ENTRIES as usize]>,
    /// One bit per score that is not zero.
    touched: Box<[u64; WINDOW_ENTRIES as usize / 64]>,
    /// The bits of the terms that occur in the window.
    terms_in_window: u32,
    best: BestHits,
    floor: f32,
    /// Entries before this number were offered already.
    offered_until: u32,
}

/// The first and last visible entries of a window.
struct EdgeEntries {
    first: Option<u32>,
    last: Option<u32>,
}

/// The entries near the two edges of a window that have an essential term.
#[derive(Default)]
struct EssentialEdges {
    front: [Option<u32>; 2],
    back: [Option<u32>; 2],
}

impl<'a> Sweep<'a> {
    /// Prepares a pass for the `count` best entries that pass the filter.
    #[cfg_attr(
        not(test),
        expect(clippy::large_stack_arrays, reason = "moved to the heap at once")
    )]
    pub(super) fn new(scoring: &'a Scoring<'a>, filter: &'a Filter, count: usize) -> Self {
        // Every selected term occurs in the view, so each has a list, and all indexes agree.
        let lists = scoring
            .terms
            .iter()
            .filter_map(|term| scoring.view.posting_list(term.number));
        let mut remaining_max: Vec<f32> = scoring.terms.iter().map(|term| term.score_max).collect();
        for index in (1..remaining_max.len()).rev() {
            remaining_max[index - 1] += remaining_max[index];
        }
        Self {
            scoring,
            filter,
            cursors: lists.map(|list| list.cursor()).collect(),
            single_scores: scoring
                .terms
                .iter()
                .map(|term| scoring.curve.scores_of_one(term))
                .collect(),
            remaining_max,
            window: 0..0,
            scores: Box::new([OwnScore::default(); WINDOW_ENTRIES as usize]),
            touched: Box::new([0; WINDOW_ENTRIES as usize / 64]),
            terms_in_window: 0,
            best: BestHits::new(count),
            floor: 0.0,
            offered_until: 0,
        }
    }

    /// Runs the pass and returns the best entries, best first.
    pub(super) fn find_best(mut self) -> Vec<Hit> {
        let range = self.entry_range();
        self.floor = self.first_floor();
        let mut start = range.start;
        while let Some(next) = self.next_essential(start).filter(|next| *next < range.end) {
            // Windows start at multiples of their size, so that an entry's place in its window is
            // a remainder.
            let base = next / WINDOW_ENTRIES * WINDOW_ENTRIES;
            self.window = base.max(start)..base.saturating_add(WINDOW_ENTRIES).min(range.end);
            self.process_window();
            start = self.window.end;
        }
        self.best.into_sorted()
    }

    /// The entries that pass the filter, and one neighbour on each side: a neighbour lends its
    /// score even if the filter rejects it.
    fn entry_range(&self) -> Range<u32> {
        let (view, inner) = (
            self.scoring.view,
            self.filter.entry_range(self.scoring.view),
        );
        let start = view.last_before(inner.start).unwrap_or(inner.start);
        let end = view
            .first_from(inner.end)
            .map_or(inner.end, |after| after + 1);
        start..end
    }

    /// Returns a score that enough of the newest entries with the rarest terms reach, or 0.
    fn first_floor(&self) -> f32 {
        let (view, range) = (
            self.scoring.view,
            self.filter.entry_range(self.scoring.view),
        );
        let mut entries: Vec<u32> = Vec::with_capacity(FIRST_FLOOR_ENTRIES);
        for term in self.scoring.terms {
            let newest = view.newest_with(term.number, range.end);
            let inside = newest
                .take_while(|entry| *entry >= range.start)
                .take(FIRST_FLOOR_ENTRIES - entries.len());
            entries.extend(inside.filter(|entry| self.filter.passes(view, *entry)));
        }
        entries.sort_unstable();
        // An entry with several terms would be offered several times and raise the floor too high.
        entries.dedup();
        // Own scores only: a score with what neighbours lend is at least as high.
        let mut best = BestHits::new(self.best.count());
        for (entry, own) in entries.iter().zip(self.scoring.score_entries(&entries)) {
            best.offer(Hit::matching(*entry, own.score));
        }
        best.floor()
    }

    /// Counts the essential terms. They come first because the rarest terms come first.
    fn essential_count(&self) -> usize {
        self.remaining_max
            .iter()
            .position(|remaining| remaining * ROUNDING_MARGIN < self.floor)
            .unwrap_or(self.remaining_max.len())
    }

    /// Finds the first entry from `start` on that has an essential term, visible or not.
    fn next_essential(&mut self, start: u32) -> Option<u32> {
        let essential = self.essential_count();
        let mut nearest: Option<u32> = None;
        for cursor in &mut self.cursors[..essential] {
            cursor.seek(start);
            let entry = cursor.next.entry;
            nearest = Some(nearest.map_or(entry, |nearest| nearest.min(entry)));
        }
        nearest
    }

    /// Scores the entries of the window and offers those that may win.
    fn process_window(&mut self) {
        self.terms_in_window = 0;
        let essential = self.essential_count();
        for term in 0..essential {
            self.add_term(term);
        }
        let touched: u32 = self.touched.iter().map(|bits| bits.count_ones()).sum();
        if touched > 0 {
            if essential < self.cursors.len() {
                self.add_nonessential_terms(essential, touched);
            }
            self.offer_candidates(essential);
            self.clear_window();
        }
    }

    /// Adds one term for all entries of the window.
    fn add_term(&mut self, index: usize) {
        let scoring = self.scoring;
        let term = &scoring.terms[index];
        let single_scores = &self.single_scores[index];
        let visible_bits = scoring.view.visible_bits();
        let columns = &scoring.view.index.entries;
        let short_lengths = columns.short_lengths();
        let (scores, touched) = (&mut self.scores, &mut self.touched);
        let cursor = &mut self.cursors[index];
        cursor.seek(self.window.start);
        // Set even if only hidden entries have the term: that costs work, never a hit.
        if cursor.next.entry < self.window.end {
            self.terms_in_window |= term.bit;
        }
        cursor.visit_until(self.window.end, |posting| {
            let entry = posting.entry as usize;
            let short = short_lengths.get(entry).copied().unwrap_or(LONG);
            // Most postings are one occurrence in a short entry: a table lookup.
            let score = if posting.count == 1 && short != LONG {
                single_scores[usize::from(short)]
            } else {
                let length = columns.length(posting.entry);
                scoring.curve.posting_score(term, posting.count, length)
            };
            // Whether an entry is hidden cannot be predicted, so a mask is faster than a branch
            // here.
            let visible = visible_bits
                .get(entry / 64)
                .map_or(0, |bits| bits >> (entry % 64) & 1);
            let mask = if visible == 1 { u32::MAX } else { 0 };
            let place = entry % WINDOW_ENTRIES as usize;
            scores[place].add(f32::from_bits(score.to_bits() & mask), term.bit & mask);
            touched[place / 64] |= visible << (place % 64);
        });
    }

    /// Adds the non-essential terms where they can matter: near entries with an essential term.
    fn add_nonessential_terms(&mut self, essential: usize, touched: u32) {
        if touched * SPARSE_WINDOW_RATIO > self.window.end - self.window.start {
            for term in essential..self.cursors.len() {
                self.add_term(term);
            }
            return;
        }
        // Terms are added only to entries that can win, or that lend to such an entry.
        let near = self
            .scoring
            .view
            .with_neighbours(&self.touched_entries(), LENDING_STEPS);
        let inside: Vec<u32> = near
            .into_iter()
            .filter(|entry| self.window.contains(entry))
            .collect();
        for term in essential..self.cursors.len() {
            self.add_term_at(term, &inside);
        }
    }

    /// Adds one term for these entries of the window, which ascend.
    fn add_term_at(&mut self, index: usize, entries: &[u32]) {
        let scoring = self.scoring;
        let term = &scoring.terms[index];
        let cursor = &mut self.cursors[index];
        for entry in entries {
            cursor.seek(*entry);
            if cursor.next.entry != *entry {
                continue;
            }
            let length = scoring.view.index.entries.length(*entry);
            let score = scoring.curve.posting_score(term, cursor.next.count, length);
            let place = (entry % WINDOW_ENTRIES) as usize;
            self.scores[place].add(score, term.bit);
            self.touched[place / 64] |= 1 << (place % 64);
            self.terms_in_window |= term.bit;
        }
    }

    fn touched_entries(&self) -> Vec<u32> {
        let base = self.window.start / WINDOW_ENTRIES * WINDOW_ENTRIES;
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

    /// Offers the entries of the window that can win, and their neighbours.
    fn offer_candidates(&mut self, essential: usize) {
        let base = self.window.start / WINDOW_ENTRIES * WINDOW_ENTRIES;
        let edges = self.edge_entries();
        let essential_edges = self.essential_edge_entries(essential);
        // Offers must ascend (see `offer`), so the front edge comes first and the back edge last.
        for entry in essential_edges.front.into_iter().flatten() {
            self.offer_around(entry);
        }
        for word in 0..self.touched.len() {
            let mut rest = self.touched[word];
            while rest != 0 {
                let place = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let own = self.scores[place];
                // A winner, or one of its two neighbours, has at least this part of the floor.
                if own.score * ((1.0 + 2.0 * NEIGHBOUR) * ROUNDING_MARGIN) < self.floor {
                    continue;
                }
                let entry = base + u32::try_from(place).unwrap_or(u32::MAX);
                let is_edge = Some(entry) == edges.first || Some(entry) == edges.last;
                if is_edge || !self.is_isolated(own) {
                    self.offer_around(entry);
                } else if own.score >= self.floor {
                    self.offer(entry);
                }
            }
        }
        for entry in essential_edges.back.into_iter().flatten() {
            self.offer_around(entry);
        }
    }

    /// The first and last visible entries of the window. Their neighbours are in other windows.
    fn edge_entries(&self) -> EdgeEntries {
        let view = self.scoring.view;
        EdgeEntries {
            first: view.first_from(self.window.start),
            last: view.last_before(self.window.end),
        }
    }

    /// The two entries at each edge of the window, where they have an essential term. An entry
    /// beyond the edge may win through such a neighbour plus a non-essential term that was not
    /// added there, even when the neighbour itself is weak. Without non-essential terms nothing was
    /// left out.
    fn essential_edge_entries(&self, essential: usize) -> EssentialEdges {
        if essential == self.cursors.len() {
            return EssentialEdges::default();
        }
        let view = self.scoring.view;
        let mut essential_terms = 0;
        for term in &self.scoring.terms[..essential] {
            essential_terms |= term.bit;
        }
        let has_essential = |entry: &u32| {
            self.window.contains(entry) && self.own_score(*entry).terms & essential_terms != 0
        };
        let EdgeEntries { first, last } = self.edge_entries();
        let second = first.and_then(|first| view.first_from(first + 1));
        let last_but_one = last.and_then(|last| view.last_before(last));
        EssentialEdges {
            front: [first, second].map(|entry| entry.filter(has_essential)),
            back: [last_but_one, last].map(|entry| entry.filter(has_essential)),
        }
    }

    /// Whether the window has only the one term that this entry has too, so that no neighbour has
    /// anything to lend to it, and the entry is too weak to make a neighbour win.
    fn is_isolated(&self, own: OwnScore) -> bool {
        let lends = own.score * (2.0 * NEIGHBOUR * ROUNDING_MARGIN) >= self.floor;
        own.terms == self.terms_in_window && own.terms.is_power_of_two() && !lends
    }

    fn offer_around(&mut self, entry: u32) {
        let view = self.scoring.view;
        for entry in [
            view.neighbour_before(entry),
            Some(entry),
            view.neighbour_after(entry),
        ]
        .into_iter()
        .flatten()
        {
            self.offer(entry);
        }
    }

    fn offer(&mut self, entry: u32) {
        // Neighbours overlap, so an entry is offered several times; entries are offered in
        // ascending order, so one number suffices to skip the repetitions.
        if entry < self.offered_until {
            return;
        }
        self.offered_until = entry + 1;
        let view = self.scoring.view;
        // An entry without any term can only be context, which `rerank` adds after the pass.
        if self.own_score(entry).terms != 0 && self.filter.passes(view, entry) {
            let near = |entry: Option<u32>| entry.map(|entry| self.own_score(entry));
            let (before, after) = (
                near(view.neighbour_before(entry)),
                near(view.neighbour_after(entry)),
            );
            let score = self
                .scoring
                .score_with_neighbours(self.own_score(entry), before, after);
            self.best.offer(Hit::matching(entry, score));
            // A higher floor makes more terms non-essential for the windows to come.
            self.floor = self.floor.max(self.best.floor());
        }
    }

    fn own_score(&self, entry: u32) -> OwnScore {
        if self.window.contains(&entry) {
            self.scores[(entry % WINDOW_ENTRIES) as usize]
        } else {
            self.scoring.score_entry(entry)
        }
    }

    fn clear_window(&mut self) {
        self.terms_in_window = 0;
        for (bits, scores) in self.touched.iter_mut().zip(self.scores.chunks_mut(64)) {
            // Most blocks of 64 are untouched, and clearing all of them would cost more.
            if *bits != 0 {
                scores.fill(OwnScore::default());
                *bits = 0;
            }
        }
    }
}
