//! The address on which the live page is served.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// An address of `--live`: IP address and port. Port 0 is any free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl Default for Address {
    fn default() -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
    }
}

/// A text that is no such address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not an address; write 127.0.0.1:PORT, or a port alone", self.0)
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let with_host = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None if !text.contains(':') && !text.is_empty() => format!("127.0.0.1:{text}"),
            None => text.to_owned(),
        };
        with_host.parse().map(Self).map_err(|_| AddressError(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_a_host() {
        for (text, address) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:9", "[::1]:9"),
            ("0.0.0.0:9", "0.0.0.0:9"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), address);
        }
        for text in ["", "example.com:80", "70000", "http://127.0.0.1:1/", "127.0.0.1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
