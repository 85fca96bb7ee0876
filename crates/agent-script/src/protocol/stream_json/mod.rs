//! Claude's stream of JSON lines.
//!
//! A turn is a list of messages. A message ends with the tool that it uses; the tool's result comes
//! as a `user` line, and the next message begins. `result` ends the turn and nothing else does.
//!
//! ```text
//! system/init
//!   assistant (text), assistant (tool_use)
//!   control_request can_use_tool        → control_response
//!   user (tool_result)
//!   assistant (text)
//! result
//! ```

mod message;
mod tools;

use serde_json::{Value, json};

use super::servers::find_claude_server;
use super::{
    Asked, Incoming, Outbox, Protocol, add_fields, describe, read_prompt_text, reset_time, text_of,
};
use crate::arguments::ProgramArguments;
use crate::mcp::McpServer;
use crate::player::{Decision, Ending, Show};
use crate::script::{Settings, Usage};
use crate::tool::{ToolAction, ToolOutcome, ToolStatus, ToolUse};
use message::{BlockKind, MessageWriter, Summary, ToolBlock, usage_json};
use tools::{change_action, tool_id, tool_input, tool_name};

const VERSION: &str = "2.1.0";
const TOOLS: [&str; 5] = ["Bash", "Edit", "Read", "Task", "Write"];
/// The provider's HTTP status for "overloaded".
const OVERLOADED: u16 = 529;
const TOO_MANY_REQUESTS: u16 = 429;

pub(super) struct StreamJson {
    writer: MessageWriter,
    asks_on_stdio: bool,
    permission_mode: String,
    allowed_tools: Vec<String>,
    mcp: Option<McpServer>,
    turn: Option<TurnState>,
    question: Option<Question>,
    /// The request that the end of an interrupted turn answers.
    interrupt_request: Option<String>,
    session_usage: Usage,
    results: u64,
}

struct TurnState {
    started_ms: u64,
    usage: Usage,
    denials: Vec<Value>,
    used_tool: bool,
}

struct Question {
    request_id: String,
    tool: ToolUse,
}

/// The parts of a `result` that differ between endings.
struct ResultLine<'r> {
    subtype: &'r str,
    is_error: bool,
    terminal_reason: &'r str,
    /// Fields that only this ending has.
    more: Value,
}

impl StreamJson {
    pub(super) fn open(
        program: &ProgramArguments,
        settings: &Settings,
        out: &mut Outbox,
    ) -> Result<Self, String> {
        // A session to go on with wins over an id for a new one, and both over the script.
        let session = [&program.resume, &program.session_id, &settings.session];
        let session = session.into_iter().flatten().next().cloned();
        let session = session.unwrap_or_else(|| out.new_id());
        let model = program.model.as_ref().unwrap_or(&settings.model).clone();
        let mode = match &program.permission_mode {
            _ if program.skip_permissions => "bypassPermissions",
            Some(mode) => mode,
            None => "default",
        };
        Ok(StreamJson {
            writer: MessageWriter::new(session, model, program.partial_messages),
            asks_on_stdio: program.asks_on_stdio,
            permission_mode: mode.to_owned(),
            allowed_tools: program.allowed_tools.clone(),
            mcp: find_claude_server(&program.mcp_configs)?,
            turn: None,
            question: None,
            interrupt_request: None,
            session_usage: Usage::default(),
            results: 0,
        })
    }

    fn receive_message(&mut self, message: &Value, out: &mut Outbox) -> Option<Incoming> {
        match text_of(message, "type")? {
            "user" => {
                let content = message.get("message")?.get("content")?;
                read_prompt_text(content).map(Incoming::Prompt)
            }
            "control_request" => self.receive_request(message, out),
            "control_response" => self.receive_answer(message.get("response")?),
            _ => None,
        }
    }

    fn receive_request(&mut self, message: &Value, out: &mut Outbox) -> Option<Incoming> {
        let id = text_of(message, "request_id").unwrap_or_default();
        let request = message.get("request").unwrap_or(&Value::Null);
        match text_of(request, "subtype").unwrap_or_default() {
            "initialize" => answer(id, &self.introduction(), out),
            // The end of the turn answers, so that a turn which ignores it leaves it open.
            "interrupt" if self.turn.is_some() => {
                self.interrupt_request = Some(id.to_owned());
                return Some(Incoming::Interrupt);
            }
            "interrupt" => answer(id, &json!({"still_queued": []}), out),
            "set_permission_mode" => {
                let mode = text_of(request, "mode").unwrap_or("default");
                mode.clone_into(&mut self.permission_mode);
                answer(id, &json!({"mode": mode}), out);
            }
            "set_model" => {
                // Without a name the request means "the default model".
                let model = text_of(request, "model").unwrap_or(&self.writer.model);
                self.writer.model = model.to_owned();
                answer(id, &json!({}), out);
            }
            unknown => answer_with_error(id, unknown, out),
        }
        None
    }

