//! One connection as one task: bytes in, frames, requests, answers, bytes out.
//!
//! The loop matches a closed [`Event`]. Three limits bound a connection: the requests that it has not
//! answered, their bytes, and the answers that the peer has not read. At a limit the server stops
//! reading, and TCP slows the peer down. A large frame waits for a memory permit, and is refused if it
//! gets none.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::WaitForCancellationFutureOwned;
use turnkeep_wire::message::{Hello, Subscribe};
use turnkeep_wire::{ErrorCode, Frame, FrameTooLong, Header, MsgType, Request, Response};

use super::dispatch::{Dispatched, PendingAnswer, settle};
use super::greeting::{self, GREETING_BYTES_MAX};
use super::large_frame::LargeFrame;
use super::read_buffer::ReadBuffer;
use super::replies::{Owed, Replies, Settled, Ticket};
use super::subscription::{AcceptedSubscription, Chunk, Subscriptions};
use super::watchdog::{Activity, Late, Watchdog};
use super::write_buffer::{UNREAD_BYTES_MAX, WriteBuffer};
use super::{Tcp, encode_error};
use crate::error::ApiError;
use crate::guarded_store::ContentAccess;
use crate::memory::{MemoryPermit, WantedPermit};
use crate::unauthenticated::Newcomer;

/// Requests that a connection may have in flight.
const IN_FLIGHT_REQUESTS_MAX: usize = 1024;
/// Bytes of requests and answers that may wait in a connection's queue.
const IN_FLIGHT_BYTES_MAX: usize = 4 << 20;
/// So many of these bytes need no memory permit.
const IN_FLIGHT_BYTES_FREE: usize = 512 << 10;
/// How long closing may take after the peer has closed.
const ENDED_LINGER: Duration = Duration::from_secs(1);
/// How long a peer that we disconnect may take to read the reason.
const REFUSED_LINGER: Duration = Duration::from_secs(1);
/// How long a peer may take to read its last answers when the server stops.
const STOPPED_LINGER: Duration = Duration::from_millis(100);

/// The events of a connection.
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

