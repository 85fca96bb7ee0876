//! The Agent Client Protocol, which `gemini --acp`, `opencode acp` and others speak: JSON-RPC on
//! lines, with calls in both directions.
//!
//! ```text
//! us                                     agent
//! initialize                        →
//! session/new                       →    (or session/resume, session/load)
//! session/set_mode                  →    (only for a read-only agent or one that never asks)
//! session/prompt                    →
//!                                   ←    session/update (chunks of text, calls of tools)
//!                                   ←    session/request_permission
//! {"outcome": "selected", …}        →
//! session/cancel                    →
//!                                   ←    the response to session/prompt ends the turn
//! ```
//!
//! The protocol has no whole messages, only chunks, which the machine puts together. A
//! loaded session repeats its past as updates before it is ready; those are ignored. Gemini CLI
//! begins before it says that the session is ready, and goes on afterwards ([`Past`]).
//!
//! An agent that takes no MCP server over HTTP calls tools by lines of its messages
//! ([`crate::tool_line`]); the results are the next prompt.

mod end;
mod line_calls;
mod mode;
mod permission;
mod session;
mod tool;
mod update;

use serde_json::{Value, json};

use crate::event::{Action, PermissionRequest, ToolResult, TurnEnd};
use crate::field::{object_at, text_at};
use crate::json_rpc::{self, Message, OpenCalls, id_text};
use crate::message_text::MessageText;
use crate::protocol::{AgentProtocol, Exit, Features};
use crate::request::{Access, Answer, Permissions, Request, RequestError};
use crate::turn::TurnRecorder;
use end::describe_error;
use line_calls::LineCalls;
use permission::PermissionOptions;
use session::{Capabilities, SessionStage};
use tool::ToolTable;

/// What a call of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Initialize,
    NewSession,
    RestoreSession,
    SetMode,
    /// The number of the turn: a late response must not end a later turn.
    Prompt(u64),
}

/// Whether updates about a loaded session repeat what was said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// They do not, or no more.
    Over,
    /// The agent has repeated nothing yet, so it may do so now.
    Possible,
    /// They do. The past begins with a message of the user and ends with the list of commands.
    Repeated,
}

/// The state of one agent process.
#[derive(Debug)]
pub struct Acp {
    turn: TurnRecorder<PermissionOptions>,
    calls: OpenCalls<Purpose>,
    stage: SessionStage,
    capabilities: Option<Capabilities>,
    turn_number: u64,
    text: MessageText,
    tools: ToolTable,
    line_calls: LineCalls,
    past: Past,
    /// The cost of the session so far; unknown after a restore.
    reported_cost_micro_usd: Option<u64>,
    has_cost: bool,
}

impl Default for Acp {
    fn default() -> Self {
        Self::new()
    }
}

impl Acp {
    /// The machine of a program that is about to start.
    pub fn new() -> Self {
        Self {
            turn: TurnRecorder::new(),
            calls: OpenCalls::new(),
            stage: SessionStage::NotStarted,
            capabilities: None,
            turn_number: 0,
            text: MessageText::default(),
            tools: ToolTable::default(),
            line_calls: LineCalls::default(),
            past: Past::Over,
            reported_cost_micro_usd: Some(0),
            has_cost: false,
        }
    }

    fn call(&mut self, purpose: Purpose, method: &str, params: &Value) {
        let message = self.calls.call(purpose, method, params);
        self.turn.write(&message);
    }

    fn send(&mut self, prompt: String) -> Result<(), RequestError> {
        if matches!(self.stage, SessionStage::NotStarted) {
            return Err(RequestError::NotStarted);
        }
        self.turn.open()?;
        self.turn_number += 1;
        // An interrupted turn may have left a half message and unfinished calls.
        self.text.discard();
        self.tools.clear();
        self.line_calls = LineCalls::default();
        match &mut self.stage {
            SessionStage::Starting {
                prompt: waiting, ..
            } => *waiting = Some(prompt),
            SessionStage::Ready { .. } => self.send_prompt(&prompt),
            SessionStage::Broken(end) => {
                let end = end.clone();
                self.turn.end(end);
            }
            SessionStage::NotStarted => {}
        }
        Ok(())
    }

    fn send_prompt(&mut self, prompt: &str) {
        let content = json!([{"type": "text", "text": prompt}]);
        let params = json!({"sessionId": self.session(), "prompt": content});
        let purpose = Purpose::Prompt(self.turn_number);
        self.call(purpose, "session/prompt", &params);
    }

    fn interrupt(&mut self) -> Result<(), RequestError> {
        self.turn.require_open()?;
        if let SessionStage::Starting { prompt, .. } = &mut self.stage {
            // The agent never saw the prompt.
            *prompt = None;
            self.turn.end(TurnEnd::NotBegun);
            return Ok(());
        }
        if self.line_calls.awaits_results {
            // The agent works on nothing that it could cancel.
            self.turn.end(TurnEnd::Interrupted);
            return Ok(());
        }
        self.turn.mark_interrupting();
        let params = json!({"sessionId": self.session()});
        let message = json_rpc::notification("session/cancel", &params);
        self.turn.write(&message);
        // The protocol wants every open question answered with "cancelled".
        for options in self.turn.withdraw_all_permissions() {
            self.turn.write(&options.cancel());
        }
        Ok(())
    }

    fn answer(&mut self, request_id: &str, answer: &Answer) -> Result<(), RequestError> {
        let options = self.turn.open_permission(request_id)?;
        let message = options.answer(answer)?;
        self.turn.write(&message);
        let options = self.turn.take_permission(request_id);
        if let (Some(options), Answer::Deny { reason }) = (options, answer) {
            self.complete_denied(options.call, reason);
        }
        Ok(())
    }

