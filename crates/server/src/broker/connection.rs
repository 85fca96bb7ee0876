//! One connection: read a request, have it decided, do what follows, answer; then the next one.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::time::{Instant, timeout, timeout_at};
use turnkeep_session::broker::{Answer, ConnId, Outcome};
use turnkeep_types::broker::{
    Hello, ListSessions, Reason, Refusal, Reply, Request, Role, ServerMessage, Shown,
};
use turnkeep_wire::broker::{Incoming, decode_request, encode_message, next_frame};

use super::hub::Hub;
use super::outbox::Outbox;
use super::sinks;
use super::viewer::{View, Viewer};
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};

const READ_BYTES: usize = 32 << 10;

/// Serves a connection until it ends, whoever ends it.
pub(super) async fn serve(mut stream: UnixStream, hub: &Hub) {
    let Some(_place) = hub.connections.enter() else {
        return refuse(
            &mut stream,
            Refusal::new(Reason::Busy, "too many connections"),
            hub,
        )
        .await;
    };
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == hub.peer_uid => {}
        _ => return refuse(&mut stream, Reason::NotPermitted.into(), hub).await,
    }
    let (conn, line) = hub.enter();
    let outbox = &line.outbox;
    let _left = Leave { hub, conn, outbox };
    let (read, write) = stream.into_split();
    let inbox = Inbox {
        read,
        buffer: BytesMut::new(),
        permits: Vec::new(),
    };
    let drained = outbox.drain(write, hub.timeouts.write);
    tokio::pin!(drained);
    tokio::select! {
        () = converse(inbox, hub, conn, outbox) => {
            outbox.close();
            // What was answered last is still to be read, by a client that may be slow or gone.
            if timeout(hub.timeouts.write, drained).await.is_err() {
                tracing::debug!("a connection ended before its last answer was read");
            }
        }
        () = &mut drained => {}
        () = present(&line.viewer, hub, conn, outbox) => {}
    }
}

/// Sends what a connection watches, piece by piece, for as long as there is a connection.
async fn present(viewer: &Viewer, hub: &Hub, conn: ConnId, outbox: &Outbox) {
    loop {
        let message = match viewer.next().await {
            View::Shown(shown) => ServerMessage::Screen(Shown::clone(&shown)),
            View::Ended(session) => ServerMessage::WatchEnded {
                session,
                reason: Reason::SessionDisconnected,
            },
            View::Behind => {
                hub.repaint(conn);
                continue;
            }
        };
        match encode_message(&message) {
            Ok(frame) => outbox.view(frame).await,
            Err(error) => tracing::error!(%error, "what a terminal shows is too long to be sent"),
        }
    }
}

/// Lets the connection go however its task ends.
struct Leave<'a> {
    hub: &'a Hub,
    conn: ConnId,
    outbox: &'a Outbox,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.outbox.close();
        self.hub.leave(self.conn);
    }
}

/// Says why a connection is not served.
async fn refuse(stream: &mut UnixStream, refusal: Refusal, hub: &Hub) {
    let Ok(frame) = encode_message(&ended(refusal)) else {
        return;
    };
    if !matches!(
        timeout(hub.timeouts.write, stream.write_all(&frame)).await,
        Ok(Ok(()))
    ) {
        tracing::debug!("a refused connection did not hear why");
    }
}

async fn converse(mut inbox: Inbox, hub: &Hub, conn: ConnId, outbox: &Outbox) {
    let mut greeted = false;
    loop {
        let incoming = match inbox.next(hub, greeted).await {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return,
            Err(refusal) => return answer(outbox, hub, ended(refusal)).await,
        };
        let hello = match &incoming.request {
            Ok(Request::Hello(Hello { role, .. })) => Some(*role),
            _ => None,
        };
        if greeted
            && matches!(
                incoming.request,
                Ok(Request::ListSessions(ListSessions { settled: true, .. }))
            )
        {
            hub.settled().await;
        }
        let Outcome {
            answer: decided,
            close,
            ..
        } = hub.apply(conn, incoming.request);
        if matches!(decided, Answer::Greeting(Ok(()))) {
            greeted = true;
            if hello == Some(Role::Wrapper) {
                outbox.be_patient();
            }
        }
        let message = match decided {
            Answer::Greeting(outcome) => ServerMessage::HelloAck(outcome),
            Answer::Response(outcome) => ServerMessage::Response {
                id: incoming.id,
                outcome,
            },
            Answer::Found(turn) => {
                let outcome = Ok(Reply::Turn(Box::new(turn.to_found_turn())));
                ServerMessage::Response {
                    id: incoming.id,
                    outcome,
                }
            }
            Answer::After(effect) => {
                let outcome = sinks::perform(*effect, hub).await;
                ServerMessage::Response {
                    id: incoming.id,
                    outcome,
                }
            }
        };
        answer(outbox, hub, message).await;
        if close {
            return;
        }
        outbox.answered().await;
    }
}

