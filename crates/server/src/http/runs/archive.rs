//! Copies of runs: fork, export, import, and the script that replays a run.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc::Sender;
use turnkeep_runtime::fact::RequestKey;
use turnkeep_types::BlobHash;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;

use super::super::body::{ChannelBody, next_chunk};
use super::super::extract::{Query, read_idempotency_key};
use super::super::query::{ImportQuery, NoQuery};
use super::parts::{RequestJson, RunAt, Viewer};
use crate::error::ApiError;
use crate::runs::RunHandle;
use crate::runs::archive::{self, ArchiveError, ForkRequest, ImportRequest};
use crate::runs::json::{self, ConnectionViews};
use crate::shared::Shared;

/// The largest archive that is read.
const IMPORT_BYTES_MAX: u64 = 1 << 30;
/// Chunks that may wait for the network, and how long they are.
const CHUNKS_MAX: usize = 4;
const CHUNK_BYTES: usize = 256 << 10;

/// Forks a run: a new run that shares its events up to a number, paused.
#[utoipa::path(post, path = "/api/runs/{run_id}/fork", tag = "runs", params(("run_id" = String, Path)),
    request_body = wire::ForkRun,
    responses((status = 201, description = "The new run", body = wire::RunAnswer)))]
pub(crate) async fn fork(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    RunAt(origin): RunAt,
    request: RequestJson,
) -> Result<(StatusCode, Json<wire::RunAnswer>), ApiError> {
    let body: wire::ForkRun = request.read()?;
    let wanted = ForkRequest {
        seq: body.seq,
        title: body.title,
        key: request.key(),
    };
    let fork = archive::fork_run(&shared.runs, origin, wanted).await?;
    Ok((StatusCode::CREATED, answer(&fork)))
}

fn answer(handle: &RunHandle) -> Json<wire::RunAnswer> {
    let viewer = Viewer::of(handle);
    let run =
        handle.read(|run| json::run_view(viewer.place(run), run, &ConnectionViews::default()));
    Json(wire::RunAnswer { run })
}

/// Sends a run as one zip file: everything to import it, and a page that shows it.
#[utoipa::path(get, path = "/api/runs/{run_id}/export", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "The archive", body = [u8], content_type = "application/zip")))]
pub(crate) async fn export(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
) -> Result<Response, ApiError> {
    let place = Arc::clone(&shared.exports)
        .try_acquire_owned()
        .map_err(|_| too_many())?;
    let mut file = archive::export_run(&handle).await?;
    let length = file.stream_position().map_err(ApiError::internal)?;
    let (sender, body) = ChannelBody::new(CHUNKS_MAX);
    shared.tasks.spawn_blocking(move || {
        send_file(file, &sender);
        // Held by the thread, because it is the thread that the limit bounds.
        drop(place);
    });
    let name = format!("attachment; filename=\"run-{}.zip\"", handle.id());
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/zip")),
        (CONTENT_LENGTH, HeaderValue::from(length)),
        (
            CONTENT_DISPOSITION,
            HeaderValue::try_from(name).map_err(ApiError::internal)?,
        ),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::new(body)).into_response())
}

fn too_many() -> ApiError {
    let message = "several exports are under way: try again when one has ended";
    ApiError::new(ErrorCode::TooManyRequests, message)
}

/// Sends a file in chunks, as fast as the network takes them.
fn send_file(mut file: File, sender: &Sender<io::Result<Bytes>>) {
    let sent = file.seek(SeekFrom::Start(0)).and_then(|_| {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let read = (&mut file)
                .take(CHUNK_BYTES as u64)
                .read_to_end(&mut chunk)?;
            if read == 0 {
                return Ok(());
            }
            let sent = sender.blocking_send(Ok(chunk.into()));
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
    });
    if let Err(error) = sent {
        tracing::warn!(%error, "an export was not sent whole");
        // The error ends the body early, so the client sees that something is missing.
        drop(sender.blocking_send(Err(error)));
    }
}

