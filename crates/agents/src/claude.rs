//! `claude` in its stream-json mode: one JSON record per line in both directions.
//!
//! ```text
//! us                                     claude
//! control_request initialize        →
//! user (the prompt)                 →
//!                                   ←    system/init (names the session, once per turn)
//!                                   ←    stream_event (deltas), assistant (whole blocks)
//!                                   ←    control_request can_use_tool
//! control_response allow | deny     →
//!                                   ←    user (tool_result)
//! control_request interrupt         →
//!                                   ←    result (only this ends the turn)
//! ```
//!
//! Permissions arrive as control requests because the program runs with
//! `--permission-prompt-tool stdio`. An interrupted turn ends with a `result` that looks like a
//! failure, and before it with a user record that no user wrote; the machine corrects both.
//!
//! Custom programs that speak stream-json use the same machine.

mod answer;
mod record;
mod result;

use serde_json::{Value, json};
use turnkeep_types::Timestamp;

use crate::event::{Action, AgentEvent, PermissionRequest, ToolCall, TurnEnd};
use crate::failure;
use crate::field::{count_at, flag_at, list_at, object_at, parse_object, text_at};
use crate::launch::is_plain_name;
use crate::protocol::{AgentProtocol, Exit, Features};
use crate::request::{Answer, Request, RequestError, StartOptions};
use crate::turn::TurnRecorder;
use answer::{ToolQuestion, answer_question, deny_question, refuse_control};
use record::{polls_command, read_tool_results};

/// The answer to a question that no person sees.
const NOT_ASKED: &str =
    "This call cannot be approved now: the turn is over or its arguments are too large.";

/// The state of one `claude` process.
#[derive(Debug)]
pub struct Claude {
    turn: TurnRecorder<ToolQuestion>,
    /// The working directory; absent before the start.
    cwd: Option<String>,
    /// The program was started to resume a session and has not named it yet.
    is_resuming: bool,
    session: Option<String>,
    last_control_id: u64,
    /// The control request that asked for the end of the turn.
    interrupt_id: Option<String>,
    /// The program reports the cost of all its turns so far.
    reported_cost_micro_usd: u64,
    /// When the limit that the program hit last ends.
    limit_resets_at: Option<Timestamp>,
    /// The last whole message of this turn.
    last_message: Option<String>,
}

impl Default for Claude {
    fn default() -> Self {
        Self::new()
    }
}

impl Claude {
    /// The machine of a program that is about to start.
    pub fn new() -> Self {
        Self {
            turn: TurnRecorder::new(),
            cwd: None,
            is_resuming: false,
            session: None,
            last_control_id: 0,
            interrupt_id: None,
            reported_cost_micro_usd: 0,
            limit_resets_at: None,
            last_message: None,
        }
    }

    fn start(&mut self, options: StartOptions) -> Result<(), RequestError> {
        if self.cwd.is_some() {
            return Err(RequestError::AlreadyStarted);
        }
        self.cwd = Some(options.cwd);
        self.is_resuming = options.session.is_some();
        self.write_control(&json!({"subtype": "initialize", "hooks": null}));
        Ok(())
    }

    fn send(&mut self, prompt: &str) -> Result<(), RequestError> {
        if self.cwd.is_none() {
            return Err(RequestError::NotStarted);
        }
        self.turn.open()?;
        self.interrupt_id = None;
        self.last_message = None;
        // The program reports a limit again in every turn that hits it.
        self.limit_resets_at = None;
        let content = json!([{"type": "text", "text": prompt}]);
        self.turn.write(&json!({
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": null,
            "session_id": "",
        }));
        Ok(())
    }

    /// Asks politely first. The signal usually ends the whole process, so it is for a program that
    /// does not react.
    fn interrupt(&mut self) -> Result<(), RequestError> {
        self.turn.require_open()?;
        if self.turn.is_interrupting() {
            self.turn.signal_interrupt();
        } else {
            self.turn.mark_interrupting();
            let id = self.write_control(&json!({"subtype": "interrupt"}));
            self.interrupt_id = Some(id);
        }
        Ok(())
    }

