//! Requests that nobody serves: refused, never sent, or cut off. They are in the ledger, and how long they had waited is
//! kept, since these are the ones that waited longest.

use super::{STOP_GRACE_NS, Shard};
use crate::net::Net;
use plimsoll_core::clock::{Clock, SECOND_NS};
use plimsoll_core::schedule::Next;
use plimsoll_wire::Protocol;
use std::sync::atomic::Ordering;

/// Groups in which arrivals that were never sent are kept at least; each has the least age of its own.
const GROUPS: u64 = 1_000;
/// Most random arrivals between two looks at the clock: about a millisecond.
const WALKED_AT_ONCE: u64 = 1 << 16;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Makes nothing due any more; what was due by `until_ns` and not sent is counted, also what waits in
    /// the managed queue.
    pub(super) fn end_schedule(&mut self, until_ns: u64) {
        let now_ns = self.clock.now_ns();
        while let Some(due) = self.managed.as_mut().and_then(|queue| queue.take(0)) {
            self.count_unsent(due.intended_ns, due.client, now_ns);
        }
        if self.schedule_done {
            return;
        }
        if self.plan.part.windows.is_empty() {
            // What belongs to the warm-up is counted apart.
            let before_ns = self.measured_from_ns().saturating_sub(1).min(until_ns);
            self.skip_arrivals(before_ns, now_ns);
            self.skip_arrivals(until_ns, now_ns);
        }
        while let Next::Send { intended_ns, client } = self.schedule.next(until_ns) {
            self.count_unsent(intended_ns, client, now_ns);
        }
        self.schedule.stop();
        self.schedule_done = true;
    }

    /// Counts arrivals that were due and never sent, many at a time. Random ones have to be drawn one by one, which may take
    /// longer than the run may last: those for which there is no time are counted as the mean of what they would be.
    fn skip_arrivals(&mut self, until_ns: u64, now_ns: u64) {
        let most = self.schedule.owed(until_ns).div_ceil(GROUPS).max(1);
        let is_walked = self.schedule.is_random();
        let most = if is_walked { most.min(WALKED_AT_ONCE) } else { most };
        while let Some(skipped) = self.schedule.skip(until_ns, most) {
            self.count_unsent_many(skipped.count, skipped.latest_ns, now_ns);
            if is_walked && self.is_late_for_the_end(now_ns) {
                let left = self.schedule.owed(until_ns);
                if left > 0 {
                    self.count_unsent_many(left, until_ns.min(now_ns), now_ns);
                }
                return self.schedule.stop();
            }
        }
    }

    /// Returns whether the time is over in which the schedule may be walked to its end.
    fn is_late_for_the_end(&self, since_ns: u64) -> bool {
        let now_ns = self.clock.now_ns();
        let is_stopped = self.stop.load(Ordering::Relaxed);
        let limit_ns =
            self.end_ns.saturating_add(self.plan.timeouts.request_ns).saturating_add(SECOND_NS);
        now_ns >= limit_ns.max(since_ns) || (is_stopped && now_ns >= since_ns + STOP_GRACE_NS)
    }

    fn count_unsent_many(&mut self, count: u64, intended_ns: u64, now_ns: u64) {
        let interval = self.recorder_for(intended_ns, 0).interval_mut();
        interval.ledger.scheduled += count;
        interval.ledger.unsent.stopped += count;
        interval.unserved.record_many(now_ns.saturating_sub(intended_ns), count);
    }

    fn count_unsent(&mut self, intended_ns: u64, client: u32, now_ns: u64) {
        self.count_due(intended_ns);
        self.count_given_up(intended_ns, now_ns, None);
        let interval = self.recorder_for(intended_ns, client).interval_mut();
        interval.ledger.scheduled += 1;
        interval.ledger.unsent.stopped += 1;
        interval.unserved.record(now_ns.saturating_sub(intended_ns));
    }

    /// Counts how long a request was waited for in vain, where somebody asks for that.
    fn count_given_up(&self, intended_ns: u64, now_ns: u64, class: Option<u16>) {
        if let Some(windows) = self.plan.part.windows.first() {
            let since_start = |at_ns: u64| at_ns.saturating_sub(self.start_ns);
            windows.given_up(since_start(intended_ns), since_start(now_ns), class);
        }
    }

    /// Counts what is still under way when the run is cut off.
    pub(super) fn write_off(&mut self, now_ns: u64) {
        for tag in self.flights.in_use() {
            let flight = self.flights.get(tag);
            let (measured, class) = (flight.measured, flight.what.class);
            let intended_ns = flight.times.intended_ns;
            let age_ns = now_ns.saturating_sub(intended_ns);
            self.count_given_up(intended_ns, now_ns, Some(class));
            let interval = self.recorder_of(measured).interval_mut();
            interval.ledger.unfinished += 1;
            interval.unserved.record(age_ns);
            if let Some(part) = interval.classes.get_mut(class as usize) {
                part.ledger.unfinished += 1;
            }
            self.flights.release(tag);
        }
    }
}
