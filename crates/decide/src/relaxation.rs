//! The relaxation time of a server, and the length of blocks that follows from it.
//!
//! A block begins with an idle server. Its beginning is discarded until the server has forgotten that, and the rest must be
//! much longer than the memory, or a block is one observation of a queue and not an average over many. For an M/M/1 queue the
//! memory grows with 1/(1-rho)^2. A comparison measures it in its [pilot](crate::pilot).
//!
//! The memory of a long series, such as the seconds of a soak, is its integrated autocorrelation time (Sokal, "Monte Carlo methods
//! in statistical mechanics", 1997), cut off by Geyer's initial positive sequence ("Practical Markov chain Monte Carlo", 1992).

/// Length of a block, in relaxation times.
const BLOCK: f64 = 12.0;
/// Length of the discarded beginning, in relaxation times: a twentieth of the difference from the long run is left, and less in
/// the mean of the block.
const DISCARD: f64 = 3.0;
/// Shortest block, s: a second holds enough requests for a p99 at 1,000 requests/s.
const BLOCK_LEAST_S: f64 = 1.0;
/// Fewest pairs that a plan is made for: fewer can claim little, whatever the blocks are.
const PAIRS_LEAST: f64 = 10.0;
/// Pairs for which a long memory leaves room: drift of the machine comes between long blocks, and few of them find little.
const PAIRS_WANTED: f64 = 80.0;

/// Returns the integrated autocorrelation time, in samples, at least 1/2.
pub(crate) fn memory(values: &[f64]) -> f64 {
    let covariance = |lag: usize| -> f64 {
        values.iter().zip(values.iter().skip(lag)).map(|(one, other)| one * other).sum()
    };
    let variance = covariance(0);
    if values.len() < 8 || variance <= 0.0 {
        return 0.5;
    }
    let mut sum = 0.0;
    for lag in (0..values.len() / 2).step_by(2) {
        let two = (covariance(lag) + covariance(lag + 1)) / variance;
        if two <= 0.0 {
            break;
        }
        sum += two;
    }
    (sum - 0.5).max(0.5)
}

/// Returns the values less their regression line; 0 in the place of one that is not finite.
pub(crate) fn without_trend(slices: &[f64]) -> Vec<f64> {
    let known = || slices.iter().enumerate().filter(|(_, value)| value.is_finite());
    let count = known().count() as f64;
    let mean = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        known().map(|(at, value)| of(at as f64, *value)).sum::<f64>() / count
    };
    let (middle, level) = (mean(&|at, _| at), mean(&|_, value| value));
    let spread = mean(&|at, _| (at - middle).powi(2));
    let slope = mean(&|at, value| (at - middle) * (value - level)) / spread;
    let slope = if slope.is_finite() { slope } else { 0.0 };
    let rest = |(at, value): (usize, &f64)| value - level - slope * (at as f64 - middle);
    slices.iter().enumerate().map(rest).map(|v| if v.is_finite() { v } else { 0.0 }).collect()
}

/// Blocks of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Length of a block with its discarded beginning, s.
    pub block_s: f64,
    /// Length of the discarded beginning, s.
    pub discard_s: f64,
    /// False if the budget has no room for enough pairs of blocks of 12 relaxation times: blocks are shorter than they should be.
    pub enough: bool,
}

impl Plan {
    /// Returns the number of pairs that fit into a budget, s.
    #[must_use]
    pub fn pairs_most(&self, budget_s: f64) -> usize {
        // Half a microsecond is rounding.
        (budget_s / (2.0 * self.block_s) + 5e-7).floor().max(0.0) as usize
    }

    /// Returns the plan with blocks of at least `least_s` seconds after the discarded beginning, such as the time in which a
    /// quantile has enough requests; the budget is in seconds and limits them to a tenth of the pairs' share.
    #[must_use]
    pub fn at_least(mut self, least_s: f64, budget_s: f64) -> Self {
        let wanted = self.discard_s + least_s;
        if wanted > self.block_s {
            let most = budget_s / (2.0 * PAIRS_LEAST);
            self.enough &= wanted <= most;
            self.block_s = wanted.min(most).max(self.block_s);
        }
        self
    }
}

