//! The client: every verb of the protocol, many callers on one connection, safe repetition.
//!
//! A request that is lost is repeated only where repeating cannot do harm: reads, writes that are
//! idempotent by their content, and writes with an idempotency key. For the others the caller
//! learns that the outcome is unknown.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};
use turnkeep_types::{BlobHash, ContextId, TurnId};
use turnkeep_wire::fs_tree::{TreeEntry, decode_tree};
use turnkeep_wire::message::{
    AppendBatch, AppendTurn, AttachFs, BatchAck, ContextHead, CreateContext, GetBefore, GetLast,
    GetRange, Item, PutBlob, PutBundle, ReadOptions, SentTurn, Subscribe, TurnAck,
};
use turnkeep_wire::{Request, Text};

use crate::backoff::Backoff;
use crate::connection::{Connection, Permits, Waiter};
use crate::dial::Dialer;
use crate::error::{Error, Lost};
use crate::history::History;
use crate::options::Options;
use crate::pending::{Answered, Pending};
use crate::subscription::Subscription;
use crate::verify;

/// What the bound on bytes in flight is counted in.
const BYTES_PER_PERMIT: usize = 1024;

/// A client of one server; cheap to clone, and all clones share one connection.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    dialer: Dialer,
    options: Options,
    current: Mutex<Option<Arc<Connection>>>,
    dialling: tokio::sync::Mutex<()>,
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// Whether a request may be sent again when nobody knows what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may: the second time changes nothing.
    Safe,
    /// It may not: it might be carried out twice.
    Unsafe,
}

impl Repeat {
    fn with_key(key: &[u8]) -> Self {
        if key.is_empty() {
            Self::Unsafe
        } else {
            Self::Safe
        }
    }

    /// The error of a request that had been sent, as its caller should see it. An unavailable
    /// server may have kept a write that it refused.
    pub(crate) fn explain(self, error: Error) -> Error {
        let unknown = match &error {
            Error::Lost(_) => true,
            Error::Server(error) => error.status == 503,
            _ => false,
        };
        if unknown && self == Self::Unsafe {
            Error::OutcomeUnknown(Box::new(error))
        } else {
            error
        }
    }
}

impl Client {
    /// Connects to a server's binary port, such as `127.0.0.1:9009`, and introduces itself. Tries
    /// once.
    pub async fn connect(addr: &str, options: Options) -> Result<Self, Error> {
        let inner = Inner {
            dialer: Dialer::new(addr, options.clone())?,
            current: Mutex::new(None),
            dialling: tokio::sync::Mutex::new(()),
            requests: Arc::new(Semaphore::new(
                options.in_flight_max.clamp(1, Semaphore::MAX_PERMITS),
            )),
            bytes: Arc::new(Semaphore::new(
                permits_for(options.in_flight_bytes_max).max(1) as usize,
            )),
            options,
        };
        let client = Self {
            inner: Arc::new(inner),
        };
        client.connection().await?;
        Ok(client)
    }

    /// Creates a context. With a key it is repeated safely.
    pub async fn create_context(&self, create: CreateContext) -> Result<ContextHead, Error> {
        let repeat = Repeat::with_key(create.key.as_deref().unwrap_or_default());
        self.call(Request::CreateContext(create), repeat).await
    }

    /// Forks a context from a turn. With a key it is repeated safely.
    pub async fn fork_context(&self, fork: CreateContext) -> Result<ContextHead, Error> {
        let repeat = Repeat::with_key(fork.key.as_deref().unwrap_or_default());
        self.call(Request::ForkContext(fork), repeat).await
    }

    /// Where a context's head stands.
    pub async fn head(&self, context: ContextId) -> Result<ContextHead, Error> {
        self.call(Request::GetHead(context), Repeat::Safe).await
    }

    /// Appends a turn and waits until it is durable. With a key it is repeated safely.
    pub async fn append(&self, append: AppendTurn) -> Result<TurnAck, Error> {
        let repeat = Repeat::with_key(&append.key);
        self.call(Request::AppendTurn(append), repeat).await
    }

    /// Sends an append and returns: what it gives is awaited for the ack. It waits only for room
    /// among the requests in flight, and never repeats.
    pub async fn submit_append(&self, append: AppendTurn) -> Result<Pending<TurnAck>, Error> {
        let repeat = Repeat::with_key(&append.key);
        self.submit(&Request::AppendTurn(append), repeat).await
    }

    /// Appends turns, all or none. With a key it is repeated safely.
    pub async fn append_batch(&self, append: AppendBatch) -> Result<BatchAck, Error> {
        let repeat = Repeat::with_key(&append.key);
        self.call(Request::AppendBatch(append), repeat).await
    }

    /// The turns nearest to the head, oldest first.
    pub async fn last(&self, get: GetLast) -> Result<Vec<Item>, Error> {
        self.page(get.options, Request::GetLast(get)).await
    }

    /// The nearest ancestors of a turn, oldest first.
    pub async fn before(&self, get: GetBefore) -> Result<Vec<Item>, Error> {
        self.page(get.options, Request::GetBefore(get)).await
    }

    /// The turns of a range of depths on the head's path, oldest first.
    pub async fn range(&self, get: GetRange) -> Result<Vec<Item>, Error> {
        self.page(get.options, Request::GetRange(get)).await
    }

    /// All turns of a context from its head back to its root, fetched a page at a time.
    pub fn history(&self, context: ContextId, options: ReadOptions) -> History {
        History::new(self.clone(), context, options)
    }

    /// A blob's uncompressed bytes.
    pub async fn blob(&self, hash: BlobHash) -> Result<Bytes, Error> {
        let bytes: Bytes = self.call(Request::GetBlob(hash), Repeat::Safe).await?;
        if self.inner.options.verify_reads {
            verify::bytes(hash, &bytes)?;
        }
        Ok(bytes)
    }

