//! Subscriptions. Each has a task that reads the store's feed and passes frames to its connection.
//!
//! The server buffers only a few chunks for a slow reader: it reads the feed as fast as the reader
//! takes it. A reader that had caught up and then falls too far behind is cut off with the position to
//! resume after. A reader that is still catching up may take its time. No frame of a subscription
//! leaves before its acceptance or after its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use turnkeep_store::{Event, EventKind, FeedCursor, Turn};
use turnkeep_types::ContextId;
use turnkeep_wire::message::{EventRef, ReadOptions, Subscribe, encode_event, flag};
use turnkeep_wire::{ErrorCode, MsgType};

use super::large_frame::{LargeFrame, LargeFrameWriter};
use super::page::{payload_bytes, push_item, with_item};
use super::{Tcp, encode_error};
use crate::error::ApiError;
use crate::guarded_store::{ContentReader, GuardedStore};
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};

/// Subscriptions of one connection.
const SUBSCRIPTIONS_MAX: usize = 64;
/// Events by which a reader that had caught up may fall behind.
const LAG_EVENTS_MAX: u64 = 16_384;
/// Lost turns that one error covers.
const LOST_RUN_EVENTS_MAX: u64 = 1 << 20;
/// A chunk is sent when it would grow beyond this.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for the connection.
const CHUNKS_MAX: usize = 4;
/// The position of the flags in a frame: behind the payload's length and the message type.
const FLAGS_AT: usize = 6;

/// A subscription that was checked and whose feed is not open yet.
#[derive(Debug)]
pub(super) struct PendingSubscription {
    req_id: u64,
    serial: u64,
    context: Option<ContextId>,
    after: u64,
    options: ReadOptions,
    pub(super) caught_up: bool,
}

/// A subscription whose feed is open. It begins when its acceptance has been written.
pub(super) struct AcceptedSubscription {
    pub(super) pending: PendingSubscription,
    pub(super) content: ContentReader,
}

/// Frames of one subscription on their way to the connection.
pub(super) struct Chunk {
    req_id: u64,
    serial: u64,
    pub(super) frames: BytesMut,
    /// The rest of a large delivery, of which `frames` has the head.
    pub(super) pieces: Vec<Bytes>,
    /// The permit of a large delivery.
    pub(super) permit: Option<MemoryPermit>,
    /// The connection's slot for one large delivery.
    pub(super) slot: Option<OwnedSemaphorePermit>,
    ends: bool,
}

/// A connection's subscriptions.
#[derive(Default)]
pub(super) struct Subscriptions {
    live: HashMap<u64, LiveSubscription>,
    last_serial: u64,
    channel: Option<ChunkChannel>,
}

/// How chunks reach the connection.
struct ChunkChannel {
    sender: mpsc::Sender<Chunk>,
    receiver: mpsc::Receiver<Chunk>,
    /// The slot for one large delivery at a time, of all subscriptions together.
    large: Arc<Semaphore>,
}

impl ChunkChannel {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
        Self {
            sender,
            receiver,
            large: Arc::new(Semaphore::new(1)),
        }
    }
}

struct LiveSubscription {
    serial: u64,
    begun: bool,
    token: CancellationToken,
    /// Ends the task with the subscription.
    _guard: DropGuard,
}

impl LiveSubscription {
    fn new(serial: u64) -> Self {
        let token = CancellationToken::new();
        Self {
            serial,
            begun: false,
            _guard: token.clone().drop_guard(),
            token,
        }
    }
}

impl PendingSubscription {
    /// Accepts the subscription, after looking for something to replay. If there is nothing, the
    /// reader has caught up although the feed has gone on.
    pub(super) async fn accept(mut self, content: ContentReader) -> AcceptedSubscription {
        loop {
            let last = content.last_position();
            if self.after >= last {
                self.caught_up = true;
                break;
            }
            if self.has_missed_appends(&content, last).await {
                break;
            }
            self.after = last;
        }
        AcceptedSubscription {
            pending: self,
            content,
        }
    }

