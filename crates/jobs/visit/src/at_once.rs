//! Number of slices that ask at once, where that is found by measuring.
//!
//! The corpus is cut into the most slices that may be worth it, and few of them begin. More join as long as that brings
//! more; everything that is read to find that out is part of the visit, and nothing is read twice.

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};

/// Time for which each number of slices is measured, ns.
const STEP_NS: u64 = 750 * MILLISECOND_NS;
/// The longest that is waited for the first bytes of a step, ns.
const STEP_MAX_NS: u64 = 5 * SECOND_NS;
/// Time at the start of a step whose bytes belong to the step before, ns.
const SETTLING_NS: u64 = 100 * MILLISECOND_NS;
/// More slices at once must bring this much more.
const GAIN: f64 = 1.1;

/// One number of slices, and what it brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Slices that asked at once.
    pub slices: u32,
    /// Body bytes per second.
    pub bytes_per_s: f64,
}

/// Climbs until more slices bring nothing more.
#[derive(Debug)]
pub struct Climb {
    numbers: Vec<u32>,
    /// The number that is measured now.
    at: usize,
    measured: Vec<Step>,
    /// Time at which the step began, ns; 0 before the first look.
    began_ns: u64,
    /// Time at which its measuring began, with the bytes and the time lost to the output until then.
    from: Option<(u64, u64, u64)>,
    settled: bool,
}

impl Climb {
    /// Through these numbers, which grow.
    pub fn new(numbers: Vec<u32>) -> Self {
        Self { numbers, at: 0, measured: Vec::new(), began_ns: 0, from: None, settled: false }
    }

    /// Returns what was measured so far.
    pub fn measured(&self) -> &[Step] {
        &self.measured
    }

    /// Returns the number of slices that may ask at once, from the bytes received and the time lost to the output, ns.
    pub fn look(&mut self, now_ns: u64, bytes: u64, limited_ns: u64) -> u32 {
        if self.settled {
            return self.numbers[self.at];
        }
        if self.began_ns == 0 {
            self.began_ns = now_ns;
        }
        let Some((from_ns, from_bytes, from_limited_ns)) = self.from else {
            if now_ns >= self.began_ns + SETTLING_NS {
                self.from = Some((now_ns, bytes, limited_ns));
            }
            return self.numbers[self.at];
        };
        // Each thread has a time of its own, and that of the next one may be a little older.
        let passed_ns = now_ns.saturating_sub(from_ns);
        if passed_ns < STEP_NS || (bytes == from_bytes && passed_ns < STEP_MAX_NS) {
            return self.numbers[self.at];
        }
        let lost_ns = limited_ns.saturating_sub(from_limited_ns).min(passed_ns);
        let bytes_per_s = (bytes - from_bytes) as f64 / (passed_ns as f64 / 1e9);
        let before = self.measured.last().map_or(0.0, |step| step.bytes_per_s);
        self.measured.push(Step { slices: self.numbers[self.at], bytes_per_s });
        if bytes_per_s < GAIN * before {
            (self.at, self.settled) = (self.at - 1, true);
        } else if self.at + 1 == self.numbers.len() || 2 * lost_ns > passed_ns {
            // Where the output is the limit, more slices bring nothing whatever the target could do.
            self.settled = true;
        } else {
            self.at += 1;
            (self.began_ns, self.from) = (now_ns, None);
        }
        self.numbers[self.at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every millisecond at a target that sends this many bytes a second to this many slices.
    fn climb(rate: impl Fn(u32) -> f64, limited: bool) -> (u32, Vec<u32>) {
        let mut climb = Climb::new(vec![1, 4, 16, 32]);
        let (mut slices, mut bytes) = (1, 0.0);
        for ms in 1..8000u64 {
            let now_ns = ms * MILLISECOND_NS;
            bytes += rate(slices) / 1000.0;
            slices = climb.look(now_ns, bytes as u64, if limited { now_ns } else { 0 });
        }
        (slices, climb.measured().iter().map(|step| step.slices).collect())
    }

    #[test]
    fn it_takes_the_smallest_number_that_more_do_not_better() {
        assert_eq!(climb(|slices| 1e6 * f64::from(slices), false), (32, vec![1, 4, 16, 32]));
        assert_eq!(climb(|slices| 1e6 * f64::from(slices.min(4)), false), (4, vec![1, 4, 16]));
        assert_eq!(climb(|_| 1e6, false), (1, vec![1, 4]));
        assert_eq!(climb(|slices| 1e6 * f64::from(slices), true), (1, vec![1]));
    }

    #[test]
    fn a_thread_whose_time_is_older_measures_nothing() {
        let mut climb = Climb::new(vec![1, 4]);
        climb.look(MILLISECOND_NS, 0, 0);
        climb.look(MILLISECOND_NS + SETTLING_NS, 10, 0);
        assert_eq!(climb.look(SETTLING_NS, 20, 0), 1);
        assert!(climb.measured().is_empty());
    }

    #[test]
    fn a_target_that_says_nothing_for_long_is_not_judged() {
        let mut climb = Climb::new(vec![1, 4]);
        for ms in 1..4000 {
            assert_eq!(climb.look(ms * MILLISECOND_NS, 0, 0), 1);
        }
        assert!(climb.measured().is_empty());
    }
}
