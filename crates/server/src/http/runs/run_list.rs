//! Creates, lists, shows, changes and deletes runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use turnkeep_runtime::{Run, decide};
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::{NoQuery, RunListQuery};
use super::parts::{RequestJson, RunAt, Viewer};
use crate::error::ApiError;
use crate::runs::RunHandle;
use crate::runs::json;
use crate::shared::Shared;

/// Lists the runs, newest first.
#[utoipa::path(get, path = "/api/runs", tag = "runs",
    params(("summary" = Option<String>, Query, description = "`1`: without nodes, edges and artifacts")),
    responses((status = 200, description = "The runs", body = wire::RunList)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<RunListQuery>,
) -> Response {
    let handles = shared.runs.list();
    if query.summary {
        let runs = handles.iter().map(|handle| handle.read(json::run_summary));
        return Json(wire::RunSummaryList {
            runs: runs.collect(),
        })
        .into_response();
    }
    let runs = handles.iter().map(|handle| view_of(handle));
    Json(wire::RunList {
        runs: runs.collect(),
    })
    .into_response()
}

fn view_of(handle: &RunHandle) -> wire::RunView {
    let viewer = Viewer::of(handle);
    let connections = handle.connection_views();
    handle.read(|run| json::run_view(viewer.place(run), run, &connections))
}

/// Creates a run.
#[utoipa::path(post, path = "/api/runs", tag = "runs", request_body = wire::CreateRun,
    responses((status = 201, description = "The run", body = wire::RunAnswer)))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    request: RequestJson,
) -> Result<(StatusCode, Json<wire::RunAnswer>), ApiError> {
    let handle = shared.runs.create(request.read()?, request.key()).await?;
    let run = view_of(&handle);
    Ok((StatusCode::CREATED, Json(wire::RunAnswer { run })))
}

/// Shows a run.
#[utoipa::path(get, path = "/api/runs/{run_id}", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "The run", body = wire::RunAnswer)))]
pub(crate) async fn show(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
) -> Json<wire::RunAnswer> {
    let run = view_of(&handle);
    Json(wire::RunAnswer { run })
}

/// Changes a run: its status, its modes or its settings.
#[utoipa::path(patch, path = "/api/runs/{run_id}", tag = "runs", params(("run_id" = String, Path)),
    request_body = wire::ChangeRun,
    responses((status = 200, description = "The run as it is now", body = wire::RunAnswer)))]
pub(crate) async fn change(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<Json<wire::RunAnswer>, ApiError> {
    let body: wire::ChangeRun = request.read()?;
    // Read inside the decision: two changes at once must not undo each other.
    let decide = move |run: &Run, around: decide::Surroundings<'_>| {
        let change = json::change_of_run(&body, &run.live)?;
        Ok(decide::change_run(run, around, change)?)
    };
    handle.decide_request(request.key(), decide).await?;
    let run = view_of(&handle);
    Ok(Json(wire::RunAnswer { run }))
}

/// Takes the end of a run off the list of what waits for a person. The run stays as it is.
#[utoipa::path(post, path = "/api/runs/{run_id}/dismiss", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "The run as it is now", body = wire::RunAnswer)))]
pub(crate) async fn dismiss(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<Json<wire::RunAnswer>, ApiError> {
    handle
        .decide_once(request.key(), decide::dismiss_end)
        .await?;
    let run = view_of(&handle);
    Ok(Json(wire::RunAnswer { run }))
}

/// Deletes a run. Its programs end and its files go; its records stay in the log.
#[utoipa::path(delete, path = "/api/runs/{run_id}", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "The run is gone", body = wire::RunGone)))]
pub(crate) async fn delete(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
) -> Result<Json<wire::RunGone>, ApiError> {
    let run_id = wire::UuidText::of(handle.id());
    shared.runs.delete(&handle).await?;
    Ok(Json(wire::RunGone { run_id }))
}
