//! One live connection: a task that owns the socket, and an outbox that callers write to.
//!
//! A caller encodes its frame into the outbox and leaves a waiter under its request id. The task
//! writes the whole outbox with one write and passes each response to its waiter. Invariant: each
//! waiter gets exactly one result, and when the connection ends, every waiter gets the reason. A
//! connection that has ended is never used again; the client dials a new one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use turnkeep_wire::message::ItemForm;
use turnkeep_wire::{Frame, HEADER_BYTES, MsgType, Request, Response};

use crate::error::{Error, Lost};
use crate::frames::FrameSender;

/// A buffer that a frame made longer than this is dropped instead of used again.
const SPARE_BYTES_MAX: usize = 1 << 20;
/// The buffer space for one read. A declared length never makes the client allocate more.
const READ_BYTES: usize = 256 << 10;

/// Who waits for the frames with one request id.
pub(crate) enum Waiter {
    /// Waits for one response. The permits are released with it.
    Reply(oneshot::Sender<Result<Frame, Error>>, Permits),
    /// Receives a subscription's frames. If the reader is too slow, the sender is dropped.
    Stream(FrameSender),
    /// The response is dropped.
    Discard,
}

/// The permits of a request in flight. HELLO has none.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    pub(crate) _request: Option<OwnedSemaphorePermit>,
    pub(crate) _bytes: Option<OwnedSemaphorePermit>,
}

/// The limits of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    pub(crate) request_bytes_max: usize,
    pub(crate) frame_bytes_max: usize,
    pub(crate) answer_timeout: Duration,
}

/// The callers' side of a connection. Dropping it ends the task.
pub(crate) struct ServerConnection {
    shared: Arc<SharedState>,
    task: tokio::task::JoinHandle<()>,
}

struct SharedState {
    outbox: Mutex<Outbox>,
    wake: Notify,
    /// Counts reads: a server that sends bytes is alive, even if one response takes long.
    reads: AtomicU64,
}

struct Outbox {
    bytes: BytesMut,
    request_bytes_max: usize,
    next_id: u64,
    waiters: HashMap<u64, Waiter>,
    /// How many waiters wait for one response. Only these make a silent server time out;
    /// subscriptions may be quiet for long.
    replies: usize,
    lost: Option<Lost>,
}

impl SharedState {
    fn lock_outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerConnection {
    /// Starts the task that owns `stream`.
    pub(crate) fn start<S>(stream: S, limits: ConnectionLimits) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let outbox = Outbox {
            bytes: BytesMut::with_capacity(64 << 10),
            request_bytes_max: limits.request_bytes_max,
            next_id: 1,
            waiters: HashMap::new(),
            replies: 0,
            lost: None,
        };
        let shared = Arc::new(SharedState {
            outbox: Mutex::new(outbox),
            wake: Notify::new(),
            reads: AtomicU64::new(0),
        });
        let task = tokio::spawn(run_connection(stream, Arc::clone(&shared), limits));
        Self { shared, task }
    }

    /// Queues a request and returns its id. Returns an error if the request is too long or the
    /// connection has ended.
    pub(crate) fn send_request(&self, waiter: Waiter, request: &Request) -> Result<u64, Error> {
        let mut outbox = self.shared.lock_outbox();
        if let Some(lost) = &outbox.lost {
            return Err(Error::Lost(lost.clone()));
        }
        let id = outbox.push_request(waiter, request)?;
        drop(outbox);
        self.shared.wake.notify_one();
        Ok(id)
    }

    /// Ends a subscription. Does nothing if it has ended already.
    pub(crate) fn cancel_subscription(&self, id: u64) {
        self.shared.lock_outbox().cancel_subscription(id);
        self.shared.wake.notify_one();
    }

    /// Why the connection has ended, if it has.
    pub(crate) fn lost_reason(&self) -> Option<Lost> {
        self.shared.lock_outbox().lost.clone()
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.end_all(&Lost::Closed);
    }
}

