//! Edges: creates and deletes them.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use turnkeep_runtime::decide::{self, Decision, Surroundings};
use turnkeep_runtime::ids::EdgeId;
use turnkeep_runtime::request::MadeId;
use turnkeep_runtime::{Fact, Run};
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::nodes::key_reused;
use super::parts::{RequestJson, RunAndId, RunAt};
use crate::error::ApiError;
use crate::runs::json;
use crate::runs::{Decided, RunHandle};

/// Connects two nodes. The same edge again is the one that exists, with the label, the direction and the
/// gate that the request names.
#[utoipa::path(post, path = "/api/runs/{run_id}/edges", tag = "edges", params(("run_id" = String, Path)),
    request_body = wire::CreateEdge,
    responses((status = 201, description = "The edge", body = wire::EdgeAnswer),
        (status = 200, description = "The edge existed", body = wire::EdgeAnswer)))]
pub(crate) async fn create(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<(StatusCode, Json<wire::EdgeAnswer>), ApiError> {
    let body: wire::CreateEdge = request.read()?;
    let connect = move |run: &Run, around: Surroundings<'_>| {
        let decided = decide::connect(run, around, json::edge_request(&body))?;
        let is_new = decided.events.iter().any(|event| is_creation(&event.fact));
        Ok(Decision {
            answer: Connected {
                id: decided.answer,
                is_new,
            },
            events: decided.events,
            blobs: decided.blobs,
            effects: decided.effects,
        })
    };
    let connected = match handle.decide_once(request.key(), connect).await? {
        Decided::Now(connected) => connected,
        Decided::Before {
            seq,
            made: Some(MadeId::Edge(id)),
        } => Connected {
            id,
            // The status of the first answer, not that of the state now, in which the edge exists.
            is_new: was_created(&handle, seq).await?,
        },
        Decided::Before { .. } => return Err(key_reused()),
    };
    let status = if connected.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, answer(&handle, connected.id)?))
}

/// What became of a request to connect two nodes.
struct Connected {
    id: EdgeId,
    is_new: bool,
}

fn is_creation(fact: &Fact) -> bool {
    matches!(fact, Fact::EdgeCreated(_))
}

/// Whether the request that begins with this event created its edge, or found it.
async fn was_created(handle: &Arc<RunHandle>, seq: u64) -> Result<bool, ApiError> {
    let events = handle.read_events(seq, 1).await?;
    Ok(events.first().is_some_and(|event| is_creation(&event.fact)))
}

fn answer(handle: &RunHandle, id: EdgeId) -> Result<Json<wire::EdgeAnswer>, ApiError> {
    let edge = handle.read_live(|run| run.edges.get(&id).map(json::edge_view));
    let edge = edge.ok_or_else(|| ApiError::not_found(format!("the edge {id} is gone")))?;
    Ok(Json(wire::EdgeAnswer { edge }))
}

/// Deletes an edge. Envelopes that wait already are not recalled.
#[utoipa::path(delete, path = "/api/runs/{run_id}/edges/{id}", tag = "edges",
    params(("run_id" = String, Path), ("id" = String, Path)),
    responses((status = 200, description = "The edge is gone", body = wire::EdgeGone)))]
pub(crate) async fn delete(
    Query(NoQuery): Query<NoQuery>,
    at: RunAndId,
) -> Result<Json<wire::EdgeGone>, ApiError> {
    let id: EdgeId = at.parse("edge")?;
    at.handle
        .decide(move |run, around| decide::disconnect(run, around, id))
        .await?;
    let edge_id = wire::UuidText::of(id);
    Ok(Json(wire::EdgeGone { edge_id }))
}
