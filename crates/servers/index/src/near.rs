//! Words within a few edits of a word, as a machine of many states at a time.
//!
//! For each number of edits a word of memory says how many characters of the wanted word may have been passed with at most
//! as many edits (Wu and Manber 1992). Only a table of the position of each character is built, so that a query
//! costs what its walk over the dictionary costs. A step takes a few operations for each edit.

mod lanes;

use super::query::MAX_AUTOMATON_EDITS;
pub(crate) use lanes::{FAR, LANES, Lanes};

/// One more than the most edits.
const ROWS: usize = MAX_AUTOMATON_EDITS as usize + 1;

/// The longest word, in characters: behind the last one there is a place, too.
pub(crate) const MAX_LETTERS: usize = 63;

/// A word, and how far from it others may be.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    /// Positions of each ASCII character in the word, a bit for each place.
    ascii: [u64; 128],
    /// The same of other characters that are in it.
    others: Vec<(u32, u64)>,
    letters: usize,
    edits: usize,
    /// Swapping two neighbours is one edit.
    transpositions: bool,
}

/// Position of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bit `i` of entry `e`: `i` characters of the word are passed with at most `e` edits.
    passed: [u64; ROWS],
    /// The same in front of two neighbours of which the second has come and the first is to follow.
    swapping: [u64; ROWS],
    /// The bits so far of a character of several bytes, and how many bytes it lacks.
    letter: u32,
    lacks: u8,
}

impl Near {
    /// `None` for words and distances that are too long.
    pub(crate) fn new(word: &str, edits: u64, transpositions: bool) -> Option<Self> {
        let edits = usize::try_from(edits).ok().filter(|edits| *edits < ROWS)?;
        let (mut ascii, mut others) = ([0; 128], Vec::<(u32, u64)>::new());
        let mut letters = 0;
        for letter in word.chars() {
            let (number, here) = (u32::from(letter), 1_u64 << letters);
            match ascii.get_mut(number as usize) {
                Some(places) => *places |= here,
                None => match others.iter_mut().find(|(other, _)| *other == number) {
                    Some((_, places)) => *places |= here,
                    None => others.push((number, here)),
                },
            }
            letters += 1;
            if letters > MAX_LETTERS {
                return None;
            }
        }
        Some(Self { ascii, others, letters, edits, transpositions })
    }

    /// In front of the first character: as many of the word's are passed as may be left out.
    pub(crate) fn start(&self) -> Place {
        let mut passed = [0; ROWS];
        for (edits, passed) in passed.iter_mut().enumerate().take(self.edits + 1) {
            *passed = ((2 << edits) - 1) & self.places();
        }
        Place { passed, swapping: [0; ROWS], letter: 0, lacks: 0 }
    }

    /// All places, that behind the last character included.
    fn places(&self) -> u64 {
        u64::MAX >> (63 - self.letters)
    }

    /// Goes on by a byte of UTF-8.
    pub(crate) fn next(&self, place: &Place, byte: u8) -> Place {
        let mut next = *place;
        match byte {
            0..0x80 => {
                self.step(&mut next, self.ascii[usize::from(byte)]);
                return next;
            }
            0x80..0xc0 => {
                next.letter = next.letter << 6 | u32::from(byte & 0x3f);
                next.lacks = next.lacks.saturating_sub(1);
            }
            0xc0..0xe0 => (next.letter, next.lacks) = (u32::from(byte & 0x1f), 1),
            0xe0..0xf0 => (next.letter, next.lacks) = (u32::from(byte & 0x0f), 2),
            0xf0.. => (next.letter, next.lacks) = (u32::from(byte & 0x07), 3),
        }
        if next.lacks == 0 {
            let other = self.others.iter().find(|(other, _)| *other == next.letter);
            next.letter = 0;
            self.step(&mut next, other.map_or(0, |(_, places)| *places));
        }
        next
    }

    /// Goes on by a character that stands at these places of the word.
    fn step(&self, place: &mut Place, equal: u64) {
        let all = self.places();
        let mut before = place.passed[0];
        let mut now = (before & equal) << 1;
        place.passed[0] = now & all;
        for edits in 1..=self.edits {
            let own = place.passed[edits];
            // Equal, or in the text only, or replaced, or in the word only.
            now = (own & equal) << 1 | before | (before | now) << 1;
            if self.transpositions {
                now |= (place.swapping[edits] & equal) << 2;
                place.swapping[edits] = before & equal >> 1;
            }
            now &= all;
            place.passed[edits] = now;
            before = own;
        }
    }

    /// Returns true if a word that goes on from here may be near.
    pub(crate) fn can_match(&self, place: &Place) -> bool {
        place.passed[self.edits] != 0
    }

    /// Returns true if a word that ends here is near.
    pub(crate) fn is_match(&self, place: &Place) -> bool {
        place.lacks == 0 && place.passed[self.edits] >> self.letters & 1 == 1
    }

    /// Returns the number of edits to a word that ends here, if it is near.
    pub(crate) fn edits_at(&self, place: &Place) -> Option<u8> {
        let behind = |edits: &usize| place.passed[*edits] >> self.letters & 1 == 1;
        (0..=self.edits).find(behind).filter(|_| place.lacks == 0).map(|edits| edits as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::builder;
    use levenshtein_automata::Distance;
    use proptest::prelude::*;

    fn letter() -> impl Strategy<Value = char> {
        prop_oneof![4 => Just('a'), 4 => Just('b'), 2 => Just('c'), 1 => Just('é'), 1 => Just('語'), 1 => Just('😀')]
    }

    fn word(most: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(letter(), 0..most).prop_map(|letters| letters.into_iter().collect())
    }

    /// Both ways to walk give the same distances, and give up words no sooner than is right.
    fn check(wanted: &str, other: &str, edits: u64, transpositions: bool) {
        let near = Near::new(wanted, edits, transpositions).unwrap();
        let table = builder(edits, transpositions).unwrap().build_dfa(wanted);
        let mut place = near.start();
        for byte in other.bytes() {
            place = near.next(&place, byte);
        }
        let expected = match table.eval(other) {
            Distance::Exact(edits) => Some(edits),
            Distance::AtLeast(_) => None,
        };
        assert_eq!(near.edits_at(&place), expected, "{wanted} {other} {edits} {transpositions}");
        assert_eq!(near.is_match(&place), expected.is_some());
        assert!(expected.is_none() || near.can_match(&place));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn distances_are_those_of_the_tables(
            wanted in word(9),
            other in word(10),
            edits in 0..3_u64,
            transpositions in any::<bool>(),
        ) {
            check(&wanted, &other, edits, transpositions);
        }

        #[test]
        fn also_the_larger_ones(wanted in word(12), other in word(12), edits in 3..5_u64) {
            check(&wanted, &other, edits, false);
        }
    }

    #[test]
    fn words_have_63_characters_at_most() {
        let long = "x".repeat(MAX_LETTERS);
        check(&long, &"x".repeat(61), 2, true);
        check(&long, &"x".repeat(65), 2, false);
        check(&long, &"x".repeat(66), 2, false);
        assert!(Near::new(&"x".repeat(MAX_LETTERS + 1), 2, true).is_none());
        assert!(Near::new("x", MAX_AUTOMATON_EDITS + 1, true).is_none());
    }
}
