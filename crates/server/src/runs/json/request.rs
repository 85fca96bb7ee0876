//! Requests as commands of the runtime. What the runtime checks itself is not checked here.

use turnkeep_runtime::LiveRun;
use turnkeep_runtime::approval::Resolution;
use turnkeep_runtime::decide::{Chat, EdgeRequest, Handoff, ResetInbox, RunChange};
use turnkeep_runtime::ids::{ArtifactId, NodeId};
use turnkeep_runtime::input::EnvelopeStatus;
use turnkeep_runtime::node::{Capabilities, NodeSettings, Permissions, Position};
use turnkeep_runtime::run::{RunLimits, RunSettings};
use turnkeep_runtime::usage::Budget;
use turnkeep_runtime::words::{
    EdgeKind, Expectation, GlobalMode, Mode, Provider, ResolvedBy, RunStatus, Scope, Verdict,
    WakeOn,
};
use turnkeep_wire::runs as wire;

use super::words::SameWord as _;
use super::{BodyError, NodeDefaults};

/// The longest title, in characters.
const TITLE_CHARACTERS_MAX: usize = 80;
/// A run may have so many commands of each kind.
const COMMANDS_MAX: usize = 64;
/// So many nodes a request may allow.
const NODES_MAX: u32 = 1_000;
/// More money than any run can use; sums of it still fit.
const COST_USD_MAX: f64 = 1e9;

/// A run to create.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewRun {
    /// Its docs node is not set yet: no node exists.
    pub(crate) settings: RunSettings,
    /// The alias of the docs node.
    pub(crate) docs_node: Option<String>,
}

/// The settings of a new run. The server's configuration has the limits that are left out.
pub(crate) fn new_run(body: wire::CreateRun, limits: RunLimits) -> Result<NewRun, BodyError> {
    check_title(body.title.as_deref())?;
    check_text("goal", body.goal.as_deref())?;
    check_commands("verify", &body.verify)?;
    check_commands("setup", &body.setup)?;
    let settings = RunSettings {
        title: body.title.unwrap_or_default(),
        goal: body.goal,
        cwd: body.cwd,
        mode: body.mode.map_or(Mode::Interactive, Mode::from_wire),
        global_mode: body
            .global_mode
            .map_or(GlobalMode::Implementation, GlobalMode::from_wire),
        world: body.world,
        verify: body.verify,
        setup: body.setup,
        docs_node: None,
        budget: budget_of(body.budget.as_ref())?,
        limits: changed_limits(limits, body.limits.as_ref())?,
    };
    Ok(NewRun {
        settings,
        docs_node: body.docs_node,
    })
}

/// A change of a run. Settings that do not differ are no change.
pub(crate) fn change_of_run(body: &wire::ChangeRun, run: &LiveRun) -> Result<RunChange, BodyError> {
    let settings = changed_settings(body, run)?;
    Ok(RunChange {
        status: body.status.map(RunStatus::from_wire),
        interrupt: body.interrupt,
        mode: body.mode.map(Mode::from_wire),
        global_mode: body.global_mode.map(GlobalMode::from_wire),
        settings: (settings != *run.settings).then_some(settings),
    })
}

fn changed_settings(body: &wire::ChangeRun, run: &LiveRun) -> Result<RunSettings, BodyError> {
    check_title(body.title.as_deref())?;
    check_text("goal", body.goal.as_ref().and_then(Option::as_deref))?;
    check_commands("verify", body.verify.as_deref().unwrap_or_default())?;
    check_commands("setup", body.setup.as_deref().unwrap_or_default())?;
    let mut settings = (*run.settings).clone();
    if let Some(title) = &body.title {
        settings.title.clone_from(title);
    }
    if let Some(goal) = &body.goal {
        settings.goal.clone_from(goal);
    }
    if let Some(verify) = &body.verify {
        settings.verify.clone_from(verify);
    }
    if let Some(setup) = &body.setup {
        settings.setup.clone_from(setup);
    }
    if let Some(docs_node) = &body.docs_node {
        let named = docs_node.as_deref();
        settings.docs_node = named.map(|name| docs_node_id(run, name)).transpose()?;
    }
    if let Some(budget) = &body.budget {
        settings.budget = budget_of(budget.as_ref())?;
    }
    settings.limits = changed_limits(settings.limits, body.limits.as_ref())?;
    Ok(settings)
}

