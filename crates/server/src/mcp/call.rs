//! Calling a tool: which one, for whom, and what it answers.
//!
//! What goes wrong inside a tool is the tool's answer, so that a model reads it and can do better; only a tool
//! that there is not, for this caller, is the protocol's error.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_ledger::ids::{Name, TokenId};
use turnkeep_ledger::{Code, Fault, Principal, projection};
use turnkeep_wire::ErrorCode;

use super::arguments::Arguments;
use super::rpc::Failure;
use super::{catalogue, store_verbs};
use crate::error::ApiError;
use crate::http::ledger::access::no_world;
use crate::http::ledger::stream::{UNNAMED_REQUEST, at};
use crate::http::ledger::tools::Asker;
use crate::ledger::DEFAULT_WORLD;
use crate::principal::Caller;
use crate::shared::Shared;

/// What the server calls itself in the envelopes that it builds.
const INVOKER: &str = "turnkeep-mcp";

/// Runs `tools/call`.
pub(super) async fn run(shared: &Arc<Shared>, caller: &Caller, params: &Value) -> Result<Value, Failure> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Failure::bad_params("a call names its tool"))?;
    let tool = catalogue::find(caller, name);
    let tool = tool.ok_or_else(|| Failure::bad_params(format!("there is no tool `{name}`")))?;
    let none = json!({});
    let given = params.get("arguments").filter(|given| !given.is_null()).unwrap_or(&none);
    let answered = match Arguments::new(given, &tool.schema(caller)) {
        Ok(arguments) => answer(shared, caller, tool.name, &arguments).await,
        Err(fault) => Err(fault.into()),
    };
    Ok(match answered {
        Ok(value) => result(&value, false),
        Err(error) => {
            error.log();
            let error = about_arguments(error, tool.name);
            result(&json!({ "error": error.body() }), true)
        }
    })
}

/// Where a fault of a shape that the server built is in the arguments that it was built from.
const ARGUMENTS: &[(&str, &str)] = &[
    ("tool.constraints.time_window.", ""),
    ("tool.constraints.", ""),
    ("entries[0].visibility.", ""),
    ("entries[0].", ""),
];

/// The error with its path in the arguments, which are all that the caller knows.
fn about_arguments(mut error: ApiError, tool: &str) -> ApiError {
    let Some(path) = error.details.get("path").and_then(Value::as_str).map(str::to_owned) else {
        return error;
    };
    let query = if tool == "ledger_get" { "ids" } else { "query" };
    let mapped = [("tool.query_text", query)].into_iter().chain(ARGUMENTS.iter().copied());
    let found = mapped.into_iter().find_map(|(prefix, name)| Some((path.strip_prefix(prefix)?, name)));
    let Some((rest, name)) = found else { return error };
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
    match tool {
        "ledger_search" => search(shared, &asker(shared, caller, arguments)?, arguments).await,
        "ledger_get" => get(shared, &asker(shared, caller, arguments)?, arguments).await,
        "capsule_get" => capsule(shared, &asker(shared, caller, arguments)?, arguments).await,
        "scene_pack_build" => scene(shared, &asker(shared, caller, arguments)?).await,
        "ledger_read" => read(shared, asker(shared, caller, arguments)?, arguments).await,
        "ledger_write" => write(shared, caller, arguments).await,
        "store_contexts" => store_verbs::contexts(shared, arguments).await,
        "store_turns" => store_verbs::turns(shared, arguments).await,
        "store_turn" => store_verbs::turn(shared, arguments).await,
        _ => Err(ApiError::internal(format!("the tool {tool} does nothing"))),
    }
}

/// A person asks in its own world; the owner says in which.
fn asker(shared: &Shared, caller: &Caller, arguments: &Arguments<'_>) -> Result<Asker, ApiError> {
    match caller {
        Caller::Person(person) => {
            Ok(Asker { room: Arc::clone(&person.room), who: person.who.clone(), token: Some(person.token) })
        }
        Caller::Owner => {
            let world = arguments.optional_text("world")?.unwrap_or(DEFAULT_WORLD);
            let room = shared.worlds.find(world)?.ok_or_else(|| no_world(world))?;
            Ok(Asker { room, who: Principal::Owner, token: None })
        }
    }
}

async fn search(shared: &Arc<Shared>, asker: &Asker, arguments: &Arguments<'_>) -> Result<Value, ApiError> {
    let mut constraints = json!({
        "time_window": { "from": arguments.given("from"), "to": arguments.given("to") },
        "person_id": arguments.given("person_id"),
    });
    if let Some(limit) = arguments.optional_count("limit")? {
        constraints["limit"] = limit.into();
    }
    asker.ask(shared, asker.request("LEDGER_SEARCH", arguments.text("query")?, &constraints)).await
}

