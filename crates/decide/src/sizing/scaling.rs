//! The rate that any number of nodes holds, from measured points.

use super::fit::{Fit, fit};
use super::models::{Kind, QueueLimit};
use super::{LEVEL, POINTS_MIN, Point, Prediction, RANGE_MIN, REACH_MAX, RelativeError};
use crate::student;

/// Source of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// This number of nodes was measured.
    Measured,
    /// It lies between two that were measured.
    Interpolated,
    /// Models were fitted.
    Extrapolated {
        /// The model with the lowest prediction among those that are not ruled out.
        worst: Kind,
        /// Highest of their predictions over the lowest one, less 1.
        disagreement: f64,
    },
}

/// The rate that a number of nodes holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Number of nodes.
    pub n: f64,
    /// The rate; of rival models, that of the worst one.
    pub rate: Prediction,
    /// Source of the rate.
    pub source: Source,
}

/// Reason why no rate is predicted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Declined {
    /// There are too few points.
    #[error(
        "{} measured; a prediction of others needs {POINTS_MIN}, the largest at least {RANGE_MIN} times the smallest",
        said(*points, unit)
    )]
    Few {
        /// Numbers of nodes that were measured.
        points: usize,
        /// Word for nodes.
        unit: &'static str,
    },
    /// They span too little.
    #[error(
        "{low} to {high} {unit} were measured; a prediction of others needs a largest number of at least {RANGE_MIN} times the smallest"
    )]
    Narrow {
        /// Smallest number of nodes that was measured.
        low: f64,
        /// Largest one.
        high: f64,
        /// Word for nodes.
        unit: &'static str,
    },
    /// The number of nodes is too far beyond them.
    #[error(
        "at most {most} {unit} can be predicted, {REACH_MAX} times the largest number measured"
    )]
    Far {
        /// Largest number of nodes that can be predicted.
        most: f64,
        /// Word for nodes.
        unit: &'static str,
    },
    /// The number of nodes is below the smallest measured one.
    #[error("fewer than {low} {unit} were not measured")]
    Below {
        /// Smallest number of nodes that was measured.
        low: f64,
        /// Word for nodes.
        unit: &'static str,
    },
}

fn said(points: usize, unit: &str) -> String {
    if points == 1 {
        format!("1 number of {unit} was")
    } else {
        format!("{points} numbers of {unit} were")
    }
}

/// Measured points, ready to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    points: Vec<Point>,
    /// Error of points that have none of their own.
    typical: RelativeError,
    queue: Option<QueueLimit>,
    unit: &'static str,
}

impl Scaling {
    /// Makes it from points; several of the same number of nodes become one, and their spread its error if that is larger.
    /// `unit` is the word for nodes in messages.
    #[must_use]
    pub fn of(points: &[Point], queue: Option<QueueLimit>, unit: &'static str) -> Self {
        let mut sorted = points.to_vec();
        sorted.sort_by(|a, b| a.n.total_cmp(&b.n));
        let same = sorted.chunk_by(|a, b| a.n == b.n);
        let points: Vec<Point> = same.map(pooled).collect();
        let own = Self { typical: typical(&points), points, queue, unit };
        if own.points.iter().any(|point| point.error.is_some()) {
            return own;
        }
        // The residuals of the best model show how much unknown errors are.
        let residual =
            own.fit(&[]).map(|fit| RelativeError { share: fit.error, freedom: fit.freedom });
        Self { typical: residual.unwrap_or(own.typical), ..own }
    }

    /// The points, fewest nodes first.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the largest number of nodes about which a question can be answered; 0 without a point.
    #[must_use]
    pub fn most(&self) -> f64 {
        let high = self.points.last().map_or(0.0, |point| point.n);
        if self.declines().is_none() { REACH_MAX * high } else { high }
    }

    /// The reason that a number of nodes is too far beyond the measured ones.
    pub(super) fn far(&self) -> Declined {
        Declined::Far {
            most: REACH_MAX * self.points.last().map_or(0.0, |point| point.n),
            unit: self.unit,
        }
    }

    /// Returns why nothing beyond the measured range is predicted; nothing if it is.
    #[must_use]
    pub fn declines(&self) -> Option<Declined> {
        let unit = self.unit;
        let low = self.points.first().map_or(0.0, |point| point.n);
        let high = self.points.last().map_or(0.0, |point| point.n);
        if self.points.len() < POINTS_MIN {
            Some(Declined::Few { points: self.points.len(), unit })
        } else if high < RANGE_MIN * low {
            Some(Declined::Narrow { low, high, unit })
        } else {
            None
        }
    }

