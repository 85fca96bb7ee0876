//! The `result` record, which alone ends a turn.

use serde_json::Value;

use crate::event::{TurnEnd, Usage};
use crate::failure::{self, ProviderError};
use crate::field::{count_at, micro_usd_at, text_at};

use super::Claude;
use super::record::{is_error, reason_of_result, was_aborted};

/// What the program says when `--resume` names a session that it does not have.
const UNKNOWN_SESSION: &str = "No conversation found";

impl Claude {
    pub(super) fn receive_result(&mut self, record: &Value) {
        self.report_usage(record);
        if is_error(record) {
            self.end_with_failed_result(record);
        } else {
            // A failed result may name a session that was never written.
            self.receive_session(record);
            self.finish_turn_text(record);
            self.turn.end(TurnEnd::Completed);
        }
    }

    fn end_with_failed_result(&mut self, record: &Value) {
        let reason = reason_of_result(record);
        if was_aborted(record) {
            self.turn.end(TurnEnd::Interrupted);
        } else if !self.end_for_lost_session(&reason) {
            let end = failure::classify(&ProviderError {
                status: record.pointer("/api_error_status").and_then(Value::as_u64),
                code: "",
                message: &reason,
                resets_at: self.limit_resets_at,
            });
            self.turn.end_with_error(end);
        }
    }

    /// The result repeats the last message. A program that prints no assistant records says its
    /// answer only here.
    fn finish_turn_text(&mut self, record: &Value) {
        let text = text_at(record, "/result").unwrap_or_default();
        if self.last_message.as_deref() != Some(text) {
            self.finish_message(text);
        }
    }

    fn report_usage(&mut self, record: &Value) {
        let read = count_at(record, "/usage/cache_read_input_tokens");
        let written = count_at(record, "/usage/cache_creation_input_tokens");
        let fresh = count_at(record, "/usage/input_tokens");
        let cost = micro_usd_at(record, "/total_cost_usd").map(|total| {
            // A total below the last one is that of a new session.
            let since_last = total.checked_sub(self.reported_cost_micro_usd);
            self.reported_cost_micro_usd = total;
            since_last.unwrap_or(total)
        });
        // `input_tokens` counts only what the cache neither had nor got. The prompt is the sum.
        self.turn.report_usage(Usage {
            prompt_tokens: fresh.saturating_add(read).saturating_add(written),
            completion_tokens: count_at(record, "/usage/output_tokens"),
            cached_tokens: read,
            cost_micro_usd: cost,
        });
    }

    /// Ends the turn if the program does not have the session that it should resume.
    pub(super) fn end_for_lost_session(&mut self, text: &str) -> bool {
        if !self.is_resuming || !text.contains(UNKNOWN_SESSION) {
            return false;
        }
        // The program says it once more on its error output when it exits.
        self.is_resuming = false;
        self.turn.lose_session(text);
        true
    }
}
