//! A small protocol for programs that are written for Turnkeep: one JSON object per line in both
//! directions, with the names and fields of Turnkeep's own events.
//!
//! The program reads:
//!
//! | line | meaning |
//! |---|---|
//! | `{"type":"start","cwd":"/w","sessionId":"s"?,"permissions":"gated"\|"skip","access":"write"\|"read-only"}` | the first line |
//! | `{"type":"message.user","content":"…"}` | a prompt; it opens a turn |
//! | `{"type":"interrupt"}` | end the turn |
//! | `{"type":"approval.resolved","approvalId":"a","resolution":{"status":"approved"\|"denied"\|"modified","modifiedArgs":{}?,"reason":"…"?,"scope":"once"\|"session"}}` | the answer to a question |
//! | `{"type":"tool.results","results":[{"name":"n","ok":true,"result":{}}],"notes":["…"]}` | the results of tool calls, and notes for the model about calls without one; the turn goes on |
//! | `{"type":"reset","commands":["/new"]}` | begin a new session; a program that is driven by its own commands types these |
//!
//! The program prints:
//!
//! | line | meaning |
//! |---|---|
//! | `{"type":"session","sessionId":"s"}` | the name of the session |
//! | `{"type":"session.lost","detail":"…"}` | the session of `start` does not exist |
//! | `{"type":"message.assistant.delta","delta":"…"}` | more text |
//! | `{"type":"message.assistant.final","content":"…"}` | a whole message |
//! | `{"type":"message.assistant.thinking.delta","delta":"…"}`, `….final` | the same for thoughts |
//! | `{"type":"tool.proposed","tool":{"id":"t","name":"n","args":{}}}` | a tool of its own |
//! | `{"type":"tool.completed","toolId":"t","result":{"ok":true,"output":"…"?},"error":{"message":"…"}?}` | its result |
//! | `{"type":"approval.requested","approvalId":"a","tool":{"id":"t","name":"n","args":{}},"context":"…"?}` | a question; the program waits |
//! | `{"type":"approval.withdrawn","approvalId":"a"}` | it waits no more |
//! | `{"tool_call":{"name":"n","args":{}}}` | a call of one of Turnkeep's tools, also as a line of a final message |
//! | `{"type":"telemetry.usage","usage":{"promptTokens":1,"completionTokens":1,"cachedTokens":0?},"costUsd":0.1?}` | what it used since the last such line |
//! | `{"type":"node.progress","summary":"…"}`, `{"type":"node.log","text":"…"}` | for the person who watches |
//! | `{"type":"turn.status","status":"turn.completed"\|"turn.interrupted"\|"turn.failed","detail":"…"?,"httpStatus":429?,"begun":false?}` | ends the turn; `begun` is false in `turn.interrupted` if the prompt was not used |
//!
//! A program that has printed `tool_call` lines prints `turn.completed` to get their results. That
//! does not end the turn: `tool.results` comes, and the turn goes on. Unknown lines and fields are
//! ignored.

use serde_json::{Value, json};

use crate::event::{Action, AgentEvent, PermissionRequest, ToolCall, ToolResult, TurnEnd, Usage};
use crate::failure::{self, ProviderError};
use crate::field::{
    count_at, first_text, flag_at, micro_usd_at, object_at, parse_object, shorten, text_at,
};
use crate::protocol::{AgentProtocol, Exit, Features};
use crate::request::{
    Access, Answer, LineResult, Permissions, Request, RequestError, StartOptions,
};
use crate::tool_line::{PendingCalls, read_call, result_record};
use crate::turn::TurnRecorder;

/// The state of one program.
#[derive(Debug)]
pub struct Jsonl {
    turn: TurnRecorder<()>,
    cwd: Option<String>,
    pending: PendingCalls,
    awaits_results: bool,
    features: Features,
}

impl Default for Jsonl {
    fn default() -> Self {
        Self::new()
    }
}

impl Jsonl {
    /// The machine of a program that is about to start.
    pub fn new() -> Self {
        Self {
            turn: TurnRecorder::new(),
            cwd: None,
            pending: PendingCalls::default(),
            awaits_results: false,
            features: Features {
                resume: true,
                approvals: true,
                edit_args: true,
                deny_reason: true,
                usage: true,
                cost: true,
                plan_mode: true,
                resets_in_process: true,
                ..Features::default()
            },
        }
    }

    /// The machine of the bridge to an interactive program. Such a program asks on its terminal, and
    /// the detector sees neither what it uses nor what it calls its session.
    pub fn for_terminal() -> Self {
        Self {
            features: Features {
                resets_in_process: true,
                ..Features::default()
            },
            ..Self::new()
        }
    }

