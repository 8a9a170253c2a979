//! The pilot of a comparison: one run of each side, from whose seconds the length of blocks and of their beginnings follows.
//!
//! * The beginning: the seconds before the first one whose mean is as those of the second half, by a prediction interval (Student's
//!   t) that one second in a thousand would leave by chance.
//! * The relaxation time tau, by batch means (Conway, "Some tactical problems in digital simulation", 1963) and their successive
//!   differences (von Neumann, "Distribution of the ratio of the mean square successive difference to the variance", 1941). The
//!   means of independent requests differ from second to second as the requests within a second do, divided by their number. If
//!   the target remembers its state for tau, they differ as those of a process whose correlation fades exponentially: the half
//!   square of a difference, divided by the variance within its two seconds, is in the mean a known function of tau. Both are
//!   local in time, so that drift of the machine over many seconds is no memory of the target. The mean is found from the median
//!   over all neighbours: seconds in which the machine was so slow that the target was overloaded are no memory of it either.

use crate::change_points::median;
use crate::relaxation::{Plan, plan};
use crate::student::quantile as student;

/// Share of the budget that each pilot gets.
const PILOT_SHARE: f64 = 1.0 / 30.0;
/// Least and most length of a pilot, s.
const PILOT_S: (f64, f64) = (4.0, 20.0);
/// Share of the highest rate that holds a limit, at which the pilot of a comparison of these rates runs.
pub const BELOW_LINE: f64 = 0.9;
/// Fewest seconds behind the beginning from which a relaxation time is estimated.
const SECONDS_LEAST: usize = 3;
/// Probability with which a second that is as the others counts as the beginning.
const BEGINNING: f64 = 0.001;
/// Longest share of a pilot that may be its beginning.
const BEGINNING_MOST: f64 = 0.5;
/// Median of the square of a standard normal variable, whose mean is 1.
const MEDIAN_OF_SQUARES: f64 = 0.454_936;
/// Longest relaxation time that seconds of a pilot can show, s.
const RELAXATION_MOST_S: f64 = 20.0;
/// Requests of a block beyond the highest named quantile, on average.
const BEYOND: f64 = 2.0;

/// The response times that ended in one second of a pilot, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// Number of them.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

/// Findings of the pilot of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Relaxation time, s; `None` if it cannot be estimated.
    pub relaxation_s: Option<f64>,
    /// Seconds that differ from the rest.
    pub beginning_s: f64,
}

/// Length of the pilot of each side, s.
#[must_use]
pub fn length_s(budget_s: f64) -> f64 {
    (budget_s * PILOT_SHARE).clamp(PILOT_S.0, PILOT_S.1).round()
}

/// Reads what the seconds of a pilot show. Seconds without requests are left out before.
#[must_use]
pub fn memory(seconds: &[Second]) -> Memory {
    let means: Vec<f64> = seconds.iter().map(|second| second.mean).collect();
    let first = beginning(&means);
    Memory { relaxation_s: relaxation_s(&seconds[first..]), beginning_s: first as f64 }
}

