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
//! wear out and are opened again. So the more the last openings took beyond the quickest one, the longer a shortage must have lasted
//! before more connections are opened. Handshakes then take about a third of the target's time, however expensive they are, and a target
//! that has more time left than that recovers. One that is far away or slow to reply, and quick to open connections, gets
//! them at once.

/// Connections that are kept free beyond half of the requests in flight.
const SPARE_MIN: u32 = 8;
/// Connections that begin to open in one round.
const A_ROUND_MAX: u32 = 64;
/// A shortage must have lasted as many times as long as the last openings took beyond the quickest one.
const PATIENCE: u64 = 4;
/// No shortage must have lasted longer, ns.
const PATIENCE_MAX_NS: u64 = 2_000_000_000;
/// One in how many parts an opening counts for among the last ones if it took longer than they did.
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
    /// Since when there have been too few connections for the requests in flight, ns.
    short_since_ns: Option<u64>,
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

    /// Time that a shortage must have lasted, ns.
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

    /// Number of connections that begin to open in this round, where this many requests are in flight, `depth` to a connection,
    /// and this many connections are closed.
    pub fn missing(&mut self, in_flight: u32, depth: u32, closed: u32, now_ns: u64) -> u32 {
        let usable = self.in_play.saturating_sub(closed);
        let replaced = self.first.min(usable + self.worn).saturating_sub(usable);
        let needed = (in_flight + SPARE_MIN.max(in_flight / 2)).div_ceil(depth.max(1));
        let short = needed.saturating_sub(usable);
        if short == 0 {
            self.short_since_ns = None;
            return replaced.min(A_ROUND_MAX);
        }
        let since_ns = *self.short_since_ns.get_or_insert(now_ns);
        if now_ns < since_ns + self.openings.patience_ns() {
            return replaced.min(A_ROUND_MAX);
        }
        self.short_since_ns = None;
        short.max(replaced).min(A_ROUND_MAX)
    }

    /// When a shortage will have lasted as long as it must, ns.
    #[inline]
    pub fn patient_until_ns(&self) -> Option<u64> {
        self.short_since_ns.map(|since_ns| since_ns + self.openings.patience_ns())
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
        assert_eq!((growth.missing(100, 1, 0, 0), growth.missing(40, 1, 0, 0)), (A_ROUND_MAX, 40));
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
    fn a_shortage_lasts_the_longer_before_more_are_opened_the_longer_openings_take() {
        let mut growth = Growth::from(20);
        [90_000, 50_000, 120_000].into_iter().for_each(|took_ns| growth.opened(took_ns));
        growth.begin();
        assert_eq!(growth.missing(16, 1, 0, 7), 4, "opened before the start, in a crowd");
        growth.opened(130_000);
        assert_eq!((growth.openings.last_ns, growth.patient_until_ns()), (60_000, None));
        assert_eq!([1_000, 40_999].map(|now_ns| growth.missing(16, 1, 0, now_ns)), [0, 0]);
        assert_eq!(growth.patient_until_ns(), Some(41_000));
        growth.is_worn();
        assert_eq!(growth.missing(16, 1, 1, 40_999), 1, "a worn one is replaced nevertheless");
        assert_eq!(growth.missing(16, 1, 0, 41_000), 4);
        // The shortage of the moment that follows is a new one.
        assert_eq!((growth.missing(16, 1, 0, 41_001), growth.missing(0, 1, 0, 50_000)), (0, 0));
        assert_eq!((growth.missing(16, 1, 0, 61_001), growth.missing(16, 1, 0, 101_001)), (0, 4));
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