    fn answer(&mut self, request_id: &str, answer: Answer) -> Result<(), RequestError> {
        // The question stays open until its answer is known to be valid, so a rejected answer can be
        // corrected.
        let question = self.turn.open_permission(request_id)?;
        let message = answer_question(request_id, question, answer)?;
        self.turn.take_permission(request_id);
        self.turn.write(&message);
        Ok(())
    }

    /// Writes a control request and returns its id.
    fn write_control(&mut self, request: &Value) -> String {
        self.last_control_id += 1;
        let id = format!("turnkeep-{}", self.last_control_id);
        let kind = "control_request";
        self.turn
            .write(&json!({"type": kind, "request_id": id, "request": request}));
        id
    }

    fn receive_record(&mut self, record: &Value) {
        match text_at(record, "/type").unwrap_or_default() {
            "system" => self.receive_system(record),
            "stream_event" => self.receive_delta(record),
            "assistant" => self.receive_assistant(record),
            "user" => self.receive_user(record),
            "result" => self.receive_result(record),
            "control_request" => self.receive_control_request(record),
            "control_cancel_request" => self.receive_control_cancel(record),
            "control_response" => self.receive_control_response(record),
            "rate_limit_event" => self.receive_rate_limit(record),
            _ => {}
        }
    }

    fn receive_system(&mut self, record: &Value) {
        match text_at(record, "/subtype").unwrap_or_default() {
            "init" => self.receive_session(record),
            "compact_boundary" => self.turn.report_progress("compacted its context"),
            "api_retry" => self.turn.report_progress("waits to try the provider again"),
            _ => {}
        }
    }

    fn receive_session(&mut self, record: &Value) {
        // The name becomes an argument of a later process, so it must not look like a flag.
        let named = text_at(record, "/session_id").filter(|name| is_plain_name(name));
        let Some(name) = named.map(str::to_owned) else {
            return;
        };
        // A program that names its session has found it. From now on an error with the same words is
        // about something else.
        self.is_resuming = false;
        // The program names the session in every turn; a name is news only once.
        if self.session.as_ref() != Some(&name) {
            self.session = Some(name.clone());
            self.turn.emit(AgentEvent::Session(name));
        }
    }

    fn receive_delta(&mut self, record: &Value) {
        if is_from_subagent(record) {
            return;
        }
        // A delta has one of the two.
        let delta = |path| text_at(record, path).unwrap_or_default();
        self.turn
            .emit_text(AgentEvent::AnswerDelta, delta("/event/delta/text"));
        self.turn
            .emit_text(AgentEvent::ThinkingDelta, delta("/event/delta/thinking"));
    }

