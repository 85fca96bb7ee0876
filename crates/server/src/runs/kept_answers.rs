//! Answers that are kept for callers who repeat a request.
//!
//! What such a request did is in files and not in the run, so its answer cannot be made again from
//! the state. With an idempotency key the answer becomes an artifact, and the key names it. A server
//! that is killed after the files changed and before that carries the request out again: an apply
//! finds nothing new then, and a revert finds the files as they were before the turn.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use turnkeep_runtime::Run;
use turnkeep_runtime::decide::{self, Surroundings};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::request::MadeId;

use super::error::RunError;
use super::run_handle::{Decided, RunHandle};

/// The answer that a request got before.
pub(super) async fn find_answer<T: DeserializeOwned>(
    handle: &Arc<RunHandle>,
    key: Option<&RequestKey>,
) -> Result<Option<T>, RunError> {
    match handle.find_earlier(key)? {
        Some(earlier) => read_answer(handle, earlier.made).await.map(Some),
        None => Ok(None),
    }
}

/// Keeps the answer to a request under a name. If the same request was faster, its answer counts.
pub(super) async fn keep_answer<T: Serialize + DeserializeOwned>(
    handle: &Arc<RunHandle>,
    key: Option<RequestKey>,
    name: &'static str,
    answer: T,
) -> Result<T, RunError> {
    if key.is_none() {
        return Ok(answer);
    }
    let text = encode_answer(&answer)?;
    let note = move |run: &Run, around: Surroundings<'_>| {
        Ok(decide::note_answer(run, around, name, text.clone()))
    };
    match handle.decide_once(key, note).await? {
        Decided::Now(()) => Ok(answer),
        Decided::Before { made, .. } => read_answer(handle, made).await,
    }
}

/// An answer as the content of an artifact.
pub(super) fn encode_answer<T: Serialize>(answer: &T) -> Result<Bytes, RunError> {
    let text = serde_json::to_vec(answer);
    let text = text.map_err(|error| RunError::Abandoned(error.to_string()))?;
    Ok(Bytes::from(text))
}

/// Reads the answer that an earlier request made.
pub(super) async fn read_answer<T: DeserializeOwned>(
    handle: &Arc<RunHandle>,
    made: Option<MadeId>,
) -> Result<T, RunError> {
    // A request of another kind made something else.
    let Some(MadeId::Artifact(id)) = made else {
        return Err(RunError::KeyReused);
    };
    let content = handle.read(|run| run.archive.artifact(id).map(|artifact| artifact.content));
    let bytes = handle
        .read_blob(content.ok_or(RunError::KeyReused)?)
        .await?;
    serde_json::from_slice(&bytes).map_err(|_| RunError::KeyReused)
}
