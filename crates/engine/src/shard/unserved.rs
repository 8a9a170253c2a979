//! Requests that no one serves: refused, never sent, or cut off. They are in the ledger, and how long they had waited is
//! kept, since these are the ones that waited longest.

use super::Shard;
use crate::net::Net;
use plimsoll_core::admission::Due;
use plimsoll_core::clock::Clock;
use plimsoll_core::schedule::Next;
use plimsoll_wire::Protocol;

/// Groups in which arrivals that were never sent are kept at least; each has the least age of its own.
const GROUPS: u64 = 1_000;
/// Most random arrivals between two looks at the clock: about a millisecond.
const WALKED_AT_ONCE: u64 = 1 << 16;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Makes nothing due any more; what was due by `until_ns` and not sent is counted, also what waits in
    /// the managed queue.
    pub(super) fn end_schedule(&mut self, until_ns: u64) {
        let now_ns = self.clock.now_ns();
        while let Some(due) = self.agenda.take_waiting(0) {
            self.books.unsent(due, now_ns);
        }
        if self.agenda.is_done() {
            return;
        }
        if self.books.may_count_many() {
            // What belongs to the warm-up is counted apart.
            let before_ns = self.course.measured_from_ns().saturating_sub(1).min(until_ns);
            let all_drawn =
                self.skip_arrivals(before_ns, now_ns) && self.skip_arrivals(until_ns, now_ns);
            if !all_drawn {
                self.count_undrawn(before_ns, until_ns, now_ns);
            }
        }
        while !self.agenda.is_done()
            && let Next::Send { intended_ns, client } = self.agenda.next(until_ns)
        {
            self.books.unsent(Due { intended_ns, client }, now_ns);
        }
        self.agenda.stop();
    }

    /// Counts arrivals that were due and never sent, many at a time. Random ones have to be drawn one by one, which may take
    /// longer than the run may last: returns false if there was no time for all.
    fn skip_arrivals(&mut self, until_ns: u64, now_ns: u64) -> bool {
        let most = self.agenda.owed(until_ns).div_ceil(GROUPS).max(1);
        let is_walked = self.agenda.is_random();
        let most = if is_walked { most.min(WALKED_AT_ONCE) } else { most };
        while let Some(skipped) = self.agenda.skip(until_ns, most) {
            self.books.unsent_many(skipped.count, skipped.latest_ns, now_ns);
            if is_walked && self.course.is_late_for_the_end(self.clock.now_ns(), now_ns) {
                return false;
            }
        }
        true
    }

    /// Counts the arrivals for whose drawing there is no time: as many as the mean of what they would be. Those of the
    /// warm-up, until `before_ns`, stay apart.
    fn count_undrawn(&mut self, before_ns: u64, until_ns: u64, now_ns: u64) {
        let of_warmup = self.agenda.owed(before_ns);
        let measured = self.agenda.give_all_owed(until_ns).saturating_sub(of_warmup);
        for (count, latest_ns) in [(of_warmup, before_ns), (measured, until_ns)] {
            if count > 0 {
                self.books.unsent_many(count, latest_ns.min(now_ns), now_ns);
            }
        }
    }

    /// Counts what is still in flight when the run is cut off.
    pub(super) fn write_off(&mut self, now_ns: u64) {
        for tag in self.flights.in_use() {
            let flight = self.flights.get(tag);
            let (intended_ns, measured) = (flight.times.intended_ns, flight.measured);
            self.books.unfinished(flight.what.class, intended_ns, measured, now_ns);
            self.flights.release(tag);
        }
    }
}