    fn start(&mut self, options: StartOptions) -> Result<(), RequestError> {
        if self.cwd.is_some() {
            return Err(RequestError::AlreadyStarted);
        }
        let permissions = match options.permissions {
            Permissions::Gated => "gated",
            Permissions::Skip => "skip",
        };
        let access = match options.access {
            Access::Write => "write",
            Access::ReadOnly => "read-only",
        };
        self.turn.write(&json!({
            "type": "start",
            "cwd": options.cwd,
            "sessionId": options.session,
            "permissions": permissions,
            "access": access,
        }));
        self.cwd = Some(options.cwd);
        Ok(())
    }

    fn send(&mut self, prompt: &str) -> Result<(), RequestError> {
        if self.cwd.is_none() {
            return Err(RequestError::NotStarted);
        }
        self.turn.open()?;
        self.pending = PendingCalls::default();
        self.awaits_results = false;
        let message = json!({"type": "message.user", "content": prompt});
        self.turn.write(&message);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), RequestError> {
        self.turn.require_open()?;
        // While the results are awaited, the program waits for us: there is nothing to interrupt.
        if self.awaits_results {
            self.turn.end(TurnEnd::Interrupted);
        } else if self.turn.is_interrupting() {
            self.turn.signal_interrupt();
        } else {
            self.turn.mark_interrupting();
            self.turn.write(&json!({"type": "interrupt"}));
        }
        Ok(())
    }

    fn answer(&mut self, request_id: &str, answer: Answer) -> Result<(), RequestError> {
        self.turn.open_permission(request_id)?;
        let resolution = match answer {
            Answer::Allow => json!({"status": "approved", "scope": "once"}),
            Answer::AllowAlways => json!({"status": "approved", "scope": "session"}),
            Answer::AllowWith(args) if args.is_object() => {
                json!({"status": "modified", "modifiedArgs": args, "scope": "once"})
            }
            Answer::AllowWith(_) => return Err(RequestError::ArgsNotAnObject),
            Answer::Deny { reason } => {
                json!({"status": "denied", "reason": reason, "scope": "once"})
            }
        };
        self.turn.take_permission(request_id);
        let kind = "approval.resolved";
        self.turn
            .write(&json!({"type": kind, "approvalId": request_id, "resolution": resolution}));
        Ok(())
    }

    fn send_results(&mut self, results: &[LineResult]) -> Result<(), RequestError> {
        if !self.turn.is_open() || !self.awaits_results {
            return Err(RequestError::NoTurn);
        }
        self.awaits_results = false;
        let notes = self.pending.take_notes();
        let results: Vec<Value> = results.iter().map(result_record).collect();
        let kind = "tool.results";
        self.turn
            .write(&json!({"type": kind, "results": results, "notes": notes}));
        Ok(())
    }

    fn reset(&mut self, commands: &[String]) {
        self.turn.end(TurnEnd::Interrupted);
        let message = json!({"type": "reset", "commands": commands});
        self.turn.write(&message);
    }

    fn receive_record(&mut self, record: &Value) {
        let text = |path| text_at(record, path).unwrap_or_default();
        match text_at(record, "/type").unwrap_or_default() {
            "session" => self.receive_session(record),
            "session.lost" => self.receive_lost_session(record),
            "message.assistant.delta" => {
                self.turn.emit_text(AgentEvent::AnswerDelta, text("/delta"));
            }
            "message.assistant.final" => self.receive_message(record),
            "message.assistant.thinking.delta" => {
                self.turn
                    .emit_text(AgentEvent::ThinkingDelta, text("/delta"));
            }
            "message.assistant.thinking.final" => {
                self.turn
                    .emit_text(AgentEvent::ThinkingFinal, text("/content"));
            }
            "tool.proposed" => self.turn.propose_tool(read_tool(record)),
            "tool.completed" => self.turn.complete_tool(read_result(record)),
            "approval.requested" => self.receive_question(record),
            "approval.withdrawn" => self.turn.withdraw_permission(text("/approvalId")),
            "telemetry.usage" => self.turn.report_usage(read_usage(record)),
            "node.progress" => self.turn.report_progress(text("/summary")),
            "node.log" => self.turn.log(text("/text")),
            "turn.status" => self.receive_status(record),
            // A call has no type: it is the same line that other programs print into their answers.
            _ => self.receive_call(record),
        }
    }

    fn receive_session(&mut self, record: &Value) {
        if let Some(name) = text_at(record, "/sessionId").filter(|name| !name.is_empty()) {
            self.turn.emit(AgentEvent::Session(name.to_owned()));
        }
    }

    fn receive_lost_session(&mut self, record: &Value) {
        let reason = text_at(record, "/detail").unwrap_or("the session is gone");
        self.turn.lose_session(reason);
    }

    fn receive_message(&mut self, record: &Value) {
        if self.turn.is_open() {
            let content = text_at(record, "/content").unwrap_or_default();
            for event in self.pending.read_message(content) {
                self.turn.emit(event);
            }
        }
    }

