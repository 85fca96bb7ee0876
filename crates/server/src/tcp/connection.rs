//! One connection: bytes in, frames, requests, answers, bytes out, as one task.
//!
//! The loop matches a closed [`Event`]. What may be taken from the peer is bounded by the requests
//! and bytes that are owed to it and by the bytes that it has not read; beyond that it is not read
//! from, and TCP does the rest. A large frame waits for a memory permit, and is refused when none
//! comes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::WaitForCancellationFutureOwned;
use turnkeep_wire::message::{Hello, Subscribe, encode_failure};
use turnkeep_wire::{ErrorCode, Frame, FrameTooLong, Header, MsgType, Request, Response};

use super::Tcp;
use super::dispatch::{Slow, Step, settle};
use super::greeting::{self, GREETING_BYTES_MAX};
use super::inbox::Inbox;
use super::large_frame::LargeFrame;
use super::outbox::{Outbox, UNREAD_BYTES_MAX};
use super::replies::{Owed, Replies, Settled, Ticket};
use super::subscription::{Chunk, Subscriptions};
use super::watchdog::{Activity, Late, Watchdog};
use crate::error::ApiError;
use crate::memory::{MemoryPermit, WantedPermit};
use crate::unauthenticated::Newcomer;

/// Requests that a connection may have in flight.
const IN_FLIGHT_REQUESTS_MAX: usize = 1024;
/// Bytes of requests and answers that may wait in a connection's queue.
const IN_FLIGHT_BYTES_MAX: usize = 4 << 20;
/// As many of them need no memory permit.
const IN_FLIGHT_BYTES_FREE: usize = 512 << 10;
/// How long a peer that has hung up may take to let us do so too.
const ENDED_LINGER: Duration = Duration::from_secs(1);
/// How long a peer that we hang up on may take to read why.
const REFUSED_LINGER: Duration = Duration::from_secs(1);
/// How long a peer may take to read its last answers when the server stops.
const STOPPED_LINGER: Duration = Duration::from_millis(100);

/// What can happen to a connection.
enum Event {
    Settled(Ticket, Settled),
    Finished(Ticket, Owed),
    Permit(WantedPermit, Result<MemoryPermit, ApiError>),
    Delivered(Chunk),
    Wrote(io::Result<()>),
    Received(io::Result<usize>),
    Stopping,
    Late(Late),
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first frame must be a HELLO with the token.
    Greeting,
    /// Requests are taken.
    Open,
    /// The server stops: what is owed is answered, everything else is refused.
    Stopping,
    /// Nothing more is taken: what is owed leaves, then the connection ends.
    Closing,
}

/// A wait for the permit of the large frame that is arriving.
struct PermitWait {
    wanted: WantedPermit,
    permit: Pin<Box<dyn Future<Output = Result<MemoryPermit, ApiError>> + Send>>,
}

/// One connection.
pub(super) struct Connection<S> {
    pub(super) tcp: Arc<Tcp>,
    pub(super) session_id: u64,
    stream: S,
    phase: Phase,
    /// Until a token was shown.
    newcomer: Option<Newcomer>,
    /// Set when we end the connection, not the peer: how long it may take to read our last words.
    linger: Option<Duration>,
    inbox: Inbox,
    outbox: Outbox,
    replies: Replies,
    slow: Option<Slow>,
    subscriptions: Subscriptions,
    permit_wait: Option<PermitWait>,
    /// The permit for many requests and answers, each of them small, that wait in this connection.
    in_flight_permit: Option<MemoryPermit>,
    watchdog: Watchdog,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    pub(super) fn new(stream: S, tcp: Arc<Tcp>, newcomer: Option<Newcomer>) -> Self {
        let config = &tcp.shared.config;
        let phase = if config.auth.is_off() {
            Phase::Open
        } else {
            Phase::Greeting
        };
        Self {
            session_id: tcp.next_session(),
            stream,
            phase,
            newcomer,
            linger: None,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            replies: Replies::default(),
            slow: None,
            subscriptions: Subscriptions::default(),
            permit_wait: None,
            in_flight_permit: None,
            watchdog: Watchdog::new(&config.timeouts),
            stopping: Box::pin(tcp.shared.stopping.clone().cancelled_owned()),
            tcp,
        }
    }