    async fn has_missed_appends(&self, content: &ContentReader, last: u64) -> bool {
        let mut events = content.feed(self.context, self.after);
        while let Some(event) = events.next_up_to(last) {
            // A turn that cannot be read counts: the reader must learn about it.
            if matches!(event.kind, EventKind::TurnAppended(_)) {
                return true;
            }
            tokio::task::consume_budget().await;
        }
        false
    }
}

impl Subscriptions {
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether a large delivery is on its way, with memory that others may need.
    pub(super) fn holds_permit(&self) -> bool {
        self.channel
            .as_ref()
            .is_some_and(|channel| channel.large.available_permits() == 0)
    }

    /// Checks a subscription and registers it.
    pub(super) fn register(
        &mut self,
        store: &GuardedStore,
        req_id: u64,
        ask: &Subscribe,
    ) -> Result<PendingSubscription, ApiError> {
        let last = store.last_position();
        let after = ask.after.unwrap_or(last);
        self.check_new_id(req_id)?;
        if let Some(context) = ask.context {
            store.context(context)?;
        }
        // The detail lets a client ask for the end: it subscribes to a position that cannot exist.
        if after > last {
            let message = format!("position {after} is beyond the end, which is {last}");
            let error = ApiError::new(ErrorCode::Conflict, message);
            return Err(error.with("last_position", last.to_string()));
        }
        self.last_serial += 1;
        let serial = self.last_serial;
        self.live.insert(req_id, LiveSubscription::new(serial));
        Ok(PendingSubscription {
            req_id,
            serial,
            context: ask.context,
            after,
            options: ask.options,
            caught_up: after == last,
        })
    }

    fn check_new_id(&self, req_id: u64) -> Result<(), ApiError> {
        if self.live.contains_key(&req_id) {
            let message = format!("request {req_id} is a subscription of this connection already");
            return Err(ApiError::new(ErrorCode::Conflict, message));
        }
        if self.live.len() >= SUBSCRIPTIONS_MAX {
            let message = format!("a connection has at most {SUBSCRIPTIONS_MAX} subscriptions");
            return Err(ApiError::new(ErrorCode::TooManyRequests, message));
        }
        Ok(())
    }

    /// Starts the task of a subscription whose acceptance was just written.
    pub(super) fn start_task(&mut self, accepted: AcceptedSubscription, tcp: &Arc<Tcp>) {
        let AcceptedSubscription { pending, content } = accepted;
        // It may have been cancelled since, and its id may belong to a newer subscription.
        let live = self
            .live
            .get_mut(&pending.req_id)
            .filter(|live| live.serial == pending.serial);
        let Some(live) = live else { return };
        live.begun = true;
        let channel = self.channel.get_or_insert_with(ChunkChannel::new);
        let feed = Feed {
            tcp: Arc::clone(tcp),
            events: content.feed(pending.context, pending.after),
            content,
            req_id: pending.req_id,
            serial: pending.serial,
            options: pending.options,
            caught_up: pending.caught_up,
            frames: BytesMut::new(),
            pieces: Vec::new(),
            permit: None,
            slot: None,
            last_frame_at: None,
            sender: channel.sender.clone(),
            large: Arc::clone(&channel.large),
        };
        let cancelled = live.token.clone();
        tcp.shared.spawn(async move {
            cancelled
                .run_until_cancelled(feed.run())
                .await
                .unwrap_or(());
        });
    }

    /// Ends a subscription; nothing more of it leaves.
    pub(super) fn cancel(&mut self, req_id: u64) -> Result<(), ApiError> {
        let unknown = || {
            let message = format!("request {req_id} is no subscription of this connection");
            ApiError::not_found(message)
        };
        self.live.remove(&req_id).map(drop).ok_or_else(unknown)
    }

    /// Ends all subscriptions. Those that have begun get an error frame.
    pub(super) fn end_all(&mut self, error: &ApiError, out: &mut BytesMut) {
        for (req_id, _) in self.live.drain().filter(|(_, live)| live.begun) {
            encode_error(out, req_id, error);
        }
    }

