//! What a Codex thread has used. The program reports totals of the thread, some of them twice.

use serde_json::Value;

use crate::event::Usage;
use crate::field::{count_at, object_at};

/// The totals that were reported so far.
#[derive(Debug, Default)]
pub(super) struct ThreadUsage {
    reported: Usage,
    /// The thread has a past whose totals are not known yet.
    is_past_unknown: bool,
}

impl ThreadUsage {
    pub(super) fn of_resumed_thread() -> Self {
        Self {
            is_past_unknown: true,
            ..Self::default()
        }
    }

    /// Takes a report and returns what is new since the last one.
    pub(super) fn advance(&mut self, params: &Value, is_turn_open: bool) -> Usage {
        let total = read_tokens(&object_at(params, "/tokenUsage/total"));
        let last = read_tokens(&object_at(params, "/tokenUsage/last"));
        let since_report = subtract(&total, &self.reported);
        self.reported = total;
        if !std::mem::take(&mut self.is_past_unknown) {
            return since_report;
        }
        // The first report about a resumed thread: outside a turn it is all past, inside a turn the
        // last request is new.
        if is_turn_open { last } else { Usage::default() }
    }
}

fn read_tokens(tokens: &Value) -> Usage {
    Usage {
        prompt_tokens: count_at(tokens, "/inputTokens"),
        completion_tokens: count_at(tokens, "/outputTokens"),
        cached_tokens: count_at(tokens, "/cachedInputTokens"),
        cost_micro_usd: None,
    }
}

fn subtract(total: &Usage, reported: &Usage) -> Usage {
    Usage {
        prompt_tokens: total.prompt_tokens.saturating_sub(reported.prompt_tokens),
        completion_tokens: total
            .completion_tokens
            .saturating_sub(reported.completion_tokens),
        cached_tokens: total.cached_tokens.saturating_sub(reported.cached_tokens),
        cost_micro_usd: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(total: u64, last: u64) -> Value {
        let tokens = |count| json!({"inputTokens": count, "outputTokens": 0});
        json!({"tokenUsage": {"total": tokens(total), "last": tokens(last)}})
    }

    #[test]
    fn only_new_tokens_count() {
        let mut usage = ThreadUsage::default();
        let reports = [(100, 100), (100, 100), (250, 150), (10, 10)];
        let new = reports.map(|(total, last)| {
            let usage = usage.advance(&report(total, last), true);
            usage.prompt_tokens
        });
        assert_eq!(new, [100, 0, 150, 0]);
    }

    #[test]
    fn the_past_of_a_resumed_thread_does_not_count() {
        let mut before_turn = ThreadUsage::of_resumed_thread();
        assert!(before_turn.advance(&report(900, 100), false).is_nothing());
        assert_eq!(
            before_turn.advance(&report(950, 50), true).prompt_tokens,
            50
        );
        let mut in_turn = ThreadUsage::of_resumed_thread();
        assert_eq!(in_turn.advance(&report(950, 50), true).prompt_tokens, 50);
    }
}