    fn introduction(&self) -> Value {
        json!({
            "commands": [],
            "agents": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": "default", "resolvedModel": self.writer.model}],
            "account": {"tokenSource": "none", "apiProvider": "firstParty"},
            "pid": std::process::id(),
            "claude_code_version": VERSION,
            "current_permission_mode": self.permission_mode,
        })
    }

    /// The answer to a `can_use_tool` request.
    fn receive_answer(&mut self, response: &Value) -> Option<Incoming> {
        let id = text_of(response, "request_id")?;
        let question = self
            .question
            .take_if(|question| question.request_id == id)?;
        let answer = response.get("response").unwrap_or(&Value::Null);
        let decision = if text_of(answer, "behavior") == Some("allow") {
            // The host repeats the input even if it changed nothing.
            let input = answer.get("updatedInput").filter(|input| input.is_object());
            let changed = input.map(|input| change_action(&question.tool.action, input));
            Decision::Allowed { changed }
        } else {
            let message = text_of(answer, "message").or_else(|| text_of(response, "error"));
            Decision::Denied {
                message: message
                    .unwrap_or("The user doesn't want to proceed.")
                    .to_owned(),
                stop: answer.get("interrupt") == Some(&Value::Bool(true)),
            }
        };
        Some(Incoming::Decision(decision))
    }

    fn push_init(&self, out: &mut Outbox) {
        let server = self.mcp.iter();
        let servers = server.map(|server| json!({"name": server.name, "status": "connected"}));
        let line = json!({
            "type": "system",
            "subtype": "init",
            "cwd": std::env::current_dir().unwrap_or_default(),
            "tools": TOOLS,
            "mcp_servers": servers.collect::<Vec<Value>>(),
            "model": self.writer.model,
            "permissionMode": self.permission_mode,
            "slash_commands": [],
            "apiKeySource": "none",
            "claude_code_version": VERSION,
            "output_style": "default",
            "agents": [],
            "skills": [],
            "plugins": [],
        });
        self.writer.push_line(&line, out);
    }

    fn usage(&self) -> Usage {
        self.turn
            .as_ref()
            .map(|turn| turn.usage)
            .unwrap_or_default()
    }

    fn name_of(&self, tool: &ToolUse) -> String {
        let server = self.mcp.as_ref().map_or("turnkeep", |server| &server.name);
        tool_name(&tool.action, server)
    }

    /// Whether the command line allows the tool, by its name or with all tools of its server.
    fn is_allowed(&self, tool: &ToolUse) -> bool {
        let name = self.name_of(tool);
        let covers = |allowed: &String| match name.strip_prefix(allowed.as_str()) {
            Some(rest) => rest.is_empty() || rest.starts_with("__"),
            None => false,
        };
        self.allowed_tools.iter().any(covers)
    }

    fn start_tool(&mut self, tool: &ToolUse, out: &mut Outbox) {
        let block = ToolBlock {
            id: tool_id(tool),
            name: self.name_of(tool),
            input: tool_input(&tool.action),
        };
        let usage = self.usage();
        self.writer.add_tool(&block, usage, out);
        if let Some(turn) = &mut self.turn {
            turn.used_tool = true;
        }
    }

    fn end_tool(&mut self, tool: &ToolUse, outcome: &ToolOutcome, out: &mut Outbox) {
        self.writer.stop_message(out);
        let id = tool_id(tool);
        let name = self.name_of(tool);
        if let (ToolStatus::Denied, Some(turn)) = (outcome.status, &mut self.turn) {
            let input = tool_input(&tool.action);
            let denial = json!({"tool_name": name, "tool_use_id": id, "tool_input": input});
            turn.denials.push(denial);
        }
        let block = json!({
            "tool_use_id": id,
            "type": "tool_result",
            // The real program drops the line break at the end of a command's output.
            "content": outcome.output.trim_end_matches('\n'),
            "is_error": !outcome.is_ok(),
        });
        self.writer.push_record("user", &user_message(&block), out);
    }