    /// Serves the connection until it ends.
    pub(super) async fn run(mut self) -> io::Result<()> {
        while !self.is_done() {
            match poll_fn(|context| self.poll_event(context)).await {
                Event::Settled(ticket, settled) => self.emit(ticket, settled),
                Event::Finished(ticket, owed) => self.finished(ticket, owed),
                Event::Permit(wanted, permit) => self.on_permit(wanted, permit),
                Event::Delivered(chunk) => self.deliver(chunk),
                Event::Wrote(written) => {
                    written?;
                    self.watchdog.wrote();
                }
                Event::Received(received) => self.received(received?),
                Event::Stopping => self.stop(),
                Event::Late(late) => {
                    tracing::debug!(session = self.session_id, %late, "gave up on a connection");
                    return Ok(());
                }
            }
            self.take_frames();
        }
        self.close().await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(event) = self.poll_own_work(context) {
            return Poll::Ready(event);
        }
        if let Poll::Ready(written) = self.outbox.poll_write(&mut self.stream, context) {
            return Poll::Ready(Event::Wrote(written));
        }
        if self.is_reading()
            && let Poll::Ready(received) = self.inbox.poll_read(&mut self.stream, context)
        {
            return Poll::Ready(Event::Received(received));
        }
        self.watchdog
            .poll(self.activity(), context)
            .map(Event::Late)
    }

