//! A histogram inside a message of bytes.
//!
//! The V2 form has a number for each cell and for each gap between cells. With thousands of values in a second it is long, and most of
//! the time that reading takes are wrong guesses of what comes next. Here the cells come in blocks of 64, and each cell of a block has
//! the same number of bits.

use super::cells::{BLOCK, BLOCKS};
use super::{DecodeError, Histogram, numbers};

/// Mark of a block that is a list of cells and counts. Smaller marks are the logarithm of the bits of a cell.
const LIST: u8 = 7;

impl Histogram {
    /// Two sums of the counts, each times a number of its cell, modulo 2^64: of two histograms together they are the sum of those of
    /// each.
    pub(crate) fn fingerprint(&self) -> [u64; 2] {
        self.cells.fingerprint()
    }

    /// Appends the blocks that hold a count: how many, and of each the number of blocks since the one before, a mark, and its counts.
    pub(crate) fn put_compact(&self, out: &mut Vec<u8>) {
        put_count(self.cells.filled().count() as u64, out);
        let mut next = 0;
        for (number, counts) in self.cells.filled() {
            put_count((number - next) as u64, out);
            next = number + 1;
            put_block(counts, out);
        }
    }

    /// Adds what [`Histogram::put_compact`] wrote, and leaves what follows it. After an error some values may have been added.
    pub(crate) fn add_compact(&mut self, bytes: &mut &[u8]) -> Result<(), DecodeError> {
        let (mut next, mut counts) = (0usize, [0; BLOCK]);
        for _ in 0..take_count(bytes)? {
            let gap = usize::try_from(take_count(bytes)?).unwrap_or(usize::MAX);
            let number = next.saturating_add(gap);
            if number >= BLOCKS {
                return Err(DecodeError::new("a value is larger than the histogram's range"));
            }
            take_block(bytes, &mut counts)?;
            self.cells.add_block(number, &counts);
            next = number + 1;
        }
        Ok(())
    }
}

fn put_block(counts: &[u64], out: &mut Vec<u8>) {
    let largest = counts.iter().copied().max().unwrap_or(0);
    let bits = (u64::BITS - largest.leading_zeros()).max(1).next_power_of_two();
    let begin = out.len();
    out.push(LIST);
    put_list(counts, out);
    if out.len() - begin <= BLOCK / 8 * bits as usize {
        return;
    }
    out.truncate(begin);
    out.push(bits.ilog2() as u8);
    for of_word in counts.chunks(64 / bits as usize) {
        let places = (0..64).step_by(bits as usize);
        let placed = of_word.iter().zip(places).map(|(count, place)| count << place);
        out.extend(placed.fold(0, |word, count| word | count).to_le_bytes());
    }
}

fn put_list(counts: &[u64], out: &mut Vec<u8>) {
    out.push(counts.iter().filter(|count| **count > 0).count() as u8);
    for (cell, count) in (0u8..).zip(counts).filter(|(_, count)| **count > 0) {
        out.push(cell);
        put_count(*count, out);
    }
}

fn take_block(bytes: &mut &[u8], counts: &mut [u64; BLOCK]) -> Result<(), DecodeError> {
    match take_byte(bytes)? {
        0 => unpack::<1>(bytes, counts),
        1 => unpack::<2>(bytes, counts),
        2 => unpack::<4>(bytes, counts),
        3 => unpack::<8>(bytes, counts),
        4 => unpack::<16>(bytes, counts),
        5 => unpack::<32>(bytes, counts),
        6 => unpack::<64>(bytes, counts),
        LIST => take_list(bytes, counts),
        _ => Err(DecodeError::new("a block has an unknown mark")),
    }
}

fn take_list(bytes: &mut &[u8], counts: &mut [u64; BLOCK]) -> Result<(), DecodeError> {
    counts.fill(0);
    for _ in 0..take_byte(bytes)? {
        let cell = counts.get_mut(usize::from(take_byte(bytes)?));
        let cell = cell.ok_or_else(|| DecodeError::new("a block has no such cell"))?;
        *cell = take_count(bytes)?;
    }
    Ok(())
}

/// The counts of a block, `BITS` each.
fn unpack<const BITS: usize>(
    bytes: &mut &[u8],
    counts: &mut [u64; BLOCK],
) -> Result<(), DecodeError> {
    let split = bytes.split_at_checked(BLOCK / 8 * BITS);
    let (words, left) = split.ok_or_else(|| DecodeError::new("a block is cut off"))?;
    *bytes = left;
    let mask = u64::MAX >> (64 - BITS);
    for (word, counts) in words.chunks_exact(8).zip(counts.chunks_exact_mut(64 / BITS)) {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        for (place, count) in counts.iter_mut().enumerate() {
            *count = word >> (place * BITS) & mask;
        }
    }
    Ok(())
}

fn take_byte(bytes: &mut &[u8]) -> Result<u8, DecodeError> {
    let (first, left) =
        bytes.split_first().ok_or_else(|| DecodeError::new("a block is cut off"))?;
    *bytes = left;
    Ok(*first)
}

impl DecodeError {
    pub(crate) fn new(problem: &str) -> Self {
        Self(problem.to_owned())
    }
}

/// Appends a count in zigzag LEB128.
pub(crate) fn put_count(count: u64, out: &mut Vec<u8>) {
    numbers::put(count as i64, out);
}

/// Takes what [`put_count`] wrote.
pub(crate) fn take_count(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut at = 0;
    let count =
        numbers::take(bytes, &mut at).ok_or_else(|| DecodeError::new("a count is cut off"))?;
    *bytes = &bytes[at..];
    Ok(count as u64)
}
