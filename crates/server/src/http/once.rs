//! Requests that a client may repeat, whose answers only memory keeps.
//!
//! A request with an `Idempotency-Key` is carried out once. A repeat gets the first answer, also while
//! the first request is under way; the same key with another request is rejected. A request goes on
//! to its end if its client goes away, so that a retry finds its answer. A request that fails frees
//! its key: repeating it tries again.
//!
//! The memory holds the newest [`ANSWERS_MAX`] answers and ends with the process. That fits actions on
//! captured turns, which live as long.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{FromRequest, Request};
use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use turnkeep_types::BlobHash;
use turnkeep_wire::{ErrorCode, ErrorReason};

use super::content::respond_with_json_text;
use super::contexts::REPLAYED;
use super::extract::{Small, read_idempotency_key};
use crate::error::ApiError;
use crate::shared::Shared;

/// How many answers are kept. Each has a few hundred bytes.
const ANSWERS_MAX: usize = 1000;

/// The answer to a request, once there is one. An error is kept for those who wait for it now.
type Answer = Option<Result<Bytes, Arc<ApiError>>>;

/// The answers to recent requests, by their keys.
#[derive(Default)]
pub(crate) struct RecentAnswers {
    /// Oldest first.
    requests: Mutex<VecDeque<KnownRequest>>,
}

/// A request under way, or one that succeeded.
struct KnownRequest {
    key: String,
    fingerprint: BlobHash,
    answer: watch::Receiver<Answer>,
}

/// What a key says about a request.
enum Lookup {
    /// It is new, and its answer goes here.
    New(watch::Sender<Answer>),
    /// It repeats another one, whose answer comes here.
    Repeated(watch::Receiver<Answer>),
    /// The key belongs to another request.
    Reused,
}

impl RecentAnswers {
    fn look_up(&self, key: &str, fingerprint: BlobHash) -> Lookup {
        let mut requests = self.lock();
        // A task that was abandoned leaves a request that never gets an answer.
        requests.retain(|known| known.is_answered() || known.answer.has_changed().is_ok());
        match requests.iter().find(|known| known.key == key) {
            Some(known) if known.fingerprint != fingerprint => Lookup::Reused,
            Some(known) => Lookup::Repeated(known.answer.clone()),
            None => {
                let (sender, answer) = watch::channel(None);
                // Requests under way are as few as connections, so they are never dropped.
                if requests.len() >= ANSWERS_MAX
                    && let Some(oldest) = requests.iter().position(KnownRequest::is_answered)
                {
                    requests.remove(oldest);
                }
                requests.push_back(KnownRequest {
                    key: key.to_owned(),
                    fingerprint,
                    answer,
                });
                Lookup::New(sender)
            }
        }
    }

    fn forget(&self, key: &str) {
        self.lock().retain(|known| known.key != key);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KnownRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownRequest {
    fn is_answered(&self) -> bool {
        self.answer.borrow().is_some()
    }
}

/// A POST with a small body that may have an idempotency key.
pub(crate) struct OnceRequest {
    key: Option<String>,
    fingerprint: BlobHash,
    body: Bytes,
}

impl FromRequest<Arc<Shared>> for OnceRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let key = read_idempotency_key(&request)?;
        let target = format!("{} {}\n", request.method(), request.uri().path());
        let Small(body) = Small::from_request(request, shared).await?;
        let fingerprint = BlobHash::of(&[target.as_bytes(), &body].concat());
        Ok(Self {
            key,
            fingerprint,
            body,
        })
    }
}

