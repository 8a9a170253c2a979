//! The one histogram shape of plimsoll: HDR, nanoseconds, 1 us to over 1 h, 3 significant digits.
//!
//! Percentiles of several parts are taken from the merged histogram, never averaged. A value below 1 us is
//! kept with the resolution of 1 us; one above [`LARGEST_NS`] is counted as that, so nothing is dropped.

use crate::clock::MILLISECOND_NS;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Values are distinguished from here on.
pub const SMALLEST_NS: u64 = 1_000;
/// The largest value kept, a little over one hour.
pub const LARGEST_NS: u64 = 3_700_000_000_000;
/// Significant decimal digits.
pub const DIGITS: u8 = 3;

/// An HDR histogram of nanoseconds with plimsoll's bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    inner: hdrhistogram::Histogram<u64>,
}

/// Equal values that came one behind the other and are not in their histogram yet: requests that went out together and came
/// back together have the same times, and enter it together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    value_ns: u64,
    count: u64,
}

impl Run {
    /// Counts one value, ns. Those before it enter `histogram` when it is another.
    #[inline]
    pub fn record(&mut self, value_ns: u64, histogram: &mut Histogram) {
        if value_ns != self.value_ns {
            self.flush(histogram);
            self.value_ns = value_ns;
        }
        self.count += 1;
    }

    /// Lets the values enter `histogram`, which had better be the one of all of them.
    #[inline]
    pub fn flush(&mut self, histogram: &mut Histogram) {
        if self.count > 0 {
            histogram.record_many(self.value_ns, std::mem::take(&mut self.count));
        }
    }

    /// Whether all values are in their histogram.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A stored histogram that cannot be read.
#[derive(Debug, Error)]
#[error(
    "a stored histogram cannot be decoded ({0}); the record was damaged or written by another tool"
)]
pub struct DecodeError(String);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram, about 190 KB, that never grows.
    #[must_use]
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(SMALLEST_NS, LARGEST_NS, DIGITS)
            .expect("the bounds are constants that the library accepts");
        Self { inner }
    }

    /// Counts one value in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.inner.saturating_record(value_ns);
    }

    /// Counts the same value several times, ns.
    #[inline]
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        self.inner.saturating_record_n(value_ns, count);
    }

    /// Adds all values of another histogram, exactly.
    pub fn merge(&mut self, other: &Histogram) {
        if !other.is_empty() {
            self.inner.add(&other.inner).expect("both histograms have the same bounds");
        }
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.inner.reset();
        }
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The smallest value, ns; 0 when empty.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.is_empty() { 0 } else { self.inner.min() }
    }

    /// The largest value, ns, to three digits; 0 when empty.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        if self.is_empty() { 0 } else { self.inner.max() }
    }

    /// The arithmetic mean, ns; 0 when empty.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.inner.mean() }
    }

    /// The standard deviation, ns; 0 when empty.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.inner.stdev() }
    }

    /// The value that `quantile` (0 to 1) of all values do not exceed, ns; 0 when empty.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.is_empty() { 0 } else { self.inner.value_at_quantile(quantile) }
    }

    /// How many values exceed `limit_ns`, to the histogram's resolution.
    #[must_use]
    pub fn count_above(&self, limit_ns: u64) -> u64 {
        let limit = limit_ns.clamp(SMALLEST_NS, LARGEST_NS);
        self.count() - self.inner.count_between(0, limit)
    }

    /// All non-empty cells as (highest value in ns, count), ascending.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()))
    }

    /// The library's own histogram, for writers of its interchange formats.
    #[must_use]
    pub fn as_hdr(&self) -> &hdrhistogram::Histogram<u64> {
        &self.inner
    }

    /// HdrHistogram's V2 form, deflated, in base64: what its tools call an encoded histogram.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.inner, &mut bytes)
            .expect("writing to memory cannot fail");
        STANDARD.encode(bytes)
    }

    /// Reads what [`Histogram::encode`] wrote.
    ///
    /// # Errors
    /// When the text is not base64, not a V2 histogram, or one of other bounds.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        let bytes = STANDARD.decode(text).map_err(|e| DecodeError(e.to_string()))?;
        let stored: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| DecodeError(e.to_string()))?;
        let mut own = Self::new();
        own.inner.add(&stored).map_err(|e| DecodeError(e.to_string()))?;
        Ok(own)
    }

    /// The numbers that reports print, in milliseconds.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let ms = |ns: u64| ns as f64 / MILLISECOND_NS as f64;
        LatencySummary {
            count: self.count(),
            min: ms(self.min_ns()),
            mean: self.mean_ns() / MILLISECOND_NS as f64,
            p50: ms(self.quantile_ns(0.50)),
            p90: ms(self.quantile_ns(0.90)),
            p95: ms(self.quantile_ns(0.95)),
            p99: ms(self.quantile_ns(0.99)),
            p99_9: ms(self.quantile_ns(0.999)),
            max: ms(self.max_ns()),
        }
    }
}

