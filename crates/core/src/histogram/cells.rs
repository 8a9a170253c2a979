//! The cells of a histogram: HdrHistogram's layout for one pair of bounds, and a note of which parts are in use.
//!
//! A histogram has room for any time from a microsecond to an hour, and a second of one class fills little of it. The cost of
//! passes over a histogram (emptying, adding, writing) depends on the recorded values, not on the possible ones:
//! with 60 classes a second would otherwise move a hundred megabytes.

use super::numbers::take;
use super::{LARGEST_NS, SMALLEST_NS};
use crate::rng::splitmix64;
use std::sync::LazyLock;

/// log2 of the unit: values are kept in steps of 512 ns, the power of two below [`SMALLEST_NS`].
const UNIT_BITS: u32 = SMALLEST_NS.ilog2();
/// log2 of half the steps of a bucket; 2048 steps hold three decimal digits.
const HALF_BITS: u32 = 10;
const HALF: u64 = 1 << HALF_BITS;
/// The bucket of [`LARGEST_NS`]; each is twice as wide as the one before.
const LAST_BUCKET: usize = (LARGEST_NS.ilog2() - UNIT_BITS - HALF_BITS) as usize;
/// Number of cells. The first bucket has twice as many as the others.
const CELLS: usize = (LAST_BUCKET + 2) << HALF_BITS;
/// The last cell.
pub(super) const LAST: usize = CELLS - 1;
/// log2 of the cells of a block.
const BLOCK_BITS: usize = 6;
pub(super) const BLOCK: usize = 1 << BLOCK_BITS;
const WORDS: usize = CELLS / BLOCK / 64;
/// Number of blocks.
pub(super) const BLOCKS: usize = WORDS * 64;

/// Two odd random numbers of each cell, always the same.
static FACTORS: LazyLock<Box<[[u64; 2]]>> = LazyLock::new(|| {
    let factor = |number: usize| splitmix64(number as u64) | 1;
    (0..CELLS).map(|cell| [factor(2 * cell), factor(2 * cell + 1)]).collect()
});

/// Counts by cell.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// As long as the largest value needs, so that copies cost little: most histograms have no value of a second or more, and those
    /// of failed requests mostly have none.
    counts: Vec<u64>,
    /// A bit for each block that holds a count.
    used: [u64; WORDS],
    total: u64,
}

/// The cell of a value, ns.
#[inline]
fn index_of(value_ns: u64) -> usize {
    let first_bucket = (2 * HALF - 1) << UNIT_BITS;
    let bucket =
        (u64::BITS - UNIT_BITS - HALF_BITS - 1) - (value_ns | first_bucket).leading_zeros();
    let step = value_ns >> (bucket + UNIT_BITS);
    (u64::from(bucket) << HALF_BITS) as usize + step as usize
}

/// The same for values that have no cell of their own: nothing is dropped.
#[inline]
fn index_within(value_ns: u64) -> usize {
    let index = index_of(value_ns);
    if index < CELLS { index } else { index_of(LARGEST_NS) }
}

/// The smallest value of a cell, ns, and how many values share it.
fn values_of(index: usize) -> (u64, u64) {
    let bucket = (index >> HALF_BITS).saturating_sub(1) as u32;
    let step = index as u64 - (u64::from(bucket) << HALF_BITS);
    (step << (bucket + UNIT_BITS), 1 << (bucket + UNIT_BITS))
}

/// The largest value of a cell, ns.
pub(super) fn highest_of(index: usize) -> u64 {
    let (lowest, width) = values_of(index);
    lowest + width - 1
}

/// The smallest value of a cell, ns.
pub(super) fn lowest_of(index: usize) -> u64 {
    values_of(index).0
}

/// The middle of a cell, ns.
pub(super) fn middle_of(index: usize) -> u64 {
    let (lowest, width) = values_of(index);
    lowest + width / 2
}

impl Cells {
    pub const fn new() -> Self {
        Self { counts: Vec::new(), used: [0; WORDS], total: 0 }
    }

    /// Takes the memory for the cell at `index`, and for all others of its bucket.
    #[cold]
    fn provide(&mut self, index: usize) {
        let length = ((index >> HALF_BITS) + 1) << HALF_BITS;
        self.counts.reserve_exact(length.saturating_sub(self.counts.len()));
        self.counts.resize(length, 0);
    }

