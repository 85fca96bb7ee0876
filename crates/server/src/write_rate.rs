//! Limits how much persons may write per minute: requests and bytes of text, for each token and for
//! each world.
//!
//! The server counts a request when it begins to carry it out: one that the caller may not make, and
//! one that was answered before, are never counted. A token pays for every request, a world only for
//! what was committed, so requests that the world rejects cannot use up what its writers share.
//!
//! Minutes are the same for all: when a world is full, the time to wait says nothing about when
//! other persons wrote. The counts are kept in memory, so a restart begins at zero.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use turnkeep_ledger::ids::{Name, TokenId};
use turnkeep_types::Limits;
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;

/// The time over which requests are counted.
pub(crate) const WINDOW: Duration = Duration::from_mins(1);
/// How many tokens, and how many worlds, are counted at a time. Counts of past minutes go first.
const COUNTS_MAX: usize = 10_000;

/// How much may be written in a minute.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    requests: usize,
    bytes: usize,
}

/// What was written in the present minute.
#[derive(Debug)]
pub(crate) struct WriteRate {
    token_max: Allowed,
    world_max: Allowed,
    started: Instant,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    tokens: HashMap<TokenId, Count>,
    worlds: HashMap<Name, Count>,
}

/// What was written by one token or into one world.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    minute: u64,
    requests: usize,
    bytes: usize,
}

impl Count {
    /// A request larger than a whole minute's bytes is still allowed as the first of its minute.
    fn is_over(&self, max: Allowed, bytes: usize) -> bool {
        let is_full = self.requests >= max.requests || self.bytes.saturating_add(bytes) > max.bytes;
        is_full && self.requests > 0
    }

    fn add(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn take_back(&mut self, bytes: usize) {
        self.requests = self.requests.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A token's right to write within the limits.
#[derive(Debug, Clone)]
pub(crate) struct WriteAllowance {
    pub(crate) rate: Arc<WriteRate>,
    pub(crate) token: TokenId,
}

impl WriteAllowance {
    /// Counts a request that brings so many bytes of text, or rejects it.
    pub(crate) fn admit(&self, world: &Name, bytes: usize) -> Result<AdmittedWrite, OverRate> {
        self.rate.admit(self.token, world, bytes)
    }
}

/// A request that was counted. Unless it is committed, the world's count is taken back.
#[derive(Debug)]
pub(crate) struct AdmittedWrite {
    rate: Arc<WriteRate>,
    world: Name,
    minute: u64,
    bytes: usize,
    committed: bool,
}

impl AdmittedWrite {
    pub(crate) fn commit(mut self) {
        self.committed = true;
    }
}

impl Drop for AdmittedWrite {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        let mut counts = self.rate.lock();
        if let Some(count) = counts.worlds.get_mut(&self.world)
            && count.minute == self.minute
        {
            count.take_back(self.bytes);
        }
    }
}

impl WriteRate {
    /// Nothing written yet, under these limits.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            token_max: Allowed {
                requests: limits.token_writes_per_minute,
                bytes: limits.token_write_bytes_per_minute,
            },
            world_max: Allowed {
                requests: limits.world_writes_per_minute,
                bytes: limits.world_write_bytes_per_minute,
            },
            started: Instant::now(),
            counts: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(
        self: &Arc<Self>,
        token: TokenId,
        world: &Name,
        bytes: usize,
    ) -> Result<AdmittedWrite, OverRate> {
        let elapsed = self.started.elapsed();
        let minute = elapsed.as_secs() / WINDOW.as_secs();
        let into_minute = Duration::from_nanos(
            u64::try_from(elapsed.as_nanos() % WINDOW.as_nanos()).unwrap_or_default(),
        );
        let wait = WINDOW.saturating_sub(into_minute);
        let mut counts = self.lock();
        let Counts { tokens, worlds } = &mut *counts;
        // Both are checked before either is counted: a rejected request uses up nothing.
        let of_token = count_of(tokens, token, minute);
        let of_world = count_of(worlds, world.clone(), minute);
        if of_token.is_over(self.token_max, bytes) {
            return Err(OverRate::new("this token", self.token_max, wait));
        }
        if of_world.is_over(self.world_max, bytes) {
            return Err(OverRate::new("this world", self.world_max, wait));
        }
        of_token.add(bytes);
        of_world.add(bytes);
        Ok(AdmittedWrite {
            rate: Arc::clone(self),
            world: world.clone(),
            minute,
            bytes,
            committed: false,
        })
    }
}

/// The count of this minute, which begins at zero.
fn count_of<K: Eq + Hash>(counts: &mut HashMap<K, Count>, key: K, minute: u64) -> &mut Count {
    if counts.len() >= COUNTS_MAX {
        counts.retain(|_, count| count.minute == minute);
    }
    let count = counts.entry(key).or_default();
    if count.minute != minute {
        *count = Count {
            minute,
            ..Count::default()
        };
    }
    count
}

/// A write that was rejected because a limit is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{whose} may write {requests_max} times and {bytes_max} bytes a minute")]
pub(crate) struct OverRate {
    whose: &'static str,
    requests_max: usize,
    bytes_max: usize,
    wait: Duration,
}

impl OverRate {
    fn new(whose: &'static str, max: Allowed, wait: Duration) -> Self {
        Self {
            whose,
            requests_max: max.requests,
            bytes_max: max.bytes,
            wait,
        }
    }
}

impl From<OverRate> for ApiError {
    fn from(over: OverRate) -> Self {
        retry_later(&over.to_string(), over.wait)
    }
}

/// A refusal that says when to try again, in words and as a value.
pub(crate) fn retry_later(message: &str, wait: Duration) -> ApiError {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    ApiError::new(
        ErrorCode::TooManyRequests,
        format!("{message}: try again in {seconds} seconds"),
    )
    .with(RETRY_AFTER_SECONDS, seconds)
}

/// The detail of an error that says after how many seconds to try again.
pub(crate) const RETRY_AFTER_SECONDS: &str = "retry_after_seconds";

#[cfg(test)]
mod tests {
    use super::*;

