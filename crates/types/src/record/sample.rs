//! Makes records of every kind, for tests.
//!
//! A value is made from a list of numbers: each decision takes the next one, and a list that is used
//! up gives zeros, which make the plainest value. So a test that shrinks the list shrinks the
//! record.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{
    Binary, Bool, DurationMs, F64, Flag, Flat, INLINE_BYTES_MAX, List, LongText, Map, Markdown,
    Optional, Text, U32, U64, UnixMs,
};
use crate::{BlobHash, Timestamp};

/// The numbers that decide what is made.
#[derive(Debug, Clone)]
pub struct Choices {
    numbers: std::vec::IntoIter<u64>,
}

/// A type with samples.
pub trait Sample: Sized {
    /// Makes a value.
    fn sample(from: &mut Choices) -> Self;
}

/// A shape with samples of the values that it stores.
pub trait SampleShape<T> {
    /// Makes a value.
    fn sample(from: &mut Choices) -> T;
}

/// An enum with samples of each kind.
pub trait SampleKinds: Sized {
    /// The words of all kinds.
    const KINDS: &'static [&'static str];

    /// Makes a value of this kind; `None` for an unknown word.
    fn sample_kind(kind: &str, from: &mut Choices) -> Option<Self>;
}

/// Makes a value of any kind.
pub fn sample_any_kind<E: SampleKinds>(from: &mut Choices) -> E {
    let kind = from.pick(E::KINDS);
    E::sample_kind(kind, from).unwrap_or_else(|| panic!("`{kind}` has no sample"))
}

impl Choices {
    /// These numbers, in this order.
    pub fn new(numbers: Vec<u64>) -> Self {
        Self {
            numbers: numbers.into_iter(),
        }
    }

    /// Numbers that look random; the same seed gives the same ones.
    pub fn from_seed(seed: u64) -> Self {
        const COUNT: usize = 4096;
        // Weyl's sequence, mixed as in SplitMix64.
        let mut state = seed;
        let next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        };
        Self::new(std::iter::repeat_with(next).take(COUNT).collect())
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.numbers.next().unwrap_or(0)
    }

    /// A number below the bound, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).unwrap_or(0)
    }

    /// One of these values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

impl Sample for String {
    fn sample(from: &mut Choices) -> Self {
        const CHARACTERS: [char; 10] = ['a', 'Z', '7', ' ', '\n', '"', '\\', 'é', '🦀', '\u{202e}'];
        let length = from.below(12);
        (0..length).map(|_| from.pick(&CHARACTERS)).collect()
    }
}

impl Sample for u64 {
    fn sample(from: &mut Choices) -> Self {
        // All lengths, not almost only the longest one.
        let bits = from.below(64);
        from.draw() >> bits
    }
}

impl Sample for Timestamp {
    fn sample(from: &mut Choices) -> Self {
        Self(u64::sample(from))
    }
}

impl Sample for BlobHash {
    fn sample(from: &mut Choices) -> Self {
        Self::of(&from.draw().to_le_bytes())
    }
}

impl<T: Sample> SampleShape<T> for Text {
    fn sample(from: &mut Choices) -> T {
        T::sample(from)
    }
}

impl SampleShape<String> for Markdown {
    fn sample(from: &mut Choices) -> String {
        String::sample(from)
    }
}

impl SampleShape<String> for LongText {
    fn sample(from: &mut Choices) -> String {
        let mut text = String::sample(from);
        let length = from.pick(&[0, 0, 0, 0, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1]);
        let missing = length.saturating_sub(text.len());
        text.extend(std::iter::repeat_n('x', missing));
        text
    }
}

impl SampleShape<u64> for U64 {
    fn sample(from: &mut Choices) -> u64 {
        u64::sample(from)
    }
}

impl SampleShape<u64> for DurationMs {
    fn sample(from: &mut Choices) -> u64 {
        u64::sample(from)
    }
}

impl SampleShape<u32> for U32 {
    fn sample(from: &mut Choices) -> u32 {
        u32::try_from(u64::sample(from)).unwrap_or(u32::MAX)
    }
}

impl SampleShape<Timestamp> for UnixMs {
    fn sample(from: &mut Choices) -> Timestamp {
        Timestamp::sample(from)
    }
}

impl SampleShape<f64> for F64 {
    fn sample(from: &mut Choices) -> f64 {
        from.pick(&[0.0, 1.5, -240.25, 1e300, f64::MIN_POSITIVE])
    }
}

impl SampleShape<bool> for Bool {
    fn sample(from: &mut Choices) -> bool {
        from.below(2) == 1
    }
}

impl SampleShape<bool> for Flag {
    fn sample(from: &mut Choices) -> bool {
        Bool::sample(from)
    }
}

impl SampleShape<Bytes> for Binary {
    fn sample(from: &mut Choices) -> Bytes {
        let count = from.below(5);
        (0..count)
            .map(|_| from.pick(&[0, 0x61, 0xc1, 0xff]))
            .collect()
    }
}

/// How many values a list has at most.
const LIST_MAX: usize = 4;

impl<T: Sample> SampleShape<Vec<T>> for List {
    fn sample(from: &mut Choices) -> Vec<T> {
        let count = from.below(LIST_MAX + 1);
        (0..count).map(|_| T::sample(from)).collect()
    }
}

impl<T: Sample + Ord> SampleShape<BTreeSet<T>> for List {
    fn sample(from: &mut Choices) -> BTreeSet<T> {
        let values: Vec<T> = List::sample(from);
        values.into_iter().collect()
    }
}

impl<R: Sample> SampleShape<R> for Map<R> {
    fn sample(from: &mut Choices) -> R {
        R::sample(from)
    }
}

impl<R: Sample> SampleShape<Box<R>> for Map<R> {
    fn sample(from: &mut Choices) -> Box<R> {
        Box::new(R::sample(from))
    }
}

impl<R: Sample> SampleShape<R> for Flat<R> {
    fn sample(from: &mut Choices) -> R {
        R::sample(from)
    }
}

impl<T, S: SampleShape<T>> SampleShape<Option<T>> for Optional<S> {
    fn sample(from: &mut Choices) -> Option<T> {
        (from.below(2) == 1).then(|| S::sample(from))
    }
}
