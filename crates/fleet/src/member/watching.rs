//! An agent that watches: it measures the coordinator's clock again and again, since clocks drift apart in a long run.

use super::{Member, Order};
use crate::link::{ClockOffset, Link};
use crate::message::{Up, Watches};
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::record::Machine;
use plimsoll_record::resources::ResourcesResult;

/// Time between two measurements of the coordinator's clock, ns.
const AGAIN_NS: u64 = 30 * SECOND_NS;
/// Drift of two clocks that is allowed for, ns a second: crystals differ by some ten millionths.
const DRIFT_NS_PER_S: u64 = 100_000;

/// State of an agent that watches.
pub(super) struct Watching {
    machine: Machine,
    things: ResourcesResult,
    /// The coordinator's clock, and the own time at which it was measured, ns.
    clock: Option<(ClockOffset, u64)>,
    is_measuring: bool,
    again_ns: u64,
}

/// The better one of two measurements: the new one, unless it is known less well than the old one with all drift since then.
fn better(old: (ClockOffset, u64), new: ClockOffset, now_ns: u64) -> (ClockOffset, u64) {
    let drift_ns = now_ns.saturating_sub(old.1) / SECOND_NS * DRIFT_NS_PER_S;
    if new.round_trip_ns / 2 <= old.0.round_trip_ns / 2 + drift_ns { (new, now_ns) } else { old }
}

impl Watching {
    /// A new offset, if there is one.
    fn measured(&mut self, link: &mut Link, now_ns: u64) -> Option<ClockOffset> {
        if !self.is_measuring {
            if now_ns >= self.again_ns {
                self.is_measuring = true;
                link.measure_clock(now_ns);
            }
            return None;
        }
        let found = link.clock()?;
        self.is_measuring = false;
        self.again_ns = now_ns + AGAIN_NS;
        let before = self.clock;
        let best = before.map_or((found, now_ns), |old| better(old, found, now_ns));
        self.clock = Some(best);
        (before != self.clock).then_some(best.0)
    }

    fn message(&self, clock: ClockOffset) -> Up {
        // Its clock ahead of the coordinator's is the other way round than the link says.
        let ahead_ns = i64::try_from(-clock.ahead_ns).unwrap_or(i64::MAX);
        Up::Watches(Box::new(Watches {
            clock: (ahead_ns, clock.round_trip_ns),
            machine: self.machine.clone(),
            things: self.things.clone(),
        }))
    }
}

impl Member {
    /// It watches these things: reports so once the coordinator's clock is measured.
    pub fn watch(&mut self, machine: Machine, things: ResourcesResult) {
        self.link.measure_clock(0);
        self.watching =
            Some(Watching { machine, things, clock: None, is_measuring: true, again_ns: 0 });
    }

    /// Reports what it has watched, with the remarks of the end.
    ///
    /// # Errors
    /// When too much waits to be sent.
    pub fn watched(&mut self, things: ResourcesResult) -> Result<(), crate::link::LinkError> {
        let Some(watching) = &mut self.watching else { return Ok(()) };
        watching.things = things;
        let Some((clock, _)) = watching.clock else { return Ok(()) };
        let message = watching.message(clock);
        self.say(&message)
    }

    /// The start of the measured stretch on the coordinator's clock is known.
    pub(super) fn measured_from(&mut self, at_ns: u64) {
        self.origin_ns = Some(at_ns);
        let clock = self.watching.as_ref().and_then(|watching| watching.clock);
        if let Some((clock, _)) = clock {
            self.orders.push_back(Order::MeasuredFrom { at_ns: clock.own_ns(at_ns) });
        }
    }

    /// Measures the clock, and corrects the start of the measured stretch by it.
    pub(super) fn keep_clock(&mut self, now_ns: u64) {
        let Some(watching) = &mut self.watching else { return };
        let is_first = watching.clock.is_none();
        let Some(clock) = watching.measured(&mut self.link, now_ns) else { return };
        if is_first {
            let message = watching.message(clock);
            if let Err(error) = self.say(&message) {
                self.end(&error.to_string());
            }
        }
        if let Some(at_ns) = self.origin_ns {
            self.orders.push_back(Order::MeasuredFrom { at_ns: clock.own_ns(at_ns) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_is_measured_again_and_a_worse_measurement_is_left_out() {
        let offset = |ahead_ns, round_trip_ns| ClockOffset { ahead_ns, round_trip_ns };
        let old = (offset(5_000, 1_000_000), 0);
        let soon_ns = 10 * SECOND_NS;
        let new = offset(9_000, 1_500_000);
        assert_eq!(better(old, new, soon_ns), (new, soon_ns), "0.25 ms worse, 1 ms of drift");
        let slow = offset(9_000, 40_000_000);
        assert_eq!(better(old, slow, soon_ns), old, "it is wrong by up to 20 ms");
        assert_eq!(better(old, slow, 300 * SECOND_NS), (slow, 300 * SECOND_NS));
    }
}
