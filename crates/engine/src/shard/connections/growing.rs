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
//!
//! A target whose processor is busy takes longer for handshakes, and for requests while it does these. Each connection that is
//! opened because requests pile up makes more of them pile up: a pause of 5 ms can end with thousands of connections, which
//! wear out and are opened again. So the more the last openings took beyond the quickest one, the more time passes until as many
//! connections again as half of those there are may be opened. Handshakes then take less than half of the target's time, however expensive
//! they are, and a target that has more time left than that recovers. One that is far away or slow to reply, and quick to open
//! connections, gets them at once, and one that pauses from time to time has as many as it needs in a pause after a few of them.

/// Connections that are kept free beyond half of the requests in flight.
const SPARE_MIN: u32 = 8;
/// Connections that begin to open at once.
const AT_ONCE_MAX: u32 = 64;
/// Time from one round to the next, as a multiple of what the last openings took beyond the quickest one.
const PATIENCE: u64 = 5;
/// The most of that time, ns.
const PATIENCE_MAX_NS: u64 = 2_000_000_000;
/// Weight of an opening in the mean of the last ones if it took longer than they did: one part in this many.
const LONGER_COUNTS_ONE_IN: u64 = 8;
/// The same for one that was quicker: in between, single connections are replaced, which takes no time.
const QUICKER_COUNTS_ONE_IN: u64 = 32;
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
    openings: Openings,
    /// Beginning of the last round in which connections were opened for the requests in flight, ns.
    round_ns: u64,
    /// Connections that may still be opened in it.
    left_in_round: u32,
    /// True if there are too few connections for the requests in flight, and it is not yet time for more.
    is_short: bool,
}

/// Times that connections took to open.
#[derive(Clone, Copy, Debug, Default)]
struct Openings {
    /// The quickest of all; none has opened yet: none.
    quickest_ns: Option<u64>,
    /// The last ones, on average, ns.
    last_ns: u64,
}

impl Openings {
    fn note(&mut self, took_ns: u64) {
        let Some(quickest_ns) = self.quickest_ns else {
            *self = Self { quickest_ns: Some(took_ns), last_ns: took_ns };
            return;
        };
        self.quickest_ns = Some(quickest_ns.min(took_ns));
        let one_in =
            if took_ns > self.last_ns { LONGER_COUNTS_ONE_IN } else { QUICKER_COUNTS_ONE_IN };
        self.last_ns = (self.last_ns * (one_in - 1) + took_ns) / one_in;
    }

    /// Time from one round to the next, ns.
    fn patience_ns(&self) -> u64 {
        let beyond_ns = self.last_ns - self.quickest_ns.unwrap_or(0).min(self.last_ns);
        (beyond_ns * PATIENCE).min(PATIENCE_MAX_NS)
    }
}

impl Growth {
    /// Begins with this many connections.
    pub fn from(in_play: u32) -> Self {
        Self { in_play, first: in_play, ..Self::default() }
    }

    #[inline]
    pub const fn in_play(&self) -> u32 {
        self.in_play
    }

    /// Returns true if the last wait slept, by what the network has waited in all, ns.
    pub fn slept(&mut self, idle_ns: u64) -> bool {
        idle_ns - std::mem::replace(&mut self.idle_ns, idle_ns) > SLEPT_NS
    }

    /// Returns true if connection `key` is one of those at the beginning.
    #[inline]
    pub const fn is_first(&self, key: u32) -> bool {
        key < self.first
    }

    /// Number of connections that begin to open now, where this many requests are in flight, `depth` to a connection,
    /// and this many connections are closed.
    pub fn missing(&mut self, in_flight: u32, depth: u32, closed: u32, now_ns: u64) -> u32 {
        let usable = self.in_play.saturating_sub(closed);
        let replaced = self.first.min(usable + self.worn).saturating_sub(usable);
        let needed = (in_flight + SPARE_MIN.max(in_flight / 2)).div_ceil(depth.max(1));
        let short = needed.saturating_sub(usable);
        if short > 0 && now_ns >= self.next_round_ns() {
            (self.round_ns, self.left_in_round) = (now_ns, short.max(usable / 2));
        }
        let granted = short.min(self.left_in_round).min(AT_ONCE_MAX);
        self.left_in_round -= granted;
        self.is_short = short > granted;
        granted.max(replaced.min(AT_ONCE_MAX))
    }

