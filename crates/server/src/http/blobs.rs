//! Blobs by hash. Their bytes never change, so clients may cache them for ever.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use turnkeep_store::blob::verifying_bytes;
use turnkeep_store::{Command, Outcome};
use turnkeep_types::{BlobHash, Compression};
use turnkeep_wire::{json, message};

use super::content::{self, Content, IMMUTABLE};
use super::extract::{At, Query, Raw};
use super::query::{BlobsQuery, NoQuery};
use crate::convert;
use crate::error::ApiError;
use crate::guarded_store::{ContentReader, WriteGrant};
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// The media type of a blob: the store does not know what the bytes mean.
pub(crate) const BYTES: &str = "application/octet-stream";

/// Blobs that one answer lists: enough to show that a prefix is not unique.
const NAMED_BLOBS_MAX: usize = 16;

/// The blobs whose hashes begin with some digits, at most 16. Looks at all blobs.
#[utoipa::path(get, path = "/v1/blobs", tag = "blobs",
    params(("prefix" = String, Query, description = "1 to 64 lower-case hex digits")),
    responses((status = 200, description = "Their names", body = json::BlobNames)))]
pub(crate) async fn named(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BlobsQuery>,
) -> Result<Json<json::BlobNames>, ApiError> {
    let reader = Arc::clone(&shared);
    shared
        .blocking(move || Ok(Json(find_names(&reader, &query))))
        .await
}

fn find_names(shared: &Shared, query: &BlobsQuery) -> json::BlobNames {
    // One more than is shown tells whether there are others.
    let mut found = shared
        .store
        .blobs_with_prefix(&query.prefix, NAMED_BLOBS_MAX + 1);
    let truncated = found.len() > NAMED_BLOBS_MAX;
    found.truncate(NAMED_BLOBS_MAX);
    json::BlobNames {
        hashes: found.into_iter().map(json::Hash).collect(),
        truncated,
    }
}

/// A blob's uncompressed bytes.
#[utoipa::path(get, path = "/v1/blobs/{hash}", tag = "blobs", params(("hash" = json::Hash, Path)),
    responses(
        (status = 200, description = "The bytes", body = [u8], content_type = "application/octet-stream"),
        (status = 206, description = "The range that was asked for", body = [u8], content_type = "application/octet-stream"),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn get(
    State(shared): State<Arc<Shared>>,
    At(hash): At<BlobHash>,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let len = shared.store.blob_len(hash)?;
    // Before the content is opened: a client that has it already reads nothing, so no world's audit
    // gets a line.
    if let Some(response) = content::not_modified(&headers, &etag(hash), IMMUTABLE) {
        return Ok(response);
    }
    let content = shared.store.open_blob(hash).await?;
    let bytes = read_blob(&shared, content, hash, len).await?;
    Ok(Content {
        etag: etag(hash),
        media_type: BYTES,
        cache: IMMUTABLE,
        bytes,
    }
    .respond(&headers))
}

/// A blob's length.
#[utoipa::path(head, path = "/v1/blobs/{hash}", tag = "blobs", params(("hash" = json::Hash, Path)),
    responses(
        (status = 200, description = "The store holds it"),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn head(
    State(shared): State<Arc<Shared>>,
    At(hash): At<BlobHash>,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let len = shared.store.blob_len(hash)?;
    Ok(content::respond_to_head(
        &headers,
        &etag(hash),
        BYTES,
        len.into(),
    ))
}

/// Keeps a blob. The bytes must hash to the name.
#[utoipa::path(put, path = "/v1/blobs/{hash}", tag = "blobs", params(("hash" = json::Hash, Path)),
    request_body(content = [u8], content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "Durable", body = json::BlobPut),
        (status = 200, description = "Was there already", body = json::BlobPut),
    ))]
pub(crate) async fn put(
    State(shared): State<Arc<Shared>>,
    At(hash): At<BlobHash>,
    Query(NoQuery): Query<NoQuery>,
    Raw(bytes): Raw,
) -> Result<Response, ApiError> {
    let len = u32::try_from(bytes.len()).map_err(ApiError::internal)?;
    let command = verify_blob(&shared, message::PutBlob { hash, bytes }).await?;
    let outcome = shared.store.run(WriteGrant::NEW_OBJECT, command).await?;
    let Outcome::BlobPut { was_new } = outcome else {
        return Err(ApiError::internal("a put had another outcome"));
    };
    let status = if was_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let ack = json::BlobPut {
        content_hash_b3: json::Hash(hash),
        uncompressed_len: len,
        was_new,
    };
    Ok((status, Json(ack)).into_response())
}

async fn verify_blob(shared: &Arc<Shared>, put: message::PutBlob) -> Result<Command, ApiError> {
    if put.bytes.len() < LARGE_FROM_BYTES {
        return convert::put_blob(&shared.policy, put);
    }
    let sent_bytes = put.bytes.len();
    let bytes = verifying_bytes(sent_bytes, 0, Compression::None);
    let permit = shared.memory.acquire_beside(sent_bytes, bytes).await?;
    let maker = Arc::clone(shared);
    shared
        .work_on_large(move || permit.during_command(|| convert::put_blob(&maker.policy, put)))
        .await
}

/// Reads a blob of `len` bytes. A large one is read on another thread, and its bytes keep their
/// permit until they have been sent.
async fn read_blob(
    shared: &Shared,
    content: ContentReader,
    hash: BlobHash,
    len: u32,
) -> Result<Bytes, ApiError> {
    if (len as usize) < LARGE_FROM_BYTES {
        return read_uncompressed(&content, hash);
    }
    let permit = shared.memory.acquire(len as usize).await?;
    let read = move || read_uncompressed(&content, hash);
    Ok(permit.hold(shared.work_on_large(read).await?))
}

/// The entity tag of a blob: its hash.
pub(crate) fn etag(hash: BlobHash) -> String {
    format!("\"{hash}\"")
}

/// Reads a blob's uncompressed bytes on a thread that may not wait. A large blob is refused if
/// there is no memory for it now.
pub(crate) fn read_blob_now(
    shared: &Shared,
    content: &ContentReader,
    hash: BlobHash,
) -> Result<Bytes, ApiError> {
    let len = shared.store.blob_len(hash)? as usize;
    if len < LARGE_FROM_BYTES {
        return read_uncompressed(content, hash);
    }
    let permit = shared.memory.acquire_now(len)?;
    Ok(permit.hold(read_uncompressed(content, hash)?))
}

/// A blob's uncompressed bytes. A blob that is stored uncompressed is not copied. The caller holds a
/// permit for a large blob.
pub(crate) fn read_uncompressed(
    content: &ContentReader,
    hash: BlobHash,
) -> Result<Bytes, ApiError> {
    Ok(content.blob(hash)?.into_raw_bytes()?)
}
