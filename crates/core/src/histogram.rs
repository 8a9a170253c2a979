//! The one histogram shape of plimsoll: HDR, nanoseconds, 1 us to over 1 h, 3 significant digits.
//!
//! Percentiles of several parts are taken from the merged histogram, never averaged. A value below 1 us is
//! kept with the resolution of 1 us; one above [`LARGEST_NS`] is counted as that, so nothing is dropped.

mod cells;
mod compact;
mod encoding;
mod numbers;
mod packed;

use crate::clock::MILLISECOND_NS;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cells::{Cells, highest_of, lowest_of, middle_of};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use thiserror::Error;

pub(crate) use compact::{put_count, take_count};
pub use packed::{Packed, PackedCell};

/// Smallest value that is distinguished, ns.
pub const SMALLEST_NS: u64 = 1_000;
/// Largest value kept, ns: a little over one hour.
pub const LARGEST_NS: u64 = 3_700_000_000_000;
/// The most values of a histogram that its encoded form can hold.
const COUNT_MAX: u64 = i64::MAX as u64;
/// Significant decimal digits.
pub const DIGITS: u8 = 3;

/// An HDR histogram of nanoseconds with plimsoll's bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    cells: Cells,
}

/// Equal values that came one behind the other and are not in their histogram yet: requests that went out together and came
/// back together have the same times, and enter it together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    value_ns: u64,
    count: u64,
}

impl Run {
    /// Counts one value, ns. If it differs from the values before it, those are added to `histogram` first.
    #[inline]
    pub fn record(&mut self, value_ns: u64, histogram: &mut Histogram) {
        if value_ns != self.value_ns {
            self.flush(histogram);
            self.value_ns = value_ns;
        }
        self.count += 1;
    }

    /// Adds the values to `histogram`, which must be the same one in all calls.
    #[inline]
    pub fn flush(&mut self, histogram: &mut Histogram) {
        if self.count > 0 {
            histogram.record_many(self.value_ns, std::mem::take(&mut self.count));
        }
    }

    /// Returns true if all values are in their histogram.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The form of a histogram without values: most classes have no failed request in most seconds.
static EMPTY: LazyLock<String> = LazyLock::new(|| Histogram::new().pack());

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
    /// An empty histogram. Values up to half a millisecond take 8 KB, and each doubling of the largest value 8 KB more, at
    /// most 190 KB.
    #[must_use]
    pub const fn new() -> Self {
        Self { cells: Cells::new() }
    }

