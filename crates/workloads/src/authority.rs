//! Host and port that requests go to.

use std::net::Ipv6Addr;

/// Host and port as the `Host` header gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// A name or an address; IPv6 with or without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// TLS, whose default port is 443 instead of 80.
    pub tls: bool,
}

impl Authority {
    /// The header's value: IPv6 in brackets, the port only if it is not the scheme's own.
    #[must_use]
    pub fn host_header(&self) -> String {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let host = match bare.split('%').next().unwrap_or(bare).parse::<Ipv6Addr>() {
            Ok(_) => format!("[{bare}]"),
            Err(_) => bare.to_owned(),
        };
        let default_port = if self.tls { 443 } else { 80 };
        if self.port == default_port { host } else { format!("{host}:{}", self.port) }
    }
}
