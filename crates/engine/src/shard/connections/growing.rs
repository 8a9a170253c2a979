//! Connections that open, burst and profile load comes to need.
//!
//! Requests that arrive at their own time need as many connections as there are requests in flight, which by Little's
//! law is their rate times the target's time: known only while it is seen. So there are always more connections open
//! than requests in flight, by half of them, and the next ones open before they are needed. A thread that has no time to
//! read its replies sees more in flight than there are: only after a wait that slept does it open any.
//!
//! Servers close a connection after a number of requests. Such a worn one is replaced when its turn comes, as long as fewer
//! connections are open than at the beginning. If requests went over those that are left until too few are open, these would wear
//! out ever faster and end together, and the handshakes of all the others would meet the target at once.

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
    /// Connections at the beginning.
    first: u32,
    /// Connections that were closed because they were worn, and that none replaces yet.
    worn: u32,
    /// Waiting time of the network at the last look, ns.
    idle_ns: u64,
}

impl Growth {
    /// Begins with this many connections.
    pub fn from(in_play: u32) -> Self {
        Self { in_play, first: in_play, worn: 0, idle_ns: 0 }
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
        let kept = self.first.min(usable + self.worn);
        needed.max(kept).saturating_sub(usable).min(A_ROUND_MAX)
    }

    /// A connection was closed that had done its service.
    pub fn is_worn(&mut self) {
        self.worn = (self.worn + 1).min(self.first);
    }

    /// A closed connection is opened again.
    #[inline]
    pub fn opens_again(&mut self) {
        self.worn = self.worn.saturating_sub(1);
    }

    #[inline]
    pub const fn has_worn(&self) -> bool {
        self.worn > 0
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
    fn a_worn_connection_is_replaced_while_fewer_are_open_than_at_the_beginning() {
        let mut growth = Growth::from(20);
        assert_eq!(growth.missing(0, 1, 3), 0, "they were closed while idle");
        (0..2).for_each(|_| growth.is_worn());
        assert_eq!((growth.missing(0, 1, 3), growth.missing(12, 1, 3)), (2, 3));
        growth.opens_again();
        assert_eq!(growth.missing(0, 1, 2), 1);
        // In a moment of need five more came.
        (0..5).for_each(|_| assert!(growth.one_more(30).is_some()));
        assert_eq!((growth.missing(0, 1, 5), growth.missing(0, 1, 6)), (0, 1));
    }

    #[test]
    fn only_a_wait_that_slept_opens_any_and_no_more_than_there_are() {
        let mut growth = Growth::from(2);
        assert_eq!([10_000, 40_000, 60_000].map(|ns| growth.slept(ns)), [false, true, false]);
        assert_eq!([growth.one_more(3), growth.one_more(3)], [Some(2), None]);
        assert_eq!(growth.in_play(), 3);
    }
}
