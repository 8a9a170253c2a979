//! The requests that reached a target: their number, their methods, and the regularity of their
//! arrivals, so that a generator's arrival process can be audited from the other side.

use crate::http::Method;
use plimsoll_core::histogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// Mean and variance in one pass (Welford 1962), mergeable (Chan, Golub, LeVeque 1979).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    count: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    deviation: f64,
}

impl Moments {
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.deviation += delta * (value - self.mean);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        self.count += other.count;
        self.mean += delta * theirs / (ours + theirs);
        self.deviation += other.deviation + delta * delta * ours * theirs / (ours + theirs);
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// Sample standard deviation; 0 below two values.
    pub(crate) fn standard_deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.deviation / (self.count - 1) as f64).sqrt() }
    }
}

/// The gaps between arrivals, one after the other over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GapSummary {
    /// Number of gaps: one fewer than arrivals.
    pub count: u64,
    /// Mean gap in microseconds.
    pub mean_us: f64,
    /// Sample standard deviation in microseconds.
    pub sd_us: f64,
    /// Coefficient of variation, `sd / mean`: 0 for a perfectly uniform process, 1 for a Poisson
    /// process, above 1 for bursts.
    pub cv: f64,
    /// One gap in a hundred is at most this long, in microseconds; as the others from a histogram
    /// with three digits and steps of at least 1 us.
    pub p1_us: f64,
    /// One gap in ten is at most this long.
    pub p10_us: f64,
    /// Half of the gaps are at most this long.
    pub p50_us: f64,
    /// Nine gaps in ten are at most this long.
    pub p90_us: f64,
    /// 99 gaps in a hundred are at most this long.
    pub p99_us: f64,
}

/// The arrivals of a target since its start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrivalSummary {
    /// Requests read whole. Those to `/_stats` and those refused as malformed are not counted.
    pub requests: u64,
    /// The same by method; methods that did not occur are left out.
    pub by_method: BTreeMap<&'static str, u64>,
    /// First arrival, in milliseconds since the target started; null before it.
    pub first_arrival_ms: Option<f64>,
    /// Last arrival, in milliseconds since the target started.
    pub last_arrival_ms: Option<f64>,
    /// Arrivals per second between the first and the last.
    pub rate_per_s: f64,
    /// The gaps between arrivals.
    pub gaps: GapSummary,
}

/// Counts arrivals. All times are on the monotonic scale of `plimsoll_core::clock`.
#[derive(Clone, Debug, Default)]
pub struct ArrivalTally {
    by_method: [u64; 8],
    first_ns: Option<u64>,
    last_ns: u64,
    /// Gaps in microseconds.
    gaps: Moments,
    /// The same gaps by their size.
    sizes: Histogram,
}

impl ArrivalTally {
    /// Counts an arrival; `previous_ns` is the arrival before it, if there was one.
    #[inline]
    pub fn add(&mut self, method: Method, now_ns: u64, previous_ns: Option<u64>) {
        self.by_method[method as usize] += 1;
        if let Some(previous_ns) = previous_ns {
            let gap_ns = now_ns.saturating_sub(previous_ns);
            self.gaps.add(gap_ns as f64 / 1e3);
            self.sizes.record(gap_ns);
        }
        self.first_ns.get_or_insert(now_ns);
        self.last_ns = now_ns;
    }

    /// Forgets everything and keeps its memory.
    pub fn clear(&mut self) {
        let mut sizes = std::mem::take(&mut self.sizes);
        sizes.clear();
        *self = Self { sizes, ..Self::default() };
    }

    /// The latest arrival counted here.
    #[inline]
    pub fn last_ns(&self) -> Option<u64> {
        self.first_ns.map(|_| self.last_ns)
    }

