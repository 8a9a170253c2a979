//! The servers of a simulation, and the line to them.

use crate::net::NetError;
use std::net::SocketAddr;

/// The servers of a simulation.
///
/// A connection is named by a number that is never used again. All times are ns on the virtual clock.
pub trait Peer {
    /// Someone connects to `address`.
    fn connecting(&mut self, connection: u64, address: SocketAddr, now_ns: u64) -> Arrival;

    /// Bytes have been sent that will arrive.
    fn sent(&mut self, _connection: u64, _now_ns: u64) {}

    /// Bytes have arrived, in order; what the peer does about them is appended to `acts`. Bytes keep
    /// arriving on a connection that the peer has closed, until the other side has learnt of it.
    fn received(&mut self, connection: u64, bytes: &[u8], now_ns: u64, acts: &mut Acts);

    /// A time asked for with [`Act::Wake`] has come.
    fn woken(&mut self, connection: u64, token: u64, now_ns: u64, acts: &mut Acts);

    /// The other side has closed.
    fn closed(&mut self, connection: u64);
}

/// Acts of a peer, each with its delay from now, ns. Acts on one connection keep their order.
pub type Acts = Vec<(u64, Act)>;

/// One thing that a peer does on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends bytes.
    Bytes(Vec<u8>),
    /// Closes in order.
    Close,
    /// Resets the connection.
    Reset,
    /// Has [`Peer::woken`] called with this token.
    Wake(u64),
}

/// Outcome of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is up after a time.
    Accepted {
        /// Time until then, ns on the client's clock.
        after_ns: u64,
    },
    /// It fails after a time.
    Failed {
        /// Time until then, ns on the client's clock.
        after_ns: u64,
        /// The error.
        error: NetError,
    },
    /// It fails before the call returns.
    FailedAtOnce(NetError),
    /// Nothing ever comes back.
    Silence,
}

/// The line between client and peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Shortest time from one side to the other, ns.
    pub latency_min_ns: u64,
    /// Longest, ns; drawn for each piece, and pieces do not overtake each other.
    pub latency_max_ns: u64,
    /// Pieces of a peer that are split again on the way, of 1,000.
    pub split_per_mille: u64,
    /// Sends that are accepted in part, of 1,000.
    pub partial_per_mille: u64,
    /// Longest time by which a sleep ends late, ns.
    pub oversleep_max_ns: u64,
}

impl Default for Link {
    /// 20 us each way, and nothing that could surprise.
    fn default() -> Self {
        Self {
            latency_min_ns: 20_000,
            latency_max_ns: 20_000,
            split_per_mille: 0,
            partial_per_mille: 0,
            oversleep_max_ns: 0,
        }
    }
}
