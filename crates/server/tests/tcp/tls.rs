//! TLS on the binary port.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use turnkeep_server::TlsFiles;
use turnkeep_wire::message::{Request, Response};

use crate::support::{Peer, Server, append, noise};

fn files() -> TlsFiles {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/http/tls");
    TlsFiles {
        cert: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    }
}

async fn connect(server: &Server) -> Peer {
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
    let stream = TcpStream::connect(server.tcp_addr()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    Peer::over(Box::new(
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap(),
    ))
}

#[tokio::test]
async fn frames_of_all_sizes_pass_through_tls() {
    let server = Server::start_with(|config| config.tls = Some(files())).await;
    let mut peer = connect(&server).await;
    let home = peer.new_context().await;
    let large = Bytes::from(noise(8 << 20));
    let ack = peer.append(append(home, large.clone())).await;
    for _ in 0..3 {
        peer.send(&Request::GetBlob(ack.hash)).await;
        peer.send(&Request::GetHead(home)).await;
    }
    for _ in 0..3 {
        assert_eq!(peer.receive().await.1, Response::Blob(large.clone()));
        assert!(matches!(peer.receive().await.1, Response::Head(_)));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_peer_without_tls_is_not_served() {
    let server = Server::start_with(|config| config.tls = Some(files())).await;
    let mut peer = server.connect().await;
    let mut out = bytes::BytesMut::new();
    Request::Hello(None).encode(1, &mut out);
    peer.send_bytes(&out).await;
    assert!(peer.no_frame().await);
    server.stop().await;
}
