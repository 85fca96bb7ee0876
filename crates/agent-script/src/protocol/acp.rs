//! The Agent Client Protocol, as Gemini and `OpenCode` speak it.
//!
//! A prompt is a request that stays open for the whole turn; updates are notifications, and the
//! response ends the turn. The two recorded programs differ in how a tool appears. Gemini, started
//! with `--acp`, shows a tool that needs permission in the permission request only. `OpenCode`,
//! started as `acp`, shows each tool first and includes its arguments.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json_rpc::{self, Failure, Message, Writer};
use super::servers::read_acp_server;
use super::{
    Asked, Incoming, Outbox, Protocol, add_fields, describe, read_prompt_text, reset_time, text_of,
};
use crate::arguments::{AcpProgram, ProgramArguments};
use crate::mcp::McpServer;
use crate::player::{Decision, Ending, Show};
use crate::script::{Settings, Usage};
use crate::tool::{ToolAction, ToolOutcome, ToolUse};

const RPC: Writer = Writer { has_header: true };
const PROTOCOL_VERSION: u64 = 1;
const TOO_MANY_REQUESTS: i64 = 429;
const SERVICE_UNAVAILABLE: i64 = 503;

pub(super) struct Acp {
    program: AcpProgram,
    model: String,
    fixed_session_id: Option<String>,
    mode: String,
    session: Option<Session>,
    /// The id of the prompt's request, which the end of the turn answers.
    open_prompt: Option<Value>,
    question: Option<Question>,
    next_question: u64,
    /// The tool that waits to be shown: its permission request may do that.
    unshown: Option<ToolUse>,
    usage: Usage,
    message_id: Option<String>,
}

struct Session {
    id: String,
    directory: PathBuf,
    mcp: Option<McpServer>,
}

struct Question {
    id: u64,
}

impl Acp {
    pub(super) fn open(program: &ProgramArguments, settings: &Settings) -> Self {
        let mode = program.permission_mode.as_deref().unwrap_or("default");
        Acp {
            program: program.acp_program,
            model: program
                .model
                .clone()
                .unwrap_or_else(|| settings.model.clone()),
            fixed_session_id: settings.session.clone(),
            mode: if program.skip_permissions {
                "yolo"
            } else {
                mode
            }
            .to_owned(),
            session: None,
            open_prompt: None,
            question: None,
            next_question: 0,
            unshown: None,
            usage: Usage::default(),
            message_id: None,
        }
    }

    fn receive_request(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        out: &mut Outbox,
    ) -> Result<Option<Incoming>, Failure> {
        match method {
            "initialize" => RPC.respond(id, &self.introduction(), out),
            "authenticate" => RPC.respond(id, &json!({}), out),
            "session/new" => {
                let session_id = self
                    .fixed_session_id
                    .clone()
                    .unwrap_or_else(|| out.new_id());
                self.open_session(session_id, params);
                RPC.respond(id, &self.session_json(), out);
            }
            "session/load" | "session/resume" => {
                let session_id = text_of(params, "sessionId")
                    .ok_or_else(no_session)?
                    .to_owned();
                self.open_session(session_id, params);
                self.restore_session(id, out);
            }
            "session/set_mode" => {
                self.check_session(params)?;
                self.mode = read_mode(params);
                RPC.respond(id, &json!({}), out);
            }
            "session/set_model" => {
                self.check_session(params)?;
                RPC.respond(id, &json!({}), out);
            }
            "session/prompt" => return self.accept_prompt(id, params).map(Some),
            unknown => {
                let message = format!("\"Method not found\": {unknown}");
                return Err(Failure::new(json_rpc::METHOD_NOT_FOUND, message));
            }
        }
        Ok(None)
    }

    /// A script has no past, so it makes one up, and shows it as the real program does: Gemini CLI
    /// begins before its response and goes on after it, the other one shows nothing.
    fn restore_session(&mut self, id: &Value, out: &mut Outbox) {
        if self.program == AcpProgram::OpenCode {
            return RPC.respond(id, &self.session_json(), out);
        }
        self.push_chunk("user_message_chunk", "An earlier question.", out);
        RPC.respond(id, &self.session_json(), out);
        self.push_chunk("agent_message_chunk", "An earlier answer.", out);
        let commands = json!({"sessionUpdate": "available_commands_update",
            "availableCommands": []});
        self.push_update(&commands, out);
    }

