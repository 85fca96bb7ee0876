//! The items of a Codex turn as messages, thoughts and calls of tools.
//!
//! | item | becomes |
//! |---|---|
//! | `agentMessage`, `plan` | a message |
//! | `reasoning` | a thought |
//! | `commandExecution` | tool `command` with `command` and `cwd` |
//! | `fileChange` | tool `file_change` with `changes`, and `path` if it is one file |
//! | `mcpToolCall` | tool `mcp__<server>__<tool>` |
//! | `dynamicToolCall`, `collabAgentToolCall` | a tool of its own name |
//! | `webSearch`, `imageView` | tools `web_search`, `view_image` |

use serde_json::{Value, json};

use crate::context::FileChange;
use crate::event::{ToolCall, ToolResult};
use crate::field::{list_at, object_at, text_at};

/// The text of a finished message.
pub(super) fn message_of(item: &Value) -> Option<String> {
    let is_message = matches!(text_at(item, "/type")?, "agentMessage" | "plan");
    let text = text_at(item, "/text").filter(|text| !text.is_empty())?;
    is_message.then(|| text.to_owned())
}

/// The text of a finished thought: its summary, or the raw thought of models that show it.
pub(super) fn thought_of(item: &Value) -> Option<String> {
    if text_at(item, "/type") != Some("reasoning") {
        return None;
    }
    let parts = ["/summary", "/content"].map(|path| {
        let parts = list_at(item, path).iter().filter_map(Value::as_str);
        parts.collect::<Vec<_>>().join("\n\n")
    });
    parts.into_iter().find(|text| !text.is_empty())
}

/// The call that an item stands for, if it is about a tool.
pub(super) fn tool_call_of(item: &Value) -> Option<ToolCall> {
    let name_at = |path| text_at(item, path).unwrap_or("tool");
    let (name, args) = match text_at(item, "/type")? {
        "commandExecution" => ("command".to_owned(), command_args(item)),
        "fileChange" => ("file_change".to_owned(), file_change_args(item)),
        "mcpToolCall" => {
            let (server, tool) = (name_at("/server"), name_at("/tool"));
            let name = format!("mcp__{server}__{tool}");
            (name, object_at(item, "/arguments"))
        }
        "dynamicToolCall" => (name_at("/tool").to_owned(), object_at(item, "/arguments")),
        "collabAgentToolCall" => {
            let prompt = text_at(item, "/prompt");
            (name_at("/tool").to_owned(), json!({"prompt": prompt}))
        }
        "webSearch" => {
            let query = text_at(item, "/query");
            ("web_search".to_owned(), json!({"query": query}))
        }
        "imageView" => {
            let path = text_at(item, "/path");
            ("view_image".to_owned(), json!({"path": path}))
        }
        _ => return None,
    };
    Some(ToolCall {
        provider_id: text_at(item, "/id")?.to_owned(),
        name,
        args,
    })
}

/// The arguments of a command, also of one in a request for approval.
pub(super) fn command_args(item: &Value) -> Value {
    let command = text_at(item, "/command").unwrap_or_default();
    let cwd = text_at(item, "/cwd").unwrap_or_default();
    json!({"command": unwrap_shell(command), "cwd": cwd})
}

/// The script of a command line that only starts a shell: `/bin/bash -lc 'make test'` is
/// `make test`. Rules about commands compare their first words, and those of the shell would match
/// every command. A script that is quoted in parts stays as it is.
fn unwrap_shell(command: &str) -> &str {
    let Some((shell, rest)) = command.split_once(' ') else {
        return command;
    };
    let shell = shell.rsplit('/').next().unwrap_or(shell);
    let script = rest
        .strip_prefix("-lc ")
        .or_else(|| rest.strip_prefix("-c "));
    match script {
        Some(script) if matches!(shell, "sh" | "bash" | "zsh") => {
            unquote(script).unwrap_or(command)
        }
        _ => command,
    }
}

