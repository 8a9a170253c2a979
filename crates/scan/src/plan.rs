//! The part of a pattern that the kernels look for, and the bits that stand for it.
//!
//! If a text contains a match of a pattern, it contains a match of every piece of the pattern with as many
//! errors. So a piece is enough to find where to look, if chance matches of it are rare. Each byte of the
//! piece is a row that costs time; the plan takes few rows, of the pattern's rarest bytes, and more when
//! too many places turn out to be nothing.

use crate::metric::{Case, Metric};
use crate::pattern::Pattern;
use std::ops::Range;

/// The most rows of a kernel: a distance is a byte with a sign.
pub(crate) const MAX_ROWS: usize = 112;

/// The same where rows are moved to the end of the piece: it fits in two blocks.
const MAX_MOVED_ROWS: usize = 60;

/// The size of tables of rows: a power of two, so that a masked index needs no check.
pub(crate) const ROWS: usize = 128;

/// The size of tables of classes.
pub(crate) const TABLE: usize = 64;

/// The class that no byte belongs to.
pub(crate) const NOWHERE: u8 = 63;

/// The size of the table of upper halves, of which there are 24, with and without the case of letters.
pub(crate) const HIGHS: usize = 32;

/// Entries of the table of bit pairs: four values of bits 0 and 1, of 2 and 3, of 4 and 5; bit 4 alone, where
/// bit 5, the case of letters, does not matter; and four values of bits 6 and 7. The rest is not used.
pub(crate) const PAIRS: usize = 32;

/// The bytes that a row of the pattern equals, as entries of the tables of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// Entries of the table of pairs, for bits 0 to 3.
    pub(crate) low: [u8; 2],
    /// Entry of the table of upper halves.
    pub(crate) high: u8,
}

/// A piece of a pattern, ready for the kernels.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) metric: Metric,
    pub(crate) distance: u32,
    /// The part of the pattern that contains it.
    pub(crate) part: Range<usize>,
    /// Start of the piece in the pattern, in bytes.
    pub(crate) offset: usize,
    /// Length.
    pub(crate) rows: usize,
    /// The class of each row; [`NOWHERE`] behind the last.
    pub(crate) row_class: [u8; ROWS],
    /// The first `class_count` count.
    pub(crate) classes: [Class; TABLE],
    pub(crate) class_count: usize,
    /// The upper halves, two entries each of the table of pairs; the first `high_count` count.
    pub(crate) highs: [[u8; 2]; HIGHS],
    pub(crate) high_count: usize,
}

impl Plan {
    /// The pieces to search first. Of disjoint parts of the pattern one has at most its share of the errors, rounded down:
    /// there are as many parts as needed to make pieces with this number of errors rare.
    pub(crate) fn all(pattern: &Pattern) -> Vec<Self> {
        let (length, errors) = (pattern.bytes.len(), pattern.distance as usize);
        let parts = (1..=length).find(|parts| {
            let room = (length / parts).min(most_rows(pattern.metric, pattern.distance));
            enough_rows(pattern.metric, errors / parts) <= room || length / parts <= room
        });
        let parts = parts.unwrap_or(1);
        let plan = |part: usize| {
            let range = part * length / parts..(part + 1) * length / parts;
            let rows = enough_rows(pattern.metric, errors / parts);
            Self::new(pattern, range, (errors / parts) as u32, rows)
        };
        (0..parts).map(plan).collect()
    }

