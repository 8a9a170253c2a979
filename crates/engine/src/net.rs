//! The network as the engine sees it: ask for a connection or a send, take completions in batches.
//!
//! Three implementations fit behind [`Net`]: epoll over real sockets, the simulated network of the test
//! suite, and later io_uring.

use crate::vitals::VitalSigns;
use std::net::SocketAddr;

/// A network that belongs to one shard.
///
/// Connections are named by a `key` that the caller chooses, dense from 0. Completions of a connection that
/// was closed are never delivered, even when its key is used again.
pub trait Net {
    /// Begins to connect; ends in [`Completion::Connected`] or [`Completion::Failed`].
    ///
    /// # Errors
    /// When it fails at once: no file descriptor left, no route.
    fn connect(&mut self, key: u32, address: SocketAddr) -> Result<(), NetError>;

    /// Hands over the front of `bytes` and says how many were taken. When fewer than all were,
    /// [`Completion::Writable`] tells when to go on.
    ///
    /// # Errors
    /// When the connection is broken.
    fn send(&mut self, key: u32, bytes: &[u8]) -> Result<usize, NetError>;

    /// Closes at once and forgets the key.
    fn close(&mut self, key: u32);

    /// Waits for completions, at most until `until_ns` on the engine's clock.
    fn wait(&mut self, until_ns: u64, mode: WaitMode);

    /// Takes the next completion of the batch; received bytes are put into `buffer`.
    fn next(&mut self, buffer: &mut [u8]) -> Option<(u32, Completion)>;

    /// Takes bytes that have come on a connection on which nothing can be sent any more, whatever batch they belong to.
    /// Returns their number; 0 when none are left.
    fn unread(&mut self, key: u32, buffer: &mut [u8]) -> usize;

    /// The kernel's view of a connection's round trips, when there is one.
    fn round_trip(&self, key: u32) -> Option<RoundTrip>;

    /// Time that [`Net::wait`] has really waited so far, ns.
    fn idle_ns(&self) -> u64;

    /// The earliest moment at which what the last wait found can have been there, ns on the engine's clock: what a reply
    /// waited in the kernel is at most the time since then.
    fn arrived_after_ns(&self) -> u64;

    /// Returns what has kept the calling thread from its work.
    fn vitals(&mut self) -> VitalSigns;
}

/// Way of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Sleep until the first completion or the time given.
    Sleep,
    /// Sleep, but poll for the last stretch before the time given, ns.
    Spin {
        /// Length of the polled stretch.
        before_ns: u64,
    },
    /// Many answers are in flight: gather a batch before looking, at most this long, ns.
    Batch {
        /// Longest delay added before looking.
        gather_ns: u64,
    },
    /// Take nothing: whatever arrives stays where it is.
    Hold,
}

/// Event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The connection is up.
    Connected,
    /// This many bytes are in the buffer, at least one.
    Received(usize),
    /// More can be sent.
    Writable,
    /// The peer closed its side in order.
    Closed,
    /// The connection is broken, or could not be made.
    Failed(NetError),
}

/// Reason why a connection is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetError {
    /// Nothing listens there.
    Refused,
    /// The peer reset it.
    Reset,
    /// No route, no name, no address.
    Unreachable,
    /// This machine has no descriptor, port or memory left.
    Exhausted,
    /// Anything else, by the operating system's number.
    Other(i32),
}

impl std::fmt::Display for NetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NetError::Refused => f.write_str("connection refused: nothing is listening there"),
            NetError::Reset => f.write_str("connection reset by the peer"),
            NetError::Unreachable => f.write_str("the address cannot be reached"),
            NetError::Exhausted => {
                f.write_str("this machine has no file descriptor (ulimit -n) or local port left")
            }
            NetError::Other(code) => {
                write!(f, "{}", std::io::Error::from_raw_os_error(*code))
            }
        }
    }
}

/// Round trips of one connection, us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The smallest that was seen.
    pub min_us: u32,
    /// The smoothed one.
    pub smoothed_us: u32,
    /// Segments sent again.
    pub retransmits: u32,
}
