//! Connections and the table that holds them.

use super::body::Body;
use super::head::{Asked, Method, Persistence, Route};
use rustix::event::epoll::EventFlags;
use std::os::fd::OwnedFd;

/// The next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It reads the head of a request.
    Head,
    /// It reads the body of a request.
    Body,
    /// Its request is with the service, which has not answered.
    Waiting,
    /// It was refused; what still arrives is dropped until the peer closes.
    Draining,
}

/// One connection. An idle one owns no buffer, so that tens of thousands fit in a few megabytes.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) phase: Phase,
    /// The events that the queue reports.
    pub(super) interest: EventFlags,
    pub(super) asked: Asked,
    pub(super) body: Body,
    /// Received bytes that could not be used yet.
    pub(super) input: Vec<u8>,
    /// Bytes of replies that the socket did not take.
    pub(super) output: Vec<u8>,
    /// Number of bytes of `output` that were sent since.
    pub(super) output_sent: usize,
    /// Bytes that are counted among those that wait for all peers.
    pub(super) counted: usize,
    /// Bytes dropped while draining.
    pub(super) drained_bytes: usize,
    /// True if to close once the output has left.
    pub(super) is_closing: bool,
    /// True if the peer has closed its side.
    pub(super) is_read_closed: bool,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            phase: Phase::Head,
            interest: EventFlags::IN,
            asked: Asked {
                method: Method::Other,
                persistence: Persistence::Kept,
                route: Route::Load,
            },
            body: Body::sized(0),
            input: Vec::new(),
            output: Vec::new(),
            output_sent: 0,
            counted: 0,
            drained_bytes: 0,
            is_closing: false,
            is_read_closed: false,
        }
    }

    /// Returns true if the socket did not take all of an earlier reply.
    pub(super) fn is_blocked(&self) -> bool {
        !self.output.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        let bytes = size_of::<Connection>();
        assert!(bytes <= 248, "{bytes} bytes");
    }
}
