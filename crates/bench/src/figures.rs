//! Arithmetic on measurements.

use std::time::Duration;

/// What one run of the load generator showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// Answers per second.
    pub(super) rate: f64,
    /// Half of the answers took no longer, in milliseconds.
    pub(super) p50_ms: f64,
    /// 99 % of the answers took no longer, in milliseconds.
    pub(super) p99_ms: f64,
}

impl Measured {
    /// From the time of the whole run and of each answer.
    pub(super) fn from_latencies(elapsed: Duration, mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        Self {
            rate: count_f64(latencies.len()) / elapsed.as_secs_f64(),
            p50_ms: percentile_ms(&latencies, 50),
            p99_ms: percentile_ms(&latencies, 99),
        }
    }

    /// Each figure's median over several runs.
    pub(super) fn median_of(runs: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(runs.iter().map(figure));
        Self {
            rate: of(|run| run.rate),
            p50_ms: of(|run| run.p50_ms),
            p99_ms: of(|run| run.p99_ms),
        }
    }
}

/// One figure in one round: what the bare thing reached, and what the product reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    pub(super) bare: f64,
    pub(super) ours: f64,
}

/// The rounds of one measurement. Bare and product alternate in them, so that a slow minute of the
/// machine hits both.
#[derive(Debug, Default)]
pub(super) struct Rounds(Vec<Round>);

impl Rounds {
    pub(super) fn push(&mut self, round: Round) {
        self.0.push(round);
    }

    pub(super) fn bare(&self) -> f64 {
        self.median_by(|round| round.bare)
    }

    pub(super) fn ours(&self) -> f64 {
        self.median_by(|round| round.ours)
    }

    /// The median of each round's ratio. The ratio of the two medians could compare different
    /// minutes.
    pub(super) fn ratio(&self) -> f64 {
        self.median_by(|round| round.ours / round.bare)
    }

    /// The median, over the rounds, of the product's time minus the time of the bare thing.
    pub(super) fn difference(&self) -> f64 {
        self.median_by(|round| round.ours - round.bare)
    }

    fn median_by(&self, figure: fn(&Round) -> f64) -> f64 {
        median(self.0.iter().map(figure))
    }
}

/// The middle value; of an even number of values, the mean of the middle two. NaN for none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len() % 2) {
        (None, _) => f64::NAN,
        (Some(value), 1) => *value,
        (Some(value), _) => f64::midpoint(*value, values[middle - 1]),
    }
}

/// The latency that so many per cent do not exceed, in milliseconds.
pub(super) fn percentile_ms(sorted: &[Duration], percent: usize) -> f64 {
    // A single run of few requests still has a 99th percentile: its slowest.
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    let latency = sorted.get(index).copied().unwrap_or_default();
    latency.as_secs_f64() * 1e3
}

/// A number from a server's figures, to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "numbers here are far below 2^53"
)]
pub(super) fn number_f64(bytes: u64) -> f64 {
    bytes as f64
}

/// A number of bytes in megabytes, as the table shows them.
pub(super) fn megabytes(bytes: u64) -> f64 {
    number_f64(bytes) / 1e6
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
pub(super) fn count_f64(count: usize) -> f64 {
    count as f64
}

/// How many requests fill `millis` at `rate` per second; between 1 and `max`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped just before"
)]
pub(super) fn requests_for(rate: f64, millis: u64, max: usize) -> usize {
    let wanted = rate * Duration::from_millis(millis).as_secs_f64();
    wanted.clamp(1.0, count_f64(max)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let check = |values: &[f64], expect: f64| {
            assert_eq!(median(values.iter().copied()).to_bits(), expect.to_bits());
        };
        check(&[3.0], 3.0);
        check(&[9.0, 1.0, 2.0], 2.0);
        check(&[4.0, 1.0, 2.0, 100.0], 3.0);
        assert!(median(std::iter::empty()).is_nan());
    }

    #[test]
    fn percentiles_come_from_the_sorted_latencies() {
        let latencies = (1..=100).rev().map(Duration::from_millis).collect();
        let measured = Measured::from_latencies(Duration::from_secs(2), latencies);
        assert_eq!(
            measured,
            Measured {
                rate: 50.0,
                p50_ms: 51.0,
                p99_ms: 100.0
            }
        );
    }

    #[test]
    fn the_number_of_requests_is_bounded() {
        assert_eq!(requests_for(1000.0, 500, 10_000), 500);
        assert_eq!(requests_for(0.1, 500, 10_000), 1);
        assert_eq!(requests_for(1e12, 500, 10_000), 10_000);
    }
}
