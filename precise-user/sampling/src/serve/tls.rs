//! TLS of the server, with the certificate of the operator.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::error::{ErrorClass, SamplingError};

/// The certificate and the key of a server.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its key, both in PEM.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, has no certificate or key, or if the key is not
    /// that of the certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, SamplingError> {
        let unreadable = |what: &str, path: &Path, error: &dyn fmt::Display| {
            let what = format!("cannot read the {what} in {}: {error}", path.display());
            SamplingError::new(ErrorClass::Invalid, what)
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| unreadable("certificate", certificate, &error))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("key", key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| unreadable("certificate", certificate, &error))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Greets a client.
    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}
