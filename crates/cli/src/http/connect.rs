//! A server's address, and how to connect to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use turnkeep_client::tls::client_config;

use crate::config::HTTP_PORT;
use crate::failure::Failure;

/// A firewall may discard the packets silently; then the system would wait for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server's address, and the token and certificate to use there.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    authority: String,
    token: Option<String>,
    /// The trusted certificates. `None`: no TLS.
    ca: Option<PathBuf>,
}

impl Target {
    /// Reads an address: `HOST[:PORT]`, `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    pub(crate) fn parse(address: &str, token: Option<String>, ca: Option<PathBuf>) -> Result<Self> {
        let (tls, rest) = match address.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) => return Err(bad_address_error(address)),
            // Without a scheme, a given certificate says that TLS is wanted.
            None => (ca.is_some(), address),
        };
        let host = rest.trim_end_matches('/');
        // A path or a user in the address would be ignored silently.
        if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
            return Err(bad_address_error(address));
        }
        if tls && ca.is_none() {
            let message = format!("{address} speaks TLS, but no trusted certificate is given");
            return Failure::usage(message)
                .hint("name the authority's certificate with --tls-ca FILE")
                .fail();
        }
        Ok(Self {
            authority: with_port(host),
            token,
            // `http://` with --tls-ca means no TLS: the scheme is the more explicit wish.
            ca: ca.filter(|_| tls),
        })
    }

    /// The value of the Host header.
    pub(crate) fn host_header(&self) -> &str {
        &self.authority
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn ca_file(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    /// The same host at another port.
    pub(crate) fn at_port(&self, port: u16) -> String {
        format!("{}:{port}", self.bracketed_name())
    }

    /// The host without its port and brackets, as a certificate names it.
    fn certificate_name(&self) -> &str {
        self.bracketed_name()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    fn bracketed_name(&self) -> &str {
        self.authority
            .rsplit_once(':')
            .map_or(self.authority.as_str(), |(name, _)| name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}",
            if self.ca.is_some() { "https" } else { "http" },
            self.authority
        )
    }
}

/// The host with a port: its own, or the default one.
fn with_port(host: &str) -> String {
    // The last colon: an IPv6 address such as `[::1]` has colons of its own.
    match host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:{HTTP_PORT}"),
    }
}

fn bad_address_error(address: &str) -> anyhow::Error {
    Failure::usage(format!("`{address}` is not a server's address"))
        .hint("expected HOST:PORT, http://HOST:PORT or https://HOST:PORT")
        .into()
}

/// Opens a connection and starts the task that drives it, which ends with the connection.
pub(super) async fn open_connection(target: &Target) -> Result<SendRequest<Full<Bytes>>> {
    let stream = dial(target).await?;
    // Requests are small and each waits for its answer, so delaying packets only costs time.
    stream.set_nodelay(true)?;
    let Some(ca) = &target.ca else {
        return start_connection(TokioIo::new(stream)).await;
    };
    let name = ServerName::try_from(target.certificate_name().to_owned())
        .context("not a name that TLS knows")?;
    let config = client_config(ca).context("cannot read the certificates of --tls-ca")?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream);
    match secured.await {
        Ok(stream) => start_connection(TokioIo::new(stream)).await,
        Err(error) => Err(tls_error(target, &error)),
    }
}

async fn dial(target: &Target) -> Result<TcpStream> {
    let connect = TcpStream::connect(&target.authority);
    match tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(unreachable_error(target, &error.to_string())),
        Err(_) => Err(unreachable_error(target, "no answer")),
    }
}

fn unreachable_error(target: &Target, why: &str) -> anyhow::Error {
    Failure::new(format!("cannot reach the server at {target}: {why}"))
        .hint("start one with `turnkeep up`, or check the address given with --server")
        .into()
}

async fn start_connection<S>(stream: S) -> Result<SendRequest<Full<Bytes>>>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream)
        .await
        .context("the server does not speak HTTP")?;
    // The task ends with the connection, which ends with the sender that is returned.
    tokio::spawn(async move {
        // A WebSocket begins as a request on such a connection.
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "the HTTP connection ended");
        }
    });
    Ok(sender)
}

/// Why there is no TLS connection, and how to make a certificate that the commands accept.
fn tls_error(target: &Target, error: &std::io::Error) -> anyhow::Error {
    let failure = Failure::new(format!("no TLS connection to {target}: {error}"));
    let name = target.certificate_name();
    let kind = if name.parse::<std::net::IpAddr>().is_ok() {
        "IP"
    } else {
        "DNS"
    };
    failure
        .hint(format!(
            "--tls-ca must name the server's own certificate or its authority's, and the certificate must name \
             {name}; this makes a good one: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
             -days 365 -keyout key.pem -out cert.pem -subj /CN={name} -addext subjectAltName={kind}:{name}"
        ))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, ca: bool, expect: &str) {
        let ca = ca.then(|| PathBuf::from("ca.pem"));
        let target =
            Target::parse(address, None, ca).map_or_else(|e| e.to_string(), |t| t.to_string());
        assert_eq!(target, expect, "{address}");
    }

    #[test]
    fn an_address_may_name_its_scheme_and_port() {
        check("127.0.0.1:80", false, "http://127.0.0.1:80");
        check("http://localhost/", false, "http://localhost:9010");
        check("box", true, "https://box:9010");
        check("https://box:1", true, "https://box:1");
        check("http://box:1", true, "http://box:1");
        check(
            "https://box",
            false,
            "https://box speaks TLS, but no trusted certificate is given",
        );
        check("[::1]:7", false, "http://[::1]:7");
        for bad in ["", "ftp://x", "a/b", "http://"] {
            check(bad, false, &format!("`{bad}` is not a server's address"));
        }
    }
}
