//! A machine whose speed drifts.

use plimsoll_core::rng::Rng;

/// Step of the drift, s.
const STEP_S: f64 = 0.1;
/// Deviation of ln(speed) from block to block, and the time in which it is forgotten, s.
const BETWEEN: f64 = 0.15;
const BETWEEN_S: f64 = 20.0;
/// Deviation of ln(speed) within a block, and its correlation from one step to the next.
const WITHIN: f64 = 0.05;
const WITHIN_CORRELATION: f64 = 0.5;

/// Factor on service times over time: the product of a slow and a fast lognormal AR(1) process in steps of 100 ms.
#[derive(Clone, Debug)]
pub struct Machine {
    rng: Rng,
    slow: f64,
    fast: f64,
    at: u64,
    factor: f64,
    steady: bool,
}

impl Machine {
    /// Begins in the stationary state.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (slow, fast) = (BETWEEN * normal(&mut rng), WITHIN * normal(&mut rng));
        Self { rng, slow, fast, at: 0, factor: (slow + fast).exp(), steady: false }
    }

    /// Returns a machine without drift.
    #[must_use]
    pub fn steady() -> Self {
        Self { rng: Rng::new(0), slow: 0.0, fast: 0.0, at: 0, factor: 1.0, steady: true }
    }

    /// Returns the factor on service times at this time, s, which does not go back.
    pub fn factor(&mut self, at_s: f64) -> f64 {
        let at = (at_s / STEP_S) as u64;
        if self.at < at && !self.steady {
            let keep = (-STEP_S / BETWEEN_S).exp();
            while self.at < at {
                self.at += 1;
                self.slow = step(self.slow, keep, BETWEEN, &mut self.rng);
                self.fast = step(self.fast, WITHIN_CORRELATION, WITHIN, &mut self.rng);
            }
            self.factor = (self.slow + self.fast).exp();
        }
        self.factor
    }
}

fn step(value: f64, keep: f64, deviation: f64, rng: &mut Rng) -> f64 {
    keep * value + deviation * (1.0 - keep * keep).sqrt() * normal(rng)
}

/// Box and Muller (1958), one of the pair.
fn normal(rng: &mut Rng) -> f64 {
    (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.uniform()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_varies_by_15_percent_between_blocks_and_5_percent_within() {
        let (mut machine, mut all, mut within) = (Machine::new(1), Vec::new(), 0.0);
        for block in 0..20_000 {
            let logs: Vec<f64> = (0..20)
                .map(|at| machine.factor(f64::from(block * 20 + at) * STEP_S).ln())
                .collect();
            let mean = logs.iter().sum::<f64>() / 20.0;
            within += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 19.0;
            all.push(mean);
        }
        let square =
            |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        assert!((0.14..0.16).contains(&square(&all).sqrt()));
        assert!((0.045..0.06).contains(&(within / 20_000.0).sqrt()));
        let steps: Vec<f64> = all.windows(2).map(|two| two[1] - two[0]).collect();
        // Neighbours 2 s apart share most of the drift: 15 % * sqrt(2 * (1 - exp(-0.1))).
        assert!((0.05..0.08).contains(&square(&steps).sqrt()), "{}", square(&steps).sqrt());
    }
}
