//! Dispatch of binary requests: one line per message, then the three ways to answer one.
//!
//! A request is answered at once, is submitted to the writer and answered later in its turn, or
//! becomes a future that the connection awaits before it takes the next request. Large requests and
//! reads of worlds are futures: they wait for memory, for another thread or for an audit line.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use turnkeep_store::blob::verifying_bytes;
use turnkeep_store::{Command, Outcome, ReadError};
use turnkeep_types::{BlobHash, Compression, ContextId, Limits};
use turnkeep_wire::message::{
    AppendBatch, AppendTurn, AttachFs, ContextHead, PutBlob, PutBundle, SentTurn,
};
use turnkeep_wire::{Request, Response};

use super::Tcp;
use super::connection::Connection;
use super::large_frame::LargeFrame;
use super::page::{FramePage, encode_large_blob, encode_whole_blob};
use super::replies::{Ack, Owed, Settled, Ticket, settle_outcome};
use crate::convert::{self, Policy};
use crate::error::ApiError;
use crate::guarded_store::{ContentAccess, ContentReader, GuardedStore, WriteGrant, WriteTarget};
use crate::handle::Answer;
use crate::memory::LARGE_FROM_BYTES;

/// What a connection has to do next for a request.
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart once per request; a box would cost more"
)]
pub(super) enum Dispatched {
    /// The answer is ready, or comes from the writer.
    Owe(Ticket, Owed),
    /// The connection awaits this before it takes another request.
    Await(PendingAnswer),
}

/// Work outside the connection's task that ends in an answer.
pub(super) type PendingAnswer = Pin<Box<dyn Future<Output = (Ticket, Owed)> + Send>>;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    pub(super) fn dispatch(&mut self, ticket: Ticket, request: Request) -> Dispatched {
        let tcp = &self.tcp;
        match request {
            Request::Hello(hello) => self.answer_hello(ticket, hello.as_ref()),
            Request::CreateContext(r) => {
                tcp.submit_write(ticket, Write::new_object(Ack::Created), |policy| {
                    convert::create_context(policy, r)
                })
            }
            Request::ForkContext(r) => {
                tcp.submit_write(ticket, Write::new_object(Ack::Forked), |policy| {
                    convert::create_context(policy, r)
                })
            }
            Request::GetHead(context) => {
                settle(ticket, read_head(tcp.store(), context).map(Response::Head))
            }
            Request::AppendTurn(r) => tcp.append_turn(ticket, r),
            Request::GetLast(r) => tcp.read_page(ticket, |store, limits| {
                FramePage::read_last(store, limits, &r)
            }),
            Request::GetBefore(r) => tcp.read_page(ticket, |store, limits| {
                FramePage::read_before(store, limits, &r)
            }),
            Request::GetRange(r) => tcp.read_page(ticket, |store, limits| {
                FramePage::read_range(store, limits, &r)
            }),
            Request::GetBlob(hash) => tcp.read_blob(ticket, hash),
            Request::AttachFs(r) => tcp.attach_fs(ticket, r),
            Request::PutBlob(r) => tcp.put_blob(ticket, r),
            Request::PutBundle(r) => tcp.put_bundle(ticket, r),
            Request::AppendBatch(r) => tcp.append_batch(ticket, r),
            Request::Subscribe(r) => self.subscribe(ticket, &r),
            Request::Cancel(req_id) => settle(ticket, self.cancel_subscription(req_id)),
            Request::HasBlobs(hashes) => settle(ticket, Ok(blob_presence(tcp.store(), &hashes))),
        }
    }
}

pub(super) fn settle(ticket: Ticket, result: Result<Response, ApiError>) -> Dispatched {
    let settled = match result {
        Ok(response) => Settled::Response(response),
        Err(error) => Settled::Failure(error),
    };
    Dispatched::Owe(ticket, Owed::Settled(settled))
}

fn read_head(store: &GuardedStore, context: ContextId) -> Result<ContextHead, ApiError> {
    let context = store.context(context)?;
    context.check_head()?;
    Ok(ContextHead {
        context: context.id,
        head: context.head,
        depth: context.head_depth,
    })
}

fn blob_presence(store: &GuardedStore, hashes: &[BlobHash]) -> Response {
    Response::HasBlobs(hashes.iter().map(|hash| store.has_blob(*hash)).collect())
}

/// A request to write.
#[derive(Clone, Copy)]
struct Write {
    /// What it changes. `None` if the command creates something.
    target: Option<WriteTarget>,
    ack: Ack,
    cost: Cost,
}