impl OnceRequest {
    /// The body.
    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    /// Carries the request out, or waits for the answer to the one that it repeats.
    pub(crate) async fn answer<T: Serialize>(
        self,
        shared: &Arc<Shared>,
        act: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<Response, ApiError> {
        let act = async { serde_json::to_vec(&act.await?).map_err(ApiError::internal) };
        let Some(key) = self.key else {
            return Ok(respond_with_json_text(act.await?));
        };
        let (answer, is_repeat) = match shared.recent_answers.look_up(&key, self.fingerprint) {
            Lookup::Reused => return Err(key_reused()),
            Lookup::Repeated(answer) => (answer, true),
            Lookup::New(sender) => {
                let answer = sender.subscribe();
                let task = Arc::clone(shared);
                // A task of its own goes on when the client has gone away.
                shared.spawn(async move {
                    let outcome = act.await.map(Bytes::from).map_err(Arc::new);
                    // Before the answer: a client that tries again at once must not get this failure.
                    if outcome.is_err() {
                        task.recent_answers.forget(&key);
                    }
                    sender.send_replace(Some(outcome));
                });
                (answer, false)
            }
        };
        respond(answer, is_repeat).await
    }
}

async fn respond(
    mut answer: watch::Receiver<Answer>,
    is_repeat: bool,
) -> Result<Response, ApiError> {
    let answered = answer.wait_for(Option::is_some).await;
    // Without an answer the task was abandoned, which only the end of the server does.
    let outcome = answered.ok().and_then(|answer| answer.clone());
    let text = match outcome.ok_or_else(ApiError::shutting_down)? {
        Ok(text) => text,
        Err(error) => return Err(same_error(&error)),
    };
    let mut response = respond_with_json_text(text);
    if is_repeat {
        let replayed = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED, replayed);
    }
    Ok(response)
}

/// The error for one more caller.
fn same_error(error: &ApiError) -> ApiError {
    ApiError {
        code: error.code,
        message: error.message.clone(),
        details: error.details.clone(),
        source: error
            .source
            .as_ref()
            .map(|source| source.to_string().into()),
    }
}

fn key_reused() -> ApiError {
    let message = "this idempotency key was used before for a different request";
    ApiError::new(ErrorCode::Conflict, message).with_reason(ErrorReason::KeyReused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(text: &str) -> BlobHash {
        BlobHash::of(text.as_bytes())
    }

    fn begin(answers: &RecentAnswers, key: &str) -> watch::Sender<Answer> {
        match answers.look_up(key, fingerprint("a")) {
            Lookup::New(sender) => sender,
            Lookup::Repeated(_) | Lookup::Reused => panic!("`{key}` is not new"),
        }
    }

    fn finish(sender: &watch::Sender<Answer>, text: &'static str) {
        sender.send_replace(Some(Ok(Bytes::from_static(text.as_bytes()))));
    }

    #[tokio::test]
    async fn a_repeat_waits_for_the_request_under_way() {
        let answers = RecentAnswers::default();
        let first = begin(&answers, "k");
        let Lookup::Repeated(answer) = answers.look_up("k", fingerprint("a")) else {
            panic!("the first request is under way");
        };
        let waiting = tokio::spawn(respond(answer, true));
        finish(&first, "{}");
        let response = waiting.await.unwrap().unwrap();
        assert_eq!(response.headers()[REPLAYED], "true");
        assert!(matches!(
            answers.look_up("k", fingerprint("another body")),
            Lookup::Reused
        ));
    }

    #[tokio::test]
    async fn a_failure_reaches_all_who_wait_and_frees_the_key() {
        let answers = RecentAnswers::default();
        let first = begin(&answers, "k");
        let Lookup::Repeated(answer) = answers.look_up("k", fingerprint("a")) else {
            panic!("the first request is under way");
        };
        answers.forget("k");
        first.send_replace(Some(Err(Arc::new(ApiError::not_found("gone")))));
        let error = respond(answer, true).await.unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::NotFound, "gone")
        );
        begin(&answers, "k");
    }

    #[tokio::test]
    async fn a_request_that_was_abandoned_frees_its_key_and_leaves_nobody_waiting() {
        let answers = RecentAnswers::default();
        let first = begin(&answers, "k");
        let answer = first.subscribe();
        drop(first);
        assert_eq!(
            respond(answer, false).await.unwrap_err().code,
            ErrorCode::Unavailable
        );
        begin(&answers, "k");
    }

    #[test]
    fn the_oldest_answer_goes_first_and_never_a_request_under_way() {
        let answers = RecentAnswers::default();
        let under_way = begin(&answers, "under way");
        for number in 0..ANSWERS_MAX {
            finish(&begin(&answers, &number.to_string()), "{}");
        }
        let is_known = |key: &str| {
            let requests = answers.lock();
            requests.iter().any(|known| known.key == key)
        };
        assert_eq!(answers.lock().len(), ANSWERS_MAX);
        assert!(is_known("under way"));
        assert!(!is_known("0"));
        assert!(is_known("1"));
        drop(under_way);
    }
}
