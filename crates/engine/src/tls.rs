//! TLS 1.2 and 1.3 as a layer between the network and a codec: bytes in, bytes out.

use plimsoll_core::outcome::Cause;
use plimsoll_wire::{Layer, Protocol};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Longest file of certificates or of a key, bytes; the authorities of a system take less than 1 MiB.
const PEM_BYTES_MAX: u64 = 16 << 20;

/// TLS options of the user.
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
    /// Verification of the server's certificate.
    pub trust: Trust,
    /// Protocol inside TLS.
    pub speaks: Speaks,
}

/// Requirements on a server's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Signed by an authority that is trusted, and for the name that was asked for.
    #[default]
    Full,
    /// Signed by an authority that is trusted, whoever it is for.
    Chain,
    /// Anything. Never a default but where users of the protocol expect it.
    Anything,
}

/// The protocol that is agreed on by ALPN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaks {
    /// `http/1.1`.
    #[default]
    Http1,
    /// `h2`; a server that does not choose it is refused.
    Http2,
    /// `postgresql`; servers before version 17 do not know it and choose nothing.
    Postgresql,
}

impl Speaks {
    const fn alpn(self) -> &'static [u8] {
        match self {
            Speaks::Http1 => b"http/1.1",
            Speaks::Http2 => b"h2",
            Speaks::Postgresql => b"postgresql",
        }
    }
}

/// TLS that cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read or holds no PEM of its kind.
    #[error("{what} file '{path}': {reason}; give a PEM file")]
    File {
        /// Name of the file's role.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Description of the problem.
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
    speaks: Speaks,
}

/// Reason why TLS did not come about, or broke.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TlsRefusal {
    /// No authority that is trusted has signed the certificate, or its time is over.
    #[error("the server's certificate is not trusted: {0}")]
    Untrusted(String),
    /// The certificate is of X.509 version 1.
    #[error("the server's certificate is of X.509 version 1, which holds no names")]
    Version1,
    /// The certificate is good, for another client.
    #[error("the server's certificate is for another name: {0}")]
    WrongName(String),
    /// The peer's answer about TLS is not of the protocol. The text says what was expected.
    #[error("{0}")]
    Foreign(&'static str),
    /// The server does not choose HTTP/2.
    #[error("{NO_HTTP2}")]
    NoHttp2,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl TlsRefusal {
    /// The cause, where the user can do something about it.
    pub(crate) const fn cause(&self) -> Cause {
        match self {
            Self::Untrusted(_) | Self::Version1 | Self::WrongName(_) => Cause::Certificate,
            Self::NoHttp2 => Cause::NoHttp2,
            Self::Foreign(_) | Self::Other(_) => Cause::Unknown,
        }
    }
}

/// Reason why a connection that was to carry HTTP/2 cannot be used.
pub(crate) const NO_HTTP2: &str = "the server does not support HTTP/2: it did not choose h2 (ALPN)";
/// Error for plain text after a grant of TLS: it would be taken for the server's own words, sent encrypted.
const INJECTED: &str =
    "unexpected plain text after the answer about TLS: a machine in between may have inserted it";

/// Returns the layer that carries the protocol, by all that came in answer to its preamble (CVE-2021-23222).
pub(crate) fn layer_of<P: Protocol>(protocol: &P, bytes: &[u8]) -> Result<Layer, TlsRefusal> {
    let other = |text: &str| TlsRefusal::Other(text.to_owned());
    let (answer, rest) =
        bytes.split_first().ok_or_else(|| other("the answer about TLS is empty"))?;
    let layer = protocol.preamble_answered(*answer).map_err(TlsRefusal::Foreign)?;
    if rest.is_empty() { Ok(layer) } else { Err(other(INJECTED)) }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

fn file_error(what: &'static str, path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File { what, path: path.to_owned(), reason: reason.to_string() }
}

/// The bytes of a file of certificates or of a key, which cannot be long.
fn pem_bytes(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| file_error(what, path, error))?;
    if bytes.len() as u64 > PEM_BYTES_MAX {
        return Err(file_error(what, path, "it has more than 16 MiB, and is not a PEM file"));
    }
    Ok(bytes)
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = pem_bytes(what, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
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
        let verifier = Verifier::new(options, provider)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&options.certificate_file, &options.key_file) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates("client certificate", certificate)?;
                let key_der = PrivateKeyDer::from_pem_slice(&pem_bytes("private key", key)?)
                    .map_err(|e| file_error("private key", key, pem_reason(&e)))?;
                builder.with_client_auth_cert(chain, key_der)?
            }
            _ => return Err(TlsError::HalfPair),
        };
        // Every connection is a full handshake, so that reconnecting costs the same each time.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![options.speaks.alpn().to_vec()];
        let server_name = options.server_name.clone();
        Ok(Self { config: Arc::new(config), server_name, speaks: options.speaks })
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

    /// Returns true if a connection whose handshake is through speaks what was asked for. A server that knows nothing of
    /// ALPN speaks HTTP/1.1.
    pub(crate) fn is_agreed(&self, connection: &ClientConnection) -> bool {
        self.speaks != Speaks::Http2 || connection.alpn_protocol() == Some(Speaks::Http2.alpn())
    }

    /// An error in words, of the handshake or after it.
    pub(crate) fn refusal(&self, error: &rustls::Error, is_handshaking: bool) -> TlsRefusal {
        use rustls::{AlertDescription, CertificateError, Error};
        let text = match error {
            Error::InvalidMessage(problem) if is_handshaking => match self.speaks {
                Speaks::Postgresql => {
                    format!("the server accepted TLS and then did not use it ({problem:?})")
                }
                Speaks::Http1 | Speaks::Http2 => {
                    format!("the server does not use TLS ({problem:?}); it may be http://")
                }
            },
            Error::NoApplicationProtocol
            | Error::AlertReceived(AlertDescription::NoApplicationProtocol)
                if self.speaks == Speaks::Http2 =>
            {
                return TlsRefusal::NoHttp2;
            }
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => return TlsRefusal::WrongName(error.to_string()),
            Error::InvalidCertificate(CertificateError::Other(other)) if is_version_1(other) => {
                return TlsRefusal::Version1;
            }
            Error::InvalidCertificate(_) => return TlsRefusal::Untrusted(error.to_string()),
            _ => error.to_string(),
        };
        TlsRefusal::Other(text)
    }

    /// A fresh connection that asks for `name`. Data written to it waits without a limit: a request body is
    /// bounded by its source.
    pub(crate) fn connection(
        &self,
        name: ServerName<'static>,
    ) -> Result<ClientConnection, rustls::Error> {
        let mut connection = ClientConnection::new(self.config.clone(), name)?;
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

/// Returns true for a certificate of X.509 version 1. rustls passes on the error of its verifier without its type.
fn is_version_1(error: &rustls::OtherError) -> bool {
    format!("{error:?}").contains("UnsupportedCertVersion")
}

/// The authorities of a file, or the system's.
fn roots(listed: Option<(&Path, &[CertificateDer<'static>])>) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    if let Some((path, certificates)) = listed {
        for certificate in certificates {
            store.add(certificate.clone()).map_err(|e| file_error("CA", path, e))?;
        }
    } else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(TlsError::NoAuthorities);
        }
    }
    Ok(store)
}