    fn rate() -> Arc<WriteRate> {
        Arc::new(WriteRate::new(&Limits {
            token_writes_per_minute: 3,
            token_write_bytes_per_minute: 100,
            world_writes_per_minute: 5,
            world_write_bytes_per_minute: 150,
            ..Limits::default()
        }))
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Commits a write; returns how many seconds it would have to wait.
    fn write(rate: &Arc<WriteRate>, token: u128, world: &str, bytes: usize) -> Option<u64> {
        match rate.admit(TokenId(token), &name(world), bytes) {
            Ok(admitted) => {
                admitted.commit();
                None
            }
            Err(over) => {
                let refused = ApiError::from(over);
                assert_eq!(refused.code, ErrorCode::TooManyRequests);
                refused.details[RETRY_AFTER_SECONDS].as_u64()
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_has_so_many_writes_a_minute_and_is_told_when_it_may_go_on() {
        let rate = rate();
        for _ in 0..3 {
            assert_eq!(write(&rate, 1, "a", 1), None);
        }
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(write(&rate, 1, "a", 1), Some(40));
        assert_eq!(write(&rate, 2, "b", 1), None, "others are not touched");
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(write(&rate, 1, "a", 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_world_has_so_many_writes_whoever_writes_and_a_refused_one_costs_nothing() {
        let rate = rate();
        for token in 0..5 {
            assert_eq!(write(&rate, token, "a", 1), None);
        }
        for _ in 0..4 {
            assert_eq!(write(&rate, 7, "a", 1), Some(60));
        }
        assert_eq!(write(&rate, 7, "b", 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_counted_and_one_that_is_larger_than_all_of_them_goes_first_or_waits() {
        let rate = rate();
        assert_eq!(write(&rate, 1, "a", 60), None);
        assert_eq!(write(&rate, 1, "a", 60), Some(60));
        assert_eq!(write(&rate, 1, "a", 40), None);
        assert_eq!(write(&rate, 2, "a", 60), Some(60), "the world is full");
        assert_eq!(write(&rate, 3, "b", 1000), None);
        assert_eq!(write(&rate, 3, "b", 1), Some(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_world_does_not_pay_for_what_it_rejects_and_the_token_does() {
        let rate = rate();
        for _ in 0..3 {
            drop(rate.admit(TokenId(1), &name("a"), 50).unwrap());
            tokio::time::advance(WINDOW).await;
        }
        for _ in 0..2 {
            drop(rate.admit(TokenId(1), &name("a"), 50).unwrap());
        }
        assert_eq!(write(&rate, 1, "a", 1), Some(60), "the token is full");
        assert_eq!(write(&rate, 2, "a", 100), None);
        assert_eq!(write(&rate, 3, "a", 50), None, "the world holds two writes");
        assert_eq!(write(&rate, 3, "a", 1), Some(60));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_wait_does_not_depend_on_when_others_wrote() {
        for others_wait in [0, 10, 30] {
            let rate = rate();
            tokio::time::advance(Duration::from_secs(others_wait)).await;
            for token in 0..5 {
                assert_eq!(write(&rate, token, "a", 1), None);
            }
            tokio::time::advance(Duration::from_secs(45 - others_wait)).await;
            assert_eq!(write(&rate, 7, "a", 1), Some(15));
        }
    }
}
