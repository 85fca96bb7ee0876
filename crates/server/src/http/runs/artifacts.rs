//! The files that a run made.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::ids::ArtifactId;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::{NoQuery, RawQuery};
use super::parts::{RunAndId, RunAt, Viewer};
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::runs::RunHandle;
use crate::runs::json;
use crate::shared::Shared;

/// Lists the artifacts of a run, oldest first.
#[utoipa::path(get, path = "/api/runs/{run_id}/artifacts", tag = "artifacts", params(("run_id" = String, Path)),
    responses((status = 200, description = "The artifacts", body = wire::ArtifactList)))]
pub(crate) async fn list(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
) -> Json<wire::ArtifactList> {
    let viewer = Viewer::of(&handle);
    let artifacts = handle.read(|run| {
        let mut all: Vec<_> = run.archive.artifacts().cloned().collect();
        all.sort_by_key(|artifact| (artifact.created_at, artifact.id));
        let views = all
            .iter()
            .map(|artifact| json::artifact_view(viewer.place(run), artifact));
        views.collect()
    });
    Json(wire::ArtifactList { artifacts })
}

/// Shows an artifact, or sends its bytes.
#[utoipa::path(get, path = "/api/runs/{run_id}/artifacts/{id}", tag = "artifacts",
    params(("run_id" = String, Path), ("id" = String, Path),
        ("raw" = Option<String>, Query, description = "`1`: the bytes")),
    responses((status = 200, description = "The artifact", body = wire::ArtifactAnswer)))]
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<RawQuery>,
    at: RunAndId,
) -> Result<Response, ApiError> {
    let id: ArtifactId = at.parse("artifact")?;
    let handle = &at.handle;
    let artifact = handle.read(|run| run.archive.artifact(id).cloned());
    let artifact = artifact.ok_or(Rejection::UnknownArtifact(id))?;
    if !query.raw {
        let viewer = Viewer::of(handle);
        let artifact = handle.read(|run| json::artifact_view(viewer.place(run), &artifact));
        return Ok(Json(wire::ArtifactAnswer { artifact }).into_response());
    }
    let bytes = read_content(&shared, handle, &artifact).await?;
    // An agent's text must never run as a page of this server.
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment"),
    ];
    Ok((headers, bytes).into_response())
}

/// Reads the bytes of an artifact. Many bytes keep a memory permit until they have been sent.
async fn read_content(
    shared: &Shared,
    handle: &RunHandle,
    artifact: &Artifact,
) -> Result<Bytes, ApiError> {
    let len = usize::try_from(artifact.bytes).unwrap_or(usize::MAX);
    if len < LARGE_FROM_BYTES {
        return Ok(handle.read_blob(artifact.content).await?);
    }
    let permit = shared.memory.acquire(len).await?;
    Ok(permit.hold(handle.read_blob(artifact.content).await?))
}
