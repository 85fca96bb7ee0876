//! Verification on request: the server runs the run's commands and answers with the report.

use std::sync::Arc;

use axum::Json;
use serde_json::Value;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::decide::{self, Decision, Surroundings};
use turnkeep_runtime::ids::VerificationId;
use turnkeep_runtime::request::MadeId;
use turnkeep_runtime::{Event, Fact, Run};
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::nodes::key_reused;
use super::parts::{RequestJson, RunAt, Viewer};
use crate::error::ApiError;
use crate::runs::json;
use crate::runs::verification_reports::is_report;
use crate::runs::{Decided, RunHandle};

/// How many events are read from the log at once.
const READ_EVENTS: usize = 200;

/// Runs the verification commands in the integration tree. The answer comes when they are done; the run
/// is not completed by it.
#[utoipa::path(post, path = "/api/runs/{run_id}/verify", tag = "changes", params(("run_id" = String, Path)),
    responses((status = 200, description = "The result", body = wire::VerificationAnswer)))]
pub(crate) async fn verify(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
    request: RequestJson,
) -> Result<Json<wire::VerificationAnswer>, ApiError> {
    let started = match handle.decide_once(request.key(), start).await? {
        Decided::Now(started) => started,
        Decided::Before {
            seq,
            made: Some(MadeId::Verification(id)),
        } => Started { seq, id },
        Decided::Before { .. } => return Err(key_reused()),
    };
    wait_for_end(&handle, started.id).await?;
    let report = find_report(&handle, started.seq).await?;
    let content = handle.read_blob(report.content).await?;
    let content: Value = serde_json::from_slice(&content).unwrap_or_default();
    let viewer = Viewer::of(&handle);
    Ok(Json(wire::VerificationAnswer {
        ok: content["ok"] == true,
        artifact: handle.read(|run| json::artifact_view(viewer.place(run), &report)),
    }))
}

/// A verification and the event that began it.
struct Started {
    seq: u64,
    id: VerificationId,
}

fn start(
    run: &Run,
    around: Surroundings<'_>,
) -> Result<Decision<Started>, turnkeep_runtime::rejection::Rejection> {
    let Decision {
        events,
        blobs,
        effects,
        answer: id,
    } = decide::verify(run, around)?;
    let seq = events.first().map_or(run.live.last_seq, |event| event.seq);
    Ok(Decision {
        events,
        blobs,
        effects,
        answer: Started { seq, id },
    })
}

/// Waits until the verification is not under way any more.
async fn wait_for_end(handle: &Arc<RunHandle>, id: VerificationId) -> Result<(), ApiError> {
    let mut last_seq = handle.subscribe_seq();
    loop {
        last_seq.borrow_and_update();
        let is_under_way = handle.read_live(|run| {
            let current = run.verification.as_ref();
            !run.is_deleted && current.is_some_and(|current| current.id == id)
        });
        if !is_under_way {
            return Ok(());
        }
        if last_seq.changed().await.is_err() {
            return Err(ApiError::shutting_down());
        }
    }
}

/// The report of the verification that began with this event.
async fn find_report(handle: &Arc<RunHandle>, started: u64) -> Result<Artifact, ApiError> {
    let mut next = started + 1;
    loop {
        let events = handle.read_events(next, READ_EVENTS).await?;
        for event in &events {
            match outcome_in(event) {
                Some(Outcome::Report(report)) => return Ok(*report),
                Some(Outcome::Cancelled) => return Err(cancelled()),
                None => {}
            }
        }
        next = events.last().ok_or_else(cancelled)?.seq + 1;
    }
}

/// How a verification ends.
enum Outcome {
    Report(Box<Artifact>),
    Cancelled,
}

fn outcome_in(event: &Event) -> Option<Outcome> {
    match &event.fact {
        // The report of a claim belongs to the node that made it.
        Fact::ArtifactCreated(artifact) if is_report(artifact) && event.node.is_none() => {
            Some(Outcome::Report(artifact.clone()))
        }
        // The phase ends without a report.
        Fact::PhaseChanged(_) | Fact::RunDeleted => Some(Outcome::Cancelled),
        _ => None,
    }
}

fn cancelled() -> ApiError {
    let message = "the verification was cancelled: ask for it again";
    ApiError::new(ErrorCode::Conflict, message)
}
