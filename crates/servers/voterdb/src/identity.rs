//! The identity of the server.

use plimsoll_core::clock::wall_us;
use plimsoll_wire::volt::Welcome;
use std::net::{IpAddr, SocketAddr};

/// The version of VoltDB whose protocol and messages these are.
pub(crate) const VERSION: &str = "10.1.1";
pub(crate) const BUILD: &str = concat!("10.1.1_plimsoll-", env!("CARGO_PKG_VERSION"));

/// Name, place and beginning of the server.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Time at which it started, ms since 1970. With the address it names the cluster.
    pub(crate) start_ms: u64,
    pub(crate) address: SocketAddr,
    pub(crate) hostname: String,
}

impl Identity {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { start_ms: wall_us() / 1_000, address, hostname: name }
    }

    /// Returns the answer to a login.
    pub(crate) fn welcome(&self, connection_id: u64) -> Welcome<'static> {
        let leader_address = match self.address.ip() {
            IpAddr::V4(address) => address.octets(),
            // There is only room for an IPv4 address, and it only has to be the same in every answer.
            IpAddr::V6(_) => [127, 0, 0, 1],
        };
        Welcome {
            host_id: 0,
            connection_id: connection_id as i64,
            cluster_start_ms: self.start_ms as i64,
            leader_address,
            build: BUILD,
        }
    }
}
