//! Connections that open, burst and profile load comes to need.
//!
//! Requests that arrive at their own time need as many connections as there are requests in flight, which by Little's
//! law is their rate times the target's time: known only while it is seen. So there are always more connections open
//! than requests in flight, by half of them, and the next ones open before they are needed. A thread that has no time to
//! read its replies sees more in flight than there are: only after a wait that slept does it open any.

/// Connections that are kept free beyond half of the requests in flight.
const SPARE_MIN: u32 = 8;
/// Connections that begin to open in one round.
const A_ROUND_MAX: u32 = 64;
/// A wait that was shorter found replies that had been there before it, ns.
const SLEPT_NS: u64 = 20_000;

/// Progress of growing the connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// Connections in use; the others wait until they are needed.
    in_play: u32,
    /// Waiting time of the network at the last look, ns.
    idle_ns: u64,
}

impl Growth {
    /// Begins with this many connections.
    pub fn from(in_play: u32) -> Self {
        Self { in_play, idle_ns: 0 }
    }

    #[inline]
    pub const fn in_play(&self) -> u32 {
        self.in_play
    }

    /// Returns true if the last wait slept, by what the network has waited in all, ns.
    pub fn slept(&mut self, idle_ns: u64) -> bool {
        idle_ns - std::mem::replace(&mut self.idle_ns, idle_ns) > SLEPT_NS
    }

    /// Number of connections that begin to open in this round, where this many requests are in flight, `depth` to a connection,
    /// and this many connections are closed.
    pub fn missing(&self, in_flight: u32, depth: u32, closed: u32) -> u32 {
        let needed = (in_flight + SPARE_MIN.max(in_flight / 2)).div_ceil(depth.max(1));
        let usable = self.in_play.saturating_sub(closed);
        needed.saturating_sub(usable).min(A_ROUND_MAX)
    }

    /// Brings one more of `all` connections into play.
    pub fn one_more(&mut self, all: usize) -> Option<u32> {
        if self.in_play as usize >= all {
            return None;
        }
        self.in_play += 1;
        Some(self.in_play - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_as_many_again_are_open_as_are_in_flight() {
        let growth = Growth::from(20);
        assert_eq!([0, 12, 13, 14, 16].map(|n| growth.missing(n, 1, 0)), [0, 0, 1, 2, 4]);
        assert_eq!(growth.missing(12, 1, 3), 3, "closed ones are of no use");
        assert_eq!((growth.missing(100, 1, 0), growth.missing(40, 1, 0)), (A_ROUND_MAX, 40));
        assert_eq!((growth.missing(40, 3, 0), growth.missing(40, 0, 0)), (0, 40));
    }

    #[test]
    fn only_a_wait_that_slept_opens_any_and_no_more_than_there_are() {
        let mut growth = Growth::from(2);
        assert_eq!([10_000, 40_000, 60_000].map(|ns| growth.slept(ns)), [false, true, false]);
        assert_eq!([growth.one_more(3), growth.one_more(3)], [Some(2), None]);
        assert_eq!(growth.in_play(), 3);
    }
}
