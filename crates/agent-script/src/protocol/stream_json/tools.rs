//! Tools under the names and with the arguments that Claude would show.

use serde_json::{Value, json};

use crate::protocol::text_of;
use crate::tool::{ArgumentNames, ToolAction, ToolUse};

const NAMES: ArgumentNames = ArgumentNames {
    command: "command",
    path: "file_path",
    content: "content",
    appended: "new_string",
};

/// The process is part of the id: a resumed session must not meet the same id twice.
pub(super) fn tool_id(tool: &ToolUse) -> String {
    format!("toolu_{}_{}", std::process::id(), tool.number)
}

/// `server` is the name of the MCP server, which is part of the names of its tools.
pub(super) fn tool_name(action: &ToolAction, server: &str) -> String {
    match action {
        ToolAction::Run { .. } | ToolAction::Delete { .. } => "Bash".to_owned(),
        ToolAction::Write { .. } => "Write".to_owned(),
        ToolAction::Append { .. } => "Edit".to_owned(),
        ToolAction::Show { name, .. } => name.clone(),
        ToolAction::Call { name, .. } => format!("mcp__{server}__{name}"),
    }
}

pub(super) fn tool_input(action: &ToolAction) -> Value {
    match action {
        ToolAction::Run { command } => json!({"command": command, "description": command}),
        ToolAction::Delete { path } => {
            json!({"command": delete_command(path), "description": format!("Delete {path}")})
        }
        ToolAction::Write { path, content } => json!({"file_path": path, "content": content}),
        ToolAction::Append { path, content } => {
            json!({"file_path": path, "old_string": "", "new_string": content})
        }
        ToolAction::Call { args, .. } | ToolAction::Show { args, .. } => args.clone(),
    }
}

/// What a tool does with the arguments of a permission's answer.
pub(super) fn change_action(action: &ToolAction, input: &Value) -> ToolAction {
    match (action, text_of(input, NAMES.command)) {
        // A deletion is shown as a command, so a person can make any command of it.
        (ToolAction::Delete { path }, Some(command)) if command != delete_command(path) => {
            ToolAction::Run {
                command: command.to_owned(),
            }
        }
        _ => action.with_arguments(input, NAMES),
    }
}

fn delete_command(path: &str) -> String {
    format!("rm {path}")
}
