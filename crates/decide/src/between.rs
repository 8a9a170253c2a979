//! Two single runs that were not interleaved, judged by the variance between runs that is known from like runs.
//!
//! A ratio of two runs has the spread of two runs, not that of requests. With `s` the standard deviation of the logarithms of
//! like runs, pooled over their groups with `f` degrees of freedom together, the logarithm of the ratio has the interval
//! `ln(B/A) +- t(f) s sqrt(2)`. One of the two runs may be among the like runs: it is then no further from their mean than `s`
//! tells, and the interval is a little too wide.

use crate::rule::Better;
use crate::student;

/// Fewest like runs of a group.
pub const LIKE_RUNS_LEAST: usize = 3;
/// Smallest standard deviation of a logarithm: percentiles have three digits.
const SD_LEAST: f64 = 0.001;

/// The variance between like runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// Standard deviation of the logarithm of a run.
    pub sd: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Between {
    /// Returns the pooled variance of groups of like runs, by the logarithms of their figures. Groups of fewer than
    /// [`LIKE_RUNS_LEAST`] runs are left out; `None` if none is left.
    #[must_use]
    pub fn of(groups: &[Vec<f64>]) -> Option<Self> {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for group in groups.iter().filter(|group| group.len() >= LIKE_RUNS_LEAST) {
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            squares += group.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            freedom += group.len() as f64 - 1.0;
        }
        (freedom > 0.0).then(|| Self { sd: (squares / freedom).sqrt().max(SD_LEAST), freedom })
    }

    /// Returns the interval of the ratio B/A that is missed in a share `error` of comparisons, above 0 and below 1. `more` is
    /// variance of the logarithm beside that between runs, such as that of a count.
    #[must_use]
    pub fn interval(&self, log_ratio: f64, error: f64, more: f64) -> (f64, f64) {
        let sd = (2.0 * self.sd * self.sd + more).sqrt();
        let half = student::quantile(1.0 - error / 2.0, self.freedom) * sd;
        ((log_ratio - half).exp(), (log_ratio + half).exp())
    }
}

/// An answer about B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// B is better by more than nothing, and may be better by more than the margin.
    Better,
    /// The opposite.
    Worse,
    /// The whole interval is within the margin.
    Same,
    /// The interval holds both sides, and more than the margin.
    CannotTell,
}

impl Answer {
    /// Returns the answer of an interval of the ratio B/A. `margin` is relative: 0.05 is 5 %, up or down.
    #[must_use]
    pub fn of((low, high): (f64, f64), better: Better, margin: f64) -> Self {
        let (rises, falls) = match better {
            Better::Higher => (Self::Better, Self::Worse),
            Better::Lower => (Self::Worse, Self::Better),
        };
        if low >= 1.0 - margin && high <= 1.0 + margin {
            Self::Same
        } else if low > 1.0 {
            rises
        } else if high < 1.0 {
            falls
        } else {
            Self::CannotTell
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    #[test]
    fn the_pooled_deviation_is_that_of_the_groups() {
        // Deviations -1, 0, 1 and -2, 0, 2 around two means: (2 + 8) / 4.
        let two = Between::of(&[vec![4.0, 5.0, 6.0], vec![0.0, 2.0, 4.0]]).unwrap();
        assert_eq!((two.sd, two.freedom), (2.5f64.sqrt(), 4.0));
        assert_eq!(Between::of(&[vec![1.0, 2.0], vec![]]), None);
        assert_eq!(Between::of(&[vec![1.0; 5]]).unwrap().sd, SD_LEAST);
    }

    #[test]
    fn the_interval_of_two_runs_is_as_wide_as_students_t_says() {
        let between = Between { sd: 0.02, freedom: 2.0 };
        let (low, high) = between.interval(0.0, 0.05, 0.0);
        let half = 4.302_65 * 0.02 * 2f64.sqrt();
        assert!((high.ln() / half - 1.0).abs() < 1e-5 && (low.ln() / -half - 1.0).abs() < 1e-5);
        assert!(between.interval(0.0, 0.05, 1.0).1 > high);
    }

    /// Share of comparisons of two runs of the same target whose interval misses 1. The first run is among the like runs.
    fn missed(like_runs: usize) -> f64 {
        const SESSIONS: usize = 20_000;
        let mut rng = Rng::new(7);
        let mut normal = || (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        let mut missed = 0;
        for _ in 0..SESSIONS {
            let like: Vec<f64> = (0..like_runs).map(|_| 0.03 * normal()).collect();
            let other = 0.03 * normal();
            let between = Between::of(std::slice::from_ref(&like)).unwrap();
            let (low, high) = between.interval(other - like[0], 0.05, 0.0);
            missed += usize::from(low > 1.0 || high < 1.0);
        }
        missed as f64 / SESSIONS as f64
    }

    #[test]
    fn two_runs_of_the_same_target_differ_in_at_most_five_percent_of_comparisons() {
        for like_runs in [3, 4, 6, 10, 30] {
            let missed = missed(like_runs);
            assert!((0.02..=0.053).contains(&missed), "{like_runs}: {missed}");
        }
    }

    #[test]
    fn answers_follow_the_direction_and_the_margin() {
        for (interval, higher, lower) in [
            ((1.02, 1.20), Answer::Better, Answer::Worse),
            ((0.80, 0.97), Answer::Worse, Answer::Better),
            ((0.97, 1.04), Answer::Same, Answer::Same),
            ((1.01, 1.04), Answer::Same, Answer::Same),
            ((0.97, 1.06), Answer::CannotTell, Answer::CannotTell),
        ] {
            assert_eq!(Answer::of(interval, Better::Higher, 0.05), higher);
            assert_eq!(Answer::of(interval, Better::Lower, 0.05), lower);
        }
    }
}
