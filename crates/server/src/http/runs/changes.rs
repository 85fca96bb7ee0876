//! Apply, revert and keep: what a person does with the changes of a run.

use axum::Json;
use turnkeep_runtime::ids::AgentTurnId;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::parts::{RequestJson, RunAndId, RunAt};
use crate::error::ApiError;
use crate::runs::changes;

/// Brings the work of all worktrees into the run's directory: all of it, or nothing.
#[utoipa::path(post, path = "/api/runs/{run_id}/apply", tag = "changes", params(("run_id" = String, Path)),
    responses((status = 200, description = "The files that changed", body = wire::AppliedChanges)))]
pub(crate) async fn apply(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<Json<wire::AppliedChanges>, ApiError> {
    Ok(Json(changes::apply(&handle, request.key()).await?))
}

/// Acts on the files of a turn: `revert` restores what they were before it, `keep` accepts files that
/// the node was not allowed to write.
#[utoipa::path(post, path = "/api/runs/{run_id}/turns/{id}/{action}", tag = "changes",
    params(("run_id" = String, Path), ("id" = String, Path), ("action" = String, Path, description = "revert or keep")),
    request_body = wire::TurnFiles,
    responses((status = 200, description = "The files", body = wire::TurnFilesAnswer)))]
pub(crate) async fn act_on_turn(
    Query(NoQuery): Query<NoQuery>,
    at: RunAndId,
    request: RequestJson,
) -> Result<Json<wire::TurnFilesAnswer>, ApiError> {
    let turn: AgentTurnId = at.parse("turn")?;
    let body: wire::TurnFiles = request.read()?;
    let (handle, key) = (&at.handle, request.key());
    let answer = match at.action.as_deref() {
        Some("revert") => changes::revert(handle, key, turn, body.paths).await?,
        Some("keep") => changes::keep(handle, key, turn, body.paths).await?,
        _ => return Err(ApiError::not_found("a turn can be reverted or kept")),
    };
    Ok(Json(answer))
}
