//! Resources that a shard has used up to a moment: taken where the measured stretch begins and where it ends, so that
//! neither the warm-up nor the wait for the last replies dilutes what it says of the stretch.

use crate::vitals::VitalSigns;
use plimsoll_core::verdict::Health;

/// Resources that a shard has used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The moment, ns on the engine's clock.
    pub at_ns: u64,
    /// Time that it had waited for the network, ns.
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
    /// Measurements of the shard itself from `self` to `to`.
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

/// The moments between which a shard is measured, ns.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Measured {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Marks {
    /// The shard is ready and waits for the others.
    pub fn set_ready(&mut self, signs: VitalSigns) {
        self.ready = signs;
    }

    /// Time at which the next mark is due, ns.
    #[inline]
    pub fn next_ns(&self, measured: Measured) -> u64 {
        match (self.from, self.to) {
            (_, Some(_)) => u64::MAX,
            (Some(_), None) => measured.to_ns,
            (None, None) => measured.from_ns.min(measured.to_ns),
        }
    }

    /// Sets the marks that `mark` is due for. After a warm-up, what its thread waited for in that is not counted.
    pub fn set(&mut self, mark: Mark, measured: Measured, has_warmup: bool) {
        if self.from.is_none() && mark.at_ns >= measured.from_ns {
            let run_delay_ns =
                if has_warmup { mark.signs.run_delay_ns } else { self.ready.run_delay_ns };
            let signs = VitalSigns { run_delay_ns, ..mark.signs };
            self.from = Some(Mark { signs, ..mark });
        }
        if mark.at_ns >= measured.to_ns {
            self.to = Some(mark);
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
    #[test]
    fn marks_are_set_once_each_and_a_late_beginning_belongs_to_the_run() {
        for (has_warmup, run_delay_ns) in [(false, 3), (true, 8)] {
            let measured = Measured { from_ns: 100, to_ns: 200 };
            let mut marks = Marks::default();
            marks.set_ready(VitalSigns { run_delay_ns: 3, ..VitalSigns::default() });
            assert_eq!(marks.next_ns(measured), 100);
            let signs = VitalSigns { run_delay_ns: 8, ..VitalSigns::default() };
            let at = |at_ns| Mark { at_ns, signs, ..Mark::default() };
            marks.set(at(101), measured, has_warmup);
            assert_eq!(marks.next_ns(measured), 200);
            marks.set(at(150), measured, has_warmup);
            marks.set(at(205), measured, has_warmup);
            assert_eq!(marks.next_ns(measured), u64::MAX);
            let (from, to) = marks.until(at(300));
            assert_eq!((from.at_ns, from.signs.run_delay_ns), (101, run_delay_ns));
            assert_eq!((to.at_ns, to.signs.run_delay_ns), (205, 8));
        }
    }

    #[test]
    fn a_run_that_ends_before_its_warmup_has_an_end_and_no_beginning() {
        let measured = Measured { from_ns: 100, to_ns: 50 };
        let mut marks = Marks::default();
        assert_eq!(marks.next_ns(measured), 50);
        marks.set(Mark { at_ns: 60, ..Mark::default() }, measured, true);
        let (from, to) = marks.until(Mark { at_ns: 70, ..Mark::default() });
        assert_eq!((from.at_ns, to.at_ns), (70, 60));
    }
}