    #[inline]
    fn next_round_ns(&self) -> u64 {
        self.round_ns + self.openings.patience_ns()
    }

    /// When connections that are missing may be opened, ns.
    #[inline]
    pub fn awaited_round_ns(&self) -> Option<u64> {
        self.is_short.then(|| self.next_round_ns())
    }

    /// The run starts. Connections that were opened before, all together, took longer than one that is opened alone.
    pub fn begin(&mut self) {
        self.openings.last_ns = self.openings.quickest_ns.unwrap_or(0);
    }

    /// A connection opened in this time, ns.
    pub fn opened(&mut self, took_ns: u64) {
        self.openings.note(took_ns);
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
        let mut growth = Growth::from(20);
        assert_eq!([0, 12, 13, 14, 16].map(|n| growth.missing(n, 1, 0, 0)), [0, 0, 1, 2, 4]);
        assert_eq!(growth.missing(12, 1, 3, 0), 3, "closed ones are of no use");
        assert_eq!((growth.missing(100, 1, 0, 0), growth.missing(40, 1, 0, 0)), (AT_ONCE_MAX, 40));
        assert_eq!((growth.missing(40, 3, 0, 0), growth.missing(40, 0, 0, 0)), (0, 40));
    }

    #[test]
    fn a_worn_connection_is_replaced_while_fewer_are_open_than_at_the_beginning() {
        let mut growth = Growth::from(20);
        assert_eq!(growth.missing(0, 1, 3, 0), 0, "they were closed while idle");
        (0..2).for_each(|_| growth.is_worn());
        assert_eq!((growth.missing(0, 1, 3, 0), growth.missing(12, 1, 3, 0)), (2, 3));
        growth.opens_again();
        assert_eq!(growth.missing(0, 1, 2, 0), 1);
        // In a moment of need five more came.
        (0..5).for_each(|_| assert!(growth.one_more(30).is_some()));
        assert_eq!((growth.missing(0, 1, 5, 0), growth.missing(0, 1, 6, 0)), (0, 1));
    }

    #[test]
    fn the_longer_openings_take_the_fewer_begin_in_a_time() {
        let mut growth = Growth::from(20);
        [90_000, 50_000, 120_000].into_iter().for_each(|took_ns| growth.opened(took_ns));
        growth.begin();
        assert_eq!(growth.missing(40, 1, 0, 1_000), 40, "opened before the start, in a crowd");
        assert_eq!(growth.missing(16, 1, 0, 1_000), 4, "none has taken longer since");
        growth.opened(130_000);
        assert_eq!((growth.openings.last_ns, growth.awaited_round_ns()), (60_000, None));
        // Half as many as there are: ten.
        assert_eq!([16, 16, 14, 20, 16].map(|n| growth.missing(n, 1, 0, 50_999)), [4, 2, 0, 0, 0]);
        assert_eq!(growth.awaited_round_ns(), Some(51_000));
        growth.is_worn();
        assert_eq!(growth.missing(16, 1, 1, 50_999), 1, "a worn one is replaced nevertheless");
        assert_eq!((growth.missing(16, 1, 0, 51_000), growth.awaited_round_ns()), (4, None));
        assert_eq!((growth.missing(20, 1, 0, 51_001), growth.missing(20, 1, 0, 51_001)), (6, 0));
        assert_eq!(growth.missing(0, 1, 0, 52_000), 0);
        assert_eq!(growth.awaited_round_ns(), None, "there are enough of them");
        assert_eq!(growth.missing(16, 1, 0, 101_000), 4, "time without need counts");
        growth.opened(28_000);
        assert_eq!(growth.openings.last_ns, 59_000);
        growth.opened(60 * 1_000_000_000);
        assert_eq!(growth.openings.patience_ns(), PATIENCE_MAX_NS);
    }

    #[test]
    fn only_a_wait_that_slept_opens_any_and_no_more_than_there_are() {
        let mut growth = Growth::from(2);
        assert_eq!([10_000, 40_000, 60_000].map(|ns| growth.slept(ns)), [false, true, false]);
        assert_eq!([growth.one_more(3), growth.one_more(3)], [Some(2), None]);
        assert_eq!(growth.in_play(), 3);
    }
}
