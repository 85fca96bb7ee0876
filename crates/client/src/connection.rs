//! One live connection: a task that owns the socket, and the outbox through which callers reach it.
//!
//! A caller encodes its frame straight into the outbox and leaves a waiter under its request id; the
//! task writes whatever has gathered with one write and hands each answer to its waiter. Invariant: a
//! waiter is answered exactly once, and when the connection ends, every waiter learns why. After that
//! nothing can be sent: the connection is never revived, the client dials a new one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot};
use turnkeep_wire::{ErrorBody, Header, MsgType};

use crate::error::{Error, Lost};

/// The outbox keeps a written buffer for the next frames unless it grew beyond this.
const SPARE_BYTES_MAX: usize = 1 << 20;
/// Room asked for at a time when reading; a declared length is never trusted with more.
const READ_BYTES: usize = 256 << 10;

/// An answer as it came: its flags and its undecoded payload.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) header: Header,
    pub(crate) payload: Bytes,
}

/// Who waits for the frames with one request id.
pub(crate) enum Waiter {
    /// One answer; the permits are given back with it.
    Reply(oneshot::Sender<Result<Answer, Error>>, #[expect(dead_code, reason = "held")] Permits),
    /// A subscription's frames. When they are not taken in time the sender is dropped.
    Stream(mpsc::Sender<Answer>),
    /// Nobody; the answer is dropped.
    Nobody,
}

/// What a request holds of the client's bounds while it is unanswered.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) _request: OwnedSemaphorePermit,
    pub(crate) _bytes: OwnedSemaphorePermit,
}

/// What the task needs to know about its bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) frame_bytes_max: usize,
    pub(crate) answer_timeout: Duration,
}

/// The callers' side of a connection. Dropping it ends the task.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    outbox: Mutex<Outbox>,
    wake: Notify,
    /// Counts reads, so that silence can be told from work.
    reads: AtomicU64,
}

struct Outbox {
    bytes: BytesMut,
    next_id: u64,
    waiters: HashMap<u64, Waiter>,
    /// How many of the waiters wait for one answer: the ones for which a silent server is a dead one.
    replies: usize,
    lost: Option<Lost>,
}

impl Shared {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Starts the task that owns `stream`.
    pub(crate) fn start<S>(stream: S, bounds: Bounds) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let outbox = Outbox {
            bytes: BytesMut::with_capacity(64 << 10),
            next_id: 1,
            waiters: HashMap::new(),
            replies: 0,
            lost: None,
        };
        let shared = Arc::new(Shared { outbox: Mutex::new(outbox), wake: Notify::new(), reads: AtomicU64::new(0) });
        let task = tokio::spawn(run(stream, Arc::clone(&shared), bounds));
        Self { shared, task }
    }

    /// Queues one frame, which `encode` appends to the buffer under the request id that it is given.
    pub(crate) fn send(&self, waiter: Waiter, encode: impl FnOnce(u64, &mut BytesMut)) -> Result<u64, Error> {
        let mut outbox = self.shared.outbox();
        if let Some(lost) = &outbox.lost {
            return Err(Error::Lost(lost.clone()));
        }
        let id = outbox.next_id;
        outbox.next_id += 1;
        encode(id, &mut outbox.bytes);
        outbox.replies += usize::from(matches!(waiter, Waiter::Reply(..)));
        outbox.waiters.insert(id, waiter);
        drop(outbox);
        self.shared.wake.notify_one();
        Ok(id)
    }

    /// Stops waiting for a subscription's frames.
    pub(crate) fn forget(&self, id: u64) {
        self.shared.outbox().waiters.remove(&id);
    }

    /// Whether the connection has ended.
    pub(crate) fn is_lost(&self) -> bool {
        self.shared.outbox().lost.is_some()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.end(&Lost::Closed);
    }
}

impl Shared {
    /// Tells every waiter why the connection ended.
    fn end(&self, lost: &Lost) {
        let mut outbox = self.outbox();
        if outbox.lost.is_none() {
            outbox.lost = Some(lost.clone());
        }
        let waiters = std::mem::take(&mut outbox.waiters);
        outbox.replies = 0;
        drop(outbox);
        for waiter in waiters.into_values() {
            if let Waiter::Reply(reply, _) = waiter {
                // The caller may have stopped waiting.
                drop(reply.send(Err(Error::Lost(lost.clone()))));
            }
        }
    }

