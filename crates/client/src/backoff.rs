//! Pauses between attempts. They double up to a limit and are random within a factor of two, so
//! that many clients do not return at the same moment.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::options::Retry;

/// Counts the attempts of one request.
#[derive(Debug)]
pub(crate) struct Backoff {
    policy: Retry,
    tries: u32,
}

impl Backoff {
    pub(crate) fn new(policy: Retry) -> Self {
        Self { policy, tries: 0 }
    }

    /// Waits before the next attempt. Returns false if no attempt is left.
    pub(crate) async fn pause(&mut self) -> bool {
        match self.next_pause(random_u32()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return false,
        }
        true
    }

    /// Starts counting again after a success.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    fn next_pause(&mut self, random: u32) -> Option<Duration> {
        if self.tries >= self.policy.attempts_max {
            return None;
        }
        let doubled = self.policy.first.saturating_mul(1 << self.tries.min(20));
        self.tries += 1;
        // Half of the pause is fixed and half is random.
        let half = doubled.min(self.policy.longest) / 2;
        Some(half + half.mul_f64(f64::from(random) / f64::from(u32::MAX)))
    }
}

/// A random number. The standard library seeds each `RandomState` differently.
#[expect(
    clippy::cast_possible_truncation,
    reason = "any 32 of the 64 bits will do"
)]
fn random_u32() -> u32 {
    RandomState::new().hash_one(()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let ms = Duration::from_millis;
        let policy = Retry {
            attempts_max: 5,
            first: ms(100),
            longest: ms(500),
        };
        let pauses = |random| {
            let mut backoff = Backoff::new(policy);
            std::iter::from_fn(|| backoff.next_pause(random)).collect::<Vec<_>>()
        };
        assert_eq!(
            pauses(u32::MAX),
            [ms(100), ms(200), ms(400), ms(500), ms(500)]
        );
        assert_eq!(pauses(0), [ms(50), ms(100), ms(200), ms(250), ms(250)]);
        assert_eq!(Backoff::new(Retry::NEVER).next_pause(0), None);
    }
}
