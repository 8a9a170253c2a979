//! TLS 1.2 and 1.3 as a layer between the network and a codec: bytes in, bytes out.

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM file of authorities to trust; without it, the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's certificate chain; goes with `key_file`.
    pub certificate_file: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub key_file: Option<PathBuf>,
    /// Name to ask for and to check instead of the target's host.
    pub server_name: Option<String>,
    /// Trust any certificate for any name. Never a default.
    pub insecure: bool,
    /// Agree on HTTP/2 (ALPN `h2`) instead of HTTP/1.1.
    pub http2: bool,
}

/// TLS that cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read or holds no PEM of its kind.
    #[error("{what} file '{path}': {reason}; give a PEM file")]
    File {
        /// Which of the files.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate without its key, or the other way round.
    #[error("a client certificate and its private key go together; give both files or none")]
    HalfPair,
    /// The system has no authorities to trust.
    #[error("this system has no certificate authorities; name a PEM file of the ones to trust")]
    NoAuthorities,
    /// A name that no certificate can carry.
    #[error("'{0}' is not a host name or address that TLS can ask for")]
    Name(String),
    /// rustls refused the set-up.
    #[error("TLS set-up: {0}")]
    Setup(#[from] rustls::Error),
}

/// A TLS client set-up, shared by all connections.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

fn file_error(what: &'static str, path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File { what, path: path.to_owned(), reason: reason.to_string() }
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|e| file_error(what, path, pem_reason(&e)))?
        .collect();
    let found = found.map_err(|e| file_error(what, path, pem_reason(&e)))?;
    if found.is_empty() {
        return Err(file_error(what, path, "it holds no certificate"));
    }
    Ok(found)
}

fn pem_reason(error: &rustls_pki_types::pem::Error) -> String {
    match error {
        rustls_pki_types::pem::Error::Io(io) => io.to_string(),
        rustls_pki_types::pem::Error::NoItemsFound => "it holds no such PEM section".to_owned(),
        other => format!("{other:?}"),
    }
}

impl Tls {
    /// Reads the files and makes the set-up.
    ///
    /// # Errors
    /// The first file or option that does not work, before any load is sent.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
        let builder = if options.insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(TrustAnything { provider }))
        } else {
            builder.with_root_certificates(roots(options)?)
        };
        let mut config = match (&options.certificate_file, &options.key_file) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates("client certificate", certificate)?;
                let key_der = PrivateKeyDer::from_pem_file(key)
                    .map_err(|e| file_error("private key", key, pem_reason(&e)))?;
                builder.with_client_auth_cert(chain, key_der)?
            }
            _ => return Err(TlsError::HalfPair),
        };
        // Every connection is a full handshake, so that reconnecting costs the same each time.
        config.resumption = Resumption::disabled();
        let version: &[u8] = if options.http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![version.to_vec()];
        Ok(Self { config: Arc::new(config), server_name: options.server_name.clone() })
    }

    /// The name that a connection to `host` asks for.
    ///
    /// # Errors
    /// When it is neither a DNS name nor an IP address.
    pub fn name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let name = self.server_name.as_deref().unwrap_or(host);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
    }

    /// Whether a connection whose handshake is through speaks what was asked for. A server that knows nothing of
    /// ALPN speaks HTTP/1.1.
    pub(crate) fn is_agreed(&self, connection: &ClientConnection) -> bool {
        let wanted = self.config.alpn_protocols.first().map(Vec::as_slice);
        wanted != Some(b"h2") || connection.alpn_protocol() == wanted
    }

    /// A fresh connection that asks for `name`.
    pub(crate) fn connection(
        &self,
        name: ServerName<'static>,
    ) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(self.config.clone(), name)
    }
}

fn roots(options: &TlsOptions) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = &options.ca_file {
        for certificate in certificates("CA", path)? {
            store.add(certificate).map_err(|e| file_error("CA", path, e))?;
        }
    } else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(TlsError::NoAuthorities);
        }
    }
    Ok(store)
}

/// The verifier behind `--insecure`: signatures are still checked, whose they are is not.
#[derive(Debug)]
struct TrustAnything {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
