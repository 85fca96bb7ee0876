//! One turn as the caller sees it, and the actions that a machine has collected.
//!
//! All machines report through a [`TurnRecorder`], so that its promises hold for each of them: a turn
//! ends once, a tool is proposed and completed once, and a permission is open until it is answered
//! or withdrawn. Events that belong to a turn are dropped while no turn is open: a program may
//! still talk about a turn that the caller has already ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::event::{Action, AgentEvent, PermissionRequest, ToolCall, ToolResult, TurnEnd, Usage};
use crate::field::{shorten, weight_of};
use crate::protocol::Exit;
use crate::request::RequestError;

/// A program's id of a call or of a question is at most this long; longer ones are ignored.
pub(crate) const ID_BYTES_MAX: usize = 1024;
/// The calls of tools in a turn. The recorder ignores further ones.
const TURN_TOOLS_MAX: usize = 10_000;
/// The recorder remembers the arguments of open calls up to this sum; of further calls only the ids.
const OPEN_TOOLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The open questions of a program. Further ones are denied at once.
const OPEN_PERMISSIONS_MAX: usize = 64;
/// A question about larger arguments is not taken: its answer may have to repeat them.
const PERMISSION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A longer line for the log is cut.
const LOG_CHARACTERS_MAX: usize = 8 * 1024;
const PROGRESS_CHARACTERS_MAX: usize = 140;
const LOST_REASON_CHARACTERS_MAX: usize = 500;

/// Whether a turn is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnStage {
    Closed,
    Open,
    /// The caller wants it to end.
    Interrupting,
}

/// The open turn of a program. `P` is what the protocol must remember of an open question.
#[derive(Debug)]
pub(crate) struct TurnRecorder<P> {
    stage: TurnStage,
    actions: Vec<Action>,
    open_tools: BTreeMap<String, ToolCall>,
    open_tools_bytes: usize,
    /// The ids of all calls of this turn, so that a repeated record changes nothing.
    seen_tools: BTreeSet<String>,
    permissions: BTreeMap<String, P>,
}

impl<P> TurnRecorder<P> {
    pub(crate) fn new() -> Self {
        Self {
            stage: TurnStage::Closed,
            actions: Vec::new(),
            open_tools: BTreeMap::new(),
            open_tools_bytes: 0,
            seen_tools: BTreeSet::new(),
            permissions: BTreeMap::new(),
        }
    }

    /// Everything that the caller must do now.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Writes a message as one line.
    pub(crate) fn write(&mut self, message: &Value) {
        self.write_text(format!("{message}\n"));
    }

    pub(crate) fn write_text(&mut self, text: String) {
        self.actions.push(Action::Write(text));
    }

    pub(crate) fn close_input(&mut self) {
        self.actions.push(Action::CloseInput);
    }

    pub(crate) fn signal_interrupt(&mut self) {
        self.actions.push(Action::SignalInterrupt);
    }

    /// Emits an event that may come at any time.
    pub(crate) fn emit(&mut self, event: AgentEvent) {
        self.actions.push(Action::Emit(event));
    }

    /// Emits an event of the open turn.
    pub(crate) fn emit_in_turn(&mut self, event: AgentEvent) {
        if self.is_open() {
            self.emit(event);
        }
    }

    /// Emits a text of the open turn. Empty texts say nothing.
    pub(crate) fn emit_text(&mut self, event: impl FnOnce(String) -> AgentEvent, text: &str) {
        if !text.is_empty() {
            self.emit_in_turn(event(text.to_owned()));
        }
    }

    pub(crate) fn log_line(&mut self, line: &[u8]) {
        self.log(String::from_utf8_lossy(line).trim_end());
    }

    pub(crate) fn log(&mut self, text: &str) {
        if !text.is_empty() {
            self.emit(AgentEvent::Log(shorten(text, LOG_CHARACTERS_MAX)));
        }
    }

    pub(crate) fn report_progress(&mut self, text: &str) {
        let text = shorten(text, PROGRESS_CHARACTERS_MAX);
        self.emit_text(AgentEvent::Progress, &text);
    }