    /// Counts one value in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.cells.record(value_ns, 1);
    }

    /// Counts the same value several times, ns.
    #[inline]
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        self.cells.record(value_ns, count);
    }

    /// Adds all values of another histogram, exactly.
    pub fn merge(&mut self, other: &Histogram) {
        self.cells.merge(&other.cells);
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
    }

    /// Number of values that were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.cells.total()
    }

    /// Returns true if nothing was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cells.total() == 0
    }

    /// The smallest value, ns; 0 when empty.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        self.cells.first().map_or(0, lowest_of)
    }

    /// The largest value, ns, to three digits; 0 when empty.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.cells.last().map_or(0, highest_of)
    }

    /// The arithmetic mean, ns; 0 when empty.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        let total = self.count() as f64;
        self.cells
            .recorded()
            .fold(0.0, |sum, (index, count)| sum + middle_of(index) as f64 * count as f64 / total)
    }

    /// The standard deviation, ns; 0 when empty.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let mean = self.mean_ns();
        let squares = self.cells.recorded().fold(0.0, |sum, (index, count)| {
            let from_mean = middle_of(index) as f64 - mean;
            sum + from_mean * from_mean * count as f64
        });
        (squares / self.count() as f64).sqrt()
    }

    /// The value that `quantile` (0 to 1) of all values do not exceed, ns; 0 when empty.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let quantile = quantile.min(1.0);
        let wanted = ((quantile * self.count() as f64).ceil() as u64).max(1);
        match self.cells.at_rank(wanted) {
            Some(index) if quantile == 0.0 => lowest_of(index),
            Some(index) => highest_of(index),
            None => 0,
        }
    }

    /// The value at this rank from the lowest one, which is 1, ns; 0 if there are fewer. A rank cannot be written as a share of the
    /// count without a rounding error, which may make it the next one.
    #[must_use]
    pub fn at_rank_ns(&self, rank: u64) -> u64 {
        self.cells.at_rank(rank.max(1)).map_or(0, highest_of)
    }

    /// Number of values that exceed `limit_ns`, to the histogram's resolution.
    #[must_use]
    pub fn count_above(&self, limit_ns: u64) -> u64 {
        self.count() - self.cells.up_to(limit_ns.clamp(SMALLEST_NS, LARGEST_NS))
    }

    /// All non-empty cells as (highest value in ns, count), ascending.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.cells.recorded().map(|(index, count)| (highest_of(index), count))
    }

    /// The same values in the library's own histogram.
    fn to_hdr(&self) -> hdrhistogram::Histogram<u64> {
        let mut hdr = hdrhistogram::Histogram::new_with_bounds(SMALLEST_NS, LARGEST_NS, DIGITS)
            .expect("the bounds are constants that the library accepts");
        for (index, count) in self.cells.recorded() {
            hdr.saturating_record_n(lowest_of(index), count.min(COUNT_MAX));
        }
        hdr
    }

    /// HdrHistogram's V2 form, deflated, in base64: what its tools call an encoded histogram.
    #[must_use]
    pub fn encode(&self) -> String {
        if self.is_empty() { EMPTY.clone() } else { self.pack() }
    }

    fn pack(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.to_hdr(), &mut bytes)
            .expect("writing to memory cannot fail");
        STANDARD.encode(bytes)
    }

    /// The same form with its data stored instead of packed: a little longer, and made in a tenth of the time.
    #[must_use]
    pub fn encode_stored(&self) -> String {
        STANDARD.encode(encoding::stored(&self.cells))
    }

    /// Reads what [`Histogram::encode`] or [`Histogram::encode_stored`] wrote.
    ///
    /// # Errors
    /// When the text is not base64, not a V2 histogram, or one of other bounds.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        let mut own = Self::new();
        own.add_encoded(text)?;
        Ok(own)
    }

    /// Adds all values of an encoded histogram, which takes no memory of its own. After an error some of them may have been
    /// added.
    ///
    /// # Errors
    /// As [`Histogram::decode`].
    pub fn add_encoded(&mut self, text: &str) -> Result<(), DecodeError> {
        if text == EMPTY.as_str() {
            return Ok(());
        }
        let bytes = STANDARD.decode(text).map_err(|e| DecodeError(e.to_string()))?;
        // Histograms of plimsoll itself are read cell by cell, in a tenth of the time.
        if let Some(read) = encoding::read(&mut self.cells, &bytes) {
            return read.map_err(|problem| DecodeError(problem.to_owned())).and(self.countable());
        }
        let bytes = encoding::sound(&bytes).map_err(|problem| DecodeError(problem.to_owned()))?;
        let stored: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|e| DecodeError(e.to_string()))?;
        if stored.max() > highest_of(cells::LAST) {
            return Err(DecodeError("a value is larger than the histogram's range".to_owned()));
        }
        for value in stored.iter_recorded() {
            self.record_many(value.value_iterated_to(), value.count_at_value());
        }
        self.countable()
    }

    /// Refuses more values than the encoded form can hold: a foreign text may claim as many in each cell.
    fn countable(&self) -> Result<(), DecodeError> {
        match self.count() {
            ..=COUNT_MAX => Ok(()),
            _ => Err(DecodeError("the histogram claims more than 2^63 - 1 values".to_owned())),
        }
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

/// Adds what [`encode_some`] wrote.
///
/// # Errors
/// As [`Histogram::decode`].
pub fn add_some(histogram: &mut Histogram, text: &str) -> Result<(), DecodeError> {
    if text.is_empty() { Ok(()) } else { histogram.add_encoded(text) }
}

/// A latency distribution in milliseconds, as records and reports show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySummary {
    /// Requests.
    pub count: u64,
    /// Shortest, ms.
    pub min: f64,
    /// Mean, ms.
    pub mean: f64,
    /// Median, ms.
    pub p50: f64,
    /// 90th percentile, ms.
    pub p90: f64,
    /// 95th percentile, ms.
    pub p95: f64,
    /// 99th percentile, ms.
    pub p99: f64,
    /// 99.9th percentile, ms.
    pub p99_9: f64,
    /// Longest, ms.
    pub max: f64,
}

#[cfg(test)]
mod tests;