    fn receive_call(&mut self, record: &Value) {
        let Some(call) = record.get("tool_call").filter(|_| self.turn.is_open()) else {
            return;
        };
        let event = match read_call(call.clone()) {
            Some(call) => self.pending.take_call(call),
            None => self
                .pending
                .take_malformed(shorten(&record.to_string(), 200)),
        };
        if let Some(event) = event {
            self.turn.emit(event);
        }
    }

    fn receive_question(&mut self, record: &Value) {
        let request_id = text_at(record, "/approvalId").unwrap_or_default();
        let mut call = read_tool(record);
        // A question that names no call stands for one, and a call needs an id to be completed by.
        if call.provider_id.is_empty() {
            request_id.clone_into(&mut call.provider_id);
        }
        let context = text_at(record, "/context").map(|context| shorten(context, 500));
        let cwd = self.cwd.as_deref().unwrap_or_default();
        let request = PermissionRequest {
            request_id: request_id.to_owned(),
            context: context.unwrap_or_else(|| crate::context::describe_call(&call, cwd)),
            can_allow_always: true,
            call,
        };
        // The program waits for an answer, so a question that the recorder does not take is denied.
        if !self.turn.ask_permission(request, ()) {
            let resolution = json!({"status": "denied", "reason": "no turn is open"});
            let kind = "approval.resolved";
            self.turn
                .write(&json!({"type": kind, "approvalId": request_id, "resolution": resolution}));
        }
    }

    fn receive_status(&mut self, record: &Value) {
        match text_at(record, "/status").unwrap_or_default() {
            // With calls in the answer, the turn goes on with their results.
            "turn.completed" if self.pending.is_empty() => self.turn.end(TurnEnd::Completed),
            "turn.completed" => self.await_results(),
            "turn.interrupted" if record.pointer("/begun") == Some(&Value::Bool(false)) => {
                self.turn.end(TurnEnd::NotBegun);
            }
            "turn.interrupted" => self.turn.end(TurnEnd::Interrupted),
            "turn.failed" => {
                let end = failure::classify(&ProviderError {
                    status: record.pointer("/httpStatus").and_then(Value::as_u64),
                    code: "",
                    message: text_at(record, "/detail").unwrap_or_default(),
                    resets_at: None,
                });
                self.turn.end_with_error(end);
            }
            _ => {}
        }
    }

    fn await_results(&mut self) {
        if self.turn.is_interrupting() {
            self.turn.end(TurnEnd::Interrupted);
        } else if self.turn.is_open() && !self.awaits_results {
            self.awaits_results = true;
            self.turn.emit(AgentEvent::AwaitsToolResults);
        }
    }
}

fn read_tool(record: &Value) -> ToolCall {
    ToolCall {
        provider_id: text_at(record, "/tool/id").unwrap_or_default().to_owned(),
        name: text_at(record, "/tool/name").unwrap_or("tool").to_owned(),
        args: object_at(record, "/tool/args"),
    }
}

fn read_result(record: &Value) -> ToolResult {
    let error = first_text(record, &["/error/message", "/error"]);
    ToolResult {
        provider_id: text_at(record, "/toolId").unwrap_or_default().to_owned(),
        ok: flag_at(record, "/result/ok"),
        output: text_at(record, "/result/output").map(str::to_owned),
        error: error.map(str::to_owned),
    }
}

fn read_usage(record: &Value) -> Usage {
    Usage {
        prompt_tokens: count_at(record, "/usage/promptTokens"),
        completion_tokens: count_at(record, "/usage/completionTokens"),
        cached_tokens: count_at(record, "/usage/cachedTokens"),
        cost_micro_usd: micro_usd_at(record, "/costUsd"),
    }
}

impl AgentProtocol for Jsonl {
    fn features(&self) -> Features {
        self.features
    }

    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError> {
        match request {
            Request::Start(options) => self.start(options)?,
            Request::Send { prompt } => self.send(&prompt)?,
            Request::Interrupt => self.interrupt()?,
            Request::Answer { request_id, answer } => self.answer(&request_id, answer)?,
            Request::ToolResults(results) => self.send_results(&results)?,
            Request::Steer { .. } => return Err(RequestError::Unsupported("take input in a turn")),
            Request::Reset { commands } => self.reset(&commands),
            Request::Close => self.turn.close_input(),
        }
        Ok(self.turn.take_actions())
    }

    fn receive_line(&mut self, line: &[u8]) -> Vec<Action> {
        match parse_object(line) {
            Some(record) => self.receive_record(&record),
            None => self.turn.log_line(line),
        }
        self.turn.take_actions()
    }

    fn receive_end(&mut self, exit: &Exit) -> Vec<Action> {
        self.turn.end_with_exit(exit);
        self.turn.take_actions()
    }
}
