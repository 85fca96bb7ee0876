//! Requests that write to a world: envelopes, and envelopes with a bundle of their own.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use turnkeep_ledger::{Code, Fault, proposal};
use turnkeep_wire::json as wire;

use super::super::contexts::REPLAYED;
use super::super::extract::Query;
use super::super::query::ActingQuery;
use super::acting_caller::ActingCaller;
use super::body::Json;
use crate::error::ApiError;
use crate::ledger::{BundleCheck, LedgerAnswer};
use crate::mcp::check_not_of_another_agent;
use crate::shared::Shared;

/// Set if a request that only reads has words or a time of the operator, which have no effect.
const INPUT_IGNORED: HeaderName = HeaderName::from_static("input-ignored");

/// The reason why the world's attached writer failed. The operator's words are committed anyway.
const WRITER_FAILED: HeaderName = HeaderName::from_static("writer-failed");

/// Takes an envelope: the operator's words and times, and the world's attached writer is asked.
#[utoipa::path(post, path = "/v1/worlds/{world}/invocations", tag = "ledger",
    params(("world" = String, Path), ("as" = Option<String>, Query, description = "Owner: as this person")),
    request_body = wire::ledger::InvocationEnvelope,
    responses((status = 200, description = "What is visible from the cursor on", body = wire::ledger::ProjectionOutput,
        headers(
            ("Idempotency-Replayed" = String, description = "`true` when an earlier request did it"),
            ("Input-Ignored" = String, description = "`true` when a NO_OP brought words or times"),
            ("Writer-Failed" = String, description = "Why the attached writer failed, when it did"),
        ))))]
pub(crate) async fn invoke(
    Query(ActingQuery): Query<ActingQuery>,
    acting: ActingCaller,
    body: Json,
) -> Result<Response, ApiError> {
    invoke_as(&acting, body).await
}

async fn invoke_as(acting: &ActingCaller, body: Json) -> Result<Response, ApiError> {
    check_request_id(acting, &body.document, "request_id")?;
    let answer = acting.handle.invoke(&acting.who, body.document).await?;
    Ok(respond(answer))
}

/// Takes an envelope for the world `default`.
#[utoipa::path(post, path = "/invocations", tag = "ledger",
    params(("as" = Option<String>, Query, description = "Owner: as this person")),
    request_body = wire::ledger::InvocationEnvelope,
    responses((status = 200, description = "What is visible from the cursor on", body = wire::ledger::ProjectionOutput,
        headers(
            ("Idempotency-Replayed" = String, description = "`true` when an earlier request did it"),
            ("Input-Ignored" = String, description = "`true` when a NO_OP brought words or times"),
            ("Writer-Failed" = String, description = "Why the attached writer failed, when it did"),
        ))))]
pub(crate) async fn invoke_default(
    Query(ActingQuery): Query<ActingQuery>,
    acting: ActingCaller,
    body: Json,
) -> Result<Response, ApiError> {
    invoke_as(&acting, body).await
}

/// Takes an envelope with its own bundle; no writer is asked.
#[utoipa::path(post, path = "/v1/worlds/{world}/beats", tag = "ledger",
    params(("world" = String, Path), ("as" = Option<String>, Query, description = "Owner: as this person")),
    request_body = wire::ledger::Beat,
    responses(
        (status = 200, description = "Committed", body = wire::ledger::BeatAnswer,
            headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it"))),
        (status = 422, description = "The bundle was rejected; the operator's words, if any, are committed",
            body = wire::ledger::BeatAnswer),
    ))]
pub(crate) async fn beat(
    State(shared): State<Arc<Shared>>,
    Query(ActingQuery): Query<ActingQuery>,
    acting: ActingCaller,
    mut body: Json,
) -> Result<Response, ApiError> {
    let BeatBody {
        envelope,
        bundle,
        expected_cursor,
    } = take_beat_body(&mut body, &acting)?;
    let allowance = acting.token.map(|token| shared.write_allowance(token));
    let beat = acting
        .handle
        .beat(&acting.who, envelope, bundle, expected_cursor, allowance);
    Ok(respond(beat.await?))
}

/// Says what would become of a bundle; nothing happens.
#[utoipa::path(post, path = "/v1/worlds/{world}/proposals/check", tag = "ledger",
    params(("world" = String, Path), ("as" = Option<String>, Query, description = "Owner: as this person")),
    request_body = wire::ledger::Beat,
    responses(
        (status = 200, description = "It would be committed", body = wire::ledger::CheckAnswer),
        (status = 422, description = "It would be rejected", body = wire::ledger::CheckAnswer),
    ))]
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    Query(ActingQuery): Query<ActingQuery>,
    acting: ActingCaller,
    mut body: Json,
) -> Result<Response, ApiError> {
    let BeatBody {
        envelope,
        bundle,
        expected_cursor,
    } = take_beat_body(&mut body, &acting)?;
    let allowance = acting.token.map(|token| shared.write_allowance(token));
    let check = acting
        .handle
        .check_beat(&acting.who, envelope, bundle, expected_cursor, allowance);
    let check = check.await?;
    // The answer repeats the bundle, which may be large.
    shared.blocking(move || Ok(respond_to_check(check))).await
}

/// Rejects the id of an agent's request, unless the agent writes for the caller.
fn check_request_id(acting: &ActingCaller, envelope: &Value, path: &str) -> Result<(), Fault> {
    let id = envelope.get("request_id").and_then(Value::as_str);
    id.map_or(Ok(()), |id| {
        check_not_of_another_agent(&acting.who, id, path)
    })
}

/// The bundle as it would be answered, without ids.
fn respond_to_check(check: BundleCheck) -> Response {
    let mut form = check.bundle;
    let status = if let Some(reason) = check.rejection {
        form = proposal::rejected_form(&form, &reason);
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        form["rejection"] = json!({ "rejected": false, "reason": null });
        StatusCode::OK
    };
    (status, axum::Json(json!({ "bundle": form }))).into_response()
}

/// The parts of a beat's body.
struct BeatBody {
    envelope: Value,
    bundle: Value,
    expected_cursor: Option<String>,
}

/// Takes the parts out of a body. The body must live on: it holds the memory permit for them.
fn take_beat_body(body: &mut Json, acting: &ActingCaller) -> Result<BeatBody, Fault> {
    let root = body.root(Code::EnvelopeInvalid);
    root.reject_unknown_fields(&["envelope", "bundle", "expected_cursor"])?;
    root.field("envelope")?;
    root.field("bundle")?.fields()?;
    let expected_cursor = root.optional_text("expected_cursor")?.map(str::to_owned);
    let envelope = body.take("envelope");
    check_request_id(acting, &envelope, "envelope.request_id")?;
    Ok(BeatBody {
        envelope,
        bundle: body.take("bundle"),
        expected_cursor,
    })
}

fn respond(answer: LedgerAnswer) -> Response {
    let status = if answer.rejected {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, said) in [
        (REPLAYED, answer.replayed),
        (INPUT_IGNORED, answer.input_ignored),
    ] {
        if said {
            headers.insert(name, HeaderValue::from_static("true"));
        }
    }
    // A reason that cannot be a header is left out. The beat was committed all the same.
    let why = answer.writer_failed.map(HeaderValue::try_from);
    if let Some(Ok(why)) = why {
        headers.insert(WRITER_FAILED, why);
    }
    response
}
