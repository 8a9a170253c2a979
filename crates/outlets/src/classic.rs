//! Classic histograms of Prometheus: counts up to fixed bounds. The text form of Prometheus has no exponential ones.

use plimsoll_core::histogram::Histogram;

/// Upper ends of the buckets, ns, with their label in seconds; a bucket without an end follows.
pub const BOUNDS: [(u64, &str); 25] = [
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (3_000_000, "0.003"),
    (5_000_000, "0.005"),
    (7_500_000, "0.0075"),
    (10_000_000, "0.01"),
    (15_000_000, "0.015"),
    (20_000_000, "0.02"),
    (30_000_000, "0.03"),
    (50_000_000, "0.05"),
    (75_000_000, "0.075"),
    (100_000_000, "0.1"),
    (150_000_000, "0.15"),
    (200_000_000, "0.2"),
    (300_000_000, "0.3"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_000_000_000, "2"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (60_000_000_000, "60"),
];

/// Counts by [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classic {
    /// One count a bound, and one of the times above the last.
    counts: [u64; BOUNDS.len() + 1],
    sum_s: f64,
}

impl Classic {
    /// Adds all times of an HDR histogram. A cell, at most 0.1 % wide, goes whole to the bound of its largest value.
    pub fn add(&mut self, histogram: &Histogram) {
        if histogram.is_empty() {
            return;
        }
        self.sum_s += histogram.mean_ns() / 1e9 * histogram.count() as f64;
        let mut at = 0;
        for (highest_ns, count) in histogram.cells() {
            while BOUNDS.get(at).is_some_and(|(bound_ns, _)| highest_ns > *bound_ns) {
                at += 1;
            }
            self.counts[at] += count;
        }
    }

    /// Number of times up to each bound, ascending.
    pub fn up_to(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let mut sum = 0;
        BOUNDS.iter().zip(&self.counts).map(move |((_, label), count)| {
            sum += count;
            (*label, sum)
        })
    }

    /// Number of all times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all times, s.
    #[must_use]
    pub const fn sum_s(&self) -> f64 {
        self.sum_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_bounds_in_seconds() {
        for (bound_ns, label) in BOUNDS {
            assert_eq!(label.parse::<f64>().unwrap(), bound_ns as f64 / 1e9);
        }
        assert!(BOUNDS.is_sorted());
    }

    #[test]
    fn counts_rise_to_the_number_of_all() {
        let mut histogram = Histogram::new();
        for value_ns in [10_000, 90_000, 1_400_000, 4_000_000_000, 100_000_000_000] {
            histogram.record(value_ns);
        }
        let mut classic = Classic::default();
        classic.add(&histogram);
        classic.add(&histogram);
        let counts: Vec<u64> = classic.up_to().map(|(_, count)| count).collect();
        assert!(counts.is_sorted());
        assert_eq!((counts[0], counts[1], counts[24], classic.count()), (2, 4, 8, 10));
        assert!((classic.sum_s() / 208.003 - 1.0).abs() < 0.01, "{}", classic.sum_s());
    }
}
