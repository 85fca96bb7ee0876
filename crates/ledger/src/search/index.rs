//! The index of a world: its entries' figures, its terms, and the postings of each term.
//!
//! It only grows, in ledger order, and holds everything that a search as of an earlier position
//! needs. The postings of all classes are in one list, sorted by entry, and the class of an entry
//! is a column; how many postings of a long list each class has is tallied, so that what a view
//! counts is a sum over its classes. It is a view: delete it and push the entries again.

use std::collections::HashMap;

use super::bylines::Bylines;
use super::columns::{Columns, Entry};
use super::lexicon::Lexicon;
use super::postings::{List, Posting};
use super::shown::Pool;
use super::stops::Stops;
use super::words::{Role, all_words, words};
use super::{ClassId, Document};

/// Postings that are counted one by one are fewer.
pub(super) const TALLIED: u32 = 256;

/// Entries as the ranking sees them, and where their words are.
#[derive(Debug, Clone)]
pub struct Index {
    pub(super) entries: Columns,
    pub(super) bylines: Bylines,
    pub(super) terms: Lexicon,
    /// By term.
    pub(super) lists: Vec<List>,
    /// By term.
    pub(super) peaks: Vec<Peak>,
    /// Of the terms with at least [`TALLIED`] postings, how many each class has, by its number.
    pub(super) tallies: HashMap<u32, Vec<u32>>,
    /// Where the words are that say nothing.
    pub(super) stops: Stops,
    /// By number.
    pub(super) classes: Vec<ClassId>,
    pub(super) class_numbers: HashMap<ClassId, u32>,
    pub(super) pool: Pool,
    /// The terms of the entry in hand; empty in between.
    pub(super) found: Vec<u32>,
}

/// What no posting of a term exceeds: bounds that only save work, whoever may read the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peak {
    /// How often it occurs in one entry at most.
    pub(super) count: u8,
    /// The words of the shortest entry that has it, at most 255.
    pub(super) length: u8,
}

impl Peak {
    pub(super) const NONE: Self = Self {
        count: 0,
        length: u8::MAX,
    };

    fn rise(&mut self, count: u8, length: u32) {
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
    /// Without entries.
    pub fn new() -> Self {
        Self {
            entries: Columns::default(),
            bylines: Bylines::new(),
            terms: Lexicon::new(),
            lists: Vec::new(),
            peaks: Vec::new(),
            tallies: HashMap::new(),
            stops: Stops::default(),
            classes: Vec::new(),
            class_numbers: HashMap::new(),
            pool: Pool::default(),
            found: Vec::new(),
        }
    }

    /// How many entries it has: the number of the next one, and the position of the ledger's end.
    pub fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Whether it has none.
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
        let length = self.count(document);
        self.entries.push(Entry {
            time: document.time,
            class,
            byline,
            length,
        });
        self.post(number, class, length);
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

    /// Collects the terms of an entry and returns its length in words: those of label and text.
    fn count(&mut self, document: &Document<'_>) -> u32 {
        let number = self.entries.len();
        let (terms, found, stops) = (&mut self.terms, &mut self.found, &mut self.stops);
        let mut length = 0_u32;
        for part in [document.label, document.text] {
            all_words(part, |word| match word.role {
                Role::Stop => stops.note(word.term, number),
                role => {
                    found.push(terms.intern(word.term));
                    length = length.saturating_add(u32::from(role == Role::Part));
                }
            });
        }
        words(document.date, |word| found.push(terms.intern(word.term)));
        length
    }

    /// Turns the collected terms into postings.
    fn post(&mut self, entry: u32, class: u32, length: u32) {
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable();
        for same in found.chunk_by(|one, other| one == other) {
            let (term, count) = (same[0], u8::try_from(same.len()).unwrap_or(u8::MAX));
            while self.lists.len() <= term as usize {
                self.lists.push(List::new());
                self.peaks.push(Peak::NONE);
            }
            self.peaks[term as usize].rise(count, length);
            self.lists[term as usize].push(Posting { entry, count });
            self.tally(term, class);
        }
        found.clear();
        self.found = found;
    }

    /// Counts the posting that was added last.
    fn tally(&mut self, term: u32, class: u32) {
        match self.lists[term as usize].len() {
            ..TALLIED => {}
            TALLIED => self.take_stock(term),
            _ => count_one(self.tallies.entry(term).or_default(), class),
        }
    }

    /// Counts all postings of a term by class.
    fn take_stock(&mut self, term: u32) {
        let mut tally = Vec::new();
        for posting in self.lists[term as usize].iter() {
            count_one(&mut tally, self.entries.classes[posting.entry as usize]);
        }
        self.tallies.insert(term, tally);
    }

    /// About how many bytes of memory it takes.
    pub fn heap_bytes(&self) -> usize {
        let tallies = self
            .tallies
            .values()
            .map(|tally| tally.capacity() * size_of::<u32>());
        self.entries.heap_bytes()
            + self.classes.capacity() * size_of::<ClassId>()
            + self.bylines.heap_bytes()
            + self.terms.heap_bytes()
            + self.lists.capacity() * size_of::<List>()
            + self.peaks.capacity() * size_of::<Peak>()
            + self.tallies.capacity() * size_of::<(u32, Vec<u32>)>()
            + tallies.sum::<usize>()
            + self.stops.heap_bytes()
            + self.lists.iter().map(List::heap_bytes).sum::<usize>()
    }
}

fn count_one(tally: &mut Vec<u32>, class: u32) {
    if tally.len() <= class as usize {
        tally.resize(class as usize + 1, 0);
    }
    tally[class as usize] += 1;
}
