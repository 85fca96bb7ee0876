//! Calling a tool: which one, for whom, and what it answers.
//!
//! What goes wrong inside a tool is the tool's answer, so that a model reads it and can do better.
//! Only an unknown tool, or one that is not this caller's, is a JSON-RPC error.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_ledger::Principal;

use super::arguments::Arguments;
use super::rpc::Failure;
use super::{catalogue, reading, store_verbs, writing};
use crate::error::ApiError;
use crate::http::ledger::access::no_world;
use crate::http::ledger::tools::Asker;
use crate::ledger::DEFAULT_WORLD;
use crate::principal::Caller;
use crate::shared::Shared;

/// Runs `tools/call`.
pub(super) async fn run(
    shared: &Arc<Shared>,
    caller: &Caller,
    params: &Value,
) -> Result<Value, Failure> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Failure::bad_params("a call names its tool"))?;
    let tool = catalogue::find(caller, name);
    let tool = tool.ok_or_else(|| Failure::bad_params(format!("there is no tool `{name}`")))?;
    let none = json!({});
    let given = params
        .get("arguments")
        .filter(|given| !given.is_null())
        .unwrap_or(&none);
    let answered = match Arguments::new(given, &tool.schema(caller)) {
        Ok(arguments) => answer(shared, caller, tool.name, &arguments).await,
        Err(fault) => Err(fault.into()),
    };
    Ok(match answered {
        Ok(value) => result(&value, false),
        Err(error) => {
            error.log();
            let error = about_arguments(error);
            result(&json!({ "error": error.body() }), true)
        }
    })
}

/// Where a fault of a shape that the server built is in the arguments that it was built from.
const ARGUMENTS: &[(&str, &str)] = &[
    ("tool.query_text", "query"),
    ("tool.constraints.time_window.", ""),
    ("tool.constraints.", ""),
];

/// The error with its path in the arguments, which are all that the caller knows.
fn about_arguments(mut error: ApiError) -> ApiError {
    let Some(path) = error
        .details
        .get("path")
        .and_then(Value::as_str)
        .map(str::to_owned)
    else {
        return error;
    };
    let found = ARGUMENTS
        .iter()
        .find_map(|(prefix, name)| Some((path.strip_prefix(prefix)?, name)));
    let Some((rest, name)) = found else {
        return error;
    };
    let argument = format!("{name}{rest}");
    error.message = error.message.replacen(&path, &argument, 1);
    error.with("path", argument)
}

fn result(value: &Value, failed: bool) -> Value {
    json!({
        "content": [{ "type": "text", "text": value.to_string() }],
        "structuredContent": value,
        "isError": failed,
    })
}

async fn answer(
    shared: &Arc<Shared>,
    caller: &Caller,
    tool: &str,
    arguments: &Arguments<'_>,
) -> Result<Value, ApiError> {
    let asker = || asker(shared, caller, arguments);
    match tool {
        "whoami" => reading::whoami(shared, asker()?, arguments).await,
        "ledger_read" => reading::read(shared, asker()?, arguments).await,
        "ledger_search" => reading::search(shared, &asker()?, arguments).await,
        "ledger_get" => reading::get(shared, &asker()?, arguments).await,
        "ledger_pocket" => reading::pocket(shared, &asker()?, arguments).await,
        "capsule_get" => reading::capsule(shared, &asker()?, arguments).await,
        "scene_pack_build" => reading::scene(shared, &asker()?).await,
        "ledger_write" => writing::write(shared, caller, arguments).await,
        "store_contexts" => store_verbs::contexts(shared, arguments).await,
        "store_turns" => store_verbs::turns(shared, arguments).await,
        "store_turn" => store_verbs::turn(shared, arguments).await,
        _ => Err(ApiError::internal(format!("the tool {tool} does nothing"))),
    }
}

/// A person asks in its own world; the owner says in which.
fn asker(shared: &Shared, caller: &Caller, arguments: &Arguments<'_>) -> Result<Asker, ApiError> {
    match caller {
        Caller::Person(person) => Ok(Asker {
            handle: Arc::clone(&person.handle),
            who: person.who.clone(),
            token: Some(person.token),
        }),
        Caller::Owner => {
            let world = arguments.optional_text("world")?.unwrap_or(DEFAULT_WORLD);
            let handle = shared.worlds.find(world)?.ok_or_else(|| no_world(world))?;
            Ok(Asker {
                handle,
                who: Principal::Owner,
                token: None,
            })
        }
    }
}
