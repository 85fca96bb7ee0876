//! The binary protocol's port: accept, TLS, and one task per connection until it ends.
//!
//! A connection is one task that reads, dispatches and writes; appends hop to the writer's thread and
//! back, everything else is answered where it was read. Answers leave in the order of their requests;
//! only what a subscription delivers comes between them.

mod connection;
mod dispatch;
mod greeting;
mod inbox;
mod outbox;
mod page;
mod replies;
mod subscription;
mod watchdog;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use turnkeep_store::Store;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::message::encode_failure;

use crate::error::ApiError;
use crate::shared::Shared;
use connection::Connection;

/// How long to wait after an accept that failed, as it does when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the connections of this port share.
struct Tcp {
    shared: Arc<Shared>,
    last_session: AtomicU64,
}

impl Tcp {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, last_session: AtomicU64::new(0) }
    }

    fn store(&self) -> &Store {
        self.shared.store.store()
    }

    fn next_session(&self) -> u64 {
        self.last_session.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Serves the binary protocol on `listener` until the server stops. Connections outlive it as tracked tasks.
pub(crate) async fn serve_tcp(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let tcp = Arc::new(Tcp::new(Arc::clone(&shared)));
    loop {
        let accepted = tokio::select! {
            () = shared.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                shared.spawn(serve_stream(stream, tls.clone(), Arc::clone(&tcp)));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_stream(mut stream: TcpStream, tls: Option<TlsAcceptor>, tcp: Arc<Tcp>) {
    let Some(_place) = tcp.shared.connections.enter() else {
        return refuse(&mut stream, tls.is_some()).await;
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let Some(acceptor) = tls else { return exchange(stream, tcp).await };
    match tokio::time::timeout(tcp.shared.config.timeouts.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => exchange(stream, tcp).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake"),
        Err(_) => tracing::debug!("the TLS handshake took too long"),
    }
}

async fn exchange<S>(stream: S, tcp: Arc<Tcp>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    if let Err(error) = Connection::new(stream, tcp).run().await {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Says that the server is full. A client that expects TLS is not told: the handshake would cost what is short.
async fn refuse(stream: &mut TcpStream, tls: bool) {
    let error = ApiError::new(ErrorCode::Unavailable, "too many connections are open");
    let mut out = BytesMut::new();
    encode_failure(&mut out, 0, error.code, &error.message, &error.details);
    if !tls && let Err(error) = stream.write_all(&out).await {
        tracing::debug!(%error, "a refused connection");
    }
}
