//! The bodies of requests. A field that the server does not know is ignored.
//!
//! In a change, a field that is left out stays as it is, and null removes a value.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    CliPermissions, EdgeKind, EnvelopeStatusView, Expectation, GlobalMode, PositionView, Provider,
    RunMode, RunStatus, Scope, Verdict, WakeOn,
};

shapes! {
    /// A run to create.
    #[derive(Default)]
    struct CreateRun {
        #[serde(default)]
        verify: Vec<String>,
        #[serde(default)]
        setup: Vec<String>,
    }
    optional {
        /// The directory in which the nodes work.
        cwd: String,
        goal: String,
        /// The first line of the goal unless given.
        title: String,
        /// `INTERACTIVE` unless given.
        mode: RunMode,
        /// `IMPLEMENTATION` unless given.
        global_mode: GlobalMode,
        /// The name of the team whose nodes and edges it gets.
        team: String,
        world: String,
        /// The alias of the team's node that brings the documents up to date at the end.
        docs_node: String,
        budget: BudgetRequest,
        limits: LimitsRequest,
    }

    /// A change of a run.
    #[derive(Default)]
    struct ChangeRun {
        /// Whether pausing also interrupts open turns.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[schema(required = false)]
        interrupt: bool,
    }
    optional {
        status: RunStatus,
        mode: RunMode,
        global_mode: GlobalMode,
        title: String,
        verify: Vec<String>,
        setup: Vec<String>,
        limits: LimitsRequest,
    }
    clearable {
        goal: String,
        /// The id or alias of a node.
        docs_node: String,
        budget: BudgetRequest,
    }

    /// What a run or a node may use. A part that is left out has no limit.
    #[derive(Default)]
    struct BudgetRequest {}
    optional {
        tokens: u64,
        cost_usd: f64,
    }

    /// Limits of a run. A limit that is left out stays as it is.
    #[derive(Default)]
    struct LimitsRequest {}
    optional {
        max_concurrent_turns: u32,
        max_nodes: u32,
        max_spawn_depth: u32,
        stall_after: u32,
        fan_in_ms: u64,
        silence_warn_ms: u64,
        silence_end_ms: u64,
        turn_end_ms: u64,
        approval_ms: u64,
    }

    /// A node to create.
    struct CreateNode {
        label: String,
        #[serde(alias = "role")]
        role_template: String,
        provider: Provider,
    }
    optional {
        /// The entry of the configuration. Needed with the provider `custom`.
        provider_name: String,
        /// Letters, digits, `-` and `_`; unique in the run.
        alias: String,
        person: String,
        capabilities: CapabilitiesRequest,
        permissions: PermissionsRequest,
        custom_system_prompt: String,
        wake_on: WakeOn,
        position: PositionView,
        session: SessionRequest,
        budget: BudgetRequest,
    }

    /// A change of a node.
    #[derive(Default)]
    struct ChangeNode {}
    optional {
        label: String,
        #[serde(alias = "role")]
        role_template: String,
        provider: Provider,
        capabilities: CapabilitiesRequest,
        permissions: PermissionsRequest,
        wake_on: WakeOn,
        session: SessionRequest,
    }
    clearable {
        provider_name: String,
        alias: String,
        custom_system_prompt: String,
        position: PositionView,
        budget: BudgetRequest,
    }

    /// What a node may do. A right that is left out has its role's default, or stays as it is.
    #[derive(Default)]
    struct CapabilitiesRequest {}
    optional {
        spawn_nodes: bool,
        write_code: bool,
        write_docs: bool,
        run_commands: bool,
        delegate_only: bool,
    }

    /// Who decides about what a node does.
    #[derive(Default)]
    struct PermissionsRequest {}
    optional {
        cli_permissions_mode: CliPermissions,
        spawn_requires_approval: bool,
    }

    /// How a node's program begins a new session. The program names the session itself.
    #[derive(Default)]
    struct SessionRequest {}
    optional {
        reset_commands: Vec<String>,
    }

    /// An edge to create. The ends are ids or aliases. If the edge exists, it gets the label, the
    /// direction and the gate that the request names.
    struct CreateEdge {
        from: String,
        to: String,
    }
    optional {
        /// `report` to an orchestrator and `handoff` otherwise, unless given.
        #[serde(rename = "type")]
        kind: EdgeKind,
        label: String,
        /// True unless given.
        bidirectional: bool,
        /// Whether an envelope that claims success must pass verification first.
        gate: bool,
    }

    /// A message to a node.
    struct SendChat {
        content: String,
        /// Whether it interrupts an open turn.
        #[serde(default)]
        interrupt: bool,
    }
    optional {
        /// An id or alias. Without one the message goes to the node that leads.
        node_id: String,
    }

    /// A decision about an approval.
    struct ResolveApproval {
        status: Verdict,
        /// Whether the node's turn is interrupted too.
        #[serde(default)]
        interrupt: bool,
    }
    optional {
        /// Needed with `modified`. The answer to a question is `{"answer": …}`.
        #[schema(value_type = Value)]
        modified_args: Value,
        /// Goes to the model.
        reason: String,
        /// `once` unless given.
        scope: Scope,
    }

    /// An envelope to send along an edge.
    struct SendHandoff {
        /// The receiver's id or alias.
        #[serde(alias = "toNodeId")]
        to: String,
        #[serde(alias = "summary")]
        message: String,
        #[serde(default)]
        artifacts: Vec<SentArtifactRef>,
    }
    optional {
        /// The sender's id or alias. Needed over HTTP; an agent always sends for itself.
        #[serde(alias = "fromNodeId")]
        from: String,
        #[schema(value_type = Value)]
        structured: Value,
        status: EnvelopeStatusView,
        response: ResponseRequest,
        /// What the receiver reads before its task: `contextpack://` and the id of a context pack, or
        /// `artifact://` and the id of any artifact up to 1 MiB, of which a context pack is made.
        context_ref: String,
    }

    /// Whether the receiver owes a reply.
    #[derive(Default)]
    struct ResponseRequest {}
    optional {
        /// `required` along a handoff edge unless given.
        expectation: Expectation,
        /// The envelope that this one answers.
        reply_to: String,
    }

    /// A new session for a node.
    #[derive(Default)]
    struct ResetNode {
        /// Whether waiting inputs are dropped.
        #[serde(default)]
        clear_inbox: bool,
    }

    /// Files of a turn that are reverted or kept.
    #[derive(Default)]
    struct TurnFiles {}
    optional {
        /// All that are concerned unless given.
        paths: Vec<String>,
    }

    /// A new run that begins like this one.
    #[derive(Default)]
    struct ForkRun {}
    optional {
        /// The last event that both share; all of them unless given.
        seq: u64,
        title: String,
    }

    /// The text of a role or team.
    struct PutFile {
        text: String,
    }
}

/// A reference to an artifact: the text alone, or an object with the field `ref`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "must be a reference as text, or an object with the field `ref`"
)]
pub enum SentArtifactRef {
    /// `artifact://` and the id.
    Text(String),
    /// The form in which envelopes show it.
    Object {
        /// `artifact://` and the id.
        #[serde(rename = "ref")]
        target: String,
    },
}

impl SentArtifactRef {
    /// The reference as text.
    pub fn target(&self) -> &str {
        match self {
            Self::Text(target) | Self::Object { target } => target,
        }
    }
}