impl Write {
    fn new_object(ack: Ack) -> Self {
        Self {
            target: None,
            ack,
            cost: Cost::default(),
        }
    }
}

/// A write that has its grant.
struct Submission {
    ticket: Ticket,
    ack: Ack,
    grant: WriteGrant,
}

impl Submission {
    /// The answer that the connection owes for the write.
    fn owed_answer(self, answer: Result<Answer, ApiError>) -> (Ticket, Owed) {
        let owed = match answer {
            Ok(answer) => Owed::Waiting {
                ack: self.ack,
                answer,
            },
            Err(error) => Owed::Settled(Settled::Failure(error)),
        };
        (self.ticket, owed)
    }
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
    fn attach_fs(self: &Arc<Self>, ticket: Ticket, attach: AttachFs) -> Dispatched {
        let write = Write {
            target: Some(WriteTarget::Turn(attach.turn)),
            ack: Ack::FsAttached(attach),
            cost: Cost::default(),
        };
        self.submit_write(ticket, write, move |_| Ok(convert::attach_fs(attach)))
    }

    fn append_turn(self: &Arc<Self>, ticket: Ticket, append: AppendTurn) -> Dispatched {
        let write = Write {
            target: Some(WriteTarget::Context(append.context)),
            ack: Ack::Turn,
            cost: Cost::of_turns([&append.turn], self.shared.policy.limits.blob_bytes_max),
        };
        self.submit_write(ticket, write, |policy| convert::append_turn(policy, append))
    }

    fn append_batch(self: &Arc<Self>, ticket: Ticket, batch: AppendBatch) -> Dispatched {
        let write = Write {
            target: Some(WriteTarget::Context(batch.context)),
            ack: Ack::Batch(batch.context),
            cost: Cost::of_turns(&batch.turns, self.shared.policy.limits.blob_bytes_max),
        };
        self.submit_write(ticket, write, |policy| convert::append_batch(policy, batch))
    }

    fn put_blob(self: &Arc<Self>, ticket: Ticket, put: PutBlob) -> Dispatched {
        let write = Write {
            target: None,
            ack: Ack::BlobPut(put.hash),
            cost: Cost::of_raw(put.bytes.len()),
        };
        self.submit_write(ticket, write, |policy| convert::put_blob(policy, put))
    }

    fn put_bundle(self: &Arc<Self>, ticket: Ticket, put: PutBundle) -> Dispatched {
        let id = put.id.as_str().to_owned();
        let tcp = Arc::clone(self);
        // Parsing a large bundle would delay the other connections of this thread.
        if put.json.len() >= LARGE_FROM_BYTES {
            return Dispatched::Await(Box::pin(async move {
                let outcome = tcp.shared.publish_bundle(id, put.json).await;
                let outcome = outcome.map(|was_new| Outcome::BundlePut { was_new });
                let settled = settle_outcome(Ack::BundlePut, outcome);
                (ticket, Owed::Settled(settled))
            }));
        }
        self.submit_write(ticket, Write::new_object(Ack::BundlePut), move |_| {
            tcp.shared.bundle_command(id, put.json)
        })
    }

    /// Makes a command and submits it. A command that costs much is made on another thread.
    fn submit_write<F>(self: &Arc<Self>, ticket: Ticket, write: Write, make: F) -> Dispatched
    where
        F: FnOnce(&Policy) -> Result<Command, ApiError> + Send + 'static,
    {
        let Write { target, ack, cost } = write;
        // The grant comes first: a request that a world refuses costs no other work.
        let grant = match target {
            Some(target) => self.store().grant_write(target),
            None => Ok(WriteGrant::NEW_OBJECT),
        };
        let grant = match grant {
            Ok(grant) => grant,
            Err(error) => return settle(ticket, Err(error)),
        };
        let submission = Submission { ticket, ack, grant };
        if cost.is_large() {
            let written = Arc::clone(self).write_large(submission, cost.memory_bytes, make);
            return Dispatched::Await(Box::pin(written));
        }
        let command = match make(&self.shared.policy) {
            Ok(command) => command,
            Err(error) => return settle(submission.ticket, Err(error)),
        };
        // Usually a permit is free, and the next request can be taken at once.
        let Some(permit) = self.store().try_permit() else {
            return Dispatched::Await(Box::pin(Arc::clone(self).submit(submission, command)));
        };
        let answer = self.store().submit_with(permit, grant, command);
        let (ticket, owed) = submission.owed_answer(answer);
        Dispatched::Owe(ticket, owed)
    }

