//! Fits of rival models and their prediction intervals.
//!
//! Errors of the points are relative. For a curve ln C = a + h, least squares give the level a, and the sum of squares S(h) says
//! how well the form h agrees. A new measurement y at n, with error s, lies in the interval if some curve of the family agrees
//! with the points and with y: min over h of S(h) + (y - a - h(n))² / (s² + 1/W) is at most S_min + t², where W is the sum of the
//! points' weights and t Student's quantile. For a family that is linear in its parameters this is the usual prediction
//! interval; parameters at their bound narrow it.

use super::models::{Family, Kind, QueueLimit, rivals};
use super::{LEVEL, Point, Prediction, RelativeError};
use crate::student;

/// A family is ruled out if its sum of squares exceeds that of the best one by this: about one chance in a thousand if it
/// were true.
const RULED_OUT: f64 = 10.8;
/// A peak is reported only if the points rule out κ = 0 with this probability.
const PEAK_LEVEL: f64 = 0.9999;
/// Least error of a point whose own error is not known, as a share.
const ERROR_MIN: f64 = 0.005;

/// A family, fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The family.
    pub kind: Kind,
    /// Parameters of its best curve, as in [`Family::forms`].
    pub parameters: [f64; 2],
    /// Sum of squares of its best curve, in squared errors.
    pub squares: f64,
    /// True if the points rule it out.
    pub ruled_out: bool,
    /// Its predictions, one for each asked number of nodes.
    pub predictions: Vec<Prediction>,
}

/// A number of nodes beyond which the rate falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Number of nodes.
    pub n: f64,
    /// κ at its best, with n in units of the smallest number of nodes.
    pub kappa: f64,
    /// Interval of κ at the level of 99.99 %; it does not hold 0.
    pub kappa_interval: (f64, f64),
}

/// All families, fitted to the same points.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Rivals, in the order of [`Kind`].
    pub models: Vec<Fitted>,
    /// Error of a point as the intervals use it: the root of the mean square, as a share.
    pub error: f64,
    /// Degrees of freedom with which it is known.
    pub freedom: f64,
    /// Factor by which the errors were enlarged because no family agreed with the points; 1 if one did.
    pub enlarged: f64,
    /// The peak, if the points show one.
    pub peak: Option<Peak>,
}

/// Points in the units of the fit.
struct Data {
    ln: Vec<f64>,
    weights: Vec<f64>,
    /// Squared error of a new measurement.
    variance: f64,
    freedom: f64,
    is_known: bool,
}

impl Data {
    fn of(points: &[Point]) -> Self {
        let known: Vec<RelativeError> = points.iter().filter_map(|point| point.error).collect();
        let mean = |of: &dyn Fn(&RelativeError) -> f64| {
            known.iter().map(of).sum::<f64>() / known.len().max(1) as f64
        };
        let is_known = !known.is_empty();
        let variance = if is_known { mean(&|one| one.share * one.share) } else { 1.0 };
        // The error of one point is itself uncertain: half of its square is that of all.
        let own = |point: &Point| match point.error {
            Some(error) => 0.5 * (error.share * error.share + variance),
            None => variance,
        };
        Self {
            ln: points.iter().map(|point| point.per_s.ln()).collect(),
            weights: points.iter().map(|point| 1.0 / own(point)).collect(),
            variance,
            freedom: known.iter().map(|one| one.freedom).sum(),
            is_known,
        }
    }

    /// Level and sum of squares of a curve with these logarithms at the points.
    fn squares(&self, form: &[f64]) -> (f64, f64) {
        let weight: f64 = self.weights.iter().sum();
        let off = || self.ln.iter().zip(form).zip(&self.weights);
        let level = off().map(|((y, h), w)| w * (y - h)).sum::<f64>() / weight;
        (level, off().map(|((y, h), w)| w * (y - h - level).powi(2)).sum())
    }
}

/// A curve of a family beside the points.
#[derive(Clone, Copy)]
struct Compared {
    parameters: [f64; 2],
    level: f64,
    squares: f64,
}

/// A family beside the points.
struct Sums {
    family: Family,
    best: Compared,
    each: Vec<Compared>,
}

impl Sums {
    fn of(family: Family, data: &Data, ns: &[f64]) -> Option<Self> {
        let mut ln = Vec::new();
        let mut compare = |parameters: &[f64; 2]| {
            ln.clear();
            ln.extend(ns.iter().map(|n| family.ln(parameters, *n)));
            let (level, squares) = data.squares(&ln);
            let parameters = *parameters;
            squares.is_finite().then_some(Compared { parameters, level, squares })
        };
        let least =
            |each: &[Compared]| each.iter().min_by(|a, b| a.squares.total_cmp(&b.squares)).copied();
        let mut each: Vec<Compared> = family.forms.iter().filter_map(&mut compare).collect();
        let near = family.around(least(&each)?.parameters);
        each.extend(near.iter().filter_map(&mut compare));
        let best = least(&each)?;
        Some(Self { family, best, each })
    }

