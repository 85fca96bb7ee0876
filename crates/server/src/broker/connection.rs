//! One connection of the broker: reads a request, lets the state machine decide, performs the
//! effect, and answers, before it reads the next request.
//!
//! Three futures share the task: [`answer_requests`], the writing of queued frames, and
//! [`send_screen`] for a connection that watches a terminal. The connection ends with the first of
//! them that ends. The broker disconnects its session however the task ends.

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::timeout;
use turnkeep_session::broker::{Answer, ConnId};
use turnkeep_types::broker::{
    Hello, ListSessions, Reason, Refusal, Reply, Request, Role, ServerMessage, Shown,
};
use turnkeep_wire::broker::{Incoming, encode_message};

use super::message_reader::MessageReader;
use super::screen_queue::{ScreenEvent, ScreenQueue};
use super::shared::BrokerShared;
use super::sinks::perform_effect;
use super::write_queue::WriteQueue;
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};

/// The id of a response that ends the connection: the broker could not read a request's id.
const NO_REQUEST: u32 = 0;

/// Serves a connection until either side ends it.
pub(super) async fn serve_connection(mut stream: UnixStream, shared: &BrokerShared) {
    let Some(_slot) = shared.connections.try_open() else {
        let refusal = Refusal::new(Reason::Busy, "too many connections");
        return refuse_connection(&mut stream, refusal, shared).await;
    };
    let is_permitted = stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == shared.peer_uid);
    if !is_permitted {
        return refuse_connection(&mut stream, Reason::NotPermitted.into(), shared).await;
    }
    let (conn, queues) = shared.add_peer();
    let frames = &queues.frames;
    let _disconnect = DisconnectOnDrop {
        shared,
        conn,
        frames,
    };
    let (read_half, write_half) = stream.into_split();
    let reader = MessageReader::new(read_half);
    let write_frames = frames.write_all(write_half, shared.timeouts.write);
    tokio::pin!(write_frames);
    tokio::select! {
        () = answer_requests(reader, shared, conn, frames) => {
            frames.close();
            // The last response may tell why the connection ends, so it is still written.
            if timeout(shared.timeouts.write, write_frames).await.is_err() {
                tracing::debug!("a connection ended before its last response was read");
            }
        }
        () = &mut write_frames => {}
        () = send_screen(&queues.screen, shared, conn, frames) => {}
    }
}

/// Disconnects the connection however its task ends.
struct DisconnectOnDrop<'a> {
    shared: &'a BrokerShared,
    conn: ConnId,
    frames: &'a WriteQueue,
}

impl Drop for DisconnectOnDrop<'_> {
    fn drop(&mut self) {
        self.frames.close();
        self.shared.remove_peer(self.conn);
    }
}

/// Tells the peer why the broker does not serve it.
async fn refuse_connection(stream: &mut UnixStream, refusal: Refusal, shared: &BrokerShared) {
    let Ok(frame) = encode_message(&response(NO_REQUEST, Err(refusal))) else {
        return;
    };
    let written = timeout(shared.timeouts.write, stream.write_all(&frame)).await;
    if !matches!(written, Ok(Ok(()))) {
        tracing::debug!("a refused connection did not read the reason");
    }
}

/// Sends the terminal that the connection watches. Never ends by itself.
async fn send_screen(
    screen: &ScreenQueue,
    shared: &BrokerShared,
    conn: ConnId,
    frames: &WriteQueue,
) {
    loop {
        let message = match screen.next_event().await {
            ScreenEvent::Piece(shown) => ServerMessage::Screen(Shown::clone(&shown)),
            ScreenEvent::Ended(session) => ServerMessage::WatchEnded {
                session,
                reason: Reason::SessionDisconnected,
            },
            ScreenEvent::Behind => {
                shared.request_repaint(conn);
                continue;
            }
        };
        match encode_message(&message) {
            Ok(frame) => frames.send_screen_piece(frame).await,
            Err(error) => tracing::error!(%error, "a piece of a terminal could not be encoded"),
        }
    }
}

/// Answers requests until the peer closes the connection, or a request ends it.
async fn answer_requests(
    mut reader: MessageReader,
    shared: &BrokerShared,
    conn: ConnId,
    frames: &WriteQueue,
) {
    let mut has_greeted = false;
    loop {
        let incoming = match reader.read_message(shared, has_greeted).await {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return,
            Err(refusal) => {
                return send_response(frames, shared, response(NO_REQUEST, Err(refusal))).await;
            }
        };
        if has_greeted && wants_settled_list(&incoming) {
            shared.wait_until_settled().await;
        }
        let is_wrapper = is_wrapper_hello(&incoming);
        let outcome = shared.apply(conn, incoming.request);
        if matches!(outcome.answer, Answer::Greeting(Ok(()))) {
            has_greeted = true;
            if is_wrapper {
                frames.remove_deadline();
            }
        }
        let message = perform_answer(incoming.id, outcome.answer, shared).await;
        send_response(frames, shared, message).await;
        if outcome.close {
            return;
        }
        // Bounds the responses in the queue: the next request waits until this one is written.
        frames.wait_for_responses().await;
    }
}

/// Whether the request is for a list of sessions that includes those of an earlier broker.
fn wants_settled_list(incoming: &Incoming) -> bool {
    matches!(
        incoming.request,
        Ok(Request::ListSessions(ListSessions { settled: true, .. }))
    )
}

fn is_wrapper_hello(incoming: &Incoming) -> bool {
    matches!(
        incoming.request,
        Ok(Request::Hello(Hello {
            role: Role::Wrapper,
            ..
        }))
    )
}

/// Makes the message that answers a request, after performing its effect if it has one.
async fn perform_answer(id: u32, answer: Answer, shared: &BrokerShared) -> ServerMessage {
    match answer {
        Answer::Greeting(outcome) => ServerMessage::HelloAck(outcome),
        Answer::Response(outcome) => response(id, outcome),
        // The turn is copied here and not in the state machine, where others would wait for it.
        Answer::Found(turn) => response(id, Ok(Reply::Turn(Box::new(turn.to_found_turn())))),
        Answer::After(effect) => response(id, perform_effect(*effect, shared).await),
    }
}

fn response(id: u32, outcome: Result<Reply, Refusal>) -> ServerMessage {
    ServerMessage::Response { id, outcome }
}

/// Queues a response. A large one needs a memory permit, and becomes a refusal without it.
async fn send_response(frames: &WriteQueue, shared: &BrokerShared, mut message: ServerMessage) {
    let mut permit = None;
    if let ServerMessage::Response { id, outcome } = &mut message {
        match acquire_permit(outcome, shared).await {
            Ok(acquired) => permit = acquired,
            Err(refusal) => message = response(*id, Err(refusal)),
        }
    }
    match encode_message(&message) {
        Ok(frame) => frames.push_response(frame, permit),
        Err(error) => tracing::error!(%error, "a response could not be encoded"),
    }
}

/// Acquires the permit of a large response. Only turns can be large.
async fn acquire_permit(
    outcome: &Result<Reply, Refusal>,
    shared: &BrokerShared,
) -> Result<Option<MemoryPermit>, Refusal> {
    let Ok(Reply::Turn(turn)) = outcome else {
        return Ok(None);
    };
    let bytes = turn.content.len()
        + turn.text.as_ref().map_or(0, String::len)
        + turn.raw.as_ref().map_or(0, bytes::Bytes::len);
    if bytes < LARGE_FROM_BYTES {
        return Ok(None);
    }
    let acquired = shared.memory.acquire(bytes).await;
    acquired.map(Some).map_err(|_| Reason::Busy.into())
}