    pub(crate) fn report_usage(&mut self, usage: Usage) {
        if !usage.is_nothing() {
            self.emit(AgentEvent::Usage(usage));
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stage != TurnStage::Closed
    }

    /// Whether the caller has asked for the end of the open turn.
    pub(crate) fn is_interrupting(&self) -> bool {
        self.stage == TurnStage::Interrupting
    }

    pub(crate) fn open(&mut self) -> Result<(), RequestError> {
        if self.is_open() {
            return Err(RequestError::TurnOpen);
        }
        self.stage = TurnStage::Open;
        // Programs may number their calls anew in each turn.
        self.seen_tools.clear();
        Ok(())
    }

    pub(crate) fn require_open(&self) -> Result<(), RequestError> {
        if self.is_open() {
            Ok(())
        } else {
            Err(RequestError::NoTurn)
        }
    }

    pub(crate) fn mark_interrupting(&mut self) {
        if self.is_open() {
            self.stage = TurnStage::Interrupting;
        }
    }

    /// Records a call. The first record of a call counts.
    pub(crate) fn propose_tool(&mut self, call: ToolCall) {
        let id = &call.provider_id;
        let is_acceptable = self.is_open()
            && !id.is_empty()
            && id.len() <= ID_BYTES_MAX
            && self.seen_tools.len() < TURN_TOOLS_MAX;
        if is_acceptable && self.seen_tools.insert(id.clone()) {
            self.remember_tool(call.clone());
            self.emit(AgentEvent::ToolProposed(call));
        }
    }

    fn remember_tool(&mut self, mut call: ToolCall) {
        // The arguments help to describe the call. Its id must stay, or its result would be dropped
        // as unknown.
        if self.open_tools_bytes + weight_of(&call.args) > OPEN_TOOLS_BYTES_MAX {
            call.args = Value::Null;
        }
        self.open_tools_bytes += weight_of(&call.args);
        self.open_tools.insert(call.provider_id.clone(), call);
    }

    /// The call with this id, if it is not completed.
    pub(crate) fn open_tool(&self, provider_id: &str) -> Option<&ToolCall> {
        self.open_tools.get(provider_id)
    }

    /// Records a result. Results of unknown and of completed calls are dropped.
    pub(crate) fn complete_tool(&mut self, result: ToolResult) {
        if let Some(call) = self.open_tools.remove(&result.provider_id) {
            self.open_tools_bytes -= weight_of(&call.args);
            self.emit(AgentEvent::ToolCompleted(result));
        }
    }

    /// Records a question. Returns false if the recorder does not take it: then the machine must deny
    /// it, because the program waits.
    pub(crate) fn ask_permission(&mut self, request: PermissionRequest, remembered: P) -> bool {
        let id = &request.request_id;
        // The questions of a turn that is being interrupted would wait for a person in vain.
        let is_acceptable = self.stage == TurnStage::Open
            && id.len() <= ID_BYTES_MAX
            && request.call.provider_id.len() <= ID_BYTES_MAX
            && weight_of(&request.call.args) <= PERMISSION_BYTES_MAX
            && self.permissions.len() < OPEN_PERMISSIONS_MAX
            && !self.permissions.contains_key(id);
        if !is_acceptable {
            return false;
        }
        self.permissions.insert(id.clone(), remembered);
        // Some programs ask about a call that they have not mentioned before.
        self.propose_tool(request.call.clone());
        self.emit(AgentEvent::PermissionAsked(Box::new(request)));
        true
    }

    pub(crate) fn open_permission(&self, request_id: &str) -> Result<&P, RequestError> {
        let known = self.permissions.get(request_id);
        known.ok_or_else(|| RequestError::UnknownPermission(request_id.to_owned()))
    }

    /// Removes a question that is answered now.
    pub(crate) fn take_permission(&mut self, request_id: &str) -> Option<P> {
        self.permissions.remove(request_id)
    }

    /// Removes a question that the program does not ask any more.
    pub(crate) fn withdraw_permission(&mut self, request_id: &str) {
        if self.permissions.remove(request_id).is_some() {
            self.emit(AgentEvent::PermissionWithdrawn {
                request_id: request_id.to_owned(),
            });
        }
    }

    /// Removes all open questions and returns what was remembered of them.
    pub(crate) fn withdraw_all_permissions(&mut self) -> Vec<P> {
        let open = std::mem::take(&mut self.permissions);
        let mut remembered = Vec::with_capacity(open.len());
        for (request_id, permission) in open {
            self.emit(AgentEvent::PermissionWithdrawn { request_id });
            remembered.push(permission);
        }
        remembered
    }

    /// Ends the open turn. Without one, nothing happens.
    pub(crate) fn end(&mut self, end: TurnEnd) {
        if !self.is_open() {
            return;
        }
        // The program may exit without a word about its open calls and questions. Their events must
        // come before the end of the turn: afterwards they belong to no turn.
        self.withdraw_all_permissions();
        self.open_tools_bytes = 0;
        for provider_id in std::mem::take(&mut self.open_tools).into_keys() {
            self.emit(AgentEvent::ToolCompleted(ToolResult {
                provider_id,
                ok: false,
                output: None,
                error: Some("the turn ended before the tool reported a result".to_owned()),
            }));
        }
        // Last, because the end closes everything before it.
        self.stage = TurnStage::Closed;
        self.emit(AgentEvent::TurnEnded(end));
    }

    /// Ends the open turn with an error of the provider. A turn that is being interrupted counts as
    /// interrupted, because programs report the interrupt as an error.
    pub(crate) fn end_with_error(&mut self, end: TurnEnd) {
        let end = if self.is_interrupting() {
            TurnEnd::Interrupted
        } else {
            end
        };
        self.end(end);
    }

    /// Reports that the session cannot be resumed. The turn that needed it ends so that it is tried
    /// again: the next try has a full prompt.
    pub(crate) fn lose_session(&mut self, reason: &str) {
        let reason = shorten(reason, LOST_REASON_CHARACTERS_MAX);
        self.emit(AgentEvent::SessionLost(reason.clone()));
        self.end_with_error(TurnEnd::Unavailable(reason));
    }

    /// Ends the open turn of a program that is gone.
    pub(crate) fn end_with_exit(&mut self, exit: &Exit) {
        self.end_with_error(crate::failure::classify_exit(exit));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            provider_id: id.to_owned(),
            name: "Bash".to_owned(),
            args: json!({}),
        }
    }

