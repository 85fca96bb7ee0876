//! Nodes: creates, changes and deletes them, talks to them, and acts on their programs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use turnkeep_runtime::Run;
use turnkeep_runtime::decide::{self, NodeRequest, Surroundings};
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_runtime::request::MadeId;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::parts::{RequestJson, RunAndId, RunAt};
use crate::error::ApiError;
use crate::runs::json;
use crate::runs::world_link::{NodeOrigin, choose_person};
use crate::runs::{Decided, RunError, RunHandle};
use crate::shared::Shared;

/// Adds a node.
#[utoipa::path(post, path = "/api/runs/{run_id}/nodes", tag = "nodes", params(("run_id" = String, Path)),
    request_body = wire::CreateNode,
    responses((status = 201, description = "The node", body = wire::NodeAnswer)))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<(StatusCode, Json<wire::NodeAnswer>), ApiError> {
    let body: wire::CreateNode = request.read()?;
    let defaults = shared.runs.node_defaults(&handle, &body).await?;
    let mut settings = json::node_settings(body, defaults)?;
    shared.runs.check_node(&settings)?;
    let person = choose_person(&handle, &settings, NodeOrigin::Owner);
    settings.person = person.map_err(RunError::from)?;
    let new = NodeRequest {
        settings,
        parent: None,
    };
    let add = move |run: &Run, around: Surroundings<'_>| decide::add_node(run, around, new.clone());
    let id = match handle.decide_once(request.key(), add).await? {
        Decided::Now(id)
        | Decided::Before {
            made: Some(MadeId::Node(id)),
            ..
        } => id,
        Decided::Before { .. } => return Err(key_reused()),
    };
    Ok((StatusCode::CREATED, answer(&handle, id)?))
}

/// The key belongs to a request of another kind.
pub(super) fn key_reused() -> ApiError {
    let message = "this idempotency key was used before for a different request";
    ApiError::new(ErrorCode::Conflict, message)
}

fn answer(handle: &RunHandle, id: NodeId) -> Result<Json<wire::NodeAnswer>, ApiError> {
    let node = handle.read_live(|run| {
        let node = run.node(id)?;
        Some(json::node_view(run.id, node, handle.connection_view(id)))
    });
    let node = node.ok_or_else(|| ApiError::not_found(format!("the node {id} is gone")))?;
    Ok(Json(wire::NodeAnswer { node }))
}

/// Changes the settings of a node.
#[utoipa::path(patch, path = "/api/runs/{run_id}/nodes/{id}", tag = "nodes",
    params(("run_id" = String, Path), ("id" = String, Path, description = "An id or alias")),
    request_body = wire::ChangeNode,
    responses((status = 200, description = "The node as it is now", body = wire::NodeAnswer)))]
pub(crate) async fn change(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    at: RunAndId,
    request: RequestJson,
) -> Result<Json<wire::NodeAnswer>, ApiError> {
    let id = at.node()?;
    let body: wire::ChangeNode = request.read()?;
    if let Some(role) = &body.role_template {
        // Every full prompt reads it, so the next turn would fail without it.
        shared.runs.read_role(&at.handle, role).await?;
    }
    let runs = Arc::clone(&shared.runs);
    // Read inside the decision: two changes at once must not undo each other.
    let change = move |run: &Run, around: Surroundings<'_>| {
        let node = run.live.node(id).ok_or(Rejection::NodeGone(id))?;
        let settings = json::change_node_settings(body.clone(), &node.settings)?;
        runs.check_change(&node.settings, &settings)?;
        Ok(decide::change_node(run, around, id, settings)?)
    };
    at.handle.decide_request(request.key(), change).await?;
    answer(&at.handle, id)
}

/// Deletes a node. Its artifacts and its transcript stay.
#[utoipa::path(delete, path = "/api/runs/{run_id}/nodes/{id}", tag = "nodes",
    params(("run_id" = String, Path), ("id" = String, Path, description = "An id or alias")),
    responses((status = 200, description = "The node is gone", body = wire::NodeGone)))]
pub(crate) async fn delete(
    Query(NoQuery): Query<NoQuery>,
    at: RunAndId,
) -> Result<Json<wire::NodeGone>, ApiError> {
    let id = at.node()?;
    at.handle
        .decide(move |run, around| decide::delete_node(run, around, id))
        .await?;
    let node_id = wire::UuidText::of(id);
    Ok(Json(wire::NodeGone { node_id }))
}

