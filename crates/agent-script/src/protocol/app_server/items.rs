//! The items of a Codex turn as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::protocol::{add_fields, text_of};
use crate::script::Usage;
use crate::tool::{ToolAction, ToolOutcome, ToolStatus, ToolUse};

/// A message or a reasoning that is being streamed.
pub(super) struct TextItem {
    pub(super) kind: ItemKind,
    pub(super) id: String,
    pub(super) text: String,
    pub(super) started_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
}

pub(super) fn turn_json(id: &str, status: &str) -> Value {
    json!({
        "id": id,
        "items": [],
        "itemsView": "notLoaded",
        "status": status,
        "error": null,
        "startedAt": null,
        "completedAt": null,
        "durationMs": null,
    })
}

pub(super) fn text_item_json(item: &TextItem, completed_ms: Option<u64>) -> Value {
    let TextItem {
        id,
        text,
        started_ms,
        ..
    } = item;
    match item.kind {
        ItemKind::Message => json!({
            "type": "agentMessage",
            "id": id,
            "text": text,
            "phase": null,
            "startedAtMs": started_ms,
            "completedAtMs": completed_ms,
        }),
        ItemKind::Reasoning => {
            let summary: Vec<&String> = completed_ms.iter().map(|_| text).collect();
            json!({"type": "reasoning", "id": id, "summary": summary, "content": []})
        }
    }
}

fn status_word(outcome: Option<&ToolOutcome>) -> &'static str {
    match outcome.map(|outcome| outcome.status) {
        None => "inProgress",
        Some(ToolStatus::Completed) => "completed",
        Some(ToolStatus::Denied) => "declined",
        Some(ToolStatus::Failed | ToolStatus::Interrupted) => "failed",
    }
}

fn shell_command(command: &str) -> String {
    format!("/bin/bash -lc '{}'", command.replace('\'', r"'\''"))
}

fn file_change(action: &ToolAction) -> Value {
    let added = |text: &str| {
        let lines: Vec<String> = text.lines().map(|line| format!("+{line}\n")).collect();
        format!("@@ -0,0 +1,{} @@\n{}", lines.len(), lines.concat())
    };
    match action {
        ToolAction::Write { path, content } => {
            json!({"path": path, "kind": {"type": "add"}, "diff": added(content)})
        }
        ToolAction::Append { path, content } => {
            let kind = json!({"type": "update", "move_path": null});
            json!({"path": path, "kind": kind, "diff": added(content)})
        }
        ToolAction::Delete { path } => {
            json!({"path": path, "kind": {"type": "delete"}, "diff": ""})
        }
        _ => Value::Null,
    }
}

pub(super) fn usage_json(usage: Usage) -> Value {
    json!({
        "totalTokens": usage.input.saturating_add(usage.output),
        "inputTokens": usage.input,
        "cachedInputTokens": usage.cached,
        "cacheWriteInputTokens": 0,
        "outputTokens": usage.output,
        "reasoningOutputTokens": 0,
    })
}

/// What a tool's item needs to know about its thread.
pub(super) struct ToolPlace<'p> {
    pub(super) directory: Option<&'p Path>,
    pub(super) server: &'p str,
}

/// The item of a tool, in progress or with its outcome.
pub(super) fn tool_item_json(
    tool: &ToolUse,
    outcome: Option<&ToolOutcome>,
    place: &ToolPlace<'_>,
) -> Value {
    let mut item = match &tool.action {
        ToolAction::Run { command } => command_item(command, tool, outcome, place),
        ToolAction::Write { .. } | ToolAction::Append { .. } | ToolAction::Delete { .. } => {
            json!({"type": "fileChange", "changes": [file_change(&tool.action)]})
        }
        ToolAction::Call { name, args } => {
            let mut item = call_item(outcome);
            add_fields(
                &mut item,
                json!({"server": place.server, "tool": name, "arguments": args}),
            );
            item
        }
        ToolAction::Show { name, args, .. } => shown_item(name, args, tool, outcome, place),
    };
    let id = format!("call_{}_{}", std::process::id(), tool.number);
    add_fields(&mut item, json!({"id": id, "status": status_word(outcome)}));
    item
}

/// A recorded call as the kind of item that it was. The program asks about commands and files only, so
/// these must be items of their own kinds again.
fn shown_item(
    name: &str,
    args: &Value,
    tool: &ToolUse,
    outcome: Option<&ToolOutcome>,
    place: &ToolPlace<'_>,
) -> Value {
    match (name, text_of(args, "command"), args.get("changes")) {
        ("command", Some(command), _) => command_item(command, tool, outcome, place),
        ("file_change", _, Some(changes)) => json!({"type": "fileChange", "changes": changes}),
        _ => json!({
            "type": "dynamicToolCall",
            "tool": name,
            "arguments": args,
            "contentItems": outcome.map(|o| json!([{"type": "inputText", "text": o.output}])),
            "success": outcome.map(ToolOutcome::is_ok),
        }),
    }
}

fn command_item(
    command: &str,
    tool: &ToolUse,
    outcome: Option<&ToolOutcome>,
    place: &ToolPlace<'_>,
) -> Value {
    json!({
        "type": "commandExecution",
        "command": shell_command(command),
        "cwd": place.directory,
        "processId": outcome.map(|_| tool.number.to_string()),
        "source": "agent",
        "commandActions": [{"type": "unknown", "command": command}],
        "aggregatedOutput": outcome.map(|outcome| &outcome.output),
        "exitCode": outcome.and_then(|outcome| outcome.exit_code),
        "durationMs": outcome.map(|_| 0),
    })
}

/// A call has a result or an error, never both.
fn call_item(outcome: Option<&ToolOutcome>) -> Value {
    let result = outcome.filter(|outcome| outcome.is_ok()).map(|outcome| {
        let content = json!([{"type": "text", "text": outcome.output}]);
        json!({"content": content, "structuredContent": outcome.value})
    });
    let error = outcome.filter(|outcome| !outcome.is_ok());
    json!({
        "type": "mcpToolCall",
        "result": result,
        "error": error.map(|outcome| json!({"message": outcome.output})),
        "durationMs": outcome.map(|_| 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_in_a_shell() {
        assert_eq!(shell_command("echo 'a'"), r"/bin/bash -lc 'echo '\''a'\'''");
    }
}
