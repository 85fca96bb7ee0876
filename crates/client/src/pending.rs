//! A request that was sent and waits for its response.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::oneshot;
use turnkeep_types::BlobHash;
use turnkeep_wire::message::{AttachFs, BatchAck, ContextHead, Item, ItemForm, TurnAck};
use turnkeep_wire::{Frame, Response};

use crate::client::Repeat;
use crate::connection::ServerConnection;
use crate::error::{Error, Lost};

/// A future that gives the response. Dropping it does not undo the request.
#[must_use = "without it, the outcome of the request stays unknown"]
pub struct Pending<T> {
    answer: oneshot::Receiver<Result<Frame, Error>>,
    /// Keeps the connection open until the response arrives, even if the client is dropped.
    _connection: Arc<ServerConnection>,
    form: ItemForm,
    repeat: Repeat,
    answered: PhantomData<fn() -> T>,
}

impl<T: Answered> Pending<T> {
    pub(crate) fn new(
        answer: oneshot::Receiver<Result<Frame, Error>>,
        connection: Arc<ServerConnection>,
        form: ItemForm,
        repeat: Repeat,
    ) -> Self {
        Self {
            answer,
            _connection: connection,
            form,
            repeat,
            answered: PhantomData,
        }
    }
}

impl<T: Answered> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(context) else {
            return Poll::Pending;
        };
        let frame = answer.unwrap_or(Err(Error::Lost(Lost::Closed)));
        let answer = frame.and_then(|frame| decode_answer(frame, self.form));
        Poll::Ready(answer.map_err(|error| self.repeat.to_caller_error(error)))
    }
}

fn decode_answer<T: Answered>(frame: Frame, form: ItemForm) -> Result<T, Error> {
    match Response::decode(frame, form)? {
        Response::Error(failure) => Err(Error::Server((&failure).into())),
        response => T::from_response(response)
            .map_err(|other| Error::WrongAnswer(other.msg_type().to_wire())),
    }
}

/// The content of a response.
pub trait Answered: Sized {
    /// Takes the content out of its response. Returns a response of another kind unchanged.
    fn from_response(response: Response) -> Result<Self, Box<Response>>;
}

macro_rules! answered {
    ($($answer:ty: $($pattern:pat_param)|+ => $value:expr;)*) => {
        $(impl Answered for $answer {
            fn from_response(response: Response) -> Result<Self, Box<Response>> {
                match response {
                    $($pattern)|+ => Ok($value),
                    other => Err(Box::new(other)),
                }
            }
        })*
    };
}

answered! {
    ContextHead: Response::ContextCreated(head) | Response::ContextForked(head) | Response::Head(head) => head;
    TurnAck: Response::TurnAppended(ack) => ack;
    BatchAck: Response::BatchAppended(ack) => ack;
    Vec<Item>: Response::Last(items) | Response::Before(items) | Response::Range(items) => items;
    Bytes: Response::Blob(bytes) => bytes;
    AttachFs: Response::FsAttached(attached) => attached;
    (BlobHash, bool): Response::BlobPut { hash, was_new } => (hash, was_new);
    bool: Response::BundlePut { status } => status == 201;
    Vec<bool>: Response::HasBlobs(present) => present;
}