    fn introduction(&self) -> Value {
        let name = match self.program {
            AcpProgram::Gemini => "gemini-cli",
            AcpProgram::OpenCode => "OpenCode",
        };
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "authMethods": [],
            "agentInfo": {"name": name, "title": name, "version": env!("CARGO_PKG_VERSION")},
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
            },
        })
    }

    fn open_session(&mut self, id: String, params: &Value) {
        let here = || std::env::current_dir().unwrap_or_default();
        let servers = params.get("mcpServers").and_then(Value::as_array);
        self.session = Some(Session {
            id,
            directory: text_of(params, "cwd").map_or_else(here, PathBuf::from),
            mcp: servers.into_iter().flatten().find_map(read_acp_server),
        });
    }

    fn session_json(&self) -> Value {
        json!({
            "sessionId": self.session_id(),
            "modes": {
                "availableModes": [
                    {"id": "default", "name": "Default", "description": "Asks before a tool"},
                    {"id": "yolo", "name": "YOLO", "description": "Never asks"},
                ],
                "currentModeId": self.mode,
            },
            "models": {
                "availableModels": [{"modelId": self.model, "name": self.model}],
                "currentModelId": self.model,
            },
        })
    }

    fn session_id(&self) -> &str {
        self.session.as_ref().map_or("", |session| &session.id)
    }

    fn check_session(&self, params: &Value) -> Result<(), Failure> {
        let wanted = text_of(params, "sessionId");
        let session = self.session.as_ref();
        if session.is_some_and(|session| Some(session.id.as_str()) == wanted) {
            return Ok(());
        }
        Err(no_session())
    }

    fn accept_prompt(&mut self, id: &Value, params: &Value) -> Result<Incoming, Failure> {
        self.check_session(params)?;
        if self.open_prompt.is_some() {
            return Err(Failure::new(
                json_rpc::INVALID_REQUEST,
                "a prompt is in progress",
            ));
        }
        let prompt = params.get("prompt").and_then(read_prompt_text);
        let no_text = || Failure::new(json_rpc::INVALID_PARAMS, "the prompt has no text");
        let prompt = prompt.ok_or_else(no_text)?;
        // The response has to wait: it ends the turn.
        self.open_prompt = Some(id.clone());
        Ok(Incoming::Prompt(prompt))
    }

    fn receive_answer(&mut self, id: &Value, result: Option<&Value>) -> Option<Incoming> {
        self.question
            .take_if(|question| id.as_u64() == Some(question.id))?;
        let outcome = result
            .and_then(|result| result.get("outcome"))
            .unwrap_or(&Value::Null);
        let option = text_of(outcome, "optionId");
        let decision = match (text_of(outcome, "outcome"), option) {
            (Some("selected"), Some("proceed_once" | "proceed_always")) => {
                Decision::Allowed { changed: None }
            }
            // A client that cancels the turn has to answer its open questions so.
            (Some("cancelled"), _) => Decision::Denied {
                message: "cancelled".to_owned(),
                stop: true,
            },
            _ => Decision::Denied {
                message: "the user rejected the tool".to_owned(),
                stop: false,
            },
        };
        Some(Incoming::Decision(decision))
    }

    fn push_update(&self, update: &Value, out: &mut Outbox) {
        let params = json!({"sessionId": self.session_id(), "update": update});
        RPC.notify("session/update", &params, out);
    }

    fn push_chunk(&mut self, kind: &str, text: &str, out: &mut Outbox) {
        let content = json!({"type": "text", "text": text});
        let update = match self.program {
            AcpProgram::Gemini => json!({"sessionUpdate": kind, "content": content}),
            AcpProgram::OpenCode => {
                let id = self
                    .message_id
                    .get_or_insert_with(|| format!("msg_{}", out.new_id()));
                json!({"sessionUpdate": kind, "messageId": id, "content": content})
            }
        };
        self.push_update(&update, out);
    }

    /// Shows a tool that has not been shown by a permission request.
    fn show_pending_tool(&mut self, out: &mut Outbox) {
        if let Some(tool) = self.unshown.take() {
            let call = self.tool_json(&tool, "in_progress");
            self.push_tool("tool_call", call, out);
        }
    }

    /// `OpenCode` shows the bare tool first, and its arguments when it has read them all.
    fn show_tool_in_two_steps(&self, tool: &ToolUse, out: &mut Outbox) {
        let details = self.tool_json(tool, "in_progress");
        let mut bare = self.tool_json(tool, "pending");
        if let Some(fields) = bare.as_object_mut() {
            fields.insert("title".to_owned(), Value::from(bare_title(&tool.action)));
            fields.insert(
                "rawInput".to_owned(),
                json!({"cwd": self.working_directory()}),
            );
            fields.remove("content");
        }
        self.push_tool("tool_call", bare, out);
        self.push_tool("tool_call_update", details, out);
    }

    fn push_tool(&self, kind: &str, mut call: Value, out: &mut Outbox) {
        add_fields(&mut call, json!({"sessionUpdate": kind}));
        self.push_update(&call, out);
    }

    fn tool_json(&self, tool: &ToolUse, status: &str) -> Value {
        let mut shown = json!({
            "toolCallId": format!("call_{}_{}", std::process::id(), tool.number),
            "status": status,
            "title": self.tool_title(&tool.action),
            "content": tool_content(&tool.action),
            "locations": tool_locations(&tool.action),
            "kind": tool_kind(&tool.action),
        });
        if self.program == AcpProgram::OpenCode {
            add_fields(&mut shown, json!({"rawInput": raw_input(&tool.action)}));
        }
        shown
    }

    fn tool_title(&self, action: &ToolAction) -> String {
        match (action, self.mcp_server()) {
            (ToolAction::Call { name, .. }, Some(server)) => {
                format!("{name} ({} MCP Server)", server.name)
            }
            _ => describe(action),
        }
    }

    fn end_tool(&mut self, tool: &ToolUse, outcome: &ToolOutcome, out: &mut Outbox) {
        self.show_pending_tool(out);
        let status = if outcome.is_ok() {
            "completed"
        } else {
            "failed"
        };
        let mut update = self.tool_json(tool, status);
        // An edit that worked keeps its difference; all else shows its output.
        if !outcome.is_ok() || tool_content(&tool.action).is_empty() {
            add_fields(
                &mut update,
                json!({"content": text_content(&outcome.output)}),
            );
        }
        if self.program == AcpProgram::OpenCode {
            let metadata = json!({"exit": outcome.exit_code});
            let output = json!({"output": outcome.output, "metadata": metadata});
            add_fields(&mut update, json!({"rawOutput": output}));
        }
        self.push_tool("tool_call_update", update, out);
        self.message_id = None;
    }

    fn respond_to_prompt(&mut self, stop_reason: &str, out: &mut Outbox) {
        let Some(id) = self.open_prompt.take() else {
            return;
        };
        let Usage {
            input,
            output,
            cached,
            ..
        } = self.usage;
        let count = json!({"input_tokens": input, "output_tokens": output});
        let result = match (self.program, stop_reason) {
            // Gemini reports no tokens for a cancelled turn.
            (AcpProgram::Gemini, "cancelled") => json!({"stopReason": stop_reason}),
            (AcpProgram::Gemini, _) => json!({
                "stopReason": stop_reason,
                "_meta": {"quota": {
                    "token_count": count,
                    "model_usage": [{"model": self.model, "token_count": count}],
                }},
            }),
            (AcpProgram::OpenCode, _) => json!({
                "stopReason": stop_reason,
                "usage": {
                    "inputTokens": input,
                    "outputTokens": output,
                    "cachedReadTokens": cached,
                    "totalTokens": input.saturating_add(output),
                },
                "_meta": {},
            }),
        };
        RPC.respond(&id, &result, out);
    }

    fn fail_prompt(&mut self, code: i64, message: impl Into<String>, out: &mut Outbox) {
        if let Some(id) = self.open_prompt.take() {
            RPC.fail(&id, &Failure::new(code, message), out);
        }
    }

    fn fail_rate_limited(&mut self, resets_at: Option<u64>, out: &mut Outbox) {
        let wait = resets_at.map(|at| at.saturating_sub(out.now_seconds()));
        let message = match wait {
            Some(seconds) => {
                format!("Rate limit exceeded. Your quota will reset after {seconds}s.")
            }
            None => "Rate limit exceeded. Try again later.".to_owned(),
        };
        self.fail_prompt(TOO_MANY_REQUESTS, message, out);
    }
}

