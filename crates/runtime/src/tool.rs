//! Tool calls of an agent. Every proposed call is completed exactly once, also after a denial, an
//! interrupt or a crash.

use serde_json::Value;
use turnkeep_types::Timestamp;

use crate::ids::{ArtifactId, ToolId};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: ToolId,
    pub name: String,
    pub args: Value,
    /// The program's own id of the call.
    pub provider_id: Option<String>,
}

/// The arguments under which programs name a file.
const PATH_KEYS: [&str; 4] = ["file_path", "filePath", "path", "notebook_path"];
/// The arguments that only a call has that writes its file.
const CONTENT_KEYS: [&str; 8] = [
    "content",
    "new_string",
    "newString",
    "newText",
    "new_source",
    "old_string",
    "oldText",
    "edits",
];
/// The argument of ACP agents that says what a call does.
const KIND_KEY: &str = "toolKind";

impl ToolCall {
    /// The files that the call writes, as its arguments name them. A command names none: nothing says
    /// what it writes.
    ///
    /// | program | arguments |
    /// |---|---|
    /// | Claude Code and programs like it | a path and the new text |
    /// | Codex | `changes`, each with a path and perhaps the new one |
    /// | ACP agents | a path or `paths`, with the kind `edit`, `delete` or `move` |
    pub fn written_paths(&self) -> Vec<&str> {
        let args = &self.args;
        if let Some(changes) = args.get("changes").and_then(Value::as_array) {
            let ends = changes
                .iter()
                .flat_map(|change| [change.get("path"), change.pointer("/kind/move_path")]);
            return ends.flatten().filter_map(Value::as_str).collect();
        }
        let kind = args.get(KIND_KEY).and_then(Value::as_str);
        let writes = match kind {
            Some(kind) => matches!(kind, "edit" | "delete" | "move"),
            // A call that has a path and brings no text only reads the file.
            None => CONTENT_KEYS.iter().any(|key| args.get(key).is_some()),
        };
        if !writes {
            return Vec::new();
        }
        let own = PATH_KEYS.iter().filter_map(|key| args.get(key));
        let more = args.get("paths").and_then(Value::as_array);
        own.chain(more.into_iter().flatten())
            .filter_map(Value::as_str)
            .collect()
    }
}

/// Whether a call with these arguments runs a command, as ACP agents say that do not show it.
pub(crate) fn is_of_kind_execute(args: &Value) -> bool {
    args.get(KIND_KEY).and_then(Value::as_str) == Some("execute")
}

/// A call that is not completed.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTool {
    pub call: ToolCall,
    pub proposed_at: Timestamp,
    /// When it began to run; a proposed call may wait for approval.
    pub started_at: Option<Timestamp>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    pub ok: bool,
    pub output: Option<String>,
    /// Whether `output` is only the beginning; the artifact has everything.
    pub truncated: bool,
    pub artifact: Option<ArtifactId>,
    pub error: Option<String>,
    pub duration_ms: u64,
}

impl ToolOutcome {
    /// The outcome of a call that never ran to its end.
    pub fn abandoned(reason: &str) -> Self {
        Self {
            ok: false,
            output: None,
            truncated: false,
            artifact: None,
            error: Some(reason.to_owned()),
            duration_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::IdSource;

    #[test]
    fn a_call_that_writes_files_names_them() {
        for (args, expect) in [
            (json!({"file_path": "a", "content": "x"}), &["a"][..]),
            (
                json!({"file_path": "a", "old_string": "x", "new_string": ""}),
                &["a"],
            ),
            (json!({"notebook_path": "a", "new_source": "x"}), &["a"]),
            (json!({"file_path": "a", "limit": 5}), &[]),
            (json!({"command": "echo > a"}), &[]),
            (
                json!({"path": "a", "changes": [
                    {"path": "a", "kind": {"type": "update", "move_path": "b"}}, {"path": "c"}]}),
                &["a", "b", "c"],
            ),
            (
                json!({"title": "a", "path": "a", "toolKind": "edit"}),
                &["a"],
            ),
            (
                json!({"path": "a", "paths": ["a", "b"], "toolKind": "move"}),
                &["a", "a", "b"],
            ),
            (
                json!({"path": "a", "content": "x", "toolKind": "read"}),
                &[],
            ),
            (json!({"filePath": 5, "content": "x"}), &[]),
            (json!([]), &[]),
        ] {
            let call = ToolCall {
                id: IdSource::from_seed(&[3; 32]).draw(),
                name: "tool".to_owned(),
                args,
                provider_id: None,
            };
            assert_eq!(call.written_paths(), expect, "{}", call.args);
        }
    }
}
