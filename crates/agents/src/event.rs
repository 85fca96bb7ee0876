//! What a program did, in words that depend on no protocol, and what the caller must do about it.

use std::time::Duration;

use serde_json::Value;
use turnkeep_types::Timestamp;

/// Something that the caller does for a machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Writes this text to the program's standard input. It contains its line breaks.
    Write(String),
    /// Closes the program's standard input.
    CloseInput,
    /// Sends SIGINT to the program.
    SignalInterrupt,
    /// Tells the runtime what happened.
    Emit(AgentEvent),
}

/// Something that a program did.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The name by which a later process can go on with the conversation.
    Session(String),
    /// The session of [`crate::request::StartOptions`] cannot be resumed. The turn that waited for
    /// it ends as [`TurnEnd::Unavailable`]; the next prompt must be a full one.
    SessionLost(String),
    /// More text of the answer.
    AnswerDelta(String),
    /// A whole message of the answer. It repeats its deltas. A turn may have several.
    AnswerFinal(String),
    /// More text of a thought.
    ThinkingDelta(String),
    /// A whole thought. It repeats its deltas.
    ThinkingFinal(String),
    /// The agent wants to use a tool. A [`AgentEvent::PermissionAsked`] for the same call may
    /// follow; without one the program runs the tool by itself.
    ToolProposed(ToolCall),
    /// The tool is done, denied or given up.
    ToolCompleted(ToolResult),
    /// The agent looked at a command of its own, and the command still runs.
    CommandPolled {
        /// The program's own id of the call by which it looked; `None` if the program shows none.
        call: Option<String>,
    },
    /// The program waits for [`crate::Request::Answer`].
    PermissionAsked(Box<PermissionRequest>),
    /// The program does not wait for this answer any more.
    PermissionWithdrawn {
        /// From the request.
        request_id: String,
    },
    /// What was used since the last report.
    Usage(Usage),
    /// What the program does, in a few words.
    Progress(String),
    /// A line for the log.
    Log(String),
    /// The changes of the turn so far, as a unified diff. A preview: the real diff is taken from
    /// the workspace.
    DiffPreview(String),
    /// The agent called a tool by a line of text.
    ToolCallRequested(LineCall),
    /// A line looks like a call of a tool but is not one. The machine reports it to the model
    /// together with the next results.
    MalformedToolCall(String),
    /// The program is done for now, and the turn goes on with [`crate::Request::ToolResults`].
    /// A program that exits after each answer must be started again first.
    AwaitsToolResults,
    /// The turn is over.
    TurnEnded(TurnEnd),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The program's own id of the call.
    pub provider_id: String,
    pub name: String,
    pub args: Value,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The program's own id of the call.
    pub provider_id: String,
    pub ok: bool,
    pub output: Option<String>,
    pub error: Option<String>,
}

/// A call of a tool by a line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct LineCall {
    pub name: String,
    pub args: Value,
}

/// A program that asks whether it may use a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The program's own id of the question.
    pub request_id: String,
    pub call: ToolCall,
    /// One sentence for the person who decides.
    pub context: String,
    /// Whether [`crate::Answer::AllowAlways`] differs from [`crate::Answer::Allow`].
    pub can_allow_always: bool,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the input, those read from a cache included.
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The part of the prompt tokens that was read from a cache.
    pub cached_tokens: u64,
    /// Millionths of a US dollar; absent if the program does not say.
    pub cost_micro_usd: Option<u64>,
}

impl Usage {
    /// Prompt and completion tokens together.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Whether it says nothing.
    pub fn is_nothing(&self) -> bool {
        self.total_tokens() == 0 && self.cost_micro_usd.unwrap_or(0) == 0
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// The agent finished.
    Completed,
    /// It was stopped.
    Interrupted,
    /// It was stopped before the program saw its prompt, so that the prompt can be sent again.
    NotBegun,
    /// It failed, and would fail again.
    Failed(String),
    /// The provider could not be reached or was overloaded; a later try may succeed.
    Unavailable(String),
    /// The provider takes no more for a while.
    RateLimited {
        reset: LimitReset,
        /// The provider's words.
        reason: String,
    },
}

/// When a provider takes more again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReset {
    /// It did not say.
    Unknown,
    At(Timestamp),
    /// So long after it said so.
    After(Duration),
}
