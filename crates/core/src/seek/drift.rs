//! Movement of the line while it is measured: one estimate from the blocks and the looks at the capacity together.
//!
//! A target that leaks or warms slowly changes by less from one look to the next than a look can tell. All looks and all
//! blocks over time tell more: the line's logarithm moves with the capacity's, and late requests beyond what their rate
//! explains are a line that is lower than the fit's.

use super::fit::Fit;
use super::search::{Search, Stretch};
use crate::normal;

/// The line may move by this many standard errors more than it seems to.
const FURTHER: f64 = 1.5;
/// Looks at the capacity of which one is independent of the others.
const LOOKS_A_STATE: f64 = 3.0;
/// Standard deviations by which the line of the blocks must be above that of the looks at the capacity to contradict it, the
/// error of the theory that leads from a capacity to a line, as a share, and the freedom of one look's unevenness.
const APART: f64 = 2.0;
const THEORY: f64 = 0.03;
const LOOK_FREEDOM: f64 = 7.0;

/// Speed of the line's logarithm, per second, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drift {
    pub per_s: f64,
    pub error: f64,
    /// From the middle of the blocks to their end, s.
    pub until_end_s: f64,
}

/// Points (when, s, value, weight) as a slope over time with its weight.
fn slope(points: &[(f64, f64, f64)]) -> (f64, f64, f64) {
    let all: f64 = points.iter().map(|p| p.2).sum();
    let middle = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
        points.iter().map(|p| p.2 * of(p)).sum::<f64>() / all.max(1e-300)
    };
    let (when, mean) = (middle(&|p| p.0), middle(&|p| p.1));
    let (mut cross, mut square) = (0.0, 0.0);
    for (at_s, value, weight) in points {
        cross += weight * (at_s - when) * (value - mean);
        square += weight * (at_s - when).powi(2);
    }
    (cross / square.max(1e-300), square, when)
}