    /// The next chunk of a live subscription. Chunks of ended ones are dropped.
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Chunk> {
        let Some(channel) = &mut self.channel else {
            return Poll::Pending;
        };
        while let Poll::Ready(Some(chunk)) = channel.receiver.poll_recv(context) {
            // A client may reuse a request id, so the serial tells old chunks from new ones.
            let wanted = self
                .live
                .get(&chunk.req_id)
                .is_some_and(|live| live.serial == chunk.serial);
            if wanted && chunk.ends {
                self.live.remove(&chunk.req_id);
            }
            if wanted {
                return Poll::Ready(chunk);
            }
        }
        Poll::Pending
    }
}

/// The connection is gone.
struct Gone;

/// Why a feed ends.
enum End {
    Failed(ApiError),
    Gone,
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// The task of a subscription.
struct Feed {
    tcp: Arc<Tcp>,
    content: ContentReader,
    req_id: u64,
    serial: u64,
    events: FeedCursor,
    options: ReadOptions,
    caught_up: bool,
    frames: BytesMut,
    pieces: Vec<Bytes>,
    permit: Option<MemoryPermit>,
    slot: Option<OwnedSemaphorePermit>,
    last_frame_at: Option<usize>,
    sender: mpsc::Sender<Chunk>,
    large: Arc<Semaphore>,
}

impl Feed {
    async fn run(mut self) {
        let End::Failed(error) = self.follow().await else {
            return;
        };
        error.log();
        // A large delivery leaves first: the error belongs behind it.
        if !self.pieces.is_empty() && self.send_chunk(false).await.is_err() {
            return;
        }
        encode_error(&mut self.frames, self.req_id, &error);
        if self.send_chunk(true).await.is_err() {
            tracing::trace!("a subscriber left before it was told why its subscription ended");
        }
    }

    async fn follow(&mut self) -> End {
        let mut position = self.tcp.store().watch_position();
        loop {
            let last = *position.borrow_and_update();
            if let Err(end) = self.catch_up(last).await {
                return end;
            }
            if position.changed().await.is_err() {
                return End::Failed(ApiError::shutting_down());
            }
        }
    }

    /// Delivers everything up to `last`.
    async fn catch_up(&mut self, last: u64) -> Result<(), End> {
        while let Some(event) = self.events.next_up_to(last) {
            self.deliver_event(&event).await?;
            tokio::task::consume_budget().await;
        }
        // More may have been appended meanwhile, and then the reader has not caught up. The last
        // frame is held back until it has: the frame carries the flag, and no later event may
        // concern this reader.
        if self.content.last_position() <= last {
            self.mark_caught_up();
        }
        if self.caught_up {
            self.flush_chunk().await?;
        }
        Ok(())
    }

    fn mark_caught_up(&mut self) {
        self.caught_up = true;
        if let Some(flags) = self
            .last_frame_at
            .and_then(|at| self.frames.get_mut(at + FLAGS_AT))
        {
            *flags |= flag::CAUGHT_UP.to_le_bytes()[0];
        }
    }

    async fn deliver_event(&mut self, event: &Event) -> Result<(), End> {
        let position = event.position;
        let EventKind::TurnAppended(turn) = event.kind else {
            return Ok(());
        };
        let turn = match self.content.turn(turn) {
            Ok(turn) => turn,
            Err(error) => return Err(undeliverable(self.end_of_loss(position), error.into())),
        };
        let payload = payload_bytes(&turn, self.options);
        // A chunk with a large delivery ends with its last piece, so nothing is added to it.
        let is_full = !self.pieces.is_empty() || self.frames.len() + payload > CHUNK_BYTES;
        if !self.frames.is_empty() && is_full {
            self.flush_chunk().await?;
        }
        self.check_lag(position)?;
        self.last_frame_at = Some(self.frames.len());
        let written = if payload < LARGE_FROM_BYTES {
            self.write_event(position, &turn)
        } else {
            self.acquire_permit(position, payload).await?;
            self.write_large(position, turn).await
        };
        written.map_err(|error| undeliverable(position, error))
    }