/// Plans the blocks of a comparison for a budget, s, from what the pilots of its sides show. `quantile` is the highest one that is
/// compared, and `per_s` the requests per second of the slower side, infinite if they are not known.
///
/// The beginning of a block that is left out is at least as long as that of the pilots.
#[must_use]
pub fn blocks(sides: &[Memory], budget_s: f64, quantile: f64, per_s: f64) -> Plan {
    let longest = |of: fn(&Memory) -> f64| sides.iter().map(of).fold(0.0, f64::max);
    let relaxation_s = longest(|side| side.relaxation_s.unwrap_or(0.0));
    let least_s = BEYOND / (1.0 - quantile) / per_s.max(1e-3);
    let own = plan(relaxation_s.max(1e-6), budget_s).at_least(least_s, budget_s);
    let discard_s = own.discard_s.max(longest(|side| side.beginning_s));
    Plan { block_s: own.block_s + (discard_s - own.discard_s), discard_s, ..own }
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

/// Returns how many seconds the beginning takes.
fn beginning(means: &[f64]) -> usize {
    let half = means.len() / 2;
    if half < SECONDS_LEAST {
        return 0;
    }
    let (mean, deviation) = moments(&means[half..]);
    let most = (means.len() as f64 * BEGINNING_MOST) as usize;
    let rest = (means.len() - half) as f64;
    let allowed =
        student(1.0 - BEGINNING / 2.0, rest - 1.0) * deviation * (1.0 + 1.0 / rest).sqrt();
    // A difference of a twentieth is none.
    let allowed = allowed.max(mean * 0.05);
    means.iter().take(most).take_while(|value| (**value - mean).abs() > allowed).count()
}

/// Relaxation time of seconds, s; `None` for too few of them.
fn relaxation_s(seconds: &[Second]) -> Option<f64> {
    if seconds.len() < SECONDS_LEAST {
        return None;
    }
    let all: f64 = seconds.iter().map(|second| second.count).sum();
    // Independent requests remember nothing for longer than half the gap between them.
    let least = 0.5 * seconds.len() as f64 / all;
    let shares: Vec<f64> = seconds
        .windows(2)
        .map(|two| {
            let squares: f64 = two.iter().map(|one| one.count * one.deviation.powi(2)).sum();
            let within = squares / (two[0].count + two[1].count);
            0.5 * (two[1].mean - two[0].mean).powi(2) / within
        })
        .filter(|share| share.is_finite())
        .collect();
    if shares.is_empty() {
        return Some(least);
    }
    let tau = forgotten_s(median(&shares) / MEDIAN_OF_SQUARES);
    Some(tau.max(least))
}

/// Relaxation time of a process whose correlation fades exponentially, s, from the half mean square of the differences between its
/// means over successive seconds, as a share of its variance within a second. At most 20 s.
///
/// With x for the relaxation time in seconds, means over a second have the variance f = 2 x (1 - x (1 - exp(-1/x))) and the
/// covariance g = x^2 (1 - exp(-1/x))^2 with those of the next second, as shares of the whole variance. The share is
/// (f - g) / (1 - f), which is 2 x for a short time.
fn forgotten_s(share: f64) -> f64 {
    let of = |x: f64| {
        let kept = 1.0 - (-1.0 / x).exp();
        let f = 2.0 * x * (1.0 - x * kept);
        (f - (x * kept).powi(2)) / (1.0 - f)
    };
    let (mut low, mut high) = (0.0, RELAXATION_MOST_S);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if of(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    /// Seconds of requests whose times follow an AR(1) process with this relaxation time, s.
    fn seconds_of(tau_s: f64, seconds: usize, per_s: usize) -> Vec<Second> {
        let mut rng = Rng::new(7);
        let keep = (-1.0 / (per_s as f64 * tau_s)).exp();
        let mut state = 0.0f64;
        (0..seconds)
            .map(|_| {
                let values: Vec<f64> = (0..per_s)
                    .map(|_| {
                        let noise = rng.exponential() - 1.0;
                        state = keep * state + (1.0 - keep * keep).sqrt() * noise;
                        10.0 + state
                    })
                    .collect();
                let (mean, deviation) = moments(&values);
                Second { count: per_s as f64, mean, deviation }
            })
            .collect()
    }

    #[test]
    fn a_relaxation_time_far_below_a_second_is_found_from_seconds() {
        for tau_s in [0.02, 0.1, 0.4, 1.0] {
            let found = relaxation_s(&seconds_of(tau_s, 400, 500)).unwrap();
            assert!((0.7..1.4).contains(&(found / tau_s)), "{tau_s}: {found}");
        }
        assert_eq!(relaxation_s(&seconds_of(0.1, 2, 500)), None);
    }

    #[test]
    fn drift_over_many_seconds_is_no_memory() {
        let mut seconds = seconds_of(0.02, 400, 500);
        for (at, second) in seconds.iter_mut().enumerate() {
            // As far up and down as the deviation of the requests, in 63 s.
            second.mean += (at as f64 / 10.0).sin();
        }
        let found = relaxation_s(&seconds).unwrap();
        assert!((0.7..1.4).contains(&(found / 0.02)), "{found}");
    }

    #[test]
    fn the_beginning_ends_where_the_seconds_are_like_the_rest() {
        assert_eq!(beginning(&[9.0, 5.0, 1.0, 1.01, 0.99, 1.0, 1.02, 1.0]), 2);
        assert_eq!(beginning(&[1.0, 1.01, 0.99, 1.0, 1.02, 1.0]), 0);
        assert_eq!(beginning(&[9.0, 1.0, 1.0]), 0);
    }

    #[test]
    fn a_pilot_is_a_thirtieth_of_the_budget_within_limits() {
        assert_eq!((length_s(180.0), length_s(20.0), length_s(3600.0)), (6.0, 4.0, 20.0));
    }

    #[test]
    fn blocks_are_as_long_as_the_slower_side_and_the_highest_quantile_need() {
        let side =
            |relaxation_s, beginning_s| Memory { relaxation_s: Some(relaxation_s), beginning_s };
        let both = [side(0.01, 0.0), side(0.2, 0.0)];
        assert_eq!(blocks(&both, 180.0, 0.99, 1e3), plan(0.2, 180.0));
        assert!((blocks(&both, 600.0, 0.99, 1e3).block_s - 2.4).abs() < 1e-9);
        // p99 at 20 requests/s: 200 requests, 10 s; a pair may take a tenth of the time.
        assert!((blocks(&both, 180.0, 0.99, 20.0).block_s - 9.0).abs() < 1e-9);
        // A beginning of 2 s is left out whole, and the rest of the block stays as long.
        let begun = blocks(&[side(0.01, 2.0), side(0.01, 0.0)], 180.0, 0.95, f64::INFINITY);
        assert_eq!(begun.discard_s, 2.0);
        assert!((begun.block_s - begun.discard_s - 0.97).abs() < 1e-9);
        let unknown = Memory::default();
        assert!(blocks(&[unknown, unknown], 180.0, 0.95, f64::INFINITY).enough);
    }
}
