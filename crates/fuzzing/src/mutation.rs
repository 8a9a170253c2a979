//! Changes of an input, from a seed: fewer and simpler ones than libFuzzer's, for the suite.

use plimsoll_core::rng::Rng;

/// Bytes that mean something in many formats.
const TELLING: &[u8] = b"\r\n\0 \t:;,.()[]{}<>\"'\\/*?&=%+-#@0159aAfFeEnx\x1f\x7f\x80\xff";

fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound.max(1) as u64) as usize
}

/// Changes an input in one to four places, with bytes, words of the format, and parts of another input.
pub fn mutate(rng: &mut Rng, input: &mut Vec<u8>, other: &[u8], words: &[&str], longest: usize) {
    for _ in 0..=below(rng, 4) {
        let at = below(rng, input.len() + 1);
        let end = at + below(rng, input.len() - at + 1).min(40);
        let telling = TELLING[below(rng, TELLING.len())];
        let is_inside = at < input.len();
        match below(rng, 10) {
            0 if is_inside => input[at] ^= 1 << below(rng, 8),
            1 if is_inside => input[at] = telling,
            2 if is_inside => input[at] = rng.next_u64() as u8,
            3 => drop(input.drain(at..end)),
            4 => {
                let copy = input[at..end].to_vec();
                let to = below(rng, input.len() + 1);
                input.splice(to..to, copy);
            }
            5 => input.truncate(at.max(1)),
            6 if !words.is_empty() => {
                let word = words[below(rng, words.len())];
                input.splice(at..at, word.bytes());
            }
            7 if !words.is_empty() => {
                let word = words[below(rng, words.len())];
                input.splice(at..end, word.bytes());
            }
            8 if !other.is_empty() => {
                let from = below(rng, other.len());
                let to = from + below(rng, other.len() - from).min(100);
                input.splice(at..end, other[from..to].iter().copied());
            }
            _ => input.insert(at, telling),
        }
    }
    input.truncate(longest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_changes_an_input_in_the_same_way_and_no_input_gets_too_long() {
        let changed = |seed| {
            let (mut rng, mut input) = (Rng::new(seed), b"select * from votes".to_vec());
            for _ in 0..200 {
                mutate(&mut rng, &mut input, b"{\"put\": 1}", &["where", "limit"], 100);
                assert!(input.len() <= 100);
            }
            input
        };
        assert_eq!(changed(1), changed(1));
        assert_ne!(changed(1), changed(2));
    }
}
