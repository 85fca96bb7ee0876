//! The filesystem of a turn, by path: a directory as a listing, a file as bytes, a link as its target.
//!
//! A turn without a root of its own shows that of its nearest ancestor, and the answer names that
//! ancestor (`inherited_from`, or the header `Inherited-From` beside bytes). Such an answer may
//! change when a root is attached nearer, so only an answer from the turn's own root is immutable.
//!
//! A writer may send any tree, also one with cycles. The path therefore bounds the walk: it reads one
//! directory per segment and never follows a link.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use turnkeep_store::FsRoot;
use turnkeep_types::TurnId;
use turnkeep_wire::fs_tree::{TreeEntry, TreeEntryKind, decode_tree, find_entry};
use turnkeep_wire::json;

use super::blobs::{self, BYTES};
use super::content::{Content, IMMUTABLE, REVALIDATE, respond_with_json_text};
use super::extract::{Query, parse_id};
use super::query::{FsFormat, FsPathQuery, FsRootQuery, percent_decode};
use crate::error::{ApiError, bad_tree};
use crate::guarded_store::ContentReader;
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};
use crate::shared::Shared;

/// Segments of a path.
const SEGMENTS_MAX: usize = 256;

/// About how many bytes of memory it takes to list one byte of a directory's tree: the entry as it
/// is read and as it is shown, and its JSON as it grows. A control character of a name becomes six
/// characters.
const LISTING_PER_BYTE: usize = 16;

/// Names the ancestor whose filesystem the bytes are from.
const INHERITED_FROM: HeaderName = HeaderName::from_static("inherited-from");

