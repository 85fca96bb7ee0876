//! The client: every request of the protocol, for many callers on one connection.
//!
//! The client repeats a lost request only if that is harmless: reads, writes that are idempotent by
//! their content, and writes with an idempotency key. For all other writes the caller gets
//! `Error::OutcomeUnknown`.

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
use crate::connection::{Permits, ServerConnection, Waiter};
use crate::dial::Dialer;
use crate::error::{Error, Lost};
use crate::history::History;
use crate::options::Options;
use crate::pending::{Answered, Pending};
use crate::subscription::Subscription;
use crate::verify;

/// The unit of the limit on bytes in flight. One request acquires a `u32` of permits, so
/// they stand for more than a byte each.
const BYTES_PER_PERMIT: usize = 1024;

/// A client of one server. Cloning is cheap, and all clones share one connection.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    dialer: Dialer,
    options: Options,
    current: Mutex<Option<Arc<ServerConnection>>>,
    dialling: tokio::sync::Mutex<()>,
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// Whether a request with an unknown outcome may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The second request changes nothing.
    Safe,
    /// The server might carry it out twice.
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

    /// Converts the error of a request that was sent into the error for the caller. A server that
    /// answers 503 may have written the request before it failed.
    pub(crate) fn to_caller_error(self, error: Error) -> Error {
        let unknown = match &error {
            Error::Lost(_) => true,
            // The server may fail after the write and before the reply.
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
    /// Connects to a server's binary port, such as `127.0.0.1:9009`. Does not retry.
    pub async fn connect(addr: &str, options: Options) -> Result<Self, Error> {
        let inner = Inner {
            dialer: Dialer::new(addr, options.clone())?,
            current: Mutex::new(None),
            dialling: tokio::sync::Mutex::new(()),
            // At least one of each, or no request could ever be sent.
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
        client.find_or_dial().await?;
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

    /// Returns a context's head.
    pub async fn head(&self, context: ContextId) -> Result<ContextHead, Error> {
        self.call(Request::GetHead(context), Repeat::Safe).await
    }

    /// Appends a turn and waits until it is durable. With a key it is repeated safely.
    pub async fn append(&self, append: AppendTurn) -> Result<TurnAck, Error> {
        let repeat = Repeat::with_key(&append.key);
        self.call(Request::AppendTurn(append), repeat).await
    }

    /// Sends an append without waiting for the reply, which the returned future gives. Waits only
    /// while too many requests are in flight. Never repeats the request.
    pub async fn submit_append(&self, append: AppendTurn) -> Result<Pending<TurnAck>, Error> {
        let repeat = Repeat::with_key(&append.key);
        self.submit(None, &Request::AppendTurn(append), repeat)
            .await
    }

    /// Appends turns, all or none. With a key it is repeated safely.
    pub async fn append_batch(&self, append: AppendBatch) -> Result<BatchAck, Error> {
        let repeat = Repeat::with_key(&append.key);
        self.call(Request::AppendBatch(append), repeat).await
    }

    /// The turns nearest to the head, oldest first.
    pub async fn last(&self, get: GetLast) -> Result<Vec<Item>, Error> {
        self.read_page(get.options, Request::GetLast(get)).await
    }

    /// The nearest ancestors of a turn, oldest first.
    pub async fn before(&self, get: GetBefore) -> Result<Vec<Item>, Error> {
        self.read_page(get.options, Request::GetBefore(get)).await
    }

    /// The turns of a range of depths on the head's path, oldest first.
    pub async fn range(&self, get: GetRange) -> Result<Vec<Item>, Error> {
        self.read_page(get.options, Request::GetRange(get)).await
    }

    /// All turns of a context from its head back to its root, fetched a page at a time.
    pub fn history(&self, context: ContextId, options: ReadOptions) -> History {
        History::new(self.clone(), context, options)
    }

    /// A blob's uncompressed bytes.
    pub async fn blob(&self, hash: BlobHash) -> Result<Bytes, Error> {
        let bytes: Bytes = self.call(Request::GetBlob(hash), Repeat::Safe).await?;
        if self.inner.options.verify_reads {
            verify::check_bytes(hash, &bytes)?;
        }
        Ok(bytes)
    }

    /// The entries of a directory: of a turn's filesystem root, or of a directory's entry.
    pub async fn tree(&self, hash: BlobHash) -> Result<Vec<TreeEntry>, Error> {
        Ok(decode_tree(&self.blob(hash).await?)?)
    }

    /// Stores a blob. Returns its hash and whether it was new.
    pub async fn put_blob(&self, bytes: Bytes) -> Result<(BlobHash, bool), Error> {
        let put = PutBlob {
            hash: BlobHash::of(&bytes),
            bytes,
        };
        self.call(Request::PutBlob(put), Repeat::Safe).await
    }

    /// Returns whether the server has each of these blobs, in order.
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

    /// Publishes a registry bundle. Returns whether it was new.
    pub async fn put_bundle(&self, id: &str, json: Bytes) -> Result<bool, Error> {
        let put = PutBundle {
            id: Text::from(id),
            json,
        };
        self.call(Request::PutBundle(put), Repeat::Safe).await
    }

    /// Follows appends. Connects when the caller awaits the first event, and again after every
    /// loss.
    pub fn subscribe(&self, subscribe: Subscribe) -> Subscription {
        Subscription::new(self.clone(), subscribe)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Whether the client checks the payloads of such a read against their hashes.
    pub(crate) fn verifies_payloads(&self, read: ReadOptions) -> bool {
        self.inner.options.verify_reads && read.include_payload
    }

    async fn read_page(&self, read: ReadOptions, request: Request) -> Result<Vec<Item>, Error> {
        let items: Vec<Item> = self.call(request, Repeat::Safe).await?;
        if self.verifies_payloads(read) {
            items.iter().try_for_each(verify::check_item)?;
        }
        Ok(items)
    }

    async fn call<T: Answered>(&self, request: Request, repeat: Repeat) -> Result<T, Error> {
        self.call_with_retries(None, &request, repeat).await
    }

    /// Sends a request and repeats it while that is safe and may help. With `over`, it uses that
    /// connection only and returns an error when it is lost.
    pub(crate) async fn call_with_retries<T: Answered>(
        &self,
        over: Option<&Arc<ServerConnection>>,
        request: &Request,
        repeat: Repeat,
    ) -> Result<T, Error> {
        let mut backoff = Backoff::new(self.inner.options.retry);
        loop {
            // The error tells whether a repeat is safe: `OutcomeUnknown` is not retryable.
            let answered = match self.submit(over, request, repeat).await {
                Ok(pending) => pending.await,
                Err(error) => Err(error),
            };
            let Err(error) = answered else {
                return answered;
            };
            let is_usable = over.is_none_or(|connection| connection.lost_reason().is_none());
            if !error.is_retryable() || !is_usable || !backoff.pause().await {
                return Err(error);
            }
        }
    }

    /// Sends a request once, over this connection or the client's. The returned future gives the
    /// response.
    pub(crate) async fn submit<T: Answered>(
        &self,
        over: Option<&Arc<ServerConnection>>,
        request: &Request,
        repeat: Repeat,
    ) -> Result<Pending<T>, Error> {
        let permits = self.acquire_permits(request_bytes(request)).await?;
        // After the permits: a request that waits for its turn must not keep a dead connection.
        let connection = match over {
            Some(connection) => Arc::clone(connection),
            None => self.find_or_dial().await?,
        };
        send_request(connection, permits, request, repeat)
    }

    async fn acquire_permits(&self, bytes: usize) -> Result<Permits, Error> {
        let Options {
            in_flight_bytes_max,
            request_bytes_max,
            ..
        } = self.inner.options;
        let max = in_flight_bytes_max.min(request_bytes_max);
        // Without this check the request would wait for more permits than exist.
        if bytes > max {
            return Err(Error::TooLarge { bytes, max });
        }
        // The number of requests is limited before their bytes, so at most `in_flight_max` callers
        // ever wait for bytes.
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

    /// Returns the live connection. The first caller that finds none dials; the others wait for it.
    pub(crate) async fn find_or_dial(&self) -> Result<Arc<ServerConnection>, Error> {
        if let Some(connection) = self.live_connection() {
            return Ok(connection);
        }
        let _dialling = self.inner.dialling.lock().await;
        // Another caller may have dialled while this one waited for the lock.
        if let Some(connection) = self.live_connection() {
            return Ok(connection);
        }
        let connection = Arc::new(self.inner.dialer.dial().await?);
        *self.lock_current() = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn live_connection(&self) -> Option<Arc<ServerConnection>> {
        self.lock_current()
            .as_ref()
            .filter(|connection| connection.lost_reason().is_none())
            .cloned()
    }

    fn lock_current(&self) -> std::sync::MutexGuard<'_, Option<Arc<ServerConnection>>> {
        self.inner
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn send_request<T: Answered>(
    connection: Arc<ServerConnection>,
    permits: Permits,
    request: &Request,
    repeat: Repeat,
) -> Result<Pending<T>, Error> {
    let (reply, answer) = oneshot::channel();
    connection.send_request(Waiter::Reply(reply, permits), request)?;
    Ok(Pending::new(
        answer,
        connection,
        request.item_form(),
        repeat,
    ))
}

/// The number of permits of a request with this many bytes, at least one.
fn permits_for(bytes: usize) -> u32 {
    u32::try_from(bytes / BYTES_PER_PERMIT)
        .unwrap_or(u32::MAX)
        .clamp(1, 1 << 28)
}

/// The approximate length of a request: the parts that may be large.
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
