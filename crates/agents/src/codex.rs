//! `codex app-server`: JSON-RPC on lines, with calls in both directions.
//!
//! ```text
//! us                                codex
//! initialize                   →
//! initialized, thread/start    →    (or thread/resume)
//! turn/start                   →
//!                              ←    item/started, item/agentMessage/delta, item/completed
//!                              ←    item/commandExecution/requestApproval
//! {"decision": "accept"}       →
//! turn/steer, turn/interrupt   →    (they name the turn)
//!                              ←    turn/completed (only this ends the turn)
//! ```
//!
//! A prompt that comes before the thread exists waits for it, and an interrupt that comes before the
//! turn has a name waits for the name. Messages about other threads and about earlier turns are
//! ignored: the program also reports the threads of its subagents.

mod approval;
mod item;
mod notification;
mod thread;
mod usage;

use serde_json::{Value, json};
use turnkeep_types::Timestamp;

use crate::event::{Action, TurnEnd};
use crate::field::text_at;
use crate::json_rpc::{self, Message, OpenCalls};
use crate::protocol::{AgentProtocol, Exit, Features};
use crate::request::{Answer, Request, RequestError};
use crate::turn::TurnRecorder;
use approval::{Approval, read_approval};
use thread::ThreadStage;
use usage::ThreadUsage;

/// What a call of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Initialize,
    StartThread,
    ResumeThread,
    StartTurn,
    /// Its failure is only worth a line in the log.
    Steer,
    Interrupt,
}

/// The state of one `codex app-server` process.
#[derive(Debug)]
pub struct Codex {
    turn: TurnRecorder<Approval>,
    calls: OpenCalls<Purpose>,
    stage: ThreadStage,
    /// The program's name of the open turn.
    turn_name: Option<String>,
    /// The name of the turn before. Until the open turn has a name, only this tells the two apart.
    last_turn_name: Option<String>,
    usage: ThreadUsage,
    limit_resets_at: Option<Timestamp>,
}

impl Default for Codex {
    fn default() -> Self {
        Self::new()
    }
}

impl Codex {
    /// The machine of a program that is about to start.
    pub fn new() -> Self {
        Self {
            turn: TurnRecorder::new(),
            calls: OpenCalls::new(),
            stage: ThreadStage::NotStarted,
            turn_name: None,
            last_turn_name: None,
            usage: ThreadUsage::default(),
            limit_resets_at: None,
        }
    }

    fn call(&mut self, purpose: Purpose, method: &str, params: &Value) {
        let message = self.calls.call(purpose, method, params);
        self.turn.write(&message);
    }

    fn send(&mut self, prompt: String) -> Result<(), RequestError> {
        if matches!(self.stage, ThreadStage::NotStarted) {
            return Err(RequestError::NotStarted);
        }
        self.turn.open()?;
        if let Some(name) = self.turn_name.take() {
            self.last_turn_name = Some(name);
        }
        match &mut self.stage {
            ThreadStage::Starting {
                prompt: waiting, ..
            } => *waiting = Some(prompt),
            ThreadStage::Ready { .. } => self.start_turn(&prompt),
            ThreadStage::Broken(end) => {
                let end = end.clone();
                self.turn.end(end);
            }
            ThreadStage::NotStarted => {}
        }
        Ok(())
    }

    fn start_turn(&mut self, prompt: &str) {
        let input = json!([{"type": "text", "text": prompt}]);
        let params = json!({"threadId": self.thread(), "input": input});
        self.call(Purpose::StartTurn, "turn/start", &params);
    }

    fn steer(&mut self, text: &str) -> Result<(), RequestError> {
        self.turn.require_open()?;
        // The program takes input only for a turn that it has named.
        let Some(turn_name) = self.turn_name.clone() else {
            return Err(RequestError::NoTurn);
        };
        let input = json!([{"type": "text", "text": text}]);
        let thread = self.thread();
        let params = json!({"threadId": thread, "input": input, "expectedTurnId": turn_name});
        self.call(Purpose::Steer, "turn/steer", &params);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), RequestError> {
        self.turn.require_open()?;
        if let ThreadStage::Starting { prompt, .. } = &mut self.stage {
            // The program never saw the prompt.
            *prompt = None;
            self.turn.end(TurnEnd::NotBegun);
            return Ok(());
        }
        self.turn.mark_interrupting();
        self.interrupt_named_turn();
        Ok(())
    }

