//! HTTP connections. Each has one task, until it ends or the server stops.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::gate::ArrivedAt;
use super::linger::{Lingering, Unread};
use super::stall::StallGuard;
use crate::accept::{Port, accept};
use crate::shared::Shared;
use crate::unauthenticated::Newcomer;

/// The answer to a connection when the server is full. It is a constant, because a full server has
/// no memory to spare.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
    content-type: application/json\r\ncontent-length: 87\r\n\r\n\
    {\"error\":{\"code\":\"Unavailable\",\"message\":\"too many connections are open\",\"details\":{}}}";

/// The longest head of a request. A caller without a token can make each of its connections hold
/// this much.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Serves HTTP on `listener` until the server stops.
pub(crate) async fn serve_http(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
) {
    let gateway = Gateway {
        router: super::router(Arc::clone(&shared)),
        shared: Arc::clone(&shared),
    };
    accept(listener, tls, gateway, shared).await;
}

/// What every HTTP connection is served with.
#[derive(Clone)]
struct Gateway {
    router: Router,
    shared: Arc<Shared>,
}

impl Port for Gateway {
    fn refusal(&self) -> Vec<u8> {
        FULL.to_vec()
    }

    async fn exchange<S>(self, stream: S, local: IpAddr, newcomer: Newcomer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let timeouts = &self.shared.config.timeouts;
        let unread = Unread::default();
        let stream = StallGuard::new(stream, timeouts.write_stall);
        let stream = TokioIo::new(Lingering::new(stream, unread.clone()));
        let service = connection_service(self.router, local, newcomer, unread);
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.http_head)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(stream, service)
            .with_upgrades();
        let mut served = std::pin::pin!(served);
        let ended = tokio::select! {
            ended = served.as_mut() => ended,
            () = self.shared.stopping.cancelled() => {
                // The request under way is answered; the connection takes no other.
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection ended early");
        }
    }
}

/// Passes the requests of one connection to the router. Sets `unread` after each answer, for the end
/// of the connection.
fn connection_service(
    router: Router,
    local: IpAddr,
    newcomer: Newcomer,
    unread: Unread,
) -> impl Service<hyper::Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + Send
{
    let router = TowerToHyperService::new(router);
    service_fn(move |mut request: hyper::Request<Incoming>| {
        newcomer.heard();
        request.extensions_mut().insert(ArrivedAt(local));
        request.extensions_mut().insert(newcomer.clone());
        let (has_body, unread) = (!request.body().is_end_stream(), unread.clone());
        let answer = router.call(request);
        async move {
            let response = answer.await?;
            // A handler that failed may have left a part of the body unread.
            unread.set(has_body && response.status().as_u16() >= 400);
            Ok(response)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.ends_with(&format!("content-length: {}", body.len())),
            "{}",
            body.len()
        );
    }
}
