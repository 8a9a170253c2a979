//! Connections that open, burst and profile load comes to need.
//!
//! Requests that arrive at their own time need as many connections as there are requests in flight, which by Little's
//! law is their rate times the target's time: known only while it is seen. So there are always more connections open
//! than requests in flight, by half of them, and the next ones open before they are needed. A thread that has no time to
//! read its replies sees more in flight than there are: only after a wait that slept does it open any.

use crate::net::Net;
use crate::shard::Shard;
use plimsoll_core::clock::Clock;
use plimsoll_wire::Protocol;

/// Connections that are kept free beyond half of the requests in flight.
const SPARE_MIN: u32 = 8;
/// Connections that begin to open in one round.
const A_ROUND_MAX: u32 = 64;
/// A wait that was shorter found replies that had been there before it, ns.
const SLEPT_NS: u64 = 20_000;

/// How far the connections have grown.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::shard) struct Growth {
    /// Connections in use; the others wait until they are needed.
    pub in_play: u32,
    /// What the network had waited when this was looked at last, ns.
    idle_ns: u64,
}

impl Growth {
    /// Begins with this many connections.
    pub fn from(in_play: u32) -> Self {
        Self { in_play, idle_ns: 0 }
    }
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Opens connections that will be needed.
    #[inline]
    pub(in crate::shard) fn grow(&mut self) {
        if self.growth.in_play < self.connections.len() as u32 {
            self.grow_to_need();
        }
    }

    fn grow_to_need(&mut self) {
        let idle_ns = self.net.idle_ns();
        let slept = idle_ns - std::mem::replace(&mut self.growth.idle_ns, idle_ns) > SLEPT_NS;
        if !slept || self.schedule_done {
            return;
        }
        // Of a protocol that carries several requests on a connection, in connections.
        let depth = self.protocol.depth().max(1);
        let in_flight = self.flights.len();
        let needed = (in_flight + SPARE_MIN.max(in_flight / 2)).div_ceil(depth);
        // Without keep-alive a closed connection is as good as any: each request opens its own.
        let closed = if self.plan.keep_alive { self.idle_closed.len() as u32 } else { 0 };
        let usable = self.growth.in_play.saturating_sub(closed);
        let more = needed.saturating_sub(usable).min(A_ROUND_MAX);
        for _ in 0..more {
            // One that its peer has closed comes before one that was never used.
            let again = if self.plan.keep_alive { self.idle_closed.take() } else { None };
            let key = match again {
                Some(key) => key,
                None if (self.growth.in_play as usize) < self.connections.len() => {
                    self.growth.in_play += 1;
                    self.growth.in_play - 1
                }
                None => return,
            };
            self.connections[key as usize].queued = false;
            if self.plan.keep_alive {
                self.open(key);
            } else {
                self.give_back(key);
            }
        }
    }
}
