//! The confidence interval of a percentile of one run, whose requests are correlated.
//!
//! The percentile itself is that of the whole run: the sectioning estimate of Sequest (Alexopoulos, Goldsman, Mokashi, Tien,
//! Wilson, "Sequest: A sequential procedure for estimating quantiles in steady-state simulations", Operations Research 67,
//! 2019). Its variance comes from non-overlapping batches of neighbouring periods, as there and in SQSTS (Lolos and others,
//! Journal of Simulation, 2024), after von Neumann's test of their independence. Batches count the requests above the
//! percentile instead of having percentiles of their own: by Bahadur's representation both have the same limit, and a count
//! needs no least number of requests in a batch. The interval of a share is that of Korn and Graubard (Survey Methodology 24,
//! 1998): the exact one for as many independent requests as have the same variance. It becomes an interval of the percentile
//! as in Woodruff (Journal of the American Statistical Association 47, 1952), by fractional order statistics (Hutson, Journal
//! of Applied Statistics 26, 1999).
//!
//! Batches that are shorter than the memory of a queue look independent as long as the queue stays calm, and calm runs have
//! low percentiles. A run with correlated requests therefore has to be long beside the relaxation time of a queue with the
//! same mean response time ([`Reason::Memory`]), and close to that limit the upper end is set further out.

mod course;
mod reason;

pub use reason::Reason;

use crate::student::{self, incomplete_beta};
use course::{Course, Levels};
use plimsoll_core::histogram::Packed;
use plimsoll_core::normal;

/// Confidence level of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest batches; fewer periods have no interval.
pub const BATCHES_LEAST: usize = 30;
/// Fewest requests, as if they were independent, on the rarer side of a percentile.
pub const RARE_LEAST: f64 = 10.0;
/// The same where requests are correlated; their own limit of the length is stricter.
const RARE_LEAST_CORRELATED: f64 = 8.0;
/// Ratio of the variance to that of independent requests from which a run counts as correlated: the 99th percentile of the
/// ratio of 30 batches of independent requests.
const CORRELATED_FROM: f64 = 1.65;
/// The same ratio from which a percentile with few requests beyond it is handled with care: one run in five of independent
/// requests exceeds it, and one in fifty of a queue whose ratio is 2.
const SUSPECT_FROM: f64 = 1.3;
/// Independent requests on the rarer side below which a percentile has few.
const FEW: f64 = 100.0;
/// Level of the tests of independence and trend.
const TEST_LEVEL: f64 = 0.01;
/// Length in relaxation times, times the root of the share of requests on the rarer side: 156 for p50, 492 for p95, 1,100 for p99.
const LENGTH: f64 = 110.0;
/// Most requests in a relaxation time, in ratios of the variance to that of independent requests. It is 3.5 for the median
/// of M/M/1; a calm run may show a fourth of it.
const MEMORY_MOST: f64 = 16.0;
/// Share of the variance that is added on the upper side, divided by the independent requests on the rarer side: a run with
/// few groups of slow requests has a low percentile and a low variance together.
const FEW_GROUPS: f64 = 6.0;
/// Factor of the variance on the upper side of a run at the limit of its length.
const AT_THE_LIMIT: f64 = 2.5;
/// Factor of the variance of all runs. The tests and limits leave out some runs with the largest variance, and so the others
/// would cover a little less than they claim.
const LEFT_OUT: f64 = 1.04;

/// A percentile with its interval, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
    /// Batches that the variance was taken from.
    pub batches: usize,
    /// Independent requests that would have the same variance.
    pub independent: f64,
}

/// Returns the intervals of these quantiles, 0 to 1 and neither, in their order, or the reason why there is none. `periods`
/// are the response times of the run in equal periods one behind the other, `period_s` each, of which the last may be shorter.
#[must_use]
pub fn intervals(
    periods: &[Packed],
    period_s: f64,
    quantiles: &[f64],
) -> Vec<Result<Interval, Reason>> {
    let needed_s = BATCHES_LEAST as f64 * period_s;
    if periods.len() < BATCHES_LEAST {
        let run_s = periods.len() as f64 * period_s;
        return quantiles.iter().map(|_| Err(Reason::Short { run_s, needed_s })).collect();
    }
    let course = Course::of(periods, period_s);
    let correlation = [0.5, 0.9].map(|quantile| course.levels(quantile).ratio()).into_iter();
    let ratio = correlation.fold(0.0, f64::max);
    quantiles.iter().map(|&quantile| one(&course, quantile, ratio)).collect()
}

