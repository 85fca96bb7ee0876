//! Turnkeep's own protocol for programs: one JSON object a line, with the names of its events.
//!
//! The other side sends `start`, prompts, interrupts and answers. This side proposes and completes
//! tools, asks, reports usage, and ends each turn with `turn.status`. Calls of Turnkeep's tools
//! travel in the protocol too: a line `{"tool_call": …}` goes out, `tool.results` comes back, and
//! the turn stays open in between, although this side ends its part with `turn.completed`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Asked, Incoming, Outbox, Protocol, add_fields, reset_time, text_of};
use crate::arguments::ProgramArguments;
use crate::player::{Decision, Ending, Show};
use crate::script::{Settings, Usage};
use crate::tool::{ArgumentNames, ToolAction, ToolOutcome, ToolUse};

const NAMES: ArgumentNames = ArgumentNames {
    command: "cmd",
    path: "path",
    content: "content",
    appended: "content",
};

pub(super) struct Jsonl {
    session: String,
    directory: Option<PathBuf>,
    skips_permissions: bool,
    question: Option<Question>,
    message: String,
    thoughts: String,
}

struct Question {
    approval_id: String,
    tool: ToolUse,
}

impl Jsonl {
    pub(super) fn open(program: &ProgramArguments, settings: &Settings, out: &mut Outbox) -> Self {
        let session = program.resume.clone().or_else(|| settings.session.clone());
        Jsonl {
            session: session.unwrap_or_else(|| out.new_id()),
            directory: None,
            skips_permissions: program.skip_permissions,
            question: None,
            message: String::new(),
            thoughts: String::new(),
        }
    }

    fn receive_line(&mut self, line: &Value, out: &mut Outbox) -> Option<Incoming> {
        match text_of(line, "type")? {
            "start" => {
                self.start_session(line, out);
                None
            }
            "message.user" => Some(Incoming::Prompt(text_of(line, "content")?.to_owned())),
            "interrupt" => Some(Incoming::Interrupt),
            "approval.resolved" => self.receive_resolution(line),
            "tool.results" => Some(Incoming::CallAnswer(read_results(line))),
            "reset" => {
                // The script goes on: a reset forgets the conversation, not the turns.
                self.session = out.new_id();
                self.push_session(out);
                None
            }
            _ => None,
        }
    }

    fn start_session(&mut self, line: &Value, out: &mut Outbox) {
        self.directory = text_of(line, "cwd").map(PathBuf::from);
        if let Some(session) = text_of(line, "sessionId") {
            session.clone_into(&mut self.session);
        }
        // The command line may have said so already.
        self.skips_permissions |= text_of(line, "permissions") == Some("skip");
        self.push_session(out);
    }

    fn push_session(&self, out: &mut Outbox) {
        out.push_json(&json!({"type": "session", "sessionId": self.session}));
    }

    fn receive_resolution(&mut self, line: &Value) -> Option<Incoming> {
        let approval_id = text_of(line, "approvalId")?;
        let question = self
            .question
            .take_if(|question| question.approval_id == approval_id)?;
        let resolution = line.get("resolution").unwrap_or(&Value::Null);
        let decision = match text_of(resolution, "status") {
            Some("approved") => Decision::Allowed { changed: None },
            Some("modified") => {
                let args = resolution.get("modifiedArgs").unwrap_or(&Value::Null);
                let changed = question.tool.action.with_arguments(args, NAMES);
                Decision::Allowed {
                    changed: Some(changed),
                }
            }
            _ => Decision::Denied {
                message: text_of(resolution, "reason").unwrap_or("denied").to_owned(),
                stop: false,
            },
        };
        Some(Incoming::Decision(decision))
    }

    /// Sends what was streamed once more, whole.
    fn close_message(&mut self, out: &mut Outbox) {
        for (name, text) in [
            (
                "message.assistant.thinking.final",
                std::mem::take(&mut self.thoughts),
            ),
            ("message.assistant.final", std::mem::take(&mut self.message)),
        ] {
            if !text.is_empty() {
                out.push_json(&json!({"type": name, "content": text}));
            }
        }
    }
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "type": "telemetry.usage",
        "usage": {
            "promptTokens": usage.input,
            "completionTokens": usage.output,
            "cachedTokens": usage.cached,
        },
        "costUsd": usage.cost,
    })
}

impl Protocol for Jsonl {
    fn receive(&mut self, input: &[u8], out: &mut Outbox) -> Vec<Incoming> {
        match serde_json::from_slice::<Value>(input) {
            Ok(line) => self.receive_line(&line, out).into_iter().collect(),
            Err(error) => {
                let text = format!("a line is not JSON: {error}");
                out.push_json(&json!({"type": "node.log", "text": text}));
                Vec::new()
            }
        }
    }

    fn begin_turn(&mut self, _prompt: &str, _out: &mut Outbox) {}

