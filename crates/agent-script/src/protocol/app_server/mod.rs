//! Codex' `app-server`: JSON-RPC without the `jsonrpc` header.
//!
//! A thread has turns, and a turn has items: the user's message, the agent's messages, reasoning,
//! commands, file changes, calls of tools. Each item starts and completes. A command or a file
//! change that needs approval is a request to the other side between the two.

mod items;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json_rpc::{self, Failure, Message, Writer};
use super::servers::{find_codex_server, nest_keys, read_overrides};
use super::{Asked, Incoming, Outbox, Protocol, add_fields, read_prompt_text, reset_time, text_of};
use crate::arguments::ProgramArguments;
use crate::mcp::McpServer;
use crate::placeholder::find_value;
use crate::player::{Decision, Ending, Show};
use crate::script::{Settings, Usage};
use crate::tool::{ToolAction, ToolOutcome, ToolUse};
use items::{ItemKind, TextItem, ToolPlace, text_item_json, tool_item_json, turn_json, usage_json};

const RPC: Writer = Writer { has_header: false };
const CONTEXT_WINDOW_TOKENS: u64 = 258_400;

pub(super) struct AppServer {
    is_initialized: bool,
    model: String,
    fixed_thread_id: Option<String>,
    thread: Option<Thread>,
    turn: Option<TurnState>,
    question: Option<Question>,
    next_question: u64,
    interrupt_request: Option<Value>,
    /// Servers of the `-c` arguments, which a thread's own configuration overrides.
    configured_mcp: Option<McpServer>,
    usage: Usage,
}

struct Thread {
    id: String,
    directory: PathBuf,
    approval_policy: String,
    mcp: Option<McpServer>,
}

struct TurnState {
    id: String,
    started_ms: u64,
    item: Option<TextItem>,
    last_message: Option<Value>,
    diff: String,
}

struct Question {
    id: u64,
}

/// The error of a turn that failed.
struct TurnError<'e> {
    message: &'e str,
    info: Value,
}

impl AppServer {
    pub(super) fn open(program: &ProgramArguments, settings: &Settings) -> Result<Self, String> {
        Ok(AppServer {
            is_initialized: false,
            model: program
                .model
                .clone()
                .unwrap_or_else(|| settings.model.clone()),
            fixed_thread_id: settings.session.clone(),
            thread: None,
            turn: None,
            question: None,
            next_question: 0,
            interrupt_request: None,
            configured_mcp: find_codex_server(&read_overrides(&program.config_overrides)?),
            usage: Usage::default(),
        })
    }

    fn receive_request(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        out: &mut Outbox,
    ) -> Result<Option<Incoming>, Failure> {
        if method != "initialize" && !self.is_initialized {
            return Err(invalid("Not initialized"));
        }
        match method {
            "initialize" => self.initialize(id, params, out).map(|()| None),
            "thread/start" => {
                let fixed = self.fixed_thread_id.clone();
                let thread_id = fixed.unwrap_or_else(|| out.new_id());
                self.open_thread(id, thread_id, params, out);
                Ok(None)
            }
            "thread/resume" => {
                let thread_id = need_text(params, "threadId")?.to_owned();
                self.open_thread(id, thread_id, params, out);
                Ok(None)
            }
            "turn/start" => self.accept_turn(id, params, out).map(Some),
            "turn/steer" => self.accept_steer(id, params, out).map(Some),
            "turn/interrupt" => self.accept_interrupt(id, params).map(Some),
            unknown => {
                let message = format!("Invalid request: unknown variant `{unknown}`");
                Err(invalid(message))
            }
        }
    }

