//! Many words of one length beside each other, each compared with the wanted word in a lane of its own.
//!
//! The walk is that of [`Near`], character by character; but a step is taken for all lanes at once, which the
//! processor's vectors do as fast as one. A word that is already too far continues with the others.

use super::{Near, ROWS};
use crate::query::MAX_AUTOMATON_EDITS;

/// Words beside each other.
pub(crate) const LANES: usize = 32;
/// The longest wanted word, in characters: behind the last one there is a place, too.
const MAX_LETTERS: usize = 15;
/// The distance of a word that is too far away.
pub(crate) const FAR: u8 = u8::MAX;

/// The same character of each word.
pub(crate) type Column = [u8; LANES];
/// A bit for each place of the wanted word, for each lane.
type Places = [u16; LANES];

/// A wanted word, as lanes take it.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Positions of each ASCII character in the word.
    places: [u16; 128],
    all: u16,
    letters: usize,
    edits: usize,
    transpositions: bool,
}

impl Near {
    /// The same for many words of ASCII at once, unless the wanted word is too long.
    pub(crate) fn lanes(&self) -> Option<Lanes> {
        (self.letters <= MAX_LETTERS).then(|| Lanes {
            places: self.ascii.map(|places| places as u16),
            all: self.places() as u16,
            letters: self.letters,
            edits: self.edits,
            transpositions: self.transpositions,
        })
    }
}

impl Lanes {
    /// Number of edits to each word, or [`FAR`].
    pub(crate) fn edits(&self, words: &[Column]) -> Column {
        let mut found = [FAR; LANES];
        self.walk(words, &mut found);
        found
    }

    fn walk(&self, words: &[Column], found: &mut Column) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has the instructions.
                unsafe { self.walk_avx512(words, found) };
                return;
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the instructions.
                unsafe { self.walk_avx2(words, found) };
                return;
            }
        }
        self.walk_any(words, found);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn walk_avx512(&self, words: &[Column], found: &mut Column) {
        self.walk_any(words, found);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn walk_avx2(&self, words: &[Column], found: &mut Column) {
        self.walk_any(words, found);
    }

    #[inline(always)]
    fn walk_any(&self, words: &[Column], found: &mut Column) {
        const { assert!(MAX_AUTOMATON_EDITS == 4) };
        match (self.edits, self.transpositions) {
            (0, _) => self.walk_with::<0, false>(words, found),
            (1, false) => self.walk_with::<1, false>(words, found),
            (2, false) => self.walk_with::<2, false>(words, found),
            (3, false) => self.walk_with::<3, false>(words, found),
            (_, false) => self.walk_with::<4, false>(words, found),
            (1, true) => self.walk_with::<1, true>(words, found),
            (2, true) => self.walk_with::<2, true>(words, found),
            (3, true) => self.walk_with::<3, true>(words, found),
            (_, true) => self.walk_with::<4, true>(words, found),
        }
    }

    /// The steps of [`Near`], which says what they mean.
    #[inline(always)]
    fn walk_with<const EDITS: usize, const SWAPS: bool>(
        &self,
        words: &[Column],
        found: &mut Column,
    ) {
        let mut passed: [Places; ROWS] =
            std::array::from_fn(|edits| [((2_u32 << edits) - 1) as u16 & self.all; LANES]);
        let mut swapping = [[0; LANES]; ROWS];
        for column in words {
            // A byte beyond ASCII is no character of the word; whoever puts one here looks at it elsewhere.
            let equal = column.map(|byte| self.places.get(usize::from(byte)).map_or(0, |p| *p));
            let mut before = passed[0];
            let mut now = before;
            for lane in 0..LANES {
                now[lane] = ((before[lane] & equal[lane]) << 1) & self.all;
            }
            passed[0] = now;
            for edits in 1..=EDITS {
                let own = passed[edits];
                for lane in 0..LANES {
                    let one = before[lane];
                    let mut next = (own[lane] & equal[lane]) << 1 | one | (one | now[lane]) << 1;
                    if SWAPS {
                        next |= (swapping[edits][lane] & equal[lane]) << 2;
                        swapping[edits][lane] = one & equal[lane] >> 1;
                    }
                    now[lane] = next & self.all;
                }
                passed[edits] = now;
                before = own;
            }
        }
        for edits in (0..=EDITS).rev() {
            for lane in 0..LANES {
                if passed[edits][lane] >> self.letters & 1 == 1 {
                    found[lane] = edits as u8;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::TermAutomaton;
    use proptest::prelude::*;

    /// All ways that this processor knows give what one word at a time gives.
    fn check(wanted: &str, words: &[String], edits: u64, transpositions: bool) {
        let lanes = Near::new(wanted, edits, transpositions).unwrap().lanes().unwrap();
        let automaton = TermAutomaton::similar(wanted, edits, 0, transpositions).unwrap();
        let mut columns = vec![[0; LANES]; words[0].len()];
        for (lane, word) in words.iter().enumerate() {
            for (at, byte) in word.bytes().enumerate() {
                columns[at][lane] = byte;
            }
        }
        let mut plain = [FAR; LANES];
        lanes.walk_any(&columns, &mut plain);
        let found = lanes.edits(&columns);
        for (lane, word) in words.iter().enumerate() {
            let expected = automaton.edits(word.as_bytes()).unwrap_or(FAR);
            assert_eq!(found[lane], expected, "{wanted} {word} {edits} {transpositions}");
            assert_eq!(plain[lane], expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

        #[test]
        fn lanes_find_what_single_words_find(
            wanted in "[a-cé]{0,15}",
            (length, words) in (0..20_usize).prop_flat_map(|length| {
                let word = prop::collection::vec(prop::sample::select(vec!['a', 'b', 'c', 'x']), length);
                (Just(length), prop::collection::vec(word, 1..=LANES))
            }),
            edits in 0..=MAX_AUTOMATON_EDITS,
            transpositions in any::<bool>(),
        ) {
            let words: Vec<String> = words.into_iter().map(|word| word.into_iter().collect()).collect();
            assert!(words.iter().all(|word| word.len() == length));
            check(&wanted, &words, edits, transpositions);
        }
    }

    #[test]
    fn the_longest_word_is_in_the_last_place() {
        let wanted = "abcdefghijklmno";
        let words = ["abcdefghijklmno", "abcdefghijklmon", "bacdefghijklmno", "zzzzzghijklmnop"];
        for edits in 0..=MAX_AUTOMATON_EDITS {
            check(wanted, &words.map(str::to_owned), edits, false);
            check(wanted, &words.map(str::to_owned), edits, true);
        }
        assert!(Near::new("abcdefghijklmnop", 2, true).unwrap().lanes().is_none());
    }
}
