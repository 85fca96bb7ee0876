//! Calls of the server's tools by an agent that takes no MCP server over HTTP: lines of its messages.
//!
//! The response to the prompt ends a message with calls, but not the turn: the results are the next
//! prompt of the session, and the turn goes on with it.

use crate::event::{AgentEvent, TurnEnd};
use crate::request::{LineResult, RequestError};
use crate::tool_line::{PendingCalls, render_results};

use super::Acp;

/// The calls of the open turn.
#[derive(Debug, Default)]
pub(super) struct LineCalls {
    pending: PendingCalls,
    /// The agent has stopped, and the turn waits for the results of its calls.
    pub(super) awaits_results: bool,
}

impl Acp {
    /// Whether the agent calls tools by lines. The text of other agents is never a call.
    pub(super) fn calls_by_lines(&self) -> bool {
        self.capabilities.is_some_and(|can| !can.http_mcp)
    }

    /// Reports a whole message: its calls, and its text without them.
    pub(super) fn report_message(&mut self, text: &str) {
        if self.turn.is_open() {
            for event in self.line_calls.pending.read_message(text) {
                self.turn.emit(event);
            }
        }
    }

    /// Ends a turn whose agent has said all, unless it waits for results.
    pub(super) fn complete_or_await(&mut self) {
        if self.line_calls.pending.is_empty() {
            self.turn.end(TurnEnd::Completed);
        } else if self.turn.is_interrupting() {
            self.turn.end(TurnEnd::Interrupted);
        } else {
            self.line_calls.awaits_results = true;
            self.turn.emit_in_turn(AgentEvent::AwaitsToolResults);
        }
    }

    pub(super) fn send_results(&mut self, results: &[LineResult]) -> Result<(), RequestError> {
        if !self.turn.is_open() || !self.line_calls.awaits_results {
            return Err(RequestError::NoTurn);
        }
        self.line_calls.awaits_results = false;
        let notes = self.line_calls.pending.take_notes();
        self.send_prompt(&render_results(results, &notes));
        Ok(())
    }
}
