//! Number of operations that may be in flight: found by measuring, or fixed.
//!
//! The window doubles while that pays, as TCP's does at its start, and then climbs the hill of throughput in small
//! steps: a little more for a while, kept if it brought more; a little less for a while, kept if it cost
//! nothing. A target that says "too much" (429, 503) is believed at once: the window shrinks, once a round
//! trip however many operations were rejected, and then grows slowly up to where that happened.

use plimsoll_core::clock::MILLISECOND_NS;

/// First size of an adaptive window.
pub const START: u32 = 16;
/// Shortest time over which throughput is measured, ns.
const EPOCH_MIN_NS: u64 = 50 * MILLISECOND_NS;
/// Longest, so that a slow target does not hold the window up, ns.
const EPOCH_MAX_NS: u64 = 1000 * MILLISECOND_NS;
/// Operations in an epoch before it says anything.
const EPOCH_OPERATIONS_MIN: u64 = 20;
/// Twice the window must bring this much more at the start.
const DOUBLING_PAYS: f64 = 1.2;
/// A step of the climb, upwards.
const STEP_UP: f64 = 1.25;
/// And down.
const STEP_DOWN: f64 = 0.85;
/// More throughput by this factor keeps a larger window.
const MORE: f64 = 1.05;
/// Not less than this share of it keeps a smaller one.
const NOT_LESS: f64 = 0.98;
/// Epochs between two steps.
const REST_EPOCHS: u32 = 4;
/// Factor by which the window shrinks when the target rejects operations.
const BACK_OFF: f64 = 0.7;
/// Growth an epoch near the place where that happened.
const NEAR_GROWTH: f64 = 1.03;
/// From this share of that place on growth is slow.
const NEAR: f64 = 0.85;

/// Phase of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// It doubles; the throughput of the epoch before, if there was one.
    Start { last: f64 },
    /// It stays, and the throughput is averaged.
    Rest { epochs: u32, rate: f64 },
    /// It tries more than `base`.
    Up { base: f64, rate: f64 },
    /// It tries less than `base`.
    Down { base: f64, rate: f64 },
}

/// The window of one shard.
#[derive(Clone, Debug)]
pub struct Window {
    size: f64,
    max: f64,
    fixed: bool,
    phase: Phase,
    next_is_up: bool,
    /// Size at which operations were last rejected; infinite if never.
    ceiling: f64,
    epoch_from_ns: u64,
    accepted: u64,
    /// True if it was ever full in this epoch: otherwise its size has made no difference.
    was_full: bool,
    shrunk_at_ns: u64,
    shrinks: u64,
    /// Smoothed time in the server of what was accepted, ns; 0 while there was none.
    round_trip_ns: f64,
}

impl Window {
    /// One that finds its size, at most `max`.
    #[must_use]
    pub fn adaptive(max: u32) -> Self {
        Self::of(f64::from(START.min(max)), f64::from(max), false)
    }

    /// One of this size.
    #[must_use]
    pub fn fixed(size: u32) -> Self {
        Self::of(f64::from(size), f64::from(size), true)
    }

    fn of(size: f64, max: f64, fixed: bool) -> Self {
        Self {
            size: size.max(1.0),
            max: max.max(1.0),
            fixed,
            phase: Phase::Start { last: 0.0 },
            next_is_up: true,
            ceiling: f64::INFINITY,
            epoch_from_ns: 0,
            accepted: 0,
            was_full: false,
            shrunk_at_ns: 0,
            shrinks: 0,
            round_trip_ns: 0.0,
        }
    }

