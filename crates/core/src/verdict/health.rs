//! Measurements of the generator and its machine over the measured stretch.

use serde::{Deserialize, Serialize};

/// Shares of the measured stretch, 0 to 1, of the thread that fared worst, unless another unit is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Health {
    /// The busiest thread had work.
    pub busy: f64,
    /// A thread was ready to run and other programs had its processor (`/proc/thread-self/schedstat`).
    pub starved: f64,
    /// The control group's quota held the process back (`cpu.stat`).
    pub throttled: f64,
    /// The hypervisor ran other machines on the processors of this one (`/proc/stat`, steal).
    pub stolen: f64,
    /// The process was stopped by a signal, at most (SIGSTOP, a debugger).
    pub stopped: f64,
    /// Number of times that the process was stopped and continued.
    pub stops: u64,
    /// The machine was suspended, s.
    pub suspended_s: f64,
    /// The wall clock was set, s; forward is positive. Times are measured by another clock.
    pub clock_step_s: f64,
}

impl Health {
    /// Share of the stretch in which the process was kept from a processor.
    #[must_use]
    pub fn withheld(&self) -> f64 {
        (self.starved + self.throttled + self.stolen + self.stopped).min(1.0)
    }

    /// Share of the stretch that the busiest thread had left.
    #[must_use]
    pub fn left(&self) -> f64 {
        (1.0 - self.busy - self.withheld()).max(0.0)
    }

    /// Adds a later part of the same run, with the lengths of both, s: the time that was withheld is a share of both
    /// parts together; the busiest part decides whether a thread had anything left.
    pub fn followed_by(&mut self, own_s: f64, later: &Self, later_s: f64) {
        let share = later_s / (own_s + later_s).max(1e-9);
        let of_both = |own: f64, later: f64| own + (later - own) * share;
        let both = Self {
            starved: of_both(self.starved, later.starved),
            throttled: of_both(self.throttled, later.throttled),
            stolen: of_both(self.stolen, later.stolen),
            stopped: of_both(self.stopped, later.stopped),
            ..*self
        };
        self.absorb(later);
        (self.starved, self.throttled) = (both.starved, both.throttled);
        (self.stolen, self.stopped) = (both.stolen, both.stopped);
    }

    /// Adds another thread or process of the same run: shares are the worst of the two.
    pub fn absorb(&mut self, later: &Self) {
        self.busy = self.busy.max(later.busy);
        self.starved = self.starved.max(later.starved);
        self.throttled = self.throttled.max(later.throttled);
        self.stolen = self.stolen.max(later.stolen);
        self.stopped = self.stopped.max(later.stopped);
        self.stops += later.stops;
        self.suspended_s += later.suspended_s;
        self.clock_step_s += later.clock_step_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_withheld_is_a_share_of_all_parts() {
        let quiet = Health { busy: 0.2, starved: 0.02, stops: 1, ..Health::default() };
        let held_up =
            Health { busy: 0.9, starved: 1.0, stolen: 0.5, stops: 1, ..Health::default() };
        let mut whole = quiet;
        whole.followed_by(99.0, &held_up, 1.0);
        assert!((whole.starved - 0.0298).abs() < 1e-9, "{whole:?}");
        assert!((whole.stolen - 0.005).abs() < 1e-9, "{whole:?}");
        assert_eq!((whole.busy, whole.stops), (0.9, 2));
        whole.followed_by(0.0, &quiet, 0.0);
        assert!(whole.starved.is_finite());
        whole.absorb(&held_up);
        assert_eq!(whole.starved, 1.0, "of threads the worst one counts");
    }
}
