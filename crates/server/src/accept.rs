//! The accept loop of both ports. It accepts connections, counts them, runs the TLS handshake where
//! TLS is configured, and gives each connection to its port in a task of its own.
//!
//! Only so many connections may stay open without showing a token. Connections outlive the loop;
//! the server's task tracker waits for them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::shared::Shared;
use crate::unauthenticated::{Newcomer, Unauthenticated};

/// How long to wait after an accept that failed, for example because no file descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a port does with its connections.
pub(crate) trait Port: Clone + Send + Sync + 'static {
    /// The bytes that a connection gets when the server is full.
    fn refusal(&self) -> Vec<u8>;

    /// Serves a connection that arrived at the address `local`, until it ends.
    /// The port marks `newcomer` as authenticated when the connection shows a token.
    fn exchange<S>(
        self,
        stream: S,
        local: IpAddr,
        newcomer: Newcomer,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static;
}

/// Serves a port until the server stops.
pub(crate) async fn accept<P: Port>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    port: P,
    shared: Arc<Shared>,
) {
    let unauthenticated = Unauthenticated::new(shared.config.unauthenticated_max);
    loop {
        let accepted = tokio::select! {
            () = shared.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let newcomer = unauthenticated.enter();
        if shared.config.auth.is_off() {
            newcomer.authenticated();
        }
        let evicted = newcomer.clone();
        let served = serve(
            stream,
            tls.clone(),
            port.clone(),
            Arc::clone(&shared),
            newcomer,
        );
        shared.spawn(async move {
            tokio::select! {
                () = served => {}
                () = evicted.evicted() => tracing::debug!("a connection without a token made place"),
            }
        });
    }
}

async fn serve<P: Port>(
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
    port: P,
    shared: Arc<Shared>,
    newcomer: Newcomer,
) {
    let Some(_slot) = shared.connections.try_open() else {
        return refuse(&mut stream, tls.is_some(), &port.refusal()).await;
    };
    // Otherwise the system may hold a short answer back until the peer has acknowledged the last.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let local = stream
        .local_addr()
        .map_or(shared.addrs.http.ip(), |addr| addr.ip());
    let Some(acceptor) = tls else {
        return port.exchange(stream, local, newcomer).await;
    };
    match tokio::time::timeout(shared.config.timeouts.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => port.exchange(stream, local, newcomer).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake"),
        Err(_) => tracing::debug!("the TLS handshake took too long"),
    }
}

/// Answers that the server is full. A client that expects TLS gets no answer: the handshake would
/// cost the resources that have run out.
async fn refuse(stream: &mut TcpStream, tls: bool, words: &[u8]) {
    if !tls && let Err(error) = stream.write_all(words).await {
        tracing::debug!(%error, "a refused connection");
    }
}