    fn send_question(&mut self, tool: &ToolUse, reason: &str, out: &mut Outbox) {
        let request_id = out.new_id();
        let name = self.name_of(tool);
        let what = describe(&tool.action);
        let request = json!({
            "subtype": "can_use_tool",
            "tool_name": name,
            "display_name": name,
            "input": tool_input(&tool.action),
            "description": if reason.is_empty() { &what } else { reason },
            "permission_suggestions": [
                {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            ],
            "tool_use_id": tool_id(tool),
        });
        let line = json!({"type": "control_request", "request_id": request_id, "request": request});
        out.push_json(&line);
        self.question = Some(Question {
            request_id,
            tool: tool.clone(),
        });
    }

    fn end_completed(&mut self, out: &mut Outbox) {
        let usage = self.usage();
        self.writer.close_message(Some("end_turn"), usage, out);
        let summary = self.writer.take_summary();
        let line = ResultLine {
            subtype: "success",
            is_error: false,
            terminal_reason: "completed",
            more: json!({"result": summary.last_text, "api_error_status": null}),
        };
        self.push_result(&line, &summary, out);
    }

    fn end_interrupted(&mut self, out: &mut Outbox) {
        if let Some(Question { request_id, .. }) = self.question.take() {
            out.push_json(&json!({"type": "control_cancel_request", "request_id": request_id}));
        }
        if let Some(id) = self.interrupt_request.take() {
            answer(&id, &json!({"still_queued": []}), out);
        }
        // The program's note says whether it was stopped in a tool or in its own text. Between a tool
        // and the next message it counts as in the tool.
        let used_tool = self.turn.as_ref().is_some_and(|turn| turn.used_tool);
        let in_tool = used_tool && !self.writer.has_open_message();
        let (note, terminal_reason) = if in_tool {
            (
                "[Request interrupted by user for tool use]",
                "aborted_tools",
            )
        } else {
            ("[Request interrupted by user]", "aborted_streaming")
        };
        let note = user_message(&json!({"type": "text", "text": note}));
        let usage = self.usage();
        self.writer.cut_message(&note, usage, out);
        let summary = self.writer.take_summary();
        let line = ResultLine {
            subtype: "error_during_execution",
            is_error: true,
            terminal_reason,
            more: json!({"errors": ["the turn was interrupted"]}),
        };
        self.push_result(&line, &summary, out);
    }

    /// Ends a turn that the provider refused: the text comes as a message of no model.
    fn end_with_error(&mut self, text: &str, status: Option<u16>, out: &mut Outbox) {
        let usage = self.usage();
        self.writer.close_message(Some("end_turn"), usage, out);
        let content = json!([{"type": "text", "text": text}]);
        let mut message = self.writer.message_json(&out.new_id(), &content);
        add_fields(
            &mut message,
            json!({"model": "<synthetic>", "stop_reason": "stop_sequence"}),
        );
        let error = match status {
            Some(TOO_MANY_REQUESTS) => "rate_limit",
            Some(OVERLOADED) => "server_error",
            _ => "unknown",
        };
        let mut line = json!({"type": "assistant", "message": message, "error": error});
        add_fields(&mut line, json!({"parent_tool_use_id": null}));
        self.writer.push_line(&line, out);
        let summary = self.writer.take_summary();
        // The subtype of such a result really is "success".
        let line = ResultLine {
            subtype: "success",
            is_error: true,
            terminal_reason: "completed",
            more: json!({"result": text, "api_error_status": status}),
        };
        self.push_result(&line, &summary, out);
    }

    fn end_rate_limited(&mut self, resets_at: Option<u64>, out: &mut Outbox) {
        let info = json!({
            "status": "rejected",
            "resetsAt": resets_at,
            "rateLimitType": "five_hour",
            "overageStatus": "rejected",
            "isUsingOverage": false,
        });
        let line = json!({"type": "rate_limit_event", "rate_limit_info": info});
        self.writer.push_line(&line, out);
        self.end_with_error("You've hit your limit", Some(TOO_MANY_REQUESTS), out);
    }

    fn push_result(&mut self, line: &ResultLine<'_>, summary: &Summary, out: &mut Outbox) {
        let Some(turn) = self.turn.take() else { return };
        self.session_usage.add(turn.usage);
        let duration = out.now_ms.saturating_sub(turn.started_ms);
        let mut message = json!({
            "type": "result",
            "subtype": line.subtype,
            "is_error": line.is_error,
            "duration_ms": duration,
            "duration_api_ms": duration,
            "num_turns": summary.messages,
            "stop_reason": (!line.is_error).then_some("end_turn"),
            // The recorded program counts money over the session, and tokens over the turn.
            "total_cost_usd": self.session_usage.cost,
            "usage": usage_json(turn.usage),
            "modelUsage": {self.writer.model.as_str(): model_usage_json(self.session_usage)},
            "permission_denials": turn.denials,
            "terminal_reason": line.terminal_reason,
            "result_index": self.results,
        });
        self.results += 1;
        add_fields(&mut message, line.more.clone());
        self.writer.push_line(&message, out);
    }
}

impl Protocol for StreamJson {
    fn receive(&mut self, input: &[u8], out: &mut Outbox) -> Vec<Incoming> {
        match serde_json::from_slice::<Value>(input) {
            Ok(message) => self.receive_message(&message, out).into_iter().collect(),
            // The real program has no answer to a broken line either: it writes to stderr.
            Err(error) => {
                eprintln!("Error parsing streaming input line: {error}");
                Vec::new()
            }
        }
    }

