//! Calls of the server's own tools, as an agent writes them.

use serde_json::Value;
use turnkeep_runtime::node::{Node, NodeSettings};
use turnkeep_runtime::orchestration::{CreateEdge, OrchestrationCall, SendHandoff, SpawnNode};
use turnkeep_runtime::words::{EdgeKind, Expectation, Provider, WakeOn};
use turnkeep_wire::runs as wire;

use super::request::{
    artifact_ids, capabilities_of, check_provider_name, context_pack, permissions_of, reply_to,
    status_of,
};
use super::words::SameWord as _;
use super::{BodyError, NodeDefaults, read_body};

/// What the defaults of a new node depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewNodeKind<'a> {
    pub(crate) role: &'a str,
    pub(crate) provider: Provider,
    pub(crate) provider_name: Option<&'a str>,
}

/// The role of the node that a call spawns, if it spawns one.
pub(crate) fn spawned_role(name: &str, args: &Value) -> Result<Option<String>, BodyError> {
    if name != "spawn_node" {
        return Ok(None);
    }
    let args: wire::SpawnNodeArgs = read_body(args)?;
    Ok(Some(args.role_template))
}

/// Reads the arguments of a tool that changes the run. `defaults` has those of the role and the
/// program that a new node gets.
pub(crate) fn read_tool_call(
    name: &str,
    args: &Value,
    caller: &Node,
    defaults: impl FnOnce(&NewNodeKind<'_>) -> NodeDefaults,
) -> Result<OrchestrationCall, BodyError> {
    match name {
        "spawn_node" => spawn_node(read_body(args)?, &caller.settings, defaults),
        "create_edge" => Ok(create_edge(read_body(args)?)),
        "send_handoff" => send_handoff(read_body(args)?),
        "ask_user" => Ok(ask_user(read_body(args)?)),
        "complete_run" => complete_run(read_body(args)?),
        _ => Err(BodyError::at(
            "name",
            format!("is `{name}`, which is no tool"),
        )),
    }
}

fn spawn_node(
    args: wire::SpawnNodeArgs,
    caller: &NodeSettings,
    defaults: impl FnOnce(&NewNodeKind<'_>) -> NodeDefaults,
) -> Result<OrchestrationCall, BodyError> {
    // The caller's program runs on this machine, so it is the best guess.
    let (provider, provider_name) = match args.provider {
        Some(provider) => (Provider::from_wire(provider), args.provider_name),
        None => (caller.provider, caller.provider_name.clone()),
    };
    check_provider_name(provider, provider_name.as_deref())?;
    let defaults = defaults(&NewNodeKind {
        role: &args.role_template,
        provider,
        provider_name: provider_name.as_deref(),
    });
    let settings = NodeSettings {
        label: args.label,
        role: args.role_template,
        provider,
        provider_name,
        alias: args.alias,
        person: None,
        capabilities: capabilities_of(defaults.capabilities, args.capabilities.as_ref()),
        permissions: permissions_of(defaults.permissions, args.permissions.as_ref()),
        custom_system_prompt: args.custom_system_prompt,
        wake_on: WakeOn::Any,
        position: None,
        reset_commands: defaults.reset_commands,
        // Only a person gives budgets. The run's counts for the new node as well.
        budget: None,
    };
    Ok(OrchestrationCall::SpawnNode(Box::new(SpawnNode {
        settings,
        input: first_input(args.instructions, args.input),
        connect: args.connect.unwrap_or(true),
    })))
}

/// Instructions come before the task that they are about.
fn first_input(instructions: Option<String>, input: Option<String>) -> Option<String> {
    match (instructions, input) {
        (Some(instructions), Some(input)) => Some(format!("{instructions}\n\n{input}")),
        (instructions, input) => instructions.or(input),
    }
}

fn create_edge(args: wire::CreateEdge) -> OrchestrationCall {
    OrchestrationCall::CreateEdge(CreateEdge {
        from: args.from,
        to: args.to,
        kind: args.kind.map(EdgeKind::from_wire),
        label: args.label,
        bidirectional: args.bidirectional,
    })
}

fn send_handoff(args: wire::SendHandoff) -> Result<OrchestrationCall, BodyError> {
    let response = args.response.unwrap_or_default();
    Ok(OrchestrationCall::SendHandoff(Box::new(SendHandoff {
        artifacts: artifact_ids(&args.artifacts)?,
        status: args.status.as_ref().map(status_of),
        expectation: response.expectation.map(Expectation::from_wire),
        reply_to: reply_to(&response)?,
        context_pack: context_pack(args.context_ref.as_deref())?,
        to: args.to,
        message: args.message,
        structured: args.structured,
    })))
}

fn ask_user(args: wire::AskUserArgs) -> OrchestrationCall {
    OrchestrationCall::AskUser {
        question: args.question,
        options: args.options,
    }
}

fn complete_run(args: wire::CompleteRunArgs) -> Result<OrchestrationCall, BodyError> {
    if !args.ok {
        let message = "is false: a run that has not reached its goal goes on; hand the rest to a \
            node, or ask the user";
        return Err(BodyError::at("ok", message));
    }
    Ok(OrchestrationCall::CompleteRun {
        summary: args.summary,
    })
}
