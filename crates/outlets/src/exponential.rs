//! Exponential histograms as OpenTelemetry defines them, at scale 6, filled from HDR histograms.
//!
//! Bucket `i` holds the times in (b^i, b^(i+1)] seconds, with b = 2^(1/64): a bucket is 1.09 % wide. A cell of the HDR
//! histogram is at most 0.1 % wide and goes whole into the bucket of its largest value, the same value that percentiles of
//! the record are taken from. A percentile that is taken from the buckets lies in the same bucket as that of the record: it is off
//! by 1.09 % at most, and by half of that if a reader takes the middle of a bucket. Counts are exact.

use plimsoll_core::histogram::{Histogram, LARGEST_NS};

/// Scale of the buckets.
pub const SCALE: i32 = 6;
/// Buckets for each doubling of the time.
const PER_DOUBLING: f64 = 64.0;

/// Index of the bucket of the shortest time that a histogram tells from 0, 512 ns.
const FIRST: i32 = -1_338;

/// A histogram of times with exponential buckets. It grows to at most [`Exponential::BUCKETS_MAX`] buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exponential {
    /// Counts from bucket [`FIRST`] on.
    counts: Vec<u64>,
    count: u64,
    sum_s: f64,
    min_s: f64,
    max_s: f64,
}

/// Index of the bucket of a time, ns.
fn index_of(value_ns: u64) -> i32 {
    let seconds = value_ns.clamp(512, LARGEST_NS) as f64 / 1e9;
    // Buckets include their upper end.
    (seconds.log2() * PER_DOUBLING).ceil() as i32 - 1
}

impl Exponential {
    /// Most buckets of one histogram: 512 ns to over an hour, 18 kB.
    pub const BUCKETS_MAX: usize = 2_200;

    /// Adds all times of an HDR histogram.
    pub fn add(&mut self, histogram: &Histogram) {
        if histogram.is_empty() {
            return;
        }
        let (min_s, max_s) = (histogram.min_ns() as f64 / 1e9, histogram.max_ns() as f64 / 1e9);
        self.min_s = if self.count == 0 { min_s } else { self.min_s.min(min_s) };
        self.max_s = self.max_s.max(max_s);
        self.sum_s += histogram.mean_ns() / 1e9 * histogram.count() as f64;
        for (highest_ns, count) in histogram.cells() {
            let at = usize::try_from(index_of(highest_ns) - FIRST).unwrap_or(0);
            let at = at.min(Self::BUCKETS_MAX - 1);
            if self.counts.len() <= at {
                self.counts.resize(at + 1, 0);
            }
            self.counts[at] += count;
            self.count += count;
        }
    }

    /// Number of times.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all times, s; each time to the three digits of the HDR histogram.
    #[must_use]
    pub const fn sum_s(&self) -> f64 {
        self.sum_s
    }

    /// Shortest and longest time, s; none when empty.
    #[must_use]
    pub fn range_s(&self) -> Option<(f64, f64)> {
        (self.count > 0).then_some((self.min_s, self.max_s))
    }

    /// Index of the first bucket that holds a time, and the counts from there to the last one.
    #[must_use]
    pub fn buckets(&self) -> (i32, &[u64]) {
        match self.counts.iter().position(|&count| count > 0) {
            Some(first) => (FIRST + first as i32, &self.counts[first..]),
            None => (0, &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The upper end of a bucket, s.
    fn upper_s(index: i32) -> f64 {
        (f64::from(index + 1) / PER_DOUBLING).exp2()
    }

    /// The quantile as Prometheus takes it from such buckets: by rank, exponentially inside a bucket.
    fn quantile_s(buckets: (i32, &[u64]), quantile: f64) -> f64 {
        let total: u64 = buckets.1.iter().sum();
        let rank = quantile * total as f64;
        let mut before = 0.0;
        for (index, &count) in (buckets.0..).zip(buckets.1) {
            if before + count as f64 >= rank && count > 0 {
                let within = (rank - before) / count as f64;
                return upper_s(index - 1) * (within / PER_DOUBLING).exp2();
            }
            before += count as f64;
        }
        0.0
    }

    proptest! {
        #[test]
        fn every_time_is_in_the_bucket_that_contains_it(value_ns in 600u64..3_600_000_000_000) {
            let mut histogram = Histogram::new();
            histogram.record(value_ns);
            let mut buckets = Exponential::default();
            buckets.add(&histogram);
            let (index, counts) = buckets.buckets();
            prop_assert_eq!(counts, &[1u64][..]);
            let shown_s = histogram.max_ns() as f64 / 1e9;
            prop_assert!(upper_s(index - 1) <= shown_s * (1.0 + 1e-12), "{index} {value_ns}");
            prop_assert!(shown_s <= upper_s(index) * (1.0 + 1e-12), "{index} {value_ns}");
        }

        #[test]
        fn percentiles_of_the_buckets_are_within_a_bucket_of_the_records(
            values in proptest::collection::vec(2_000u64..60_000_000_000, 100..600),
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            let mut buckets = Exponential::default();
            buckets.add(&histogram);
            prop_assert_eq!(buckets.count(), values.len() as u64);
            for quantile in [0.5, 0.9, 0.99] {
                let kept_s = histogram.quantile_ns(quantile) as f64 / 1e9;
                let taken_s = quantile_s(buckets.buckets(), quantile);
                prop_assert!((taken_s / kept_s - 1.0).abs() < 0.0110, "{taken_s} {kept_s}");
            }
        }
    }

    #[test]
    fn the_shortest_and_the_longest_time_have_buckets() {
        let mut histogram = Histogram::new();
        histogram.record(0);
        histogram.record(u64::MAX);
        let mut buckets = Exponential::default();
        buckets.add(&histogram);
        let (first, counts) = buckets.buckets();
        assert_eq!((first, counts.len() < Exponential::BUCKETS_MAX), (FIRST, true));
        assert_eq!((counts[0], counts[counts.len() - 1]), (1, 1));
    }

    #[test]
    fn what_is_added_in_parts_is_as_added_at_once() {
        let fill = |from: u64, to: u64| {
            let mut histogram = Histogram::new();
            (from..to).for_each(|value| histogram.record(value * 1_000_000));
            histogram
        };
        let (mut parts, mut whole) = (Exponential::default(), Exponential::default());
        parts.add(&fill(1, 50));
        parts.add(&Histogram::new());
        parts.add(&fill(50, 200));
        whole.add(&fill(1, 200));
        assert_eq!(parts.buckets(), whole.buckets());
        assert_eq!((parts.count(), parts.range_s()), (199, whole.range_s()));
        assert!((parts.sum_s() - whole.sum_s()).abs() < 1e-9);
    }
}
