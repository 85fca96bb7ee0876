//! Events: what happened in a run, in order. They are the only record of a run.
//!
//! An event says what happened, not what to do. Its name on the wire is in [`Fact::wire_name`];
//! several facts share the names `run.patch` and `node.patch`, which carry the fields that changed.

use turnkeep_types::{BlobHash, Timestamp};

use crate::approval::{Approval, Resolution, Rule};
use crate::artifact::{Artifact, Workspace};
use crate::edge::Edge;
use crate::ids::{
    AgentTurnId, ApprovalId, EdgeId, EnvelopeId, EventId, NodeId, RuleId, ToolId, VerificationId,
};
use crate::input::{Envelope, InputId, Message};
use crate::node::{BlockReason, NewNode, Node, NodeSettings};
use crate::request::MadeId;
use crate::run::RunSettings;
use crate::stall::{Stall, TurnSignature};
use crate::tool::{ToolCall, ToolOutcome};
use crate::usage::UsageReport;
use crate::words::{
    GlobalMode, Mode, NodeStatus, PausedReason, Phase, PromptKind, RunStatus, TurnCause,
};

pub use crate::request::RequestKey;

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
    /// What that request made, so that it can be answered again.
    pub made: Option<MadeId>,
    pub fact: Fact,
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
    /// A person has seen how the run ended, so it does not wait for them any more.
    EndSeen,
    /// It went on to another phase.
    PhaseChanged(Phase),
    /// The node says that the run has reached its goal.
    CompletionClaimed {
        /// The call that waits for the verification.
        tool: ToolId,
        /// What was done.
        summary: String,
    },
    /// The verification commands run in the integration tree. The node and the turn of the event are
    /// the claimer's; a verification on request has neither.
    VerificationStarted {
        /// The result names it, so that a late one of a cancelled verification is recognized.
        verification: VerificationId,
        /// The call that waits for the result.
        tool: Option<ToolId>,
    },
    /// The verification failed: the run goes on. With a node, that node's claim was wrong.
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
    /// A request with an idempotency key changed nothing. The event keeps the key.
    RequestNoted,
    /// A node was added.
    NodeAdded(Box<NewNode>),
    /// Something about the node changed.
    NodeChanged {
        /// What changed.
        change: NodeChange,
        /// What clients show of the node from now on. Nothing else reads it: it makes the event's
        /// JSON a function of the event alone, so that an old page needs no replay.
        shown: ShownNode,
    },
    /// What the node does right now.
    NodeProgressed {
        /// Its status then.
        status: NodeStatus,
        /// The same in a few words.
        summary: String,
    },
    /// The program of an open turn has printed nothing for a while.
    SilenceNoticed,
    /// The program printed to its error output.
    NodeLogged(String),
    /// The node was deleted.
    NodeDeleted {
        /// The inputs that no turn consumed and that had no sender to go back to.
        dropped: Vec<InputId>,
    },
    /// An edge was created.
    EdgeCreated(Edge),
    /// A person changed the properties of an edge. The event has the whole edge, and clients get it as
    /// they get a new one: it takes the place of the edge with its id.
    EdgeChanged(Edge),
    /// An edge was deleted.
    EdgeDeleted(EdgeId),
    /// An envelope was put into an inbox.
    EnvelopeSent(Box<Envelope>),
    /// An envelope waits until the sender's work passes the gate of an edge.
    EnvelopeHeld {
        /// What is delivered then.
        envelope: Box<Envelope>,
        /// The call that waits for the result, if an agent made one.
        tool: Option<ToolId>,
    },
    /// An envelope was not delivered, because the sender's work did not pass the gate.
    EnvelopeRefused {
        /// The held envelope.
        envelope: EnvelopeId,
        /// Why, with the end of the failing output.
        reason: String,
    },
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
    /// The tool runs, with these arguments: a person may have changed them.
    ToolStarted(ToolCall),
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
        /// Whether the program cannot continue the conversation after it has ended.
        forgets: bool,
        /// The tree of the workspace before the turn. It is known before the program can change a
        /// file, so that the changes of a turn that a crash ends are still found.
        base_tree: Option<String>,
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
        /// Whether they wait there until something new arrives.
        holds: bool,
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
        /// Whether inputs that the program has not seen wait until something new arrives. Otherwise
        /// the next turn would begin at once with what a person has just stopped.
        holds: bool,
    },
    /// The program named its session.
    SessionNamed {
        /// The program's own name of it.
        id: String,
        /// Unchanged; clients get the whole session.
        reset_commands: Vec<String>,
    },
    /// The session is gone, so that the next prompt is a full one.
    SessionDropped {
        /// Whether it was lost rather than reset by a person.
        lost: bool,
        /// Unchanged; clients get the whole session.
        reset_commands: Vec<String>,
    },
    /// Where it works from now on.
    WorkspaceFixed(Workspace),
    /// It has no workspace: the next turn chooses one.
    WorkspaceReleased,
}

/// The part of a node that clients show and that more than one kind of change affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownNode {
    pub status: NodeStatus,
    pub inbox_count: u64,
}

impl ShownNode {
    /// What clients show of this node.
    pub fn of(node: &Node) -> Self {
        Self {
            status: node.status,
            inbox_count: node.inbox.len() as u64,
        }
    }
}

/// Why a run was stopped as stalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StallEvidence {
    pub stall: Stall,
    /// What the last turns of the node said, at most three.
    pub summaries: Vec<String>,
    /// The last verification that refused a claim of the node.
    pub verification_failure: Option<String>,
    /// The hash of the last turn's masked output.
    pub output: Option<BlobHash>,
    /// The hash of the last turn's changes, if it made some.
    pub diff: Option<BlobHash>,
}

impl Fact {
    /// The name of the event on the wire.
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::RunCreated(_)
            | Self::RunConfigured(_)
            | Self::RunStatusChanged { .. }
            | Self::EndSeen
            | Self::RuleAdded(_)
            | Self::RuleDeleted(_)
            | Self::RequestNoted => "run.patch",
            Self::PhaseChanged(_)
            | Self::VerificationStarted { .. }
            | Self::VerificationFailed { .. } => "run.phase",
            Self::ModesChanged { .. } => "run.mode",
            Self::Stalled(_) => "run.stalled",
            Self::RunDeleted => "run.deleted",
            Self::NodeAdded(_) | Self::NodeChanged { .. } => "node.patch",
            Self::NodeProgressed { .. } | Self::SilenceNoticed | Self::CompletionClaimed { .. } => {
                "node.progress"
            }
            Self::NodeLogged(_) => "node.log",
            Self::NodeDeleted { .. } => "node.deleted",
            Self::EdgeCreated(_) | Self::EdgeChanged(_) => "edge.created",
            Self::EdgeDeleted(_) => "edge.deleted",
            Self::EnvelopeSent(_) => "handoff.sent",
            Self::EnvelopeHeld { .. } => "handoff.held",
            Self::EnvelopeRefused { .. } => "handoff.refused",
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