    fn receive_assistant(&mut self, record: &Value) {
        // The text of an error is not an answer; the result repeats it. An aborted message is not
        // whole. Some versions print such a message without the flag, after they have confirmed the
        // interrupt. The caller closes the text of an interrupted turn itself.
        let has_text = !is_from_subagent(record)
            && !self.turn.is_interrupting()
            && !flag_at(record, "/aborted")
            && text_at(record, "/error").is_none();
        for block in list_at(record, "/message/content") {
            let text = |path| text_at(block, path).unwrap_or_default();
            match text("/type") {
                "text" if has_text => self.finish_message(text("/text")),
                "thinking" if has_text => {
                    self.turn
                        .emit_text(AgentEvent::ThinkingFinal, text("/thinking"));
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => self.propose_tool(block),
                _ => {}
            }
        }
        self.complete_tools(record);
    }

    fn finish_message(&mut self, text: &str) {
        self.last_message = Some(text.to_owned());
        self.turn.emit_text(AgentEvent::AnswerFinal, text);
    }

    fn propose_tool(&mut self, block: &Value) {
        self.turn.propose_tool(ToolCall {
            provider_id: text_at(block, "/id").unwrap_or_default().to_owned(),
            name: text_at(block, "/name").unwrap_or("tool").to_owned(),
            args: object_at(block, "/input"),
        });
    }

    /// Only results of tools matter in a user record: its texts repeat our prompt or are the note
    /// `[Request interrupted by user]`.
    fn receive_user(&mut self, record: &Value) {
        self.complete_tools(record);
    }

    fn complete_tools(&mut self, record: &Value) {
        for result in read_tool_results(record) {
            let call = self.turn.open_tool(&result.provider_id);
            if call.is_some_and(|call| polls_command(call, &result)) {
                let call = Some(result.provider_id.clone());
                self.turn.emit_in_turn(AgentEvent::CommandPolled { call });
            }
            self.turn.complete_tool(result);
        }
    }

    fn receive_control_request(&mut self, record: &Value) {
        let Some(request_id) = text_at(record, "/request_id") else {
            return;
        };
        let subtype = text_at(record, "/request/subtype").unwrap_or_default();
        if subtype == "can_use_tool" {
            self.receive_question(request_id, record);
        } else {
            // Without an answer the program would wait forever.
            self.turn.write(&refuse_control(request_id, subtype));
        }
    }

    fn receive_question(&mut self, request_id: &str, record: &Value) {
        // A question that names no call stands for one.
        let provider_id = text_at(record, "/request/tool_use_id").unwrap_or(request_id);
        let call = ToolCall {
            provider_id: provider_id.to_owned(),
            name: text_at(record, "/request/tool_name")
                .unwrap_or("tool")
                .to_owned(),
            args: object_at(record, "/request/input"),
        };
        let question = ToolQuestion::from_record(record);
        let request = PermissionRequest {
            request_id: request_id.to_owned(),
            context: crate::context::describe_call(&call, self.cwd()),
            can_allow_always: question.can_allow_always(),
            call,
        };
        if !self.turn.ask_permission(request, question) {
            self.turn.write(&deny_question(request_id, NOT_ASKED));
        }
    }

    fn receive_control_cancel(&mut self, record: &Value) {
        if let Some(request_id) = text_at(record, "/request_id") {
            self.turn.withdraw_permission(request_id);
        }
    }

    fn receive_control_response(&mut self, record: &Value) {
        // What a successful request did shows in the records that follow.
        if text_at(record, "/response/subtype") != Some("error") {
            return;
        }
        let error = text_at(record, "/response/error").unwrap_or("unknown error");
        self.turn.log(&format!("a control request failed: {error}"));
        let answered = text_at(record, "/response/request_id").map(str::to_owned);
        // A program that rejects the interrupt request would work on, so only the signal is left.
        if self.turn.is_interrupting() && answered.is_some() && answered == self.interrupt_id {
            self.turn.signal_interrupt();
        }
    }

    fn receive_rate_limit(&mut self, record: &Value) {
        let info = object_at(record, "/rate_limit_info");
        if text_at(&info, "/status") == Some("rejected") {
            // Versions of the program differ in the spelling.
            let seconds = count_at(&info, "/resetsAt").max(count_at(&info, "/resets_at"));
            self.limit_resets_at = failure::reset_time_from_seconds(seconds);
        }
    }

    fn cwd(&self) -> &str {
        self.cwd.as_deref().unwrap_or_default()
    }
}

/// The text of a subagent is not the answer. Its tools are real, though.
fn is_from_subagent(record: &Value) -> bool {
    text_at(record, "/parent_tool_use_id").is_some()
}

impl AgentProtocol for Claude {
    fn features(&self) -> Features {
        Features {
            resume: true,
            approvals: true,
            edit_args: true,
            deny_reason: true,
            usage: true,
            cost: true,
            mcp: true,
            plan_mode: true,
            ..Features::default()
        }
    }

    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError> {
        match request {
            Request::Start(options) => self.start(options)?,
            Request::Send { prompt } => self.send(&prompt)?,
            Request::Interrupt => self.interrupt()?,
            Request::Answer { request_id, answer } => self.answer(&request_id, answer)?,
            Request::Steer { .. } => return Err(RequestError::Unsupported("take input in a turn")),
            Request::ToolResults(_) => return Err(RequestError::NoTurn),
            // A process has one session. The end of its input makes it exit, and the next process
            // begins a new one.
            Request::Reset { .. } => {
                self.turn.end(TurnEnd::Interrupted);
                self.turn.close_input();
            }
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
        // The program may exit before it prints a result. Then only its error output has the reason.
        if !self.end_for_lost_session(&exit.last_errors) {
            self.turn.end_with_exit(exit);
        }
        self.turn.take_actions()
    }
}
