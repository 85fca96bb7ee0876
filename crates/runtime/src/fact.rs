//! Events: what happened in a run, in order. They are the only record of a run.
//!
//! An event says what happened, not what to do. Its name on the wire is in [`Fact::wire_name`];
//! several facts share the names `run.patch` and `node.patch`, which carry the fields that changed.

use turnkeep_types::{BlobHash, Timestamp};

use crate::approval::{Approval, Resolution, Rule};
use crate::artifact::{Artifact, Workspace};
use crate::edge::Edge;
use crate::ids::{AgentTurnId, ApprovalId, EdgeId, EventId, NodeId, RuleId, ToolId};
use crate::input::{Envelope, InputId, Message};
use crate::node::{BlockReason, NewNode, NodeSettings};
use crate::run::RunSettings;
use crate::stall::{Stall, TurnSignature};
use crate::tool::{ToolCall, ToolOutcome};
use crate::turn::TurnCause;
use crate::usage::UsageReport;
use crate::words::{GlobalMode, Mode, NodeStatus, PausedReason, Phase, PromptKind, RunStatus};

/// One event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: EventId,
    /// Counts from 1 without gaps.
    pub seq: u64,
    pub at: Timestamp,
    /// The node that it is about.
    pub node: Option<NodeId>,
    /// The turn of the node that it belongs to.
    pub turn: Option<AgentTurnId>,
    /// The request that caused it, if the caller gave it a key. Only the first event of a decision
    /// has it.
    pub request: Option<RequestKey>,
    pub fact: Fact,
}

/// A caller's idempotency key, with a hash of the request that it was given for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub key: String,
    pub fingerprint: BlobHash,
}

/// Everything that can happen in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// The run was created.
    RunCreated(Box<RunSettings>),
    /// Its settings changed.
    RunConfigured(Box<RunSettings>),
    /// It was paused, resumed, completed or failed.
    RunStatusChanged {
        /// The new status.
        status: RunStatus,
        /// Why, if it is paused now.
        paused_reason: Option<PausedReason>,
    },
    /// It went on to another phase.
    PhaseChanged(Phase),
    /// The node says that the run has reached its goal.
    CompletionClaimed {
        /// The call that waits for the verification.
        tool: ToolId,
        /// What was done.
        summary: String,
    },
    /// The claim of the node was wrong: the run goes on.
    VerificationFailed {
        /// By which the same failure is recognized.
        signature: String,
    },
    /// Its modes changed.
    ModesChanged {
        /// Whether orchestrators are prompted without input.
        mode: Mode,
        /// What nodes may write.
        global_mode: GlobalMode,
    },
    /// The node goes in circles.
    Stalled(StallEvidence),
    /// The run was deleted.
    RunDeleted,
    /// A person gave an approval a wider scope.
    RuleAdded(Rule),
    /// A rule holds no longer.
    RuleDeleted(RuleId),
    /// A node was added.
    NodeAdded(Box<NewNode>),
    /// Something about the node changed.
    NodeChanged(NodeChange),
    /// What the node does right now, in a few words.
    NodeProgressed(String),
    /// The program of an open turn has printed nothing for a while.
    SilenceNoticed,
    /// The program printed to its error output.
    NodeLogged(String),
    /// The node was deleted.
    NodeDeleted,
    /// An edge was created.
    EdgeCreated(Edge),
    /// An edge was deleted.
    EdgeDeleted(EdgeId),
    /// An envelope was put into an inbox.
    EnvelopeSent(Box<Envelope>),
    /// A message was put into an inbox.
    MessageSent(Message),
    /// More text of an answer.
    AnswerDelta(String),
    /// An answer is whole, or was cut off.
    AnswerFinal {
        /// The text.
        content: String,
        /// Whether it was cut off.
        interrupted: bool,
    },
    /// More text of a thought.
    ThinkingDelta(String),
    /// A thought is whole.
    ThinkingFinal(String),
    /// The agent wants to use a tool.
    ToolProposed(ToolCall),
    /// The tool runs.
    ToolStarted(ToolId),
    /// The tool is done.
    ToolCompleted {
        /// The call.
        tool: ToolId,
        /// Its result.
        outcome: ToolOutcome,
    },
    /// A person must decide.
    ApprovalRequested(Box<Approval>),
    /// It is decided.
    ApprovalResolved {
        /// The approval.
        approval: ApprovalId,
        /// The decision.
        resolution: Resolution,
    },
    /// A file was made.
    ArtifactCreated(Box<Artifact>),
    /// A turn went on by one step.
    TurnStepped(TurnStep),
    /// The program reported what it used.
    UsageReported(UsageReport),
}

