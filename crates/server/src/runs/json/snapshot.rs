//! Snapshots: runs, nodes and what belongs to them, as clients see them.

use std::collections::{BTreeMap, HashMap};

use turnkeep_runtime::Run;
use turnkeep_runtime::approval::{Approval, ApprovalSubject, Resolution, Rule, RuleMatcher};
use turnkeep_runtime::artifact::{Artifact, DiffSummary, Workspace, WriteConflict};
use turnkeep_runtime::decide::possible_scopes;
use turnkeep_runtime::edge::Edge;
use turnkeep_runtime::ids::{ArtifactId, NodeId, RunId};
use turnkeep_runtime::input::{Envelope, Message};
use turnkeep_runtime::node::{BlockReason, Capabilities, Node, Permissions, Session};
use turnkeep_runtime::run::RunLimits;
use turnkeep_runtime::tool::ToolCall;
use turnkeep_runtime::usage::{Budget, Usage};
use turnkeep_wire::json::{Hash, Time};
use turnkeep_wire::runs::{self as wire, UuidText};

use super::RunPlace;
use super::words::SameWord;

/// The processes of nodes, which no event records.
pub(crate) type ConnectionViews = HashMap<NodeId, wire::ConnectionView>;

/// A run as it is now.
pub(crate) fn run_view(
    place: RunPlace<'_>,
    run: &Run,
    connections: &ConnectionViews,
) -> wire::RunView {
    let live = &run.live;
    let settings = &live.settings;
    let nodes = live.nodes().map(|node| {
        let connection = connections.get(&node.id).cloned();
        (node.id.to_string(), node_view(live.id, node, connection))
    });
    let edges = live.edges.values();
    let artifacts = run.archive.artifacts();
    wire::RunView {
        id: UuidText::of(live.id),
        contract_version: wire::CONTRACT_VERSION.to_owned(),
        status: live.status.to_wire(),
        phase: live.phase.to_wire(),
        mode: live.mode.to_wire(),
        global_mode: live.global_mode.to_wire(),
        created_at: Time(live.created_at),
        updated_at: Time(live.updated_at),
        last_seq: live.last_seq,
        title: settings.title.clone(),
        verify: settings.verify.clone(),
        setup: settings.setup.clone(),
        budget: budget_view(&settings.budget),
        limits: limits_view(&settings.limits),
        usage: usage_view(&live.usage),
        nodes: nodes.collect(),
        edges: edges
            .map(|edge| (edge.id.to_string(), edge_view(edge)))
            .collect(),
        artifacts: artifacts
            .map(|artifact| (artifact.id.to_string(), artifact_view(place, artifact)))
            .collect::<BTreeMap<_, _>>(),
        paused_reason: live.paused_reason.map(SameWord::to_wire),
        goal: settings.goal.clone(),
        cwd: settings.cwd.clone(),
        world: settings.world.clone(),
        docs_node: settings.docs_node.map(UuidText::of),
    }
}

/// A run in a list.
pub(crate) fn run_summary(run: &Run) -> wire::RunSummary {
    let live = &run.live;
    let settings = &live.settings;
    let running = live.nodes().filter(|node| node.turn.is_some());
    wire::RunSummary {
        id: UuidText::of(live.id),
        contract_version: wire::CONTRACT_VERSION.to_owned(),
        status: live.status.to_wire(),
        phase: live.phase.to_wire(),
        mode: live.mode.to_wire(),
        global_mode: live.global_mode.to_wire(),
        created_at: Time(live.created_at),
        updated_at: Time(live.updated_at),
        title: settings.title.clone(),
        usage: usage_view(&live.usage),
        node_count: live.nodes().len() as u64,
        running_count: running.count() as u64,
        open_approvals: live.approvals.len() as u64,
        paused_reason: live.paused_reason.map(SameWord::to_wire),
        goal: settings.goal.clone(),
        cwd: settings.cwd.clone(),
        world: settings.world.clone(),
    }
}

/// A node as it is now. Events have no connection: it is not recorded.
pub(crate) fn node_view(
    run: RunId,
    node: &Node,
    connection: Option<wire::ConnectionView>,
) -> wire::NodeView {
    let settings = &node.settings;
    wire::NodeView {
        id: UuidText::of(node.id),
        run_id: UuidText::of(run),
        label: settings.label.clone(),
        role_template: settings.role.clone(),
        provider: settings.provider.to_wire(),
        status: node.status.to_wire(),
        summary: node.summary.clone(),
        created_at: Time(node.created_at),
        last_activity_at: Time(node.last_activity_at),
        capabilities: capabilities_view(settings.capabilities),
        permissions: permissions_view(settings.permissions),
        session: session_view(&node.session, &settings.reset_commands),
        inbox_count: node.inbox.len() as u64,
        wake_on: settings.wake_on.to_wire(),
        depth: node.depth,
        usage: usage_view(&node.usage),
        provider_name: settings.provider_name.clone(),
        alias: settings.alias.clone(),
        person: settings.person.clone(),
        custom_system_prompt: settings.custom_system_prompt.clone(),
        position: settings.position.map(|place| wire::PositionView {
            x: place.x,
            y: place.y,
        }),
        parent_id: node.parent.map(UuidText::of),
        turn_id: node.turn.as_ref().map(|turn| UuidText::of(turn.id)),
        block: node.block.as_ref().map(block_view),
        workspace: node.workspace.as_ref().map(workspace_view),
        retry_at: node.retry_at.map(Time),
        budget: settings.budget.as_ref().map(budget_view),
        connection,
    }
}

