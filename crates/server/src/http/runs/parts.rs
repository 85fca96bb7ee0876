//! The parts of requests: the run and the node that a path names, the JSON body, and the
//! idempotency key.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::{AUTHORIZATION, ORIGIN, USER_AGENT};
use axum::http::request::Parts;
use serde_json::Value;
use turnkeep_runtime::Run;
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_runtime::rejection::Rejection;
use turnkeep_runtime::words::ResolvedBy;
use turnkeep_types::BlobHash;
use turnkeep_wire::{CLI_USER_AGENT, ErrorCode, ErrorReason};

use super::super::extract::{
    bad_path, body_within, check_escapes, parse_json, read_idempotency_key,
};
use crate::error::ApiError;
use crate::runs::json::{self, BodyError, RequestBody, RunPlace};
use crate::runs::{RunError, RunHandle};
use crate::shared::Shared;

/// The longest body: the longest message with every character escaped, and some room.
const BODY_BYTES_MAX: usize = 8 << 20;

/// The run that a path names.
pub(super) struct RunAt(pub(super) Arc<RunHandle>);

impl FromRequestParts<Arc<Shared>> for RunAt {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let segments = path_segments(parts, shared).await?;
        find_run(shared, &segments, "run_id").map(Self)
    }
}

/// A run and one more id of the path, such as a node's.
pub(super) struct RunAndId {
    pub(super) handle: Arc<RunHandle>,
    /// The last segment that names a thing of the run.
    pub(super) id: String,
    /// The word behind it, such as `reset`.
    pub(super) action: Option<String>,
}

impl FromRequestParts<Arc<Shared>> for RunAndId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let segments = path_segments(parts, shared).await?;
        let handle = find_run(shared, &segments, "run_id")?;
        let find = |name: &str| {
            let found = segments.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone())
        };
        Ok(Self {
            handle,
            id: find("id").unwrap_or_default(),
            action: find("action"),
        })
    }
}

impl RunAndId {
    /// The node that the path names by its id or alias.
    pub(super) fn node(&self) -> Result<NodeId, ApiError> {
        let found = self
            .handle
            .read_live(|run| json::find_node_id(run, &self.id));
        found.ok_or_else(|| Rejection::UnknownNode(self.id.clone()).into())
    }

    /// The id as one of another kind.
    pub(super) fn parse<T: FromStr>(&self, what: &str) -> Result<T, ApiError> {
        parse_uuid(&self.id, what)
    }
}

/// Parses an id. A text that is no id names nothing.
pub(super) fn parse_uuid<T: FromStr>(text: &str, what: &str) -> Result<T, ApiError> {
    let unknown = || ApiError::not_found(format!("no {what} has the id `{}`", shorten(text)));
    text.parse().map_err(|_| unknown())
}

fn shorten(text: &str) -> String {
    text.chars().take(64).collect()
}

async fn path_segments(
    parts: &mut Parts,
    shared: &Arc<Shared>,
) -> Result<Vec<(String, String)>, ApiError> {
    check_escapes(parts)?;
    let segments = Path::<Vec<(String, String)>>::from_request_parts(parts, shared).await;
    Ok(segments.map_err(bad_path)?.0)
}

fn find_run(
    shared: &Shared,
    segments: &[(String, String)],
    name: &str,
) -> Result<Arc<RunHandle>, ApiError> {
    let segment = segments.iter().find(|(key, _)| key == name);
    let text = segment.map(|(_, text)| text.as_str()).unwrap_or_default();
    let id: RunId = parse_uuid(text, "run")?;
    Ok(shared.runs.get(id)?)
}

/// Where the owner answers an approval. Every caller of `/api` is the owner, so this only helps a
/// person to remember; nothing is allowed or refused by it.
pub(super) struct AnsweredFrom(pub(super) ResolvedBy);

impl<S: Sync> FromRequestParts<S> for AnsweredFrom {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let headers = &parts.headers;
        // A page of the UI has a cookie instead of a token, and browsers name its origin.
        let is_page = headers.contains_key(ORIGIN) && !headers.contains_key(AUTHORIZATION);
        let program = headers.get(USER_AGENT).and_then(|name| name.to_str().ok());
        let is_cli = program.is_some_and(|name| name.starts_with(CLI_USER_AGENT));
        Ok(Self(match (is_page, is_cli) {
            (true, _) => ResolvedBy::Web,
            (false, true) => ResolvedBy::CommandLine,
            (false, false) => ResolvedBy::Api,
        }))
    }
}

/// A request's JSON with its idempotency key. A request without a body has an empty object.
pub(super) struct RequestJson {
    document: Value,
    key: Option<String>,
    fingerprint: BlobHash,
}

impl FromRequest<Arc<Shared>> for RequestJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let key = read_idempotency_key(&request)?;
        // The same body on another route is another request, so the route is part of the fingerprint.
        let target = format!("{} {}\n", request.method(), request.uri().path());
        let bytes = body_within(request, shared, BODY_BYTES_MAX).await?;
        let fingerprint = BlobHash::of(&[target.as_bytes(), &bytes].concat());
        let document = if bytes.trim_ascii().is_empty() {
            Value::Object(serde_json::Map::new())
        } else {
            parse_json(&bytes, &shared.config.limits)?
        };
        Ok(Self {
            document,
            key,
            fingerprint,
        })
    }
}

impl RequestJson {
    /// Reads the body.
    pub(super) fn read<T: RequestBody>(&self) -> Result<T, BodyError> {
        json::read_body(&self.document)
    }

    /// The key for the run's log.
    pub(super) fn key(&self) -> Option<RequestKey> {
        let key = self.key.clone()?;
        Some(RequestKey {
            key,
            fingerprint: self.fingerprint,
        })
    }
}

/// Where a run's JSON is made.
pub(super) struct Viewer {
    artifacts_dir: PathBuf,
}

impl Viewer {
    pub(super) fn of(handle: &RunHandle) -> Self {
        Self {
            artifacts_dir: handle.artifacts_dir(),
        }
    }

    pub(super) fn place<'a>(&'a self, run: &'a Run) -> RunPlace<'a> {
        RunPlace {
            run: run.live.id,
            archive: &run.archive,
            artifacts_dir: &self.artifacts_dir,
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let message = error.to_string();
        match error {
            RunError::Rejected(rejection) => rejection.into(),
            RunError::Body(error) => error.into(),
            RunError::CannotAsk(refused) => Self::new(ErrorCode::Unprocessable, message)
                .with("path", "permissions.cliPermissionsMode")
                .with("program", refused.program),
            RunError::UnknownProgram(unknown) => Self::bad_request(message)
                .with("path", "providerName")
                .with("programs", unknown.known),
            RunError::UnknownRun(id) => Self::not_found(message).with("runId", id.to_string()),
            RunError::KeyReused => {
                Self::new(ErrorCode::Conflict, message).with_reason(ErrorReason::KeyReused)
            }
            RunError::Refusal(refusal) => refusal.into(),
            RunError::Read(error) => error.into(),
            RunError::TooLarge { .. } => Self::new(ErrorCode::TooLarge, message),
            RunError::Person(refused) => Self::bad_request(message).with("path", refused.path),
            RunError::Record { .. } | RunError::Unreadable(_) | RunError::Abandoned(_) => {
                Self::internal(message)
            }
        }
    }
}