    /// The rarest piece of `rows` rows of a part of the pattern; of fewer if there are not as many.
    pub(crate) fn new(pattern: &Pattern, part: Range<usize>, distance: u32, rows: usize) -> Self {
        let mut rows = rows.min(part.len()).min(most_rows(pattern.metric, distance));
        let mut offset = part.start + rarest(&pattern.bytes[part.clone()], rows);
        let different = |piece: &[u8]| {
            let mut seen = [false; 256];
            piece.iter().for_each(|byte| seen[usize::from(*byte)] = true);
            seen.iter().filter(|seen| **seen).count()
        };
        while different(&pattern.bytes[offset..offset + rows]) >= usize::from(NOWHERE) {
            rows -= 1;
            offset = part.start + rarest(&pattern.bytes[part.clone()], rows);
        }
        let (mut rows_classes, mut classes, mut highs) = ([NOWHERE; ROWS], Vec::new(), Vec::new());
        let piece = &pattern.bytes[offset..offset + rows];
        for (row_class, &byte) in rows_classes.iter_mut().zip(piece) {
            let either = pattern.case == Case::IgnoreAscii && byte.is_ascii_alphabetic();
            let middle = if either { 12 + (byte >> 4 & 1) } else { 8 + (byte >> 4 & 3) };
            let high = index_of(&mut highs, [middle, 14 + (byte >> 6)]);
            let class = Class { low: [byte & 3, 4 + (byte >> 2 & 3)], high };
            *row_class = index_of(&mut classes, class);
        }
        let (class_count, high_count) = (classes.len(), highs.len());
        classes.resize(TABLE, Class::default());
        highs.resize(HIGHS, [0; 2]);
        let mut plan = Self {
            metric: pattern.metric,
            distance,
            part,
            offset,
            rows,
            row_class: rows_classes,
            classes: [Class::default(); TABLE],
            class_count,
            highs: [[0; 2]; HIGHS],
            high_count,
        };
        plan.classes.copy_from_slice(&classes);
        plan.highs.copy_from_slice(&highs);
        plan
    }

    /// Approximate cost of a byte of text in a kernel, picoseconds: measured on a Zen 4.
    pub(crate) fn text_ps(&self) -> u64 {
        50 + 5 * self.rows as u64
    }

    /// A match of the piece is one of the pattern.
    pub(crate) fn is_whole(&self, pattern: &Pattern) -> bool {
        self.rows == pattern.bytes.len() && self.distance == pattern.distance
    }

    /// The same with more rows, if there are any more.
    pub(crate) fn longer(&self, pattern: &Pattern, by: usize) -> Option<Self> {
        let most = self.part.len().min(most_rows(self.metric, self.distance));
        let longer = || Self::new(pattern, self.part.clone(), self.distance, self.rows + by);
        (self.rows < most).then(longer).filter(|longer| longer.rows > self.rows)
    }

    /// The most bytes of text between the first byte of a match and its last, both counted.
    pub(crate) fn reach(&self) -> usize {
        match self.metric {
            Metric::Edits => self.rows + self.distance as usize,
            Metric::Hamming => self.rows,
        }
    }
}

/// As many rows as are likely to be enough, to begin with.
fn enough_rows(metric: Metric, distance: usize) -> usize {
    match metric {
        _ if distance == 0 => 6,
        Metric::Edits => distance.saturating_mul(3).saturating_add(5),
        Metric::Hamming => distance.saturating_mul(2).saturating_add(6),
    }
}

/// As many rows as a kernel can have.
fn most_rows(metric: Metric, distance: u32) -> usize {
    if metric == Metric::Edits && distance > 0 { MAX_ROWS } else { MAX_MOVED_ROWS }
}

/// The place of `wanted` among `all`, where it is put if it is not there yet.
fn index_of<T: PartialEq>(all: &mut Vec<T>, wanted: T) -> u8 {
    let at = all.iter().position(|one| *one == wanted).unwrap_or_else(|| {
        all.push(wanted);
        all.len() - 1
    });
    at as u8
}

/// Returns the start of the piece of `rows` bytes that is least likely in a text of English words.
fn rarest(pattern: &[u8], rows: usize) -> usize {
    let weights: Vec<u32> = pattern.iter().map(|&byte| rarity(byte)).collect();
    let mut sum: u32 = weights[..rows].iter().sum();
    let (mut best, mut at) = (sum, 0);
    for start in 1..=pattern.len() - rows {
        sum = sum + weights[start + rows - 1] - weights[start - 1];
        if sum > best {
            (best, at) = (sum, start);
        }
    }
    at
}

/// Rarity of a byte in English text: tenths of a bit, roughly.
pub(crate) fn rarity(byte: u8) -> u32 {
    /// From the most frequent letter to the rarest.
    const LETTERS: &[u8] = b"etaoinsrhdlucmfpgwybvkxjqz";
    match byte {
        b' ' => 25,
        b'a'..=b'z' => {
            let rank = LETTERS.iter().position(|&letter| letter == byte).unwrap_or(25) as u32;
            34 + rank * rank / 8
        }
        b'.' | b',' | b'-' | b'\n' => 65,
        _ => 90,
    }
}
