//! The agent's reports about its turn: text, tools, plans and cost.

use serde_json::Value;

use crate::event::{AgentEvent, Usage};
use crate::field::{list_at, micro_usd_at, object_at, text_at};
use crate::message_text::TextKind;

use super::{Acp, Past};

impl Acp {
    pub(super) fn receive_update(&mut self, params: &Value) {
        let update = object_at(params, "/update");
        let kind = text_at(&update, "/sessionUpdate").unwrap_or_default();
        // Cost may be reported after the end of the turn that caused it.
        if kind == "usage_update" && self.is_about_session(params) {
            return self.receive_cost(&update);
        }
        if self.is_about_past(kind, params) || !self.is_about_open_turn(params) {
            return;
        }
        match kind {
            "agent_message_chunk" => self.receive_chunk(TextKind::Answer, &update),
            "agent_thought_chunk" => self.receive_chunk(TextKind::Thought, &update),
            "tool_call" | "tool_call_update" => self.receive_tool(&update),
            "plan" => self.receive_plan(&update),
            _ => {}
        }
    }

    /// Whether an update replays the conversation from before the session was loaded.
    fn is_about_past(&mut self, kind: &str, params: &Value) -> bool {
        if !self.is_about_session(params) {
            self.notice_early_past(kind);
            return false;
        }
        let is_past = match (self.past, kind) {
            (Past::Possible, "user_message_chunk") | (Past::Repeated, _) => true,
            (Past::Possible | Past::Over, _) => false,
        };
        let is_end = kind == "available_commands_update";
        self.past = if is_past && !is_end {
            Past::Repeated
        } else {
            Past::Over
        };
        is_past
    }

    /// Takes an update that comes before the session is ready. Most agents are done with the past when
    /// they are ready.
    fn notice_early_past(&mut self, kind: &str) {
        let goes_on = self
            .capabilities
            .is_some_and(|known| known.repeats_past_late);
        self.past = match (self.past, kind) {
            (Past::Possible | Past::Repeated, "available_commands_update") => Past::Over,
            (Past::Possible, "user_message_chunk") if goes_on => Past::Repeated,
            (past, _) if goes_on => past,
            _ => Past::Over,
        };
    }

    fn receive_chunk(&mut self, kind: TextKind, update: &Value) {
        let Some(text) = text_at(update, "/content/text") else {
            return;
        };
        let message_id = text_at(update, "/messageId");
        for event in self.text.add(kind, message_id, text) {
            self.report_text(event);
        }
    }

    pub(super) fn finish_text(&mut self) {
        if let Some(event) = self.text.finish() {
            self.report_text(event);
        }
    }

    fn report_text(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::AnswerFinal(text) if self.calls_by_lines() => self.report_message(&text),
            event => self.turn.emit_in_turn(event),
        }
    }

    /// A pending call is not reported: its arguments may still be incomplete.
    fn receive_tool(&mut self, update: &Value) {
        // A tool ends the message before it.
        self.finish_text();
        let Some(call) = self.tools.update(update, "") else {
            return;
        };
        let status = text_at(update, "/status").unwrap_or_default();
        if matches!(status, "in_progress" | "completed" | "failed") {
            self.turn.propose_tool(call.clone());
        }
        if matches!(status, "completed" | "failed") {
            let result = self.tools.finish(&call.provider_id, status == "completed");
            self.turn.complete_tool(result);
        }
    }

    fn receive_plan(&mut self, update: &Value) {
        let entries = list_at(update, "/entries").iter();
        let current = entries
            .filter(|entry| text_at(entry, "/status") == Some("in_progress"))
            .find_map(|entry| text_at(entry, "/content"));
        if let Some(step) = current {
            self.turn.report_progress(step);
        }
    }

    fn receive_cost(&mut self, update: &Value) {
        if text_at(update, "/cost/currency") != Some("USD") {
            return;
        }
        let Some(total) = micro_usd_at(update, "/cost/amount") else {
            return;
        };
        self.has_cost = true;
        // The first total of a restored session is all past.
        let reported = self.reported_cost_micro_usd.replace(total).unwrap_or(total);
        self.turn.report_usage(Usage {
            cost_micro_usd: Some(total.saturating_sub(reported)),
            ..Usage::default()
        });
    }
}
