//! Connections that open before a request needs them.
//!
//! An opening that comes to no end is ended by the deadline of the request that waits for it. These have no request: the time
//! at which each was asked for is kept, so that it gets no longer than one with a request. Otherwise those that hang would
//! count as open for ever, and leave none for the requests that come later.

use super::{Connections, State};
use plimsoll_wire::Protocol;
use std::collections::VecDeque;

/// Openings that no request waits for, by connection and the time at which each was asked for, ns: the oldest first.
pub(super) type Ahead = VecDeque<(u32, u64)>;

impl<P: Protocol> Connections<P> {
    /// Connection `key` was asked for, and no request waits for it.
    pub fn opens_ahead(&mut self, key: u32) {
        self.ahead.push_back((key, self.get(key).asked_ns()));
    }

    /// When the oldest opening that no request waits for was asked for, ns. It may have come to its end since the last
    /// [`Connections::oldest_ahead`].
    #[inline]
    pub fn ahead_since_ns(&self) -> Option<u64> {
        self.ahead.front().map(|&(_, asked_ns)| asked_ns)
    }

    /// The oldest opening that no request waits for and that is still in progress, and when it was asked for, ns.
    pub fn oldest_ahead(&mut self) -> Option<(u32, u64)> {
        while let Some(&(key, asked_ns)) = self.ahead.front() {
            let connection = self.get(key);
            let is_opening = matches!(connection.state(), State::Connecting | State::Handshaking);
            // It may have been opened and closed, and opened again.
            if is_opening && connection.asked_ns() == asked_ns {
                return Some((key, asked_ns));
            }
            self.ahead.pop_front();
        }
        None
    }
}
