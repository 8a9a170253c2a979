//! One connection.

use crate::connection_counts::ConnectionCounts;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes that wait for the peer, above which its socket is not read.
pub(super) const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// The permissions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It must log in first.
    Login,
    /// It calls procedures.
    Open,
    /// It was refused; what still arrives is dropped until it closes or its time is over.
    Refused,
}

/// One connection. An idle one owns no buffer.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) phase: Phase,
    pub(super) counts: Arc<ConnectionCounts>,
    /// The beginning of a message that is not whole.
    pub(super) input: Vec<u8>,
    /// Answers that have not left.
    pub(super) output: Vec<u8>,
    /// Number of bytes of `output` that were sent.
    pub(super) sent: usize,
    /// Bytes of it that are counted among those that wait for all peers.
    pub(super) counted: usize,
    /// True if it stands in the list of those with something to send.
    pub(super) is_dirty: bool,
    /// True if its socket takes no more for the moment.
    pub(super) is_blocked: bool,
    /// Time at which its socket last took something, or was first found to take nothing.
    pub(super) moved_ns: u64,
    /// True if it stands in the list of those that are looked after because their sockets take nothing.
    pub(super) is_looked_after: bool,
    /// True if it stands in the list of those whose messages wait for room or for their turn.
    pub(super) is_held: bool,
    /// True if its next message is a call over all partitions, and too many of those are in flight.
    pub(super) waits_to_ask: bool,
    /// True if its socket is left alone: too many answers wait for the peer, or its next call waits.
    pub(super) is_unread: bool,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, counts: ConnectionCounts) -> Self {
        Self {
            fd,
            phase: Phase::Login,
            counts: Arc::new(counts),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            counted: 0,
            is_dirty: false,
            is_blocked: false,
            moved_ns: 0,
            is_looked_after: false,
            is_held: false,
            waits_to_ask: false,
            is_unread: false,
        }
    }

    /// Bytes that wait for the peer.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.output.len() - self.sent
    }
}
