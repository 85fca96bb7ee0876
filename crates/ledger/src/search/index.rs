//! The search index of a world: per-entry figures, the terms, and a posting list per term.
//!
//! The index only grows, in ledger order, and can answer a search as of any earlier position. One
//! posting list per term holds the entries of all audience classes, sorted by entry number; each
//! entry's class is a column. Long lists also keep a count per class, so that the number of visible
//! postings is a sum over the view's classes. The index is derived: it can be deleted and built
//! again from the entries.

use std::collections::HashMap;

use super::bylines::Bylines;
use super::columns::{Columns, EntryFigures};
use super::lexicon::Lexicon;
use super::postings::{Posting, PostingList};
use super::stops::StopBlocks;
use super::visible::VisibleEntriesPool;
use super::words::{Role, for_each_word, for_each_word_and_stop};
use super::{ClassId, Document};

/// Shorter posting lists have no count per class: counting them one by one is fast enough.
pub(super) const TALLIED_POSTINGS_MIN: u32 = 256;

/// Term statistics and posting lists over all entries of one world.
#[derive(Debug, Clone)]
pub struct Index {
    pub(super) entries: Columns,
    pub(super) bylines: Bylines,
    pub(super) terms: Lexicon,
    /// Indexed by term number.
    pub(super) lists: Vec<PostingList>,
    /// Indexed by term number.
    pub(super) peaks: Vec<TermPeak>,
    /// Term number to the number of postings per class, for lists of at least
    /// [`TALLIED_POSTINGS_MIN`] postings.
    pub(super) class_tallies: HashMap<u32, Vec<u32>>,
    /// Where stop words occur, by blocks of entries.
    pub(super) stops: StopBlocks,
    /// Indexed by class number.
    pub(super) classes: Vec<ClassId>,
    pub(super) class_numbers: HashMap<ClassId, u32>,
    pub(super) pool: VisibleEntriesPool,
    /// Scratch space of [`Self::push`]; empty between calls.
    pub(super) term_buffer: Vec<u32>,
}

/// Upper bounds over all postings of a term, hidden entries included. They only save work: they
/// never change which entries are found or their scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TermPeak {
    /// The highest count of the term in one entry.
    pub(super) count: u8,
    /// The word count of the shortest entry with the term, at most 255.
    pub(super) length: u8,
}

impl TermPeak {
    pub(super) const NONE: Self = Self {
        count: 0,
        length: u8::MAX,
    };

    fn include(&mut self, count: u8, length: u32) {
        self.count = self.count.max(count);
        self.length = self.length.min(u8::try_from(length).unwrap_or(u8::MAX));
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Makes an index without entries.
    pub fn new() -> Self {
        Self {
            entries: Columns::default(),
            bylines: Bylines::new(),
            terms: Lexicon::new(),
            lists: Vec::new(),
            peaks: Vec::new(),
            class_tallies: HashMap::new(),
            stops: StopBlocks::default(),
            classes: Vec::new(),
            class_numbers: HashMap::new(),
            pool: VisibleEntriesPool::default(),
            term_buffer: Vec::new(),
        }
    }

    /// The number of entries. It is also the number of the next entry and the position of the
    /// ledger's end.
    pub fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Whether the index has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the next entry of the ledger and returns its number.
    ///
    /// The number of entries is limited by their numbers, 2^32; a ledger reaches other limits
    /// first.
    pub fn push(&mut self, document: &Document<'_>) -> u32 {
        let number = self.len();
        let class = self.class_number(document.class);
        let byline = self.bylines.intern(document.author, document.label);
        let length = self.collect_terms(document);
        self.entries.push(EntryFigures {
            time: document.time,
            class,
            byline,
            length,
        });
        self.write_postings(number, class, length);
        number
    }

    fn class_number(&mut self, id: ClassId) -> u32 {
        let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let number = *self.class_numbers.entry(id).or_insert(next);
        if number == next {
            self.classes.push(id);
        }
        number
    }

    /// Fills the term buffer with the terms of an entry. Returns the length of the entry: the words
    /// of its label and text. Dates and pieces of words are searchable but do not count as length.
    fn collect_terms(&mut self, document: &Document<'_>) -> u32 {
        let number = self.entries.len();
        let (terms, stops) = (&mut self.terms, &mut self.stops);
        let found = &mut self.term_buffer;
        let mut length = 0_u32;
        for part in [document.label, document.text] {
            for_each_word_and_stop(part, |word| match word.role {
                // Stop words get no postings; their blocks are enough to find a person's name.
                Role::Stop => stops.record(word.term, number),
                role => {
                    found.push(terms.intern(word.term));
                    length = length.saturating_add(u32::from(role == Role::Part));
                }
            });
        }
        // Dates are searchable but add no length: otherwise every entry would be longer by the same
        // amount.
        for_each_word(document.date, |word| found.push(terms.intern(word.term)));
        length
    }

    /// Turns the collected terms into postings.
    fn write_postings(&mut self, entry: u32, class: u32, length: u32) {
        let mut found = std::mem::take(&mut self.term_buffer);
        found.sort_unstable();
        // Sorted, equal terms stand together: one chunk is one posting.
        for same in found.chunk_by(|one, other| one == other) {
            // Counts saturate at 255: more occurrences hardly change the score.
            let (term, count) = (same[0], u8::try_from(same.len()).unwrap_or(u8::MAX));
            // A new term has the next number, so at most one list is added here.
            while self.lists.len() <= term as usize {
                self.lists.push(PostingList::new());
                self.peaks.push(TermPeak::NONE);
            }
            self.peaks[term as usize].include(count, length);
            self.lists[term as usize].push(Posting { entry, count });
            self.tally_last_posting(term, class);
        }
        found.clear();
        // Keeps the allocation for the next entry.
        self.term_buffer = found;
    }

    /// Counts the posting that was added last for its class.
    fn tally_last_posting(&mut self, term: u32, class: u32) {
        match self.lists[term as usize].len() {
            ..TALLIED_POSTINGS_MIN => {}
            TALLIED_POSTINGS_MIN => self.tally_all_postings(term),
            _ => increment_class(self.class_tallies.entry(term).or_default(), class),
        }
    }

    /// Counts all postings of a term by class, when the list becomes long enough.
    fn tally_all_postings(&mut self, term: u32) {
        let mut tally = Vec::new();
        for posting in self.lists[term as usize].iter() {
            increment_class(&mut tally, self.entries.classes[posting.entry as usize]);
        }
        self.class_tallies.insert(term, tally);
    }

    /// Estimates the memory that the index uses.
    pub fn heap_bytes(&self) -> usize {
        let class_tallies = self
            .class_tallies
            .values()
            .map(|tally| tally.capacity() * size_of::<u32>());
        self.entries.heap_bytes()
            + self.classes.capacity() * size_of::<ClassId>()
            + self.bylines.heap_bytes()
            + self.terms.heap_bytes()
            + self.lists.capacity() * size_of::<PostingList>()
            + self.peaks.capacity() * size_of::<TermPeak>()
            + self.class_tallies.capacity() * size_of::<(u32, Vec<u32>)>()
            + class_tallies.sum::<usize>()
            + self.stops.heap_bytes()
            + self
                .lists
                .iter()
                .map(PostingList::heap_bytes)
                .sum::<usize>()
    }
}

fn increment_class(tally: &mut Vec<u32>, class: u32) {
    if tally.len() <= class as usize {
        tally.resize(class as usize + 1, 0);
    }
    tally[class as usize] += 1;
}