    /// Hands a frame to whoever waits for it.
    fn deliver(&self, answer: Answer) -> Result<(), Lost> {
        let id = answer.header.req_id;
        let is_error = answer.header.msg_type == MsgType::ERROR;
        let mut outbox = self.outbox();
        match outbox.waiters.get(&id) {
            Some(Waiter::Stream(frames)) => {
                let taken = frames.try_send(answer).is_ok();
                if is_error || !taken {
                    outbox.waiters.remove(&id);
                }
            }
            Some(Waiter::Reply(..)) => outbox.reply(id, answer),
            Some(Waiter::Nobody) => drop(outbox.waiters.remove(&id)),
            None if is_error && id == 0 => return Err(Lost::refused(&answer.payload)),
            // A subscription that was given up may still speak for a moment.
            None => tracing::debug!(id, "a frame that nobody waits for"),
        }
        Ok(())
    }
}

impl Outbox {
    fn reply(&mut self, id: u64, answer: Answer) {
        if let Some(Waiter::Reply(reply, _)) = self.waiters.remove(&id) {
            self.replies -= 1;
            // The caller may have stopped waiting.
            drop(reply.send(Ok(answer)));
        }
    }
}

async fn run<S: AsyncRead + AsyncWrite>(stream: S, shared: Arc<Shared>, bounds: Bounds) {
    let (reader, writer) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = read(reader, &shared, bounds) => ended,
        ended = write(writer, &shared) => ended,
        ended = watch(&shared, bounds.answer_timeout) => ended,
    };
    shared.end(&ended);
}

async fn write<W: AsyncWrite>(writer: W, shared: &Shared) -> Lost {
    let mut writer = std::pin::pin!(writer);
    let mut out = BytesMut::new();
    loop {
        shared.wake.notified().await;
        // Lets callers that are about to send join this write.
        tokio::task::yield_now().await;
        std::mem::swap(&mut out, &mut shared.outbox().bytes);
        if let Err(error) = writer.write_all(&out).await {
            return Lost::io(error);
        }
        if let Err(error) = writer.flush().await {
            return Lost::io(error);
        }
        if out.capacity() > SPARE_BYTES_MAX {
            out = BytesMut::new();
        }
        out.clear();
    }
}

async fn read<R: AsyncRead>(reader: R, shared: &Shared, bounds: Bounds) -> Lost {
    let mut reader = std::pin::pin!(reader);
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        loop {
            match next_frame(&mut buffer, bounds.frame_bytes_max) {
                Ok(Some(answer)) => {
                    if let Err(lost) = shared.deliver(answer) {
                        return lost;
                    }
                }
                Ok(None) => break,
                Err(lost) => return lost,
            }
        }
        buffer.reserve(READ_BYTES / 4);
        match reader.read_buf(&mut buffer).await {
            Ok(0) => return Lost::Ended,
            Ok(_) => shared.reads.fetch_add(1, Ordering::Relaxed),
            Err(error) => return Lost::io(error),
        };
    }
}

/// Cuts one whole frame off the front of the buffer.
fn next_frame(buffer: &mut BytesMut, frame_bytes_max: usize) -> Result<Option<Answer>, Lost> {
    let Some(bytes) = buffer.first_chunk::<{ Header::BYTES }>() else { return Ok(None) };
    let header = Header::decode(bytes);
    let len = header.len as usize;
    if len > frame_bytes_max {
        return Err(Lost::FrameTooLong { bytes: len, max: frame_bytes_max });
    }
    if buffer.len() < Header::BYTES + len {
        return Ok(None);
    }
    buffer.advance(Header::BYTES);
    Ok(Some(Answer { header, payload: buffer.split_to(len).freeze() }))
}

/// Ends when requests were unanswered and not one byte came for the whole time-out.
async fn watch(shared: &Shared, timeout: Duration) -> Lost {
    const TICKS: u32 = 4;
    let mut tick = tokio::time::interval((timeout / TICKS).max(Duration::from_millis(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut silent, mut reads_before) = (0, 0);
    loop {
        tick.tick().await;
        let reads = shared.reads.load(Ordering::Relaxed);
        let waiting = shared.outbox().replies > 0;
        silent = if waiting && reads == reads_before { silent + 1 } else { 0 };
        reads_before = reads;
        if silent > TICKS {
            return Lost::Silent(timeout);
        }
    }
}