    fn interrupt_named_turn(&mut self) {
        if let Some(turn_name) = self.turn_name.clone() {
            let params = json!({"threadId": self.thread(), "turnId": turn_name});
            self.call(Purpose::Interrupt, "turn/interrupt", &params);
        }
    }

    fn answer(&mut self, request_id: &str, answer: &Answer) -> Result<(), RequestError> {
        let approval = self.turn.open_permission(request_id)?;
        let message = approval.answer(answer)?;
        self.turn.take_permission(request_id);
        self.turn.write(&message);
        // A denial has no place for a reason, so it follows as input to the same turn.
        if let Answer::Deny { reason } = answer
            && !reason.trim().is_empty()
            && self.turn_name.is_some()
        {
            self.steer(reason)?;
        }
        Ok(())
    }

    fn thread(&self) -> &str {
        match &self.stage {
            ThreadStage::Ready { thread, .. } => thread,
            _ => "",
        }
    }

    fn cwd(&self) -> &str {
        match &self.stage {
            ThreadStage::Ready { cwd, .. } => cwd,
            _ => "",
        }
    }

    fn receive_message(&mut self, message: Message) {
        match message {
            Message::Call { id, method, params } => self.receive_call(&id, &method, &params),
            Message::Notification { method, params } => self.receive_notification(&method, &params),
            Message::Response { id, outcome } => {
                if let Some(purpose) = self.calls.take(&id) {
                    self.receive_response(purpose, outcome);
                }
            }
        }
    }

    fn receive_response(&mut self, purpose: Purpose, outcome: Result<Value, Value>) {
        match (purpose, outcome) {
            (Purpose::Initialize, Ok(_)) => self.open_thread(),
            (Purpose::StartThread | Purpose::ResumeThread, Ok(result)) => {
                self.receive_thread(&result);
            }
            (Purpose::StartTurn, Ok(result)) => {
                self.receive_turn_name(text_at(&result, "/turn/id"));
            }
            (Purpose::Steer | Purpose::Interrupt, Ok(_)) => {}
            (Purpose::ResumeThread, Err(error)) => self.replace_lost_thread(&error),
            (Purpose::Initialize | Purpose::StartThread, Err(error)) => self.break_down(&error),
            (Purpose::StartTurn, Err(error)) => {
                let end = self.classify_error(&error);
                self.turn.end_with_error(end);
            }
            // The turn goes on, or it ended in the meantime.
            (Purpose::Steer | Purpose::Interrupt, Err(error)) => {
                let reason = text_at(&error, "/message").unwrap_or("unknown error");
                self.turn
                    .log(&format!("codex rejected {purpose:?}: {reason}"));
            }
        }
    }

    fn receive_turn_name(&mut self, name: Option<&str>) {
        if !self.turn.is_open() || self.turn_name.is_some() {
            return;
        }
        // A late message about the last turn must not give this one its name.
        self.turn_name = name
            .filter(|name| Some(*name) != self.last_turn_name.as_deref())
            .map(str::to_owned);
        // An interrupt needs the name, so one that came earlier has waited for it.
        if self.turn.is_interrupting() {
            self.interrupt_named_turn();
        }
    }

    fn receive_call(&mut self, id: &Value, method: &str, params: &Value) {
        let item = text_at(params, "/itemId").and_then(|item| self.turn.open_tool(item));
        let Some(asked) = read_approval(id, method, params, item, self.cwd()) else {
            // Without an answer the program would wait forever.
            return self.turn.write(&json_rpc::unknown_method(id, method));
        };
        // Made first: a question that is taken moves into the recorder.
        let decline = asked.approval.decline();
        let is_ours = self.is_about_open_turn(params);
        if !is_ours || !self.turn.ask_permission(asked.request, asked.approval) {
            self.turn.write(&decline);
        }
    }
}

impl AgentProtocol for Codex {
    fn features(&self) -> Features {
        Features {
            resume: true,
            steer: true,
            approvals: true,
            deny_reason: true,
            usage: true,
            mcp: true,
            plan_mode: true,
            ..Features::default()
        }
    }

    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError> {
        match request {
            Request::Start(options) => self.start(options)?,
            Request::Send { prompt } => self.send(prompt)?,
            Request::Steer { text } => self.steer(&text)?,
            Request::Interrupt => self.interrupt()?,
            Request::Answer { request_id, answer } => self.answer(&request_id, &answer)?,
            Request::ToolResults(_) => return Err(RequestError::NoTurn),
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
