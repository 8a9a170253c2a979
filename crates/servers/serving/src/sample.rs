//! Samples of times, as the targets report them.

use plimsoll_core::histogram::Histogram;
use serde::Serialize;

/// A sample of times in milliseconds. Count, mean and maximum are exact; percentiles come from a
/// histogram of three digits whose finest step is 1 us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampleSummary {
    /// Their number.
    pub count: u64,
    /// Their mean.
    pub mean_ms: f64,
    /// Their median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The largest.
    pub max_ms: f64,
}

/// Times in nanoseconds: a histogram for percentiles, sums for what must be exact.
#[derive(Debug, Default)]
pub struct Sample {
    histogram: Histogram,
    sum_ns: u128,
    max_ns: u64,
}

impl Sample {
    /// Adds a time.
    pub fn record(&mut self, value_ns: u64) {
        self.histogram.record(value_ns);
        self.sum_ns += u128::from(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// The number that were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.count()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.clear();
        (self.sum_ns, self.max_ns) = (0, 0);
    }

    /// Returns count, mean, percentiles and maximum.
    pub fn summary(&self) -> SampleSummary {
        let count = self.histogram.count();
        if count == 0 {
            return SampleSummary::default();
        }
        // The histogram names the end of a step, which may lie above the largest value.
        let quantile_ms = |q| self.histogram.quantile_ns(q).min(self.max_ns) as f64 / 1e6;
        SampleSummary {
            count,
            mean_ms: self.sum_ns as f64 / count as f64 / 1e6,
            p50_ms: quantile_ms(0.50),
            p90_ms: quantile_ms(0.90),
            p95_ms: quantile_ms(0.95),
            p99_ms: quantile_ms(0.99),
            max_ms: self.max_ns as f64 / 1e6,
        }
    }
}
