//! `tools/call`: finds the tool, checks that the caller may use it, and runs it.
//!
//! Tool failures are results, so that a model can read them and correct its call. Only an unknown
//! or forbidden tool is a JSON-RPC error.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_ledger::Principal;

use super::arguments::Arguments;
use super::rpc::Failure;
use super::{catalogue, reading, store_verbs, writing};
use crate::error::ApiError;
use crate::http::ledger::access::no_world;
use crate::http::ledger::tools::WorldCaller;
use crate::ledger::DEFAULT_WORLD;
use crate::principal::Caller;
use crate::shared::Shared;

/// Runs `tools/call`.
pub(super) async fn run_call(
    shared: &Arc<Shared>,
    caller: &Caller,
    params: &Value,
) -> Result<Value, Failure> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Failure::bad_params("a call names its tool"))?;
    let tool = catalogue::find_tool(caller, name);
    let tool = tool.ok_or_else(|| Failure::bad_params(format!("there is no tool `{name}`")))?;
    let none = json!({});
    let given = params
        .get("arguments")
        .filter(|given| !given.is_null())
        .unwrap_or(&none);
    // Invalid arguments are a tool result too, not a JSON-RPC error.
    let answered = match Arguments::new(given, &tool.schema(caller)) {
        Ok(arguments) => run_tool(shared, caller, tool.name, &arguments).await,
        Err(fault) => Err(fault.into()),
    };
    Ok(match answered {
        Ok(value) => call_result(&value, false),
        Err(error) => {
            error.log();
            let error = with_argument_path(error);
            call_result(&json!({ "error": error.body() }), true)
        }
    })
}

/// Maps paths in a tool request, which the server built, to the caller's arguments.
const ARGUMENT_PATHS: &[(&str, &str)] = &[
    ("tool.query_text", "query"),
    ("tool.constraints.time_window.", ""),
    ("tool.constraints.", ""),
];

/// Rewrites the error's path to the argument, because the caller does not know the built request.
fn with_argument_path(mut error: ApiError) -> ApiError {
    let Some(path) = error
        .details
        .get("path")
        .and_then(Value::as_str)
        .map(str::to_owned)
    else {
        return error;
    };
    let found = ARGUMENT_PATHS
        .iter()
        .find_map(|(prefix, name)| Some((path.strip_prefix(prefix)?, name)));
    let Some((rest, name)) = found else {
        return error;
    };
    let argument = format!("{name}{rest}");
    error.message = error.message.replacen(&path, &argument, 1);
    error.with("path", argument)
}

/// The result holds the value twice, as clients of older revisions read only the text. The
/// [`Budget`](super::budget::Budget) of an answer counts both.
fn call_result(value: &Value, failed: bool) -> Value {
    json!({
        "content": [{ "type": "text", "text": value.to_string() }],
        "structuredContent": value,
        "isError": failed,
    })
}

async fn run_tool(
    shared: &Arc<Shared>,
    caller: &Caller,
    tool: &str,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let world_caller = || resolve_caller(shared, caller, arguments);
    match tool {
        "whoami" => reading::whoami(shared, world_caller()?, arguments).await,
        "ledger_read" => reading::read_stream(shared, world_caller()?, arguments).await,
        "ledger_search" => reading::search(shared, &world_caller()?, arguments).await,
        "ledger_get" => reading::get_entries(shared, &world_caller()?, arguments).await,
        "ledger_pocket" => reading::read_pocket(shared, &world_caller()?, arguments).await,
        "capsule_get" => reading::get_capsule(shared, &world_caller()?, arguments).await,
        "scene_pack_build" => reading::build_scene(shared, &world_caller()?, arguments).await,
        "ledger_write" => writing::write(shared, caller, arguments).await,
        "store_contexts" => store_verbs::list_contexts(shared, arguments).await,
        "store_turns" => store_verbs::read_turns(shared, arguments).await,
        "store_turn" => store_verbs::read_turn(shared, arguments).await,
        _ => Err(ApiError::internal(format!("the tool {tool} does nothing"))),
    }
}

/// A person calls in their own world. The owner names the world.
fn resolve_caller(
    shared: &Shared,
    caller: &Caller,
    arguments: &Arguments<'_>,
) -> Result<WorldCaller, ApiError> {
    match caller {
        Caller::Person(person) => Ok(WorldCaller {
            handle: Arc::clone(&person.handle),
            who: person.who.clone(),
            token: Some(person.token),
        }),
        Caller::Owner => {
            let world = arguments.optional_text("world")?.unwrap_or(DEFAULT_WORLD);
            let handle = shared.worlds.find(world)?.ok_or_else(|| no_world(world))?;
            Ok(WorldCaller {
                handle,
                who: Principal::Owner,
                token: None,
            })
        }
    }
}
