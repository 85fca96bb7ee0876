//! What becomes of a request: one line per message, then the few ways in which it can be answered.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use turnkeep_store::blob::verifying_bytes;
use turnkeep_store::{Command, Outcome, ReadError, Store};
use turnkeep_types::{BlobHash, Compression, ContextId, Limits};
use turnkeep_wire::message::{AppendBatch, AppendTurn, AttachFs, ContextHead, PutBundle, SentTurn};
use turnkeep_wire::{Request, Response};

use super::Tcp;
use super::connection::Connection;
use super::large_frame::LargeFrame;
use super::page::{Page, encode_large_blob, encode_whole_blob};
use super::replies::{Ack, Owed, Settled, Ticket, tell};
use crate::convert::{self, Policy};
use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::memory::LARGE_FROM_BYTES;

/// What a connection has to do for a request.
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart once per request; a box would cost more"
)]
pub(super) enum Step {
    /// The answer is owed, or is there.
    Owe(Ticket, Owed),
    /// Something has to be awaited first; no other request is taken until then.
    Await(Slow),
}

/// Work that leaves the task, and the answer that it ends in.
pub(super) type Slow = Pin<Box<dyn Future<Output = (Ticket, Owed)> + Send>>;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    pub(super) fn dispatch(&mut self, ticket: Ticket, request: Request) -> Step {
        let tcp = &self.tcp;
        match request {
            Request::Hello(hello) => self.greet(ticket, hello.as_ref()),
            Request::CreateContext(r) => {
                tcp.write(ticket, Ack::Created, Cost::default(), |policy| {
                    convert::create_context(policy, r)
                })
            }
            Request::ForkContext(r) => tcp.write(ticket, Ack::Forked, Cost::default(), |policy| {
                convert::create_context(policy, r)
            }),
            Request::GetHead(context) => {
                settle(ticket, head(tcp.store(), context).map(Response::Head))
            }
            Request::AppendTurn(r) => tcp.append(ticket, r),
            Request::GetLast(r) => tcp.page(ticket, |store, limits| Page::last(store, limits, &r)),
            Request::GetBefore(r) => {
                tcp.page(ticket, |store, limits| Page::before(store, limits, &r))
            }
            Request::GetRange(r) => {
                tcp.page(ticket, |store, limits| Page::range(store, limits, &r))
            }
            Request::GetBlob(hash) => tcp.blob(ticket, hash),
            Request::AttachFs(r) => tcp.attach(ticket, r),
            Request::PutBlob(r) => {
                let cost = Cost::of_raw(r.bytes.len());
                tcp.write(ticket, Ack::BlobPut(r.hash), cost, |policy| {
                    convert::put_blob(policy, r)
                })
            }
            Request::PutBundle(r) => tcp.put_bundle(ticket, r),
            Request::AppendBatch(r) => tcp.append_batch(ticket, r),
            Request::Subscribe(r) => self.subscribe(ticket, &r),
            Request::Cancel(req_id) => settle(ticket, self.cancel(req_id)),
            Request::HasBlobs(hashes) => settle(ticket, Ok(presence(tcp.store(), &hashes))),
        }
    }
}

pub(super) fn settle(ticket: Ticket, result: Result<Response, ApiError>) -> Step {
    let settled = match result {
        Ok(response) => Settled::Response(response),
        Err(error) => Settled::Failure(error),
    };
    Step::Owe(ticket, Owed::Settled(settled))
}

fn head(store: &Store, context: ContextId) -> Result<ContextHead, ApiError> {
    let context = store.context(context)?;
    context.check_head()?;
    Ok(ContextHead {
        context: context.id,
        head: context.head,
        depth: context.head_depth,
    })
}

fn presence(store: &Store, hashes: &[BlobHash]) -> Response {
    Response::HasBlobs(
        hashes
            .iter()
            .map(|hash| store.has_blob(*hash).is_some())
            .collect(),
    )
}

