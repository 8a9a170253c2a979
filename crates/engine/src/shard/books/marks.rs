//! What a shard has used up to a moment: taken where the measured stretch begins and where it ends, so that neither the
//! warm-up nor the wait for the last replies dilutes what it says of the stretch.

use crate::net::Net;
use crate::shard::Shard;
use crate::vitals::VitalSigns;
use plimsoll_core::clock::Clock;
use plimsoll_core::verdict::Health;
use plimsoll_wire::Protocol;

/// What a shard has used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The moment, ns on the engine's clock.
    pub at_ns: u64,
    /// How long it had waited for the network, ns.
    pub idle_ns: u64,
    /// CPU time of its thread, and what had kept it from its work.
    pub signs: VitalSigns,
    /// For how long the process may have been stopped, ns.
    pub stopped_ns: u64,
}

/// The beginning and the end of the measured stretch, as far as they have come.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::shard) struct Marks {
    /// Vital signs when the thread was ready to begin: a late beginning belongs to the run.
    ready: VitalSigns,
    from: Option<Mark>,
    to: Option<Mark>,
}

impl Marks {
    /// Both; where the end of the schedule did not come, the stretch ends with `last`.
    pub fn until(self, last: Mark) -> (Mark, Mark) {
        let from = self.from.unwrap_or(last);
        (from, self.to.unwrap_or(last))
    }
}

impl Mark {
    /// What the shard measured of itself from `self` to `to`.
    #[must_use]
    pub fn health_until(&self, to: &Mark) -> Health {
        // A thread that ended before anything was to be measured was neither busy nor idle.
        if to.at_ns <= self.at_ns {
            return Health::default();
        }
        let lived_ns = (to.at_ns - self.at_ns) as f64;
        let signs = to.signs.since(&self.signs);
        let share = |ns: u64| (ns as f64 / lived_ns).min(1.0);
        let starved = share(signs.run_delay_ns);
        let stopped = share(to.stopped_ns - self.stopped_ns);
        let not_idle = 1.0 - share(to.idle_ns.saturating_sub(self.idle_ns));
        Health {
            // A thread may lose its processor in the middle of its work, which is no work, and while it waits, which
            // is no idling. A thread that spins uses all of a processor and has work for a part of it.
            busy: not_idle.min(share(signs.cpu_ns)).max(not_idle - starved - stopped),
            starved,
            throttled: share(signs.throttled_ns),
            stolen: share(signs.stolen_ns),
            stopped,
            stops: signs.stops,
            ..Health::default()
        }
    }
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Takes the marks that are due.
    #[inline]
    pub(in crate::shard) fn take_marks(&mut self, now_ns: u64) {
        if now_ns >= self.next_mark_ns() {
            let mark = self.mark(now_ns);
            if self.marks.from.is_none() && self.is_measuring(now_ns) {
                let run_delay_ns = match self.plan.warmup_ns {
                    0 => self.marks.ready.run_delay_ns,
                    _ => mark.signs.run_delay_ns,
                };
                let signs = VitalSigns { run_delay_ns, ..mark.signs };
                self.marks.from = Some(Mark { signs, ..mark });
            }
            if now_ns >= self.end_ns {
                self.marks.to = Some(mark);
            }
        }
    }

    /// The shard is ready and waits for the others.
    pub(in crate::shard) fn mark_ready(&mut self) {
        self.marks.ready = self.net.vitals();
    }

    pub(in crate::shard) fn mark(&mut self, at_ns: u64) -> Mark {
        let stopped_ns = self.noticing.stopped_ns;
        Mark { at_ns, idle_ns: self.net.idle_ns(), signs: self.net.vitals(), stopped_ns }
    }

    /// When the next mark is due, ns.
    #[inline]
    pub(in crate::shard) fn next_mark_ns(&self) -> u64 {
        match (self.marks.from, self.marks.to) {
            (_, Some(_)) => u64::MAX,
            (Some(_), None) => self.end_ns,
            (None, None) => self.measured_from_ns().min(self.end_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_measured_nothing_was_not_busy() {
        let last = Mark { at_ns: 5_000, idle_ns: 4_000, ..Mark::default() };
        let (from, to) = Marks::default().until(last);
        assert_eq!(from.health_until(&to).busy, 0.0);
        let later = Mark { at_ns: 6_000, idle_ns: 4_750, ..last };
        assert!((last.health_until(&later).busy - 0.25).abs() < 1e-9);
    }
}