impl Search<'_> {
    /// Returns the movement of the line, from blocks and looks; `None` if there are too few.
    pub(super) fn drift(&self) -> Option<Drift> {
        let (fit, limit) = self.fit?;
        let bound = &self.goal.limits[limit];
        let prior = self.prior(limit, fit.estimate_per_s);
        let point = |block: &Stretch| {
            let (n, late, allowed) = bound.as_share(limit, &block.counts);
            let p =
                prior.late_share((block.rate_per_s / fit.estimate_per_s).ln(), fit.slope, allowed);
            let spread = n * p.clamp(0.2 * allowed, 1.0 - 0.2 * allowed) * (1.0 - p);
            // The line's logarithm below the fit's.
            let moved = (n * p - late) / (spread * fit.slope);
            (block.at_s, moved, spread * fit.slope.powi(2) / fit.dispersion)
        };
        let blocks: Vec<_> = self.blocks.iter().map(point).collect();
        let weighted = |(at_s, log, error): (f64, f64, f64)| (at_s, log, error.powi(-2));
        let looks: Vec<_> = self.logs_of_looks().into_iter().map(weighted).collect();
        let (by_blocks, weight, middle_s) = slope(&blocks);
        let (by_looks, more, _) = if looks.len() < 3 { (0.0, 0.0, 0.0) } else { slope(&looks) };
        if blocks.len() < 6 || weight <= 0.0 {
            return None;
        }
        Some(Drift {
            per_s: (weight * by_blocks + more * by_looks) / (weight + more),
            error: (weight + more).powf(-0.5),
            until_end_s: self.elapsed_s - middle_s,
        })
    }

    /// The interval, which reaches to where the line is at the end if it seems to move, and is wider where the capacity was
    /// more uneven than its own errors explain.
    pub(super) fn with_drift(&self, fit: &Fit) -> (f64, f64) {
        let (low, high) = (self.lower_end(fit), fit.interval_per_s.1);
        let (mut below, mut above) = (low / fit.estimate_per_s, high / fit.estimate_per_s);
        let deviations = normal::quantile(0.5 + self.goal.confidence / 2.0);
        let wobble = deviations * self.unevenness();
        let wider = |ratio: f64| ratio.ln().hypot(wobble).copysign(ratio.ln()).exp();
        (below, above) = (wider(below), wider(above));
        let (mut low, mut high) = (below * fit.estimate_per_s, above * fit.estimate_per_s);
        if let Some(drift) = self.drift() {
            let further = FURTHER * drift.error * drift.per_s.signum();
            let end = fit.estimate_per_s * ((drift.per_s + further) * drift.until_end_s).exp();
            low = low.min(end * below.sqrt());
            high = high.max(end * above.sqrt());
        }
        if let Some(bound) = self.bound().filter(|_| !self.broke_near(fit)) {
            high = high.max(bound.per_s * (1.0 + bound.error));
        }
        (low, high)
    }

    /// The interval's lower end. Blocks that put the line far above what the looks at the capacity let expect were offered to a
    /// target that was faster than in those looks, or that theory does not know: the line may be where the looks have it.
    pub(super) fn lower_end(&self, fit: &Fit) -> f64 {
        let low = fit.interval_per_s.0;
        let Some((expected, error)) = self.line_by_looks().filter(|_| !self.non_monotone) else {
            return low;
        };
        let deviations = normal::quantile(0.5 + self.goal.confidence / 2.0);
        let own = (fit.estimate_per_s / low.max(1e-9)).ln() / deviations;
        let apart = (fit.estimate_per_s / expected).ln() / error.hypot(own).hypot(THEORY);
        if apart > APART { low.min(expected) } else { low }
    }

    /// The line that all looks at the capacity let expect, requests per second, and its standard error as a share.
    fn line_by_looks(&self) -> Option<(f64, f64)> {
        let looks = self.logs_of_looks();
        let all: f64 = looks.iter().map(|l| l.2.powi(-2)).sum();
        let log = looks.iter().map(|l| l.2.powi(-2) * l.1).sum::<f64>() / all;
        let line = self.line_of_capacity(log.exp(), 1.0);
        // The line is the capacity less a rate that rises with the unevenness of the completions.
        let idle = log.exp() / line - 1.0;
        let index = self.unevenness_of_completions();
        let freedom = LOOK_FREEDOM * looks.len() as f64;
        let uneven = if index > 1.0 { (2.0 / freedom).sqrt() * index / (1.0 + index) } else { 0.0 };
        let error = ((1.0 + idle) * all.powf(-0.5)).hypot(idle * uneven);
        (!looks.is_empty()).then_some((line, error))
    }

    /// Half-width of the interval as it would be reported.
    pub(super) fn half_width_told(&self, fit: &Fit) -> f64 {
        Fit { interval_per_s: self.with_drift(fit), ..*fit }.half_width()
    }

    /// Standard error of the line's logarithm that comes from a capacity that goes up and down.
    fn unevenness(&self) -> f64 {
        let looks = self.logs_of_looks();
        let n = looks.len() as f64;
        if n < 2.0 {
            return 0.0;
        }
        let weight = |error: f64| error.powi(-2);
        let all: f64 = looks.iter().map(|l| weight(l.2)).sum();
        let mean = looks.iter().map(|l| weight(l.2) * l.1).sum::<f64>() / all;
        let square =
            looks.iter().map(|l| weight(l.2) * (l.1 - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let own = n / all;
        ((square - 1.0).max(0.0) * own / (n / LOOKS_A_STATE)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::completed::Capacity;
    use crate::seek::made::{Made, goal};

    /// Lower end of an interval of 10 % to either side around a line, where the looks at the capacity say 120/s and requests
    /// without load take 33 ms of the 100 ms allowed.
    fn lower_end(line: f64, index: f64) -> f64 {
        let (goal, mut observe) = (goal(300.0), |_: &_| ());
        let mut plant = Made::new(|_| (160.0, 200.0));
        let mut search = Search::new(&mut plant, &goal, &mut observe);
        let look = Capacity { index, ..Capacity::of(120.0, 0.05) };
        search.capacity = Some(look);
        search.looks = vec![(40.0, look), (120.0, look), (200.0, look)];
        search.floor_s = 0.033;
        let interval_per_s = (0.9 * line, 1.1 * line);
        search.lower_end(&Fit {
            estimate_per_s: line,
            interval_per_s,
            slope: 12.0,
            dispersion: 50.0,
        })
    }

    #[test]
    fn blocks_that_the_capacity_contradicts_widen_the_interval_downwards() {
        // By theory such a target holds the limit up to 75/s: 120 less a room of 3 / 0.067 s.
        assert!((lower_end(80.0, 1.0) - 72.0).abs() < 1e-9, "as theory has it");
        assert!(
            (70.0..80.0).contains(&lower_end(108.0, 1.0)),
            "far above: {}",
            lower_end(108.0, 1.0)
        );
        assert!((lower_end(40.0, 1.0) - 36.0).abs() < 1e-9, "far below is another matter");
        // Even services leave less room: 108/s are no wonder.
        assert!((lower_end(108.0, 0.1) - 97.2).abs() < 1e-9);
    }
}
