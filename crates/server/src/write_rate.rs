//! How much persons may write: so many requests and so many bytes of text in a minute, for each
//! token and for each world.
//!
//! A write that is over a limit is refused with the time after which it may be tried again. The
//! owner's own writes are not counted. What is counted is kept in memory: a restart begins anew.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use turnkeep_ledger::Code;
use turnkeep_ledger::ids::{Name, TokenId};
use turnkeep_types::Limits;
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;

/// The time over which is counted.
pub(crate) const WINDOW: Duration = Duration::from_mins(1);
/// Tokens and worlds that are remembered; those whose window is over are forgotten first.
const REMEMBERED_MAX: usize = 10_000;

/// A request that writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    /// The person's token.
    pub(crate) token: TokenId,
    /// Into which world.
    pub(crate) world: &'a Name,
    /// The bytes of its texts.
    pub(crate) bytes: usize,
}

/// How much may be written in a window.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    requests: usize,
    bytes: usize,
}

/// What was written in the present windows.
#[derive(Debug)]
pub(crate) struct WriteRate {
    of_a_token: Allowed,
    of_a_world: Allowed,
    windows: Mutex<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    tokens: HashMap<TokenId, Window>,
    worlds: HashMap<Name, Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    requests: usize,
    bytes: usize,
}

impl Window {
    fn new(now: Instant) -> Self {
        Self {
            began: now,
            requests: 0,
            bytes: 0,
        }
    }

    /// How long a write must wait. What is larger than a whole window's bytes may open one.
    fn must_wait(&self, allowed: Allowed, bytes: usize, now: Instant) -> Option<Duration> {
        let is_over =
            self.requests >= allowed.requests || self.bytes.saturating_add(bytes) > allowed.bytes;
        (is_over && self.requests > 0)
            .then(|| WINDOW.saturating_sub(now.duration_since(self.began)))
    }

    fn count(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl WriteRate {
    /// Nothing written yet, under these limits.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            of_a_token: Allowed {
                requests: limits.token_writes_per_minute,
                bytes: limits.token_write_bytes_per_minute,
            },
            of_a_world: Allowed {
                requests: limits.world_writes_per_minute,
                bytes: limits.world_write_bytes_per_minute,
            },
            windows: Mutex::default(),
        }
    }

    /// Counts a write, or refuses it.
    pub(crate) fn admit(&self, write: &Write<'_>) -> Result<(), ApiError> {
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let Windows { tokens, worlds } = &mut *windows;
        let token = present(tokens, write.token, now);
        let world = present(worlds, write.world.clone(), now);
        for (window, allowed, whose) in [
            (&*token, self.of_a_token, "this token"),
            (&*world, self.of_a_world, "this world"),
        ] {
            if let Some(wait) = window.must_wait(allowed, write.bytes, now) {
                return Err(too_much(allowed, whose, wait));
            }
        }
        token.count(write.bytes);
        world.count(write.bytes);
        Ok(())
    }
}

/// The window that is open now.
fn present<K: Eq + Hash>(windows: &mut HashMap<K, Window>, key: K, now: Instant) -> &mut Window {
    if windows.len() >= REMEMBERED_MAX {
        windows.retain(|_, window| now.duration_since(window.began) < WINDOW);
    }
    let window = windows.entry(key).or_insert_with(|| Window::new(now));
    if now.duration_since(window.began) >= WINDOW {
        *window = Window::new(now);
    }
    window
}

fn too_much(allowed: Allowed, whose: &str, wait: Duration) -> ApiError {
    let Allowed { requests, bytes } = allowed;
    let message = format!("{whose} may write {requests} times and {bytes} bytes a minute");
    retry_later(&message, wait)
}

/// A refusal that says when to try again, in words and as a value.
pub(crate) fn retry_later(message: &str, wait: Duration) -> ApiError {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    ApiError::new(
        ErrorCode::TooManyRequests,
        format!("{message}: try again in {seconds} seconds"),
    )
    .word(Code::TooManyRequests)
    .with(RETRY_AFTER_SECONDS, seconds)
}

/// The detail of an error that says after how many seconds to try again.
pub(crate) const RETRY_AFTER_SECONDS: &str = "retry_after_seconds";

#[cfg(test)]
mod tests {
    use super::*;

    fn rate() -> WriteRate {
        WriteRate::new(&Limits {
            token_writes_per_minute: 3,
            token_write_bytes_per_minute: 100,
            world_writes_per_minute: 5,
            world_write_bytes_per_minute: 150,
            ..Limits::default()
        })
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Writes with a token into a world; tells how long it would have to wait.
    fn write(rate: &WriteRate, token: u128, world: &str, bytes: usize) -> Option<u64> {
        let refused = rate
            .admit(&Write {
                token: TokenId(token),
                world: &name(world),
                bytes,
            })
            .err()?;
        assert_eq!(refused.word, Some(Code::TooManyRequests));
        refused.details[RETRY_AFTER_SECONDS].as_u64()
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
}
