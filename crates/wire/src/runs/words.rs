//! Closed sets of words. A word that is not in its set does not decode.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! words {
    ($(#[doc = $doc:literal] $name:ident { $($variant:ident = $word:literal,)+ })*) => {
        $(
            #[doc = $doc]
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
            pub enum $name {
                $(#[serde(rename = $word)] $variant,)+
            }

            impl $name {
                /// All words of the set.
                pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

                /// The text form.
                pub const fn word(self) -> &'static str {
                    match self {
                        $(Self::$variant => $word,)+
                    }
                }
            }

            // The derive macro does not see words that come from a macro.
            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    ObjectBuilder::new()
                        .schema_type(Type::String)
                        .enum_values(Some([$($word,)+]))
                        .description(Some($doc.trim()))
                        .into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($name))
                }
            }
        )*
    };
}

words! {
    /// Whether a run works.
    RunStatus {
        Queued = "queued",
        Running = "running",
        Paused = "paused",
        Completed = "completed",
        Failed = "failed",
    }
    /// How far a run is.
    RunPhase {
        Boot = "BOOT",
        Execute = "EXECUTE",
        Verify = "VERIFY",
        DocsSync = "DOCS_SYNC",
        Done = "DONE",
    }
    /// Whether a quiet run prompts its orchestrators by itself.
    RunMode {
        Auto = "AUTO",
        Interactive = "INTERACTIVE",
    }
    /// What the nodes of a run may write.
    GlobalMode {
        Planning = "PLANNING",
        Implementation = "IMPLEMENTATION",
    }
    /// Why a run is paused.
    PausedReason {
        User = "user",
        Stall = "stall",
        Budget = "budget",
        DaemonRestart = "daemon-restart",
    }
    /// What a node does. A blocked node waits for a person.
    NodeStatus {
        Idle = "idle",
        Running = "running",
        Blocked = "blocked",
        Failed = "failed",
    }
    /// What a blocked node waits for.
    BlockKind {
        Approvals = "approvals",
        Stall = "stall",
        Violation = "violation",
    }
    /// The kind of program behind a node.
    Provider {
        Codex = "codex",
        Claude = "claude",
        Gemini = "gemini",
        Custom = "custom",
    }
    /// Whether a program asks before it uses a tool.
    CliPermissions {
        Skip = "skip",
        Gated = "gated",
    }
    /// Whether the process of a node lives.
    ConnectionStatus {
        Connected = "connected",
        Idle = "idle",
        Disconnected = "disconnected",
    }
    /// Where a node's program works: in the run's directory, or in a git worktree of its own.
    WorkspaceKind {
        Shared = "shared",
        Worktree = "worktree",
    }
    /// What an edge carries.
    EdgeKind {
        Handoff = "handoff",
        Report = "report",
    }
    /// Which replies wake a node that sent questions.
    WakeOn {
        Any = "any",
        All = "all",
    }
    /// Whether the receiver of an envelope owes a reply.
    Expectation {
        None = "none",
        Optional = "optional",
        Required = "required",
    }
    /// The kind of an envelope.
    EnvelopeKind {
        Handoff = "handoff",
    }
    /// The speaker of a message.
    MessageRole {
        User = "user",
        Assistant = "assistant",
        System = "system",
    }
    /// The kind of an artifact.
    ArtifactKind {
        Diff = "diff",
        Prompt = "prompt",
        Log = "log",
        Transcript = "transcript",
        ContextPack = "contextpack",
        Report = "report",
    }
    /// What a person decides about: a tool call, or the answer to a question.
    ApprovalKind {
        Tool = "tool",
        Question = "question",
    }
    /// The decision about an approval.
    Verdict {
        Approved = "approved",
        Denied = "denied",
        Modified = "modified",
    }
    /// Who resolved an approval: the place where the owner answered, or the daemon.
    ResolvedBy {
        Web = "web",
        CommandLine = "command-line",
        Api = "api",
        Daemon = "daemon",
    }
    /// For which later calls a decision holds too.
    Scope {
        Once = "once",
        Node = "node",
        Run = "run",
    }
    /// Whether a prompt says everything, or only what is new in the session.
    PromptKind {
        Full = "full",
        Delta = "delta",
    }
    /// How far a turn is. The last three words end it.
    TurnStatus {
        Started = "turn.started",
        WaitingForModel = "waiting_for_model",
        ToolPending = "tool.pending",
        AwaitingApproval = "awaiting_approval",
        Completed = "turn.completed",
        Interrupted = "turn.interrupted",
        Failed = "turn.failed",
    }
    /// Whether a message of an agent is whole or was cut off.
    FinalStatus {
        Final = "final",
        Interrupted = "interrupted",
    }
    /// Why a progress event was written, if the program did not report progress itself.
    ProgressNotice {
        Silence = "silence",
        CompletionClaimed = "completion-claimed",
    }
    /// Why a node counts as stalled.
    StallReason {
        SameOutput = "same-output",
        SameVerificationFailure = "same-verification-failure",
        SameDiff = "same-diff",
        SameEnvelope = "same-envelope",
        NoProgress = "no-progress",
    }
    /// What waits for a person.
    AttentionKind {
        Approval = "approval",
        Question = "question",
        Stall = "stall",
        Failure = "failure",
        Conflict = "conflict",
        Violation = "violation",
        Budget = "budget",
        Finished = "finished",
    }
    /// What a person can do about an item that waits for them.
    AttentionAction {
        Approve = "approve",
        Deny = "deny",
        Answer = "answer",
        Continue = "continue",
        Chat = "chat",
        Reset = "reset",
        Retry = "retry",
        Keep = "keep",
        Revert = "revert",
        ChangeBudget = "change-budget",
        Apply = "apply",
        Resume = "resume",
        Dismiss = "dismiss",
    }
    /// Who can end a wait.
    OwnerKind {
        Person = "person",
        Node = "node",
        Program = "program",
        Daemon = "daemon",
    }
    /// Why a run or a node does not go on.
    WaitKind {
        RunStopped = "run-stopped",
        Verification = "verification",
        NoNodes = "no-nodes",
        NoInput = "no-input",
        Preparing = "preparing",
        Working = "working",
        Interrupting = "interrupting",
        Approval = "approval",
        Question = "question",
        Stall = "stall",
        Failure = "failure",
        Violation = "violation",
        Reply = "reply",
        Interrupted = "interrupted",
        FanIn = "fan-in",
        RetryAt = "retry-at",
        ProgramParked = "program-parked",
        ProgramFull = "program-full",
        RunFull = "run-full",
        ServerFull = "server-full",
        Blocked = "blocked",
        TurnOpen = "turn-open",
    }
    /// Where a role or a team was found.
    FileSource {
        Workspace = "workspace",
        User = "user",
        BuiltIn = "built-in",
    }
    /// The kind of a directory entry.
    DirectoryEntryKind {
        Directory = "directory",
        File = "file",
    }
}
