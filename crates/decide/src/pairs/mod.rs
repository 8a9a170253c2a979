//! Comparison of two sides by pairs of adjacent blocks: better, worse, the same, or cannot tell.
//!
//! The unit is a pair: one block of A and one of B, in random order, under the same schedule. Its value is ln(B/A) of a metric.
//! Requests within a block share a queue and a machine; they are never treated as independent.
//!
//! * A claim needs both a t test over the pairs and the sign-flip test ([`sign_flip`]).
//! * Looks are planned ([`looks`]). Each spends a share w of the error: its p-values are divided by w, and the least one so far
//!   counts. This is alpha spending (Lan and DeMets, "Discrete sequential boundaries for clinical trials", 1983) with the union
//!   bound in the place of a joint distribution, so that it holds for any dependence between looks.
//! * Holm, "A simple sequentially rejective multiple test procedure" (1979), over the metrics that the user named.
//! * "Same" is two one-sided tests against the margin (Schuirmann 1987), each at half the error: the interval printed beside
//!   such a claim is within the margin.

pub mod at_equal;
pub mod failures;
pub mod looks;
pub mod sign_flip;
pub mod steps;

use crate::student;
use looks::{Looks, PAIRS_LEAST};

/// Largest share of pairs in which a metric may be without a value.
const MISSING_MOST: f64 = 0.1;
/// If the t test is above this, the sign-flip test is not carried out: no error is that large.
const NO_CLAIM: f64 = 0.2;
/// Probability with which [`Finding::pairs_needed`] pairs find a difference of the margin.
const POWER: f64 = 0.9;

/// Terms of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Probability of a false claim of a difference, over all metrics and looks, and again of a false "same"; above 0, at most 0.2.
    pub error: f64,
    /// Relative difference below which A and B are the same, above 0: 0.05 is from 1/1.05 to 1.05.
    pub margin: f64,
    /// Planned maximum of pairs.
    pub pairs_most: usize,
}

/// Sense of a metric: low or high values are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Times, failures, CPU per request.
    LowerIsBetter,
    /// Rates.
    HigherIsBetter,
}

/// A metric that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in findings.
    pub name: String,
    /// Sense of its values.
    pub direction: Direction,
}

/// The answer for a metric, of B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// The ratio is within the margin.
    Same,
    /// The pairs do not decide.
    CannotTell,
}

/// Reason why there is no claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Fewer than 6 pairs, or no look yet.
    FewPairs,
    /// The metric has no value in this many pairs, more than a tenth.
    Missing(usize),
    /// The log ratios vary too much for this number of pairs.
    Spread,
}

/// The answer for a metric, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// Index into the metrics.
    pub metric: usize,
    /// The answer.
    pub kind: Kind,
    /// Geometric mean of B/A over the pairs; NaN without a pair.
    pub ratio: f64,
    /// Lower end of the t interval of the ratio; 0 below 2 pairs, and if the scale of the log ratios is hardly known.
    pub low: f64,
    /// Upper end of the t interval of the ratio; infinite below 2 pairs, and if the scale of the log ratios is hardly known.
    pub high: f64,
    /// Confidence of the interval: 1 - error. It is of this metric alone, so it may exclude 1 where Holm allows no claim.
    pub confidence: f64,
    /// Pairs with a value.
    pub pairs: usize,
    /// p-value of "there is no difference", adjusted for looks and metrics: at most `error` where a difference is claimed.
    pub p_value: f64,
    /// For [`Kind::CannotTell`]: pairs that find a difference of the margin, or show that there is none, nine times in ten.
    pub pairs_needed: Option<usize>,
    /// For [`Kind::CannotTell`]: the reason.
    pub why: Option<Why>,
}

/// Log ratios of one metric, and the least p-values of its looks so far, each divided by the look's share.
#[derive(Clone, Debug)]
struct Column {
    values: Vec<f64>,
    /// Standard error of the scale that the values have in common, as a share of it.
    scale_error: f64,
    missing: usize,
    above: f64,
    below: f64,
    same: f64,
}

/// A comparison in progress.
#[derive(Clone, Debug)]
pub struct Pairs {
    terms: Terms,
    metrics: Vec<Metric>,
    looks: Looks,
    columns: Vec<Column>,
    pairs: usize,
    looked: bool,
    closed: bool,
}

impl Pairs {
    /// Begins a comparison of these metrics.
    #[must_use]
    pub fn new(terms: Terms, metrics: Vec<Metric>) -> Self {
        let column = Column {
            values: Vec::new(),
            scale_error: 0.0,
            missing: 0,
            above: 1.0,
            below: 1.0,
            same: 1.0,
        };
        Self {
            terms,
            looks: Looks::plan(terms.pairs_most, terms.error),
            columns: vec![column; metrics.len()],
            metrics,
            pairs: 0,
            looked: false,
            closed: false,
        }
    }