    /// Everything but the socket and the clock.
    fn poll_own_work(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if matches!(self.phase, Phase::Greeting | Phase::Open)
            && self.stopping.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Event::Stopping);
        }
        if let Some(slow) = &mut self.slow
            && let Poll::Ready((ticket, owed)) = slow.as_mut().poll(context)
        {
            return Poll::Ready(Event::Finished(ticket, owed));
        }
        if let Some(wait) = &mut self.permit_wait
            && let Poll::Ready(permit) = wait.permit.as_mut().poll(context)
        {
            return Poll::Ready(Event::Permit(wait.wanted, permit));
        }
        if let Poll::Ready((ticket, settled)) = self.replies.poll_next(context) {
            return Poll::Ready(Event::Settled(ticket, settled));
        }
        if self.outbox.has_capacity() {
            return self.subscriptions.poll_chunk(context).map(Event::Delivered);
        }
        Poll::Pending
    }

    fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Stopping | Phase::Closing)
            && self.slow.is_none()
            && self.replies.is_empty()
            && !self.outbox.is_writing()
    }

    /// Whether another request may be taken.
    fn has_capacity(&self) -> bool {
        self.slow.is_none()
            && self.replies.len() < IN_FLIGHT_REQUESTS_MAX
            && self.replies.bytes() < IN_FLIGHT_BYTES_MAX
            && self.outbox.has_capacity()
            && (self.in_flight_permit.is_some() || self.in_flight_bytes() < IN_FLIGHT_BYTES_FREE)
    }

    fn in_flight_bytes(&self) -> usize {
        self.replies.bytes() + self.outbox.unread_bytes()
    }

    /// Takes or gives back the permit for much that waits. Nothing waits for this permit: without
    /// it the connection takes no more requests until the ones that it has are answered.
    fn cover_in_flight(&mut self) {
        if self.in_flight_bytes() < IN_FLIGHT_BYTES_FREE {
            self.in_flight_permit = None;
        } else if self.in_flight_permit.is_none() {
            self.in_flight_permit = self
                .tcp
                .shared
                .memory
                .try_acquire(IN_FLIGHT_BYTES_MAX + UNREAD_BYTES_MAX);
        }
    }

    fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Greeting | Phase::Open)
            && self.permit_wait.is_none()
            && self.has_capacity()
    }

    fn activity(&self) -> Activity {
        Activity {
            reading: self.is_reading(),
            owing: !self.replies.is_empty(),
            writing: self.outbox.is_writing(),
            subscribed: !self.subscriptions.is_empty(),
            holding: self.outbox.holds_permits() || self.subscriptions.holds_permit(),
        }
    }

    fn received(&mut self, bytes: usize) {
        if bytes == 0 {
            self.phase = Phase::Closing;
            self.subscriptions = Subscriptions::default();
        }
    }

    /// Takes every whole frame that may be taken now.
    fn take_frames(&mut self) {
        let mut taken = false;
        self.cover_in_flight();
        while self.phase != Phase::Closing && self.permit_wait.is_none() && self.has_capacity() {
            match self.inbox.take(self.frame_bytes_max()) {
                Ok(Some(frame)) => self.on_frame(frame),
                Ok(None) => {
                    self.seek_permit();
                    break;
                }
                Err(too_long) => self.refuse_frame(too_long),
            }
            taken = true;
            self.cover_in_flight();
        }
        if taken {
            self.inbox.shed();
            self.watchdog.took_frames(!self.inbox.is_empty());
        } else if !self.inbox.is_empty() {
            self.watchdog.has_part();
        }
    }

    fn frame_bytes_max(&self) -> usize {
        let max = self.tcp.shared.policy.limits.frame_bytes_max;
        if self.phase == Phase::Greeting {
            max.min(GREETING_BYTES_MAX)
        } else {
            max
        }
    }

    /// A large frame is read on only under a permit.
    fn seek_permit(&mut self) {
        if self.phase == Phase::Stopping {
            return;
        }
        let wanted = match self.inbox.wanted_permit() {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return,
            Err(error) => return self.skip_frame(error),
        };
        let budget = &self.tcp.shared.memory;
        match wanted.try_acquire(budget) {
            Some(permit) => self.inbox.cover(wanted, permit),
            None => {
                self.permit_wait = Some(PermitWait {
                    wanted,
                    permit: Box::pin(wanted.acquire(budget)),
                });
            }
        }
    }

    fn on_permit(&mut self, wanted: WantedPermit, permit: Result<MemoryPermit, ApiError>) {
        self.permit_wait = None;
        match permit {
            Ok(permit) => self.inbox.cover(wanted, permit),
            Err(error) => self.skip_frame(error),
        }
    }

    fn skip_frame(&mut self, error: ApiError) {
        if let Some(header) = self.inbox.skip_frame() {
            self.refuse(header, error);
        }
    }

    fn refuse(&mut self, header: Header, error: ApiError) {
        let frame = Frame {
            header,
            payload: bytes::Bytes::new(),
        };
        self.owe(Ticket::of(&frame), Owed::Settled(Settled::Failure(error)));
    }

    fn refuse_frame(&mut self, too_long: FrameTooLong) {
        let error = if self.phase == Phase::Greeting {
            greeting::no_token()
        } else {
            too_long.into()
        };
        self.refuse(too_long.header, error);
        self.end();
    }

    fn on_frame(&mut self, frame: Frame) {
        let ticket = Ticket::of(&frame);
        if self.phase == Phase::Stopping {
            return self.take_step(settle(ticket, Err(ApiError::shutting_down())));
        }
        let request = Request::decode(frame, &self.tcp.shared.policy.limits);
        let step = match request {
            Ok(request)
                if self.phase != Phase::Greeting || matches!(request, Request::Hello(_)) =>
            {
                self.dispatch(ticket, request)
            }
            Err(error) if self.phase != Phase::Greeting => settle(ticket, Err(error.into())),
            Ok(_) | Err(_) => self.hang_up(ticket, greeting::no_token()),
        };
        self.take_step(step);
    }

    /// Answers a HELLO, the first or another: a wrong token ends the connection at any time.
    pub(super) fn greet(&mut self, ticket: Ticket, hello: Option<&Hello>) -> Step {
        match greeting::welcome(&self.tcp.shared.config.auth, self.session_id, hello) {
            Ok(welcome) => {
                self.phase = Phase::Open;
                if let Some(newcomer) = self.newcomer.take() {
                    newcomer.authenticated();
                }
                settle(ticket, Ok(Response::Hello(welcome)))
            }
            Err(error) if error.code == ErrorCode::Unauthorized => self.hang_up(ticket, error),
            Err(error) => settle(ticket, Err(error)),
        }
    }

    fn hang_up(&mut self, ticket: Ticket, error: ApiError) -> Step {
        self.end();
        settle(ticket, Err(error))
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Owe(ticket, owed) => self.owe(ticket, owed),
            Step::Await(slow) => self.slow = Some(slow),
        }
    }

    fn finished(&mut self, ticket: Ticket, owed: Owed) {
        self.slow = None;
        self.owe(ticket, owed);
    }

    /// Puts an answer in its place, which may be right at the front.
    fn owe(&mut self, ticket: Ticket, owed: Owed) {
        match owed {
            Owed::Settled(settled) if self.replies.is_empty() => self.emit(ticket, settled),
            owed => self.replies.push(ticket, owed),
        }
    }

    fn emit(&mut self, ticket: Ticket, settled: Settled) {
        if self.outbox.is_empty() {
            self.watchdog.wrote();
        }
        let mut status = 0;
        match self.subject_to_stop(settled) {
            Settled::Response(response) => response.encode(ticket.req_id, self.outbox.buffer()),
            Settled::Encoded(frame) => self.outbox.append(frame),
            Settled::Large(frame) => self.outbox.append_large(frame),
            Settled::Failure(error) => {
                error.log();
                status = error.code.status();
                let out = self.outbox.buffer();
                encode_failure(
                    out,
                    ticket.req_id,
                    error.code,
                    &error.message,
                    &error.details,
                );
            }
            Settled::Subscribed(opening) => {
                let accepted = Response::Subscribed {
                    caught_up: opening.caught_up,
                };
                accepted.encode(opening.req_id, self.outbox.buffer());
                self.subscriptions.begin(&opening, &self.tcp);
            }
        }
        self.outbox.keep(ticket.permit, None);
        self.tcp
            .shared
            .metrics
            .tcp(message_name(ticket.msg_type), status);
    }

    /// A subscription that had not begun when the server stopped never does.
    fn subject_to_stop(&self, settled: Settled) -> Settled {
        match settled {
            Settled::Subscribed(_) if self.phase == Phase::Stopping => {
                Settled::Failure(ApiError::shutting_down())
            }
            settled => settled,
        }
    }

    fn deliver(&mut self, chunk: Chunk) {
        if self.outbox.is_empty() {
            self.watchdog.wrote();
        }
        if chunk.pieces.is_empty() {
            self.outbox.append(chunk.frames);
        } else {
            self.outbox.append_large(LargeFrame {
                head: chunk.frames,
                pieces: chunk.pieces,
            });
        }
        self.outbox.keep(chunk.permit, chunk.place);
    }

    pub(super) fn subscribe(&mut self, ticket: Ticket, ask: &Subscribe) -> Step {
        match self
            .subscriptions
            .open(self.tcp.shared.store.store(), ticket.req_id, ask)
        {
            Ok(opening) if opening.caught_up && !self.tcp.shared.reaches_worlds(ask.context) => {
                Step::Owe(ticket, Owed::Settled(Settled::Subscribed(opening)))
            }
            Ok(opening) => {
                let (tcp, context) = (Arc::clone(&self.tcp), ask.context);
                Step::Await(Box::pin(async move {
                    let settled = match tcp.shared.note_subscription(context).await {
                        Ok(()) => Settled::Subscribed(opening.looked_ahead(tcp.store()).await),
                        Err(error) => Settled::Failure(error),
                    };
                    (ticket, Owed::Settled(settled))
                }))
            }
            Err(error) => settle(ticket, Err(error)),
        }
    }

    pub(super) fn cancel(&mut self, req_id: u64) -> Result<Response, ApiError> {
        self.subscriptions
            .cancel(req_id)
            .map(|()| Response::Cancelled)
    }

    fn stop(&mut self) {
        self.phase = Phase::Stopping;
        self.linger = Some(STOPPED_LINGER);
        self.permit_wait = None;
        self.subscriptions
            .end_all(&ApiError::shutting_down(), self.outbox.buffer());
    }

    fn end(&mut self) {
        self.phase = Phase::Closing;
        self.linger = Some(REFUSED_LINGER);
        self.subscriptions = Subscriptions::default();
    }

    /// Ends the connection in a way that lets the peer read the last answers: a socket that is
    /// closed while bytes of the peer are unread may take back what was sent on it.
    async fn close(mut self) -> io::Result<()> {
        let part = async {
            self.stream.shutdown().await?;
            let mut rest = [0; 4096];
            while self.linger.is_some() && self.stream.read(&mut rest).await? > 0 {}
            Ok(())
        };
        tokio::time::timeout(self.linger.unwrap_or(ENDED_LINGER), part)
            .await
            .unwrap_or_else(|_| {
                tracing::debug!(
                    session = self.session_id,
                    "a peer went on after it was hung up on"
                );
                Ok(())
            })
    }
}

/// A name for counters; one for all messages that do not exist.
fn message_name(msg_type: u16) -> &'static str {
    MsgType::from_wire(msg_type).map_or("UNKNOWN", MsgType::name)
}

#[cfg(test)]
mod tests;