    /// Fits the rival models and predicts these numbers of nodes.
    ///
    /// # Errors
    /// If the points are too few or span too little.
    pub fn fit(&self, asked: &[f64]) -> Result<Fit, Declined> {
        self.declines().map_or_else(|| Ok(fit(&self.points, asked, self.queue.as_ref())), Err)
    }

    /// Returns the rate that `n` nodes hold.
    ///
    /// # Errors
    /// If `n` lies outside of the measured range, and the points are too few, span too little, or end too far from it.
    pub fn held(&self, n: f64) -> Result<Held, Declined> {
        let all = self.all(&[n])?;
        all.into_iter().next().ok_or(Declined::Few { points: 0, unit: self.unit })
    }

    /// Returns the rates that these numbers of nodes hold.
    ///
    /// # Errors
    /// As [`Scaling::held`], for the first number that has none.
    pub fn all(&self, ns: &[f64]) -> Result<Vec<Held>, Declined> {
        let unit = self.unit;
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return Err(Declined::Few { points: 0, unit });
        };
        if ns.iter().any(|n| *n < first.n) {
            return Err(Declined::Below { low: first.n, unit });
        }
        // Too few points do not show how the rate runs between them either.
        let is_measured = |n: &f64| self.points.iter().any(|point| point.n == *n);
        if let (Some(reason), false) = (self.declines(), ns.iter().all(is_measured)) {
            return Err(reason);
        }
        let beyond: Vec<f64> = ns.iter().copied().filter(|n| *n > last.n).collect();
        let fitted = if beyond.is_empty() { None } else { Some(self.fit(&beyond)?) };
        if beyond.iter().any(|n| *n > REACH_MAX * last.n) {
            return Err(self.far());
        }
        let one = |n: &f64| match (&fitted, beyond.iter().position(|one| one == n)) {
            (Some(fitted), Some(at)) => extrapolated(fitted, *n, at),
            _ => self.interpolated(*n),
        };
        Ok(ns.iter().map(one).collect())
    }

    /// The rate at a number of nodes inside the measured range.
    fn interpolated(&self, n: f64) -> Held {
        let points = &self.points;
        let above = points.partition_point(|point| point.n < n).min(points.len() - 1);
        let right = &points[above];
        let error = |point: &Point| point.error.unwrap_or(self.typical);
        if right.n == n || above == 0 {
            // A new measurement differs by its own error, too.
            let RelativeError { share, freedom } = error(right);
            let half = wide(share * std::f64::consts::SQRT_2, freedom);
            let rate = around(right.per_s, right.per_s, half);
            return Held { n, rate, source: Source::Measured };
        }
        let left = &points[above - 1];
        let share = (n - left.n) / (right.n - left.n);
        let chord = left.per_s + share * (right.per_s - left.per_s);
        let curve = self.cubic(above, share);
        let (a, b) = (error(left), error(right));
        let own = ((1.0 - share) * a.share).hypot(share * b.share);
        let half = wide(own.hypot(0.5 * (a.share + b.share)), a.freedom + b.freedom);
        let (low, high) = (chord.min(curve), chord.max(curve));
        let mut rate = around(low, high, half);
        rate.per_s = low;
        Held { n, rate, source: Source::Interpolated }
    }

    /// The monotone cubic of Fritsch and Carlson (SIAM J. Numer. Anal. 17 (1980) 238), with Brodlie's slopes, in the segment
    /// that ends at `above`.
    fn cubic(&self, above: usize, share: f64) -> f64 {
        let points = &self.points;
        let step = |right: usize| points[right].n - points[right - 1].n;
        let secant = |right: usize| (points[right].per_s - points[right - 1].per_s) / step(right);
        let slope = |at: usize| {
            if at == 0 {
                return secant(1);
            }
            if at + 1 == points.len() {
                return secant(at);
            }
            let (before, after) = (secant(at), secant(at + 1));
            if before * after <= 0.0 {
                return 0.0;
            }
            let a = (step(at) + 2.0 * step(at + 1)) / (3.0 * (step(at) + step(at + 1)));
            before * after / (a * after + (1.0 - a) * before)
        };
        let (left, right, length) = (&points[above - 1], &points[above], step(above));
        let (s, t) = (share, 1.0 - share);
        left.per_s * t * t * (1.0 + 2.0 * s)
            + right.per_s * s * s * (1.0 + 2.0 * t)
            + length * s * t * (t * slope(above - 1) - s * slope(above))
    }
}