/// Acts on a node: `interrupt` stops its turn, `reset` begins a new session, `retry` puts the inputs of
/// a failed turn back. `start` and `stop` act on its program only, and are harmless when it runs or does
/// not: a prompt starts a program that was stopped.
#[utoipa::path(post, path = "/api/runs/{run_id}/nodes/{id}/{action}", tag = "nodes",
    params(("run_id" = String, Path), ("id" = String, Path, description = "An id or alias"),
        ("action" = String, Path, description = "start, stop, interrupt, reset or retry")),
    request_body = wire::ResetNode,
    responses((status = 200, description = "The node as it is now", body = wire::NodeAnswer)))]
pub(crate) async fn act(
    Query(NoQuery): Query<NoQuery>,
    at: RunAndId,
    request: RequestJson,
) -> Result<Json<wire::NodeAnswer>, ApiError> {
    let id = at.node()?;
    let (handle, key) = (&at.handle, request.key());
    let interrupt =
        move |run: &Run, around: Surroundings<'_>| decide::interrupt_node(run, around, id);
    let start = move |run: &Run, around: Surroundings<'_>| decide::start_program(run, around, id);
    let stop = move |run: &Run, around: Surroundings<'_>| decide::stop_program(run, around, id);
    let retry = move |run: &Run, around: Surroundings<'_>| decide::retry_node(run, around, id);
    match at.action.as_deref() {
        Some("interrupt") => {
            handle.decide_once(key, interrupt).await?;
        }
        Some("start") => {
            handle.decide_once(key, start).await?;
        }
        Some("stop") => {
            handle.decide_once(key, stop).await?;
        }
        Some("retry") => {
            handle.decide_once(key, retry).await?;
        }
        Some("reset") => {
            let inbox = json::reset_inbox(&request.read()?);
            let reset = move |run: &Run, around: Surroundings<'_>| {
                decide::reset_node(run, around, id, inbox)
            };
            handle.decide_once(key, reset).await?;
        }
        _ => {
            let message = "a node can be started, stopped, interrupted, reset or retried";
            return Err(ApiError::not_found(message));
        }
    }
    answer(&at.handle, id)
}

/// Sends a message to a node.
#[utoipa::path(post, path = "/api/runs/{run_id}/chat", tag = "nodes", params(("run_id" = String, Path)),
    request_body = wire::SendChat,
    responses((status = 201, description = "The message waits in the inbox", body = wire::ChatAccepted)))]
pub(crate) async fn chat(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<(StatusCode, Json<wire::ChatAccepted>), ApiError> {
    let body: wire::SendChat = request.read()?;
    let send =
        move |run: &Run, around: Surroundings<'_>| decide::chat(run, around, json::chat_of(&body));
    let id = match handle.decide_once(request.key(), send).await? {
        Decided::Now(id)
        | Decided::Before {
            made: Some(MadeId::Message(id)),
            ..
        } => id,
        Decided::Before { .. } => return Err(key_reused()),
    };
    let message_id = wire::UuidText::of(id);
    Ok((StatusCode::CREATED, Json(wire::ChatAccepted { message_id })))
}

/// Sends an envelope from one node to another.
#[utoipa::path(post, path = "/api/runs/{run_id}/handoffs", tag = "nodes", params(("run_id" = String, Path)),
    request_body = wire::SendHandoff,
    responses((status = 201, description = "The envelope waits in the inbox", body = wire::HandoffAccepted)))]
pub(crate) async fn hand_off(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<(StatusCode, Json<wire::HandoffAccepted>), ApiError> {
    let body: wire::SendHandoff = request.read()?;
    let send = move |run: &Run, around: Surroundings<'_>| {
        let handoff = json::handoff_of(&body, &run.live)?;
        Ok(decide::send_handoff(run, around, handoff)?)
    };
    let id = match handle.decide_request(request.key(), send).await? {
        Decided::Now(id)
        | Decided::Before {
            made: Some(MadeId::Envelope(id)),
            ..
        } => id,
        Decided::Before { .. } => return Err(key_reused()),
    };
    let payload_id = wire::UuidText::of(id);
    Ok((
        StatusCode::CREATED,
        Json(wire::HandoffAccepted { payload_id }),
    ))
}
