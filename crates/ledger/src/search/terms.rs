//! The terms of a query with their weights in one view, and the BM25 score of a posting.
//!
//! All figures come from the view's own totals, so hidden entries cannot change a score. The bounds
//! in [`ScoredTerm::score_max`] may come from hidden entries: they only decide how much work the
//! sweep skips.

use super::index_view::IndexView;
use super::query::ParsedQuery;
use super::rank::NEIGHBOUR;

/// BM25: how soon repetitions of a word stop adding to the score. At 0.9, in an entry of average
/// length, one occurrence gives 1.0 of the term's weight, two give 1.31, and no number gives 1.9.
const K1: f32 = 0.9;

/// BM25: how much the length of an entry matters. At 0.4, one occurrence in an entry of twice the
/// average length gives 0.84 of the weight. Entries are short; 0.75, usual for whole articles, would
/// favour short remarks over long answers.
const B: f32 = 0.4;

/// Each term has a bit in a `u32`. Of a longer query only the rarest terms count.
const TERMS_MAX: usize = u32::BITS as usize;

/// Entries of fewer words have their damping computed once per search.
pub(super) const PRECOMPUTED_LENGTHS: usize = 256;

/// A query term that occurs in the view.
pub(super) struct ScoredTerm {
    pub(super) number: u32,
    /// The term's bit in a mask of terms.
    pub(super) bit: u32,
    /// The inverse document frequency in the view.
    pub(super) weight: f32,
    /// No entry gains more from the term, own posting and lent scores together.
    pub(super) score_max: f32,
}

/// A term with the number of visible entries that have it, at least one.
struct VisibleTerm {
    number: u32,
    frequency: u64,
}

impl VisibleTerm {
    fn find(view: &IndexView<'_>, term: &str) -> Option<Self> {
        let number = view.index.terms.find(term)?;
        let frequency = view.entry_frequency(number);
        (frequency > 0).then_some(Self { number, frequency })
    }
}

impl ScoredTerm {
    /// Selects the terms that occur in the view, the rarest first, then in query order. Drops the
    /// parts of an identifier that occurs as a whole.
    pub(super) fn select(view: &IndexView<'_>, query: &ParsedQuery<'_>) -> Vec<Self> {
        let mut known = Vec::with_capacity(query.terms.len());
        for query_term in &query.terms {
            known.push(VisibleTerm::find(view, &query_term.term));
        }
        let is_known = |number: usize| known[number].is_some();
        let mut found = Vec::new();
        for (query_term, visible) in query.terms.iter().zip(&known) {
            if !query_term.is_covered_by(is_known) {
                found.extend(visible);
            }
        }
        // A stable sort keeps query order among equally frequent terms.
        found.sort_by_key(|term: &&VisibleTerm| term.frequency);
        found.truncate(TERMS_MAX);
        let terms = (0..).zip(found);
        terms
            .map(|(bit, term)| Self::new(view, bit, term))
            .collect()
    }

    fn new(view: &IndexView<'_>, bit: u32, term: &VisibleTerm) -> Self {
        let number = term.number;
        let weight = term_weight(view.totals().count, term.frequency);
        let peak = view.index.peaks.get(number as usize);
        // Without a peak nothing is known, and the term must count as essential.
        let peak = peak.map_or(f32::INFINITY, |peak| {
            let count = f32::from(peak.count);
            (K1 + 1.0)
                * (count / (count + length_damping(u32::from(peak.length), average_length(view))))
        });
        Self {
            number,
            bit: 1 << bit,
            weight,
            // A neighbour lends a term only to an entry that lacks it, so the two never add up.
            score_max: weight * peak.max(LENT_MAX),
        }
    }
}

/// Bounds what two neighbours lend of a term, relative to its weight: each lends [`NEIGHBOUR`] of a
/// score below `K1 + 1`.
const LENT_MAX: f32 = 2.0 * NEIGHBOUR * (K1 + 1.0);

/// The mean length in words of the visible entries.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a mean length"
)]
fn average_length(view: &IndexView<'_>) -> f32 {
    (view.totals().length as f64 / view.totals().count.max(1) as f64).max(f64::MIN_POSITIVE) as f32
}

/// The weight of a term that occurs in `frequency` of `count` entries.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a ratio of counts"
)]
fn term_weight(count: u64, frequency: u64) -> f32 {
    let (count, frequency) = (count as f64, frequency as f64);
    // The 1 keeps the weight positive for a term that more than half of the entries have. Of 1000
    // entries, a term in one weighs 6.5, in 100 it weighs 2.3, in all it weighs 0.0005.
    (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln() as f32
}

/// Computes posting scores by entry length.
pub(super) struct LengthCurve {
    average: f32,
    /// Indexed by length, below [`PRECOMPUTED_LENGTHS`].
    damping: [f32; PRECOMPUTED_LENGTHS],
}

impl LengthCurve {
    /// Makes the curve for the mean length of a view.
    pub(super) fn for_view(view: &IndexView<'_>) -> Self {
        let average = average_length(view);
        Self {
            average,
            damping: std::array::from_fn(|length| length_damping(length_as_u32(length), average)),
        }
    }

    /// The score of `count` occurrences of a term in an entry of this length.
    #[inline]
    pub(super) fn posting_score(&self, term: &ScoredTerm, count: u8, length: u32) -> f32 {
        // Longer entries are rare, so their damping is computed on the spot.
        let ready = self.damping.get(length as usize).copied();
        let damping = ready.unwrap_or_else(|| length_damping(length, self.average));
        let count = f32::from(count);
        term.weight * (K1 + 1.0) * (count / (count + damping))
    }

    /// The score of one occurrence, indexed by entry length.
    pub(super) fn scores_of_one(&self, term: &ScoredTerm) -> [f32; PRECOMPUTED_LENGTHS] {
        std::array::from_fn(|length| self.posting_score(term, 1, length_as_u32(length)))
    }
}

fn length_as_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a length in words")]
fn length_damping(length: u32, average: f32) -> f32 {
    K1 * (1.0 - B + B * (length as f32 / average))
}
