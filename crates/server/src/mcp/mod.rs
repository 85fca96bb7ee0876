//! The Model Context Protocol at `/mcp`: one endpoint whose tools depend on the token.
//!
//! A person reads and, with a write grant, writes under its own name in its own world. The owner
//! reads as the operator in any world, and reads the store. A node of a run works with the other
//! nodes of its run, and reads and writes as its person if the run has a world. No caller can speak
//! as the operator here: no tool has an argument for it.
//!
//! The transport is streamable HTTP without sessions. Each message is one POST. Its answer is one
//! JSON document, or a stream of events for a subscription. The server keeps nothing between two
//! messages, so a revoked token fails at the next one. `turnkeep mcp` carries the same messages
//! over standard input and output.

mod arguments;
mod budget;
mod call;
mod catalogue;
mod held_value;
mod introduction;
mod listen;
mod node_tools;
mod packs;
mod reading;
mod revision;
mod rpc;
mod shown;
mod store_verbs;
mod writing;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::content::respond_with_json_text;
use crate::http::extract::{body_within, permit_for_values};
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};
use crate::principal::Caller;
use crate::shared::Shared;
use held_value::HeldValue;
use revision::{Era, Freshness};
use rpc::{Failure, Incoming, Request};
pub(crate) use writing::check_not_of_another_agent;

/// The largest message: the text of an entry with every character escaped.
const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Persons and worlds change often; tools only change with the server.
const FOR_A_MINUTE: Freshness = Freshness { ttl_ms: 60_000 };
const FOR_AN_HOUR: Freshness = Freshness { ttl_ms: 3_600_000 };
const NOT_AT_ALL: Freshness = Freshness { ttl_ms: 0 };

/// Takes one message of the Model Context Protocol.
#[utoipa::path(post, path = "/mcp", tag = "mcp", request_body = Object,
    responses(
        (status = 200, description = "The answer to a request, as JSON-RPC; to `subscriptions/listen`, a stream of messages", body = Object),
        (status = 202, description = "A notification was taken"),
        (status = 400, description = "No message, an unknown revision, or headers that contradict the body; as JSON-RPC", body = Object),
        (status = 404, description = "From revision 2026-07-28 on: there is no such method; as JSON-RPC", body = Object),
    ))]
pub(crate) async fn message(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    request: axum::extract::Request,
) -> Result<Response, ApiError> {
    let bytes = body_within(request, &shared, MESSAGE_BYTES_MAX).await?;
    // The values copy the text of their strings, which may be as long as the message.
    let permit = permit_for_values(&shared.memory, &bytes, bytes.len()).await?;
    let incoming = rpc::parse_message(&bytes);
    // From here on the values are all that is left of the message, and one permit covers them.
    drop(bytes);
    match incoming {
        Ok(Incoming::Request(request)) => match revision::find_era(&headers, &request) {
            Ok(era) => answer_request(&shared, &caller, era, request, permit).await,
            Err(failure) => Ok(respond_with_failure(&request.id, failure)),
        },
        Ok(Incoming::Notification) => Ok(answer_notification(&headers)),
        Err(failure) => Ok(respond_with_failure(&Value::Null, failure)),
    }
}

/// Accepts a notification. It has no id, so a failure names no request.
fn answer_notification(headers: &HeaderMap) -> Response {
    match revision::check_notification(headers) {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(failure) => respond_with_failure(&Value::Null, failure),
    }
}

async fn answer_request(
    shared: &Arc<Shared>,
    caller: &Caller,
    era: Era,
    request: Request,
    permit: Option<MemoryPermit>,
) -> Result<Response, ApiError> {
    // A subscription is answered with an open stream. All other methods return one document.
    if era == Era::PerRequest && request.method == "subscriptions/listen" {
        let opened = listen::listen(shared, caller, &request);
        return Ok(opened.unwrap_or_else(|failure| respond_with_failure(&request.id, failure)));
    }
    let Request { id, method, params } = request;
    let params = HeldValue::new(params, permit);
    match run_method(shared, caller, era, &id, &method, params).await {
        Ok(result) => respond_with_result(shared, &id, result).await,
        Err(failure) => Ok(respond_with_failure(&id, failure)),
    }
}

/// Sends a result. A large one counts in the memory budget until it has been sent.
async fn respond_with_result(
    shared: &Shared,
    id: &Value,
    result: HeldValue,
) -> Result<Response, ApiError> {
    let text = result.write(|value| rpc::encode_answer(id, Ok(value)).to_string());
    if text.len() < LARGE_FROM_BYTES {
        return Ok(respond_with_json_text(text));
    }
    // Without a permit, the caller has to try again. Only reads come here: the answer of a write is
    // always smaller, whatever its entries are, so a committed write is never refused.
    let permit = shared.memory.acquire(text.len()).await?;
    Ok(respond_with_json_text(permit.hold_copy(text)?))
}

fn respond_with_failure(id: &Value, failure: Failure) -> Response {
    let status = failure.status;
    (status, axum::Json(rpc::encode_answer(id, Err(failure)))).into_response()
}

/// Runs a method. Consumes the parameters, so that a call can free them before it waits.
async fn run_method(
    shared: &Arc<Shared>,
    caller: &Caller,
    era: Era,
    id: &Value,
    method: &str,
    params: HeldValue,
) -> Result<HeldValue, Failure> {
    let (result, freshness) = match (era, method) {
        (_, "tools/call") => {
            // A result may hold a memory permit, and clients never cache it.
            let result = call::run_call(shared, caller, id, params).await?;
            return Ok(result.map(|value| era.complete_result(value, None)));
        }
        (Era::Handshake, "initialize") => (
            initialize(shared, caller, params.value()).await?,
            NOT_AT_ALL,
        ),
        (Era::Handshake, "ping") => (json!({}), NOT_AT_ALL),
        (Era::PerRequest, "server/discover") => (discover(shared, caller).await?, FOR_A_MINUTE),
        (_, "tools/list") => (catalogue::list_tools(caller), FOR_AN_HOUR),
        (Era::PerRequest, "resources/list") => {
            (listen::list_resources(shared, caller), FOR_A_MINUTE)
        }
        (Era::PerRequest, "resources/templates/list") => {
            (json!({ "resourceTemplates": [] }), FOR_AN_HOUR)
        }
        (Era::PerRequest, "resources/read") => {
            let contents = listen::read_resource(shared, caller, params.value()).await?;
            (contents, NOT_AT_ALL)
        }
        _ => return Err(era.no_such_method(method)),
    };
    Ok(era.complete_result(result, Some(freshness)).into())
}

async fn initialize(shared: &Shared, caller: &Caller, params: &Value) -> Result<Value, Failure> {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    Ok(json!({
        "protocolVersion": revision::choose_handshake_revision(asked),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": revision::server_info(),
        "instructions": instructions(shared, caller).await?,
    }))
}

async fn discover(shared: &Shared, caller: &Caller) -> Result<Value, Failure> {
    Ok(json!({
        "supportedVersions": revision::SUPPORTED,
        "capabilities": {
            "tools": { "listChanged": false },
            "resources": { "subscribe": true, "listChanged": false },
        },
        "instructions": instructions(shared, caller).await?,
    }))
}

async fn instructions(shared: &Shared, caller: &Caller) -> Result<String, Failure> {
    introduction::instructions(shared, caller)
        .await
        .map_err(|error| {
            error.log();
            Failure::internal()
        })
}