    fn initialize(&mut self, id: &Value, params: &Value, out: &mut Outbox) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_initialized, true) {
            return Err(invalid("Already initialized"));
        }
        let client = find_value(params, "clientInfo.name").and_then(Value::as_str);
        let client = client.unwrap_or("unknown");
        let result = json!({
            "userAgent": format!("{client}/{} (turnkeep-agent-script)", env!("CARGO_PKG_VERSION")),
            // The agent keeps nothing on disk, so there is no such directory.
            "codexHome": "/nonexistent",
            "platformFamily": std::env::consts::FAMILY,
            "platformOs": std::env::consts::OS,
        });
        RPC.respond(id, &result, out);
        Ok(())
    }

    fn open_thread(&mut self, id: &Value, thread_id: String, params: &Value, out: &mut Outbox) {
        let here = || std::env::current_dir().unwrap_or_default();
        let config = params.get("config").cloned().unwrap_or_default();
        let thread = Thread {
            id: thread_id,
            directory: text_of(params, "cwd").map_or_else(here, PathBuf::from),
            approval_policy: text_of(params, "approvalPolicy")
                .unwrap_or("on-request")
                .to_owned(),
            // What the thread itself brings wins over the command line.
            mcp: find_codex_server(&nest_keys(&config)).or_else(|| self.configured_mcp.clone()),
        };
        let shown = self.thread_json(&thread, out);
        let result = json!({
            "thread": shown,
            "model": self.model,
            "modelProvider": "scripted",
            "cwd": thread.directory,
            "approvalPolicy": thread.approval_policy,
            "sandbox": {"type": "workspaceWrite"},
        });
        RPC.respond(id, &result, out);
        self.thread = Some(thread);
        notify("thread/started", &json!({"thread": shown}), out);
    }

    fn thread_json(&self, thread: &Thread, out: &Outbox) -> Value {
        json!({
            "id": thread.id,
            "sessionId": thread.id,
            "preview": "",
            "ephemeral": false,
            "modelProvider": "scripted",
            "model": self.model,
            "createdAt": out.now_seconds(),
            "updatedAt": out.now_seconds(),
            "status": {"type": "idle"},
            "cwd": thread.directory,
            "cliVersion": env!("CARGO_PKG_VERSION"),
            "turns": [],
        })
    }

    fn accept_turn(
        &mut self,
        id: &Value,
        params: &Value,
        out: &mut Outbox,
    ) -> Result<Incoming, Failure> {
        self.check_thread(params)?;
        if self.turn.is_some() {
            return Err(invalid("a turn is in progress"));
        }
        let prompt = need_prompt(params)?;
        if let (Some(policy), Some(thread)) = (text_of(params, "approvalPolicy"), &mut self.thread)
        {
            policy.clone_into(&mut thread.approval_policy);
        }
        // The response names the turn, so it begins here and not with the first step.
        let turn = TurnState {
            id: out.new_id(),
            started_ms: out.now_ms,
            item: None,
            last_message: None,
            diff: String::new(),
        };
        let shown = turn_json(&turn.id, "inProgress");
        RPC.respond(id, &json!({"turn": shown}), out);
        self.turn = Some(turn);
        Ok(Incoming::Prompt(prompt))
    }

    fn accept_steer(
        &mut self,
        id: &Value,
        params: &Value,
        out: &mut Outbox,
    ) -> Result<Incoming, Failure> {
        self.check_thread(params)?;
        let Some(turn) = &self.turn else {
            return Err(invalid("no active turn to steer"));
        };
        let expected = text_of(params, "expectedTurnId");
        if expected.is_some_and(|expected| expected != turn.id) {
            return Err(invalid("another turn is active"));
        }
        let text = need_prompt(params)?;
        let turn_id = turn.id.clone();
        RPC.respond(id, &json!({"turnId": turn_id}), out);
        self.push_user_message(&text, out);
        Ok(Incoming::Steer(text))
    }

    /// The end of the turn answers the request, so that a turn which ignores it leaves it open.
    fn accept_interrupt(&mut self, id: &Value, params: &Value) -> Result<Incoming, Failure> {
        self.check_thread(params)?;
        let wanted = need_text(params, "turnId")?;
        if self.turn.as_ref().is_none_or(|turn| turn.id != wanted) {
            return Err(invalid("no active turn to interrupt"));
        }
        self.interrupt_request = Some(id.clone());
        Ok(Incoming::Interrupt)
    }

    fn check_thread(&self, params: &Value) -> Result<(), Failure> {
        let wanted = need_text(params, "threadId")?;
        if self
            .thread
            .as_ref()
            .is_some_and(|thread| thread.id == wanted)
        {
            return Ok(());
        }
        let message = format!("thread not found: {wanted}");
        Err(invalid(message))
    }

    fn receive_answer(
        &mut self,
        id: &Value,
        result: Option<&Value>,
        out: &mut Outbox,
    ) -> Option<Incoming> {
        self.question
            .take_if(|question| id.as_u64() == Some(question.id))?;
        let params = json!({"threadId": self.thread_id(), "requestId": id});
        notify("serverRequest/resolved", &params, out);
        self.push_status(&json!({"type": "active", "activeFlags": []}), out);
        let decision = result
            .and_then(|result| result.get("decision"))
            .unwrap_or(&Value::Null);
        // Accepting with an amendment of the policy is an object.
        let word = decision.as_str();
        let decision = match word {
            Some("accept" | "acceptForSession" | "approved") => Decision::Allowed { changed: None },
            None if decision.is_object() => Decision::Allowed { changed: None },
            _ => Decision::Denied {
                message: "rejected by user".to_owned(),
                stop: word == Some("cancel"),
            },
        };
        Some(Incoming::Decision(decision))
    }

    fn thread_id(&self) -> &str {
        self.thread.as_ref().map_or("", |thread| &thread.id)
    }

    fn turn_id(&self) -> &str {
        self.turn.as_ref().map_or("", |turn| &turn.id)
    }

    fn push_status(&self, status: &Value, out: &mut Outbox) {
        let params = json!({"threadId": self.thread_id(), "status": status});
        notify("thread/status/changed", &params, out);
    }

    fn push_item(&self, method: &str, item: &Value, out: &mut Outbox) {
        // Each notification repeats the time of its item under the name of that event.
        let time_field = match method {
            "item/started" => "startedAtMs",
            _ => "completedAtMs",
        };
        let params = json!({
            "item": item,
            "threadId": self.thread_id(),
            "turnId": self.turn_id(),
            time_field: out.now_ms,
        });
        notify(method, &params, out);
    }

    fn push_user_message(&self, text: &str, out: &mut Outbox) {
        let item = json!({
            "type": "userMessage",
            "id": out.new_id(),
            "clientId": null,
            "content": [{"type": "text", "text": text, "text_elements": []}],
        });
        self.push_item("item/started", &item, out);
        self.push_item("item/completed", &item, out);
    }

    fn add_text(&mut self, kind: ItemKind, text: &str, out: &mut Outbox) {
        self.open_item(kind, out);
        let Some(item) = self.turn.as_mut().and_then(|turn| turn.item.as_mut()) else {
            return;
        };
        item.text.push_str(text);
        let item_id = item.id.clone();
        let mut params = json!({
            "threadId": self.thread_id(),
            "turnId": self.turn_id(),
            "itemId": item_id,
            "delta": text,
        });
        let method = match kind {
            ItemKind::Message => "item/agentMessage/delta",
            ItemKind::Reasoning => {
                add_fields(&mut params, json!({"summaryIndex": 0}));
                "item/reasoning/summaryTextDelta"
            }
        };
        notify(method, &params, out);
    }

    fn open_item(&mut self, kind: ItemKind, out: &mut Outbox) {
        let open = self.turn.as_ref().and_then(|turn| turn.item.as_ref());
        if open.is_some_and(|item| item.kind == kind) {
            return;
        }
        // A thought ends the message before it, and the reverse.
        self.close_item(out);
        let item = TextItem {
            kind,
            id: format!("item_{}", out.new_id()),
            text: String::new(),
            started_ms: out.now_ms,
        };
        self.push_item("item/started", &text_item_json(&item, None), out);
        if let Some(turn) = &mut self.turn {
            turn.item = Some(item);
        }
    }

    fn close_item(&mut self, out: &mut Outbox) {
        let Some(item) = self.turn.as_mut().and_then(|turn| turn.item.take()) else {
            return;
        };
        let shown = text_item_json(&item, Some(out.now_ms));
        self.push_item("item/completed", &shown, out);
        if let (ItemKind::Message, Some(turn)) = (item.kind, &mut self.turn) {
            turn.last_message = Some(shown);
        }
    }

    fn tool_item(&self, tool: &ToolUse, outcome: Option<&ToolOutcome>) -> Value {
        let place = ToolPlace {
            directory: self.working_directory(),
            server: self.mcp_server().map_or("turnkeep", |server| &server.name),
        };
        tool_item_json(tool, outcome, &place)
    }

    fn end_tool(&mut self, tool: &ToolUse, outcome: &ToolOutcome, out: &mut Outbox) {
        let item = self.tool_item(tool, Some(outcome));
        self.push_item("item/completed", &item, out);
        let diff = find_value(&item, "changes.0.diff").and_then(Value::as_str);
        let (Some(diff), true, Some(turn)) = (diff, outcome.is_ok(), &mut self.turn) else {
            return;
        };
        // The notification always carries the whole difference of the turn so far.
        turn.diff.push_str(diff);
        let params = json!({"threadId": self.thread_id(), "turnId": self.turn_id(),
            "diff": self.turn.as_ref().map(|turn| &turn.diff)});
        notify("turn/diff/updated", &params, out);
    }

    fn send_question(&mut self, method: &str, item: &Value, reason: &str, out: &mut Outbox) {
        self.push_status(
            &json!({"type": "active", "activeFlags": ["waitingOnApproval"]}),
            out,
        );
        let mut params = json!({
            "threadId": self.thread_id(),
            "turnId": self.turn_id(),
            "itemId": item.get("id"),
            "startedAtMs": out.now_ms,
            "reason": (!reason.is_empty()).then_some(reason),
            "availableDecisions": ["accept", "acceptForSession", "decline", "cancel"],
        });
        for field in ["command", "cwd", "commandActions"] {
            if let Some(value) = item.get(field) {
                add_fields(&mut params, json!({field: value}));
            }
        }
        RPC.request(self.next_question, method, &params, out);
        self.question = Some(Question {
            id: self.next_question,
        });
        self.next_question += 1;
    }

    fn push_usage(&mut self, last: Usage, out: &mut Outbox) {
        self.usage.add(last);
        let params = json!({
            "threadId": self.thread_id(),
            "turnId": self.turn_id(),
            "tokenUsage": {
                "total": usage_json(self.usage),
                "last": usage_json(last),
                "modelContextWindow": CONTEXT_WINDOW_TOKENS,
            },
        });
        notify("thread/tokenUsage/updated", &params, out);
    }

    fn fail_turn(&mut self, error: &TurnError<'_>, out: &mut Outbox) {
        let shown = json!({
            "message": error.message,
            "codexErrorInfo": error.info,
            "additionalDetails": null,
        });
        let params = json!({
            "error": shown,
            "willRetry": false,
            "threadId": self.thread_id(),
            "turnId": self.turn_id(),
        });
        // An error is announced by itself first, then as the turn's end.
        notify("error", &params, out);
        self.complete_turn("failed", &shown, out);
    }

    fn complete_turn(&mut self, status: &str, error: &Value, out: &mut Outbox) {
        self.push_status(&json!({"type": "idle"}), out);
        let Some(turn) = self.turn.take() else { return };
        let mut shown = turn_json(&turn.id, status);
        if let Some(message) = turn.last_message {
            add_fields(
                &mut shown,
                json!({"items": [message], "itemsView": "summary"}),
            );
        }
        let times = json!({
            "error": error,
            "startedAt": turn.started_ms / 1000,
            "completedAt": out.now_seconds(),
            "durationMs": out.now_ms.saturating_sub(turn.started_ms),
        });
        add_fields(&mut shown, times);
        let params = json!({"threadId": self.thread_id(), "turn": shown});
        notify("turn/completed", &params, out);
    }

    /// A message that was being streamed is not completed, as recorded.
    fn end_interrupted(&mut self, out: &mut Outbox) {
        if let Some(turn) = &mut self.turn {
            turn.item = None;
            turn.last_message = None;
        }
        if let Some(question) = self.question.take() {
            let params = json!({"threadId": self.thread_id(), "requestId": question.id});
            notify("serverRequest/resolved", &params, out);
        }
        if let Some(id) = self.interrupt_request.take() {
            RPC.respond(&id, &json!({}), out);
        }
        self.complete_turn("interrupted", &Value::Null, out);
    }
}

