//! The terms of a query as a view knows them: how much each tells, and what a posting of it adds.

use super::query::{Wanted, Wish};
use super::rank::NEIGHBOUR;
use super::surroundings::View;

/// How soon more of the same word stops to matter.
const K1: f32 = 0.9;

/// How much the length of an entry matters.
const B: f32 = 0.4;

/// Of a longer query the rarest terms count.
const TERMS_MAX: usize = u32::BITS as usize;

/// Lengths up to this have their part of the score worked out beforehand.
pub(super) const LENGTHS: usize = 256;

/// A term of the query that occurs in the view.
pub(super) struct Term {
    pub(super) number: u32,
    /// Its own bit.
    pub(super) bit: u32,
    /// How much it tells.
    pub(super) weight: f32,
    /// No entry gets more by it, its own posting and what neighbours lend taken together.
    pub(super) bound: f32,
}

impl Term {
    /// Those that occur, the rarest first, then in query order. The parts of an identifier that
    /// occurs as a whole say nothing more, and are left out.
    pub(super) fn all(view: &View<'_>, wanted: &Wanted<'_>) -> Vec<Self> {
        let look_up = |wish: &Wish| {
            let number = view.index.terms.find(&wish.term)?;
            Some((view.frequency(number), number)).filter(|(frequency, _)| *frequency > 0)
        };
        let known: Vec<Option<(u64, u32)>> = wanted.terms.iter().map(look_up).collect();
        let is_known = |number: usize| known[number].is_some();
        let left = wanted
            .terms
            .iter()
            .zip(&known)
            .filter(|(wish, _)| !wish.is_said_by(is_known));
        let mut found: Vec<(u64, u32)> = left.filter_map(|(_, known)| *known).collect();
        found.sort_by_key(|(frequency, _)| *frequency);
        found.truncate(TERMS_MAX);
        (0..)
            .zip(found)
            .map(|(bit, (frequency, number))| Self::new(view, bit, frequency, number))
            .collect()
    }

    fn new(view: &View<'_>, bit: u32, frequency: u64, number: u32) -> Self {
        let weight = weight(view.extent().count, frequency);
        let peak = view.index.peaks.get(number as usize);
        let peak = peak.map_or(f32::INFINITY, |peak| {
            let count = f32::from(peak.count);
            (K1 + 1.0) * (count / (count + damping(u32::from(peak.length), average(view))))
        });
        Self {
            number,
            bit: 1 << bit,
            weight,
            bound: weight * peak.max(LENT_MAX),
        }
    }
}

/// What two neighbours lend of a term at most, by its weight: a share of a mean of scores, none of
/// which reaches `K1 + 1`.
const LENT_MAX: f32 = 2.0 * NEIGHBOUR * (K1 + 1.0);

/// The mean length of what a view shows.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a mean length"
)]
fn average(view: &View<'_>) -> f32 {
    (view.extent().length as f64 / view.extent().count.max(1) as f64).max(f64::MIN_POSITIVE) as f32
}

/// How much a term tells that occurs in `frequency` of `count` entries.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a ratio of counts"
)]
fn weight(count: u64, frequency: u64) -> f32 {
    let (count, frequency) = (count as f64, frequency as f64);
    (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln() as f32
}

/// What a posting adds, by the entry's length.
pub(super) struct Curve {
    average: f32,
    /// For the lengths up to [`LENGTHS`].
    damping: [f32; LENGTHS],
}

impl Curve {
    /// The curve of a view's lengths.
    pub(super) fn of(view: &View<'_>) -> Self {
        let average = average(view);
        Self {
            average,
            damping: std::array::from_fn(|length| damping(number(length), average)),
        }
    }

    /// What `count` occurrences of a term add to the score of an entry of this length.
    #[inline]
    pub(super) fn score(&self, term: &Term, count: u8, length: u32) -> f32 {
        let ready = self.damping.get(length as usize).copied();
        let damping = ready.unwrap_or_else(|| damping(length, self.average));
        let count = f32::from(count);
        term.weight * (K1 + 1.0) * (count / (count + damping))
    }

    /// What one occurrence adds, by the entry's length, up to [`LENGTHS`].
    pub(super) fn scores_of_one(&self, term: &Term) -> [f32; LENGTHS] {
        std::array::from_fn(|length| self.score(term, 1, number(length)))
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a length in words")]
fn damping(length: u32, average: f32) -> f32 {
    K1 * (1.0 - B + B * (length as f32 / average))
}
