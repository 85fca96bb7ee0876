//! The index of a world: its entries' figures, its terms, and the postings of each term by class.
//!
//! It only grows, in ledger order, and holds everything that a search as of an earlier position needs:
//! lists are sorted by entry, and lengths are kept as running sums, so that every figure as of a position
//! is a binary search. It is a view: delete it and push the entries again.

use std::collections::HashMap;

use super::columns::{Class, Columns, Entry};
use super::lexicon::Lexicon;
use super::postings::{List, Posting};
use super::scratch::Pool;
use super::words::{Role, words};
use super::{ClassId, Document};

/// Entries as the ranking sees them, and where their words are.
#[derive(Debug, Clone)]
pub struct Index {
    pub(super) entries: Columns,
    pub(super) authors: Lexicon,
    pub(super) terms: Lexicon,
    /// By term.
    pub(super) lists: Vec<ClassLists>,
    /// By term, how often it occurs in one entry at most: a bound that only saves work.
    pub(super) peaks: Vec<u8>,
    pub(super) classes: Vec<Class>,
    pub(super) class_numbers: HashMap<ClassId, u32>,
    pub(super) scratch: Pool,
    /// The terms of the entry in hand; empty in between.
    pub(super) found: Vec<u32>,
}

/// The lists of one term by class number, ascending.
#[derive(Debug, Clone)]
pub(super) enum ClassLists {
    /// As for most terms.
    One(u32, List),
    Many(Vec<(u32, List)>),
}

impl ClassLists {
    pub(super) fn as_pairs(&self) -> impl Iterator<Item = (u32, &List)> {
        let (one, many) = match self {
            Self::One(class, list) => (Some((*class, list)), &[][..]),
            Self::Many(lists) => (None, &lists[..]),
        };
        one.into_iter().chain(many.iter().map(|(class, list)| (*class, list)))
    }

    fn list_mut(&mut self, class: u32) -> &mut List {
        if let Self::One(only, list) = self
            && *only != class
        {
            *self = Self::Many(vec![(*only, std::mem::replace(list, List::new()))]);
        }
        match self {
            Self::One(_, list) => list,
            Self::Many(lists) => {
                let place = lists.binary_search_by_key(&class, |(number, _)| *number);
                let place = place.unwrap_or_else(|place| {
                    if lists.len() == lists.capacity() {
                        lists.reserve_exact(lists.len() / 4 + 1);
                    }
                    lists.insert(place, (class, List::new()));
                    place
                });
                &mut lists[place].1
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        let lists: usize = self.as_pairs().map(|(_, list)| list.heap_bytes()).sum();
        match self {
            Self::One(..) => lists,
            Self::Many(pairs) => lists + pairs.capacity() * size_of::<(u32, List)>(),
        }
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
            authors: Lexicon::new(),
            terms: Lexicon::new(),
            lists: Vec::new(),
            peaks: Vec::new(),
            classes: Vec::new(),
            class_numbers: HashMap::new(),
            scratch: Pool::default(),
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
    /// The number of entries is limited by their numbers, 2^32; a ledger reaches other limits first.
    pub fn push(&mut self, document: &Document<'_>) -> u32 {
        let number = self.len();
        let class = self.class_number(document.class);
        let author = self.authors.intern(document.author);
        let length = self.count(document);
        self.entries.push(Entry { time: document.time, class, author, length });
        self.classes[class as usize].push(number, length);
        self.post(number, class);
        number
    }

    fn class_number(&mut self, id: ClassId) -> u32 {
        let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let number = *self.class_numbers.entry(id).or_insert(next);
        if number == next {
            self.classes.push(Class::new(id));
        }
        number
    }

    /// Collects the terms of an entry and returns its length in words: those of label and text.
    fn count(&mut self, document: &Document<'_>) -> u32 {
        let (terms, found) = (&mut self.terms, &mut self.found);
        let mut length = 0_u32;
        for part in [document.label, document.text] {
            words(part, |word| {
                found.push(terms.intern(word.term));
                length = length.saturating_add(u32::from(word.role == Role::Part));
            });
        }
        words(document.date, |word| found.push(terms.intern(word.term)));
        length
    }

    /// Turns the collected terms into postings.
    fn post(&mut self, entry: u32, class: u32) {
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable();
        for same in found.chunk_by(|one, other| one == other) {
            let (term, count) = (same[0] as usize, u8::try_from(same.len()).unwrap_or(u8::MAX));
            while self.lists.len() <= term {
                self.lists.push(ClassLists::One(class, List::new()));
                self.peaks.push(0);
            }
            self.peaks[term] = self.peaks[term].max(count);
            self.lists[term].list_mut(class).push(Posting { entry, count });
        }
        found.clear();
        self.found = found;
    }

    /// About how many bytes of memory it takes.
    pub fn heap_bytes(&self) -> usize {
        self.entries.heap_bytes()
            + self.classes.iter().map(Class::heap_bytes).sum::<usize>()
            + self.authors.heap_bytes()
            + self.terms.heap_bytes()
            + self.lists.capacity() * size_of::<ClassLists>()
            + self.peaks.capacity()
            + self.lists.iter().map(ClassLists::heap_bytes).sum::<usize>()
    }
}
