//! TLS to PostgreSQL, as the parameters of an address ask for it: those of libpq, with its meaning and its default.

use crate::postgres::escapes::{decoded, encoded};
use crate::usage::usage;
use anyhow::Result;
use plimsoll_engine::exchange::ExchangeError;
use plimsoll_engine::tls::{Speaks, Tls, TlsOptions, TlsRefusal, Trust};
use std::path::PathBuf;

/// Value of `sslrootcert` for the authorities of the system.
const SYSTEM: &str = "system";
/// Names of all parameters that an address may have.
const NAMES: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];
/// The same in words.
const KNOWN: &str = "known are sslmode, sslrootcert, sslcert and sslkey";

/// `sslmode`: how much is asked of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS where the server has it. Also what `allow` comes to, which libpq tries in clear first.
    #[default]
    Prefer,
    /// TLS; the certificate is checked only if `sslrootcert` names an authority.
    Require,
    /// TLS with a server whose certificate an authority of `sslrootcert` signed.
    VerifyCa,
    /// The same, and under the name that was asked for.
    VerifyFull,
}

impl SslMode {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(format!(
                    "invalid sslmode '{text}'; expected disable, prefer, require, verify-ca or verify-full"
                ));
            }
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// TLS options of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// Value of `sslmode`.
    pub mode: SslMode,
    /// The authorities; without them the system's.
    root: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Security {
    /// Reads what stands behind the `?` of an address; `usual` is the mode where nothing there says one.
    ///
    /// # Errors
    /// The problem and its remedy, without values but that of `sslmode`.
    pub fn parse(parameters: &str, usual: Option<&str>) -> Result<Self, String> {
        let (mut own, mut mode) = (Self::default(), None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let file = || Some(PathBuf::from(decoded(value)));
            match name {
                "sslmode" => mode = Some(SslMode::parse(value)?),
                "sslrootcert" => own.root = file(),
                "sslcert" => own.certificate = file(),
                "sslkey" => own.key = file(),
                _ => return Err(format!("unknown parameter '{name}'; {KNOWN}")),
            }
            if value.is_empty() {
                return Err(format!("{name}= is empty; leave it out or give it a value"));
            }
        }
        let is_system = own.root.as_ref().is_some_and(|root| root.as_os_str() == SYSTEM);
        if is_system {
            own.root = None;
        }
        own.mode = match (mode, usual) {
            (Some(mode), _) => mode,
            (None, _) if is_system => SslMode::VerifyFull,
            (None, Some(usual)) => {
                SslMode::parse(usual).map_err(|why| format!("{why} (from PGSSLMODE)"))?
            }
            (None, None) => SslMode::Prefer,
        };
        // Every server can have a certificate of some authority of the system: without the name it proves nothing.
        if is_system && own.mode < SslMode::VerifyFull {
            return Err("sslrootcert=system needs sslmode=verify-full".to_owned());
        }
        if own.mode == SslMode::VerifyCa && own.root.is_none() {
            return Err("sslmode=verify-ca needs the authority: add sslrootcert=FILE".to_owned());
        }
        Ok(own)
    }

    /// Returns true if a text begins with one of the parameters.
    pub fn begins(text: &str) -> bool {
        let name = text.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| NAMES.contains(&name))
    }

    /// Returns true if a server without TLS will not do.
    pub fn requires_tls(&self) -> bool {
        self.mode >= SslMode::Require
    }

    /// TLS to `host`; none where none is wanted.
    ///
    /// # Errors
    /// A file that cannot be read, or a host that no certificate can be for.
    pub fn tls(&self, host: &str) -> Result<Option<Tls>> {
        let trust = match (self.mode, &self.root) {
            (SslMode::Disable, _) => return Ok(None),
            (SslMode::VerifyFull, _) => Trust::Full,
            // As libpq has it: an authority that was named is looked for, however little was asked for.
            (_, Some(_)) => Trust::Chain,
            (_, None) => Trust::Anything,
        };
        let options = TlsOptions {
            ca_file: self.root.clone(),
            certificate_file: self.certificate.clone(),
            key_file: self.key.clone(),
            server_name: None,
            trust,
            speaks: Speaks::Postgresql,
        };
        let made = Tls::new(&options).and_then(|tls| tls.name(host).map(|_| tls));
        made.map(Some).map_err(|error| usage(format!("sslmode={}: {error}", self.mode.name())))
    }

    /// All of it, as parameters of an address.
    pub fn written(&self) -> String {
        let file = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!("{name}={}", encoded(&path.to_string_lossy())))
        };
        let files = [
            file("sslrootcert", &self.root),
            file("sslcert", &self.certificate),
            file("sslkey", &self.key),
        ];
        let mode = format!("sslmode={}", self.mode.name());
        let all: Vec<String> = [mode].into_iter().chain(files.into_iter().flatten()).collect();
        all.join("&")
    }

    /// As it stands in an address; nothing where nothing differs from the default.
    pub fn shown(&self) -> String {
        let root = self.root.as_ref().map(|root| format!("sslrootcert={}", root.display()));
        let mode = (self.mode != SslMode::Prefer).then(|| format!("sslmode={}", self.mode.name()));
        let parameters: Vec<String> = mode.into_iter().chain(root).collect();
        if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) }
    }
}

