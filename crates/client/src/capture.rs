//! Keeps captured turns over one connection. `turnkeep_wire::capture` has their format.
//!
//! The connection publishes the type once and looks up the context of each session once. Turns are
//! pipelined: [`CaptureConnection::keep`] sends all of them before it waits for the first answer,
//! so that the server can sync them together. What is cached belongs to the connection: another
//! connection may reach another store. So a `CaptureConnection` never dials again. When it is lost,
//! the caller opens a new one and keeps the same turns again; the idempotency keys make that safe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use turnkeep_types::broker::FoundTurn;
use turnkeep_types::{Compression, ContextId};
use turnkeep_wire::capture::{BUNDLE, BUNDLE_ID, context_key, payload, turn_key, turn_type};
use turnkeep_wire::message::{AppendTurn, ContextHead, CreateContext, PutBundle, TurnAck};
use turnkeep_wire::{Request, Text};

use crate::client::{Client, Repeat};
use crate::compose;
use crate::connection::ServerConnection;
use crate::error::Error;
use crate::pending::{Answered, Pending};

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

/// A turn that was sent and waits for its answer.
struct SentTurn {
    context: ContextId,
    answer: Pending<TurnAck>,
}

impl CaptureConnection {
    /// Takes the client's connection and publishes the type of captured turns.
    pub async fn open(client: Client) -> Result<Self, Error> {
        let connection = client.connection().await?;
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
        self.connection.lost().is_some()
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
    /// Turns become durable in their order. If the server refuses one for a while, it is sent again
    /// after those behind it.
    pub async fn keep(&self, turns: &[FoundTurn]) -> Vec<Result<Kept, Error>> {
        let mut all_sent = Vec::with_capacity(turns.len());
        for turn in turns {
            all_sent.push(self.send_turn(turn).await);
        }
        let mut all_kept = Vec::with_capacity(turns.len());
        for (turn, sent) in turns.iter().zip(all_sent) {
            let kept = match sent {
                Ok(sent) => sent.kept().await,
                Err(error) => Err(error),
            };
            all_kept.push(match kept {
                Err(error) if error.is_retryable() && !self.is_lost() => self.resend(turn).await,
                kept => kept,
            });
        }
        all_kept
    }

    async fn send_turn(&self, turn: &FoundTurn) -> Result<SentTurn, Error> {
        let context = self.find_context(&turn.session).await?.id;
        let request = append_request(context, turn)?;
        let answer = self
            .client
            .submit_over(&self.connection, &request, Repeat::Safe)
            .await?;
        Ok(SentTurn { context, answer })
    }

    /// Sends a turn again that the server refused for a while, with growing pauses.
    async fn resend(&self, turn: &FoundTurn) -> Result<Kept, Error> {
        let context = self.find_context(&turn.session).await?.id;
        let ack = self.call(append_request(context, turn)?).await?;
        Ok(Kept { context, ack })
    }

    /// Sends a request over this connection and repeats it while the server is busy. All requests
    /// of a capture are idempotent, by their content or by a key.
    async fn call<T: Answered>(&self, request: Request) -> Result<T, Error> {
        self.client
            .call_over(&self.connection, &request, Repeat::Safe)
            .await
    }

    fn lock_contexts(&self) -> MutexGuard<'_, HashMap<String, ContextId>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SentTurn {
    async fn kept(self) -> Result<Kept, Error> {
        Ok(Kept {
            context: self.context,
            ack: self.answer.await?,
        })
    }
}

fn append_request(context: ContextId, turn: &FoundTurn) -> Result<Request, Error> {
    let payload = payload(turn);
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
