//! A run: its snapshot, its settings and what it used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ArtifactView, EdgeView, GlobalMode, NodeView, PausedReason, RunMode, RunPhase, RunStatus,
    UuidText,
};
use crate::json::Time;

/// The version of the contract that a run follows.
pub const CONTRACT_VERSION: &str = "1";

shapes! {
    /// The state of a run.
    struct RunView {
        id: UuidText,
        /// Always `1`.
        contract_version: String,
        status: RunStatus,
        phase: RunPhase,
        mode: RunMode,
        global_mode: GlobalMode,
        created_at: Time,
        updated_at: Time,
        /// The number of the last event that this state includes.
        last_seq: u64,
        title: String,
        /// The commands that must pass before the run may be completed.
        verify: Vec<String>,
        /// The commands that run once in each new worktree.
        setup: Vec<String>,
        budget: BudgetView,
        limits: LimitsView,
        usage: UsageView,
        nodes: BTreeMap<String, NodeView>,
        edges: BTreeMap<String, EdgeView>,
        artifacts: BTreeMap<String, ArtifactView>,
    }
    optional {
        /// Only while the run is paused.
        paused_reason: PausedReason,
        goal: String,
        /// The directory in which the nodes work.
        cwd: String,
        /// The world whose persons the nodes are.
        world: String,
        /// The node that brings the documents up to date at the end.
        docs_node: UuidText,
    }

    /// A run in a list.
    struct RunSummary {
        id: UuidText,
        /// Always `1`.
        contract_version: String,
        status: RunStatus,
        phase: RunPhase,
        mode: RunMode,
        global_mode: GlobalMode,
        created_at: Time,
        updated_at: Time,
        title: String,
        usage: UsageView,
        node_count: u64,
        /// How many nodes have an open turn.
        running_count: u64,
        /// How many decisions wait for a person.
        open_approvals: u64,
    }
    optional {
        /// Only while the run is paused.
        paused_reason: PausedReason,
        goal: String,
        cwd: String,
        world: String,
    }

    /// What a run may use. The run pauses when one of the two is used up.
    #[derive(Default)]
    struct BudgetView {}
    optional {
        tokens: u64,
        cost_usd: f64,
    }

    /// The limits of a run.
    struct LimitsView {
        /// How many turns may be open at once.
        max_concurrent_turns: u32,
        max_nodes: u32,
        /// How many spawns may lie between a person and a node.
        max_spawn_depth: u32,
        /// After how many equal turns a node counts as stalled; 0 turns that off.
        stall_after: u32,
        /// How long a node that was woken by an envelope waits for others.
        fan_in_ms: u64,
        /// A warning after so much silence in a turn; 0 turns it off.
        silence_warn_ms: u64,
        /// The end of a turn after so much silence; 0 turns it off.
        silence_end_ms: u64,
        /// The end of a turn after so much time; 0 turns it off.
        turn_end_ms: u64,
        /// How long an approval waits before it is denied; 0 means for ever.
        approval_ms: u64,
    }

    /// Tokens of one or more turns.
    struct TokensView {
        prompt_tokens: u64,
        completion_tokens: u64,
        /// Prompt and completion tokens together.
        total_tokens: u64,
    }
    optional {
        cached_tokens: u64,
    }

    /// What a node or a run has used.
    struct UsageView {
        prompt_tokens: u64,
        completion_tokens: u64,
        /// Prompt and completion tokens together.
        total_tokens: u64,
        cached_tokens: u64,
        cost_usd: f64,
    }
}
