//! The end of a turn: the response to the prompt.

use serde_json::Value;

use crate::event::{TurnEnd, Usage};
use crate::failure::{self, ProviderError};
use crate::field::{count_at, first_text, object_at, text_at};

use super::{Acp, Past};

/// The error code of an agent that has stopped on request.
const REQUEST_CANCELLED: i64 = -32800;
/// The error code of an agent that needs a login.
const AUTH_REQUIRED: i64 = -32000;

impl Acp {
    pub(super) fn receive_stop(&mut self, turn: u64, result: &Value) {
        let usage = read_usage(result);
        // A late response of an earlier turn must not end this one, but its tokens were used.
        if turn != self.turn_number {
            return self.turn.report_usage(usage);
        }
        self.past = Past::Over;
        let end = match text_at(result, "/stopReason").unwrap_or_default() {
            "end_turn" => TurnEnd::Completed,
            "cancelled" => TurnEnd::Interrupted,
            "max_tokens" => TurnEnd::Failed("the answer reached its limit of tokens".to_owned()),
            "max_turn_requests" => {
                TurnEnd::Failed("the turn reached its limit of model requests".to_owned())
            }
            "refusal" => TurnEnd::Failed("the model refused to continue".to_owned()),
            other => TurnEnd::Failed(format!("the agent stopped: {other}")),
        };
        if end == TurnEnd::Interrupted {
            // The caller closes the text of an interrupted turn itself.
            self.text.discard();
        }
        self.finish_text();
        self.turn.report_usage(usage);
        match end {
            TurnEnd::Completed => self.complete_or_await(),
            end => self.turn.end(end),
        }
    }

    pub(super) fn receive_prompt_error(&mut self, turn: u64, error: &Value) {
        if turn != self.turn_number {
            return;
        }
        self.text.discard();
        let code = error.pointer("/code").and_then(Value::as_i64);
        if code == Some(REQUEST_CANCELLED) {
            self.turn.end(TurnEnd::Interrupted);
        } else {
            self.turn.end_with_error(classify_error(error));
        }
    }
}

/// The tokens of a turn, where the protocol has them or where Gemini puts them.
fn read_usage(result: &Value) -> Usage {
    if let Some(usage) = result.pointer("/usage") {
        return Usage {
            prompt_tokens: count_at(usage, "/inputTokens"),
            completion_tokens: count_at(usage, "/outputTokens"),
            cached_tokens: count_at(usage, "/cachedReadTokens"),
            cost_micro_usd: None,
        };
    }
    let counts = object_at(result, "/_meta/quota/token_count");
    Usage {
        prompt_tokens: count_at(&counts, "/input_tokens"),
        completion_tokens: count_at(&counts, "/output_tokens"),
        ..Usage::default()
    }
}

/// The message of an error with its details: the message alone is often only "Internal error".
pub(super) fn describe_error(error: &Value) -> String {
    let message = text_at(error, "/message").unwrap_or_default();
    match first_text(error, &["/data/details", "/data/message", "/data"]) {
        Some(details) => format!("{message}: {details}"),
        None => message.to_owned(),
    }
}

/// Some agents use an HTTP status as the code of an error.
pub(super) fn classify_error(error: &Value) -> TurnEnd {
    let code = error.pointer("/code").and_then(Value::as_i64);
    let message = describe_error(error);
    if code == Some(AUTH_REQUIRED) {
        return TurnEnd::Failed(format!("log in to the agent program first: {message}"));
    }
    failure::classify(&ProviderError {
        status: code.and_then(|code| u64::try_from(code).ok()),
        code: "",
        message: &message,
        resets_at: None,
    })
}
