//! Export of the whole log as one portable file, while the server keeps serving.
//!
//! A worker thread reads the log and waits for the network at a short channel. If an export fails,
//! it ends without its end mark and the server closes the connection, so a reader cannot mistake a
//! part for the whole.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::mpsc::Sender;
use turnkeep_wire::ErrorCode;

use super::body::ChannelBody;
use super::extract::Query;
use super::query::NoQuery;
use crate::error::ApiError;
use crate::guarded_store::ContentReader;
use crate::shared::Shared;

/// Chunks that may wait for the network.
const CHUNKS_MAX: usize = 4;
/// A chunk is sent when it is this long.
const CHUNK_BYTES: usize = 256 << 10;

/// Exports that run at once. Each of them occupies a thread.
pub(crate) const EXPORTS_MAX: usize = 4;

/// Everything that the store holds, as one stream.
#[utoipa::path(get, path = "/v1/export", tag = "server",
    responses((status = 200, description = "The export", body = [u8], content_type = "application/octet-stream")))]
pub(crate) async fn export(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Response, ApiError> {
    let place = Arc::clone(&shared.exports)
        .try_acquire_owned()
        .map_err(|_| too_many())?;
    let content = shared.store.open_everything("export").await?;
    let (sender, body) = ChannelBody::new(CHUNKS_MAX);
    shared.tasks.spawn_blocking(move || {
        write_export(
            &content,
            ChunkWriter {
                sender,
                chunk: Vec::new(),
            },
        );
        // Held by the thread, because it is the thread that the limit bounds.
        drop(place);
    });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (
            CONTENT_DISPOSITION,
            "attachment; filename=\"export.turnkeep\"",
        ),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::new(body)).into_response())
}

fn too_many() -> ApiError {
    let message = format!("{EXPORTS_MAX} exports are under way: try again when one has ended");
    ApiError::new(ErrorCode::TooManyRequests, message)
}

fn write_export(content: &ContentReader, mut out: ChunkWriter) {
    let written = content.export(&mut out);
    if let Err(error) = written.and_then(|()| out.flush()) {
        tracing::warn!(%error, "an export ended early");
        // The error ends the body early, so a reader that is still there sees an incomplete file.
        drop(out.sender.blocking_send(Err(error)));
    }
}

/// Collects written bytes into chunks and waits for the network to take them.
struct ChunkWriter {
    sender: Sender<io::Result<Bytes>>,
    chunk: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        self.sender
            .blocking_send(Ok(chunk))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