async fn get(shared: &Arc<Shared>, asker: &Asker, arguments: &Arguments<'_>) -> Result<Value, ApiError> {
    let ids = arguments.optional_texts("ids")?;
    let ids = ids.ok_or_else(|| Fault::new(Code::ToolRequestInvalid, "ids", "is missing"))?;
    let mut constraints = json!({});
    if let Some(limit) = arguments.optional_count("limit")? {
        constraints["limit"] = limit.into();
    }
    asker.ask(shared, asker.request("LEDGER_GET", &ids.join(" "), &constraints)).await
}

async fn capsule(shared: &Arc<Shared>, asker: &Asker, arguments: &Arguments<'_>) -> Result<Value, ApiError> {
    let constraints = json!({ "person_id": arguments.text("person_id")? });
    asker.ask(shared, asker.request("CAPSULE_GET", "", &constraints)).await
}

async fn scene(shared: &Arc<Shared>, asker: &Asker) -> Result<Value, ApiError> {
    asker.ask(shared, asker.request("SCENE_PACK_BUILD", "", &json!({}))).await
}

async fn read(shared: &Arc<Shared>, asker: Asker, arguments: &Arguments<'_>) -> Result<Value, ApiError> {
    admit(shared, asker.token)?;
    let cursor = arguments.optional_text("cursor")?.map(str::to_owned);
    let limit = arguments.optional_count("limit")?.unwrap_or(projection::PAGE_ENTRIES_MAX);
    if limit == 0 {
        return Err(Fault::new(Code::BadLimit, "limit", "must be at least 1").into());
    }
    let work = move || {
        let page = asker.room.study(|world| {
            projection::read(&world.view(asker.who.viewer()), UNNAMED_REQUEST, cursor.as_deref(), limit)
        });
        page.map(|page| page.value).map_err(|fault| at(fault, "cursor").into())
    };
    shared.blocking(work).await
}

fn admit(shared: &Shared, token: Option<TokenId>) -> Result<(), Fault> {
    token.map_or(Ok(()), |token| shared.tool_rate.admit(token))
}

async fn write(shared: &Arc<Shared>, caller: &Caller, arguments: &Arguments<'_>) -> Result<Value, ApiError> {
    let person = caller.person().ok_or_else(|| ApiError::internal("the owner has no tool that writes"))?;
    let Principal::Person { id, .. } = &person.who else {
        return Err(ApiError::internal("a person's token without a person"));
    };
    admit(shared, Some(person.token))?;
    let request = match arguments.optional_text("request_id")? {
        Some(given) => given.to_owned(),
        None => format!("mcp-{:032x}", person.room.ids().draw()),
    };
    let (envelope, bundle) = (envelope(&request), bundle(&request, id, arguments)?);
    let answer = person.room.beat(&person.who, envelope, bundle, None).await?;
    let body: Value = serde_json::from_slice(&answer.body).map_err(ApiError::internal)?;
    if answer.rejected {
        return Err(rejected(&body));
    }
    Ok(json!({
        "request_id": request,
        "bundle": body.get("bundle"),
        "cursor_after": body.pointer("/projection/stream/cursor_after"),
        "replayed": answer.replayed,
    }))
}

/// Nothing in it speaks as the operator.
fn envelope(request: &str) -> Value {
    json!({
        "request_id": request,
        "invoker": { "invoker_id": INVOKER, "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": "GEORGE", "input_text": "" },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

fn bundle(request: &str, person: &Name, arguments: &Arguments<'_>) -> Result<Value, Fault> {
    let visibility = match arguments.optional_texts("visible_to")? {
        None => json!({ "scope": "PUBLIC" }),
        Some(readers) => json!({ "scope": "PRIVATE", "visible_to": readers }),
    };
    Ok(json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": { "engine": "mcp", "actor": person.as_str() },
        "entries": [{
            "request_id": request,
            "author": { "author_id": person.as_str(), "author_class": "PERSON" },
            "visibility": visibility,
            "channel": "PEOPLE",
            "text": arguments.text("text")?,
        }],
        "wrote": true,
    }))
}

/// A rejection in the words of an error: its reason is the code and the path.
fn rejected(body: &Value) -> ApiError {
    let reason = body.pointer("/bundle/rejection/reason").and_then(Value::as_str).unwrap_or_default();
    let (word, path) = reason.split_once(": ").unwrap_or((reason, ""));
    let code = Code::ALL.iter().find(|code| code.word() == word).copied().unwrap_or(Code::Shape);
    let error =
        ApiError::new(ErrorCode::Unprocessable, format!("the entry was refused: {reason}")).word(code);
    error.with("path", path)
}
