//! Inputs near the seeds: a few edits of one of them, from a fixed seed.

/// Numbers that lengths and counts go wrong at.
const EDGES: [u8; 8] = [0, 1, 0x7F, 0x80, 0xC1, 0xDF, 0xFE, 0xFF];
const INPUT_BYTES_MAX: usize = 1 << 16;

/// Makes one input after the other; always the same ones.
pub(crate) struct Mutator {
    seeds: Vec<Vec<u8>>,
    state: u64,
    input: Vec<u8>,
}

impl Mutator {
    /// Mutates these, of which there must be at least one.
    pub(crate) fn new(seeds: Vec<Vec<u8>>) -> Self {
        Self {
            seeds,
            state: 0x7475_726E_6B65_6570,
            input: Vec::new(),
        }
    }

    /// The next input.
    pub(crate) fn next(&mut self) -> &[u8] {
        let seed = self.below(self.seeds.len());
        self.input.clone_from(&self.seeds[seed]);
        for _ in 0..=self.below(4) {
            self.edit();
        }
        self.input.truncate(INPUT_BYTES_MAX);
        &self.input
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap() % end.max(1)
    }

    fn edit(&mut self) {
        let at = self.below(self.input.len());
        match self.below(6) {
            0 => self.flip(at),
            1 => self.replace(at),
            2 => self.input.truncate(at),
            3 => self.insert(at),
            4 => self.remove(at),
            _ => self.splice(at),
        }
    }

    fn flip(&mut self, at: usize) {
        let bit = self.below(8);
        if let Some(byte) = self.input.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    fn replace(&mut self, at: usize) {
        let edge = EDGES[self.below(EDGES.len())];
        if let Some(byte) = self.input.get_mut(at) {
            *byte = edge;
        }
    }

    fn insert(&mut self, at: usize) {
        let byte = EDGES[self.below(EDGES.len())];
        let count = 1 + self.below(8);
        self.input.splice(at..at, std::iter::repeat_n(byte, count));
    }

    fn remove(&mut self, at: usize) {
        let end = (at + 1 + self.below(8)).min(self.input.len());
        self.input.drain(at..end);
    }

    /// The beginning of this input and the end of another.
    fn splice(&mut self, at: usize) {
        let other = self.below(self.seeds.len());
        let from = self.below(self.seeds[other].len());
        self.input.truncate(at);
        self.input.extend_from_slice(&self.seeds[other][from..]);
    }
}

#[test]
fn inputs_differ_and_are_the_same_again() {
    let run = || {
        let mut mutator = Mutator::new(vec![b"abcdefgh".to_vec(), b"12".to_vec(), Vec::new()]);
        (0..100)
            .map(|_| mutator.next().to_vec())
            .collect::<Vec<_>>()
    };
    let inputs = run();
    assert_eq!(inputs, run());
    let mut distinct = inputs.clone();
    distinct.sort();
    distinct.dedup();
    assert!(
        distinct.len() > 50,
        "only {} of {} inputs differ",
        distinct.len(),
        inputs.len()
    );
}