/// What a connection hears that is not served further: there is no id to answer to.
fn ended(refusal: Refusal) -> ServerMessage {
    ServerMessage::Response {
        id: 0,
        outcome: Err(refusal),
    }
}

async fn answer(outbox: &Outbox, hub: &Hub, message: ServerMessage) {
    let bytes = large_bytes(&message);
    let permit = match (bytes, &message) {
        (LARGE_FROM_BYTES.., ServerMessage::Response { id, .. }) => {
            match hub.memory.acquire(bytes).await {
                Ok(permit) => Ok(Some(permit)),
                Err(_) => Err(ServerMessage::Response {
                    id: *id,
                    outcome: Err(Reason::Busy.into()),
                }),
            }
        }
        _ => Ok(None),
    };
    let (permit, message) = match permit {
        Ok(permit) => (permit, message),
        Err(busy) => (None, busy),
    };
    match encode_message(&message) {
        Ok(frame) => outbox.answer(frame, permit),
        Err(error) => tracing::error!(%error, "an answer is too long to be sent"),
    }
}

/// The bytes of those parts of a message that may be large.
fn large_bytes(message: &ServerMessage) -> usize {
    let ServerMessage::Response {
        outcome: Ok(Reply::Turn(turn)),
        ..
    } = message
    else {
        return 0;
    };
    turn.content.len()
        + turn.text.as_ref().map_or(0, String::len)
        + turn.raw.as_ref().map_or(0, bytes::Bytes::len)
}

/// The reading side: bytes until they are a message.
struct Inbox {
    read: OwnedReadHalf,
    buffer: BytesMut,
    /// For what a large message has sent so far.
    permits: Vec<MemoryPermit>,
}

impl Inbox {
    /// The next message; none when the peer has ended. A refusal ends the connection.
    async fn next(&mut self, hub: &Hub, greeted: bool) -> Result<Option<Incoming>, Refusal> {
        let mut deadline = (!greeted).then(|| Instant::now() + hub.timeouts.hello);
        loop {
            if let Some(incoming) = self.take()? {
                return Ok(Some(incoming));
            }
            if !self.buffer.is_empty() && deadline.is_none() {
                deadline = Some(Instant::now() + hub.timeouts.message);
            }
            self.prepare_read(hub).await?;
            let read = self.read.read_buf(&mut self.buffer);
            let read = match deadline {
                None => read.await,
                Some(deadline) => timeout_at(deadline, read).await.map_err(|_| {
                    Refusal::new(Reason::Malformed, "the message was not whole in time")
                })?,
            };
            match read {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }

    fn take(&mut self) -> Result<Option<Incoming>, Refusal> {
        let body = next_frame(&mut self.buffer)
            .map_err(|error| Refusal::new(Reason::PayloadTooLarge, error.to_string()))?;
        let Some(body) = body else { return Ok(None) };
        let incoming = decode_request(&body)
            .map_err(|error| Refusal::new(Reason::Malformed, error.to_string()))?;
        if body.len() > LARGE_FROM_BYTES {
            // What was decoded holds its own bytes: the large buffer is given back.
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.permits.clear();
        }
        Ok(Some(incoming))
    }

    /// Prepares the next read; beyond some size it needs a part of the budget that all connections
    /// share.
    async fn prepare_read(&mut self, hub: &Hub) -> Result<(), Refusal> {
        self.buffer.reserve(READ_BYTES);
        let held = self.permits.len() * LARGE_FROM_BYTES;
        if self.buffer.len() >= held + LARGE_FROM_BYTES {
            let permit = hub.memory.acquire(LARGE_FROM_BYTES).await;
            let permit =
                permit.map_err(|_| Refusal::new(Reason::Busy, "no memory for a large message"))?;
            self.permits.push(permit);
        }
        Ok(())
    }
}
