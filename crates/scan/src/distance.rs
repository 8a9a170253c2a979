//! The distance between a pattern and its best match in a short text, one byte after the other.
//!
//! It checks what the kernels propose, and does all of the work where the text is short.

use crate::metric::{Case, Metric};

/// Finds the best distance of one pattern; made once a pattern.
#[derive(Clone, Debug)]
pub(crate) enum Checker {
    /// A bit for each byte of the pattern: `words` words for each of the 256 bytes of text.
    Edits { table: Vec<u64>, words: usize, length: usize },
    /// The pattern, and what each byte of text is compared as.
    Hamming { pattern: Vec<u8>, fold: Box<[u8; 256]> },
}

impl Checker {
    /// A checker of the pattern, which is in lower case already if case does not matter.
    pub(crate) fn new(pattern: &[u8], metric: Metric, case: Case) -> Self {
        let mut fold = Box::new([0; 256]);
        for (byte, folded) in (0..=255_u8).zip(fold.iter_mut()) {
            *folded = case.fold(byte);
        }
        match metric {
            Metric::Hamming => Self::Hamming { pattern: pattern.to_vec(), fold },
            Metric::Edits => {
                let words = pattern.len().div_ceil(64);
                let mut table = vec![0; 256 * words];
                for (at, &wanted) in pattern.iter().enumerate() {
                    for byte in (0..256).filter(|&byte| fold[byte] == wanted) {
                        table[byte * words + at / 64] |= 1_u64 << (at % 64);
                    }
                }
                Self::Edits { table, words, length: pattern.len() }
            }
        }
    }

    /// The least distance of the pattern to any substring of the text, the empty one included; looking
    /// ends as soon as it is at most `enough`. `None` when no substring has the pattern's length and only
    /// replacements count.
    pub(crate) fn best(&self, text: &[u8], enough: u32) -> Option<u32> {
        match self {
            Self::Edits { table, words: 1, length } => Some(one_word(table, *length, text, enough)),
            Self::Edits { table, words, length } => {
                Some(many_words(table, *words, *length, text, enough))
            }
            Self::Hamming { pattern, fold } => {
                let mut best = None;
                for window in text.windows(pattern.len()) {
                    let differ = window.iter().zip(pattern);
                    let count =
                        differ.filter(|(byte, want)| fold[**byte as usize] != **want).count();
                    let count = count as u32;
                    best = Some(best.map_or(count, |best: u32| best.min(count)));
                    if count <= enough {
                        break;
                    }
                }
                best
            }
        }
    }
}

/// Myers' algorithm, for patterns of up to 64 bytes.
fn one_word(table: &[u64], length: usize, text: &[u8], enough: u32) -> u32 {
    let (mut up, mut down) = (u64::MAX, 0_u64);
    let last = length - 1;
    let mut score = length as u32;
    let mut best = score;
    for &byte in text {
        if best <= enough {
            break;
        }
        let equal = table[byte as usize];
        let vertical = equal | down;
        let horizontal = ((equal & up).wrapping_add(up) ^ up) | equal;
        let right = down | !(horizontal | up);
        let left = up & horizontal;
        score = score + (right >> last & 1) as u32 - (left >> last & 1) as u32;
        best = best.min(score);
        let (right, left) = (right << 1, left << 1);
        up = left | !(vertical | right);
        down = right & vertical;
    }
    best
}

/// The same in blocks of 64 bytes of pattern; what one block's last row gains or loses goes into the next.
fn many_words(table: &[u64], words: usize, length: usize, text: &[u8], enough: u32) -> u32 {
    let mut state = vec![(u64::MAX, 0_u64); words];
    let mut score = length as u32;
    let mut best = score;
    for &byte in text {
        if best <= enough {
            break;
        }
        let equals = &table[byte as usize * words..][..words];
        let (mut plus, mut minus) = (0, 0);
        for (at, (state, &equal)) in state.iter_mut().zip(equals).enumerate() {
            let last = if at + 1 == words { (length - 1) % 64 } else { 63 };
            let (up, down) = *state;
            let vertical = equal | down;
            let equal = equal | minus;
            let horizontal = ((equal & up).wrapping_add(up) ^ up) | equal;
            let right = down | !(horizontal | up);
            let left = up & horizontal;
            let (right_in, left_in) = (right << 1 | plus, left << 1 | minus);
            *state = (left_in | !(vertical | right_in), right_in & vertical);
            plus = right >> last & 1;
            minus = left >> last & 1;
        }
        score = score + plus as u32 - minus as u32;
        best = best.min(score);
    }
    best
}
