//! The answers that a connection still has to send, in the order of its requests.
//!
//! The store answers the commands of a commit group in reverse order. So a connection's oldest answer
//! comes last. When it wakes the task, all later answers are ready, and they leave in one write.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use turnkeep_store::{Appended, Created, Outcome};
use turnkeep_types::{BlobHash, ContextId};
use turnkeep_wire::message::{AttachFs, BatchAck, BatchAckTurn, ContextHead, TurnAck};
use turnkeep_wire::{Frame, Response};

use super::large_frame::LargeFrame;
use super::subscription::AcceptedSubscription;
use crate::error::ApiError;
use crate::handle::Answer;
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};

/// Identifies a request until it is answered.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) req_id: u64,
    pub(super) msg_type: u16,
    bytes: usize,
    /// The permit of its large answer.
    pub(super) permit: Option<MemoryPermit>,
}

impl Ticket {
    pub(super) fn from_frame(frame: &Frame) -> Self {
        let header = frame.header;
        Self {
            req_id: header.req_id,
            msg_type: header.msg_type,
            bytes: frame.payload.len(),
            permit: None,
        }
    }

    /// How much of the memory budget the request's frame holds.
    pub(super) fn held_bytes(&self) -> usize {
        if self.bytes >= LARGE_FROM_BYTES {
            self.bytes
        } else {
            0
        }
    }
}

/// The form of the answer to a command: the kind of request, and the values that the answer
/// repeats.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ack {
    Created,
    Forked,
    Turn,
    Batch(ContextId),
    FsAttached(AttachFs),
    BlobPut(BlobHash),
    BundlePut,
}

/// An answer that is ready to be sent.
pub(super) enum Settled {
    Response(Response),
    /// A response that was written as a whole frame.
    Encoded(BytesMut),
    /// A whole frame in pieces.
    Large(LargeFrame),
    Failure(ApiError),
    /// A subscription that begins when its acceptance has been written.
    Subscribed(AcceptedSubscription),
}

/// An answer that is ready, or that waits for the writer.
pub(super) enum Owed {
    Settled(Settled),
    Waiting { ack: Ack, answer: Answer },
}

/// The queue of a connection's answers.
#[derive(Default)]
pub(super) struct Replies {
    queue: VecDeque<(Ticket, Owed)>,
    bytes: usize,
}

impl Replies {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of requests and answers that the queue keeps alive.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, ticket: Ticket, owed: Owed) {
        self.bytes += owed_bytes(&ticket, &owed);
        self.queue.push_back((ticket, owed));
    }

    /// Polls for the oldest answer.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<(Ticket, Settled)> {
        let Some((ticket, owed)) = self.queue.front_mut() else {
            return Poll::Pending;
        };
        if let Owed::Waiting { ack, answer } = owed {
            let outcome = ready!(Pin::new(answer).poll(context));
            let settled = settle_outcome(*ack, outcome.map_err(ApiError::from));
            // The writer has consumed the request, so its bytes are free.
            self.bytes -= ticket.bytes;
            ticket.bytes = 0;
            *owed = Owed::Settled(settled);
        }
        match self.queue.pop_front() {
            Some((ticket, Owed::Settled(settled))) => {
                self.bytes -= settled_bytes(&ticket, &settled);
                Poll::Ready((ticket, settled))
            }
            _ => unreachable!("the oldest answer was settled above"),
        }
    }
}

fn owed_bytes(ticket: &Ticket, owed: &Owed) -> usize {
    match owed {
        Owed::Settled(settled) => settled_bytes(ticket, settled),
        Owed::Waiting { .. } => ticket.bytes,
    }
}

fn settled_bytes(ticket: &Ticket, settled: &Settled) -> usize {
    match settled {
        Settled::Encoded(bytes) => bytes.len() + ticket.bytes,
        Settled::Large(frame) => frame.len() + ticket.bytes,
        Settled::Response(_) | Settled::Failure(_) | Settled::Subscribed(_) => ticket.bytes,
    }
}

pub(super) fn settle_outcome(ack: Ack, outcome: Result<Outcome, ApiError>) -> Settled {
    match outcome.and_then(|outcome| response_to(ack, outcome)) {
        Ok(response) => Settled::Response(response),
        Err(error) => Settled::Failure(error),
    }
}

fn response_to(ack: Ack, outcome: Outcome) -> Result<Response, ApiError> {
    match (ack, outcome) {
        (Ack::Created, Outcome::Created(created)) => {
            Ok(Response::ContextCreated(head_of(&created)))
        }
        (Ack::Forked, Outcome::Created(created)) => Ok(Response::ContextForked(head_of(&created))),
        (Ack::Turn, Outcome::Appended(appended)) => turn_ack(&appended),
        (Ack::Batch(context), Outcome::Appended(appended)) => Ok(batch_ack(context, &appended)),
        (Ack::FsAttached(attached), Outcome::FsAttached) => Ok(Response::FsAttached(attached)),
        (Ack::BlobPut(hash), Outcome::BlobPut { was_new }) => {
            Ok(Response::BlobPut { hash, was_new })
        }
        (Ack::BundlePut, Outcome::BundlePut { was_new }) => Ok(Response::BundlePut {
            status: if was_new { 201 } else { 204 },
        }),
        (ack, outcome) => Err(ApiError::internal(format!(
            "{ack:?} was answered by {outcome:?}"
        ))),
    }
}

fn head_of(created: &Created) -> ContextHead {
    ContextHead {
        context: created.context,
        head: created.head,
        depth: created.head_depth,
    }
}

fn turn_ack(appended: &Appended) -> Result<Response, ApiError> {
    let [turn] = &appended.turns[..] else {
        return Err(ApiError::internal(format!(
            "one turn was appended as {}",
            appended.turns.len()
        )));
    };
    let ack = TurnAck {
        context: turn.context,
        turn: turn.turn,
        depth: turn.depth,
        hash: turn.hash,
    };
    Ok(Response::TurnAppended(ack))
}

fn batch_ack(context: ContextId, appended: &Appended) -> Response {
    let rows = appended.turns.iter();
    let turns = rows
        .map(|row| BatchAckTurn {
            turn: row.turn,
            depth: row.depth,
            hash: row.hash,
        })
        .collect();
    Response::BatchAppended(BatchAck { context, turns })
}