    /// Completes a denied call. Some agents never mention it again.
    fn complete_denied(&mut self, provider_id: String, reason: &str) {
        let reason = match reason.trim() {
            "" => "denied",
            reason => reason,
        };
        self.turn.complete_tool(ToolResult {
            provider_id,
            ok: false,
            output: None,
            error: Some(reason.to_owned()),
        });
    }

    fn session(&self) -> &str {
        match &self.stage {
            SessionStage::Ready { session, .. } => session,
            _ => "",
        }
    }

    fn receive_message(&mut self, message: Message) {
        match message {
            Message::Call { id, method, params } => self.receive_call(&id, &method, &params),
            Message::Notification { method, params } => {
                if method == "session/update" {
                    self.receive_update(&params);
                }
            }
            Message::Response { id, outcome } => {
                if let Some(purpose) = self.calls.take(&id) {
                    self.receive_response(purpose, outcome);
                }
            }
        }
    }

    fn receive_response(&mut self, purpose: Purpose, outcome: Result<Value, Value>) {
        match (purpose, outcome) {
            (Purpose::Initialize, Ok(result)) => self.receive_capabilities(&result),
            (Purpose::NewSession | Purpose::RestoreSession, Ok(result)) => {
                self.receive_session(&result);
            }
            (Purpose::SetMode, Ok(_)) => self.become_ready(),
            (Purpose::SetMode, Err(error)) => {
                let reason = text_at(&error, "/message").unwrap_or("unknown error");
                self.turn
                    .log(&format!("the agent rejected its mode: {reason}"));
                // It still asks, and its questions get the answers that the mode stands for.
                self.become_ready();
            }
            (Purpose::Prompt(turn), Ok(result)) => self.receive_stop(turn, &result),
            (Purpose::Prompt(turn), Err(error)) => self.receive_prompt_error(turn, &error),
            (Purpose::RestoreSession, Err(error)) => {
                self.replace_lost_session(&describe_error(&error));
            }
            (Purpose::Initialize | Purpose::NewSession, Err(error)) => self.break_down(&error),
        }
    }

    fn receive_call(&mut self, id: &Value, method: &str, params: &Value) {
        if method == "session/request_permission" {
            self.receive_question(id, params);
        } else {
            // The agent waits for every answer, also for one about files or terminals.
            self.turn.write(&json_rpc::unknown_method(id, method));
        }
    }

    fn receive_question(&mut self, id: &Value, params: &Value) {
        let options = PermissionOptions::read(id, params);
        if !self.is_about_open_turn(params) {
            return self.turn.write(&options.cancel());
        }
        self.finish_text();
        let asked = object_at(params, "/toolCall");
        // Some agents describe a call only here.
        let Some(call) = self.tools.update(&asked, &id_text(id)) else {
            return self.turn.write(&options.cancel());
        };
        if let Some(answer) = self.standing_answer() {
            self.turn.propose_tool(call);
            self.turn.write(&options.answer_or_cancel(&answer));
            if let Answer::Deny { reason } = answer {
                self.complete_denied(options.call, &reason);
            }
            return;
        }
        let request = PermissionRequest {
            request_id: id_text(id),
            context: self.tools.describe(&call, self.cwd()),
            can_allow_always: options.can_allow_always(),
            call,
        };
        let cancel = options.cancel();
        if !self.turn.ask_permission(request, options) {
            self.turn.write(&cancel);
        }
    }

    /// The answer to all questions of an agent that must not ask. Not every agent has a mode for
    /// that.
    fn standing_answer(&self) -> Option<Answer> {
        let SessionStage::Ready { options, .. } = &self.stage else {
            return None;
        };
        match (options.permissions, options.access) {
            (Permissions::Gated, _) => None,
            (Permissions::Skip, Access::Write) => Some(Answer::Allow),
            (Permissions::Skip, Access::ReadOnly) => Some(Answer::Deny {
                reason: "the agent is read-only".to_owned(),
            }),
        }
    }

    fn is_about_open_turn(&self, params: &Value) -> bool {
        self.turn.is_open() && self.is_about_session(params)
    }

    fn is_about_session(&self, params: &Value) -> bool {
        let session = self.session();
        !session.is_empty() && text_at(params, "/sessionId") == Some(session)
    }

    fn cwd(&self) -> &str {
        match &self.stage {
            SessionStage::Ready { options, .. } => &options.cwd,
            _ => "",
        }
    }
}

impl AgentProtocol for Acp {
    fn features(&self) -> Features {
        let known = self.capabilities;
        Features {
            resume: known.is_none_or(|can| can.load || can.resume),
            approvals: true,
            usage: true,
            cost: self.has_cost,
            mcp: known.is_none_or(|can| can.http_mcp),
            plan_mode: true,
            ..Features::default()
        }
    }

    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError> {
        match request {
            Request::Start(options) => self.start(options)?,
            Request::Send { prompt } => self.send(prompt)?,
            Request::Interrupt => self.interrupt()?,
            Request::Answer { request_id, answer } => self.answer(&request_id, &answer)?,
            Request::Steer { .. } => return Err(RequestError::Unsupported("take input in a turn")),
            Request::ToolResults(results) => self.send_results(&results)?,
            Request::Reset { .. } => {
                self.turn.end(TurnEnd::Interrupted);
                self.turn.close_input();
            }
            Request::Close => self.turn.close_input(),
        }
        Ok(self.turn.take_actions())
    }

    fn receive_line(&mut self, line: &[u8]) -> Vec<Action> {
        match json_rpc::parse_message(line) {
            Some(message) => self.receive_message(message),
            None => self.turn.log_line(line),
        }
        self.turn.take_actions()
    }

    fn receive_end(&mut self, exit: &Exit) -> Vec<Action> {
        self.turn.end_with_exit(exit);
        self.turn.take_actions()
    }
}
