//! The options of a connection, checked and handed to the client.

use super::errors::ConnectError;
use crate::address::BusAddress;
use crate::credentials::Credentials;
use crate::queue::Bounds;
use async_nats::ConnectOptions;
use plimsoll_core::rng::splitmix64;
use plimsoll_core::secrets::remember;
use plimsoll_core::system_error::words;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest pause between two attempts to connect again.
const BACK_OFF_MAX: Duration = Duration::from_millis(500);
/// Pause after the first failed attempt; it doubles up to [`BACK_OFF_MAX`].
const BACK_OFF: Duration = Duration::from_millis(20);
/// Silence after which the server is asked for a sign of life; after the third without an answer the link is lost.
const PING_EVERY: Duration = Duration::from_secs(2);
/// Messages that may wait for the socket: 64 MiB if all are as large as can be.
const WAITING_MAX: usize = 256;
/// Messages between the socket and the queue of a subscription. Larger than all that one reading of the socket brings, so
/// that what is lost is lost in the queue, where it is counted for the subscription.
const PASSING_MAX: usize = 1 << 20;
/// Length of an NKey seed in letters.
const SEED_LETTERS: usize = 58;

/// Settings of TLS. Without a CA file, the certificates of the system are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// PEM file with the authorities to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM file with the certificate of this client.
    pub certificate: Option<PathBuf>,
    /// PEM file with its key.
    pub key: Option<PathBuf>,
    /// Begin with TLS, as a server with `handshake_first` expects.
    pub is_first: bool,
}

impl Tls {
    fn is_asked(&self) -> bool {
        *self != Self::default()
    }
}

/// Options of [`super::Nats::connect`].
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The server.
    pub address: BusAddress,
    /// The credentials for it.
    pub credentials: Credentials,
    /// The settings of TLS.
    pub tls: Tls,
    /// Name of this client in the server's log and monitoring.
    pub name: String,
    /// Longest time for one attempt to connect.
    pub connect_within: Duration,
    /// Time for which a server that is not there yet is asked again; zero for a single attempt.
    pub wait_for_server: Duration,
    /// Limits of the queue of each subscription.
    pub bounds: Bounds,
}

impl NatsOptions {
    /// Returns options with the defaults: 5 s to connect, one attempt, no credentials.
    #[must_use]
    pub fn new(address: BusAddress, name: &str) -> Self {
        Self {
            address,
            credentials: Credentials::None,
            tls: Tls::default(),
            name: name.to_owned(),
            connect_within: Duration::from_secs(5),
            wait_for_server: Duration::ZERO,
            bounds: Bounds::default(),
        }
    }

    /// Returns true if the connection must use TLS.
    pub(super) fn wants_tls(&self) -> bool {
        self.address.is_tls() || self.tls.is_asked()
    }

    /// Reads the files that are named, and makes the options of the client.
    pub(super) fn for_client(&self) -> Result<ConnectOptions, ConnectError> {
        let name_hash = self.name.bytes().fold(0, |hash, b| splitmix64(hash ^ u64::from(b)));
        let options = ConnectOptions::new()
            .name(&self.name)
            .connection_timeout(self.connect_within)
            .ping_interval(PING_EVERY)
            .client_capacity(WAITING_MAX)
            .subscription_capacity(PASSING_MAX)
            .ignore_discovered_servers()
            .max_reconnects(None)
            .reconnect_delay_callback(move |attempt| back_off(attempt, name_hash));
        let options = self.with_credentials(options)?;
        self.with_tls(options)
    }

    fn with_credentials(&self, options: ConnectOptions) -> Result<ConnectOptions, ConnectError> {
        Ok(match &self.credentials {
            Credentials::None => options,
            Credentials::User { name, password } => {
                options.user_and_password(name.clone(), password.clone())
            }
            Credentials::Token(token) => options.token(token.clone()),
            Credentials::NkeyFile(path) => options.nkey(seed(path)?),
            Credentials::CredsFile(path) => {
                let text = read_text(path)?;
                text.lines().map(str::trim).filter(|line| is_seed(line)).for_each(remember);
                options
                    .credentials(&text)
                    .map_err(|_| broken(path, "it has no JWT and NKey seed as in a .creds file"))?
            }
        })
    }