/// The root directory of a turn's filesystem, or a path of it.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/fs", tag = "filesystem",
    params(
        ("turn_id" = json::Id, Path),
        ("path" = Option<String>, Query, description = "A path from the root; the root unless given"),
        ("format" = Option<String>, Query, description = "`json` sends a file as JSON; `bytes` unless given"),
    ),
    responses(
        (status = 200, description = "A directory, a link, or a file", content(
            (json::FsNode = "application/json"), ([u8] = "application/octet-stream")),
            headers(("Inherited-From" = String, description = "Beside bytes: the ancestor whose filesystem it is"))),
        (status = 206, description = "The range of a file that was asked for", body = [u8], content_type = "application/octet-stream"),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn root(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<FsRootQuery>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let mut path = FsPath::parse(uri.path())?;
    // The query is decoded already, so its names are used as they are.
    path.segments = split_path(query.path.as_deref().unwrap_or_default(), |name| {
        Some(name.into())
    })?;
    serve_path(shared, path, Wanted::new(query.format, headers)).await
}

/// A path of a turn's filesystem.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/fs/{*path}", tag = "filesystem",
    params(
        ("turn_id" = json::Id, Path),
        ("path" = String, Path, description = "Segments, each percent-encoded"),
        ("format" = Option<String>, Query, description = "`json` sends a file as JSON; `bytes` unless given"),
    ),
    responses(
        (status = 200, description = "A directory, a link, or a file's bytes. With `Accept: application/octet-stream` a link is its target's bytes", content(
            (json::FsNode = "application/json"), ([u8] = "application/octet-stream")),
            headers(("Inherited-From" = String, description = "Beside bytes: the ancestor whose filesystem it is"))),
        (status = 206, description = "The range of a file that was asked for", body = [u8], content_type = "application/octet-stream"),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn path(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<FsPathQuery>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let path = FsPath::parse(uri.path())?;
    serve_path(shared, path, Wanted::new(query.format, headers)).await
}

async fn serve_path(
    shared: Arc<Shared>,
    path: FsPath,
    wanted: Wanted,
) -> Result<Response, ApiError> {
    let reader = Arc::clone(&shared);
    let found = shared.blocking(move || path.find(&reader)).await?;
    // The audit line comes before the content is read: both need memory, and a request that held
    // the content while it waited for more would wait for itself.
    let content = shared.store.open_blob(found.entry.hash).await?;
    if let Some(permit) = permit_for_listing(&shared, &found.entry).await? {
        let list = move || found.list_large_directory(&content, permit);
        return shared.work_on_large(list).await;
    }
    let reader = Arc::clone(&shared);
    let respond = move || found.respond(&reader, &content, &wanted);
    shared.blocking(respond).await
}

/// Waits for memory to list a large directory. Everything else needs no permit here.
async fn permit_for_listing(
    shared: &Shared,
    entry: &TreeEntry,
) -> Result<Option<MemoryPermit>, ApiError> {
    if entry.kind != TreeEntryKind::Directory {
        return Ok(None);
    }
    // A directory whose blob is missing needs no memory. Reading it reports the error.
    let tree_bytes = shared.store.blob_len(entry.hash).unwrap_or(0);
    let bytes = LISTING_PER_BYTE * tree_bytes as usize;
    if bytes < LARGE_FROM_BYTES {
        return Ok(None);
    }
    shared.memory.acquire(bytes).await.map(Some)
}

/// The form in which the caller wants the object at the path.
struct Wanted {
    format: FsFormat,
    headers: HeaderMap,
}

impl Wanted {
    fn new(format: FsFormat, headers: HeaderMap) -> Self {
        Self { format, headers }
    }

    /// Whether a link is to be sent as its target's bytes.
    fn wants_link_bytes(&self) -> bool {
        self.format == FsFormat::Bytes && self.accepts(BYTES) && !self.accepts("application/json")
    }

    /// Whether the caller names this media type among those that it accepts.
    fn accepts(&self, media_type: &str) -> bool {
        let lists = self
            .headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut ranges = lists.flat_map(|list| list.split(','));
        ranges.any(|range| {
            let name = range.split(';').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case(media_type)
        })
    }
}

/// A turn and a path in its filesystem.
struct FsPath {
    turn: TurnId,
    segments: Vec<Vec<u8>>,
}

/// The names of a path, each decoded.
fn split_path(
    path: &str,
    decode: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, ApiError> {
    let names = path.split('/').filter(|segment| !segment.is_empty());
    let names: Option<Vec<_>> = names.map(decode).collect();
    let names = names.ok_or_else(|| ApiError::bad_request("the path is not percent-encoded"))?;
    crate::convert::within("path segments", SEGMENTS_MAX, names.len() as u64)?;
    Ok(names)
}

impl FsPath {
    /// Reads the raw path, so that a name may be any bytes and an encoded slash is no separator.
    fn parse(path: &str) -> Result<Self, ApiError> {
        let mut parts = path.trim_start_matches("/v1/turns/").splitn(3, '/');
        let turn = parse_id(parts.next().unwrap_or_default(), "turn")?;
        let rest = parts.nth(1).unwrap_or_default();
        Ok(Self {
            turn,
            segments: split_path(rest, |segment| percent_decode(segment, false))?,
        })
    }

    /// Finds the entry at the path, in the turn's own filesystem or the one that it inherits.
    fn find(self, shared: &Shared) -> Result<FoundEntry, ApiError> {
        let root = self.find_root(shared)?;
        let entry = self.find_entry(shared, root)?;
        Ok(FoundEntry {
            path: self,
            root,
            entry,
        })
    }

    fn find_root(&self, shared: &Shared) -> Result<FsRoot, ApiError> {
        shared.store.fs_root(self.turn)?.ok_or_else(|| {
            let message = format!(
                "neither turn {} nor a turn before it has a filesystem",
                self.turn
            );
            ApiError::not_found(message)
        })
    }

    /// Finds the entry at the path. The root directory has none, so this makes one up.
    fn find_entry(&self, shared: &Shared, root: FsRoot) -> Result<TreeEntry, ApiError> {
        let kind = TreeEntryKind::Directory;
        let mut at = TreeEntry {
            name: Vec::new(),
            kind,
            mode: 0,
            size: 0,
            hash: root.hash,
        };
        let directories = shared.store.open_directories();
        for segment in &self.segments {
            // A link is not followed: a target such as `..` could lead anywhere, or in a circle.
            if at.kind != TreeEntryKind::Directory {
                return Err(self.not_found());
            }
            let tree = blobs::read_blob_now(shared, &directories, at.hash)?;
            let found = find_entry(&tree, segment).map_err(|error| bad_tree(&error, at.hash))?;
            at = found.ok_or_else(|| self.not_found())?;
        }
        Ok(at)
    }

    fn to_text(&self) -> String {
        let segments: Vec<_> = self
            .segments
            .iter()
            .map(|segment| String::from_utf8_lossy(segment))
            .collect();
        segments.join("/")
    }

    fn not_found(&self) -> ApiError {
        let path = self.to_text();
        ApiError::not_found(format!("turn {} has no file `{path}`", self.turn))
    }
}

/// The entry at a path, and the root under which it was found.
struct FoundEntry {
    path: FsPath,
    root: FsRoot,
    entry: TreeEntry,
}

impl FoundEntry {
    /// The ancestor that has the root, if the requested turn has none.
    fn inherited_from(&self) -> Option<TurnId> {
        Some(self.root.turn).filter(|turn| *turn != self.path.turn)
    }

    fn respond(
        &self,
        shared: &Shared,
        content: &ContentReader,
        wanted: &Wanted,
    ) -> Result<Response, ApiError> {
        let bytes = blobs::read_blob_now(shared, content, self.entry.hash)?;
        Ok(match self.entry.kind {
            TreeEntryKind::File if wanted.format == FsFormat::Json => {
                self.file_json(shared, &bytes)?
            }
            TreeEntryKind::File => self.respond_with_bytes(bytes, wanted),
            TreeEntryKind::Directory => {
                axum::Json(json::FsNode::Directory(self.listing_shape(&bytes)?)).into_response()
            }
            TreeEntryKind::Symlink if wanted.wants_link_bytes() => {
                vary_by_accept(self.respond_with_bytes(bytes, wanted))
            }
            TreeEntryKind::Symlink => vary_by_accept(
                axum::Json(json::FsNode::Symlink(self.symlink_shape(&bytes))).into_response(),
            ),
        })
    }

    /// Lists a large directory under its permit. The response keeps its part of the permit until it
    /// has been sent.
    fn list_large_directory(
        &self,
        content: &ContentReader,
        permit: MemoryPermit,
    ) -> Result<Response, ApiError> {
        let tree = blobs::read_uncompressed(content, self.entry.hash)?;
        let listing = json::FsNode::Directory(self.listing_shape(&tree)?);
        let text = serde_json::to_vec(&listing).map_err(ApiError::internal)?;
        // Freed before the copy is made, because the permit does not cover all three at once.
        drop((tree, listing));
        Ok(respond_with_json_text(permit.hold_copy(text)?))
    }

    fn respond_with_bytes(&self, bytes: Bytes, wanted: &Wanted) -> Response {
        let inherited_from = self.inherited_from();
        // A later attach to a nearer turn would change what this path shows.
        let cache = if inherited_from.is_some() {
            REVALIDATE
        } else {
            IMMUTABLE
        };
        let content = Content {
            etag: blobs::etag(self.entry.hash),
            media_type: BYTES,
            cache,
            bytes,
        };
        let mut response = content.respond(&wanted.headers);
        if let Some(turn) = inherited_from {
            response
                .headers_mut()
                .insert(INHERITED_FROM, HeaderValue::from(turn.get()));
        }
        response
    }

    /// A file as JSON; a large one keeps its memory permit until it has been sent.
    fn file_json(&self, shared: &Shared, content: &[u8]) -> Result<Response, ApiError> {
        let base64_bytes = content.len().div_ceil(3) * 4;
        // The base64 text and the JSON around it are in memory at the same time.
        let needed = 2 * base64_bytes;
        let permit = (needed >= LARGE_FROM_BYTES)
            .then(|| shared.memory.acquire_now_beside(content.len(), needed))
            .transpose()?;
        let file = json::FsNode::File(self.file_shape(content));
        let text = serde_json::to_vec(&file).map_err(ApiError::internal)?;
        let text = match permit {
            Some(permit) => permit.hold(text),
            None => Bytes::from(text),
        };
        Ok(respond_with_json_text(text))
    }

    fn file_shape(&self, content: &[u8]) -> json::FsFile {
        json::FsFile {
            turn_id: self.path.turn.into(),
            inherited_from: self.inherited_from().map(json::Id::from),
            path: self.path.to_text(),
            name: String::from_utf8_lossy(&self.entry.name).into_owned(),
            kind: json::FsKind::File,
            mode: self.entry.mode,
            size: self.entry.size,
            hash: json::Hash(self.entry.hash),
            content_base64: STANDARD.encode(content),
        }
    }

    fn listing_shape(&self, tree: &[u8]) -> Result<json::FsListing, ApiError> {
        let hash = self.entry.hash;
        let entries = decode_tree(tree).map_err(|error| bad_tree(&error, hash))?;
        Ok(json::FsListing {
            turn_id: self.path.turn.into(),
            inherited_from: self.inherited_from().map(json::Id::from),
            path: self.path.to_text(),
            fs_root_hash: json::Hash(self.root.hash),
            hash: json::Hash(hash),
            entries: entries.iter().map(entry_shape).collect(),
        })
    }

    fn symlink_shape(&self, target: &[u8]) -> json::FsSymlink {
        json::FsSymlink {
            turn_id: self.path.turn.into(),
            inherited_from: self.inherited_from().map(json::Id::from),
            path: self.path.to_text(),
            kind: json::FsKind::Symlink,
            target: String::from_utf8_lossy(target).into_owned(),
            hash: json::Hash(self.entry.hash),
        }
    }
}

/// Tells caches that the form of the answer depends on the request's Accept.
fn vary_by_accept(mut response: Response) -> Response {
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("Accept"));
    response
}

fn entry_shape(entry: &TreeEntry) -> json::FsEntry {
    json::FsEntry {
        name: String::from_utf8_lossy(&entry.name).into_owned(),
        // JSON is text, so a name that is not UTF-8 comes a second time, byte for byte.
        name_b64: std::str::from_utf8(&entry.name)
            .is_err()
            .then(|| STANDARD.encode(&entry.name)),
        kind: match entry.kind {
            TreeEntryKind::File => json::FsKind::File,
            TreeEntryKind::Directory => json::FsKind::Directory,
            TreeEntryKind::Symlink => json::FsKind::Symlink,
        },
        mode: entry.mode,
        size: entry.size,
        hash: json::Hash(entry.hash),
    }
}
