//! Random numbers: the same for the same seed, for ever and everywhere.

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    // Splitmix64 is ten lines that any language can repeat, and passes the usual tests. A crate of
    // random numbers may change its sequence with a new version, and every world with it.
    fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end`, which is excluded; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next_bits() % (end.max(1) as u64)).unwrap_or(0)
    }

    /// A number from `start` to `end`, which is excluded.
    pub fn between(&mut self, start: usize, end: usize) -> usize {
        start + self.below(end.saturating_sub(start))
    }

    /// Returns true with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Picks an element of a slice, which must not be empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Picks a word from a list, which must not be empty.
    pub fn pick_word<'a, S: AsRef<str>>(&mut self, from: &'a [S]) -> &'a str {
        self.pick(from).as_ref()
    }
}