pub(crate) fn capabilities_view(capabilities: Capabilities) -> wire::CapabilitiesView {
    let Capabilities {
        spawn_nodes,
        write_code,
        write_docs,
        run_commands,
        delegate_only,
    } = capabilities;
    wire::CapabilitiesView {
        spawn_nodes,
        write_code,
        write_docs,
        run_commands,
        delegate_only,
    }
}

fn permissions_view(permissions: Permissions) -> wire::PermissionsView {
    wire::PermissionsView {
        cli_permissions_mode: permissions.cli.to_wire(),
        spawn_requires_approval: permissions.spawn_requires_approval,
    }
}

fn session_view(session: &Session, reset_commands: &[String]) -> wire::SessionView {
    wire::SessionView {
        reset_commands: reset_commands.to_vec(),
        session_id: session.id.clone(),
    }
}

pub(super) fn block_view(reason: &BlockReason) -> wire::BlockView {
    let block = |reason| wire::BlockView {
        reason,
        turn_id: None,
        paths: None,
    };
    match reason {
        BlockReason::Approvals => block(wire::BlockKind::Approvals),
        BlockReason::Stall => block(wire::BlockKind::Stall),
        BlockReason::Violation { turn, paths } => wire::BlockView {
            turn_id: Some(UuidText::of(turn)),
            paths: Some(paths.iter().cloned().collect()),
            ..block(wire::BlockKind::Violation)
        },
    }
}

pub(super) fn workspace_view(workspace: &Workspace) -> wire::WorkspaceView {
    wire::WorkspaceView {
        kind: workspace.kind.to_wire(),
        branch: workspace.branch.clone(),
    }
}

/// An edge.
pub(crate) fn edge_view(edge: &Edge) -> wire::EdgeView {
    wire::EdgeView {
        id: UuidText::of(edge.id),
        from: UuidText::of(edge.from),
        to: UuidText::of(edge.to),
        bidirectional: edge.bidirectional,
        kind: edge.kind.to_wire(),
        label: edge.label.clone(),
        gate: edge.gate,
    }
}

pub(super) fn envelope_view(place: RunPlace<'_>, envelope: &Envelope) -> wire::EnvelopeView {
    let status = envelope
        .status
        .as_ref()
        .map(|status| wire::EnvelopeStatusView {
            ok: status.ok,
            reason: status.reason.clone(),
        });
    let artifacts = envelope.artifacts.iter();
    wire::EnvelopeView {
        kind: wire::EnvelopeKind::Handoff,
        id: UuidText::of(envelope.id),
        from_node_id: UuidText::of(envelope.from),
        to_node_id: UuidText::of(envelope.to),
        created_at: Time(envelope.created_at),
        payload: wire::EnvelopePayload {
            message: envelope.message.clone(),
            artifacts: artifacts.map(|id| artifact_ref(place, *id)).collect(),
            response: wire::ResponseView {
                expectation: envelope.expectation.to_wire(),
                reply_to: envelope.reply_to.map(UuidText::of),
            },
            structured: envelope.structured.clone(),
            status,
        },
        context_ref: envelope
            .context_pack
            .map(|id| format!("contextpack://{id}")),
        meta: envelope
            .synthesized
            .then_some(wire::EnvelopeMeta { synthesized: true }),
    }
}

fn artifact_ref(place: RunPlace<'_>, id: ArtifactId) -> wire::ArtifactRef {
    let artifact = place.archive.artifact(id);
    wire::ArtifactRef {
        target: format!("artifact://{id}"),
        kind: artifact.map(|artifact| artifact.kind.to_wire()),
    }
}

pub(super) fn message_view(run: RunId, message: &Message) -> wire::MessageView {
    wire::MessageView {
        id: UuidText::of(message.id),
        run_id: UuidText::of(run),
        node_id: UuidText::of(message.node),
        role: message.role.to_wire(),
        content: message.content.clone(),
        interrupt: message.interrupt,
        created_at: Time(message.created_at),
    }
}

/// An artifact with the place of its copy.
pub(crate) fn artifact_view(place: RunPlace<'_>, artifact: &Artifact) -> wire::ArtifactView {
    let file = format!("{}-{}", artifact.id, artifact.name);
    let path = place.artifacts_dir.join(file);
    wire::ArtifactView {
        id: UuidText::of(artifact.id),
        run_id: UuidText::of(place.run),
        kind: artifact.kind.to_wire(),
        name: artifact.name.clone(),
        path: path.to_string_lossy().into_owned(),
        created_at: Time(artifact.created_at),
        content_hash: Hash(artifact.content),
        bytes: artifact.bytes,
        node_id: artifact.node.map(UuidText::of),
        metadata: artifact.diff.as_ref().map(diff_metadata),
    }
}

