//! The script file: which turns the agent plays, and what it does in each of them.
//!
//! This module owns the types. [`parse_script`] reads the TOML text strictly: an unknown key, a
//! value of the wrong kind or a placeholder without a value is an error with its line. A parsed
//! script is therefore complete, and nothing checks it again.

mod parse;
mod table;

use std::path::PathBuf;

use serde_json::Value;

use crate::tool::ToolAction;

pub use parse::{parse_script, step_names};

/// What is wrong with a script, and on which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    pub line: usize,
    pub message: String,
}

/// A whole script file.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    pub settings: Settings,
    pub turns: Vec<Turn>,
}

/// The `[agent]` table: what holds for all turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The session's id. Without it each new session gets an id of its own.
    pub session: Option<String>,
    pub model: String,
    pub pieces: Pieces,
    /// Texts may hold placeholders such as `{{result.nodeId}}`.
    pub placeholders: bool,
    /// What each completed turn costs, in addition to its `usage` steps.
    pub usage: Usage,
    /// The directory that receives one file a prompt.
    pub log: Option<PathBuf>,
    /// The file that remembers which turns were played, for the next process.
    pub state: Option<PathBuf>,
}

/// One `[[turn]]`: the answer to one prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The prompt must contain all of these. An empty list means "the next prompt".
    pub when: Vec<String>,
    pub repeat: bool,
    pub ignore_interrupt: bool,
    /// One last message, sent whole.
    pub final_message: Option<String>,
    pub steps: Vec<Step>,
}

/// How a text is streamed: pieces of `chars` characters, `pause_ms` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    pub chars: usize,
    pub pause_ms: u64,
}

/// Tokens and money. The numbers of several steps add up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that came from the provider's cache.
    pub cached: u64,
    pub cost: f64,
}

impl Usage {
    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cost += other.cost;
    }

    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }
}

/// One thing that the agent does in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Say(Speech),
    Think(Speech),
    /// The message is complete: more text begins another one.
    EndMessage,
    Tool(Box<ToolStep>),
    /// Changes files without showing a tool.
    Patch {
        text: String,
    },
    Wait {
        ms: u64,
    },
    WaitForFile {
        path: String,
    },
    Touch {
        path: String,
    },
    WriteError {
        text: String,
    },
    Garbage {
        bytes: Vec<u8>,
    },
    ReportUsage(Usage),
    HashPrompt {
        path: String,
    },
    CopyPrompt {
        path: String,
    },
    SpawnChild(ChildStep),
    RateLimit(LimitReset),
    Unavailable {
        text: String,
    },
    Fail {
        text: String,
    },
    Crash {
        code: u8,
        message: String,
    },
    KillSelf,
    CloseOutput,
    Silence,
}

/// A text and how to stream it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    pub text: String,
    pub pieces: Pieces,
}

/// A tool that the agent uses, perhaps after asking.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolStep {
    pub action: ToolAction,
    /// Ask for permission first, with this reason.
    pub ask: Option<String>,
    /// What to do if the tool is denied or fails.
    pub otherwise: Vec<Step>,
    /// The name under which later steps find the answer, beside `result`.
    pub save: Option<String>,
}

/// A child process that outlives its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildStep {
    /// The file that receives the child's process id.
    pub pid_file: String,
    /// The child keeps the agent's standard output open.
    pub holds_output: bool,
}

/// When a rate limit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReset {
    Unknown,
    InSeconds(u64),
    /// Seconds since 1970.
    At(u64),
}

/// Calls `visit` for every text in a JSON value, so that each can hold placeholders.
pub(crate) fn map_texts<E>(
    value: &Value,
    visit: &mut impl FnMut(&str) -> Result<String, E>,
) -> Result<Value, E> {
    Ok(match value {
        Value::String(text) => Value::String(visit(text)?),
        Value::Array(items) => {
            let mapped: Result<Vec<Value>, E> = items.iter().map(|i| map_texts(i, visit)).collect();
            Value::Array(mapped?)
        }
        Value::Object(fields) => {
            let mut mapped = serde_json::Map::new();
            for (key, field) in fields {
                mapped.insert(key.clone(), map_texts(field, visit)?);
            }
            Value::Object(mapped)
        }
        other => other.clone(),
    })
}
