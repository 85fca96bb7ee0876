//! Events: the lines of `events.jsonl`, the frames of `/ws` and the items of event pages.
//!
//! An event has the same JSON in all three places. Its envelope and its body lie in one object.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{
    ApprovalKind, ArtifactView, ConnectionView, EdgeView, EnvelopeView, FinalStatus, GlobalMode,
    MessageView, NodeStatus, NodeView, ProgressNotice, PromptKind, ResolutionView, RuleView,
    RunMode, RunPhase, RunView, StallReason, TokensView, ToolError, ToolResult, ToolView,
    TurnStatus, UuidText,
};
use crate::json::{Hash, Time};

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    pub id: UuidText,
    pub run_id: UuidText,
    pub ts: Time,
    /// Counts from 1 without gaps. Only `node.heartbeat` has none, because it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The node that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<UuidText>,
    /// The turn of the node that the event belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<UuidText>,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened, by the `type` of the event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
// Each field of more than one word has its name: the schema does not follow `rename_all_fields`.
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum EventBody {
    /// Fields of the run changed. The first event of a run carries all of them.
    #[serde(rename = "run.patch")]
    RunPatch {
        patch: RunPatch,
        /// A rule that answers approvals from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "ruleAdded")]
        rule_added: Option<RuleView>,
        /// A rule that holds no longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "ruleDeleted")]
        rule_deleted: Option<UuidText>,
    },
    /// The run went on to another phase.
    #[serde(rename = "run.phase")]
    RunPhase {
        phase: RunPhase,
        /// Names the failed verification that led back to `EXECUTE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "verificationFailure")]
        verification_failure: Option<String>,
        /// Names the verification that begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "verificationId")]
        verification_id: Option<UuidText>,
    },
    /// The modes of the run from now on.
    #[serde(rename = "run.mode")]
    RunMode {
        mode: RunMode,
        #[serde(rename = "globalMode")]
        global_mode: GlobalMode,
    },
    /// The node goes in circles.
    #[serde(rename = "run.stalled")]
    RunStalled { evidence: StallEvidence },
    /// The run was deleted. No event follows.
    #[serde(rename = "run.deleted")]
    RunDeleted {},
    /// Fields of the node changed. The first event of a node carries all of them.
    #[serde(rename = "node.patch")]
    NodePatch { patch: NodePatch },
    /// What the node does right now.
    #[serde(rename = "node.progress")]
    NodeProgress {
        status: NodeStatus,
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<ProgressNotice>,
    },
    /// The program printed to its error output.
    #[serde(rename = "node.log")]
    NodeLog { text: String },
    /// The state of the node's process. Not recorded.
    #[serde(rename = "node.heartbeat")]
    NodeHeartbeat { connection: ConnectionView },
    /// The node was deleted.
    #[serde(rename = "node.deleted")]
    NodeDeleted {
        /// The messages and envelopes that were never read and had no sender to go back to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<UuidText>,
    },
    /// An edge was created, or the edge of this id was changed.
    #[serde(rename = "edge.created")]
    EdgeCreated { edge: EdgeView },
    /// An edge was deleted.
    #[serde(rename = "edge.deleted")]
    EdgeDeleted {
        #[serde(rename = "edgeId")]
        edge_id: UuidText,
    },
    /// An envelope was put into an inbox.
    #[serde(rename = "handoff.sent")]
    HandoffSent { envelope: EnvelopeView },
    /// An envelope waits until the sender's work passes the gate of an edge.
    #[serde(rename = "handoff.held")]
    HandoffHeld { envelope: EnvelopeView },
    /// A held envelope was not delivered.
    #[serde(rename = "handoff.refused")]
    HandoffRefused {
        #[serde(rename = "payloadId")]
        payload_id: UuidText,
        /// Why, with the end of the failing output.
        reason: String,
    },
    /// A message was put into an inbox.
    #[serde(rename = "message.user")]
    MessageUser { message: MessageView },
    /// More text of an answer.
    #[serde(rename = "message.assistant.delta")]
    AnswerDelta { delta: String },
    /// An answer is whole, or was cut off.
    #[serde(rename = "message.assistant.final")]
    AnswerFinal {
        content: String,
        status: FinalStatus,
    },
    /// More text of a thought.
    #[serde(rename = "message.assistant.thinking.delta")]
    ThinkingDelta { delta: String },
    /// A thought is whole.
    #[serde(rename = "message.assistant.thinking.final")]
    ThinkingFinal { content: String },
    /// The agent wants to use a tool.
    #[serde(rename = "tool.proposed")]
    ToolProposed { tool: ToolView },
    /// The tool runs, with these arguments: a person may have changed them.
    #[serde(rename = "tool.started")]
    ToolStarted { tool: ToolView },
    /// The tool is done.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        #[serde(rename = "toolId")]
        tool_id: UuidText,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
        #[serde(rename = "durationMs")]
        duration_ms: u64,
    },
    /// A person must decide.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        #[serde(rename = "approvalId")]
        approval_id: UuidText,
        kind: ApprovalKind,
        tool: ToolView,
        /// One sentence: the command and its directory, the files, or the question.
        context: String,
        #[serde(rename = "createdAt")]
        created_at: Time,
        /// When it is denied by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "expiresAt")]
        expires_at: Option<Time>,
        /// Answers to choose from, for a question.
        options: Vec<String>,
    },
    /// It is decided.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved {
        #[serde(rename = "approvalId")]
        approval_id: UuidText,
        resolution: ResolutionView,
    },
    /// A file was made.
    #[serde(rename = "artifact.created")]
    ArtifactCreated { artifact: ArtifactView },
    /// A turn went on by one step.
    #[serde(rename = "turn.status")]
    TurnStatus {
        status: TurnStatus,
        /// Why it was interrupted or failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The messages and envelopes that it consumes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consumed: Option<Vec<UuidText>>,
        /// Those that went back into the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requeued: Option<Vec<UuidText>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "promptKind")]
        prompt_kind: Option<PromptKind>,
        /// The modes that it runs under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<RunMode>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "globalMode")]
        global_mode: Option<GlobalMode>,
        /// Counts from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// The program reported what it used.
    #[serde(rename = "telemetry.usage")]
    TelemetryUsage {
        usage: TokensView,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "costUsd")]
        cost_usd: Option<f64>,
        /// The message or envelope that caused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<UuidText>,
    },
}

