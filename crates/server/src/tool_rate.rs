//! Limits how many calls a person's token may make per minute, over HTTP and MCP together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use turnkeep_ledger::ids::TokenId;

use crate::error::ApiError;
use crate::write_rate::{WINDOW, retry_later};

/// Calls that one token may make in a window.
const CALLS_MAX: u32 = 600;
/// Tokens that are remembered. The server forgets those first whose window has ended.
const TOKENS_MAX: usize = 10_000;

/// The calls of each token in its current window.
#[derive(Debug, Default)]
pub(crate) struct ToolRate(Mutex<HashMap<TokenId, Window>>);

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    calls: u32,
}

impl ToolRate {
    /// Counts a call, or rejects it.
    pub(crate) fn admit(&self, token: TokenId) -> Result<(), ApiError> {
        self.check_and(token, |window| window.calls += 1)
    }

    /// Rejects a call that would be one too many, without counting it.
    pub(crate) fn check(&self, token: TokenId) -> Result<(), ApiError> {
        self.check_and(token, |_| {})
    }

    fn check_and(&self, token: TokenId, count: impl FnOnce(&mut Window)) -> Result<(), ApiError> {
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An old window says nothing any more. They are dropped all at once, when there are many, so
        // that a call does not usually pay for it.
        if windows.len() >= TOKENS_MAX {
            windows.retain(|_, window| now.duration_since(window.began) < WINDOW);
        }
        let new_window = Window {
            began: now,
            calls: 0,
        };
        let window = windows.entry(token).or_insert(new_window);
        if now.duration_since(window.began) >= WINDOW {
            *window = new_window;
        }
        if window.calls >= CALLS_MAX {
            let wait = WINDOW.saturating_sub(now.duration_since(window.began));
            let message = format!("this token may make {CALLS_MAX} calls a minute");
            return Err(retry_later(&message, wait));
        }
        count(window);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_wire::ErrorCode;

    use super::*;
    use crate::write_rate::RETRY_AFTER_SECONDS;

    #[tokio::test(start_paused = true)]
    async fn a_token_has_six_hundred_calls_a_minute_and_others_are_not_touched() {
        let rate = ToolRate::default();
        for _ in 0..CALLS_MAX {
            rate.admit(TokenId(1)).unwrap();
        }
        tokio::time::advance(WINDOW / 4).await;
        let refused = rate.admit(TokenId(1)).unwrap_err();
        assert_eq!(
            (refused.code, &refused.details[RETRY_AFTER_SECONDS]),
            (ErrorCode::TooManyRequests, &45.into())
        );
        rate.admit(TokenId(2)).unwrap();
        tokio::time::advance(WINDOW).await;
        rate.admit(TokenId(1)).unwrap();
    }
}