fn diff_metadata(diff: &DiffSummary) -> wire::DiffMetadata {
    let some_files = |files: &[String]| (!files.is_empty()).then(|| files.to_vec());
    wire::DiffMetadata {
        files_changed: diff.files_changed.clone(),
        summary: diff.summary.clone(),
        added: diff.lines_added,
        removed: diff.lines_removed,
        base_tree: diff.base_tree.clone(),
        head_tree: diff.head_tree.clone(),
        turn_id: diff.turn.map(UuidText::of),
        violation: some_files(&diff.violations),
        shared: some_files(&diff.shared),
        conflicts: some_conflicts(&diff.conflicts),
    }
}

fn some_conflicts(conflicts: &[WriteConflict]) -> Option<Vec<wire::WriteConflict>> {
    let view = |conflict: &WriteConflict| wire::WriteConflict {
        path: conflict.path.clone(),
        node_id: UuidText::of(conflict.node),
        turn_id: UuidText::of(conflict.turn),
    };
    (!conflicts.is_empty()).then(|| conflicts.iter().map(view).collect())
}

pub(super) fn tool_view(call: &ToolCall) -> wire::ToolView {
    wire::ToolView {
        id: UuidText::of(call.id),
        name: call.name.clone(),
        args: call.args.clone(),
        provider_tool_id: call.provider_id.clone(),
    }
}

/// An open approval.
pub(crate) fn approval_view(approval: &Approval) -> wire::ApprovalView {
    wire::ApprovalView {
        approval_id: UuidText::of(approval.id),
        node_id: UuidText::of(approval.node),
        turn_id: UuidText::of(approval.turn),
        kind: approval_kind(approval),
        tool: tool_view(&approval.tool),
        context: approval.context.clone(),
        created_at: Time(approval.created_at),
        options: answer_options(approval),
        expires_at: approval.expires_at.map(Time),
    }
}

/// The scopes that a person may give an approval.
pub(crate) fn scopes_of(approval: &Approval) -> Vec<wire::Scope> {
    let scopes = possible_scopes(approval).into_iter();
    scopes.map(SameWord::to_wire).collect()
}

pub(super) fn approval_kind(approval: &Approval) -> wire::ApprovalKind {
    match approval.subject {
        ApprovalSubject::ProviderTool { .. } | ApprovalSubject::OrchestrationTool(_) => {
            wire::ApprovalKind::Tool
        }
        ApprovalSubject::Question { .. } => wire::ApprovalKind::Question,
    }
}

/// The answers to choose from; none unless the approval is a question.
pub(super) fn answer_options(approval: &Approval) -> Vec<String> {
    match &approval.subject {
        ApprovalSubject::Question { options } => options.clone(),
        ApprovalSubject::ProviderTool { .. } | ApprovalSubject::OrchestrationTool(_) => Vec::new(),
    }
}

/// A decision about an approval.
pub(crate) fn resolution_view(resolution: &Resolution) -> wire::ResolutionView {
    wire::ResolutionView {
        status: resolution.verdict.to_wire(),
        scope: resolution.scope.to_wire(),
        modified_args: resolution.modified_args.clone(),
        reason: resolution.reason.clone(),
        by: resolution.by.map(SameWord::to_wire),
    }
}

/// A rule that answers approvals.
pub(crate) fn rule_view(rule: &Rule) -> wire::RuleView {
    let (command_prefix, path) = match &rule.matcher {
        RuleMatcher::CommandPrefix(prefix) => (Some(prefix.clone()), None),
        RuleMatcher::Path(path) => (None, Some(path.clone())),
    };
    wire::RuleView {
        id: UuidText::of(rule.id),
        tool: rule.tool.clone(),
        created_at: Time(rule.created_at),
        node_id: rule.node.map(UuidText::of),
        command_prefix,
        path,
    }
}

fn budget_view(budget: &Budget) -> wire::BudgetView {
    wire::BudgetView {
        tokens: budget.tokens,
        cost_usd: budget.cost_micro_usd.map(dollars),
    }
}

fn limits_view(limits: &RunLimits) -> wire::LimitsView {
    wire::LimitsView {
        max_concurrent_turns: limits.open_turns_max,
        max_nodes: limits.nodes_max,
        max_spawn_depth: limits.spawn_depth_max,
        stall_after: limits.stall_after,
        fan_in_ms: limits.fan_in_ms,
        silence_warn_ms: limits.silence_warn_ms,
        silence_end_ms: limits.silence_end_ms,
        turn_end_ms: limits.turn_end_ms,
        approval_ms: limits.approval_ms,
    }
}

fn usage_view(usage: &Usage) -> wire::UsageView {
    wire::UsageView {
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        total_tokens: usage.total_tokens(),
        cached_tokens: usage.cached_tokens,
        cost_usd: dollars(usage.cost_micro_usd),
    }
}

/// An amount of money as JSON shows it.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact below nine billion dollars"
)]
pub(super) fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}
