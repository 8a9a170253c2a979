//! The address of a receiver.

use plimsoll_core::secrets::without_address_secrets;
use std::str::FromStr;
use thiserror::Error;
use ureq::http::Uri;

/// Path of a receiver whose address has none.
const PATH: &str = "/v1/metrics";

/// An address that `--otlp` cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EndpointError(String);

/// The address of an OTLP receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    uri: String,
    shown: String,
    is_tls: bool,
    is_loopback: bool,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let shown = without_address_secrets(text);
        let wrong = |what: &str| {
            EndpointError(format!("'{shown}': {what}; write http://HOST:4318 or https://HOST/PATH"))
        };
        let uri: Uri = text.parse().map_err(|_| wrong("not an address"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(wrong("the scheme is not supported, OTLP is sent over HTTP")),
            None => return Err(wrong("the scheme is missing")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(EndpointError(format!(
                "'{shown}': a user in the address is not sent; write --otlp-header 'Authorization: Basic ...' instead"
            )));
        }
        if authority.host().is_empty() || authority.port().is_some_and(|port| port.as_u16() == 0) {
            return Err(wrong("host or port is missing"));
        }
        let has_path = uri.path_and_query().is_some_and(|path| path.as_str() != "/");
        let base = text.trim_end_matches('/');
        let uri = if has_path { text.to_owned() } else { format!("{base}{PATH}") };
        let host = authority.host().trim_matches(['[', ']']);
        let is_loopback = host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        Ok(Self { shown: without_address_secrets(&uri), uri, is_tls, is_loopback })
    }
}

impl Endpoint {
    /// The address that requests go to.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The same without secrets, for records and messages.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// True for `https`.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// True if it is an address of this machine, which no proxy leads to.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_that_of_the_protocol_unless_the_address_has_one() {
        for (text, uri) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/metrics"),
            (
                "http://[::1]:9090/api/v1/otlp/v1/metrics",
                "http://[::1]:9090/api/v1/otlp/v1/metrics",
            ),
            ("https://otlp.example.com/x?tenant=a", "https://otlp.example.com/x?tenant=a"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().uri(), uri);
        }
        assert!("http://LocalHost:1".parse::<Endpoint>().unwrap().is_loopback());
        assert!(!"http://10.0.0.1:1".parse::<Endpoint>().unwrap().is_loopback());
    }

    #[test]
    fn an_address_that_cannot_be_used_is_named_and_its_secrets_are_not() {
        for (text, word) in [
            ("localhost:4318", "scheme is"),
            ("127.0.0.1", "scheme is missing"),
            ("grpc://host:4317", "not supported"),
            ("http://", "not an address"),
            ("http://host:0", "port is missing"),
            ("http://user:hidden-word@host", "--otlp-header 'Authorization: Basic ...'"),
            ("https://host name/", "not an address"),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("hidden-word"), "{text}: {error}");
        }
        let shown = "https://host/x?token=hidden-word".parse::<Endpoint>().unwrap();
        assert!(!shown.shown().contains("hidden-word") && shown.uri().contains("hidden-word"));
    }
}
