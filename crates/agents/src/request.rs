//! What the caller asks of a program.

use std::fmt;

use serde_json::Value;

/// A request to a machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Opens the conversation. It is the first request to every machine.
    Start(StartOptions),
    /// Starts a turn.
    Send {
        /// The whole prompt.
        prompt: String,
    },
    /// Adds input to the open turn.
    Steer {
        /// The text.
        text: String,
    },
    /// Stops the open turn. A repeated request uses the harsher means, if there is one: the caller
    /// repeats it when the program takes too long.
    Interrupt,
    /// Answers a permission that the program asked for.
    Answer {
        /// From [`crate::event::PermissionRequest`].
        request_id: String,
        /// The decision.
        answer: Answer,
    },
    /// Continues a turn that waits for the results of tools
    /// ([`crate::AgentEvent::AwaitsToolResults`]).
    ToolResults(Vec<LineResult>),
    /// Ends the open turn and forgets the session. Programs with
    /// [`crate::Features::resets_in_process`] do so in the same process; the machines of all others
    /// close the input, and the caller starts the program again.
    Reset {
        /// What a person would type to begin a new session, such as `/new`, in this order.
        commands: Vec<String>,
    },
    /// Lets the program end by itself.
    Close,
}

/// How a conversation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOptions {
    /// The session to go on with.
    pub session: Option<String>,
    /// The absolute path of the working directory.
    pub cwd: String,
    pub mcp: Option<McpServer>,
    pub permissions: Permissions,
    pub access: Access,
}

/// The MCP server that the program gets besides those of its own configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The program's name for it; lower-case letters, digits and `_`.
    pub name: String,
    pub url: String,
    /// Secret: it never appears in arguments or logs.
    pub token: String,
}

impl McpServer {
    /// The value of the HTTP header `Authorization`.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Whether the program asks before it uses a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// The program asks.
    Gated,
    /// The program never asks.
    Skip,
}

/// What the program itself lets the agent do. It holds for the process: a caller that wants
/// another access starts the program again with its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The agent may change files.
    Write,
    /// The program runs in its plan or read-only mode.
    ReadOnly,
}

/// An answer to a program that asked for permission.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The program may do it once.
    Allow,
    /// The program may do it with other arguments.
    AllowWith(Value),
    /// The program may do it now, and later in this session without asking.
    AllowAlways,
    /// The program must not do it. The turn goes on.
    Deny {
        /// For the model. Programs without [`crate::Features::deny_reason`] drop it.
        reason: String,
    },
}

/// The result of a tool that the program called by a line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct LineResult {
    pub name: String,
    pub result: Result<Value, String>,
}

/// Why a machine rejected a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The program has no way to do it.
    #[error("this agent program cannot {0}")]
    Unsupported(&'static str),
    /// The arguments of an [`Answer::AllowWith`] are not an object.
    #[error("changed arguments must be a JSON object")]
    ArgsNotAnObject,
    /// The permission was answered before, or its turn is over.
    #[error("the agent program does not wait for an answer to request `{0}`")]
    UnknownPermission(String),
    /// A turn is open. Wait for its end or interrupt it first.
    #[error("the agent program is in a turn; interrupt it first or wait for its end")]
    TurnOpen,
    /// The request needs an open turn.
    #[error("the agent program is not in a turn")]
    NoTurn,
    /// The conversation is open already. Another one needs another process.
    #[error("the agent program was started before")]
    AlreadyStarted,
    /// The conversation was not opened.
    #[error("the agent program was not started")]
    NotStarted,
}