    /// Adds a pair: ln(B/A) of each metric, in their order; none, or a value that is not finite: not measured in this pair.
    ///
    /// Pairs beyond the planned maximum, and after [`Pairs::close`], are dropped.
    pub fn add(&mut self, log_ratios: &[Option<f64>]) {
        if self.closed || self.pairs >= self.terms.pairs_most {
            return;
        }
        self.pairs += 1;
        for (at, column) in self.columns.iter_mut().enumerate() {
            match log_ratios.get(at).copied().flatten().filter(|value| value.is_finite()) {
                Some(value) => column.values.push(value),
                None => column.missing += 1,
            }
        }
        self.looked = self.looks.due(self.pairs).is_some();
        if let Some(share) = self.looks.due(self.pairs) {
            self.look(share);
        }
    }

    /// Replaces the log ratios of a metric, in the order of the pairs in which it has one: they have a scale in common, which is
    /// known better by now, with this standard error as a share of it. Values of pairs that are still to be added are left out.
    ///
    /// A scale has no influence on whether there is a difference, and on its sign. The interval allows for its error by Fieller's theorem
    /// ("Some problems in interval estimation", 1954).
    pub fn restate(&mut self, metric: usize, log_ratios: &[f64], scale_error: f64) {
        let Some(column) = self.columns.get_mut(metric) else { return };
        for (own, better) in column.values.iter_mut().zip(log_ratios) {
            *own = *better;
        }
        column.scale_error = scale_error;
    }

    /// Ends the comparison before the planned maximum: a last look spends what is left of the error.
    ///
    /// The reason must not depend on the values: time is up, or the user stopped it.
    pub fn close(&mut self) {
        let share = self.looks.left(self.pairs);
        if !self.closed && share > 0.0 {
            self.look(share);
        }
        self.closed = true;
    }

    /// Returns the same comparison, with the same looks, of other log ratios: a row for each pair, as [`Pairs::add`] takes it.
    #[must_use]
    pub fn again(&self, rows: &[Vec<Option<f64>>]) -> Self {
        let mut other = Self::new(self.terms, self.metrics.clone());
        rows.iter().for_each(|row| other.add(row));
        if self.closed {
            other.close();
        }
        other
    }

    /// Returns true if there is nothing more to add: the last pair was at a look and each metric has its answer, or the
    /// maximum is reached, or the comparison was closed.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.closed
            || self.pairs >= self.terms.pairs_most
            || self.looked && self.findings().iter().all(|finding| finding.kind != Kind::CannotTell)
    }

    /// Returns true if a look followed the last pair, or the comparison was closed: only then claims can be new.
    #[must_use]
    pub fn has_looked(&self) -> bool {
        self.looked || self.closed
    }

    /// Returns the number of pairs so far, with those in which metrics are missing.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Returns a finding for each metric, in their order. Claims are those of the looks so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let differ: Vec<f64> =
            self.columns.iter().map(|column| 2.0 * column.above.min(column.below)).collect();
        let same: Vec<f64> = self.columns.iter().map(|column| 2.0 * column.same).collect();
        let (differ, same) = (holm(&differ), holm(&same));
        (0..self.columns.len()).map(|at| self.finding(at, differ[at], same[at])).collect()
    }

    fn look(&mut self, share: f64) {
        let margin = self.terms.margin.ln_1p();
        for column in &mut self.columns {
            let values = &column.values;
            if values.len() < PAIRS_LEAST {
                continue;
            }
            let shifted = |by: f64, sign: f64| values.iter().map(|v| sign * (v - by)).collect();
            let p = |values: Vec<f64>| above_zero(&values) / share;
            column.above = column.above.min(p(shifted(0.0, 1.0)));
            column.below = column.below.min(p(shifted(0.0, -1.0)));
            let within = p(shifted(margin, -1.0)).max(p(shifted(-margin, 1.0)));
            column.same = column.same.min(within);
        }
    }

    fn finding(&self, metric: usize, differ: f64, same: f64) -> Finding {
        let column = &self.columns[metric];
        let Terms { error, margin, .. } = self.terms;
        let interval = Interval::of(&column.values, error);
        let (low, high) = interval.ends(column.scale_error);
        let missing = column.missing as f64 > MISSING_MOST * self.pairs as f64;
        let higher = self.metrics[metric].direction == Direction::HigherIsBetter;
        // A claim of an earlier look stands only while all pairs so far agree with it.
        let differs = differ <= error && interval.mean.abs() > interval.half;
        let kind = match interval.mean > 0.0 {
            _ if missing => Kind::CannotTell,
            above if differs && (column.above < column.below) == above => {
                if above == higher {
                    Kind::Better
                } else {
                    Kind::Worse
                }
            }
            _ if same <= error && high < margin.ln_1p() && low > -margin.ln_1p() => Kind::Same,
            _ => Kind::CannotTell,
        };
        let open = kind == Kind::CannotTell;
        let why = match column.values.len() {
            _ if missing => Why::Missing(column.missing),
            pairs
                if pairs < PAIRS_LEAST
                    || self.looks.left(self.pairs) > 1.0 - 1e-9 && !self.closed =>
            {
                Why::FewPairs
            }
            _ => Why::Spread,
        };
        Finding {
            metric,
            kind,
            ratio: interval.mean.exp(),
            low: low.exp(),
            high: high.exp(),
            confidence: 1.0 - error,
            pairs: column.values.len(),
            p_value: differ,
            pairs_needed: if open && !missing { self.needed(interval) } else { None },
            why: open.then_some(why),
        }
    }

    /// Pairs for which the interval at Holm's strictest level, at the last look, is as narrow as a claim needs.
    fn needed(&self, interval: Interval) -> Option<usize> {
        let deviation = interval.deviation?;
        let level = self.terms.error * self.looks.left(self.terms.pairs_most - 1)
            / self.metrics.len() as f64;
        let margin = self.terms.margin.ln_1p();
        let mut pairs = PAIRS_LEAST as f64;
        // The degrees of freedom depend on the result; three rounds are enough for whole pairs.
        for _ in 0..3 {
            let reach = student::quantile(1.0 - level / 2.0, pairs - 1.0)
                + student::quantile(POWER, pairs - 1.0);
            pairs = (deviation * reach / margin).powi(2).ceil().max(PAIRS_LEAST as f64);
        }
        Some((pairs as usize).max(self.pairs + 1))
    }
}