fn docs_node_id(run: &LiveRun, name: &str) -> Result<NodeId, BodyError> {
    let unknown = || BodyError::at("docsNode", format!("is `{name}`, which names no node"));
    find_node_id(run, name).ok_or_else(unknown)
}

/// The node with this id or alias.
pub(crate) fn find_node_id(run: &LiveRun, name: &str) -> Option<NodeId> {
    let id = name.parse::<NodeId>().ok();
    let mut nodes = run.nodes();
    let found = nodes.find(|node| {
        let alias = node.settings.alias.as_deref();
        Some(node.id) == id || alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
    });
    found.map(|node| node.id)
}

/// A text that says nothing is a mistake: a caller that wants none leaves it out.
fn check_text(field: &str, text: Option<&str>) -> Result<(), BodyError> {
    match text {
        Some(text) if text.trim().is_empty() => Err(BodyError::at(field, "is empty")),
        _ => Ok(()),
    }
}

fn check_title(title: Option<&str>) -> Result<(), BodyError> {
    check_text("title", title)?;
    let characters = title.map_or(0, |title| title.chars().count());
    if characters <= TITLE_CHARACTERS_MAX {
        return Ok(());
    }
    let message = format!("has {characters} characters; the limit is {TITLE_CHARACTERS_MAX}");
    Err(BodyError::at("title", message))
}

fn check_commands(field: &str, commands: &[String]) -> Result<(), BodyError> {
    if commands.len() > COMMANDS_MAX {
        let message = format!("has more than {COMMANDS_MAX} commands: put them into a script");
        return Err(BodyError::at(field, message));
    }
    let empty = commands
        .iter()
        .position(|command| command.trim().is_empty());
    empty.map_or(Ok(()), |place| {
        Err(BodyError::at(format!("{field}[{place}]"), "is empty"))
    })
}

fn budget_of(budget: Option<&wire::BudgetRequest>) -> Result<Budget, BodyError> {
    let Some(budget) = budget else {
        return Ok(Budget::default());
    };
    Ok(Budget {
        tokens: budget.tokens,
        cost_micro_usd: budget.cost_usd.map(micro_dollars).transpose()?,
    })
}

