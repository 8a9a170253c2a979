//! What the generator measured of itself and of its machine, over the measured stretch.

use serde::{Deserialize, Serialize};

/// Shares of the measured stretch, 0 to 1, of the thread that fared worst, unless another unit is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// How often the process was stopped and continued.
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

    /// Adds what a later part of the same run was like: shares are the worst of the two.
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