/// Mean of log ratios and half the width of its t interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    mean: f64,
    half: f64,
    deviation: Option<f64>,
    /// Quantile of Student's t.
    reach: f64,
}

impl Interval {
    fn of(values: &[f64], error: f64) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Self { mean, half: f64::INFINITY, deviation: None, reach: f64::INFINITY };
        }
        let deviation = deviation(values, mean);
        let reach = student::quantile(1.0 - error / 2.0, n - 1.0);
        Self { mean, half: reach * deviation / n.sqrt(), deviation: Some(deviation), reach }
    }

    /// The ends of the interval if the scale of the values has this standard error, as a share of it: all x for which
    /// (mean - x)^2 <= half^2 + (reach * error * x)^2. They exclude 0 exactly if those without such an error do.
    fn ends(&self, scale_error: f64) -> (f64, f64) {
        let Self { mean, half, reach, .. } = *self;
        if scale_error <= 0.0 || !half.is_finite() {
            return (mean - half, mean + half);
        }
        let of_scale = (reach * scale_error).powi(2);
        let beyond = mean * mean - half * half;
        if of_scale < 1.0 {
            let left = 1.0 - of_scale;
            let root = (half * half * left + of_scale * mean * mean).sqrt();
            return ((mean - root) / left, (mean + root) / left);
        }
        // The scale could be any, up to without end: only the side of 0 may be known.
        let root = (half * half + of_scale * beyond).sqrt();
        match mean > 0.0 {
            _ if beyond <= 0.0 => (f64::NEG_INFINITY, f64::INFINITY),
            true => (beyond / (mean + root), f64::INFINITY),
            false => (f64::NEG_INFINITY, beyond / (mean - root)),
        }
    }
}

/// Standard deviation of at least two values.
fn deviation(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The larger of the one-sided p-values of the t test and of the sign-flip test for a mean above 0.
fn above_zero(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let deviation = deviation(values, mean);
    if mean <= 0.0 {
        return 1.0;
    }
    let t = mean / (deviation / n.sqrt());
    let by_t = 0.5 * student::two_sided(t, n - 1.0);
    if by_t > NO_CLAIM { by_t } else { by_t.max(sign_flip::upper(values)) }
}

/// Returns p-values adjusted for their number by Holm's procedure, at most 1.
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (rank, at) in order.iter().enumerate() {
        least = least.max(p_values[*at] * (p_values.len() - rank) as f64);
        adjusted[*at] = least.min(1.0);
    }
    adjusted
}

#[cfg(test)]
mod tests;