    fn begin_turn(&mut self, _prompt: &str, out: &mut Outbox) {
        // A turn that ignored its interrupt left the request behind.
        self.interrupt_request = None;
        self.turn = Some(TurnState {
            started_ms: out.now_ms,
            usage: Usage::default(),
            denials: Vec::new(),
            used_tool: false,
        });
        self.push_init(out);
    }

    fn show(&mut self, show: &Show, out: &mut Outbox) {
        let usage = self.usage();
        match show {
            Show::Text(text) => self.writer.add_text(BlockKind::Text, text, out),
            Show::Thought(text) => self.writer.add_text(BlockKind::Thinking, text, out),
            Show::MessageEnd => self.writer.close_message(Some("end_turn"), usage, out),
            Show::ToolStarted(tool) => self.start_tool(tool, out),
            Show::ToolEnded { tool, outcome } => self.end_tool(tool, outcome, out),
            Show::Usage(usage) => {
                if let Some(turn) = &mut self.turn {
                    turn.usage.add(*usage);
                }
            }
        }
    }

    fn ask(&mut self, tool: &ToolUse, reason: &str, out: &mut Outbox) -> Asked {
        let is_edit = !matches!(
            tool.action,
            ToolAction::Run { .. } | ToolAction::Call { .. } | ToolAction::Show { .. }
        );
        match self.permission_mode.as_str() {
            "bypassPermissions" => Asked::Decided(Decision::Allowed { changed: None }),
            _ if self.is_allowed(tool) => Asked::Decided(Decision::Allowed { changed: None }),
            "acceptEdits" if is_edit => Asked::Decided(Decision::Allowed { changed: None }),
            _ if self.asks_on_stdio => {
                self.send_question(tool, reason, out);
                self.writer.stop_message(out);
                Asked::Sent
            }
            // Without a host that answers, the real program denies.
            _ => Asked::Decided(Decision::Denied {
                message: "This command requires approval".to_owned(),
                stop: false,
            }),
        }
    }

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox) {
        match ending {
            Ending::Completed => self.end_completed(out),
            Ending::Interrupted => self.end_interrupted(out),
            Ending::Failed { text } => self.end_with_error(text, None, out),
            Ending::RateLimited(reset) => self.end_rate_limited(reset_time(*reset, out), out),
            Ending::Unavailable { text } => {
                let text = format!("API Error: {OVERLOADED} {text}");
                self.end_with_error(&text, Some(OVERLOADED), out);
            }
        }
    }

    fn mcp_server(&self) -> Option<&McpServer> {
        self.mcp.as_ref()
    }
}

fn answer(request_id: &str, response: &Value, out: &mut Outbox) {
    let response = json!({"subtype": "success", "request_id": request_id, "response": response});
    out.push_json(&json!({"type": "control_response", "response": response}));
}

fn answer_with_error(request_id: &str, unknown: &str, out: &mut Outbox) {
    let error = format!("Unsupported control request subtype: {unknown}");
    let response = json!({"subtype": "error", "request_id": request_id, "error": error});
    out.push_json(&json!({"type": "control_response", "response": response}));
}

fn user_message(block: &Value) -> Value {
    json!({"role": "user", "content": [block]})
}

fn model_usage_json(usage: Usage) -> Value {
    json!({
        "inputTokens": usage.input.saturating_sub(usage.cached),
        "outputTokens": usage.output,
        "cacheReadInputTokens": usage.cached,
        "cacheCreationInputTokens": 0,
        "webSearchRequests": 0,
        "costUSD": usage.cost,
    })
}
