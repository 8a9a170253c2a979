//! The offset between the monotonic clocks of two machines, from round trips.
//!
//! Of each round trip the other end's time is taken for the middle between sending and receiving; the error is at most half the
//! round trip (Cristian, "Probabilistic clock synchronization", 1989). The shortest round trip counts.

use plimsoll_core::clock::MILLISECOND_NS;

/// Round trips that are measured.
const ROUND_TRIPS: u32 = 20;
/// Round trips that are enough, if others were lost.
const ENOUGH: u32 = 5;
/// Distance between them, ns.
const EVERY_NS: u64 = 10 * MILLISECOND_NS;

/// Offset of the other end's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other end's clock minus the own one, ns.
    pub ahead_ns: i128,
    /// Shortest round trip, ns. The offset is wrong by at most half of it.
    pub round_trip_ns: u64,
}

impl ClockOffset {
    /// The own time at which the other end's clock shows a time, ns.
    #[must_use]
    pub fn own_ns(&self, peer_ns: u64) -> u64 {
        (i128::from(peer_ns) - self.ahead_ns).clamp(0, u64::MAX.into()) as u64
    }

    /// The time that the other end's clock shows at an own time, ns.
    #[must_use]
    pub fn peer_ns(&self, own_ns: u64) -> u64 {
        (i128::from(own_ns) + self.ahead_ns).clamp(0, u64::MAX.into()) as u64
    }
}

/// Round trips so far.
#[derive(Default)]
pub(super) struct Probes {
    /// Questions that are still to be sent.
    left: u32,
    answered: u32,
    next_ns: u64,
    best: Option<ClockOffset>,
}

impl Probes {
    pub fn begin(&mut self) {
        *self = Self { left: ROUND_TRIPS, ..Self::default() };
    }

    /// The time to put into a question that is due.
    pub fn next(&mut self, now_ns: u64) -> Option<u64> {
        if self.left == 0 || now_ns < self.next_ns {
            return None;
        }
        // One whose answer is lost is asked again, until enough have been answered.
        let is_last = self.left == 1 && self.answered < ENOUGH;
        self.left -= u32::from(!is_last);
        self.next_ns = now_ns + EVERY_NS;
        Some(now_ns)
    }

    pub fn due_ns(&self) -> u64 {
        if self.left == 0 { u64::MAX } else { self.next_ns }
    }

    pub fn answered(&mut self, sent_ns: u64, peer_ns: u64, now_ns: u64) {
        let Some(round_trip_ns) = now_ns.checked_sub(sent_ns) else { return };
        self.answered += 1;
        if self.best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
            let middle_ns = i128::from(sent_ns) + i128::from(round_trip_ns / 2);
            self.best =
                Some(ClockOffset { ahead_ns: i128::from(peer_ns) - middle_ns, round_trip_ns });
        }
    }

    pub fn offset(&self) -> Option<ClockOffset> {
        self.best.filter(|_| self.left == 0)
    }
}