/// What it costs to verify the payloads of a request, by the lengths that their sender declares.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Memory besides the frame.
    memory_bytes: usize,
    /// Bytes that are unpacked, compressed or hashed.
    work_bytes: usize,
}

impl Cost {
    /// Compressed payloads are unpacked one after the other, so their memory is that of the largest;
    /// the compressed form of other payloads stays until it is written.
    fn of_turns<'a>(turns: impl IntoIterator<Item = &'a SentTurn>, blob_bytes_max: usize) -> Self {
        let (mut largest, mut compressed, mut work_bytes) = (0, 0, 0_usize);
        for turn in turns {
            let bytes = verifying_bytes(turn.payload.len(), turn.raw_len, turn.compression);
            match turn.compression {
                Compression::Zstd => {
                    let raw_bytes = bytes.min(blob_bytes_max);
                    largest = largest.max(raw_bytes);
                    work_bytes = work_bytes.saturating_add(raw_bytes);
                }
                Compression::None => {
                    compressed += bytes;
                    work_bytes = work_bytes.saturating_add(turn.payload.len());
                }
            }
        }
        Self {
            memory_bytes: largest + compressed,
            work_bytes,
        }
    }

    fn of_raw(bytes: usize) -> Self {
        Self {
            memory_bytes: verifying_bytes(bytes, 0, Compression::None),
            work_bytes: bytes,
        }
    }

    /// Whether the work would keep other connections of this thread waiting.
    fn is_large(self) -> bool {
        self.memory_bytes >= LARGE_FROM_BYTES || self.work_bytes >= LARGE_FROM_BYTES
    }
}

impl Tcp {
    fn attach(self: &Arc<Self>, ticket: Ticket, attach: AttachFs) -> Step {
        if let Err(error) = self.shared.refuse_world_of(attach.turn) {
            return settle(ticket, Err(error));
        }
        self.write(
            ticket,
            Ack::FsAttached(attach),
            Cost::default(),
            move |_| Ok(convert::attach_fs(attach)),
        )
    }

    fn append(self: &Arc<Self>, ticket: Ticket, append: AppendTurn) -> Step {
        if let Err(error) = self.shared.refuse_world(append.context) {
            return settle(ticket, Err(error));
        }
        let cost = Cost::of_turns([&append.turn], self.shared.policy.limits.blob_bytes_max);
        self.write(ticket, Ack::Turn, cost, |policy| {
            convert::append_turn(policy, append)
        })
    }

    fn append_batch(self: &Arc<Self>, ticket: Ticket, batch: AppendBatch) -> Step {
        if let Err(error) = self.shared.refuse_world(batch.context) {
            return settle(ticket, Err(error));
        }
        let cost = Cost::of_turns(&batch.turns, self.shared.policy.limits.blob_bytes_max);
        let ack = Ack::Batch(batch.context);
        self.write(ticket, ack, cost, |policy| {
            convert::append_batch(policy, batch)
        })
    }

    fn put_bundle(self: &Arc<Self>, ticket: Ticket, put: PutBundle) -> Step {
        let id = put.id.as_str().to_owned();
        if put.json.len() >= LARGE_FROM_BYTES {
            let tcp = Arc::clone(self);
            return Step::Await(Box::pin(async move {
                let outcome = tcp.shared.publish_bundle(id, put.json).await;
                let outcome = outcome.map(|was_new| Outcome::BundlePut { was_new });
                (ticket, Owed::Settled(tell(Ack::BundlePut, outcome)))
            }));
        }
        let tcp = Arc::clone(self);
        self.write(ticket, Ack::BundlePut, Cost::default(), move |_| {
            tcp.shared.bundle_command(id, put.json)
        })
    }