impl Protocol for Acp {
    fn receive(&mut self, input: &[u8], out: &mut Outbox) -> Vec<Incoming> {
        let incoming = match json_rpc::read_message(input) {
            Message::Request { id, method, params } => {
                match self.receive_request(&id, &method, &params, out) {
                    Ok(incoming) => incoming,
                    Err(failure) => {
                        RPC.fail(&id, &failure, out);
                        None
                    }
                }
            }
            Message::Notification { method, .. } => {
                let cancels = method == "session/cancel" && self.open_prompt.is_some();
                // A cancellation that comes too late is no error.
                cancels.then_some(Incoming::Interrupt)
            }
            Message::Response { id, result } => self.receive_answer(&id, result.as_ref()),
            Message::Broken => {
                let failure = Failure::new(json_rpc::PARSE_ERROR, "Parse error");
                RPC.fail(&Value::Null, &failure, out);
                None
            }
        };
        incoming.into_iter().collect()
    }

    fn begin_turn(&mut self, _prompt: &str, _out: &mut Outbox) {
        self.usage = Usage::default();
        self.message_id = None;
    }

    fn show(&mut self, show: &Show, out: &mut Outbox) {
        match show {
            Show::Text(text) => self.push_chunk("agent_message_chunk", text, out),
            Show::Thought(text) => self.push_chunk("agent_thought_chunk", text, out),
            Show::MessageEnd => self.message_id = None,
            Show::ToolStarted(tool) => match self.program {
                AcpProgram::Gemini => self.unshown = Some(tool.clone()),
                AcpProgram::OpenCode => self.show_tool_in_two_steps(tool, out),
            },
            Show::ToolEnded { tool, outcome } => self.end_tool(tool, outcome, out),
            Show::Usage(usage) => self.usage.add(*usage),
        }
    }