impl Protocol for AppServer {
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
            Message::Response { id, result } => self.receive_answer(&id, result.as_ref(), out),
            Message::Notification { .. } => None,
            Message::Broken => {
                let failure = Failure::new(json_rpc::PARSE_ERROR, "Parse error");
                RPC.fail(&Value::Null, &failure, out);
                None
            }
        };
        incoming.into_iter().collect()
    }

    fn begin_turn(&mut self, prompt: &str, out: &mut Outbox) {
        // A turn that ignored its interrupt left the request behind.
        self.interrupt_request = None;
        self.push_status(&json!({"type": "active", "activeFlags": []}), out);
        let mut shown = turn_json(self.turn_id(), "inProgress");
        add_fields(&mut shown, json!({"startedAt": out.now_seconds()}));
        let params = json!({"threadId": self.thread_id(), "turn": shown});
        notify("turn/started", &params, out);
        self.push_user_message(prompt, out);
    }

    fn show(&mut self, show: &Show, out: &mut Outbox) {
        match show {
            Show::Text(text) => self.add_text(ItemKind::Message, text, out),
            Show::Thought(text) => self.add_text(ItemKind::Reasoning, text, out),
            Show::MessageEnd => self.close_item(out),
            Show::ToolStarted(tool) => {
                self.close_item(out);
                let item = self.tool_item(tool, None);
                self.push_item("item/started", &item, out);
            }
            Show::ToolEnded { tool, outcome } => self.end_tool(tool, outcome, out),
            Show::Usage(usage) => {
                // The real program counts what it has shown whole.
                self.close_item(out);
                self.push_usage(*usage, out);
            }
        }
    }

    fn ask(&mut self, tool: &ToolUse, reason: &str, out: &mut Outbox) -> Asked {
        let policy = self
            .thread
            .as_ref()
            .map(|thread| thread.approval_policy.as_str());
        let item = self.tool_item(tool, None);
        let method = match text_of(&item, "type") {
            _ if policy == Some("never") => None,
            Some("commandExecution") => Some("item/commandExecution/requestApproval"),
            Some("fileChange") => Some("item/fileChange/requestApproval"),
            // The real program asks about commands and files only.
            _ => None,
        };
        let Some(method) = method else {
            return Asked::Decided(Decision::Allowed { changed: None });
        };
        // A recorded question has the words that the server made of the call, and no reason.
        let is_recorded = matches!(tool.action, ToolAction::Show { .. });
        let reason = if is_recorded { "" } else { reason };
        self.send_question(method, &item, reason, out);
        Asked::Sent
    }

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox) {
        if matches!(ending, Ending::Interrupted) {
            return self.end_interrupted(out);
        }
        self.close_item(out);
        match ending {
            Ending::Completed | Ending::Interrupted => {
                self.complete_turn("completed", &Value::Null, out);
            }
            Ending::Failed { text } => {
                self.fail_turn(
                    &TurnError {
                        message: text,
                        info: json!("other"),
                    },
                    out,
                );
            }
            Ending::RateLimited(reset) => {
                push_rate_limits(reset_time(*reset, out), out);
                let message = "You've hit your usage limit.";
                self.fail_turn(
                    &TurnError {
                        message,
                        info: json!("usageLimitExceeded"),
                    },
                    out,
                );
            }
            Ending::Unavailable { text } => {
                self.fail_turn(
                    &TurnError {
                        message: text,
                        info: json!("serverOverloaded"),
                    },
                    out,
                );
            }
        }
    }

    fn mcp_server(&self) -> Option<&McpServer> {
        self.thread.as_ref()?.mcp.as_ref()
    }

    fn working_directory(&self) -> Option<&Path> {
        self.thread
            .as_ref()
            .map(|thread| thread.directory.as_path())
    }
}

fn notify(method: &str, params: &Value, out: &mut Outbox) {
    let emitted = out.now_ms;
    out.push_json(&json!({"method": method, "params": params, "emittedAtMs": emitted}));
}

fn push_rate_limits(resets_at: Option<u64>, out: &mut Outbox) {
    let window = json!({"usedPercent": 100, "windowDurationMins": 300, "resetsAt": resets_at});
    let limits = json!({
        "limitId": "codex",
        "limitName": null,
        "primary": window,
        "secondary": null,
        "credits": null,
        "planType": null,
        "rateLimitReachedType": "rate_limit_reached",
    });
    notify(
        "account/rateLimits/updated",
        &json!({"rateLimits": limits}),
        out,
    );
}

/// Codex answers every refusal with this code.
fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(json_rpc::INVALID_REQUEST, message)
}

fn need_text<'p>(params: &'p Value, key: &str) -> Result<&'p str, Failure> {
    let missing = || invalid(format!("missing field `{key}`"));
    text_of(params, key).ok_or_else(missing)
}

fn need_prompt(params: &Value) -> Result<String, Failure> {
    let input = params.get("input").and_then(read_prompt_text);
    input.ok_or_else(|| invalid("the input has no text"))
}