    /// Makes a command and submits it. A command that costs much is made on another thread.
    fn write<F>(self: &Arc<Self>, ticket: Ticket, ack: Ack, cost: Cost, make: F) -> Step
    where
        F: FnOnce(&Policy) -> Result<Command, ApiError> + Send + 'static,
    {
        if cost.is_large() {
            let memory_bytes = cost.memory_bytes;
            return Step::Await(Box::pin(Arc::clone(self).write_large(
                ticket,
                ack,
                memory_bytes,
                make,
            )));
        }
        let command = match make(&self.shared.policy) {
            Ok(command) => command,
            Err(error) => return settle(ticket, Err(error)),
        };
        match self.shared.store.try_permit() {
            Some(permit) => {
                let answer = self.shared.store.submit_with(permit, command);
                Step::Owe(ticket, Owed::Waiting { ack, answer })
            }
            None => Step::Await(Box::pin(Arc::clone(self).submit(ticket, ack, command))),
        }
    }

    async fn write_large<F>(
        self: Arc<Self>,
        ticket: Ticket,
        ack: Ack,
        bytes: usize,
        make: F,
    ) -> (Ticket, Owed)
    where
        F: FnOnce(&Policy) -> Result<Command, ApiError> + Send + 'static,
    {
        match self.make_large(ticket.held_bytes(), bytes, make).await {
            Ok(command) => self.submit(ticket, ack, command).await,
            Err(error) => (ticket, Owed::Settled(Settled::Failure(error))),
        }
    }

    /// Makes a command on another thread, under a permit for what its payloads unpack or are
    /// compressed to. The frame's own permit stays with the frame's bytes, of which the command has
    /// parts.
    async fn make_large<F>(
        self: &Arc<Self>,
        frame_bytes: usize,
        bytes: usize,
        make: F,
    ) -> Result<Command, ApiError>
    where
        F: FnOnce(&Policy) -> Result<Command, ApiError> + Send + 'static,
    {
        let permit = self
            .shared
            .memory
            .acquire_beside(frame_bytes, bytes)
            .await?;
        let tcp = Arc::clone(self);
        self.shared
            .work_on_large(move || permit.during_command(|| make(&tcp.shared.policy)))
            .await
    }

    async fn submit(self: Arc<Self>, ticket: Ticket, ack: Ack, command: Command) -> (Ticket, Owed) {
        match self.shared.store.submit(command).await {
            Ok(answer) => (ticket, Owed::Waiting { ack, answer }),
            Err(refusal) => (ticket, Owed::Settled(Settled::Failure(refusal.into()))),
        }
    }

    fn page<F>(self: &Arc<Self>, ticket: Ticket, find: F) -> Step
    where
        F: FnOnce(&Store, &Limits) -> Result<Page, ReadError>,
    {
        let (store, limits) = (self.store(), &self.shared.policy.limits);
        let page = match find(store, limits) {
            Ok(page) => page,
            Err(error) => return settle(ticket, Err(error.into())),
        };
        let worlds = self.shared.worlds_of(page.contexts_shown());
        if !worlds.is_empty() {
            return Step::Await(Box::pin(
                Arc::clone(self).page_of_worlds(ticket, page, worlds),
            ));
        }
        let bytes = page_bytes(&page, limits);
        let req_id = ticket.req_id;
        if bytes < LARGE_FROM_BYTES {
            return encoded(ticket, page.encode(store, limits, req_id));
        }
        let tcp = Arc::clone(self);
        let encode = move || page.encode_large(tcp.store(), &tcp.shared.policy.limits, req_id);
        self.read_large(ticket, bytes, encode)
    }

    /// A page with payloads of worlds: read past their ledgers, which leaves a line in each.
    async fn page_of_worlds(
        self: Arc<Self>,
        mut ticket: Ticket,
        page: Page,
        worlds: Vec<Arc<WorldHandle>>,
    ) -> (Ticket, Owed) {
        let made = async {
            self.shared.note_raw_read(&worlds, "turns").await?;
            let bytes = page_bytes(&page, &self.shared.policy.limits);
            ticket.permit = Some(self.shared.memory.acquire(bytes).await?);
            let (tcp, req_id) = (Arc::clone(&self), ticket.req_id);
            let encode =
                move || Ok(page.encode_large(tcp.store(), &tcp.shared.policy.limits, req_id)?);
            self.shared.work_on_large(encode).await
        };
        let settled = made.await.map_or_else(Settled::Failure, Settled::Large);
        (ticket, Owed::Settled(settled))
    }