    async fn write_large<F>(
        self: Arc<Self>,
        submission: Submission,
        memory_bytes: usize,
        make: F,
    ) -> (Ticket, Owed)
    where
        F: FnOnce(&Policy) -> Result<Command, ApiError> + Send + 'static,
    {
        let frame_bytes = submission.ticket.held_bytes();
        match self.make_large(frame_bytes, memory_bytes, make).await {
            Ok(command) => self.submit(submission, command).await,
            Err(error) => submission.owed_answer(Err(error)),
        }
    }

    /// Makes a command on another thread, under a permit for what its payloads unpack or are
    /// compressed to. The frame's own permit stays with the frame's bytes, of which the command has
    /// parts.
    async fn make_large<F>(
        self: &Arc<Self>,
        frame_bytes: usize,
        memory_bytes: usize,
        make: F,
    ) -> Result<Command, ApiError>
    where
        F: FnOnce(&Policy) -> Result<Command, ApiError> + Send + 'static,
    {
        let permit = self.shared.memory.acquire_beside(frame_bytes, memory_bytes);
        let permit = permit.await?;
        let tcp = Arc::clone(self);
        let work = move || permit.during_command(|| make(&tcp.shared.policy));
        self.shared.work_on_large(work).await
    }

    async fn submit(self: Arc<Self>, submission: Submission, command: Command) -> (Ticket, Owed) {
        let answer = self.store().submit(submission.grant, command).await;
        submission.owed_answer(answer)
    }

    fn read_page<F>(self: &Arc<Self>, ticket: Ticket, find: F) -> Dispatched
    where
        F: FnOnce(&GuardedStore, &Limits) -> Result<FramePage, ReadError>,
    {
        let (store, limits) = (self.store(), &self.shared.policy.limits);
        let page = match find(store, limits) {
            Ok(page) => page,
            Err(error) => return settle(ticket, Err(error.into())),
        };
        let (bytes, req_id) = (page_bytes(&page, limits), ticket.req_id);
        match store.access_turns(page.contexts_shown(), "turns") {
            // Handing a small page to another thread would cost more than making it here.
            ContentAccess::Open(content) if bytes < LARGE_FROM_BYTES => {
                settle_frame(ticket, page.encode(&content, limits, req_id))
            }
            access => {
                let tcp = Arc::clone(self);
                self.read_later(ticket, access, bytes, move |content| {
                    page.encode_large(content, &tcp.shared.policy.limits, req_id)
                })
            }
        }
    }

    fn read_blob(self: &Arc<Self>, ticket: Ticket, hash: BlobHash) -> Dispatched {
        let req_id = ticket.req_id;
        let bytes = match self.store().blob_len(hash) {
            Ok(len) => len as usize,
            Err(error) => return settle(ticket, Err(error.into())),
        };
        match self.store().access_blob(hash) {
            ContentAccess::Open(content) if bytes < LARGE_FROM_BYTES => {
                settle_frame(ticket, encode_whole_blob(&content, hash, req_id))
            }
            access => self.read_later(ticket, access, bytes, move |content| {
                encode_large_blob(content, hash, req_id)
            }),
        }
    }

    /// Makes an answer that is large or shows content of worlds, outside the connection's task. The
    /// audits of the worlds record the read first. Then the answer acquires its permit, so that a
    /// slow audit holds no memory.
    fn read_later<F>(
        self: &Arc<Self>,
        mut ticket: Ticket,
        access: ContentAccess,
        bytes: usize,
        encode: F,
    ) -> Dispatched
    where
        F: FnOnce(&ContentReader) -> Result<LargeFrame, ReadError> + Send + 'static,
    {
        let tcp = Arc::clone(self);
        Dispatched::Await(Box::pin(async move {
            let made = async {
                let content = tcp.store().open_content(access).await?;
                ticket.permit = Some(tcp.shared.memory.acquire(bytes).await?);
                let encode = move || encode(&content).map_err(ApiError::from);
                tcp.shared.work_on_large(encode).await
            };
            let settled = made.await.map_or_else(Settled::Failure, Settled::Large);
            (ticket, Owed::Settled(settled))
        }))
    }
}

/// About how many bytes a page will have. It is cut to the limit, but a single turn is never cut
/// away.
fn page_bytes(page: &FramePage, limits: &Limits) -> usize {
    page.estimate_bytes()
        .min(limits.page_bytes_max.max(limits.blob_bytes_max))
}

fn settle_frame(ticket: Ticket, frame: Result<bytes::BytesMut, ReadError>) -> Dispatched {
    let settled = match frame {
        Ok(frame) => Settled::Encoded(frame),
        Err(error) => Settled::Failure(error.into()),
    };
    Dispatched::Owe(ticket, Owed::Settled(settled))
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