    /// The entries of a directory: of a turn's filesystem root, or of a directory's entry.
    pub async fn tree(&self, hash: BlobHash) -> Result<Vec<TreeEntry>, Error> {
        Ok(decode_tree(&self.blob(hash).await?)?)
    }

    /// Keeps a blob; gives its hash and whether it was new.
    pub async fn put_blob(&self, bytes: Bytes) -> Result<(BlobHash, bool), Error> {
        let put = PutBlob {
            hash: BlobHash::of(&bytes),
            bytes,
        };
        self.call(Request::PutBlob(put), Repeat::Safe).await
    }

    /// Which of these blobs the server has, in the order of the question.
    pub async fn has_blobs(&self, hashes: Vec<BlobHash>) -> Result<Vec<bool>, Error> {
        self.call(Request::HasBlobs(hashes), Repeat::Safe).await
    }

    /// Sets a turn's filesystem root.
    pub async fn attach_fs(&self, turn: TurnId, root: BlobHash) -> Result<(), Error> {
        let _: AttachFs = self
            .call(Request::AttachFs(AttachFs { turn, root }), Repeat::Safe)
            .await?;
        Ok(())
    }

    /// Publishes a registry bundle; gives whether it was new.
    pub async fn put_bundle(&self, id: &str, json: Bytes) -> Result<bool, Error> {
        let put = PutBundle {
            id: Text::from(id),
            json,
        };
        self.call(Request::PutBundle(put), Repeat::Safe).await
    }

    /// Follows appends. Connects when its first event is awaited, and again after every loss.
    pub fn subscribe(&self, subscribe: Subscribe) -> Subscription {
        Subscription::new(self.clone(), subscribe)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Whether what such a read gives is checked against its hash.
    pub(crate) fn verifies(&self, read: ReadOptions) -> bool {
        self.inner.options.verify_reads && read.include_payload
    }

    async fn page(&self, read: ReadOptions, request: Request) -> Result<Vec<Item>, Error> {
        let items: Vec<Item> = self.call(request, Repeat::Safe).await?;
        if self.verifies(read) {
            items.iter().try_for_each(verify::item)?;
        }
        Ok(items)
    }

    /// Sends a request, again and again while that is safe and may help.
    async fn call<T: Answered>(&self, request: Request, repeat: Repeat) -> Result<T, Error> {
        let mut backoff = Backoff::new(self.inner.options.retry);
        loop {
            // What was never sent, or has no known outcome, says so itself.
            let answered = match self.submit(&request, repeat).await {
                Ok(pending) => pending.await,
                Err(error) => Err(error),
            };
            let Err(error) = answered else {
                return answered;
            };
            if !error.is_retryable() || !backoff.pause().await {
                return Err(error);
            }
        }
    }

    /// Sends a request once; what it gives is awaited for the answer.
    pub(crate) async fn submit<T: Answered>(
        &self,
        request: &Request,
        repeat: Repeat,
    ) -> Result<Pending<T>, Error> {
        let permits = self.permits(request_bytes(request)).await?;
        let connection = self.connection().await?;
        let (reply, answer) = oneshot::channel();
        connection.send(Waiter::Reply(reply, permits), request)?;
        Ok(Pending::new(
            answer,
            connection,
            request.item_form(),
            repeat,
        ))
    }

    async fn permits(&self, bytes: usize) -> Result<Permits, Error> {
        let Options {
            in_flight_bytes_max,
            request_bytes_max,
            ..
        } = self.inner.options;
        let max = in_flight_bytes_max.min(request_bytes_max);
        if bytes > max {
            return Err(Error::TooLarge { bytes, max });
        }
        let closed = |_| Error::Lost(Lost::Closed);
        let request = Arc::clone(&self.inner.requests)
            .acquire_owned()
            .await
            .map_err(closed)?;
        let permits = permits_for(bytes);
        let bytes = Arc::clone(&self.inner.bytes)
            .acquire_many_owned(permits)
            .await
            .map_err(closed)?;
        Ok(Permits {
            _request: Some(request),
            _bytes: Some(bytes),
        })
    }

    /// The live connection, dialled by whoever first finds that there is none.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        let _dialling = self.inner.dialling.lock().await;
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        let connection = Arc::new(self.inner.dialer.dial().await?);
        *self.current() = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn live(&self) -> Option<Arc<Connection>> {
        self.current()
            .as_ref()
            .filter(|connection| connection.lost().is_none())
            .cloned()
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<Arc<Connection>>> {
        self.inner
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a request of so many bytes takes of the bound, at least one permit.
fn permits_for(bytes: usize) -> u32 {
    u32::try_from(bytes / BYTES_PER_PERMIT)
        .unwrap_or(u32::MAX)
        .clamp(1, 1 << 28)
}

/// The bytes of a request's parts that may be large: what it takes, but for some fields.
fn request_bytes(request: &Request) -> usize {
    let turn = |turn: &SentTurn| turn.payload.len() + turn.type_id.len();
    match request {
        Request::CreateContext(create) | Request::ForkContext(create) => {
            create.key.as_ref().map_or(0, Bytes::len)
        }
        Request::AppendTurn(append) => turn(&append.turn) + append.key.len(),
        Request::AppendBatch(append) => {
            append.turns.iter().map(turn).sum::<usize>() + append.key.len()
        }
        Request::PutBlob(put) => put.bytes.len(),
        Request::PutBundle(put) => put.id.len() + put.json.len(),
        Request::HasBlobs(hashes) => size_of_val(hashes.as_slice()),
        _ => 0,
    }
}