/// Looks at a server's certificate as closely as it was asked to. Signatures of the handshake are always checked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    trust: Trust,
    roots: RootCertStore,
    /// The certificates of the user's own file. A server may have signed its certificate itself and the file be a
    /// copy of it: such a one is no authority's, and trusted all the same.
    listed: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let (trust, path) = (options.trust, options.ca_file.as_deref());
        if trust == Trust::Anything {
            return Ok(Self { provider, trust, roots: RootCertStore::empty(), listed: Vec::new() });
        }
        let listed = path.map(|path| certificates("CA", path)).transpose()?.unwrap_or_default();
        let roots = roots(path.map(|path| (path, listed.as_slice())))?;
        Ok(Self { provider, trust, roots, listed })
    }

    fn is_listed(&self, certificate: &CertificateDer<'_>) -> bool {
        self.listed.iter().any(|own| own.as_ref() == certificate.as_ref())
    }
}

/// Returns true if a certificate is refused for its time, which is looked at before anything else.
fn is_out_of_date(error: &rustls::Error) -> bool {
    use rustls::CertificateError as Wrong;
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            Wrong::Expired
                | Wrong::ExpiredContext { .. }
                | Wrong::NotValidYet
                | Wrong::NotValidYetContext { .. }
        )
    )
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.trust == Trust::Anything {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let signed = verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            algorithms,
        );
        if let Err(error) = signed
            && (is_out_of_date(&error) || !self.is_listed(end_entity))
        {
            return Err(error);
        }
        if self.trust == Trust::Full {
            verify_server_name(&certificate, server_name)?;
        }
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

#[cfg(test)]
mod tests;