    fn with_tls(&self, mut options: ConnectOptions) -> Result<ConnectOptions, ConnectError> {
        options = options.require_tls(self.wants_tls());
        if let Some(ca) = &self.tls.ca {
            check_certificates(ca)?;
            options = options.add_root_certificates(ca.clone());
        }
        match (&self.tls.certificate, &self.tls.key) {
            (None, None) => {}
            (Some(certificate), Some(key)) => {
                check_certificates(certificate)?;
                let bytes = std::fs::read(key).map_err(|error| broken(key, &words(&error)))?;
                PrivateKeyDer::from_pem_slice(&bytes)
                    .map_err(|_| broken(key, "it holds no private key in PEM"))?;
                options = options.add_client_certificate(certificate.clone(), key.clone());
            }
            (Some(path), None) => return Err(broken(path, "this certificate needs its key")),
            (None, Some(path)) => return Err(broken(path, "this key needs its certificate")),
        }
        Ok(if self.tls.is_first { options.tls_first() } else { options })
    }
}

/// Returns the pause before an attempt, with up to half of it taken off, by client: a thousand agents that lost the same server do
/// not return in one instant.
fn back_off(attempt: usize, name_hash: u64) -> Duration {
    if attempt <= 1 {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(attempt - 2).unwrap_or(u32::MAX).min(10);
    let pause = (BACK_OFF * 2u32.pow(doublings)).min(BACK_OFF_MAX);
    let share = splitmix64(name_hash ^ attempt as u64) % 1024;
    pause - pause.mul_f64(share as f64 / 2048.0)
}

fn broken(path: &Path, why: &str) -> ConnectError {
    ConnectError::File { path: path.to_owned(), why: why.to_owned() }
}

fn read_text(path: &Path) -> Result<String, ConnectError> {
    std::fs::read_to_string(path).map_err(|error| broken(path, &words(&error)))
}

fn check_certificates(path: &Path) -> Result<(), ConnectError> {
    let bytes = std::fs::read(path).map_err(|error| broken(path, &words(&error)))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(found) if !found.is_empty() => Ok(()),
        _ => Err(broken(path, "it holds no certificate in PEM")),
    }
}

fn is_seed(line: &str) -> bool {
    line.len() == SEED_LETTERS
        && line.starts_with("SU")
        && line.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn seed(path: &Path) -> Result<String, ConnectError> {
    let text = read_text(path)?;
    let line = text.lines().map(str::trim).find(|line| is_seed(line));
    let seed = line.ok_or_else(|| {
        broken(path, "it holds no NKey seed of a user, which has 58 letters and begins with SU")
    })?;
    remember(seed);
    Ok(seed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_before_another_attempt_grows_to_half_a_second() {
        assert_eq!(back_off(0, 1), Duration::ZERO);
        assert_eq!(back_off(1, 1), Duration::ZERO);
        for attempt in 2..200 {
            let pause = back_off(attempt, 7);
            assert!(pause >= BACK_OFF / 2 && pause <= BACK_OFF_MAX, "{attempt}: {pause:?}");
        }
        assert!(back_off(20, 7) >= BACK_OFF_MAX / 2);
        assert_ne!(back_off(20, 7), back_off(20, 8));
    }

    #[test]
    fn a_file_that_is_not_what_it_must_be_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty.pem");
        std::fs::write(&empty, "secret-text").unwrap();
        let missing = dir.path().join("missing");
        let base = NatsOptions::new("nats://h".parse().unwrap(), "test");
        let tls = |ca, certificate, key| Tls { ca, certificate, key, is_first: false };
        let with_tls = |tls| NatsOptions { tls, ..base.clone() };
        let with = |credentials| NatsOptions { credentials, ..base.clone() };
        for (options, word) in [
            (with_tls(tls(Some(empty.clone()), None, None)), "no certificate"),
            (with_tls(tls(Some(missing.clone()), None, None)), "no such file"),
            (with_tls(tls(None, Some(empty.clone()), None)), "needs its key"),
            (with_tls(tls(None, None, Some(empty.clone()))), "needs its certificate"),
            (with(Credentials::NkeyFile(empty.clone())), "NKey seed"),
            (with(Credentials::CredsFile(empty.clone())), "JWT"),
            (with(Credentials::CredsFile(missing.clone())), "no such file"),
        ] {
            let error = options.for_client().map(drop).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret-text"), "{error}");
            assert!(error.contains("empty.pem") || error.contains("missing"), "{error}");
        }
    }
}