/// Error of points that have none of their own: the mean of the others, or 5 % with two degrees of freedom if there are none.
fn typical(points: &[Point]) -> RelativeError {
    let known: Vec<RelativeError> = points.iter().filter_map(|point| point.error).collect();
    if known.is_empty() {
        return RelativeError { share: 0.05, freedom: 2.0 };
    }
    let count = known.len() as f64;
    RelativeError {
        share: (known.iter().map(|one| one.share * one.share).sum::<f64>() / count).sqrt(),
        freedom: known.iter().map(|one| one.freedom).sum::<f64>() / count,
    }
}

/// Half-width of an interval in logarithms.
fn wide(error: f64, freedom: f64) -> f64 {
    student::quantile(0.5 + 0.5 * LEVEL, freedom.clamp(1.0, 1e6)) * error
}

fn around(low: f64, high: f64, half: f64) -> Prediction {
    Prediction { per_s: low, low_per_s: low * (-half).exp(), high_per_s: high * half.exp() }
}

/// One point of several with the same number of nodes.
fn pooled(same: &[Point]) -> Point {
    let count = same.len() as f64;
    if same.len() == 1 {
        return same[0];
    }
    let mean = same.iter().map(|point| point.per_s.ln()).sum::<f64>() / count;
    let spread = same.iter().map(|point| (point.per_s.ln() - mean).powi(2)).sum::<f64>();
    let between = (spread / (count - 1.0) / count).sqrt();
    let own = same.iter().filter_map(|point| point.error).map(|error| error.share * error.share);
    let within = own.sum::<f64>().sqrt() / count;
    let freedom = if between >= within { count - 1.0 } else { f64::INFINITY };
    let known: f64 = same.iter().filter_map(|point| point.error).map(|error| error.freedom).sum();
    let error = RelativeError {
        share: between.max(within),
        freedom: if freedom.is_finite() { freedom } else { known },
    };
    Point { n: same[0].n, per_s: mean.exp(), error: Some(error).filter(|error| error.share > 0.0) }
}