/// The content of a text that is one word for a shell: quoted once and as a whole, or plain.
fn unquote(script: &str) -> Option<&str> {
    let between = |quote: char| script.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(content) = between('\'') {
        return (!content.contains('\'')).then_some(content);
    }
    if let Some(content) = between('"') {
        let is_literal = !content.contains(['"', '\\', '$', '`']);
        return is_literal.then_some(content);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    script.chars().all(is_plain).then_some(script)
}

fn file_change_args(item: &Value) -> Value {
    let changes = object_at(item, "/changes");
    match list_at(item, "/changes") {
        [change] => json!({"path": text_at(change, "/path"), "changes": changes}),
        _ => json!({"changes": changes}),
    }
}

/// The files of a `file_change` call. The diff of a new or deleted file is its content.
pub(super) fn files_of(args: &Value) -> Vec<FileChange> {
    let changes = list_at(args, "/changes").iter();
    changes
        .filter_map(|change| {
            let path = text_at(change, "/path")?;
            let diff = text_at(change, "/diff").unwrap_or_default();
            Some(match text_at(change, "/kind/type") {
                Some("add") => FileChange::between(path, "", diff),
                Some("delete") => FileChange::between(path, diff, ""),
                _ => FileChange::from_diff(path, diff),
            })
        })
        .collect()
}

/// The result of a finished item.
pub(super) fn tool_result_of(item: &Value) -> ToolResult {
    let status = text_at(item, "/status").unwrap_or("completed");
    let exit_code = item.pointer("/exitCode").and_then(Value::as_i64);
    // The exit status counts more than the word beside it.
    let ok = status == "completed" && exit_code.unwrap_or(0) == 0;
    let error = match (ok, status, exit_code) {
        (true, ..) => None,
        (false, "declined", _) => Some("declined".to_owned()),
        (false, _, Some(code)) => Some(format!("exited with status {code}")),
        (false, ..) => Some(text_at(item, "/error/message").unwrap_or(status).to_owned()),
    };
    ToolResult {
        provider_id: text_at(item, "/id").unwrap_or_default().to_owned(),
        ok,
        output: output_of(item),
        error,
    }
}

fn output_of(item: &Value) -> Option<String> {
    if let Some(output) = text_at(item, "/aggregatedOutput") {
        return Some(output.to_owned());
    }
    // MCP tools and tools of the client have lists of blocks; only their texts can be shown.
    let blocks = ["/result/content", "/contentItems"]
        .into_iter()
        .flat_map(|path| list_at(item, path));
    let texts: Vec<&str> = blocks.filter_map(|block| text_at(block, "/text")).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_runs_one_script_is_unwrapped() {
        let rows = [
            ("/bin/bash -lc 'touch a && echo b'", "touch a && echo b"),
            ("bash -c \"make test\"", "make test"),
            ("zsh -lc ls", "ls"),
            ("/bin/bash -lc 'it'\"'\"'s'", "/bin/bash -lc 'it'\"'\"'s'"),
            ("bash -lc \"echo $HOME\"", "bash -lc \"echo $HOME\""),
            ("bash -lc $(x)", "bash -lc $(x)"),
            ("bash -lc '", "bash -lc '"),
            ("bash script.sh", "bash script.sh"),
            ("fish -c ls", "fish -c ls"),
            ("ls", "ls"),
            ("", ""),
        ];
        for (command, expect) in rows {
            assert_eq!(unwrap_shell(command), expect, "{command}");
        }
    }

    #[test]
    fn each_kind_of_tool_has_a_name_and_arguments() {
        let rows = [
            (
                json!({"type": "fileChange", "id": "1", "changes": [{"path": "a"}]}),
                "file_change",
                json!({"path": "a", "changes": [{"path": "a"}]}),
            ),
            (
                json!({"type": "mcpToolCall", "id": "1", "server": "s", "tool": "t",
                    "arguments": {"x": 1}}),
                "mcp__s__t",
                json!({"x": 1}),
            ),
            (
                json!({"type": "webSearch", "id": "1", "query": "q"}),
                "web_search",
                json!({"query": "q"}),
            ),
            (
                json!({"type": "dynamicToolCall", "id": "1", "tool": 5}),
                "tool",
                json!({}),
            ),
        ];
        for (item, name, args) in rows {
            let call = tool_call_of(&item).unwrap();
            assert_eq!((call.name.as_str(), call.args), (name, args));
        }
        assert_eq!(tool_call_of(&json!({"type": "webSearch"})), None);
        assert_eq!(
            tool_call_of(&json!({"type": "userMessage", "id": "1"})),
            None
        );
    }

    #[test]
    fn a_result_is_good_if_the_item_completed_and_the_command_succeeded() {
        let rows = [
            (json!({"status": "completed", "exitCode": 0}), None),
            (json!({"status": "completed"}), None),
            (
                json!({"status": "completed", "exitCode": 2}),
                Some("exited with status 2"),
            ),
            (
                json!({"status": "failed", "exitCode": 1}),
                Some("exited with status 1"),
            ),
            (json!({"status": "declined"}), Some("declined")),
            (
                json!({"status": "failed", "error": {"message": "boom"}}),
                Some("boom"),
            ),
            (json!({"status": "failed"}), Some("failed")),
        ];
        for (item, error) in rows {
            let result = tool_result_of(&item);
            assert_eq!(result.error.as_deref(), error, "{item}");
            assert_eq!(result.ok, error.is_none(), "{item}");
        }
    }
}
