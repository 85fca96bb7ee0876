//! The filesystem of a turn, by path: directories as listings, files as bytes, links as they are.
//!
//! A tree is what its writer says, so a walk is bounded by the path and reads one directory per
//! segment. Links are never followed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use turnkeep_types::{BlobHash, TurnId};
use turnkeep_wire::{ErrorCode, json};

use super::blobs::{self, BYTES};
use super::content::{Content, IMMUTABLE};
use super::extract::{Query, parse_id};
use super::query::{NoQuery, percent_decode};
use crate::error::ApiError;
use crate::fs_tree::{self, Entry, Kind, TreeError};
use crate::shared::Shared;

/// Segments of a path.
const SEGMENTS_MAX: usize = 256;

/// The root directory of a turn's filesystem.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/fs", tag = "filesystem", params(("turn_id" = json::Id, Path)),
    responses((status = 200, description = "The directory", body = json::FsListing)))]
pub(crate) async fn root(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    serve(shared, headers, &uri).await
}

/// A path of a turn's filesystem.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/fs/{*path}", tag = "filesystem",
    params(("turn_id" = json::Id, Path), ("path" = String, Path, description = "Segments, each percent-encoded")),
    responses(
        (status = 200, description = "A directory, a link, or a file's bytes", content(
            (json::FsNode = "application/json"), ([u8] = "application/octet-stream"))),
        (status = 206, description = "The range of a file that was asked for", body = [u8], content_type = "application/octet-stream"),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn path(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    serve(shared, headers, &uri).await
}

async fn serve(shared: Arc<Shared>, headers: HeaderMap, uri: &Uri) -> Result<Response, ApiError> {
    let place = Place::parse(uri.path())?;
    let reader = Arc::clone(&shared);
    let (hash, response) = shared.blocking(move || place.read(&reader, &headers)).await?;
    shared.note_blob_read(hash).await?;
    Ok(response)
}

/// A turn and a path in its filesystem.
struct Place {
    turn: TurnId,
    segments: Vec<Vec<u8>>,
}

impl Place {
    /// Reads the raw path, so that a name may be any bytes and an encoded slash is no separator.
    fn parse(path: &str) -> Result<Self, ApiError> {
        let mut parts = path.trim_start_matches("/v1/turns/").splitn(3, '/');
        let turn = parse_id(parts.next().unwrap_or_default(), "turn")?;
        let rest = parts.nth(1).unwrap_or_default();
        let segments = rest.split('/').filter(|segment| !segment.is_empty());
        let segments: Option<Vec<_>> = segments.map(|segment| percent_decode(segment, false)).collect();
        let segments = segments.ok_or_else(|| ApiError::bad_request("the path is not percent-encoded"))?;
        crate::convert::within("path segments", SEGMENTS_MAX, segments.len() as u64)?;
        Ok(Self { turn, segments })
    }

    /// What is there, and the blob that it was read from.
    fn read(&self, shared: &Shared, headers: &HeaderMap) -> Result<(BlobHash, Response), ApiError> {
        let turn = shared.store.store().turn(self.turn)?;
        let root = turn.fs_root.ok_or_else(|| {
            ApiError::new(ErrorCode::NotFound, format!("turn {} has no filesystem", self.turn))
        })?;
        let (kind, hash) = self.walk(shared, root)?;
        let bytes = blobs::read_now(shared, hash)?;
        let response = match kind {
            Kind::File => Content { etag: blobs::etag(hash), media_type: BYTES, cache: IMMUTABLE, bytes }
                .respond(headers),
            Kind::Directory => Json(json::FsNode::Directory(self.listing(hash, &bytes)?)).into_response(),
            Kind::Symlink => Json(json::FsNode::Symlink(self.symlink(hash, &bytes))).into_response(),
        };
        Ok((hash, response))
    }

    fn walk(&self, shared: &Shared, root: BlobHash) -> Result<(Kind, BlobHash), ApiError> {
        let mut at = (Kind::Directory, root);
        for segment in &self.segments {
            if at.0 != Kind::Directory {
                return Err(self.not_found());
            }
            let tree = blobs::read_now(shared, at.1)?;
            let entries = fs_tree::decode(&tree).map_err(|error| bad_tree(&error, at.1))?;
            let found = entries.iter().find(|entry| entry.name == segment.as_slice());
            at = found.map(|entry| (entry.kind, entry.hash)).ok_or_else(|| self.not_found())?;
        }
        Ok(at)
    }

    fn text(&self) -> String {
        let segments: Vec<_> = self.segments.iter().map(|segment| String::from_utf8_lossy(segment)).collect();
        segments.join("/")
    }

    fn not_found(&self) -> ApiError {
        ApiError::new(ErrorCode::NotFound, format!("turn {} has no file `{}`", self.turn, self.text()))
    }

    fn listing(&self, hash: BlobHash, tree: &[u8]) -> Result<json::FsListing, ApiError> {
        let entries = fs_tree::decode(tree).map_err(|error| bad_tree(&error, hash))?;
        Ok(json::FsListing {
            turn_id: self.turn.into(),
            path: self.text(),
            hash: json::Hash(hash),
            entries: entries.iter().map(shape).collect(),
        })
    }

    fn symlink(&self, hash: BlobHash, target: &[u8]) -> json::FsSymlink {
        json::FsSymlink {
            turn_id: self.turn.into(),
            path: self.text(),
            kind: json::FsKind::Symlink,
            target: String::from_utf8_lossy(target).into_owned(),
            hash: json::Hash(hash),
        }
    }
}

fn bad_tree(error: &TreeError, hash: BlobHash) -> ApiError {
    let code = match error {
        TreeError::TooMany { .. } => ErrorCode::TooLarge,
        TreeError::NotMsgpack | TreeError::Missing(_) | TreeError::Bad(_) | TreeError::LeftOver => {
            ErrorCode::Corrupt
        }
    };
    ApiError::new(code, format!("blob {hash} is not a directory: {error}")).with("hash", hash.to_string())
}

fn shape(entry: &Entry<'_>) -> json::FsEntry {
    json::FsEntry {
        name: String::from_utf8_lossy(entry.name).into_owned(),
        name_b64: std::str::from_utf8(entry.name).is_err().then(|| STANDARD.encode(entry.name)),
        kind: match entry.kind {
            Kind::File => json::FsKind::File,
            Kind::Directory => json::FsKind::Directory,
            Kind::Symlink => json::FsKind::Symlink,
        },
        mode: entry.mode,
        size: entry.size,
        hash: json::Hash(entry.hash),
    }
}
