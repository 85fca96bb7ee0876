//! Nodes and the edges between them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    BlockKind, BudgetView, CliPermissions, ConnectionStatus, EdgeKind, NodeStatus, Provider,
    UsageView, UuidText, WakeOn, WorkspaceKind,
};
use crate::json::Time;

shapes! {
    /// The state of a node.
    struct NodeView {
        id: UuidText,
        run_id: UuidText,
        label: String,
        role_template: String,
        provider: Provider,
        status: NodeStatus,
        /// What it does or did last, in a few words.
        summary: String,
        created_at: Time,
        last_activity_at: Time,
        capabilities: CapabilitiesView,
        permissions: PermissionsView,
        session: SessionView,
        /// How many inputs wait.
        inbox_count: u64,
        wake_on: WakeOn,
        /// How many spawns lie between it and a node that a person made.
        depth: u32,
        usage: UsageView,
    }
    optional {
        /// The entry of the configuration, for a custom provider.
        provider_name: String,
        /// A short name, unique in the run.
        alias: String,
        /// The person of the run's world in whose name it reads and writes.
        person: String,
        /// Replaces the text of the role template.
        custom_system_prompt: String,
        /// Where a user interface shows it.
        position: PositionView,
        /// The node that spawned it.
        parent_id: UuidText,
        /// Its open turn.
        turn_id: UuidText,
        /// What it waits for, while it is blocked.
        block: BlockView,
        /// Where it works, from its first turn on.
        workspace: WorkspaceView,
        /// No turn starts before this time.
        retry_at: Time,
        /// What its turns may use, if it has a budget of its own.
        budget: BudgetView,
        /// Its process. Only in snapshots: no event records it.
        connection: ConnectionView,
    }

    /// What a node may do.
    struct CapabilitiesView {
        spawn_nodes: bool,
        write_code: bool,
        write_docs: bool,
        run_commands: bool,
        delegate_only: bool,
    }

    /// Who decides about what a node does.
    struct PermissionsView {
        cli_permissions_mode: CliPermissions,
        spawn_requires_approval: bool,
    }

    /// The session of a node's program.
    struct SessionView {
        /// What a program is typed to begin a new session, where no protocol has a way.
        reset_commands: Vec<String>,
    }
    optional {
        /// The program's own name of it.
        session_id: String,
    }

    /// The process of a node.
    struct ConnectionView {
        status: ConnectionStatus,
        streaming: bool,
    }
    optional {
        last_heartbeat_at: Time,
        last_output_at: Time,
    }

    /// A place on the canvas.
    struct PositionView {
        x: f64,
        y: f64,
    }

    /// What a blocked node waits for.
    struct BlockView {
        reason: BlockKind,
    }
    optional {
        /// The turn that wrote files which the node may not write.
        turn_id: UuidText,
        /// Those of them that a person has not decided about.
        paths: Vec<String>,
    }

    /// Where a node's program works.
    struct WorkspaceView {
        kind: WorkspaceKind,
    }
    optional {
        /// The branch of a worktree.
        branch: String,
    }

    /// The state of an edge.
    struct EdgeView {
        id: UuidText,
        from: UuidText,
        to: UuidText,
        /// Whether it also carries envelopes back.
        bidirectional: bool,
        #[serde(rename = "type")]
        kind: EdgeKind,
        label: String,
        /// Whether an envelope that claims success must pass verification first.
        gate: bool,
    }
}
