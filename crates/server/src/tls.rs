//! TLS for both ports: one certificate chain and key from PEM files, one crypto provider.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig as RustlsConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read or holds no PEM of the right kind.
    #[error("{path} cannot be used for TLS: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls_pki_types::pem::Error,
    },
    /// A certificate file without a certificate.
    #[error("{0} holds no certificate")]
    NoCertificate(PathBuf),
    /// A chain and key that do not go together, or are of no supported kind.
    #[error("the certificate and the key cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
}

/// An acceptor for the files. With `http`, clients that negotiate a protocol are offered HTTP/1.1.
pub(crate) fn acceptor(files: &TlsFiles, http: bool) -> Result<TlsAcceptor, TlsError> {
    let chain = read_chain(files)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| TlsError::File {
        path: files.key.clone(),
        source,
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = RustlsConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    if http {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read_chain(files: &TlsFiles) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refuse = |source| TlsError::File {
        path: files.cert.clone(),
        source,
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.cert)
        .map_err(refuse)?
        .collect::<Result<_, _>>()
        .map_err(refuse)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(files.cert.clone()));
    }
    Ok(chain)
}
