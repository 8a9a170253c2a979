//! What a shard notices of itself while it runs: replies that it read late, times without a processor, and the
//! aftermath of its own stalls.

use super::Shard;
use crate::net::Net;
use crate::vitals::VitalSigns;
use plimsoll_core::clock::{Clock, MILLISECOND_NS};
use plimsoll_wire::Protocol;

/// How often the thread's vital signs are read, ns. A reading costs about a microsecond.
const EVERY_NS: u64 = 10 * MILLISECOND_NS;
/// A request that leaves so much too late was held up by a stall of this thread, ns.
pub(super) const STALL_NS: u64 = MILLISECOND_NS;

/// What a shard notices of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noticing {
    next_ns: u64,
    signs: VitalSigns,
    /// Requests that had ended when the signs were read last.
    completed: u64,
    /// Requests in flight when the last one left on time.
    usual_in_flight: u32,
    /// After a stall: how many were in flight before it. What was held up is through with the target when there are no
    /// more than these again.
    aftermath_of: Option<u32>,
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Reads the vital signs when it is time to. Requests that ended since the last reading may each have waited for
    /// all of what kept the thread from its work meanwhile.
    #[inline]
    pub(super) fn notice(&mut self, now_ns: u64) {
        if now_ns >= self.noticing.next_ns {
            self.read_vitals(now_ns);
        }
    }

    fn read_vitals(&mut self, now_ns: u64) {
        let signs = self.net.vitals();
        let completed = self.standing.completed();
        let kept_ns = signs.since(&self.noticing.signs).kept_ns();
        let ended = completed - self.noticing.completed;
        let is_first = self.noticing.next_ns == 0;
        self.noticing.next_ns = now_ns + EVERY_NS;
        self.noticing.signs = signs;
        self.noticing.completed = completed;
        if kept_ns > 0 && ended > 0 && !is_first {
            let measuring = self.is_measuring(now_ns);
            let delays = &mut self.recorder_of(measuring).interval_mut().delays;
            delays.starved.record_many(kept_ns, ended);
        }
    }

    /// Notes how late a request leaves, and whether it meets a target that a stall of this thread has disturbed.
    #[inline]
    pub(super) fn notice_lag(&mut self, lag_ns: u64, measured: bool) {
        let in_flight = self.flights.len();
        if lag_ns < STALL_NS && self.noticing.aftermath_of.is_none() {
            self.noticing.usual_in_flight = in_flight;
            return;
        }
        let usual = *self.noticing.aftermath_of.get_or_insert(self.noticing.usual_in_flight);
        if lag_ns < STALL_NS && in_flight <= usual {
            self.noticing.aftermath_of = None;
            return;
        }
        self.recorder_of(measured).interval_mut().delays.disturbed += 1;
    }
}
