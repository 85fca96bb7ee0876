//! Keeps captured turns over one connection. `turnkeep_wire::capture` has their format.
//!
//! The connection publishes the type once and looks up the context of each session once. The turns
//! of a session are sent one after the other, so that they keep their order within one call.
//! Concurrent callers share the connection and do not wait for each other.
//!
//! What is cached belongs to the connection: another connection may reach another store. So a
//! `CaptureConnection` never dials again. When it is lost, the caller opens a new one and keeps the
//! same turns again; the idempotency keys make that safe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use turnkeep_types::broker::FoundTurn;
use turnkeep_types::{Compression, ContextId};
use turnkeep_wire::capture::{
    BUNDLE, BUNDLE_ID, context_key, encode_turn_payload, turn_key, turn_type,
};
use turnkeep_wire::message::{AppendTurn, ContextHead, CreateContext, PutBundle, TurnAck};
use turnkeep_wire::{Request, Text};

use crate::client::{Client, Repeat};
use crate::compose;
use crate::connection::ServerConnection;
use crate::error::Error;
use crate::pending::Answered;

/// Payloads of this size and more are sent compressed.
const COMPRESS_FROM_BYTES: usize = 4096;
/// The most sessions whose context is cached. Looking a context up again is safe, only slower.
const CONTEXTS_MAX: usize = 4096;

/// A captured turn in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The context of its session.
    pub context: ContextId,
    /// The turn in the store.
    pub ack: TurnAck,
}

/// The context of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionContext {
    /// Its id.
    pub id: ContextId,
    /// Whether this look-up was the connection's first and the context had no turn yet.
    pub is_new: bool,
}

/// One connection over which captured turns are kept.
pub struct CaptureConnection {
    client: Client,
    connection: Arc<ServerConnection>,
    contexts: Mutex<HashMap<String, ContextId>>,
}

impl CaptureConnection {
    /// Takes the client's connection and publishes the type of captured turns.
    pub async fn open(client: Client) -> Result<Self, Error> {
        let connection = client.find_or_dial().await?;
        let opened = Self {
            client,
            connection,
            contexts: Mutex::default(),
        };
        let put = PutBundle {
            id: Text::from(BUNDLE_ID),
            json: Bytes::from_static(BUNDLE.as_bytes()),
        };
        // Once per connection is enough: published bundles never change.
        let _was_new: bool = opened.call(Request::PutBundle(put)).await?;
        Ok(opened)
    }

    /// Whether the connection has ended.
    pub fn is_lost(&self) -> bool {
        self.connection.lost_reason().is_some()
    }

    /// Returns the session's context. The first call creates it, or finds it by its key.
    pub async fn find_context(&self, session: &str) -> Result<SessionContext, Error> {
        if let Some(id) = self.lock_contexts().get(session) {
            return Ok(SessionContext {
                id: *id,
                is_new: false,
            });
        }
        let create = CreateContext {
            base: None,
            key: Some(context_key(session)),
        };
        let created: ContextHead = self.call(Request::CreateContext(create)).await?;
        // A repeated creation returns the first head, so the current one needs its own request.
        let current: ContextHead = self.call(Request::GetHead(created.context)).await?;
        let mut contexts = self.lock_contexts();
        // Clearing is enough: the keys find the contexts again.
        if contexts.len() >= CONTEXTS_MAX {
            contexts.clear();
        }
        contexts.insert(session.to_owned(), created.context);
        Ok(SessionContext {
            id: created.context,
            is_new: current.head.is_none(),
        })
    }

    /// Appends each turn to the context of its session, once, and waits until all are durable.
    /// Returns one result per turn.
    ///
    /// If the server still refuses a turn for now after all tries, the later turns of its session
    /// are not sent and fail with the same error.
    pub async fn keep(&self, turns: &[FoundTurn]) -> Vec<Result<Kept, Error>> {
        let mut refused: HashMap<&str, Error> = HashMap::new();
        let mut all_kept = Vec::with_capacity(turns.len());
        for turn in turns {
            // A turn must not be in flight together with the one before it: the server may refuse
            // the first for lack of space and accept the second, and then a retry of the first
            // would be appended behind the second.
            let kept = match refused.get(turn.session.as_str()) {
                Some(error) => Err(error.clone()),
                None => self.keep_turn(turn).await,
            };
            if let Err(error) = &kept
                && may_be_kept_later(error)
            {
                refused.insert(&turn.session, error.clone());
            }
            all_kept.push(kept);
        }
        all_kept
    }

    async fn keep_turn(&self, turn: &FoundTurn) -> Result<Kept, Error> {
        let context = self.find_context(&turn.session).await?.id;
        let ack = self.call(append_request(context, turn)?).await?;
        Ok(Kept { context, ack })
    }

    /// Sends a request over this connection and repeats it while the server is busy. All requests
    /// of a capture are idempotent, by their content or by a key.
    async fn call<T: Answered>(&self, request: Request) -> Result<T, Error> {
        self.client
            .call_with_retries(Some(&self.connection), &request, Repeat::Safe)
            .await
    }

    fn lock_contexts(&self) -> MutexGuard<'_, HashMap<String, ContextId>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a turn may be sent again. One that can never be kept holds up no other turn.
fn may_be_kept_later(error: &Error) -> bool {
    match error {
        Error::Server(refusal) => refusal.is_retryable(),
        Error::TooLarge { .. } => false,
        _ => true,
    }
}

fn append_request(context: ContextId, turn: &FoundTurn) -> Result<Request, Error> {
    let payload = encode_turn_payload(turn);
    let form = if payload.len() < COMPRESS_FROM_BYTES {
        Compression::None
    } else {
        Compression::Zstd
    };
    let sent = compose::turn(&turn_type(), payload, form)?;
    Ok(Request::AppendTurn(AppendTurn {
        key: turn_key(turn),
        ..compose::append(context, sent)
    }))
}
