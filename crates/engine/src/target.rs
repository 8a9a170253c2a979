//! Addresses of one or several targets.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

pub mod guard;

pub use guard::Guard;

/// One target: a host, a port, and what the name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host as the user wrote it, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// All addresses of the host; empty when the name does not resolve.
    pub addresses: Vec<SocketAddr>,
}

impl Target {
    /// Asks the system for all addresses of `host`. A name that does not resolve is a target without
    /// addresses: its requests fail and are counted, as a user of the service would see it.
    #[must_use]
    pub fn resolve(host: &str, port: u16) -> Self {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let mut addresses: Vec<SocketAddr> =
            (bare, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
        addresses.dedup();
        guard::keep_allowed(bare, &mut addresses);
        Self { host: bare.to_owned(), port, addresses }
    }

    /// Returns true if any address belongs to this machine.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.addresses.iter().any(|address| is_local(address.ip()))
    }
}

/// Returns true if an address belongs to this machine: only such an address can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_resolve_or_stay_empty() {
        let local = Target::resolve("127.0.0.1", 80);
        assert_eq!(local.addresses.len(), 1);
        assert!(local.is_this_machine());
        assert_eq!(Target::resolve("[::1]", 80).addresses.len(), 1);
        let nowhere = Target::resolve("no-such-host.invalid", 80);
        assert!(nowhere.addresses.is_empty());
        assert!(!nowhere.is_this_machine());
    }
}