shapes! {
    /// Why a run was stopped as stalled.
    struct StallEvidence {
        reason: StallReason,
        /// How often in a row.
        count: u32,
        /// What the last turns of the node said.
        summaries: Vec<String>,
        turn_ids: Vec<UuidText>,
    }
    optional {
        /// The hash of the output that was the same each time.
        output_hash: Hash,
        /// The hash of the diff that was the same each time.
        diff_hash: Hash,
        /// The hash of the envelope that was the same each time.
        envelope_hash: Hash,
        /// Names the verification that failed each time.
        verification_failure: String,
    }
}

macro_rules! patches {
    ($(#[doc = $doc:literal] $name:ident of $view:ident,)*) => {
        $(
            #[doc = $doc]
            #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
            #[serde(transparent)]
            pub struct $name(pub Map<String, Value>);

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    without_required($view::schema(), $doc)
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($name))
                }

                fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                    $view::schemas(schemas);
                }
            }
        )*
    };
}

patches! {
    /// Fields of a run with their new values. Null means that a field has no value any more.
    RunPatch of RunView,
    /// Fields of a node with their new values. Null means that a field has no value any more.
    NodePatch of NodeView,
}

/// A patch has any of the fields of its snapshot, so no field is required.
fn without_required(schema: RefOr<Schema>, description: &str) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.required.clear();
            object.description = Some(description.trim().to_owned());
            RefOr::T(Schema::Object(object))
        }
        other => other,
    }
}
