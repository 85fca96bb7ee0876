//! The Model Context Protocol at `/mcp`: one endpoint whose tools depend on the token.
//!
//! A person reads and, with a write grant, writes under its own name in its own world. The owner
//! reads as the operator in any world, and reads the store. No caller can speak as the operator
//! here: no tool has an argument for it.
//!
//! The transport is streamable HTTP without sessions. Each message is one POST. Its answer is one
//! JSON document, or a stream of events for a subscription. The server keeps nothing between two
//! messages, so a revoked token fails at the next one. `turnkeep mcp` carries the same messages
//! over standard input and output.

mod arguments;
mod budget;
mod call;
mod catalogue;
mod introduction;
mod listen;
mod packs;
mod reading;
mod revision;
mod rpc;
mod shown;
mod store_verbs;
mod writing;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::extract::{body_within, permit_for_values};
use crate::memory::LARGE_FROM_BYTES;
use crate::principal::Caller;
use crate::shared::Shared;
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
    // Held until the answer is made: the values live as long as the call, which may wait for news.
    let _permit = permit_for_values(&shared, &bytes, 0).await?;
    let request = match rpc::parse_message(&bytes) {
        Ok(Incoming::Request(request)) => request,
        Ok(Incoming::Notification) => {
            let checked = revision::check_notification(&headers);
            return Ok(checked.map_or_else(
                |failure| respond(&Value::Null, Err(failure)),
                |()| StatusCode::ACCEPTED.into_response(),
            ));
        }
        Err(failure) => return Ok(respond(&Value::Null, Err(failure))),
    };
    let era = match revision::find_era(&headers, &request) {
        Ok(era) => era,
        Err(failure) => return Ok(respond(&request.id, Err(failure))),
    };
    if era == Era::PerRequest && request.method == "subscriptions/listen" {
        let opened = listen::listen(&shared, &caller, &request);
        return Ok(opened.unwrap_or_else(|failure| respond(&request.id, Err(failure))));
    }
    let answered = answer(&shared, &caller, era, &request).await;
    respond_counted(&shared, &request.id, answered).await
}

/// Sends an answer. A large one counts in the memory budget until it has been sent.
async fn respond_counted(
    shared: &Shared,
    id: &Value,
    answer: Result<Value, Failure>,
) -> Result<Response, ApiError> {
    let status = answer
        .as_ref()
        .map_or_else(|failure| failure.status, |_| StatusCode::OK);
    let text = rpc::encode_answer(id, answer).to_string();
    let body = if text.len() < LARGE_FROM_BYTES {
        Body::from(text)
    } else {
        let permit = shared.memory.acquire(text.len()).await?;
        Body::from(permit.hold_copy(text)?)
    };
    Ok((status, [(CONTENT_TYPE, "application/json")], body).into_response())
}

fn respond(id: &Value, answer: Result<Value, Failure>) -> Response {
    let status = answer
        .as_ref()
        .map_or_else(|failure| failure.status, |_| StatusCode::OK);
    (status, axum::Json(rpc::encode_answer(id, answer))).into_response()
}

async fn answer(
    shared: &Arc<Shared>,
    caller: &Caller,
    era: Era,
    request: &Request,
) -> Result<Value, Failure> {
    let Request { method, params, .. } = request;
    match (era, method.as_str()) {
        (Era::Handshake, "initialize") => initialize(shared, caller, params).await,
        (Era::Handshake, "ping") => Ok(json!({})),
        (Era::PerRequest, "server/discover") => {
            Ok(era.result(discover(shared, caller).await?, Some(FOR_A_MINUTE)))
        }
        (_, "tools/list") => Ok(era.result(
            json!({ "tools": catalogue::list_tools(caller) }),
            Some(FOR_AN_HOUR),
        )),
        (_, "tools/call") => Ok(era.result(call::run_call(shared, caller, params).await?, None)),
        (Era::PerRequest, "resources/list") => {
            Ok(era.result(listen::list_resources(shared, caller), Some(FOR_A_MINUTE)))
        }
        (Era::PerRequest, "resources/templates/list") => {
            Ok(era.result(json!({ "resourceTemplates": [] }), Some(FOR_AN_HOUR)))
        }
        (Era::PerRequest, "resources/read") => Ok(era.result(
            listen::read_resource(shared, caller, params).await?,
            Some(NOT_AT_ALL),
        )),
        _ => Err(era.no_such_method(method)),
    }
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