fn one(course: &Course, quantile: f64, correlation: f64) -> Result<Interval, Reason> {
    let rarer = quantile.min(1.0 - quantile);
    if course.count * rarer < RARE_LEAST {
        let needed = (RARE_LEAST / rarer).ceil() as u64;
        return Err(Reason::Few { requests: course.count as u64, needed });
    }
    let levels = course.levels(quantile);
    if levels.is_constant() {
        // All requests have the percentile's own time, to the histogram's resolution.
        let ends_ns = course.values_ns([quantile, quantile]);
        return Ok(levels.interval(ends_ns, course.count));
    }
    let is_correlated = correlation.max(levels.ratio()) > CORRELATED_FROM;
    let length = if is_correlated { length(course, correlation, rarer)? } else { f64::INFINITY };
    let independent = course.count / levels.ratio();
    let (rare, least) = match is_correlated {
        true => (independent * rarer, RARE_LEAST_CORRELATED),
        false => (independent * rarer, RARE_LEAST),
    };
    if rare < least {
        return Err(Reason::Groups { groups: rare, needed: least });
    }
    let freedom = levels.batches() as f64 - 1.0;
    if levels.von_neumann() > normal::quantile(1.0 - TEST_LEVEL) {
        return Err(Reason::Correlated);
    }
    let trend = levels.trend();
    if trend.abs() > student::quantile(1.0 - TEST_LEVEL / 2.0, freedom) {
        return Err(Reason::Trend { rises: trend > 0.0 });
    }
    // Correlation that was not found for certain has no limit of the length; the upper end takes its place.
    let is_suspect = is_correlated || (correlation > SUSPECT_FROM && rare < FEW);
    let upper = match is_suspect {
        true => (1.0 + FEW_GROUPS / rare) * at_limit(if is_correlated { length } else { 1.0 }),
        false => 1.0,
    };
    let z = normal::quantile(0.5 + CONFIDENCE / 2.0);
    let known =
        independent / LEFT_OUT * (z / student::quantile(0.5 + CONFIDENCE / 2.0, freedom)).powi(2);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let low = order(known, quantile, 1.0 - tail);
    let high = order(known / upper, quantile, tail);
    Ok(levels.interval(course.values_ns([low, high]), independent))
}

/// Returns the length of the run, in the shortest that its percentile needs.
///
/// A queue with one server that a request leaves after W seconds on average has L = W x rate requests in it (Little) and
/// forgets its state within 4 W (L + 1) seconds: for M/M/1 that is 4 / (mu (1 - rho)^2), the heavy-traffic limit of its
/// relaxation time (Cohen, "The single server queue", 1982). Many servers forget sooner, which the variance shows.
fn length(course: &Course, correlation: f64, rarer: f64) -> Result<f64, Reason> {
    let rate_per_s = course.count / course.run_s();
    let queue_s = 4.0 * course.mean_s * (course.mean_s * rate_per_s + 1.0);
    let memory_s = queue_s.min(MEMORY_MOST * correlation / rate_per_s);
    let needed_s = memory_s * LENGTH / rarer.sqrt();
    let length = course.run_s() / needed_s;
    if length >= 1.0 { Ok(length) } else { Err(Reason::Memory { memory_s, needed_s }) }
}

/// Returns the factor of the variance on the upper side of a run that is `length` times as long as the shortest.
///
/// Of runs whose queue is too slow, only the calmest pass as long enough; the further end covers what they did not see.
fn at_limit(length: f64) -> f64 {
    1.0 + (AT_THE_LIMIT - 1.0) * (2.0 - length).clamp(0.0, 1.0)
}

/// Returns the fraction u for which the order statistic at u of `count` independent values lies below the quantile with this
/// probability: its distribution function at the quantile is that of Beta(u (n + 1), (1 - u) (n + 1)).
fn order(count: f64, quantile: f64, probability: f64) -> f64 {
    let n = count + 1.0;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let u = 0.5 * (low + high);
        if incomplete_beta(n * u, n * (1.0 - u), quantile) > probability {
            low = u;
        } else {
            high = u;
        }
    }
    0.5 * (low + high)
}

impl Levels {
    fn interval(&self, ends_ns: [f64; 2], independent: f64) -> Interval {
        let [low_ns, high_ns] = ends_ns;
        let estimate_ns = self.estimate_ns as f64;
        Interval {
            low_ns: low_ns.min(estimate_ns),
            high_ns: high_ns.max(estimate_ns),
            batches: self.batches(),
            independent,
        }
    }
}

#[cfg(test)]
mod tests;