    fn ask(&mut self, tool: &ToolUse, reason: &str, out: &mut Outbox) -> Asked {
        if self.mode == "yolo" {
            return Asked::Decided(Decision::Allowed { changed: None });
        }
        // From here on the other side knows the tool.
        self.unshown = None;
        let mut call = self.tool_json(tool, "pending");
        if !reason.is_empty() && tool_content(&tool.action).is_empty() {
            add_fields(&mut call, json!({"content": text_content(reason)}));
        }
        let params = json!({
            "sessionId": self.session_id(),
            "options": [
                option_json("proceed_always", "Allow for this session", "allow_always"),
                option_json("proceed_once", "Allow", "allow_once"),
                option_json("cancel", "Reject", "reject_once"),
            ],
            "toolCall": call,
        });
        RPC.request(
            self.next_question,
            "session/request_permission",
            &params,
            out,
        );
        self.question = Some(Question {
            id: self.next_question,
        });
        self.next_question += 1;
        Asked::Sent
    }

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox) {
        // A late answer to a question of this turn must not reach the next one.
        self.question = None;
        self.unshown = None;
        match ending {
            Ending::Completed => self.respond_to_prompt("end_turn", out),
            Ending::Interrupted => self.respond_to_prompt("cancelled", out),
            Ending::Failed { text } => self.fail_prompt(json_rpc::INTERNAL_ERROR, text, out),
            Ending::RateLimited(reset) => self.fail_rate_limited(reset_time(*reset, out), out),
            Ending::Unavailable { text } => self.fail_prompt(SERVICE_UNAVAILABLE, text, out),
        }
    }

    fn mcp_server(&self) -> Option<&McpServer> {
        self.session.as_ref()?.mcp.as_ref()
    }

    fn working_directory(&self) -> Option<&Path> {
        self.session
            .as_ref()
            .map(|session| session.directory.as_path())
    }
}

fn read_mode(params: &Value) -> String {
    text_of(params, "modeId").unwrap_or("default").to_owned()
}

fn no_session() -> Failure {
    Failure::new(json_rpc::INVALID_PARAMS, "Session not found")
}

fn tool_kind(action: &ToolAction) -> &'static str {
    match action {
        ToolAction::Run { .. } => "execute",
        ToolAction::Write { .. } | ToolAction::Append { .. } => "edit",
        ToolAction::Delete { .. } => "delete",
        ToolAction::Call { .. } | ToolAction::Show { .. } => "other",
    }
}

/// The name by which `OpenCode`'s model calls a tool.
fn bare_title(action: &ToolAction) -> &str {
    match action {
        ToolAction::Run { .. } | ToolAction::Delete { .. } => "bash",
        ToolAction::Write { .. } => "write",
        ToolAction::Append { .. } => "edit",
        ToolAction::Call { name, .. } | ToolAction::Show { name, .. } => name,
    }
}

fn tool_locations(action: &ToolAction) -> Vec<Value> {
    match action {
        ToolAction::Write { path, .. }
        | ToolAction::Append { path, .. }
        | ToolAction::Delete { path } => vec![json!({"path": path})],
        _ => Vec::new(),
    }
}

/// An edit is shown as a difference.
fn tool_content(action: &ToolAction) -> Vec<Value> {
    match action {
        ToolAction::Write { path, content } | ToolAction::Append { path, content } => {
            vec![json!({"type": "diff", "path": path, "oldText": null, "newText": content})]
        }
        _ => Vec::new(),
    }
}

fn option_json(id: &str, name: &str, kind: &str) -> Value {
    json!({"optionId": id, "name": name, "kind": kind})
}

fn text_content(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

fn raw_input(action: &ToolAction) -> Value {
    match action {
        ToolAction::Run { command } => json!({"command": command, "description": command}),
        ToolAction::Write { path, content } => json!({"filePath": path, "content": content}),
        ToolAction::Append { path, content } => {
            json!({"filePath": path, "oldString": "", "newString": content})
        }
        ToolAction::Delete { path } => json!({"filePath": path}),
        ToolAction::Call { args, .. } | ToolAction::Show { args, .. } => args.clone(),
    }
}