impl SharedState {
    /// Sends every waiter the reason why the connection ended.
    fn end_all(&self, lost: &Lost) {
        let mut outbox = self.lock_outbox();
        // The first reason is the cause; later ones only follow from it.
        if outbox.lost.is_none() {
            outbox.lost = Some(lost.clone());
        }
        let waiters = std::mem::take(&mut outbox.waiters);
        outbox.replies = 0;
        // A waiter that is woken may send again at once, so the lock is released first.
        drop(outbox);
        for waiter in waiters.into_values() {
            if let Waiter::Reply(reply, _) = waiter {
                // The caller may have stopped waiting.
                match reply.send(Err(Error::Lost(lost.clone()))) {
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }

    /// Passes a frame to its waiter.
    fn deliver_frame(&self, answer: Frame) -> Result<(), Lost> {
        let id = answer.header.req_id;
        let is_error = answer.header.msg_type == MsgType::Error.to_wire();
        let mut outbox = self.lock_outbox();
        match outbox.waiters.get(&id) {
            Some(Waiter::Stream(frames)) => {
                // The task must not wait for one slow reader. The reader resumes by itself.
                if frames.try_send(answer).is_err() {
                    outbox.cancel_subscription(id);
                    self.wake.notify_one();
                } else if is_error {
                    outbox.waiters.remove(&id);
                }
            }
            Some(Waiter::Reply(..)) => outbox.send_reply(id, answer),
            Some(Waiter::Discard) => drop(outbox.waiters.remove(&id)),
            None if is_error && id == 0 => return Err(closing_error(answer)),
            // The server may still send frames of a subscription that was just cancelled.
            None => tracing::debug!(id, "a frame without a waiter"),
        }
        Ok(())
    }
}

/// Reads the reason for which the server is about to close the connection.
fn closing_error(frame: Frame) -> Lost {
    match Response::decode(frame, ItemForm::Plain) {
        Ok(Response::Error(failure)) => Lost::Refused((&failure).into()),
        _ => Lost::Ended,
    }
}

impl Outbox {
    /// Adds a request's frame if it is within the limit.
    fn push_request(&mut self, waiter: Waiter, request: &Request) -> Result<u64, Error> {
        let (id, start) = (self.next_id, self.bytes.len());
        request.encode(id, &mut self.bytes);
        let (bytes, max) = (
            self.bytes.len() - start - HEADER_BYTES,
            self.request_bytes_max,
        );
        if bytes > max {
            // Nothing of a request that is too long may reach the server.
            self.bytes.truncate(start);
            return Err(Error::TooLarge { bytes, max });
        }
        // Ids start at 1: the server uses 0 for an error that belongs to no request.
        self.next_id += 1;
        self.replies += usize::from(matches!(waiter, Waiter::Reply(..)));
        self.waiters.insert(id, waiter);
        Ok(id)
    }

    /// Cancels a subscription and drops its waiter.
    fn cancel_subscription(&mut self, id: u64) {
        if self.waiters.remove(&id).is_some()
            && let Err(error) = self.push_request(Waiter::Discard, &Request::Cancel(id))
        {
            tracing::debug!(id, %error, "cannot cancel a subscription");
        }
    }

    fn send_reply(&mut self, id: u64, answer: Frame) {
        if let Some(Waiter::Reply(reply, permits)) = self.waiters.remove(&id) {
            self.replies -= 1;
            // Before the reply: the caller's next request may need them.
            drop(permits);
            // The caller may have stopped waiting.
            match reply.send(Ok(answer)) {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

async fn run_connection<S: AsyncRead + AsyncWrite>(
    stream: S,
    shared: Arc<SharedState>,
    limits: ConnectionLimits,
) {
    let (reader, writer) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = read_frames(reader, &shared, limits) => ended,
        ended = write_frames(writer, &shared) => ended,
        ended = watch_silence(&shared, limits.answer_timeout) => ended,
    };
    shared.end_all(&ended);
}

async fn write_frames<W: AsyncWrite>(writer: W, shared: &SharedState) -> Lost {
    let mut writer = std::pin::pin!(writer);
    let mut out = BytesMut::new();
    loop {
        shared.wake.notified().await;
        // Callers that are about to send can then join this write.
        tokio::task::yield_now().await;
        // Swapping keeps the lock short: callers fill one buffer while the other one is written.
        std::mem::swap(&mut out, &mut shared.lock_outbox().bytes);
        if let Err(error) = writer.write_all(&out).await {
            return Lost::from_io(error);
        }
        if let Err(error) = writer.flush().await {
            return Lost::from_io(error);
        }
        if out.capacity() > SPARE_BYTES_MAX {
            out = BytesMut::new();
        }
        out.clear();
    }
}

async fn read_frames<R: AsyncRead>(
    reader: R,
    shared: &SharedState,
    limits: ConnectionLimits,
) -> Lost {
    let mut reader = std::pin::pin!(reader);
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        if let Err(lost) = take_frames(&mut buffer, limits.frame_bytes_max, |frame| {
            shared.deliver_frame(frame)
        }) {
            return lost;
        }
        // Grows with the bytes that arrive, not with the length that a header declares.
        buffer.reserve(READ_BYTES / 4);
        match reader.read_buf(&mut buffer).await {
            Ok(0) => return Lost::Ended,
            Ok(_) => shared.reads.fetch_add(1, Ordering::Relaxed),
            Err(error) => return Lost::from_io(error),
        };
    }
}

/// Passes every whole frame to `deliver`. After a large frame the buffer is replaced: it would keep
/// the frame's memory for the life of the connection.
fn take_frames(
    buffer: &mut BytesMut,
    frame_bytes_max: usize,
    mut deliver: impl FnMut(Frame) -> Result<(), Lost>,
) -> Result<(), Lost> {
    let mut largest = 0;
    while let Some(frame) = Frame::split_first(buffer, frame_bytes_max)? {
        largest = largest.max(frame.payload.len());
        deliver(frame)?;
    }
    if largest > SPARE_BYTES_MAX {
        *buffer = BytesMut::from(&buffer[..]);
    }
    Ok(())
}

/// Returns when requests are waiting and the server has sent no byte for the whole time-out.
async fn watch_silence(shared: &SharedState, timeout: Duration) -> Lost {
    const TICKS: u32 = 4;
    let mut tick = tokio::time::interval((timeout / TICKS).max(Duration::from_millis(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut silent, mut reads_before) = (0, 0);
    loop {
        tick.tick().await;
        let reads = shared.reads.load(Ordering::Relaxed);
        let waiting = shared.lock_outbox().replies > 0;
        silent = if waiting && reads == reads_before {
            silent + 1
        } else {
            0
        };
        reads_before = reads;
        // More ticks than make up the time-out, because the first one may be partial.
        if silent > TICKS {
            return Lost::Silent(timeout);
        }
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_wire::message::encode_blob;

    use super::*;

    /// Whether the buffer still has this room after frames of these sizes, and the beginning of
    /// another, were read into it.
    fn keeps(room: usize, sizes: &[usize]) -> bool {
        let mut buffer = BytesMut::new();
        for bytes in sizes {
            encode_blob(&mut buffer, 1, &vec![7; *bytes]);
        }
        buffer.extend_from_slice(b"rest");
        let mut taken = Vec::new();
        take_frames(&mut buffer, usize::MAX, |frame| {
            taken.push(frame.payload.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(
            taken,
            sizes.iter().map(|bytes| bytes + 4).collect::<Vec<_>>()
        );
        assert_eq!(&buffer[..], b"rest");
        buffer.try_reclaim(room)
    }

    #[test]
    fn a_large_frame_leaves_no_large_buffer() {
        assert!(!keeps(SPARE_BYTES_MAX, &[8 << 20]));
        assert!(!keeps(SPARE_BYTES_MAX, &[8 << 20, 10]));
        assert!(
            keeps(READ_BYTES, &[SPARE_BYTES_MAX / 2, 10]),
            "a smaller one is used again"
        );
    }
}
