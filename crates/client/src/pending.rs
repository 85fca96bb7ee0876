//! A request that has been sent and not yet been answered.

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
use crate::connection::Connection;
use crate::error::{Error, Lost};

/// The answer to come. Dropping it does not undo the request.
#[must_use = "the request is on its way, but nobody learns what came of it"]
pub struct Pending<T> {
    answer: oneshot::Receiver<Result<Frame, Error>>,
    /// Keeps the connection until the answer is here, even if the client goes.
    _connection: Arc<Connection>,
    form: ItemForm,
    repeat: Repeat,
    answered: PhantomData<fn() -> T>,
}

impl<T: Answered> Pending<T> {
    pub(crate) fn new(
        answer: oneshot::Receiver<Result<Frame, Error>>,
        connection: Arc<Connection>,
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
        let answer = frame.and_then(|frame| decode(frame, self.form));
        Poll::Ready(answer.map_err(|error| self.repeat.explain(error)))
    }
}

fn decode<T: Answered>(frame: Frame, form: ItemForm) -> Result<T, Error> {
    match Response::decode(frame, form)? {
        Response::Error(failure) => Err(Error::Server((&failure).into())),
        response => T::from_response(response)
            .map_err(|other| Error::WrongAnswer(other.msg_type().to_wire())),
    }
}

/// What a request is answered with.
pub trait Answered: Sized {
    /// Takes the answer out of its response; gives back a response to something else.
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