/// The budget of a node; `None` if it sets no limit.
fn node_budget(budget: Option<&wire::BudgetRequest>) -> Result<Option<Budget>, BodyError> {
    let budget = budget_of(budget)?;
    Ok((budget != Budget::default()).then_some(budget))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn micro_dollars(cost_usd: f64) -> Result<u64, BodyError> {
    if (0.0..=COST_USD_MAX).contains(&cost_usd) {
        Ok((cost_usd * 1e6).round() as u64)
    } else {
        let message = format!("must be an amount from 0 to {COST_USD_MAX}");
        Err(BodyError::at("budget.costUsd", message))
    }
}

fn changed_limits(
    limits: RunLimits,
    change: Option<&wire::LimitsRequest>,
) -> Result<RunLimits, BodyError> {
    let Some(change) = change else {
        return Ok(limits);
    };
    let out_of_range = |field: &str, range: String| {
        let message = format!("must be {range}");
        Err(BodyError::at(format!("limits.{field}"), message))
    };
    if change.max_concurrent_turns == Some(0) {
        return out_of_range("maxConcurrentTurns", "at least 1".to_owned());
    }
    if change
        .max_nodes
        .is_some_and(|nodes| !(1..=NODES_MAX).contains(&nodes))
    {
        return out_of_range("maxNodes", format!("from 1 to {NODES_MAX}"));
    }
    if change
        .fan_in_ms
        .is_some_and(|ms| ms > RunLimits::FAN_IN_MS_MAX)
    {
        return out_of_range("fanInMs", format!("from 0 to {}", RunLimits::FAN_IN_MS_MAX));
    }
    Ok(RunLimits {
        open_turns_max: change.max_concurrent_turns.unwrap_or(limits.open_turns_max),
        nodes_max: change.max_nodes.unwrap_or(limits.nodes_max),
        spawn_depth_max: change.max_spawn_depth.unwrap_or(limits.spawn_depth_max),
        stall_after: change.stall_after.unwrap_or(limits.stall_after),
        fan_in_ms: change.fan_in_ms.unwrap_or(limits.fan_in_ms),
        silence_warn_ms: change.silence_warn_ms.unwrap_or(limits.silence_warn_ms),
        silence_end_ms: change.silence_end_ms.unwrap_or(limits.silence_end_ms),
        turn_end_ms: change.turn_end_ms.unwrap_or(limits.turn_end_ms),
        approval_ms: change.approval_ms.unwrap_or(limits.approval_ms),
    })
}

/// The settings of a new node.
pub(crate) fn node_settings(
    body: wire::CreateNode,
    defaults: NodeDefaults,
) -> Result<NodeSettings, BodyError> {
    let provider = Provider::from_wire(body.provider);
    check_provider_name(provider, body.provider_name.as_deref())?;
    let reset_commands = body.session.and_then(|session| session.reset_commands);
    Ok(NodeSettings {
        label: body.label,
        role: body.role_template,
        provider,
        provider_name: body.provider_name,
        alias: body.alias,
        person: body.person,
        capabilities: capabilities_of(defaults.capabilities, body.capabilities.as_ref()),
        permissions: permissions_of(defaults.permissions, body.permissions.as_ref()),
        custom_system_prompt: body.custom_system_prompt,
        wake_on: body.wake_on.map_or(WakeOn::Any, WakeOn::from_wire),
        position: body.position.as_ref().map(position_of),
        reset_commands: reset_commands.unwrap_or(defaults.reset_commands),
        budget: node_budget(body.budget.as_ref())?,
    })
}

/// The settings of a node after a change.
pub(crate) fn change_node_settings(
    body: wire::ChangeNode,
    current: &NodeSettings,
) -> Result<NodeSettings, BodyError> {
    let reset_commands = body.session.and_then(|session| session.reset_commands);
    let provider = body.provider.map_or(current.provider, Provider::from_wire);
    let provider_name = body
        .provider_name
        .unwrap_or_else(|| current.provider_name.clone());
    check_provider_name(provider, provider_name.as_deref())?;
    Ok(NodeSettings {
        label: body.label.unwrap_or_else(|| current.label.clone()),
        role: body.role_template.unwrap_or_else(|| current.role.clone()),
        provider,
        provider_name,
        alias: body.alias.unwrap_or_else(|| current.alias.clone()),
        person: current.person.clone(),
        capabilities: capabilities_of(current.capabilities, body.capabilities.as_ref()),
        permissions: permissions_of(current.permissions, body.permissions.as_ref()),
        custom_system_prompt: body
            .custom_system_prompt
            .unwrap_or_else(|| current.custom_system_prompt.clone()),
        wake_on: body.wake_on.map_or(current.wake_on, WakeOn::from_wire),
        position: match body.position {
            Some(position) => position.as_ref().map(position_of),
            None => current.position,
        },
        reset_commands: reset_commands.unwrap_or_else(|| current.reset_commands.clone()),
        budget: match &body.budget {
            Some(budget) => node_budget(budget.as_ref())?,
            None => current.budget,
        },
    })
}

/// A custom program has no name of its own.
pub(super) fn check_provider_name(provider: Provider, name: Option<&str>) -> Result<(), BodyError> {
    if provider == Provider::Custom && name.is_none_or(str::is_empty) {
        let message = "is missing: with the provider `custom` it names a configured program";
        return Err(BodyError::at("providerName", message));
    }
    Ok(())
}

pub(super) fn capabilities_of(
    base: Capabilities,
    change: Option<&wire::CapabilitiesRequest>,
) -> Capabilities {
    let Some(change) = change else {
        return base;
    };
    Capabilities {
        spawn_nodes: change.spawn_nodes.unwrap_or(base.spawn_nodes),
        write_code: change.write_code.unwrap_or(base.write_code),
        write_docs: change.write_docs.unwrap_or(base.write_docs),
        run_commands: change.run_commands.unwrap_or(base.run_commands),
        delegate_only: change.delegate_only.unwrap_or(base.delegate_only),
    }
}

pub(super) fn permissions_of(
    base: Permissions,
    change: Option<&wire::PermissionsRequest>,
) -> Permissions {
    let Some(change) = change else {
        return base;
    };
    let spawn = change.spawn_requires_approval;
    Permissions {
        cli: change
            .cli_permissions_mode
            .map_or(base.cli, turnkeep_runtime::words::CliPermissions::from_wire),
        spawn_requires_approval: spawn.unwrap_or(base.spawn_requires_approval),
    }
}

fn position_of(position: &wire::PositionView) -> Position {
    Position {
        x: position.x,
        y: position.y,
    }
}

/// An edge to create.
pub(crate) fn edge_request(body: &wire::CreateEdge) -> EdgeRequest<'_> {
    EdgeRequest {
        from: &body.from,
        to: &body.to,
        kind: body.kind.map(EdgeKind::from_wire),
        label: body.label.as_deref(),
        bidirectional: body.bidirectional,
        gate: body.gate,
    }
}

