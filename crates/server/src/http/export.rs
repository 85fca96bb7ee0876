//! The whole log as one portable file, while the server goes on.
//!
//! A thread of its own reads the log and waits at a short channel for the network. An export that
//! fails on the way ends without its end mark and its connection is cut, so a reader cannot take a
//! part for the whole.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::mpsc::Sender;
use turnkeep_store::archive;
use turnkeep_wire::ErrorCode;

use super::body::ChannelBody;
use super::extract::Query;
use super::query::NoQuery;
use crate::error::ApiError;
use crate::shared::Shared;

/// Chunks that may wait for the network.
const CHUNKS_MAX: usize = 4;
/// A chunk is sent when it is this long.
const CHUNK_BYTES: usize = 256 << 10;

/// Exports at once; each of them keeps a thread.
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
    shared.note_raw_read_of_all("export").await?;
    let (sender, body) = ChannelBody::new(CHUNKS_MAX);
    let reader = Arc::clone(&shared);
    shared.tasks.spawn_blocking(move || {
        produce(
            &reader,
            ChunkWriter {
                sender,
                chunk: Vec::new(),
            },
        );
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

fn produce(shared: &Shared, mut out: ChunkWriter) {
    let written = archive::export(shared.store.store(), &mut out, |_, _| ());
    if let Err(error) = written.and_then(|()| out.flush()) {
        tracing::warn!(%error, "an export ended early");
        // The reader is gone, or hears by this that the file is not whole.
        drop(out.sender.blocking_send(Err(error)));
    }
}

/// Collects what is written into chunks and hands them to the network, waiting for it.
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