    /// The curves whose sums of squares exceed the least one by at most this.
    fn agreeing(&self, allowed: f64) -> impl Iterator<Item = &Compared> {
        let most = self.best.squares + allowed;
        self.each.iter().filter(move |one| one.squares <= most)
    }

    fn predictions(&self, data: &Data, allowed: f64, asked: &[f64]) -> Vec<Prediction> {
        let weight: f64 = data.weights.iter().sum();
        let spread = data.variance + 1.0 / weight;
        let agreeing: Vec<&Compared> = self.agreeing(allowed).collect();
        let one = |n: &f64| {
            let middle = self.best.level + self.family.ln(&self.best.parameters, *n);
            let (mut low, mut high) = (middle, middle);
            for form in &agreeing {
                let left = allowed - (form.squares - self.best.squares);
                let half = (left * spread).sqrt();
                let own = form.level + self.family.ln(&form.parameters, *n);
                low = low.min(own - half);
                high = high.max(own + half);
            }
            Prediction { per_s: middle.exp(), low_per_s: low.exp(), high_per_s: high.exp() }
        };
        asked.iter().map(one).collect()
    }

    /// The peak of the universal scalability law, if the interval of κ does not hold 0.
    fn peak(&self, allowed: f64, unit: f64) -> Option<Peak> {
        let kappas = || self.agreeing(allowed).map(|one| one.parameters[1]);
        let low = kappas().fold(f64::INFINITY, f64::min);
        let high = kappas().fold(0.0, f64::max);
        let [sigma, kappa] = self.best.parameters;
        if !(low > 0.0 && low.is_finite() && sigma < 1.0) {
            return None;
        }
        Some(Peak { n: unit * ((1.0 - sigma) / kappa).sqrt(), kappa, kappa_interval: (low, high) })
    }
}

/// Fits the rivals to points, and predicts the rates of other numbers of nodes. There are at least two points.
#[must_use]
pub fn fit(points: &[Point], asked: &[f64], queue: Option<&QueueLimit>) -> Fit {
    let data = Data::of(points);
    let ns: Vec<f64> = points.iter().map(|point| point.n).collect();
    let unit = ns.iter().copied().fold(f64::INFINITY, f64::min);
    let families = rivals(unit, queue);
    let summed: Vec<Sums> =
        families.into_iter().filter_map(|family| Sums::of(family, &data, &ns)).collect();
    let freedom = |sums: &Sums| (ns.len() as f64 - sums.family.parameters as f64).max(1.0);
    let per_freedom = |sums: &Sums| sums.best.squares / freedom(sums);
    let best = summed.iter().min_by(|a, b| per_freedom(a).total_cmp(&per_freedom(b)));
    let (best_freedom, misfit) = best.map_or((1.0, 1.0), |best| (freedom(best), per_freedom(best)));
    // Known errors are enlarged if no model agrees; unknown ones are those of the best model.
    let (scale, t_freedom) = if !data.is_known {
        (misfit.max(ERROR_MIN * ERROR_MIN), best_freedom)
    } else if misfit > 1.0 {
        (misfit, best_freedom + data.freedom)
    } else {
        (1.0, data.freedom)
    };
    let allowed = |level: f64| {
        student::quantile(0.5 + 0.5 * level, t_freedom.clamp(1.0, 1e6)).powi(2) * scale
    };
    let least = summed.iter().map(|sums| sums.best.squares).fold(f64::INFINITY, f64::min);
    let is_likely = |sums: &Sums| (sums.best.squares - least) / scale <= RULED_OUT;
    let fitted = |sums: &Sums| Fitted {
        kind: sums.family.kind,
        parameters: sums.best.parameters,
        squares: sums.best.squares / scale,
        ruled_out: !is_likely(sums),
        predictions: sums.predictions(&data, allowed(LEVEL), asked),
    };
    let usl = summed.iter().find(|sums| sums.family.kind == Kind::Usl && is_likely(sums));
    Fit {
        models: summed.iter().map(fitted).collect(),
        error: (data.variance * scale).sqrt(),
        freedom: t_freedom,
        enlarged: if data.is_known { scale.sqrt() } else { 1.0 },
        peak: usl.and_then(|sums| sums.peak(allowed(PEAK_LEVEL), unit)),
    }
}
