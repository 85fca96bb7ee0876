//! Under which name an entry was written: the author's id with the label that it had then.
//!
//! A label may change, and each entry keeps the one that it was written under. So a column of
//! entries holds the number of a pair, and pairs are few. Whether a query names an author is
//! decided by the entry's own byline: another entry of the same author, which a reader may not see,
//! has no say in it.

use std::collections::HashMap;

use super::lexicon::Lexicon;

/// An author's id and label, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Byline {
    pub(super) author: u32,
    pub(super) label: u32,
}

/// All bylines, each with a number that it keeps.
#[derive(Debug, Clone)]
pub(super) struct Bylines {
    pub(super) authors: Lexicon,
    pub(super) labels: Lexicon,
    pairs: Vec<Byline>,
    numbers: HashMap<Byline, u32>,
}

impl Bylines {
    /// Without any.
    pub(super) fn new() -> Self {
        Self::of(Lexicon::new(), Lexicon::new())
    }

    /// Without any, of these authors and labels.
    pub(super) fn of(authors: Lexicon, labels: Lexicon) -> Self {
        Self {
            authors,
            labels,
            pairs: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The number of a byline, which gets one if it has none.
    pub(super) fn intern(&mut self, author: &str, label: &str) -> u32 {
        let pair = Byline {
            author: self.authors.intern(author),
            label: self.labels.intern(label),
        };
        self.number(pair)
    }

    fn number(&mut self, pair: Byline) -> u32 {
        let next = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(pair).or_insert(next);
        if number == next {
            self.pairs.push(pair);
        }
        number
    }

    /// Adds a byline that was read; tells whether it is new and names an author and a label.
    pub(super) fn add(&mut self, pair: Byline) -> bool {
        let has_author = (pair.author as usize) < self.authors.len();
        let has_label = (pair.label as usize) < self.labels.len();
        if !has_author || !has_label || self.numbers.contains_key(&pair) {
            return false;
        }
        self.number(pair);
        true
    }

    /// All of them, by number.
    pub(super) fn pairs(&self) -> &[Byline] {
        &self.pairs
    }

    /// The number of the author of a byline.
    #[inline]
    pub(super) fn author(&self, byline: u32) -> u32 {
        self.pairs
            .get(byline as usize)
            .map_or(u32::MAX, |pair| pair.author)
    }

    /// The names by which a query may mean the author: the label and the id.
    pub(super) fn names(&self, byline: u32) -> Option<[&str; 2]> {
        let pair = self.pairs.get(byline as usize)?;
        Some([self.labels.get(pair.label), self.authors.get(pair.author)])
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let pair = size_of::<Byline>();
        self.authors.heap_bytes()
            + self.labels.heap_bytes()
            + self.pairs.capacity() * pair
            + self.numbers.capacity() * (pair + size_of::<u32>())
    }
}