    fn blob(self: &Arc<Self>, ticket: Ticket, hash: BlobHash) -> Step {
        let req_id = ticket.req_id;
        match self.store().blob_len(hash) {
            Err(error) => settle(ticket, Err(error.into())),
            Ok(raw_len) if self.shared.may_be_a_record(hash, raw_len) => Step::Await(Box::pin(
                Arc::clone(self).blob_of_worlds(ticket, hash, raw_len),
            )),
            Ok(raw_len) if (raw_len as usize) < LARGE_FROM_BYTES => {
                encoded(ticket, encode_whole_blob(self.store(), hash, req_id))
            }
            Ok(raw_len) => {
                let tcp = Arc::clone(self);
                let encode = move || encode_large_blob(tcp.store(), hash, req_id);
                self.read_large(ticket, raw_len as usize, encode)
            }
        }
    }

    /// A blob that may be a world's record: if it is, reading it leaves a line there.
    async fn blob_of_worlds(
        self: Arc<Self>,
        mut ticket: Ticket,
        hash: BlobHash,
        len: u32,
    ) -> (Ticket, Owed) {
        let made = async {
            self.shared.note_blob_read(hash).await?;
            ticket.permit = Some(self.shared.memory.acquire(len as usize).await?);
            let (tcp, req_id) = (Arc::clone(&self), ticket.req_id);
            self.shared
                .work_on_large(move || Ok(encode_large_blob(tcp.store(), hash, req_id)?))
                .await
        };
        let settled = made.await.map_or_else(Settled::Failure, Settled::Large);
        (ticket, Owed::Settled(settled))
    }

    /// Acquires a permit for an answer and makes it on another thread.
    fn read_large<F>(&self, mut ticket: Ticket, bytes: usize, encode: F) -> Step
    where
        F: FnOnce() -> Result<LargeFrame, ReadError> + Send + 'static,
    {
        let permit = self.shared.memory.acquire(bytes);
        let shared = Arc::clone(&self.shared);
        Step::Await(Box::pin(async move {
            let made = async {
                ticket.permit = Some(permit.await?);
                shared
                    .work_on_large(move || encode().map_err(ApiError::from))
                    .await
            };
            let settled = made.await.map_or_else(Settled::Failure, Settled::Large);
            (ticket, Owed::Settled(settled))
        }))
    }
}

/// About how many bytes a page will have. It is cut to the limit, but a single turn is never cut
/// away.
fn page_bytes(page: &Page, limits: &Limits) -> usize {
    page.bytes()
        .min(limits.page_bytes_max.max(limits.blob_bytes_max))
}

fn encoded(ticket: Ticket, frame: Result<bytes::BytesMut, ReadError>) -> Step {
    let settled = match frame {
        Ok(frame) => Settled::Encoded(frame),
        Err(error) => Settled::Failure(error.into()),
    };
    Step::Owe(ticket, Owed::Settled(settled))
}

#[cfg(test)]
mod tests {
    use turnkeep_wire::Text;

    use super::*;

    #[test]
    fn many_small_payloads_are_much_work_and_little_memory() {
        let turn = SentTurn {
            type_id: Text::from("x"),
            type_version: 1,
            encoding: 1,
            compression: Compression::Zstd,
            raw_len: 255 << 10,
            hash: BlobHash::of(b""),
            payload: vec![0; 30].into(),
        };
        let one = Cost::of_turns([&turn], usize::MAX);
        assert!(!one.is_large());
        let many = Cost::of_turns(&vec![turn; 1024], usize::MAX);
        assert!(many.is_large());
        assert_eq!(many.memory_bytes, one.memory_bytes);
    }
}