/// The phases of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first frame must be a HELLO with the token.
    Greeting,
    /// The connection takes requests.
    Open,
    /// The server stops: it answers the requests it has taken and refuses all others.
    Stopping,
    /// The connection takes nothing more, sends its last answers and ends.
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
    /// Set until the peer has shown a token.
    newcomer: Option<Newcomer>,
    /// Set when the server ends the connection: how long the peer may take to read the last answer.
    linger: Option<Duration>,
    read_buffer: ReadBuffer,
    write_buffer: WriteBuffer,
    replies: Replies,
    /// Work outside this task that ends in an answer. No request is taken meanwhile, because
    /// answers leave in the order of the requests.
    pending: Option<PendingAnswer>,
    subscriptions: Subscriptions,
    permit_wait: Option<PermitWait>,
    /// The permit for many small requests and answers that wait in this connection.
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
            read_buffer: ReadBuffer::new(),
            write_buffer: WriteBuffer::default(),
            replies: Replies::default(),
            pending: None,
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
                Event::Settled(ticket, settled) => self.send_answer(ticket, settled),
                Event::Finished(ticket, owed) => self.finish_pending(ticket, owed),
                Event::Permit(wanted, permit) => self.on_permit(wanted, permit),
                Event::Delivered(chunk) => self.send_chunk(chunk),
                Event::Wrote(written) => {
                    written?;
                    self.watchdog.note_written();
                }
                Event::Received(received) => self.note_received(received?),
                Event::Stopping => self.begin_stopping(),
                Event::Late(late) => {
                    tracing::debug!(session = self.session_id, %late, "gave up on a connection");
                    return Ok(());
                }
            }
            self.take_frames();
        }
        self.close_stream().await
    }

    /// Own work and writing come before reading, so a connection answers what it has before it
    /// takes more.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(event) = self.poll_own_work(context) {
            return Poll::Ready(event);
        }
        if let Poll::Ready(written) = self.write_buffer.poll_write(&mut self.stream, context) {
            return Poll::Ready(Event::Wrote(written));
        }
        if self.is_reading()
            && let Poll::Ready(received) = self.read_buffer.poll_read(&mut self.stream, context)
        {
            return Poll::Ready(Event::Received(received));
        }
        self.watchdog
            .poll(self.current_activity(), context)
            .map(Event::Late)
    }

    /// Polls everything but the socket and the clock.
    fn poll_own_work(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if matches!(self.phase, Phase::Greeting | Phase::Open)
            && self.stopping.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Event::Stopping);
        }
        // Before the queued answers: it blocks the reading of further requests.
        if let Some(pending) = &mut self.pending
            && let Poll::Ready((ticket, owed)) = pending.as_mut().poll(context)
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
        // Without capacity the chunks stay in their channel, and the feeds wait for the reader.
        if self.write_buffer.has_capacity() {
            return self.subscriptions.poll_chunk(context).map(Event::Delivered);
        }
        Poll::Pending
    }

    fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Stopping | Phase::Closing)
            && self.pending.is_none()
            && self.replies.is_empty()
            && !self.write_buffer.is_writing()
    }

    /// Whether another request may be taken.
    fn has_capacity(&self) -> bool {
        self.pending.is_none()
            && self.replies.len() < IN_FLIGHT_REQUESTS_MAX
            && self.replies.bytes() < IN_FLIGHT_BYTES_MAX
            && self.write_buffer.has_capacity()
            && (self.in_flight_permit.is_some() || self.in_flight_bytes() < IN_FLIGHT_BYTES_FREE)
    }

    fn in_flight_bytes(&self) -> usize {
        self.replies.bytes() + self.write_buffer.unread_bytes()
    }

    /// Acquires or releases the permit for many small requests. The connection does not wait for
    /// the permit: without it, it takes no more requests until it has answered some.
    fn cover_in_flight(&mut self) {
        if self.in_flight_bytes() < IN_FLIGHT_BYTES_FREE {
            self.in_flight_permit = None;
        } else if self.in_flight_permit.is_none() {
            // For as much as the connection may hold at most, so that the permit need not grow.
            let bytes = IN_FLIGHT_BYTES_MAX + UNREAD_BYTES_MAX;
            self.in_flight_permit = self.tcp.shared.memory.try_acquire(bytes);
        }
    }

    fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Greeting | Phase::Open)
            && self.permit_wait.is_none()
            && self.has_capacity()
    }

    fn current_activity(&self) -> Activity {
        Activity {
            reading: self.is_reading(),
            owing: !self.replies.is_empty(),
            writing: self.write_buffer.is_writing(),
            subscribed: !self.subscriptions.is_empty(),
            holding: self.write_buffer.holds_permits() || self.subscriptions.holds_permit(),
        }
    }

    fn note_received(&mut self, bytes: usize) {
        // The peer closed its half. It may still read the answers to its last requests.
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
            match self.read_buffer.take_frame(self.frame_bytes_max()) {
                Ok(Some(frame)) => self.on_frame(frame),
                Ok(None) => {
                    self.seek_permit();
                    break;
                }
                // The rest of such a frame is never read, so this ends the connection.
                Err(too_long) => self.refuse_frame(too_long),
            }
            taken = true;
            self.cover_in_flight();
        }
        if taken {
            self.read_buffer.free_unused();
            self.watchdog.note_frames(!self.read_buffer.is_empty());
        } else if !self.read_buffer.is_empty() {
            self.watchdog.note_partial_frame();
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

    /// Requests the permit that a large frame needs before more of it is read.
    fn seek_permit(&mut self) {
        // No more bytes are read now, so the frame cannot become complete.
        if self.phase == Phase::Stopping {
            return;
        }
        let wanted = match self.read_buffer.wanted_permit() {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return,
            Err(error) => return self.skip_frame(error),
        };
        let budget = &self.tcp.shared.memory;
        match wanted.try_acquire(budget) {
            Some(permit) => self.read_buffer.add_permit(wanted, permit),
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
            Ok(permit) => self.read_buffer.add_permit(wanted, permit),
            Err(error) => self.skip_frame(error),
        }
    }

    fn skip_frame(&mut self, error: ApiError) {
        if let Some(header) = self.read_buffer.skip_frame() {
            self.refuse_request(header, error);
        }
    }

    fn refuse_request(&mut self, header: Header, error: ApiError) {
        let frame = Frame {
            header,
            payload: bytes::Bytes::new(),
        };
        self.queue_answer(
            Ticket::from_frame(&frame),
            Owed::Settled(Settled::Failure(error)),
        );
    }

    fn refuse_frame(&mut self, too_long: FrameTooLong) {
        // Without a token the peer learns nothing about the limits.
        let error = if self.phase == Phase::Greeting {
            greeting::missing_token_error()
        } else {
            too_long.into()
        };
        self.refuse_request(too_long.header, error);
        self.begin_closing();
    }

    fn on_frame(&mut self, frame: Frame) {
        let ticket = Ticket::from_frame(&frame);
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
            // Without a token every request gets the same answer, so that nothing can be learned from
            // the errors.
            Ok(_) | Err(_) => self.refuse_and_close(ticket, greeting::missing_token_error()),
        };
        self.take_step(step);
    }

    /// Answers a HELLO, the first or another: a wrong token ends the connection at any time.
    pub(super) fn answer_hello(&mut self, ticket: Ticket, hello: Option<&Hello>) -> Dispatched {
        match greeting::check_hello(&self.tcp.shared.config.auth, self.session_id, hello) {
            Ok(welcome) => {
                self.phase = Phase::Open;
                if let Some(newcomer) = self.newcomer.take() {
                    newcomer.authenticated();
                }
                settle(ticket, Ok(Response::Hello(welcome)))
            }
            Err(error) if error.code == ErrorCode::Unauthorized => {
                self.refuse_and_close(ticket, error)
            }
            Err(error) => settle(ticket, Err(error)),
        }
    }

    fn refuse_and_close(&mut self, ticket: Ticket, error: ApiError) -> Dispatched {
        self.begin_closing();
        settle(ticket, Err(error))
    }

    fn take_step(&mut self, step: Dispatched) {
        match step {
            Dispatched::Owe(ticket, owed) => self.queue_answer(ticket, owed),
            Dispatched::Await(pending) => self.pending = Some(pending),
        }
    }

    fn finish_pending(&mut self, ticket: Ticket, owed: Owed) {
        self.pending = None;
        self.queue_answer(ticket, owed);
    }

    /// Queues an answer behind the earlier ones. With none before it, it leaves at once.
    fn queue_answer(&mut self, ticket: Ticket, owed: Owed) {
        match owed {
            Owed::Settled(settled) if self.replies.is_empty() => self.send_answer(ticket, settled),
            owed => self.replies.push(ticket, owed),
        }
    }

    fn send_answer(&mut self, ticket: Ticket, settled: Settled) {
        self.start_time_to_read();
        let settled = self.subject_to_stop(settled);
        let status = match &settled {
            Settled::Failure(error) => error.code.status(),
            _ => 0,
        };
        self.write_answer(ticket.req_id, settled);
        // The answer holds its memory until the peer has read it.
        self.write_buffer.hold_permit(ticket.permit, None);
        let metrics = &self.tcp.shared.metrics;
        metrics.tcp(message_name(ticket.msg_type), status);
    }

    fn write_answer(&mut self, req_id: u64, settled: Settled) {
        match settled {
            Settled::Response(response) => response.encode(req_id, self.write_buffer.buffer()),
            Settled::Encoded(frame) => self.write_buffer.append(frame),
            Settled::Large(frame) => self.write_buffer.append_large(frame),
            Settled::Failure(error) => {
                error.log();
                encode_error(self.write_buffer.buffer(), req_id, &error);
            }
            Settled::Subscribed(accepted) => {
                let caught_up = accepted.pending.caught_up;
                let response = Response::Subscribed { caught_up };
                response.encode(req_id, self.write_buffer.buffer());
                // Only now: no event may leave before the acceptance.
                self.subscriptions.start_task(accepted, &self.tcp);
            }
        }
    }

    /// The peer's time to read begins when there is something to read.
    fn start_time_to_read(&mut self) {
        if self.write_buffer.is_empty() {
            self.watchdog.note_written();
        }
    }

    /// A subscription that was accepted when the server began to stop does not begin.
    fn subject_to_stop(&self, settled: Settled) -> Settled {
        match settled {
            Settled::Subscribed(_) if self.phase == Phase::Stopping => {
                Settled::Failure(ApiError::shutting_down())
            }
            settled => settled,
        }
    }

    fn send_chunk(&mut self, chunk: Chunk) {
        self.start_time_to_read();
        if chunk.pieces.is_empty() {
            self.write_buffer.append(chunk.frames);
        } else {
            self.write_buffer.append_large(LargeFrame {
                head: chunk.frames,
                pieces: chunk.pieces,
            });
        }
        self.write_buffer.hold_permit(chunk.permit, chunk.slot);
    }

    pub(super) fn subscribe(&mut self, ticket: Ticket, ask: &Subscribe) -> Dispatched {
        let store = self.tcp.store();
        let subscription = match self.subscriptions.register(store, ticket.req_id, ask) {
            Ok(subscription) => subscription,
            Err(error) => return settle(ticket, Err(error)),
        };
        // A reader that begins at the end and sees no world is answered at once.
        match store.access_feed(ask.context) {
            ContentAccess::Open(content) if subscription.caught_up => {
                let accepted = AcceptedSubscription {
                    pending: subscription,
                    content,
                };
                Dispatched::Owe(ticket, Owed::Settled(Settled::Subscribed(accepted)))
            }
            access => {
                let tcp = Arc::clone(&self.tcp);
                let accept = async move {
                    let settled = match tcp.store().open_content(access).await {
                        Ok(content) => Settled::Subscribed(subscription.accept(content).await),
                        Err(error) => Settled::Failure(error),
                    };
                    (ticket, Owed::Settled(settled))
                };
                Dispatched::Await(Box::pin(accept))
            }
        }
    }

    pub(super) fn cancel_subscription(&mut self, req_id: u64) -> Result<Response, ApiError> {
        self.subscriptions
            .cancel(req_id)
            .map(|()| Response::Cancelled)
    }

    fn begin_stopping(&mut self) {
        self.phase = Phase::Stopping;
        self.linger = Some(STOPPED_LINGER);
        self.permit_wait = None;
        self.subscriptions
            .end_all(&ApiError::shutting_down(), self.write_buffer.buffer());
    }

    fn begin_closing(&mut self) {
        self.phase = Phase::Closing;
        self.linger = Some(REFUSED_LINGER);
        self.subscriptions = Subscriptions::default();
    }

    /// Closes the stream so that the peer can read the last answers. If a socket is closed while
    /// bytes of the peer are unread, the system sends a reset and the peer may lose them.
    async fn close_stream(mut self) -> io::Result<()> {
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

/// The label of a counter. All unknown messages share one.
fn message_name(msg_type: u16) -> &'static str {
    MsgType::from_wire(msg_type).map_or("UNKNOWN", MsgType::name)
}

#[cfg(test)]
mod tests;