    fn result(id: &str) -> ToolResult {
        ToolResult {
            provider_id: id.to_owned(),
            ok: true,
            output: None,
            error: None,
        }
    }

    fn question(id: &str) -> PermissionRequest {
        PermissionRequest {
            request_id: id.to_owned(),
            call: call("a"),
            context: String::new(),
            can_allow_always: false,
        }
    }

    fn event_names(turn: &mut TurnRecorder<()>) -> Vec<&'static str> {
        let name = |action| match action {
            Action::Emit(AgentEvent::ToolProposed(_)) => "proposed",
            Action::Emit(AgentEvent::ToolCompleted(_)) => "completed",
            Action::Emit(AgentEvent::PermissionAsked(_)) => "asked",
            Action::Emit(AgentEvent::PermissionWithdrawn { .. }) => "withdrawn",
            Action::Emit(AgentEvent::TurnEnded(_)) => "ended",
            _ => "other",
        };
        turn.take_actions().into_iter().map(name).collect()
    }

    #[test]
    fn repeated_records_change_nothing() {
        let mut turn = TurnRecorder::new();
        turn.open().unwrap();
        turn.propose_tool(call("a"));
        turn.propose_tool(call("a"));
        turn.complete_tool(result("unknown"));
        turn.complete_tool(result("a"));
        turn.complete_tool(result("a"));
        turn.propose_tool(call("a"));
        turn.end(TurnEnd::Completed);
        turn.end(TurnEnd::Completed);
        assert_eq!(event_names(&mut turn), ["proposed", "completed", "ended"]);
    }

    #[test]
    fn the_end_of_a_turn_closes_its_tools_and_questions() {
        let mut turn = TurnRecorder::new();
        turn.open().unwrap();
        assert!(turn.ask_permission(question("q"), ()));
        assert!(!turn.ask_permission(question("q"), ()), "asked twice");
        turn.end(TurnEnd::Completed);
        assert!(turn.open_permission("q").is_err());
        let expect = ["proposed", "asked", "withdrawn", "completed", "ended"];
        assert_eq!(event_names(&mut turn), expect);
    }

    #[test]
    fn nothing_of_a_turn_is_reported_while_none_is_open() {
        let mut turn = TurnRecorder::new();
        turn.propose_tool(call("a"));
        turn.emit_in_turn(AgentEvent::AnswerDelta("late".to_owned()));
        assert!(!turn.ask_permission(question("q"), ()));
        turn.end(TurnEnd::Completed);
        assert_eq!(event_names(&mut turn), [""; 0]);
    }

    #[test]
    fn the_same_call_may_come_again_in_the_next_turn() {
        let mut turn = TurnRecorder::new();
        for _ in 0..2 {
            turn.open().unwrap();
            assert_eq!(turn.open(), Err(RequestError::TurnOpen));
            turn.propose_tool(call("a"));
            turn.end(TurnEnd::Completed);
            assert_eq!(event_names(&mut turn), ["proposed", "completed", "ended"]);
        }
    }
}