    #[inline]
    pub fn record(&mut self, value_ns: u64, count: u64) {
        if count > 0 {
            self.add(index_within(value_ns), count);
        }
    }

    /// Adds to the cell at `index`, which must be one of a histogram.
    #[inline]
    pub fn add(&mut self, index: usize, count: u64) {
        let block = index >> BLOCK_BITS;
        self.used[block / 64] |= 1 << (block % 64);
        if index >= self.counts.len() {
            self.provide(index);
        }
        self.counts[index] = self.counts[index].saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    pub fn merge(&mut self, other: &Cells) {
        if other.is_empty() {
            return;
        }
        if other.counts.len() > self.counts.len() {
            self.provide(other.counts.len() - 1);
        }
        for block in other.blocks() {
            let (mine, theirs) = (&mut self.counts[block.clone()], &other.counts[block]);
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = mine.saturating_add(*theirs);
            }
        }
        for (mine, theirs) in self.used.iter_mut().zip(&other.used) {
            *mine |= theirs;
        }
        self.total = self.total.saturating_add(other.total);
    }

    pub fn clear(&mut self) {
        let used = std::mem::take(&mut self.used);
        for block in blocks_of(used) {
            self.counts[block].fill(0);
        }
        self.total = 0;
    }

    pub const fn total(&self) -> u64 {
        self.total
    }

    const fn is_empty(&self) -> bool {
        self.total == 0
    }

    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        blocks_of(self.used)
    }

    /// The blocks that hold a count, ascending, each with its number.
    pub fn filled(&self) -> impl Iterator<Item = (usize, &[u64])> + '_ {
        self.blocks().map(|block| (block.start >> BLOCK_BITS, &self.counts[block]))
    }

    /// Adds to the cells of a block, which must be one of [`BLOCKS`].
    pub fn add_block(&mut self, number: usize, counts: &[u64; BLOCK]) {
        let sum = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        // A block is in use if it holds a count.
        if sum == 0 {
            return;
        }
        self.used[number / 64] |= 1 << (number % 64);
        self.total = self.total.saturating_add(sum);
        let from = number << BLOCK_BITS;
        if from >= self.counts.len() {
            self.provide(from);
        }
        for (own, count) in self.counts[from..from + BLOCK].iter_mut().zip(counts) {
            *own = own.saturating_add(*count);
        }
    }

    /// Two sums of the counts, each count times a fixed random number of its cell, modulo 2^64.
    pub fn fingerprint(&self) -> [u64; 2] {
        let (mut first, mut second) = (0u64, 0u64);
        for block in self.blocks() {
            let (counts, factors) = (&self.counts[block.clone()], &FACTORS[block]);
            // Plain steps: adapters of iterators are not always compiled into one loop, which made this five times slower.
            for at in 0..counts.len().min(factors.len()) {
                first = first.wrapping_add(counts[at].wrapping_mul(factors[at][0]));
                second = second.wrapping_add(counts[at].wrapping_mul(factors[at][1]));
            }
        }
        [first, second]
    }

    /// Adds the counts of a V2 form. After an error some of them may have been added.
    pub fn add_v2(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        // What changes with each count is kept at hand: a processor waits for a word that it has just written.
        let (mut at, mut next, mut total) = (0, 0usize, self.total);
        let (mut word, mut bits) = (0, 0u64);
        let read = loop {
            if at == bytes.len() {
                break Ok(());
            }
            let Some(number) = take(bytes, &mut at) else { break Err("a count is cut off") };
            if number < 0 {
                // This many empty cells.
                let empty = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
                next = next.saturating_add(empty);
                continue;
            }
            if number > 0 {
                if next >= self.counts.len() {
                    if next > LAST {
                        break Err("a value is larger than the histogram's range");
                    }
                    self.provide(next);
                }
                let cell = &mut self.counts[next];
                *cell = cell.saturating_add(number.unsigned_abs());
                total = total.saturating_add(number.unsigned_abs());
                let block = next >> BLOCK_BITS;
                if block / 64 != word {
                    self.used[word] |= std::mem::take(&mut bits);
                    word = block / 64;
                }
                bits |= 1 << (block % 64);
            }
            next = next.saturating_add(1);
        };
        self.used[word] |= bits;
        self.total = total;
        read
    }

    /// The cells that hold a count, ascending, with it.
    pub fn recorded(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.blocks()
            .flat_map(|block| block.clone().zip(&self.counts[block]))
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (index, *count))
    }

    /// The first cell at which the sum of the counts, from the lowest cell on, is at least `rank`.
    pub fn at_rank(&self, rank: u64) -> Option<usize> {
        let mut below = 0u64;
        let is_exact = self.total < u64::MAX;
        for block in self.blocks() {
            let counts = &self.counts[block.clone()];
            // Sums of blocks are found many cells at a time. They cannot overflow unless the sum of all did.
            if is_exact {
                let sum = counts.iter().fold(0u64, |sum, count| sum.wrapping_add(*count));
                if below + sum < rank {
                    below += sum;
                    continue;
                }
            }
            for (index, count) in block.zip(counts) {
                below = below.saturating_add(*count);
                if *count > 0 && below >= rank {
                    return Some(index);
                }
            }
        }
        None
    }

    /// The first cell that holds a count.
    pub fn first(&self) -> Option<usize> {
        self.recorded().next().map(|(index, _)| index)
    }

    /// The last cell that holds a count.
    pub fn last(&self) -> Option<usize> {
        let (word, bits) = self.used.iter().enumerate().rfind(|(_, bits)| **bits != 0)?;
        let block = (word * 64 + bits.ilog2() as usize) << BLOCK_BITS;
        (block..block + BLOCK).rfind(|&index| self.counts[index] > 0)
    }

    /// Returns how many counts lie in the cells up to that of a value.
    pub fn up_to(&self, value_ns: u64) -> u64 {
        let last = index_within(value_ns);
        let within = self.recorded().take_while(|(index, _)| *index <= last);
        within.fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
    }
}

