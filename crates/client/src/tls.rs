//! Certificate trust: the client trusts the certificates of one PEM file, as authorities or as the
//! server's own certificate.
//!
//! `openssl req -x509` makes a self-signed certificate that is marked as an authority, and the
//! usual rules reject an authority as a server's certificate. If the file contains exactly the
//! server's certificate, the client accepts it all the same. It still checks the name and the
//! dates, and the server must prove that it has the key.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as RustlsError, RootCertStore,
    SignatureScheme,
};

use crate::error::Error;

/// Makes a configuration that trusts the certificates of a PEM file and no others.
pub fn client_config(ca_file: &Path) -> Result<ClientConfig, Error> {
    let failed =
        |error: &dyn std::fmt::Display| Error::Tls(format!("{}: {error}", ca_file.display()));
    let provider = Arc::new(ring::default_provider());
    let verifier =
        Verifier::new(read_certificates(ca_file)?, &provider).map_err(|error| failed(&error))?;
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // Rustls calls any verifier of one's own dangerous. This one checks all that the usual one does,
    // but for the exception above.
    let config = config.map_err(|error| failed(&error))?.dangerous();
    Ok(config
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Tls(format!("{}: {error}", file.display()));
    let read = CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))?;
    let certificates: Vec<_> = read
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    if certificates.is_empty() {
        return Err(failed(&"the file holds no certificate"));
    }
    Ok(certificates)
}

/// The usual verifier. It also accepts a server certificate that is in the trusted file.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone())?;
        }
        let usual =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self {
            usual: usual.build()?,
            trusted,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, RustlsError> {
        let verified = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if is_authority(&error) && self.trusted.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.usual
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.usual
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether a certificate was rejected only because it is an authority's. The dates are checked
/// before that, so an expired certificate is rejected for its dates. The error has no other
/// name.
fn is_authority(error: &RustlsError) -> bool {
    let RustlsError::InvalidCertificate(CertificateError::Other(other)) = error else {
        return false;
    };
    format!("{other:?}").contains("CaUsedAsEndEntity")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the test's certificates are valid, and when they have not been or are no longer.
    const VALID: u64 = 1_800_000_000;
    const BEFORE: u64 = 1_000_000_000;
    const AFTER: u64 = 9_000_000_000;

    fn certificate(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn verify(trusted: &str, shown: &str, name: &str, now: u64) -> Result<(), String> {
        let verifier = Verifier::new(
            vec![certificate(trusted)],
            &Arc::new(ring::default_provider()),
        )
        .unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let verified = verifier.verify_server_cert(&certificate(shown), &[], &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_self_signed_certificate_that_is_named_is_trusted_within_its_names_and_dates() {
        let (own, other) = (
            include_str!("tls/self_signed.pem"),
            include_str!("tls/other.pem"),
        );
        assert_eq!(verify(own, own, "localhost", VALID), Ok(()));
        assert_eq!(verify(own, own, "127.0.0.1", VALID), Ok(()));
        for (trusted, name, now) in [
            (own, "example.org", VALID),
            (own, "localhost", BEFORE),
            (own, "localhost", AFTER),
            (other, "localhost", VALID),
        ] {
            assert!(verify(trusted, own, name, now).is_err(), "{name} {now}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = client_config(file.path()).unwrap_err().to_string();
        assert!(error.contains("holds no certificate"), "{error}");
    }
}