    /// Requests counted.
    pub fn requests(&self) -> u64 {
        self.by_method.iter().sum()
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.by_method.iter_mut().zip(other.by_method) {
            *ours += theirs;
        }
        self.gaps.merge(&other.gaps);
        self.sizes.merge(&other.sizes);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// The numbers for people; `start_ns` is when the target started.
    pub fn summary(&self, start_ns: u64) -> ArrivalSummary {
        let since_start_ms = |at_ns: u64| at_ns.saturating_sub(start_ns) as f64 / 1e6;
        let requests = self.requests();
        let span_s = self.first_ns.map_or(0, |first_ns| self.last_ns - first_ns) as f64 / 1e9;
        let mean_us = self.gaps.mean();
        let sd_us = self.gaps.standard_deviation();
        let size_us = |quantile| {
            if self.sizes.is_empty() { 0.0 } else { self.sizes.quantile_ns(quantile) as f64 / 1e3 }
        };
        ArrivalSummary {
            requests,
            by_method: Method::NAMES
                .into_iter()
                .zip(self.by_method)
                .filter(|(_, count)| *count > 0)
                .collect(),
            first_arrival_ms: self.first_ns.map(since_start_ms),
            last_arrival_ms: self.last_ns().map(since_start_ms),
            rate_per_s: if span_s > 0.0 { (requests - 1) as f64 / span_s } else { 0.0 },
            gaps: GapSummary {
                count: self.gaps.count,
                mean_us,
                sd_us,
                cv: if mean_us > 0.0 { sd_us / mean_us } else { 0.0 },
                p1_us: size_us(0.01),
                p10_us: size_us(0.10),
                p50_us: size_us(0.50),
                p90_us: size_us(0.90),
                p99_us: size_us(0.99),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    fn tally(gaps_us: impl Iterator<Item = f64>) -> ArrivalTally {
        let mut tally = ArrivalTally::default();
        let mut at_ns = 5_000_000.0;
        tally.add(Method::Get, at_ns as u64, None);
        for gap_us in gaps_us {
            at_ns += gap_us * 1e3;
            tally.add(Method::Post, at_ns as u64, tally.last_ns());
        }
        tally
    }

    #[test]
    fn uniform_bursty_and_poisson_arrivals_are_told_apart() {
        let uniform = tally(std::iter::repeat_n(200.0, 10_000)).summary(0);
        assert_eq!(uniform.gaps.count, 10_000);
        assert!(uniform.gaps.cv < 1e-6 && (uniform.gaps.mean_us - 200.0).abs() < 1e-6);
        assert!((uniform.rate_per_s - 5_000.0).abs() < 1e-6);

        // Five at once every millisecond: four gaps of 0 and one of 1000 us have cv 2.
        let burst = tally((0..50_000).map(|i| if i % 5 == 0 { 1_000.0 } else { 0.0 })).summary(0);
        assert!((burst.gaps.cv - 2.0).abs() < 0.01, "{}", burst.gaps.cv);

        let mut rng = Rng::new(1);
        let poisson = tally((0..100_000).map(|_| 200.0 * rng.exponential())).summary(0);
        assert!((poisson.gaps.cv - 1.0).abs() < 0.02, "{}", poisson.gaps.cv);
    }

    fn sizes_us(gaps: &GapSummary) -> [(f64, f64); 5] {
        [
            (0.01, gaps.p1_us),
            (0.10, gaps.p10_us),
            (0.50, gaps.p50_us),
            (0.90, gaps.p90_us),
            (0.99, gaps.p99_us),
        ]
    }

    #[test]
    fn gaps_are_told_by_their_size() {
        let near =
            |size_us: f64, exact_us: f64| (size_us - exact_us).abs() <= 0.002 * exact_us + 1.0;
        // 1, 2, ... 1000 us, in an order of no meaning, counted by two threads.
        let gap_us = |i: u64| (i * 607 % 1_000 + 1) as f64;
        let mut left = tally((0..500).map(gap_us));
        left.merge(&tally((500..1_000).map(gap_us)));
        let gaps = left.summary(0).gaps;
        for (quantile, size_us) in sizes_us(&gaps) {
            assert!(near(size_us, quantile * 1_000.0), "{quantile}: {size_us}");
        }
        let mut rng = Rng::new(3);
        let poisson = tally((0..100_000).map(|_| 2_000.0 * rng.exponential())).summary(0).gaps;
        for (quantile, size_us) in sizes_us(&poisson) {
            // Four standard errors of a share of 100,000.
            let reached = 1.0 - (-size_us / 2_000.0).exp();
            let allowed = 4.0 * (quantile * (1.0 - quantile) / 100_000.0_f64).sqrt() + 1e-3;
            assert!((reached - quantile).abs() < allowed, "{quantile}: {size_us}");
        }
        left.clear();
        assert_eq!(left.summary(0), ArrivalTally::default().summary(0));
        assert_eq!(left.summary(0).gaps.p50_us, 0.0, "no gap has no size");
    }

    #[test]
    fn merged_moments_are_those_of_all_values() {
        let mut rng = Rng::new(2);
        let values: Vec<f64> = (0..1_000).map(|_| rng.exponential() * 1e4).collect();
        let (mut whole, mut left, mut right) = Default::default();
        for (i, value) in values.iter().enumerate() {
            let whole: &mut Moments = &mut whole;
            whole.add(*value);
            let part: &mut Moments = if i % 3 == 0 { &mut left } else { &mut right };
            part.add(*value);
        }
        left.merge(&right);
        left.merge(&Moments::default());
        assert_eq!(left.count, whole.count);
        assert!((left.mean() / whole.mean() - 1.0).abs() < 1e-12);
        assert!((left.standard_deviation() / whole.standard_deviation() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_summary_names_methods_and_times_since_the_start() {
        let summary = tally([1_000.0].into_iter()).summary(4_000_000);
        assert_eq!(summary.requests, 2);
        assert_eq!(summary.by_method, BTreeMap::from([("GET", 1), ("POST", 1)]));
        assert_eq!(summary.first_arrival_ms, Some(1.0));
        assert_eq!(summary.last_arrival_ms, Some(2.0));
        let empty = ArrivalTally::default().summary(0);
        assert_eq!((empty.requests, empty.first_arrival_ms, empty.rate_per_s), (0, None, 0.0));
    }
}