fn extrapolated(fitted: &Fit, n: f64, at: usize) -> Held {
    let likely = || fitted.models.iter().filter(|model| !model.ruled_out);
    let of = |model: &super::fit::Fitted| model.predictions[at];
    let mut rate = Prediction { per_s: f64::INFINITY, low_per_s: f64::INFINITY, high_per_s: 0.0 };
    let (mut worst, mut best_per_s) = (Kind::Linear, 0.0f64);
    for model in likely() {
        let own = of(model);
        if own.per_s < rate.per_s {
            (rate.per_s, worst) = (own.per_s, model.kind);
        }
        best_per_s = best_per_s.max(own.per_s);
        rate.low_per_s = rate.low_per_s.min(own.low_per_s);
        rate.high_per_s = rate.high_per_s.max(own.high_per_s);
    }
    let disagreement = best_per_s / rate.per_s - 1.0;
    Held { n, rate, source: Source::Extrapolated { worst, disagreement } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usl(sigma: f64, kappa: f64, n: f64) -> f64 {
        100.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    fn points(ns: &[f64], of: impl Fn(f64) -> f64) -> Vec<Point> {
        let error = Some(RelativeError { share: 0.01, freedom: 20.0 });
        ns.iter().map(|n| Point { n: *n, per_s: of(*n), error }).collect()
    }

    fn scaling(ns: &[f64], of: impl Fn(f64) -> f64) -> Scaling {
        Scaling::of(&points(ns, of), None, "nodes")
    }

    #[test]
    fn measured_and_interpolated_rates_need_no_model() {
        let own = scaling(&[1.0, 2.0, 4.0, 8.0], |n| usl(0.05, 0.002, n));
        let held = own.held(4.0).expect("a rate");
        assert_eq!((held.source, held.rate.per_s), (Source::Measured, usl(0.05, 0.002, 4.0)));
        for n in [3.0, 5.0, 6.0, 7.0] {
            let held = own.held(n).expect("a rate");
            let (low, high) =
                (own.held(2.0).unwrap().rate.per_s, own.held(8.0).unwrap().rate.per_s);
            assert_eq!(held.source, Source::Interpolated);
            assert!(held.rate.per_s > low && held.rate.per_s < high, "{n}");
            assert!(held.rate.holds(usl(0.05, 0.002, n)), "{n}: {held:?}");
        }
    }

    #[test]
    fn exact_points_are_continued_by_their_own_law() {
        for (sigma, kappa) in [(0.0, 0.0), (0.1, 0.0), (0.05, 0.01), (0.02, 0.03)] {
            let own = scaling(&[1.0, 2.0, 3.0, 4.0], |n| usl(sigma, kappa, n));
            for n in [5.0, 6.0, 8.0] {
                let held = own.held(n).expect("a rate");
                assert!(held.rate.holds(usl(sigma, kappa, n)), "{sigma} {kappa} {n}: {held:?}");
                assert!(matches!(held.source, Source::Extrapolated { .. }));
                // The answer is the worst of the models that are left.
                assert!(held.rate.per_s < 1.05 * usl(sigma, kappa, n), "{sigma} {kappa} {n}");
            }
        }
    }

    #[test]
    fn too_few_points_and_narrow_ranges_decline() {
        let linear = |n: f64| 100.0 * n;
        let two = scaling(&[1.0, 4.0], linear);
        assert_eq!(two.held(8.0), Err(Declined::Few { points: 2, unit: "nodes" }));
        assert_eq!(two.held(2.0), Err(Declined::Few { points: 2, unit: "nodes" }));
        assert!(two.held(4.0).is_ok(), "measured numbers are known");
        let narrow = scaling(&[2.0, 3.0, 4.0, 5.0], linear);
        assert_eq!(narrow.held(6.0), Err(Declined::Narrow { low: 2.0, high: 5.0, unit: "nodes" }));
        let four = scaling(&[1.0, 2.0, 3.0, 4.0], linear);
        assert_eq!(four.held(9.0), Err(Declined::Far { most: 8.0, unit: "nodes" }));
        assert_eq!(four.held(0.5), Err(Declined::Below { low: 1.0, unit: "nodes" }));
        let reason = two.held(8.0).unwrap_err().to_string();
        assert!(reason.starts_with("2 numbers of nodes were measured; "), "{reason}");
        assert_eq!(scaling(&[], linear).most(), 0.0);
    }

    #[test]
    fn a_rate_needs_the_fewest_nodes_that_surely_hold_it() {
        let own = scaling(&[1.0, 2.0, 3.0, 4.0], |n| 100.0 * n);
        let needed = own.needed(250.0);
        assert_eq!(needed.sure.map(|held| held.n), Ok(3.0));
        // 3 nodes hold 300/s, but a further measurement may be below.
        let needed = own.needed(300.0);
        assert_eq!(needed.likely.map(|held| held.n), Ok(3.0));
        assert_eq!(needed.sure.map(|held| held.n), Ok(4.0));
        assert_eq!(own.needed(5_000.0).sure, Err(Declined::Far { most: 8.0, unit: "nodes" }));
    }

    #[test]
    fn repeats_become_one_point_with_their_spread() {
        let one = |per_s: f64| Point { n: 2.0, per_s, error: None };
        let own = Scaling::of(&[one(90.0), one(110.0)], None, "nodes");
        let [point] = own.points() else { panic!("one point") };
        let error = point.error.expect("a spread");
        assert!((point.per_s - 99.5).abs() < 0.1 && (error.share - 0.1).abs() < 0.01, "{error:?}");
        assert_eq!(error.freedom, 1.0);
    }

    #[test]
    fn a_peak_is_reported_only_where_the_points_rule_out_its_absence() {
        let ns = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0];
        let peak = scaling(&ns, |n| usl(0.05, 0.02, n)).fit(&[]).unwrap().peak.expect("a peak");
        assert!((peak.n / 6.89 - 1.0).abs() < 0.03 && peak.kappa_interval.0 > 0.0, "{peak:?}");
        for kappa in [0.0, 0.0005] {
            let own = scaling(&[1.0, 2.0, 3.0, 4.0], |n| usl(0.05, kappa, n));
            assert_eq!(own.fit(&[]).unwrap().peak, None, "{kappa}");
        }
    }
}
