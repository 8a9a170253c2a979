//! Self-observation of a shard while it runs: replies that it read late, times without a processor, and the
//! aftermath of its own stalls.

use crate::vitals::VitalSigns;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::delays::NOTICED_NS;

/// Interval at which the thread's vital signs are read, ns. A reading costs about a microsecond.
const EVERY_NS: u64 = 10 * MILLISECOND_NS;
/// A request that leaves this much too late was held up by a stall of this thread, ns.
pub(in crate::shard) const STALL_NS: u64 = MILLISECOND_NS;
/// Multiple of its length for which a stall may be felt: a target that is busy 95 % of the time needs 20 times as long
/// to catch up.
const FELT_FOR: u64 = 20;

/// This many requests may each have waited this long, ns, for the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub ns: u64,
    pub requests: u64,
}

/// Self-observation of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noticing {
    next_ns: u64,
    signs: VitalSigns,
    /// Requests that had ended when the signs were read last.
    completed: u64,
    /// Requests in flight when the last one left on time.
    usual_in_flight: u32,
    /// After a stall: how many were in flight before it, and until when it may be felt, ns. A delayed request is through
    /// with the target when there are no more in flight than before; requests that the target never answers must not keep
    /// that from coming.
    aftermath: Option<(u32, u64)>,
    /// The last look at the clock, ns, and the longest time between two of them since the signs were read.
    looked_ns: u64,
    longest_gap_ns: u64,
    /// Requests that ended between the two readings before, and the longest gap then, ns.
    before: (u64, u64),
    /// For how long the process may have been stopped, ns.
    stopped_ns: u64,
    /// The first reading of the clock of this round of sending, ns, and how many requests had been sent before it.
    round: (u64, u64),
}

impl Noticing {
    /// A look at the clock. Returns whether it is time to read the vital signs.
    #[inline]
    pub fn look(&mut self, now_ns: u64) -> bool {
        let gap_ns = now_ns - std::mem::replace(&mut self.looked_ns, now_ns);
        self.longest_gap_ns = self.longest_gap_ns.max(gap_ns);
        now_ns >= self.next_ns
    }

    /// For how long the process may have been stopped, ns.
    pub const fn stopped_ns(&self) -> u64 {
        self.stopped_ns
    }

    /// Takes the vital signs that were read, when this many requests had ended. Requests that ended since the last reading
    /// may each have waited for all of what kept the thread from its work meanwhile; those of the reading before for a stop
    /// that came to light late.
    pub fn read(&mut self, now_ns: u64, signs: VitalSigns, completed: u64) -> [Kept; 2] {
        let passed = signs.since(&self.signs);
        let longest_ns = std::mem::take(&mut self.longest_gap_ns);
        let ended = completed - self.completed;
        let is_first = self.next_ns == 0;
        self.next_ns = now_ns + EVERY_NS;
        self.signs = signs;
        self.completed = completed;
        let (ended_before, longest_before_ns) =
            std::mem::replace(&mut self.before, (ended, longest_ns));
        if is_first {
            // Before the first look there was none: the gap up to it is the time since the machine started.
            self.before = (ended, 0);
            return [Kept::default(); 2];
        }
        // A stop is known when its end has been delivered, to whichever thread: by then this one may have taken what came
        // while it was stopped, and it looked at no clock for at least as long.
        let stopped_ns = if passed.stops > 0 { longest_ns } else { 0 };
        let stopped_before_ns = if passed.stops > 0 { longest_before_ns } else { 0 };
        self.stopped_ns += passed.stops * stopped_ns.max(stopped_before_ns);
        [
            Kept { ns: passed.kept_ns() + stopped_ns, requests: ended },
            Kept { ns: stopped_before_ns, requests: ended_before },
        ]
    }

    /// Notes how late a request leaves, with this many in flight. Returns whether it meets a target that a stall of this
    /// thread has disturbed. Clients at full speed all begin at once; whose thread begins late begins later, and
    /// holds nothing up: `begins`.
    #[inline]
    pub fn leaves(&mut self, lag_ns: u64, now_ns: u64, in_flight: u32, begins: bool) -> bool {
        let is_stall = lag_ns >= STALL_NS && !begins;
        let Some((usual, felt_until_ns)) = self.aftermath else {
            if is_stall {
                let felt_until_ns = now_ns + lag_ns * FELT_FOR;
                self.aftermath = Some((self.usual_in_flight, felt_until_ns));
            } else {
                self.usual_in_flight = in_flight;
            }
            return is_stall;
        };
        if !is_stall && (in_flight <= usual || now_ns >= felt_until_ns) {
            self.aftermath = None;
            self.usual_in_flight = in_flight;
            return false;
        }
        if is_stall {
            let felt_until_ns = felt_until_ns.max(now_ns + lag_ns * FELT_FOR);
            self.aftermath = Some((usual, felt_until_ns));
        }
        true
    }

