//! The same things in the words of the protocols and in the words of the runtime.

use turnkeep_agents::{Answer, LimitReset, event};
use turnkeep_runtime::approval::{Resolution, RuleMatcher};
use turnkeep_runtime::decide::Output;
use turnkeep_runtime::tool::ToolCall;
use turnkeep_runtime::turn::TurnEnd;
use turnkeep_runtime::usage::Usage;
use turnkeep_runtime::words::Verdict;

/// The answer for a program. One that cannot take other arguments is denied the call and told what
/// the person wants: it would wait for ever if the answer were dropped. A lasting yes is for the
/// program only where the server can make no rule of the call: a rule can be seen and deleted.
pub(super) fn answer_of(call: &ToolCall, resolution: Resolution, can_edit_args: bool) -> Answer {
    let program_remembers =
        resolution.is_lasting_consent() && RuleMatcher::for_args(&call.args).is_none();
    match (resolution.verdict, resolution.modified_args) {
        (Verdict::Modified, Some(args)) if can_edit_args => Answer::AllowWith(args),
        (Verdict::Modified, Some(args)) => Answer::Deny {
            reason: format!("Call the tool again with these arguments: {args}"),
        },
        (Verdict::Approved, _) if program_remembers => Answer::AllowAlways,
        (Verdict::Approved | Verdict::Modified, _) => Answer::Allow,
        (Verdict::Denied, _) => Answer::Deny {
            reason: resolution
                .reason
                .unwrap_or_else(|| "denied by the user".to_owned()),
        },
    }
}

pub(super) fn usage_of(usage: event::Usage) -> Usage {
    Usage {
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        cached_tokens: usage.cached_tokens,
        cost_micro_usd: usage.cost_micro_usd.unwrap_or(0),
    }
}

pub(super) fn proposed(call: event::ToolCall) -> Output {
    Output::ToolProposed {
        provider_id: call.provider_id,
        name: call.name,
        args: call.args,
    }
}

pub(super) fn completed(result: event::ToolResult) -> Output {
    Output::ToolCompleted {
        provider_id: result.provider_id,
        ok: result.ok,
        output: result.output,
        error: result.error,
    }
}

pub(super) fn end_of(end: turnkeep_agents::TurnEnd) -> TurnEnd {
    use turnkeep_agents::TurnEnd as Ended;
    match end {
        Ended::Completed => TurnEnd::Completed,
        Ended::Interrupted => interrupted("interrupted"),
        Ended::Failed(reason) => TurnEnd::Failed { reason },
        Ended::Unavailable(reason) => TurnEnd::Unavailable { reason },
        Ended::NotBegun => TurnEnd::Interrupted {
            reason: "interrupted".to_owned(),
            // Inputs that no program has seen are never consumed.
            requeue: true,
        },
        Ended::RateLimited { reset, .. } => match reset {
            LimitReset::Unknown => TurnEnd::RateLimited { until: None },
            LimitReset::At(until) => TurnEnd::RateLimited { until: Some(until) },
            LimitReset::After(wait) => TurnEnd::RateLimitedFor { wait },
        },
    }
}

/// The runtime knows better why a turn was stopped, and replaces the reason.
pub(super) fn interrupted(reason: &str) -> TurnEnd {
    TurnEnd::Interrupted {
        reason: reason.to_owned(),
        requeue: false,
    }
}
