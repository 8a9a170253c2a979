//! Reasons why there is no connection to a server, each one line.

use async_nats::ConnectErrorKind;
use rustls::{AlertDescription, CertificateError};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// A connection that was not made. No text holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nothing listens there, or the name is unknown.
    #[error(
        "no NATS server at {place} ({why}); start one there with: plimsoll serve nats --port {port}"
    )]
    NoServer {
        /// Host and port.
        place: String,
        /// Port.
        port: u16,
        /// The words of the system.
        why: String,
    },
    /// Something accepts the connection and says nothing.
    #[error(
        "{place} did not answer as a NATS server within {} s; check host and port (a server that begins with TLS needs \
         the option for it)", .within.as_secs_f64()
    )]
    Silent {
        /// Host and port.
        place: String,
        /// Time that was waited.
        within: Duration,
    },
    /// Another kind of server.
    #[error("{place} is not a NATS server; check host and port")]
    Foreign {
        /// Host and port.
        place: String,
    },
    /// A version without what is needed.
    #[error(
        "the NATS server at {place} has version {found}; plimsoll needs 2.10 or later: plimsoll install nats"
    )]
    TooOld {
        /// Host and port.
        place: String,
        /// The version that it reports.
        found: String,
    },
    /// The server rejects the credentials.
    #[error("the NATS server at {place} rejects {credentials}; check the credentials")]
    Rejected {
        /// Host and port.
        place: String,
        /// Their kind, and of a user its name.
        credentials: String,
    },
    /// The server requires credentials and there are none.
    #[error(
        "the NATS server at {place} requires credentials; give a user and password, a token, an NKey seed file or a \
         .creds file"
    )]
    NoCredentials {
        /// Host and port.
        place: String,
    },
    /// The server does not permit what every client needs.
    #[error(
        "the NATS server at {place} does not permit '_INBOX.>' to {credentials}; permit to publish and subscribe to it"
    )]
    NoInbox {
        /// Host and port.
        place: String,
        /// Their kind, and of a user its name.
        credentials: String,
    },
    /// The certificate of the server is not accepted.
    #[error("the certificate of the NATS server at {place} {why}")]
    Certificate {
        /// Host and port.
        place: String,
        /// The fault, and its remedy.
        why: &'static str,
    },
    /// The server does not accept the certificate of this client.
    #[error("the NATS server at {place} {why}")]
    ClientCertificate {
        /// Host and port.
        place: String,
        /// The fault, and its remedy.
        why: &'static str,
    },
    /// TLS was asked for, and the server does not speak it.
    #[error(
        "the NATS server at {place} does not offer TLS; use nats:// without options of TLS, or configure TLS there"
    )]
    NoTls {
        /// Host and port.
        place: String,
    },
    /// Another failure of TLS.
    #[error("TLS with {place} failed: {why}")]
    Tls {
        /// Host and port.
        place: String,
        /// The words of the library.
        why: String,
    },
    /// A server that takes only shorter messages.
    #[error(
        "the NATS server at {place} accepts messages of {found} bytes; set max_payload there to {} or more",
        crate::PAYLOAD_MAX
    )]
    SmallPayload {
        /// Host and port.
        place: String,
        /// Its limit.
        found: usize,
    },
    /// A file of certificates or credentials.
    #[error("{}: {why}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// Anything else.
    #[error("cannot connect to the NATS server at {place}: {why}")]
    Other {
        /// Host and port.
        place: String,
        /// The words of the client library, without line ends.
        why: String,
    },
}

impl ConnectError {
    /// Returns true if a server that starts a little later would heal it.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoServer { .. } | Self::Silent { .. })
    }
}

/// An attempt to connect, as far as its errors name it.
pub struct Attempt {
    pub place: String,
    pub credentials: String,
    pub has_credentials: bool,
    pub has_client_certificate: bool,
    pub within: Duration,
}

impl Attempt {
    /// Finds the reason behind an error of the client.
    pub fn reason(&self, error: &async_nats::ConnectError) -> ConnectError {
        let place = self.place.clone();
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation => return self.rejected(),
            ConnectErrorKind::Authentication => return self.rejected(),
            ConnectErrorKind::TimedOut => {
                return ConnectError::Silent { place, within: self.within };
            }
            _ => {}
        }
        if let Some(error) = tls_error(error) {
            return self.tls_reason(error);
        }
        let why = one_line(&chain(error));
        let lower = why.to_lowercase();
        if lower.contains("authentication") || lower.contains("authorization") {
            return self.rejected();
        }
        match error.kind() {
            ConnectErrorKind::Tls => ConnectError::Tls { place, why },
            _ => ConnectError::Other { place, why },
        }
    }

    fn rejected(&self) -> ConnectError {
        let place = self.place.clone();
        match self.has_credentials {
            true => ConnectError::Rejected { place, credentials: self.credentials.clone() },
            false => ConnectError::NoCredentials { place },
        }
    }

    fn tls_reason(&self, error: &rustls::Error) -> ConnectError {
        let place = self.place.clone();
        match error {
            rustls::Error::InvalidCertificate(error) => {
                ConnectError::Certificate { place, why: certificate_words(error) }
            }
            rustls::Error::AlertReceived(alert) => self.alert(*alert),
            rustls::Error::InvalidMessage(_) => ConnectError::NoTls { place },
            _ => ConnectError::Tls { place, why: one_line(&error.to_string()) },
        }
    }

    /// Finds the reason behind an alert: the server rejects the client's certificate, or something else.
    fn alert(&self, alert: AlertDescription) -> ConnectError {
        let place = self.place.clone();
        let is_of_certificate = matches!(
            alert,
            AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
        );
        let why = match (is_of_certificate, self.has_client_certificate) {
            (true, false) => "requires a client certificate; give one with its key",
            (true, true) => "rejects the client certificate; check its authority and its dates",
            (false, _) => {
                return ConnectError::Tls { place, why: format!("the server sent {alert:?}") };
            }
        };
        ConnectError::ClientCertificate { place, why }
    }
}

fn certificate_words(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired; renew it, or set the clock of this machine"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet; set the clock of this machine, or wait"
        }
        CertificateError::UnknownIssuer => {
            "is not signed by a trusted authority; give the CA file that signed it"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is for another name; use the name that it has"
        }
        CertificateError::Revoked => "is revoked; renew it",
        _ => "is invalid; renew it",
    }
}

/// Finds an error of TLS among the causes. An error of input or output holds its cause as itself, not as a source.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = error.source();
    }
    text
}

/// Makes one line of what a server or a library says.
pub fn one_line(text: &str) -> String {
    const LETTERS_MAX: usize = 200;
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(LETTERS_MAX).collect()
}