    /// The end of a run of lost turns. One error covers the run, so the reader resumes once.
    fn end_of_loss(&self, first: u64) -> u64 {
        let content = &self.content;
        let is_lost = |position: &u64| match content.event(*position).map(|event| event.kind) {
            Some(EventKind::TurnAppended(turn)) => content.turn(turn).is_err(),
            _ => false,
        };
        let run = (first..first + LOST_RUN_EVENTS_MAX).take_while(is_lost);
        run.last().unwrap_or(first)
    }

    fn write_event(&mut self, position: u64, turn: &Turn) -> Result<(), ApiError> {
        let (req_id, caught_up, frames) = (self.req_id, self.caught_up, &mut self.frames);
        Ok(with_item(&self.content, turn, self.options, |item| {
            let event = EventRef {
                position,
                context: turn.context,
                item: *item,
                caught_up,
            };
            encode_event(frames, req_id, &event);
        })?)
    }

    /// Waits for the connection's other large deliveries to have been read, then for a permit.
    async fn acquire_permit(&mut self, position: u64, bytes: usize) -> Result<(), End> {
        // One at a time: a connection with many subscriptions must not take the whole budget.
        self.slot = Arc::clone(&self.large).acquire_owned().await.ok();
        match self.tcp.shared.memory.acquire(bytes).await {
            Ok(permit) => self.permit = Some(permit),
            Err(busy) => {
                return Err(End::Failed(
                    busy.with("resume_after", (position - 1).to_string()),
                ));
            }
        }
        Ok(())
    }

    /// Writes a chunk of one large delivery, on another thread.
    async fn write_large(&mut self, position: u64, turn: Turn) -> Result<(), ApiError> {
        let (options, content) = (self.options, self.content.clone());
        let flags = if self.caught_up { flag::CAUGHT_UP } else { 0 };
        let mut frame = LargeFrameWriter::begin(MsgType::Subscribe, flags, self.req_id);
        let encode = move || {
            frame.gather().put_u64_le(position);
            frame.gather().put_u64_le(turn.context.get());
            push_item(&mut frame, &content, &turn, options)?;
            Ok(frame.finish()?)
        };
        let LargeFrame { head, pieces } = self.tcp.shared.work_on_large(encode).await?;
        (self.frames, self.pieces) = (head, pieces);
        Ok(())
    }

    fn check_lag(&self, position: u64) -> Result<(), End> {
        let behind = self.content.last_position().saturating_sub(position);
        // A reader that is still catching up may be any distance behind.
        if !self.caught_up || behind <= LAG_EVENTS_MAX {
            return Ok(());
        }
        let message = format!("the reader fell {behind} events behind; subscribe again to go on");
        let error = ApiError::new(ErrorCode::TooManyRequests, message);
        Err(End::Failed(
            error.with("resume_after", (position - 1).to_string()),
        ))
    }

    async fn flush_chunk(&mut self) -> Result<(), Gone> {
        self.last_frame_at = None;
        if self.frames.is_empty() {
            return Ok(());
        }
        self.send_chunk(false).await
    }

    async fn send_chunk(&mut self, ends: bool) -> Result<(), Gone> {
        let chunk = Chunk {
            req_id: self.req_id,
            serial: self.serial,
            frames: std::mem::take(&mut self.frames),
            pieces: std::mem::take(&mut self.pieces),
            permit: self.permit.take(),
            slot: self.slot.take(),
            ends,
        };
        self.sender.send(chunk).await.map_err(|_| Gone)
    }
}

/// The end of a subscription at an append that cannot be delivered. The reader may resume after it.
fn undeliverable(position: u64, error: ApiError) -> End {
    End::Failed(error.with("resume_after", position.to_string()))
}