    fn show(&mut self, show: &Show, out: &mut Outbox) {
        match show {
            Show::Text(text) => {
                self.message.push_str(text);
                out.push_json(&json!({"type": "message.assistant.delta", "delta": text}));
            }
            Show::Thought(text) => {
                self.thoughts.push_str(text);
                out.push_json(&json!({"type": "message.assistant.thinking.delta", "delta": text}));
            }
            Show::MessageEnd => self.close_message(out),
            Show::ToolStarted(tool) => {
                self.close_message(out);
                if !is_call(tool) {
                    out.push_json(&json!({"type": "tool.proposed", "tool": tool_json(tool)}));
                }
            }
            // The other side carried the call out, so it knows the result.
            Show::ToolEnded { tool, .. } if is_call(tool) => {}
            Show::ToolEnded { tool, outcome } => out.push_json(&completed_json(tool, outcome)),
            Show::Usage(usage) => {
                // What was used is known when a message is whole.
                self.close_message(out);
                out.push_json(&usage_json(*usage));
            }
        }
    }

    fn ask(&mut self, tool: &ToolUse, reason: &str, out: &mut Outbox) -> Asked {
        // Turnkeep decides about calls of its own tools when it carries them out.
        if self.skips_permissions || is_call(tool) {
            return Asked::Decided(Decision::Allowed { changed: None });
        }
        let approval_id = out.new_id();
        out.push_json(&json!({
            "type": "approval.requested",
            "approvalId": approval_id,
            "tool": tool_json(tool),
            "context": reason,
        }));
        self.question = Some(Question {
            approval_id,
            tool: tool.clone(),
        });
        Asked::Sent
    }

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox) {
        self.close_message(out);
        if let Some(Question { approval_id, .. }) = self.question.take() {
            out.push_json(&json!({"type": "approval.withdrawn", "approvalId": approval_id}));
        }
        match ending {
            Ending::Completed => push_status("turn.completed", json!({}), out),
            Ending::Interrupted => push_status("turn.interrupted", json!({}), out),
            Ending::Failed { text } => push_failure(text, None, out),
            Ending::Unavailable { text } => push_failure(text, Some(503), out),
            Ending::RateLimited(reset) => {
                let detail = match reset_time(*reset, out) {
                    Some(at) => {
                        let seconds = at.saturating_sub(out.now_seconds());
                        format!("rate limit reached; try again in {seconds} seconds")
                    }
                    None => "rate limit reached".to_owned(),
                };
                push_failure(&detail, Some(429), out);
            }
        }
    }

    fn carries_calls(&self) -> bool {
        true
    }

    fn send_call(&mut self, name: &str, args: &Value, out: &mut Outbox) {
        out.push_json(&json!({"tool_call": {"name": name, "args": args}}));
        // The other side collects calls until this line, and then goes on with their results.
        push_status("turn.completed", json!({}), out);
    }

    fn working_directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

fn push_status(status: &str, more: Value, out: &mut Outbox) {
    let mut line = json!({"type": "turn.status", "status": status});
    add_fields(&mut line, more);
    out.push_json(&line);
}

fn push_failure(detail: &str, http_status: Option<u16>, out: &mut Outbox) {
    let more = match http_status {
        Some(status) => json!({"detail": detail, "httpStatus": status}),
        None => json!({"detail": detail}),
    };
    push_status("turn.failed", more, out);
}

fn is_call(tool: &ToolUse) -> bool {
    matches!(tool.action, ToolAction::Call { .. })
}

fn tool_json(tool: &ToolUse) -> Value {
    let (name, args) = match &tool.action {
        ToolAction::Run { command } => ("command", json!({"cmd": command})),
        ToolAction::Write { path, content } => {
            ("write_file", json!({"path": path, "content": content}))
        }
        ToolAction::Append { path, content } => {
            ("append_file", json!({"path": path, "content": content}))
        }
        ToolAction::Delete { path } => ("delete_file", json!({"path": path})),
        ToolAction::Call { name, args } | ToolAction::Show { name, args, .. } => {
            (name.as_str(), args.clone())
        }
    };
    json!({"id": tool_id(tool), "name": name, "args": args})
}

fn tool_id(tool: &ToolUse) -> String {
    format!("tool-{}-{}", std::process::id(), tool.number)
}

fn completed_json(tool: &ToolUse, outcome: &ToolOutcome) -> Value {
    let mut line = json!({
        "type": "tool.completed",
        "toolId": tool_id(tool),
        "result": {"ok": outcome.is_ok(), "output": outcome.output},
    });
    if !outcome.is_ok() {
        add_fields(&mut line, json!({"error": {"message": outcome.output}}));
    }
    line
}

/// The result of the one call that was sent, or the report that it was malformed.
fn read_results(line: &Value) -> ToolOutcome {
    let Some(result) = line.get("results").and_then(|results| results.get(0)) else {
        return ToolOutcome::failed("the call was malformed");
    };
    let is_ok = result.get("ok").and_then(Value::as_bool).unwrap_or(false);
    let value = result
        .get(if is_ok { "result" } else { "error" })
        .cloned()
        .unwrap_or_default();
    ToolOutcome::with_value(is_ok, value)
}