/// Plans blocks for a server with this relaxation time and a budget for all pairs, both in seconds and above 0.
///
/// Short blocks are good against drift of the machine, which is then alike in both blocks of a pair; long ones are needed for the
/// server. The block is 12 relaxation times and at least 1 s. It leaves room for 80 pairs if it is longer than 1 s, and
/// otherwise for 10; three relaxation times are discarded, at most a third of the block.
#[must_use]
pub fn plan(relaxation_s: f64, budget_s: f64) -> Plan {
    let wanted = (BLOCK * relaxation_s).max(BLOCK_LEAST_S);
    let most = budget_s / (2.0 * PAIRS_LEAST);
    let block_s = wanted.min((budget_s / (2.0 * PAIRS_WANTED)).max(BLOCK_LEAST_S.min(most)));
    Plan {
        block_s,
        discard_s: (DISCARD * relaxation_s).min(block_s / 3.0),
        enough: wanted <= block_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    /// An AR(1) series: its memory in slices is (1/2 + c/(1-c)).
    fn series(coefficient: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut value = 0.0;
        (0..count)
            .map(|_| {
                value = coefficient * value + rng.exponential() - 1.0;
                value
            })
            .collect()
    }

    #[test]
    fn the_memory_of_known_series_is_found() {
        for coefficient in [0.0, 0.5, 0.8, 0.95f64] {
            let truth = 0.5 + coefficient / (1.0 - coefficient);
            let of = |seed| memory(&without_trend(&series(coefficient, 2_000, seed)));
            let mean = (0..40).map(of).sum::<f64>() / 40.0;
            // A long memory is underestimated: the series has lost its own mean and trend.
            assert!((0.7..1.3).contains(&(mean / truth)), "{coefficient}: {mean} for {truth}");
        }
    }

    #[test]
    fn a_trend_is_no_memory() {
        let mut slices = series(0.0, 400, 1);
        slices.iter_mut().enumerate().for_each(|(at, value)| *value += 0.05 * at as f64);
        assert!(memory(&without_trend(&slices)) < 1.0);
    }

    #[test]
    fn slices_without_a_value_and_too_few_slices_are_no_memory() {
        let mut slices = series(0.0, 200, 2);
        slices[17] = f64::NAN;
        assert!(memory(&without_trend(&slices)) < 1.0);
        for few in [&[] as &[f64], &[1.0; 5], &[1.0; 100], &[f64::NAN; 100]] {
            assert_eq!(memory(&without_trend(few)), 0.5);
        }
    }

    #[test]
    fn blocks_follow_the_relaxation_within_the_budget() {
        assert_eq!(plan(0.01, 180.0), Plan { block_s: 1.0, discard_s: 0.03, enough: true });
        let slow = plan(0.2, 480.0);
        assert!((slow.block_s - 2.4).abs() < 1e-9 && (slow.discard_s - 0.6).abs() < 1e-9);
        assert!(slow.enough);
        assert_eq!(slow.pairs_most(480.0), 100);
        // A long memory leaves room for 80 pairs, and a short budget for 10.
        let slower = plan(5.0, 480.0);
        assert_eq!((slower.block_s, slower.discard_s, slower.enough), (3.0, 1.0, false));
        assert_eq!(slower.pairs_most(480.0), 80);
        assert_eq!((plan(5.0, 40.0).block_s, plan(5.0, 10.0).block_s), (1.0, 0.5));
        // p99 at 20 requests/s.
        assert_eq!(plan(0.01, 180.0).at_least(5.0, 180.0).block_s, 5.03);
        assert!(!plan(0.01, 180.0).at_least(50.0, 180.0).enough);
        assert_eq!(plan(0.2, 480.0).at_least(1.0, 480.0), plan(0.2, 480.0));
    }
}
