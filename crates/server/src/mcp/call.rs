//! `tools/call`: finds the tool, checks that the caller may use it, and runs it.
//!
//! Tool failures are results, so that a model can read them and correct its call. Only an unknown
//! or forbidden tool is a JSON-RPC error.

use std::sync::Arc;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::catalogue::{self, Tool, ToolAudience};
use super::held_value::HeldValue;
use super::rpc::Failure;
use super::{node_tools, reading, store_verbs, writing};
use crate::error::ApiError;
use crate::ledger::DEFAULT_WORLD;
use crate::principal::Caller;
use crate::runs::world_link;
use crate::shared::Shared;
use crate::world_caller::{WorldCaller, no_world};

/// Runs `tools/call`. Consumes the parameters, so that a tool can free them before it waits.
pub(super) async fn run_call(
    shared: &Arc<Shared>,
    caller: &Caller,
    id: &Value,
    params: HeldValue,
) -> Result<HeldValue, Failure> {
    let tool = named_tool(caller, params.value())?;
    let given = params.map(take_arguments);
    // Invalid arguments are a tool result too, not a JSON-RPC error.
    let answered = match Arguments::new(given, &tool.schema(caller)) {
        Ok(arguments) => run_tool(shared, caller, id, tool, arguments).await,
        Err(fault) => Err(fault.into()),
    };
    Ok(match answered {
        Ok(held) => held.map(|value| call_result(value, false)),
        Err(error) => {
            error.log();
            call_result(json!({ "error": error.body() }), true).into()
        }
    })
}

fn named_tool(caller: &Caller, params: &Value) -> Result<&'static Tool, Failure> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Failure::bad_params("a call names its tool"))?;
    let tool = catalogue::find_tool(caller, name);
    tool.ok_or_else(|| Failure::bad_params(format!("there is no tool `{name}`")))
}

/// The arguments among the parameters of a call. Missing ones and null are an empty object.
fn take_arguments(mut params: Value) -> Value {
    match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => json!({}),
        Some(given) => given,
    }
}

/// The result holds the value twice, as clients of older revisions read only the text. The
/// [`Budget`](super::budget::Budget) of an answer counts both.
fn call_result(value: Value, failed: bool) -> Value {
    let text = value.to_string();
    let mut result = json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": null,
        "isError": failed,
    });
    // Assigned, because `json!` would copy the value.
    result["structuredContent"] = value;
    result
}

async fn run_tool(
    shared: &Arc<Shared>,
    caller: &Caller,
    id: &Value,
    tool: &Tool,
    arguments: Arguments,
) -> Result<HeldValue, ApiError> {
    if let Caller::Node(node) = caller {
        if tool.audience == ToolAudience::Node {
            return node_tools::run_tool(node, id, tool.name, arguments.value()).await;
        }
        // The first call may come before the node was added to the world.
        world_link::ensure_person(&node.handle, node.node).await?;
    }
    let given = &arguments;
    let world_caller = || resolve_caller(shared, caller, given);
    let answer = match tool.name {
        "whoami" => reading::whoami(shared, world_caller()?, given).await,
        "ledger_read" => reading::read_stream(shared, world_caller()?, arguments).await,
        "ledger_search" => reading::search(shared, &world_caller()?, given).await,
        "ledger_get" => reading::get_entries(shared, &world_caller()?, given).await,
        "ledger_pocket" => reading::read_pocket(shared, &world_caller()?, given).await,
        "capsule_get" => reading::get_capsule(shared, &world_caller()?, given).await,
        "scene_pack_build" => reading::build_scene(shared, &world_caller()?, given).await,
        "ledger_write" => writing::write_entries(shared, caller, arguments).await,
        "store_contexts" => return store_verbs::list_contexts(shared, given).await,
        "store_turns" => return store_verbs::read_turns(shared, given).await,
        "store_turn" => return store_verbs::read_turn(shared, given).await,
        name => Err(ApiError::internal(format!("the tool {name} does nothing"))),
    };
    // The budget of an answer bounds its values, so these need no permit.
    answer.map(HeldValue::from)
}

/// A person, and a node that is one, calls in its own world. The owner names the world.
fn resolve_caller(
    shared: &Shared,
    caller: &Caller,
    arguments: &Arguments,
) -> Result<WorldCaller, ApiError> {
    match caller {
        Caller::Person(_) | Caller::Node(_) => {
            let person = caller.person().map(WorldCaller::person);
            person.ok_or_else(|| no_world("of a node"))
        }
        Caller::Owner => {
            let world = arguments.optional_text("world")?.unwrap_or(DEFAULT_WORLD);
            let handle = shared.worlds.find(world)?.ok_or_else(|| no_world(world))?;
            Ok(WorldCaller::owner(handle))
        }
    }
}
