//! Bylines: the author id of an entry together with the author's label at that time.
//!
//! A label may change, and each entry keeps the label that it was written under. The entry column
//! holds the number of an (author, label) pair; there are few pairs. Whether a query names an
//! author depends on the entry's own byline, so another entry of the same author that is hidden
//! from the reader has no influence.

use std::collections::HashMap;

use super::lexicon::Lexicon;

/// An author and a label, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Byline {
    pub(super) author: u32,
    pub(super) label: u32,
}

/// All bylines, numbered densely.
#[derive(Debug, Clone)]
pub(super) struct Bylines {
    pub(super) authors: Lexicon,
    pub(super) labels: Lexicon,
    pairs: Vec<Byline>,
    numbers: HashMap<Byline, u32>,
}

impl Bylines {
    /// Makes an empty set.
    pub(super) fn new() -> Self {
        Self::with_names(Lexicon::new(), Lexicon::new())
    }

    /// Makes an empty set over these authors and labels.
    pub(super) fn with_names(authors: Lexicon, labels: Lexicon) -> Self {
        Self {
            authors,
            labels,
            pairs: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The number of a byline. A new byline gets the next number.
    pub(super) fn intern(&mut self, author: &str, label: &str) -> u32 {
        let pair = Byline {
            author: self.authors.intern(author),
            label: self.labels.intern(label),
        };
        self.intern_pair(pair)
    }

    fn intern_pair(&mut self, pair: Byline) -> u32 {
        let next = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(pair).or_insert(next);
        if number == next {
            self.pairs.push(pair);
        }
        number
    }

    /// Adds a byline from a checkpoint. Returns false if it is a duplicate or its author or label
    /// is unknown.
    pub(super) fn add(&mut self, pair: Byline) -> bool {
        let has_author = (pair.author as usize) < self.authors.len();
        let has_label = (pair.label as usize) < self.labels.len();
        if !has_author || !has_label || self.numbers.contains_key(&pair) {
            return false;
        }
        self.intern_pair(pair);
        true
    }

    /// All bylines, by number.
    pub(super) fn pairs(&self) -> &[Byline] {
        &self.pairs
    }

    /// The author number of a byline.
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

    /// Estimates the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let pair = size_of::<Byline>();
        self.authors.heap_bytes()
            + self.labels.heap_bytes()
            + self.pairs.capacity() * pair
            + self.numbers.capacity() * (pair + size_of::<u32>())
    }
}
