//! Numbers strings densely: one buffer with all strings and an open-addressing hash table.
//!
//! A string keeps its number for ever. The hash is seeded at random, so that writers cannot choose
//! words that collide. The numbers do not depend on the hash.

use std::hash::{BuildHasher as _, RandomState};

use super::words::TERM_BYTES_MAX;

/// A table slot: the upper half of a hash, and the string's number plus one. 0 is empty.
type Slot = u64;

/// A set of numbered strings.
#[derive(Debug, Clone)]
pub(super) struct Lexicon {
    text: String,
    /// The end of each string in `text`.
    ends: Vec<usize>,
    slots: Vec<Slot>,
    seed: RandomState,
}

impl Lexicon {
    /// Makes an empty lexicon.
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            ends: Vec::new(),
            slots: vec![0; 16],
            seed: RandomState::new(),
        }
    }

    /// The number of strings.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with this number, or an empty one.
    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 {
            0
        } else {
            self.ends.get(number - 1).copied().unwrap_or(0)
        };
        self.ends
            .get(number)
            .map_or("", |end| &self.text[start..*end])
    }

    /// The number of a string, if it has one.
    pub(super) fn find(&self, string: &str) -> Option<u32> {
        self.probe(string, self.seed.hash_one(string)).ok()
    }

    /// The numbers of the strings that contain `piece`, which must not be empty. Includes all
    /// strings near the maximal length, because the index may have cut the piece off them.
    pub(super) fn terms_containing(&self, piece: &str) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        let mut start = 0;
        for (number, end) in (0..).zip(&self.ends) {
            // A cut ends on a character boundary, up to three bytes before the limit.
            if end - start + 4 > TERM_BYTES_MAX {
                found.push(number);
            }
            start = *end;
        }
        let mut from = 0;
        while let Some(at) = self.text.get(from..).and_then(|rest| rest.find(piece)) {
            let start = from + at;
            let number = self.ends.partition_point(|end| *end <= start);
            // A match may span two strings of the buffer; it must end within the first one.
            if self
                .ends
                .get(number)
                .is_some_and(|end| start + piece.len() <= *end)
            {
                found.extend(u32::try_from(number));
            }
            from = start + self.text[start..].chars().next().map_or(1, char::len_utf8);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The number of a string. A new string gets the next number.
    pub(super) fn intern(&mut self, string: &str) -> u32 {
        let hash = self.seed.hash_one(string);
        match self.probe(string, hash) {
            Ok(number) => number,
            Err(slot) => self.add(string, hash, slot),
        }
    }

    /// The number of a string, or the empty slot where it belongs.
    fn probe(&self, string: &str, hash: u64) -> Result<u32, usize> {
        let mut at = self.home_slot(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let number = slot_number(slot);
            // Half of the hash is stored, so most other strings are never compared.
            if slot >> 32 == hash >> 32 && self.get(number) == string {
                return Ok(number);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn add(&mut self, string: &str, hash: u64, slot: usize) -> u32 {
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX - 1);
        self.text.push_str(string);
        self.ends.push(self.text.len());
        self.slots[slot] = make_slot(hash, number);
        // Beyond three quarters full, probing becomes slow.
        if self.ends.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for number in 0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX) {
            let hash = self.seed.hash_one(self.get(number));
            let mut at = self.home_slot(hash);
            // All strings differ, so the first free slot will do without comparing any.
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = make_slot(hash, number);
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the mask keeps the lowest bits only"
    )]
    fn home_slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Estimates the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.slots.capacity() * size_of::<Slot>()
    }
}

fn make_slot(hash: u64, number: u32) -> Slot {
    (hash >> 32) << 32 | (u64::from(number) + 1)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half of a slot is the number"
)]
fn slot_number(slot: Slot) -> u32 {
    (slot as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_keep_their_numbers() {
        let mut lexicon = Lexicon::new();
        for round in 0..2 {
            for number in 0..5000_u32 {
                assert_eq!(
                    lexicon.intern(&format!("word{number}")),
                    number,
                    "round {round}"
                );
            }
        }
        assert_eq!(lexicon.len(), 5000);
        assert_eq!(lexicon.get(4999), "word4999");
        assert_eq!(lexicon.get(5000), "");
        assert_eq!(lexicon.find("word0"), Some(0));
        assert_eq!(lexicon.find("word5000"), None);
        assert_eq!(lexicon.terms_containing("4999"), [4999]);
        assert_eq!(lexicon.terms_containing("999").len(), 5);
        assert_eq!(lexicon.terms_containing("9word"), [0; 0]);
        assert_eq!(lexicon.intern(""), 5000);
        assert_eq!(lexicon.find(""), Some(5000));
    }
}