/// A message from a person.
pub(crate) fn chat_of(body: &wire::SendChat) -> Chat<'_> {
    Chat {
        content: &body.content,
        node: body.node_id.as_deref(),
        interrupt: body.interrupt,
    }
}

/// A decision of a person.
pub(crate) fn resolution_of(body: wire::ResolveApproval, by: ResolvedBy) -> Resolution {
    Resolution {
        verdict: Verdict::from_wire(body.status),
        modified_args: body.modified_args,
        reason: body.reason,
        scope: body.scope.map_or(Scope::Once, Scope::from_wire),
        by: Some(by),
    }
}

/// What a reset does to the inbox.
pub(crate) fn reset_inbox(body: &wire::ResetNode) -> ResetInbox {
    if body.clear_inbox {
        ResetInbox::Clear
    } else {
        ResetInbox::Keep
    }
}

/// An envelope that a person sends for a node.
pub(crate) fn handoff_of<'a>(
    body: &'a wire::SendHandoff,
    run: &LiveRun,
) -> Result<Handoff<'a>, BodyError> {
    let missing = || BodyError::at("from", "is missing: say which node sends");
    let sender = body.from.as_deref().ok_or_else(missing)?;
    let unknown = || BodyError::at("from", format!("is `{sender}`, which names no node"));
    let response = body.response.clone().unwrap_or_default();
    Ok(Handoff {
        from: find_node_id(run, sender).ok_or_else(unknown)?,
        to: &body.to,
        message: &body.message,
        structured: body.structured.clone(),
        artifacts: artifact_ids(&body.artifacts)?,
        status: body.status.as_ref().map(status_of),
        expectation: response.expectation.map(Expectation::from_wire),
        reply_to: reply_to(&response)?,
        context_pack: context_pack(body.context_ref.as_deref())?,
    })
}

pub(super) fn status_of(status: &wire::EnvelopeStatusView) -> EnvelopeStatus {
    EnvelopeStatus {
        ok: status.ok,
        reason: status.reason.clone(),
    }
}

pub(super) fn reply_to(
    response: &wire::ResponseRequest,
) -> Result<Option<turnkeep_runtime::ids::EnvelopeId>, BodyError> {
    let Some(text) = &response.reply_to else {
        return Ok(None);
    };
    let parsed = text.parse().map(Some);
    parsed.map_err(|_| BodyError::at("response.replyTo", "must be the id of an envelope"))
}

pub(super) fn artifact_ids(
    references: &[wire::SentArtifactRef],
) -> Result<Vec<ArtifactId>, BodyError> {
    let numbered = references.iter().enumerate();
    numbered
        .map(|(place, reference)| {
            parse_artifact_ref(reference.target())
                .map_err(|error| BodyError::at(format!("artifacts[{place}]"), error.to_string()))
        })
        .collect()
}

pub(super) fn context_pack(reference: Option<&str>) -> Result<Option<ArtifactId>, BodyError> {
    let Some(reference) = reference else {
        return Ok(None);
    };
    let rest = ["contextpack://", "artifact://"]
        .into_iter()
        .find_map(|scheme| reference.strip_prefix(scheme));
    let id = rest.and_then(parse_last_segment);
    let message = "must be contextpack:// or artifact://, and the id of an artifact";
    id.map(Some)
        .ok_or_else(|| BodyError::at("contextRef", message))
}

/// The text is not a reference to an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be artifact:// and the id of an artifact")]
pub(crate) struct ArtifactRefError;

/// The artifact of a reference: `artifact://ID`. Agents also write a kind before the id.
pub(crate) fn parse_artifact_ref(reference: &str) -> Result<ArtifactId, ArtifactRefError> {
    let id = reference
        .strip_prefix("artifact://")
        .and_then(parse_last_segment);
    id.ok_or(ArtifactRefError)
}

/// Parses `ID` or `WORD/ID`.
fn parse_last_segment(rest: &str) -> Option<ArtifactId> {
    let id = match rest.split_once('/') {
        Some((_, id)) => id,
        None => rest,
    };
    id.parse().ok()
}
