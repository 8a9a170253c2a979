//! What a shard notices of itself while it runs: replies that it read late, times without a processor, and the
//! aftermath of its own stalls.

use crate::net::Net;
use crate::shard::Shard;
use crate::vitals::VitalSigns;
use plimsoll_core::clock::{Clock, MILLISECOND_NS};
use plimsoll_core::delays::NOTICED_NS;
use plimsoll_wire::Protocol;

/// How often the thread's vital signs are read, ns. A reading costs about a microsecond.
const EVERY_NS: u64 = 10 * MILLISECOND_NS;
/// A request that leaves so much too late was held up by a stall of this thread, ns.
pub(in crate::shard) const STALL_NS: u64 = MILLISECOND_NS;
/// How many times its own length a stall may be felt: a target that is busy 95 % of the time needs 20 times as long to
/// catch up.
const FELT_FOR: u64 = 20;

/// What a shard notices of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::shard) struct Noticing {
    next_ns: u64,
    signs: VitalSigns,
    /// Requests that had ended when the signs were read last.
    completed: u64,
    /// Requests in flight when the last one left on time.
    usual_in_flight: u32,
    /// After a stall: how many were in flight before it, and until when it may be felt, ns. What was held up is through
    /// with the target when there are no more in flight than before; requests that the target never answers must not keep
    /// that from coming.
    aftermath: Option<(u32, u64)>,
    /// The last look at the clock, ns, and the longest time between two of them since the signs were read.
    looked_ns: u64,
    longest_gap_ns: u64,
    /// Requests that ended between the two readings before, and the longest gap then, ns.
    before: (u64, u64),
    /// For how long the process may have been stopped, ns.
    pub(in crate::shard) stopped_ns: u64,
    /// The first reading of the clock of this round of sending, ns, and how many requests had been sent before it.
    round: (u64, u64),
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Reads the vital signs when it is time to. Requests that ended since the last reading may each have waited for
    /// all of what kept the thread from its work meanwhile.
    #[inline]
    pub(in crate::shard) fn notice(&mut self, now_ns: u64) {
        let gap_ns = now_ns - std::mem::replace(&mut self.noticing.looked_ns, now_ns);
        self.noticing.longest_gap_ns = self.noticing.longest_gap_ns.max(gap_ns);
        if now_ns >= self.noticing.next_ns {
            self.read_vitals(now_ns);
        }
    }

    fn read_vitals(&mut self, now_ns: u64) {
        let signs = self.net.vitals();
        let completed = self.standing.completed();
        let passed = signs.since(&self.noticing.signs);
        let longest_ns = std::mem::take(&mut self.noticing.longest_gap_ns);
        let ended = completed - self.noticing.completed;
        let is_first = self.noticing.next_ns == 0;
        self.noticing.next_ns = now_ns + EVERY_NS;
        self.noticing.signs = signs;
        self.noticing.completed = completed;
        let (ended_before, longest_before_ns) =
            std::mem::replace(&mut self.noticing.before, (ended, longest_ns));
        if is_first {
            return;
        }
        // A stop is known when its end has been delivered, to whichever thread: by then this one may have taken what came
        // while it was stopped, and it looked at no clock for at least as long.
        let stopped_ns = if passed.stops > 0 { longest_ns } else { 0 };
        let stopped_before_ns = if passed.stops > 0 { longest_before_ns } else { 0 };
        self.noticing.stopped_ns += passed.stops * stopped_ns.max(stopped_before_ns);
        self.kept_from_processor(now_ns, passed.kept_ns() + stopped_ns, ended);
        self.kept_from_processor(now_ns, stopped_before_ns, ended_before);
    }

    /// So many requests may each have waited so long for this thread to run.
    fn kept_from_processor(&mut self, now_ns: u64, kept_ns: u64, ended: u64) {
        if kept_ns > 0 && ended > 0 {
            let measuring = self.is_measuring(now_ns);
            let delays = &mut self.recorder_of(measuring).interval_mut().delays;
            delays.starved.record_many(kept_ns, ended);
        }
    }

    /// Notes how late a request leaves, and whether it meets a target that a stall of this thread has disturbed.
    #[inline]
    pub(in crate::shard) fn notice_lag(&mut self, lag_ns: u64, now_ns: u64, measured: bool) {
        let in_flight = self.flights.len();
        // Clients at full speed all begin at once; whose thread begins late begins later, and holds nothing up.
        let begins = self.plan.model.is_full_speed() && self.standing.completed() == 0;
        let is_stall = lag_ns >= STALL_NS && !begins;
        let Some((usual, felt_until_ns)) = self.noticing.aftermath else {
            if is_stall {
                let felt_until_ns = now_ns + lag_ns * FELT_FOR;
                self.noticing.aftermath = Some((self.noticing.usual_in_flight, felt_until_ns));
                self.disturbed(measured);
            } else {
                self.noticing.usual_in_flight = in_flight;
            }
            return;
        };
        if !is_stall && (in_flight <= usual || now_ns >= felt_until_ns) {
            self.noticing.aftermath = None;
            self.noticing.usual_in_flight = in_flight;
            return;
        }
        if is_stall {
            let felt_until_ns = felt_until_ns.max(now_ns + lag_ns * FELT_FOR);
            self.noticing.aftermath = Some((usual, felt_until_ns));
        }
        self.disturbed(measured);
    }

    fn disturbed(&mut self, measured: bool) {
        self.recorder_of(measured).interval_mut().delays.disturbed += 1;
    }

    /// A round of sending begins.
    #[inline]
    pub(in crate::shard) fn sending_begins(&mut self, now_ns: u64) {
        self.noticing.round = (now_ns, self.standing.sent);
    }

    /// A round of sending is over. The time that a request took from the reading of the clock that is its start to the
    /// network belongs to this process; requests of a round share what the round took.
    #[inline]
    pub(in crate::shard) fn sending_ends(&mut self, now_ns: u64) {
        let (began_ns, sent_before) = self.noticing.round;
        let sent = self.standing.sent - sent_before;
        if sent == 0 {
            return;
        }
        let took_ns = now_ns.saturating_sub(began_ns);
        // Each is encoded and sent behind its own reading; those that go out together wait for the last of them.
        let each_ns = if self.protocol.depth() > 1 { took_ns } else { took_ns / sent };
        if each_ns >= NOTICED_NS {
            let measuring = self.is_measuring(now_ns);
            self.recorder_of(measuring).interval_mut().delays.send.record_many(each_ns, sent);
        }
    }
}