/// [`Histogram::encode`], or nothing for an empty one.
#[must_use]
pub fn encode_some(histogram: &Histogram) -> String {
    if histogram.is_empty() { String::new() } else { histogram.encode() }
}

/// Reads what [`encode_some`] wrote.
///
/// # Errors
/// As [`Histogram::decode`].
pub fn decode_some(text: &str) -> Result<Histogram, DecodeError> {
    if text.is_empty() { Ok(Histogram::new()) } else { Histogram::decode(text) }
}

/// A latency distribution in milliseconds, as records and reports show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LatencySummary {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_hold_three_digits(mut values in proptest::collection::vec(1_000u64..3_600_000_000_000, 1..200)) {
            let mut histogram = Histogram::new();
            for &v in &values {
                histogram.record(v);
            }
            values.sort_unstable();
            for q in [0.5, 0.9, 0.99, 1.0] {
                let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1] as f64;
                let shown = histogram.quantile_ns(q) as f64;
                prop_assert!((shown - exact).abs() <= exact * 1.1e-3 + 512.0, "{shown} {exact}");
            }
        }

        #[test]
        fn merging_is_counting_together(a in proptest::collection::vec(0u64..10_000_000_000, 0..100),
                                        b in proptest::collection::vec(0u64..10_000_000_000, 0..100)) {
            let fill = |values: &[u64]| {
                let mut h = Histogram::new();
                values.iter().for_each(|&v| h.record(v));
                h
            };
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            let together = fill(&[a, b].concat());
            prop_assert_eq!(merged.cells().collect::<Vec<_>>(), together.cells().collect::<Vec<_>>());
            let read = Histogram::decode(&merged.encode()).unwrap();
            prop_assert_eq!(read.cells().collect::<Vec<_>>(), merged.cells().collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn runs_of_values_are_counted_as_each_of_them(runs in proptest::collection::vec((0u64..5_000_000_000_000, 1u64..9), 0..60),
                                                      few in proptest::collection::vec(0u64..3, 0..200)) {
            let each = runs.iter().flat_map(|&(value, times)| std::iter::repeat_n(value, times as usize));
            let (mut one_by_one, mut in_runs) = (Histogram::new(), Histogram::new());
            let mut run = Run::default();
            for value in each.chain(few.iter().copied()) {
                one_by_one.record(value);
                run.record(value, &mut in_runs);
            }
            run.flush(&mut in_runs);
            prop_assert!(run.is_empty());
            prop_assert_eq!(one_by_one, in_runs);
        }
    }

    #[test]
    fn nothing_slow_is_dropped() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        histogram.record(10_000_000);
        assert_eq!(histogram.count(), 2);
        assert!(histogram.max_ns() >= LARGEST_NS);
        assert_eq!(histogram.count_above(20_000_000), 1);
    }
}