    /// A round of sending begins, with this many requests sent before it.
    #[inline]
    pub fn sending_begins(&mut self, now_ns: u64, sent: u64) {
        self.round = (now_ns, sent);
    }

    /// A round of sending is over. The time that a request took from the reading of the clock that is its start to the
    /// network belongs to this process; requests of a round share what the round took, unless they wait for the last of
    /// them: `together`. Returns what is worth noting.
    #[inline]
    pub fn sending_ends(&mut self, now_ns: u64, sent: u64, together: bool) -> Option<Kept> {
        let (began_ns, sent_before) = self.round;
        let requests = sent - sent_before;
        if requests == 0 {
            return None;
        }
        let took_ns = now_ns.saturating_sub(began_ns);
        // Each is encoded and sent behind its own reading; those that go out together wait for the last of them.
        let ns = if together { took_ns } else { took_ns / requests };
        (ns >= NOTICED_NS).then_some(Kept { ns, requests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_felt_until_no_more_are_in_flight_than_before_it() {
        let mut noticing = Noticing::default();
        assert!(!noticing.leaves(0, 1_000, 5, false));
        assert!(noticing.leaves(STALL_NS, 2_000, 6, false));
        assert!(noticing.leaves(0, 3_000, 6, false), "one more than before is in flight");
        assert!(!noticing.leaves(0, 4_000, 5, false));
        assert!(noticing.leaves(STALL_NS, 5_000, 9, false));
        assert!(!noticing.leaves(0, 5_000 + STALL_NS * FELT_FOR, 9, false), "it was long ago");
        assert!(!noticing.leaves(STALL_NS, 6_000, 1, true), "a late beginning is no stall");
    }

    #[test]
    fn what_kept_the_thread_counts_for_the_requests_that_ended_meanwhile() {
        let mut noticing = Noticing::default();
        let signs = |run_delay_ns, stops| VitalSigns { run_delay_ns, stops, ..Default::default() };
        assert!(noticing.look(1_000));
        assert_eq!(noticing.read(1_000, signs(50_000, 0), 3), [Kept::default(); 2], "the first");
        assert!(!noticing.look(2_000) && !noticing.look(EVERY_NS));
        assert!(noticing.look(1_000 + EVERY_NS));
        let [now, before] = noticing.read(1_000 + EVERY_NS, signs(250_000, 0), 10);
        assert_eq!((now, before), (Kept { ns: 200_000, requests: 7 }, Kept { ns: 0, requests: 3 }));
        // It was stopped for 50 ms, and looked at no clock.
        let late_ns = 1_000 + EVERY_NS + 50 * MILLISECOND_NS;
        assert!(noticing.look(late_ns));
        let [now, before] = noticing.read(late_ns, signs(250_000, 1), 12);
        assert_eq!(now, Kept { ns: 50 * MILLISECOND_NS, requests: 2 });
        assert_eq!((before.requests, noticing.stopped_ns()), (7, 50 * MILLISECOND_NS));
    }

    #[test]
    fn a_stop_right_after_the_first_look_is_no_longer_than_the_time_since_it() {
        let mut noticing = Noticing::default();
        let signs = |stops| VitalSigns { stops, ..Default::default() };
        let first_ns = 1_000_000 * 1_000_000_000;
        for (now_ns, stops) in [(first_ns, 0), (first_ns + EVERY_NS, 1)] {
            assert!(noticing.look(now_ns));
            noticing.read(now_ns, signs(stops), 1);
        }
        assert_eq!(noticing.stopped_ns(), EVERY_NS);
    }

    #[test]
    fn a_round_of_sending_is_shared_unless_it_goes_out_together() {
        let mut noticing = Noticing::default();
        noticing.sending_begins(1_000, 10);
        assert_eq!(noticing.sending_ends(1_000 + 4 * NOTICED_NS, 10, true), None);
        let each = noticing.sending_ends(1_000 + 4 * NOTICED_NS, 14, false);
        assert_eq!(each, Some(Kept { ns: NOTICED_NS, requests: 4 }));
        assert_eq!(noticing.sending_ends(1_000 + 4 * NOTICED_NS, 15, false), None);
        let all = noticing.sending_ends(1_000 + 4 * NOTICED_NS, 15, true);
        assert_eq!(all, Some(Kept { ns: 4 * NOTICED_NS, requests: 5 }));
    }
}
