//! HTTP connections: accept, TLS, and one task per connection until it ends or the server stops.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::gate::ArrivedAt;
use super::stall::StallGuard;
use crate::shared::Shared;

/// How long to wait after an accept that failed, as it does when files run out.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// What a connection hears when the server is full.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
    content-type: application/json\r\ncontent-length: 87\r\n\r\n\
    {\"error\":{\"code\":\"Unavailable\",\"message\":\"too many connections are open\",\"details\":{}}}";

/// Serves HTTP on `listener` until the server stops. Connections outlive it as tracked tasks.
pub(crate) async fn serve_http(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let router = super::router(Arc::clone(&shared));
    loop {
        let accepted = tokio::select! {
            () = shared.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                shared.spawn(connection(stream, tls.clone(), router.clone(), Arc::clone(&shared)));
            }
            Err(error) => {
                tracing::warn!(%error, "an HTTP connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(mut stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, shared: Arc<Shared>) {
    let local = stream.local_addr().map_or(shared.http_addr.ip(), |addr| addr.ip());
    let Some(_place) = shared.connections.enter() else {
        return refuse(&mut stream, tls.is_some()).await;
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let Some(acceptor) = tls else { return exchange(stream, local, router, shared).await };
    match tokio::time::timeout(shared.config.timeouts.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => exchange(stream, local, router, shared).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake"),
        Err(_) => tracing::debug!("the TLS handshake took too long"),
    }
}

async fn refuse(stream: &mut TcpStream, tls: bool) {
    if !tls && let Err(error) = stream.write_all(FULL).await {
        tracing::debug!(%error, "a refused connection");
    }
}

async fn exchange<S>(stream: S, local: IpAddr, router: Router, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let timeouts = &shared.config.timeouts;
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ArrivedAt(local));
        router.call(request)
    });
    let stream = TokioIo::new(StallGuard::new(stream, timeouts.write_stall));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.http_head)
        .serve_connection(stream, service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = shared.stopping.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
