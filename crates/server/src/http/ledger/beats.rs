//! What moves a world: envelopes, and envelopes that bring their own bundle.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;
use turnkeep_ledger::{Code, Fault};
use turnkeep_wire::json as wire;

use super::super::contexts::REPLAYED;
use super::super::extract::Query;
use super::super::query::ActingQuery;
use super::body::Json;
use super::seat::Seat;
use crate::error::ApiError;
use crate::ledger::LedgerAnswer;
use crate::mcp::check_not_of_another_agent;
use crate::shared::Shared;

/// Says that a request that only reads brought words or a time, which had no effect.
const INPUT_IGNORED: HeaderName = HeaderName::from_static("input-ignored");

/// Says why the world's attached writer failed; the words are committed all the same.
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
    seat: Seat,
    body: Json,
) -> Result<Response, ApiError> {
    check_request_id(&seat, &body.document, "request_id")?;
    Ok(respond(seat.handle.invoke(&seat.who, body.document).await?))
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
    seat: Seat,
    body: Json,
) -> Result<Response, ApiError> {
    check_request_id(&seat, &body.document, "request_id")?;
    Ok(respond(seat.handle.invoke(&seat.who, body.document).await?))
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
    seat: Seat,
    mut body: Json,
) -> Result<Response, ApiError> {
    let Brought {
        envelope,
        bundle,
        expected_cursor,
    } = brought(&mut body)?;
    check_request_id(&seat, &envelope, "envelope.request_id")?;
    let allowance = seat.token.map(|token| shared.write_allowance(token));
    let beat = seat
        .handle
        .beat(&seat.who, envelope, bundle, expected_cursor, allowance);
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
    seat: Seat,
    mut body: Json,
) -> Result<Response, ApiError> {
    let Brought {
        envelope,
        bundle,
        expected_cursor,
    } = brought(&mut body)?;
    check_request_id(&seat, &envelope, "envelope.request_id")?;
    let allowance = seat.token.map(|token| shared.write_allowance(token));
    let checked = seat
        .handle
        .check_beat(&seat.who, envelope, bundle, expected_cursor, allowance);
    Ok(respond(checked.await?))
}

/// Rejects the id of an agent's request, unless the agent writes for the caller.
fn check_request_id(seat: &Seat, envelope: &Value, path: &str) -> Result<(), Fault> {
    let id = envelope.get("request_id").and_then(Value::as_str);
    id.map_or(Ok(()), |id| check_not_of_another_agent(&seat.who, id, path))
}

/// What a beat brings.
struct Brought {
    envelope: Value,
    bundle: Value,
    expected_cursor: Option<String>,
}

/// Takes a body apart; it keeps the room for what is taken out.
fn brought(body: &mut Json) -> Result<Brought, Fault> {
    let root = body.root(Code::EnvelopeInvalid);
    if let Some(path) = root.unknown_field(&["envelope", "bundle", "expected_cursor"])? {
        let message = "is not one of envelope, bundle, expected_cursor";
        return Err(Fault::new(Code::UnknownField, path, message));
    }
    root.field("envelope")?;
    root.field("bundle")?.fields()?;
    let expected_cursor = root
        .optional("expected_cursor")?
        .map(|node| node.text().map(str::to_owned));
    let expected_cursor = expected_cursor.transpose()?;
    Ok(Brought {
        envelope: body.take("envelope"),
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
    if let Some(why) = answer
        .writer_failed
        .and_then(|why| HeaderValue::try_from(why).ok())
    {
        headers.insert(WRITER_FAILED, why);
    }
    response
}