/// Cells of the blocks whose bits are set.
fn blocks_of(used: [u64; WORDS]) -> impl Iterator<Item = std::ops::Range<usize>> {
    used.into_iter().enumerate().flat_map(|(word, mut bits)| {
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            let from = (word * 64 + bit) << BLOCK_BITS;
            Some(from..from + BLOCK)
        })
    })
}

impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        self.total == other.total && self.recorded().eq(other.recorded())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_for_the_first_count() {
        let mut cells = Cells::new();
        cells.merge(&Cells::new());
        cells.add_block(3, &[0; BLOCK]);
        cells.record(1_000, 0);
        cells.clear();
        assert_eq!(cells.clone().counts.capacity(), 0);
        assert_eq!((cells.at_rank(1), cells.first(), cells.last()), (None, None, None));
        cells.record(1_000, 1);
        assert_eq!(cells.counts.capacity(), 1024);
        let mut filled = Cells::new();
        filled.merge(&cells);
        assert_eq!(filled, cells);
    }

    #[test]
    fn memory_grows_with_the_largest_value_and_keeps_what_was_counted() {
        let mut cells = Cells::new();
        for (value_ns, length) in [(1_000, 1024), (1_000_000, 2048), (LARGEST_NS, CELLS)] {
            cells.record(value_ns, 1);
            assert_eq!((cells.counts.len(), cells.counts.capacity()), (length, length));
        }
        assert_eq!(cells.recorded().map(|(_, count)| count).sum::<u64>(), 3);
        let mut short = Cells::new();
        short.record(1_000, 1);
        // A histogram is the same however long its memory is.
        let mut long = cells.clone();
        long.clear();
        long.record(1_000, 1);
        assert_eq!(short, long);
        short.merge(&cells);
        long.merge(&cells);
        assert_eq!(short, long);
        assert_eq!(short.total(), 4);
    }

    #[test]
    fn ranks_are_found_where_sums_of_counts_overflow() {
        let mut cells = Cells::new();
        cells.record(1_000, 5);
        cells.record(2_000_000, u64::MAX - 9);
        cells.record(3_000_000, 7);
        assert_eq!(cells.total(), u64::MAX);
        let at = |rank| cells.at_rank(rank).map(lowest_of).unwrap();
        assert!(at(5) < 2_000 && at(6) > 1_990_000);
        assert!(at(u64::MAX - 4) < 2_010_000 && at(u64::MAX) > 2_990_000);
    }
}