/// An error with what to do about it.
pub fn told(error: &ExchangeError) -> String {
    match error {
        ExchangeError::Tls(TlsRefusal::Version1) => {
            format!("{error}; make one with a subjectAltName")
        }
        ExchangeError::Tls(TlsRefusal::Untrusted(_)) => {
            format!("{error}; name the authority that signed it: sslrootcert=FILE")
        }
        ExchangeError::Tls(TlsRefusal::WrongName(_)) => {
            format!("{error}; use a name of the certificate, or sslmode=verify-ca")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_libpq() {
        let mode = |text: &str| Security::parse(text, None).map(|own| own.mode);
        for (text, wanted) in [
            ("", SslMode::Prefer),
            ("sslmode=disable", SslMode::Disable),
            ("sslmode=allow", SslMode::Prefer),
            ("sslmode=require", SslMode::Require),
            ("sslrootcert=ca.crt&sslmode=verify-ca", SslMode::VerifyCa),
            ("sslmode=verify-full", SslMode::VerifyFull),
            ("sslrootcert=system", SslMode::VerifyFull),
            ("sslrootcert=ca.crt", SslMode::Prefer),
        ] {
            assert_eq!(mode(text), Ok(wanted), "{text}");
        }
        for (text, word) in [
            ("sslmode=on", "expected disable, prefer"),
            ("sslmode=", "invalid sslmode ''"),
            ("sslrootcert=", "is empty"),
            ("sslmode=verify-ca", "add sslrootcert=FILE"),
            ("sslmode=verify-ca&sslrootcert=system", "needs sslmode=verify-full"),
            ("sslrootcert=system&sslmode=require", "needs sslmode=verify-full"),
            ("sslpassword=secret", "unknown parameter 'sslpassword'"),
            ("SSLMODE=require", "known are sslmode"),
        ] {
            let told = mode(text).unwrap_err();
            assert!(told.contains(word) && !told.contains("secret"), "{text}: {told}");
        }
        let both = Security::parse("sslmode=verify-full&sslrootcert=/a%20b/ca.crt", None).unwrap();
        assert_eq!(both.shown(), "?sslmode=verify-full&sslrootcert=/a b/ca.crt");
        assert_eq!(Security::default().shown(), "");
    }

    #[test]
    fn files_are_read_before_anything_is_sent() {
        let told = |text: &str| {
            let made = Security::parse(text, None).unwrap().tls("localhost");
            made.err().unwrap().to_string()
        };
        assert!(told("sslrootcert=/no/such.crt").contains("'/no/such.crt'"));
        assert!(told("sslmode=require&sslcert=/no/such.crt").contains("go together"));
        for text in ["", "sslmode=require"] {
            let own = Security::parse(text, None).unwrap();
            assert!(own.tls("127.0.0.1").unwrap().is_some());
            assert_eq!(own.requires_tls(), !text.is_empty());
        }
        assert!(Security::parse("sslmode=disable", None).unwrap().tls("h").unwrap().is_none());
        let strange = Security::default().tls("a b").err().unwrap().to_string();
        assert!(strange.contains("'a b'"), "{strange}");
    }
}