    /// The number that may be in flight, from 1 to its maximum.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size as u32
    }

    /// Number of times that it was made smaller because operations were rejected.
    #[must_use]
    pub fn shrinks(&self) -> u64 {
        self.shrinks
    }

    /// Smoothed time in the server of what was accepted, ns; 0 while nothing was.
    #[must_use]
    pub fn round_trip_ns(&self) -> u64 {
        self.round_trip_ns as u64
    }

    /// It is full: something waits for it.
    pub fn full(&mut self) {
        self.was_full = true;
    }

    /// An operation was accepted.
    pub fn accepted(&mut self, sent_ns: u64, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(sent_ns) as f64;
        self.round_trip_ns = match self.round_trip_ns {
            0.0 => took_ns,
            before => before + (took_ns - before) / 16.0,
        };
        self.accepted += 1;
        if self.epoch_from_ns == 0 {
            self.epoch_from_ns = now_ns;
            self.accepted = 0;
        }
        let length_ns = now_ns.saturating_sub(self.epoch_from_ns);
        let round_trips_ns = (2.0 * self.round_trip_ns) as u64;
        let enough = length_ns >= round_trips_ns.clamp(EPOCH_MIN_NS, EPOCH_MAX_NS);
        if enough && self.accepted >= EPOCH_OPERATIONS_MIN.min(self.size as u64) {
            let rate = self.accepted as f64 * 1e9 / length_ns as f64;
            let was_full = self.was_full;
            self.epoch(now_ns);
            if !self.fixed && was_full {
                self.step(rate);
            }
        }
    }

    /// Notes that the target rejected an operation sent at `sent_ns`. Returns true if the window became smaller: only the
    /// first rejection among operations that were in flight together makes it smaller.
    pub fn turned_away(&mut self, sent_ns: u64, now_ns: u64) -> bool {
        if self.fixed || sent_ns < self.shrunk_at_ns {
            return false;
        }
        self.shrunk_at_ns = now_ns;
        self.shrinks += 1;
        self.ceiling = self.size;
        self.size = (self.size * BACK_OFF).max(1.0);
        self.phase = Phase::Rest { epochs: 0, rate: 0.0 };
        self.epoch(now_ns);
        true
    }

    fn epoch(&mut self, now_ns: u64) {
        (self.epoch_from_ns, self.accepted, self.was_full) = (now_ns, 0, false);
    }

    fn resize(&mut self, size: f64) {
        self.size = size.clamp(1.0, self.max);
    }

    /// An epoch in which the window was full brought this many operations a second.
    fn step(&mut self, rate: f64) {
        match self.phase {
            Phase::Start { last } if rate >= last * DOUBLING_PAYS => {
                self.phase = Phase::Start { last: rate };
                self.resize(self.size * 2.0);
                if self.size >= self.max {
                    self.phase = Phase::Rest { epochs: 0, rate: 0.0 };
                }
            }
            Phase::Start { .. } => {
                self.resize(self.size / 2.0);
                self.phase = Phase::Rest { epochs: 0, rate: 0.0 };
            }
            Phase::Rest { epochs, rate: before } => {
                let mean = (before * f64::from(epochs) + rate) / f64::from(epochs + 1);
                self.phase = Phase::Rest { epochs: epochs + 1, rate: mean };
                if self.ceiling.is_finite() {
                    self.recover();
                } else if epochs + 1 >= REST_EPOCHS {
                    self.try_another(mean);
                }
            }
            Phase::Up { base, rate: before } => {
                let keeps = rate > before * MORE;
                if !keeps {
                    self.resize(base);
                }
                self.next_is_up = keeps;
                self.phase = Phase::Rest { epochs: 0, rate: 0.0 };
            }
            Phase::Down { base, rate: before } => {
                let keeps = rate >= before * NOT_LESS;
                if !keeps {
                    self.resize(base);
                }
                self.next_is_up = !keeps;
                self.phase = Phase::Rest { epochs: 0, rate: 0.0 };
            }
        }
    }

    /// Grows back to where operations were rejected, slowly near it; beyond it, the climb goes on.
    fn recover(&mut self) {
        if self.size < self.ceiling * NEAR {
            self.resize((self.size * STEP_UP).min(self.ceiling * NEAR));
        } else if self.size < self.ceiling {
            self.resize(self.size * NEAR_GROWTH + 1.0);
        } else {
            self.ceiling = f64::INFINITY;
            self.phase = Phase::Rest { epochs: 0, rate: 0.0 };
        }
    }

    fn try_another(&mut self, rate: f64) {
        let base = self.size;
        if self.next_is_up && self.size < self.max {
            self.phase = Phase::Up { base, rate };
            self.resize(base * STEP_UP + 1.0);
        } else {
            self.phase = Phase::Down { base, rate };
            self.resize(base * STEP_DOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;
    use proptest::prelude::*;

    /// A target with `servers` places that each take `service_ns`; it rejects what comes while `room` are
    /// inside. Runs for this many seconds and gives back the mean window and rate of the second half.
    fn run(window: &mut Window, servers: u32, room: u32, seconds: u64) -> (f64, f64, u64) {
        let service_ns = 2 * MILLISECOND_NS;
        let end_ns = seconds * 1_000_000_000;
        let mut rng = Rng::new(5);
        // When each place is free again, and who comes back when: (time, sent, accepted).
        let mut free: std::collections::BinaryHeap<_> =
            (0..servers).map(|_| std::cmp::Reverse(0u64)).collect();
        let mut inside = 0;
        let mut under_way = std::collections::BinaryHeap::new();
        let (mut now_ns, mut done, mut away, mut sizes) = (1u64, 0u64, 0u64, Vec::new());
        while now_ns < end_ns {
            while (under_way.len() as u32) < window.size() {
                if inside >= room {
                    let back_ns = now_ns + 100_000 + rng.below(1000);
                    under_way.push((std::cmp::Reverse(back_ns), now_ns, false));
                    continue;
                }
                let std::cmp::Reverse(place_ns) = free.pop().unwrap();
                let place_ns = place_ns.max(now_ns) + service_ns / 2 + rng.below(service_ns);
                free.push(std::cmp::Reverse(place_ns));
                let back_ns = place_ns + 100_000;
                inside += 1;
                under_way.push((std::cmp::Reverse(back_ns), now_ns, true));
            }
            window.full();
            let (std::cmp::Reverse(back_ns), sent_ns, ok) = under_way.pop().unwrap();
            now_ns = now_ns.max(back_ns);
            inside -= u32::from(ok);
            if ok {
                window.accepted(sent_ns, now_ns);
            } else {
                window.turned_away(sent_ns, now_ns);
            }
            if now_ns > end_ns / 2 {
                done += u64::from(ok);
                away += u64::from(!ok);
                sizes.push(f64::from(window.size()));
            }
        }
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        (mean, done as f64 / (seconds as f64 / 2.0), away)
    }

    #[test]
    fn it_grows_to_what_the_target_can_use_and_not_far_beyond() {
        for servers in [1, 8, 64, 400] {
            let mut window = Window::adaptive(4096);
            let (mean, rate, _) = run(&mut window, servers, u32::MAX, 6);
            let best = f64::from(servers) * 500.0;
            assert!(rate > 0.9 * best, "{servers} servers: {rate} of {best}");
            let most = f64::from(servers) * 4.0 + 16.0;
            assert!(mean < most, "{servers} servers: a window of {mean}");
        }
    }

    #[test]
    fn it_shrinks_where_operations_are_turned_away() {
        let mut window = Window::adaptive(4096);
        let (mean, rate, away) = run(&mut window, 1000, 100, 6);
        assert!(mean < 115.0, "{mean}");
        assert!(rate > 0.75 * 50_000.0, "{rate}");
        assert!((away as f64) < 0.1 * rate * 3.0, "{away} of {rate} a second");
    }

    #[test]
    fn those_that_were_under_way_together_shrink_it_once() {
        let mut window = Window::adaptive(1000);
        window.size = 800.0;
        let shrunk = (0..800).filter(|sent| window.turned_away(*sent, 1000 + sent)).count();
        assert_eq!((shrunk, window.size()), (1, 560));
        assert!(window.turned_away(1001, 2000));
        assert_eq!((window.size(), window.shrinks()), (392, 2));
    }

    #[test]
    fn a_fixed_one_stays_and_an_unused_one_does_not_grow() {
        let mut window = Window::fixed(100);
        run(&mut window, 1, 50, 3);
        assert_eq!((window.size(), window.shrinks()), (100, 0));
        let mut window = Window::adaptive(1000);
        for ms in 1..5000 {
            window.accepted(ms * MILLISECOND_NS - 1000, ms * MILLISECOND_NS);
        }
        assert_eq!(window.size(), START);
    }

    proptest! {
        #[test]
        fn it_never_leaves_its_limits(
            max in 1u32..5000,
            steps in prop::collection::vec((0u8..10, 1u64..400), 1..600),
        ) {
            let mut window = Window::adaptive(max);
            let mut now_ns = 1;
            for (what, ms) in steps {
                now_ns += ms * MILLISECOND_NS / 4;
                window.full();
                match what {
                    0 => drop(window.turned_away(now_ns - 1, now_ns)),
                    _ => (0..40).for_each(|_| window.accepted(now_ns.saturating_sub(ms), now_ns)),
                }
                prop_assert!((1..=max).contains(&window.size()));
            }
        }
    }
}
