//! The tools that a scripted agent uses, in no protocol's words.
//!
//! Each protocol translates a [`ToolUse`] to the name and the arguments that its real program would
//! show, and translates changed arguments back.

use serde_json::Value;

/// What a tool does.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolAction {
    /// Runs a shell command in the working directory.
    Run {
        command: String,
    },
    Write {
        path: String,
        content: String,
    },
    Append {
        path: String,
        content: String,
    },
    Delete {
        path: String,
    },
    /// Calls a tool of the MCP server that the agent was given.
    Call {
        name: String,
        args: Value,
    },
    /// Does nothing: shows a recorded call and its recorded result.
    Show {
        name: String,
        args: Value,
        result: String,
        ok: bool,
    },
}

/// What a protocol calls the arguments of the built-in tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentNames {
    pub(crate) command: &'static str,
    pub(crate) path: &'static str,
    pub(crate) content: &'static str,
    /// The content of an `append`.
    pub(crate) appended: &'static str,
}

impl ToolAction {
    /// The same tool with arguments that a person changed. A missing argument stays as it was.
    pub(crate) fn with_arguments(&self, args: &Value, names: ArgumentNames) -> ToolAction {
        let mut changed = self.clone();
        let change = |text: &mut String, name: &str| {
            if let Some(new) = args.get(name).and_then(Value::as_str) {
                new.clone_into(text);
            }
        };
        match &mut changed {
            ToolAction::Run { command } => change(command, names.command),
            ToolAction::Delete { path } => change(path, names.path),
            ToolAction::Write { path, content } => {
                change(path, names.path);
                change(content, names.content);
            }
            ToolAction::Append { path, content } => {
                change(path, names.path);
                change(content, names.appended);
            }
            ToolAction::Call { args: old, .. } | ToolAction::Show { args: old, .. } => {
                old.clone_from(args);
            }
        }
        changed
    }
}

/// One use of a tool. `number` is unique in the process.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    pub number: u64,
    pub action: ToolAction,
}

/// How a use of a tool ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub status: ToolStatus,
    /// What the model would read.
    pub output: String,
    pub exit_code: Option<i32>,
    /// The answer as a value, for placeholders of later steps.
    pub value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    Completed,
    Failed,
    Denied,
    Interrupted,
}

impl ToolOutcome {
    pub fn completed(output: impl Into<String>) -> ToolOutcome {
        ToolOutcome::new(ToolStatus::Completed, output)
    }

    pub fn failed(output: impl Into<String>) -> ToolOutcome {
        ToolOutcome::new(ToolStatus::Failed, output)
    }

    pub fn denied(message: impl Into<String>) -> ToolOutcome {
        ToolOutcome::new(ToolStatus::Denied, message)
    }

    pub fn interrupted() -> ToolOutcome {
        ToolOutcome::new(ToolStatus::Interrupted, "interrupted")
    }

    /// The outcome of a tool that answers with a value.
    pub fn with_value(is_ok: bool, value: Value) -> ToolOutcome {
        let status = if is_ok {
            ToolStatus::Completed
        } else {
            ToolStatus::Failed
        };
        let output = crate::placeholder::show_value(&value);
        ToolOutcome {
            value,
            ..ToolOutcome::new(status, output)
        }
    }

    fn new(status: ToolStatus, output: impl Into<String>) -> ToolOutcome {
        let output = output.into();
        ToolOutcome {
            status,
            exit_code: None,
            value: Value::String(output.clone()),
            output,
        }
    }

    pub fn is_ok(&self) -> bool {
        self.status == ToolStatus::Completed
    }
}
