//! Sends JSON to one configured address: how a person hears elsewhere that something waits.
//!
//! Without TLS only an address of this machine is accepted, because the items name directories and
//! quote agents. The certificate of a server must be signed by an authority of the system, or by the
//! one that the configuration names. Redirects are not followed, and the answer's body is ignored.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::rt::{Read, Write};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long one delivery may take.
const DELIVERY_MAX: Duration = Duration::from_secs(10);

/// Where systems keep the certificates of the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// An address that may get what waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    uri: Uri,
    /// The authority that signed the server's certificate; one of the system's unless given.
    authority: Option<PathBuf>,
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Not an address.
    #[error("expected https://HOST/PATH, or http:// and an address of this machine")]
    NotAnAddress,
    /// Others could read what is sent.
    #[error("{0} is not this machine: use https")]
    Unprotected(String),
}

/// Why a delivery failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    #[error("no certificate of an authority was found: name one as runs.notify.webhook_ca")]
    NoAuthority,
    #[error("the certificates cannot be used: {0}")]
    Tls(String),
    #[error("the request failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("the answer is {0}")]
    Refused(u16),
    #[error("no answer in time")]
    Late,
}

impl WebhookTarget {
    /// Reads an address.
    pub fn parse(text: &str, authority: Option<PathBuf>) -> Result<Self, WebhookError> {
        let uri: Uri = text.parse().map_err(|_| WebhookError::NotAnAddress)?;
        let host = uri.host().ok_or(WebhookError::NotAnAddress)?;
        let has_user = uri
            .authority()
            .is_some_and(|whole| whole.as_str().contains('@'));
        match uri.scheme_str() {
            // A password in an address would end up in logs.
            _ if has_user => Err(WebhookError::NotAnAddress),
            Some("https") => Ok(Self { uri, authority }),
            Some("http") if is_this_machine(host) => Ok(Self { uri, authority }),
            Some("http") => Err(WebhookError::Unprotected(host.to_owned())),
            _ => Err(WebhookError::NotAnAddress),
        }
    }

    fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// The host without the brackets of an IPv6 address.
    fn host(&self) -> &str {
        let host = self.uri.host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    fn port(&self) -> u16 {
        let default = if self.is_secure() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(default)
    }

    /// Sends a document.
    pub(super) async fn deliver(&self, document: Bytes) -> Result<(), DeliveryError> {
        let delivery = self.deliver_unbounded(document);
        let done = tokio::time::timeout(DELIVERY_MAX, delivery).await;
        done.unwrap_or(Err(DeliveryError::Late))
    }

    async fn deliver_unbounded(&self, document: Bytes) -> Result<(), DeliveryError> {
        let dial = TcpStream::connect((self.host(), self.port()));
        let stream = dial.await.map_err(DeliveryError::Connect)?;
        if !self.is_secure() {
            return self.send(TokioIo::new(stream), document).await;
        }
        let invalid = |error: &dyn fmt::Display| DeliveryError::Tls(error.to_string());
        let name = ServerName::try_from(self.host().to_owned()).map_err(|error| invalid(&error))?;
        let config = client_config(self.authority.as_deref())?;
        let secured = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let stream = secured.await.map_err(DeliveryError::Connect)?;
        self.send(TokioIo::new(stream), document).await
    }

    async fn send(
        &self,
        stream: impl Read + Write + Unpin + Send + 'static,
        document: Bytes,
    ) -> Result<(), DeliveryError> {
        let (mut sender, connection) = handshake(stream).await?;
        let authority = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::post(path)
            .header(HOST, authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(document))
            .map_err(|error| DeliveryError::Tls(error.to_string()))?;
        // The connection does the work of the request, and ends with it.
        let answer = tokio::select! {
            answer = sender.send_request(request) => answer?,
            ended = connection => return Err(ended.err().map_or(DeliveryError::Late, Into::into)),
        };
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(DeliveryError::Refused(answer.status().as_u16()))
        }
    }
}

impl fmt::Display for WebhookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path or a query may hold a secret.
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        write!(f, "{scheme}://{authority}/…")
    }
}

fn is_this_machine(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    plain.eq_ignore_ascii_case("localhost") || plain.parse().is_ok_and(is_loopback)
}

fn client_config(authority: Option<&Path>) -> Result<ClientConfig, DeliveryError> {
    let file = match authority {
        Some(file) => file.to_owned(),
        None => find_system_authorities().ok_or(DeliveryError::NoAuthority)?,
    };
    let unusable =
        |error: &dyn fmt::Display| DeliveryError::Tls(format!("{}: {error}", file.display()));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&file).map_err(|error| unusable(&error))?;
    // A bundle of a system may have a certificate that this library does not know.
    roots.add_parsable_certificates(certificates.filter_map(Result::ok));
    if roots.is_empty() {
        return Err(DeliveryError::NoAuthority);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn find_system_authorities() -> Option<PathBuf> {
    let files = SYSTEM_AUTHORITIES.iter().map(PathBuf::from);
    files.into_iter().find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_this_machine_may_hear() {
        fn check(text: &str, expect: Result<&str, WebhookError>) {
            let parsed = WebhookTarget::parse(text, None).map(|target| target.to_string());
            assert_eq!(parsed, expect.map(str::to_owned), "{text}");
        }
        check(
            "https://hooks.example/secret",
            Ok("https://hooks.example/…"),
        );
        check(
            "http://127.0.0.1:8080/x?key=1",
            Ok("http://127.0.0.1:8080/…"),
        );
        check("http://localhost/x", Ok("http://localhost/…"));
        check("http://[::1]:9/x", Ok("http://[::1]:9/…"));
        let unprotected = |host: &str| Err(WebhookError::Unprotected(host.to_owned()));
        check("http://hooks.example/x", unprotected("hooks.example"));
        check("http://192.0.2.1/x", unprotected("192.0.2.1"));
        check(
            "http://127.0.0.1.example/x",
            unprotected("127.0.0.1.example"),
        );
        for bad in [
            "",
            "hooks.example",
            "ftp://a/b",
            "https://me:secret@a/b",
            "/x",
        ] {
            check(bad, Err(WebhookError::NotAnAddress));
        }
    }
}
