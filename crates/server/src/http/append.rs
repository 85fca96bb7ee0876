//! Appending one turn, given as typed JSON or as bytes in base64.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use turnkeep_store::projection::MissingFields;
use turnkeep_store::{AppendPart, Command, NewBlob, NewTurn, projection};
use turnkeep_types::{ContextId, TypeRef};
use turnkeep_wire::{ErrorCode, json};

use super::contexts::respond_replayed;
use super::extract::{At, Query, Raw, parse_json, permit_for_values};
use super::query::NoQuery;
use crate::convert;
use crate::error::ApiError;
use crate::guarded_store::{AppendedOne, WriteTarget};
use crate::shared::Shared;

/// How many bytes of memory each byte of a large body takes besides its parsed values: the text of
/// its strings, and the payload as it is made, compressed and kept.
const PAYLOAD_PER_BYTE: usize = 3;

/// Standard base64, with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Appends a turn.
#[utoipa::path(post, path = "/v1/contexts/{context_id}/turns", tag = "turns", params(("context_id" = json::Id, Path)),
    request_body = json::AppendTurnBody,
    responses((status = 201, description = "Durable, now or by the first request with this key", body = json::AppendedTurn,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn append(
    State(shared): State<Arc<Shared>>,
    At(context): At<ContextId>,
    Query(NoQuery): Query<NoQuery>,
    Raw(body): Raw,
) -> Result<Response, ApiError> {
    append_turn(shared, context, body).await
}

/// Appends a turn; an alias of `POST /v1/contexts/{context_id}/turns`.
#[utoipa::path(post, path = "/v1/contexts/{context_id}/append", tag = "turns", params(("context_id" = json::Id, Path)),
    request_body = json::AppendTurnBody,
    responses((status = 201, description = "Durable, now or by the first request with this key", body = json::AppendedTurn,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn append_alias(
    State(shared): State<Arc<Shared>>,
    At(context): At<ContextId>,
    Query(NoQuery): Query<NoQuery>,
    Raw(body): Raw,
) -> Result<Response, ApiError> {
    append_turn(shared, context, body).await
}

async fn append_turn(
    shared: Arc<Shared>,
    context: ContextId,
    body: Bytes,
) -> Result<Response, ApiError> {
    // The check comes before the body is parsed, so a refused request costs nothing more.
    let grant = shared.store.grant_write(WriteTarget::Context(context))?;
    let command = prepare_command(&shared, context, body).await?;
    let AppendedOne { turn, replayed } = shared.store.append_one(grant, command).await?;
    let ack = json::AppendedTurn {
        context_id: turn.context.into(),
        turn_id: turn.turn.into(),
        parent_turn_id: turn.parent.into(),
        depth: turn.depth,
        content_hash_b3: json::Hash(turn.hash),
        created_at: json::Time(turn.created_at),
    };
    Ok(respond_replayed(StatusCode::CREATED, replayed, ack))
}

/// Makes the command. A large body is parsed and compressed on a worker thread, under a permit.
async fn prepare_command(
    shared: &Arc<Shared>,
    context: ContextId,
    body: Bytes,
) -> Result<Command, ApiError> {
    let payload_bytes = body.len() * PAYLOAD_PER_BYTE;
    let permit = permit_for_values(&shared.memory, &body, payload_bytes).await?;
    let Some(permit) = permit else {
        return build_command(shared, context, &body);
    };
    let maker = Arc::clone(shared);
    let build = move || permit.during_command(|| build_command(&maker, context, &body));
    shared.work_on_large(build).await
}

fn build_command(shared: &Shared, context: ContextId, body: &[u8]) -> Result<Command, ApiError> {
    let request: json::AppendTurnBody = parse_json(body, &shared.policy.limits)?;
    let policy = &shared.policy;
    let version = request.type_version.unwrap_or_default();
    let declared = convert::declared_type(policy, &request.type_id, version)?;
    let payload = make_payload(shared, &declared, &request)?;
    let turn = NewTurn {
        declared,
        encoding: projection::ENCODING_MSGPACK,
        payload: NewBlob::from_raw(payload.into(), policy.limits.blob_bytes_max)?,
        fs_root: request.fs_root_hash.map(|hash| hash.0),
    };
    let part = AppendPart {
        context,
        parent: request.parent_turn_id.and_then(json::Id::turn),
        expected_head: request.expected_head_turn_id.map(json::Id::turn),
        turns: vec![turn],
    };
    let key = convert::key(policy, request.idempotency_key.unwrap_or_default().into())?;
    Ok(convert::append_part(policy, part, key))
}

fn make_payload(
    shared: &Shared,
    declared: &TypeRef,
    request: &json::AppendTurnBody,
) -> Result<Vec<u8>, ApiError> {
    match (&request.data, &request.payload_b64) {
        (Some(_), None) if request.type_version.is_none() => {
            let message = "data needs type_id and type_version";
            Err(ApiError::new(ErrorCode::MissingTypeHint, message))
        }
        (Some(data), None) => {
            let missing = if request.allow_missing {
                MissingFields::Allow
            } else {
                MissingFields::Refuse
            };
            Ok(projection::encode(
                &shared.store.registry(),
                declared,
                data,
                missing,
            )?)
        }
        (None, Some(text)) => BASE64
            .decode(text)
            .map_err(|error| ApiError::bad_request(format!("payload_b64 is not base64: {error}"))),
        _ => Err(ApiError::bad_request(
            "exactly one of data and payload_b64 is needed",
        )),
    }
}
