//! TLS on the HTTP port.

use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use turnkeep_journal::MemoryStorage;
use turnkeep_server::{ServeError, TlsFiles};

use crate::client::Server;

fn files() -> TlsFiles {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/http/tls");
    TlsFiles {
        cert: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    }
}

#[tokio::test]
async fn https_is_spoken_when_certificate_and_key_are_given() {
    let server = Server::start_with(|config| config.tls = Some(files())).await;
    assert!(server.link().starts_with("https://"));
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(files().cert).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.http_addr()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let origin = format!("https://{}", server.http_addr());
    let reply = server
        .call("POST", "/v1/contexts")
        .header("origin", &origin)
        .send_on(stream)
        .await;
    assert_eq!(reply.status, 201);
    server.stop().await;
}

#[tokio::test]
async fn files_that_are_no_certificate_stop_the_start() {
    let good = files();
    for (cert, key) in [
        (good.key.clone(), good.key.clone()),
        (good.cert.clone(), good.cert.clone()),
        ("none".into(), good.key),
    ] {
        let started = Server::try_start_on(MemoryStorage::new(), |config| {
            config.tls = Some(TlsFiles { cert, key });
        })
        .await;
        assert!(matches!(started, Err(ServeError::Tls(_))));
    }
}