/// The steps of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    /// It consumes its inputs.
    Started {
        /// Why it was started.
        cause: TurnCause,
        /// The inputs that it consumes.
        consumed: Vec<InputId>,
        /// The modes that it runs under.
        mode: Mode,
        /// The modes that it runs under.
        global_mode: GlobalMode,
        /// Counts from 1.
        attempt: u32,
    },
    /// The prompt goes to the program.
    WaitingForModel {
        /// Whether it is a full prompt.
        prompt: PromptKind,
        /// The hash of its system, role and override blocks.
        prompt_hash: BlobHash,
    },
    /// A tool is about to run.
    ToolPending,
    /// It waits for a person.
    AwaitingApproval,
    /// The program finished.
    Completed {
        /// What it did, for the detection of stalls.
        signature: TurnSignature,
    },
    /// It was interrupted.
    Interrupted {
        /// Why.
        detail: String,
        /// The inputs that went back into the inbox.
        requeued: Vec<InputId>,
    },
    /// It failed.
    Failed {
        /// Why.
        detail: String,
        /// The inputs that went back into the inbox, when it is tried again.
        requeued: Vec<InputId>,
    },
}

/// A change of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeChange {
    /// A person changed its settings.
    Configured(Box<NodeSettings>),
    /// An input arrived or was taken back. The state has the inbox already; clients get the count.
    InboxCounted,
    /// A person dropped everything that waited for it.
    InboxCleared,
    /// The inputs of its failed turn wait again.
    Retried,
    /// Its turn began.
    TurnOpened,
    /// It waits for a person.
    Blocked {
        /// For what.
        reason: BlockReason,
        /// The same for people.
        summary: String,
    },
    /// It waits no longer. It goes on with its open turn, or is idle.
    Unblocked,
    /// Its turn is over.
    Rested {
        /// Idle or failed.
        status: NodeStatus,
        /// What the turn did, or why it failed.
        summary: String,
    },
    /// Its provider takes nothing until this time.
    Parked {
        /// Until when.
        retry_at: Timestamp,
        /// The same for people.
        summary: String,
    },
    /// Its open turn is being stopped.
    Interrupting {
        /// Why.
        reason: String,
        /// Whether the agent continues when the run goes on.
        continues: bool,
    },
    /// The program named its session.
    SessionNamed(String),
    /// The session is gone, so that the next prompt is a full one.
    SessionDropped {
        /// Whether it was lost rather than reset by a person.
        lost: bool,
    },
    /// Where it works from now on.
    WorkspaceFixed(Workspace),
}

/// Why a run was stopped as stalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StallEvidence {
    pub stall: Stall,
    /// What the last turns of the node said, at most three.
    pub summaries: Vec<String>,
    pub verification_failure: Option<String>,
}

impl Fact {
    /// The name of the event on the wire.
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::RunCreated(_)
            | Self::RunConfigured(_)
            | Self::RunStatusChanged { .. }
            | Self::RuleAdded(_)
            | Self::RuleDeleted(_) => "run.patch",
            Self::PhaseChanged(_) | Self::VerificationFailed { .. } => "run.phase",
            Self::ModesChanged { .. } => "run.mode",
            Self::Stalled(_) => "run.stalled",
            Self::RunDeleted => "run.deleted",
            Self::NodeAdded(_) | Self::NodeChanged(_) => "node.patch",
            Self::NodeProgressed(_) | Self::SilenceNoticed | Self::CompletionClaimed { .. } => {
                "node.progress"
            }
            Self::NodeLogged(_) => "node.log",
            Self::NodeDeleted => "node.deleted",
            Self::EdgeCreated(_) => "edge.created",
            Self::EdgeDeleted(_) => "edge.deleted",
            Self::EnvelopeSent(_) => "handoff.sent",
            Self::MessageSent(_) => "message.user",
            Self::AnswerDelta(_) => "message.assistant.delta",
            Self::AnswerFinal { .. } => "message.assistant.final",
            Self::ThinkingDelta(_) => "message.assistant.thinking.delta",
            Self::ThinkingFinal(_) => "message.assistant.thinking.final",
            Self::ToolProposed(_) => "tool.proposed",
            Self::ToolStarted(_) => "tool.started",
            Self::ToolCompleted { .. } => "tool.completed",
            Self::ApprovalRequested(_) => "approval.requested",
            Self::ApprovalResolved { .. } => "approval.resolved",
            Self::ArtifactCreated(_) => "artifact.created",
            Self::TurnStepped(_) => "turn.status",
            Self::UsageReported(_) => "telemetry.usage",
        }
    }
}

impl TurnStep {
    /// The value of `status` on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Started { .. } => "turn.started",
            Self::WaitingForModel { .. } => "waiting_for_model",
            Self::ToolPending => "tool.pending",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Completed { .. } => "turn.completed",
            Self::Interrupted { .. } => "turn.interrupted",
            Self::Failed { .. } => "turn.failed",
        }
    }
}
