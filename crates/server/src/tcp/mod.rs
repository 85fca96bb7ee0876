//! The port of the binary protocol. Each connection is one task that reads, dispatches and writes.
//!
//! The store's writer thread runs the commands of writes. Small reads are answered in the
//! connection's task, large ones on a worker thread. Answers leave in the order of their requests;
//! only the deliveries of subscriptions come between them.

mod connection;
mod dispatch;
mod greeting;
mod large_frame;
mod page;
mod read_buffer;
mod replies;
mod subscription;
mod watchdog;
mod write_buffer;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::message::encode_failure;

use crate::accept::{Port, accept};
use crate::error::ApiError;
use crate::guarded_store::GuardedStore;
use crate::shared::Shared;
use crate::unauthenticated::Newcomer;
use connection::Connection;

/// The state that all connections of this port share.
struct Tcp {
    shared: Arc<Shared>,
    last_session: AtomicU64,
}

impl Tcp {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            last_session: AtomicU64::new(0),
        }
    }

    fn store(&self) -> &GuardedStore {
        &self.shared.store
    }

    fn next_session(&self) -> u64 {
        self.last_session.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Writes a failure as a frame.
fn encode_error(out: &mut BytesMut, req_id: u64, error: &ApiError) {
    encode_failure(out, req_id, error.code, &error.message, &error.details);
}

/// Serves the binary protocol on `listener` until the server stops.
pub(crate) async fn serve_tcp(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
) {
    let tcp = Arc::new(Tcp::new(Arc::clone(&shared)));
    accept(listener, tls, tcp, shared).await;
}

impl Port for Arc<Tcp> {
    fn refusal(&self) -> Vec<u8> {
        let error = ApiError::new(ErrorCode::Unavailable, "too many connections are open");
        let mut out = BytesMut::new();
        // No request was read, so the failure has the id that no request has.
        encode_error(&mut out, 0, &error);
        out.to_vec()
    }

    async fn exchange<S>(self, stream: S, _: IpAddr, newcomer: Newcomer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if let Err(error) = Connection::new(stream, self, Some(newcomer)).run().await {
            tracing::debug!(%error, "a connection broke");
        }
    }
}