/// Imports a run from a zip file that an export made. All of it, or nothing.
#[utoipa::path(post, path = "/api/runs/import", tag = "runs",
    params(("copy" = Option<String>, Query, description = "`1`: the run gets a new id"),
        ("cwd" = Option<String>, Query, description = "Its directory on this machine")),
    request_body(content = [u8], content_type = "application/zip"),
    responses((status = 201, description = "The run", body = wire::RunAnswer)))]
pub(crate) async fn import(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<ImportQuery>,
    request: Request,
) -> Result<(StatusCode, Json<wire::RunAnswer>), ApiError> {
    let key = read_idempotency_key(&request)?;
    // The hash of the file stands for its bytes, which are not kept in memory.
    let target = format!("{} {}\n", request.method(), request.uri());
    let upload = receive_file(&shared, request).await?;
    let fingerprint = BlobHash::of(&[target.as_bytes(), upload.hash.as_bytes()].concat());
    let wanted = ImportRequest {
        as_copy: query.copy,
        cwd: query.cwd,
        key: key.map(|key| RequestKey { key, fingerprint }),
    };
    let run = archive::import_run(&shared.runs, upload.file, wanted).await?;
    Ok((StatusCode::CREATED, answer(&run)))
}

/// A body that was written to a file.
struct Upload {
    file: File,
    hash: blake3::Hash,
}

/// Writes a body to a file as it arrives: an archive may be larger than the memory for it.
async fn receive_file(shared: &Arc<Shared>, request: Request) -> Result<Upload, ApiError> {
    let stall = shared.config.timeouts.http_body_stall;
    let mut body = request.into_body();
    let mut file = tokio::fs::File::from_std(archive::create_scratch_file(&shared.runs).await?);
    let mut hasher = blake3::Hasher::new();
    let mut bytes = 0;
    while let Some(chunk) = next_chunk(&mut body, stall).await? {
        bytes += chunk.len() as u64;
        if bytes > IMPORT_BYTES_MAX {
            let max = IMPORT_BYTES_MAX;
            return Err(ArchiveError::TooLarge { max }.into());
        }
        hasher.update(&chunk);
        file.write_all(&chunk).await.map_err(ApiError::internal)?;
    }
    // Tokio's file writes in the background. Without the flush the last error would be lost.
    file.flush().await.map_err(ApiError::internal)?;
    Ok(Upload {
        file: file.into_std().await,
        hash: hasher.finalize(),
    })
}

/// Sends a script with which the scripted agent replays the run.
#[utoipa::path(get, path = "/api/runs/{run_id}/record", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "The script", body = String, content_type = "application/toml")))]
pub(crate) async fn record(
    Query(NoQuery): Query<NoQuery>,
    RunAt(handle): RunAt,
) -> Result<Response, ApiError> {
    let script = archive::record_script(&handle).await?;
    let headers = [
        (CONTENT_TYPE, "application/toml"),
        (CONTENT_DISPOSITION, "attachment; filename=\"script.toml\""),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, script).into_response())
}

impl From<ArchiveError> for ApiError {
    fn from(error: ArchiveError) -> Self {
        let message = error.to_string();
        match error {
            ArchiveError::Run(error) => error.into(),
            ArchiveError::SeqBeyondEnd { .. } | ArchiveError::SeqBeforeStart { .. } => {
                Self::bad_request(message).with("path", "seq")
            }
            ArchiveError::BadArchive(_) => Self::bad_request(message),
            ArchiveError::BadDirectory(_) => Self::bad_request(message).with("path", "cwd"),
            ArchiveError::RunExists(run) => {
                let message = format!("{message}: import it as a copy with `copy=1`");
                Self::new(ErrorCode::Conflict, message).with("runId", run.to_string())
            }
            ArchiveError::TooLarge { .. } => Self::new(ErrorCode::TooLarge, message),
            ArchiveError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Self::new(ErrorCode::TooLarge, error.to_string())
            }
            ArchiveError::Io(_) => Self::internal(message),
        }
    }
}
