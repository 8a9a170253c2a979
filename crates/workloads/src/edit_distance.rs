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

/// The one of `known` that `word` was most likely meant to be: at most 2 edits away, and fewer than half
/// its length.
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

    #[test]
    fn near_misses_are_near() {
        let known = ["method", "path", "headers", "body", "class"];
        assert_eq!(near_miss("header", &known), Some("headers"));
        assert_eq!(near_miss("Bodi", &known), Some("body"));
        assert_eq!(near_miss("timeout", &known), None);
    }
}
