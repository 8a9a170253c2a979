//! The cells of a histogram in few bytes: two for most of them.
//!
//! A run that is shown over time keeps a distribution for each of its seconds. Whole histograms would need a gigabyte.

use super::Histogram;
use super::cells::{highest_of, lowest_of};

/// The values of a [`Histogram`], packed. Merging packed histograms is as exact as merging the histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    count: u64,
    /// For each cell that holds a count: its distance from the one before, and the count, both in LEB128.
    bytes: Box<[u8]>,
}

/// A cell of a histogram and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedCell {
    /// Smallest value of the cell, ns.
    pub lowest_ns: u64,
    /// Largest value of the cell, ns.
    pub highest_ns: u64,
    /// Number of values.
    pub count: u64,
}

impl Packed {
    /// Packs the values of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let mut bytes = Vec::new();
        let mut next = 0;
        for (index, count) in histogram.cells.recorded() {
            put((index - next) as u64, &mut bytes);
            put(count, &mut bytes);
            next = index + 1;
        }
        Self { count: histogram.count(), bytes: bytes.into_boxed_slice() }
    }

    /// Returns the values of several, merged.
    #[must_use]
    pub fn sum(several: &[&Self]) -> Self {
        let mut together = Histogram::new();
        several.iter().for_each(|one| one.add_to(&mut together));
        Self::of(&together)
    }

    /// Adds the values to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        self.indices().for_each(|(index, count)| histogram.cells.add(index, count));
    }

    /// Number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns true if there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Memory in use for the cells, bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the values that these quantiles (0 to 1, ascending) of all values do not exceed, ns, as
    /// [`Histogram::quantile_ns`] has them. Each is 0 if there are no values.
    #[must_use]
    pub fn quantiles_ns(&self, quantiles: &[f64]) -> Vec<u64> {
        let wanted = |q: f64| ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut found = vec![0; quantiles.len()];
        let (mut sum, mut at) = (0u64, 0);
        for (index, count) in self.indices() {
            sum = sum.saturating_add(count);
            while at < quantiles.len() && sum >= wanted(quantiles[at]) {
                found[at] = highest_of(index);
                at += 1;
            }
        }
        found
    }

    /// Counts the values in rows: `starts_ns` are the smallest values of the rows, ascending, and a cell belongs to the last row
    /// that starts at or below its smallest value. Returns the rows that hold a count, ascending, with it.
    #[must_use]
    pub fn rows(&self, starts_ns: &[u64]) -> Vec<(usize, u64)> {
        let mut rows: Vec<(usize, u64)> = Vec::new();
        let mut row = 0;
        for (index, count) in self.indices() {
            let lowest_ns = lowest_of(index);
            while starts_ns.get(row + 1).is_some_and(|&start_ns| start_ns <= lowest_ns) {
                row += 1;
            }
            match rows.last_mut() {
                Some((last, sum)) if *last == row => *sum = sum.saturating_add(count),
                _ => rows.push((row, count)),
            }
        }
        rows
    }

    /// The smallest value of the first cell and the largest of the last, ns; `None` without values.
    #[must_use]
    pub fn range_ns(&self) -> Option<(u64, u64)> {
        let first = self.indices().next()?;
        let last = self.indices().last()?;
        Some((lowest_of(first.0), highest_of(last.0)))
    }

    /// The cells that hold a count, ascending.
    #[must_use]
    pub fn cells(&self) -> Vec<PackedCell> {
        let cell = |(index, count)| PackedCell {
            lowest_ns: lowest_of(index),
            highest_ns: highest_of(index),
            count,
        };
        self.indices().map(cell).collect()
    }

    fn indices(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (mut at, mut next) = (0, 0);
        std::iter::from_fn(move || {
            let index = next + get(&self.bytes, &mut at)? as usize;
            next = index + 1;
            Some((index, get(&self.bytes, &mut at)?))
        })
    }
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_cells_are_those_of_the_histogram(
            values in proptest::collection::vec((0u64..5_000_000_000_000, 1u64..2_000_000), 0..200),
            others in proptest::collection::vec((0u64..50_000_000, 1u64..300), 0..200),
        ) {
            let of = |values: &[(u64, u64)]| {
                let mut histogram = Histogram::new();
                values.iter().for_each(|&(value, count)| histogram.record_many(value, count));
                histogram
            };
            let (one, other) = (of(&values), of(&others));
            let packed = Packed::of(&one);
            prop_assert_eq!((packed.count(), packed.is_empty()), (one.count(), one.is_empty()));
            let cells: Vec<_> = packed.cells().iter().map(|cell| (cell.highest_ns, cell.count)).collect();
            prop_assert_eq!(cells, one.cells().collect::<Vec<_>>());
            let quantiles = [0.01, 0.5, 0.9, 0.99, 0.999, 1.0];
            prop_assert_eq!(packed.quantiles_ns(&quantiles), quantiles.map(|q| one.quantile_ns(q)).to_vec());
            prop_assert_eq!(packed.range_ns().map(|range| range.1), (!one.is_empty()).then(|| one.max_ns()));
            let rows = packed.rows(&[0, 1_000_000, 50_000_000]);
            prop_assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), one.count());
            let slow: u64 = rows.iter().filter(|row| row.0 == 2).map(|row| row.1).sum();
            prop_assert_eq!(slow, one.count_above(50_000_000));
            let mut merged = Histogram::new();
            packed.add_to(&mut merged);
            Packed::of(&other).add_to(&mut merged);
            let mut together = one;
            together.merge(&other);
            prop_assert_eq!(merged, together);
        }
    }

    #[test]
    fn a_cell_takes_two_bytes() {
        let mut histogram = Histogram::new();
        (0..1_000).for_each(|i| histogram.record(10_000_000 + i * 20_000));
        let packed = Packed::of(&histogram);
        assert!(packed.bytes() < 2_002, "{}", packed.bytes());
    }
}
