//! Tokens and money: what turns cost, and the budget that stops a run.

use crate::input::InputId;

/// What was used. Sums of reports; a run's usage is the sum of its nodes'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    /// Millionths of a US dollar, so that sums are exact.
    pub cost_micro_usd: u64,
}

impl Usage {
    /// Adds another usage.
    pub fn add(&mut self, other: &Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cost_micro_usd = self.cost_micro_usd.saturating_add(other.cost_micro_usd);
    }

    /// Prompt and completion tokens together.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

/// What one turn used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    pub usage: Usage,
    /// The input that caused it, so that cost can be shown per edge and per goal.
    pub cause: Option<InputId>,
}

/// What may be used at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    pub tokens: Option<u64>,
    pub cost_micro_usd: Option<u64>,
}

/// How much of a budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetLevel {
    /// Less than four fifths.
    Fine,
    /// At least four fifths: the inbox of the person shows it.
    Low,
    /// All of it: the run pauses.
    UsedUp,
}

impl Budget {
    /// How much of the budget a usage takes, by the part that is closer to its end.
    pub fn level(&self, usage: &Usage) -> BudgetLevel {
        // Cached tokens are part of the prompt's, so they count once.
        let tokens = level_of(usage.total_tokens(), self.tokens);
        let cost = level_of(usage.cost_micro_usd, self.cost_micro_usd);
        tokens.max(cost)
    }
}

fn level_of(used: u64, limit: Option<u64>) -> BudgetLevel {
    match limit {
        Some(limit) if used >= limit => BudgetLevel::UsedUp,
        Some(limit) if u128::from(used) * 5 >= u128::from(limit) * 4 => BudgetLevel::Low,
        Some(_) | None => BudgetLevel::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_low_at_four_fifths_and_used_up_at_its_limit() {
        let budget = Budget {
            tokens: Some(100),
            cost_micro_usd: None,
        };
        for (tokens, expect) in [
            (0, BudgetLevel::Fine),
            (79, BudgetLevel::Fine),
            (80, BudgetLevel::Low),
            (99, BudgetLevel::Low),
            (100, BudgetLevel::UsedUp),
            (u64::MAX, BudgetLevel::UsedUp),
        ] {
            let usage = Usage {
                prompt_tokens: tokens,
                completion_tokens: 0,
                ..Usage::default()
            };
            assert_eq!(budget.level(&usage), expect, "{tokens}");
        }
        let both = Budget {
            tokens: Some(100),
            cost_micro_usd: Some(10),
        };
        let usage = Usage {
            cost_micro_usd: 10,
            ..Usage::default()
        };
        assert_eq!(both.level(&usage), BudgetLevel::UsedUp);
        assert_eq!(Budget::default().level(&usage), BudgetLevel::Fine);
    }
}
