//! The program's reports about its thread and about the open turn.

use serde_json::Value;

use crate::event::{AgentEvent, TurnEnd};
use crate::failure::{self, ProviderError};
use crate::field::{count_at, first_text, flag_at, list_at, text_at};
use crate::json_rpc::id_text;

use super::Codex;
use super::item::{message_of, thought_of, tool_call_of, tool_result_of};

impl Codex {
    pub(super) fn receive_notification(&mut self, method: &str, params: &Value) {
        if text_at(params, "/threadId").is_some_and(|thread| thread != self.thread()) {
            return;
        }
        match method {
            "thread/tokenUsage/updated" => self.receive_usage(params),
            "account/rateLimits/updated" => self.receive_rate_limits(params),
            "serverRequest/resolved" => self.receive_resolved(params),
            "warning" | "configWarning" | "deprecationNotice" => self.receive_warning(params),
            "turn/started" => self.receive_turn_name(text_at(params, "/turn/id")),
            "turn/completed" => self.receive_turn_completed(params),
            _ if self.is_about_open_turn(params) => self.receive_progress(method, params),
            _ => {}
        }
    }

    /// Whether a message is about the open turn. A message that names no turn is.
    pub(super) fn is_about_open_turn(&self, params: &Value) -> bool {
        let Some(named) = first_text(params, &["/turnId", "/turn/id"]) else {
            return self.turn.is_open();
        };
        let is_this = match &self.turn_name {
            Some(open) => open == named,
            None => self.last_turn_name.as_deref() != Some(named),
        };
        self.turn.is_open() && is_this
    }

    fn receive_progress(&mut self, method: &str, params: &Value) {
        let delta = text_at(params, "/delta").unwrap_or_default();
        match method {
            "item/started" => self.receive_item_started(params),
            "item/completed" => self.receive_item_completed(params),
            "item/commandExecution/terminalInteraction" => self.receive_interaction(params),
            "item/agentMessage/delta" => self.turn.emit_text(AgentEvent::AnswerDelta, delta),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.turn.emit_text(AgentEvent::ThinkingDelta, delta);
            }
            // Always the whole diff, also an empty one after a revert.
            "turn/diff/updated" => {
                let diff = text_at(params, "/diff").unwrap_or_default().to_owned();
                self.turn.emit(AgentEvent::DiffPreview(diff));
            }
            "turn/plan/updated" => self.receive_plan(params),
            "error" => self.receive_error(params),
            _ => {}
        }
    }

    fn receive_item_started(&mut self, params: &Value) {
        let Some(item) = params.get("item") else {
            return;
        };
        // Messages and thoughts begin with their first delta.
        if let Some(call) = tool_call_of(item) {
            self.turn.propose_tool(call);
        } else if text_at(item, "/type") == Some("contextCompaction") {
            self.turn.report_progress("compacts its context");
        }
    }

    fn receive_item_completed(&mut self, params: &Value) {
        let Some(item) = params.get("item") else {
            return;
        };
        if let Some(text) = message_of(item) {
            self.turn.emit(AgentEvent::AnswerFinal(text));
        } else if let Some(text) = thought_of(item) {
            self.turn.emit(AgentEvent::ThinkingFinal(text));
        } else if let Some(call) = tool_call_of(item) {
            // Some tools are only reported when they are done.
            self.turn.propose_tool(call);
            self.turn.complete_tool(tool_result_of(item));
        }
    }

    /// The agent went on with a command that runs in the background. It typed something, or only
    /// looked. The program reports a mere look only while the command runs, and shows no item for it.
    fn receive_interaction(&mut self, params: &Value) {
        if text_at(params, "/stdin").is_some_and(str::is_empty) {
            let call = None;
            self.turn.emit_in_turn(AgentEvent::CommandPolled { call });
        }
    }

    fn receive_plan(&mut self, params: &Value) {
        let steps = list_at(params, "/plan").iter();
        let current = steps
            .filter(|step| text_at(step, "/status") == Some("inProgress"))
            .find_map(|step| text_at(step, "/step"));
        if let Some(step) = current {
            self.turn.report_progress(step);
        }
    }

    /// The program repeats a final error in `turn/completed`, so only a passing one is reported here.
    fn receive_error(&mut self, params: &Value) {
        let message = text_at(params, "/error/message").unwrap_or_default();
        if flag_at(params, "/willRetry") {
            self.turn
                .report_progress(&format!("tries again: {message}"));
        } else {
            self.turn.log(message);
        }
    }

    fn receive_warning(&mut self, params: &Value) {
        let text = first_text(params, &["/message", "/summary"]);
        self.turn.log(text.unwrap_or_default());
    }

    fn receive_usage(&mut self, params: &Value) {
        // A resumed thread reports its past before its first turn.
        let is_turn_open = self.turn.is_open();
        let usage = self.usage.advance(params, is_turn_open);
        self.turn.report_usage(usage);
    }

    /// Remembers when the last of the used-up windows ends. The error that a used-up window causes
    /// does not say it.
    fn receive_rate_limits(&mut self, params: &Value) {
        let windows = ["/rateLimits/primary", "/rateLimits/secondary"];
        let used_up = windows
            .iter()
            .filter_map(|window| params.pointer(window))
            .filter(|window| count_at(window, "/usedPercent") >= 100)
            .map(|window| count_at(window, "/resetsAt"));
        let resets_at = used_up.max().unwrap_or(0);
        self.limit_resets_at = failure::reset_time_from_seconds(resets_at);
    }

    /// The program also confirms our own answers this way; those questions are not open any more.
    fn receive_resolved(&mut self, params: &Value) {
        if let Some(id) = params.get("requestId") {
            self.turn.withdraw_permission(&id_text(id));
        }
    }

    fn receive_turn_completed(&mut self, params: &Value) {
        if !self.is_about_open_turn(params) {
            return;
        }
        match text_at(params, "/turn/status").unwrap_or_default() {
            "completed" => self.turn.end(TurnEnd::Completed),
            "interrupted" => self.turn.end(TurnEnd::Interrupted),
            _ => {
                let error = params.pointer("/turn/error").unwrap_or(&Value::Null);
                let end = self.classify_error(error);
                self.turn.end_with_error(end);
            }
        }
    }

    /// The word for an error is a string, or an object with one key that holds the HTTP status.
    pub(super) fn classify_error(&self, error: &Value) -> TurnEnd {
        let info = error.pointer("/codexErrorInfo");
        let details = info
            .and_then(Value::as_object)
            .and_then(|info| info.iter().next());
        let code = info.and_then(Value::as_str);
        let code = code.or(details.map(|(code, _)| code.as_str()));
        let status = details.and_then(|(_, details)| details.pointer("/httpStatusCode"));
        failure::classify(&ProviderError {
            status: status.and_then(Value::as_u64),
            code: code.unwrap_or_default(),
            message: text_at(error, "/message").unwrap_or_default(),
            resets_at: self.limit_resets_at,
        })
    }
}
