//! Levenshtein's distance, for near misses in error messages and for planted truth.

/// The fewest insertions, deletions and substitutions of bytes that turn `a` into `b`.
#[must_use]
pub fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &right) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// A pattern of 1 to 64 bytes, prepared to be compared with many words (Myers 1999, in Hyyrö's form
/// for the distance of whole words): a handful of operations for each byte of a word.
#[derive(Clone, Debug)]
pub struct Myers {
    equal: Box<[u64; 256]>,
    length: usize,
}

impl Myers {
    /// Prepares a pattern.
    ///
    /// # Panics
    /// When it is empty or longer than 64 bytes.
    #[must_use]
    pub fn new(pattern: &[u8]) -> Self {
        assert!((1..=64).contains(&pattern.len()), "a pattern of 1 to 64 bytes");
        let mut equal = Box::new([0; 256]);
        for (at, &byte) in pattern.iter().enumerate() {
            equal[usize::from(byte)] |= 1 << at;
        }
        Self { equal, length: pattern.len() }
    }

    /// The distance between the pattern and a word.
    #[must_use]
    pub fn distance(&self, word: &[u8]) -> usize {
        let last = 1u64 << (self.length - 1);
        let (mut plus, mut minus, mut distance) = (!0u64, 0u64, self.length);
        for &byte in word {
            let equal = self.equal[usize::from(byte)];
            let zero = (((equal & plus).wrapping_add(plus)) ^ plus) | equal | minus;
            let up = minus | !(zero | plus);
            let down = plus & zero;
            distance += usize::from(up & last != 0);
            distance -= usize::from(down & last != 0);
            // A whole word starts at the word's first byte: the row above the matrix grows by one a
            // step.
            let up = (up << 1) | 1;
            plus = (down << 1) | !(zero | up);
            minus = up & zero;
        }
        distance
    }
}

/// The one of `known` that `word` was most likely meant to be: at most 2 edits away, and fewer than
/// half its length.
#[must_use]
pub fn near_miss<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| {
            let lower = word.to_ascii_lowercase();
            (edit_distance(lower.as_bytes(), candidate.as_bytes()), *candidate)
        })
        .min()
        .filter(|(distance, candidate)| *distance <= 2 && distance * 2 < candidate.len())
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distances() {
        for (a, b, distance) in
            [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2), ("a", "a", 0)]
        {
            assert_eq!(edit_distance(a.as_bytes(), b.as_bytes()), distance, "{a} {b}");
            assert_eq!(edit_distance(b.as_bytes(), a.as_bytes()), distance, "{b} {a}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_fast_way_agrees_with_the_plain_one(a in "[a-d]{1,64}", b in "[a-e]{0,80}") {
            let fast = Myers::new(a.as_bytes()).distance(b.as_bytes());
            proptest::prop_assert_eq!(fast, edit_distance(a.as_bytes(), b.as_bytes()));
        }
    }

    #[test]
    fn near_misses_are_near() {
        let known = ["method", "path", "headers", "body", "class"];
        assert_eq!(near_miss("header", &known), Some("headers"));
        assert_eq!(near_miss("Bodi", &known), Some("body"));
        assert_eq!(near_miss("timeout", &known), None);
    }
}
