//! The words of a field in the order in which they first came, each with a number.

/// Slots of the first table; a power of two.
const FIRST_SLOTS: usize = 1 << 10;
/// An odd number with its bits well spread: the golden ratio of 2^64.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Words and their numbers. Together they have less than 4 GB.
pub(super) struct Terms {
    bytes: Vec<u8>,
    /// End of each word in `bytes`; the first one starts at 0.
    ends: Vec<u32>,
    /// The hash of a word and, below, its number and 1; a place for it that is taken is followed by the next.
    slots: Vec<u64>,
}

fn hash(word: &[u8]) -> u32 {
    let mut state = word.len() as u64;
    let mut mix = |part: u64| state = (state.rotate_left(5) ^ part).wrapping_mul(SPREAD);
    let (parts, rest) = word.as_chunks::<8>();
    for part in parts {
        mix(u64::from_le_bytes(*part));
    }
    mix(rest.iter().rev().fold(0, |part, byte| part << 8 | u64::from(*byte)));
    (state ^ state >> 32) as u32
}

impl Terms {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), slots: vec![0; FIRST_SLOTS] }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + 4 * self.ends.len() + 8 * self.slots.len()
    }

    /// The word with this number.
    pub(super) fn word(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.bytes[start..self.ends[number] as usize]
    }

    /// The slot of a word, or the one that waits for it.
    fn slot(&self, word: &[u8], hash: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 || (slot >> 32) as u32 == hash && self.word(slot as u32 - 1) == word {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a word that is there.
    pub(super) fn find(&self, word: &[u8]) -> Option<u32> {
        (self.slots[self.slot(word, hash(word))] as u32).checked_sub(1)
    }

    /// The number of a word; a new one gets the next.
    pub(super) fn number(&mut self, word: &[u8]) -> u32 {
        let hash = hash(word);
        let at = self.slot(word, hash);
        if let Some(number) = (self.slots[at] as u32).checked_sub(1) {
            return number;
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len() as u32);
        self.slots[at] = u64::from(hash) << 32 | u64::from(number + 1);
        if 2 * self.ends.len() > self.slots.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let mut slots = vec![0; 2 * self.slots.len()];
        let mask = slots.len() - 1;
        for slot in self.slots.iter().filter(|slot| **slot != 0) {
            let mut at = (slot >> 32) as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = *slot;
        }
        self.slots = slots;
    }

    /// The numbers in the order of their words' bytes.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let start = |number: u32| {
            let word = self.word(number);
            let mut first = [0; 8];
            let length = word.len().min(8);
            first[..length].copy_from_slice(&word[..length]);
            (u64::from_be_bytes(first), number)
        };
        // Most words differ within their first bytes, which are compared as one number.
        let mut starts: Vec<(u64, u32)> = (0..self.len() as u32).map(start).collect();
        starts.sort_unstable_by(|(one, a), (other, b)| {
            one.cmp(other).then_with(|| self.word(*a).cmp(self.word(*b)))
        });
        starts.into_iter().map(|(_, number)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_keep_their_numbers_while_the_table_grows() {
        let mut terms = Terms::new();
        let words: Vec<String> =
            (0..10_000).map(|n| format!("{}{n}", "x".repeat(n % 20))).collect();
        for _ in 0..2 {
            for (number, word) in words.iter().enumerate() {
                assert_eq!(terms.number(word.as_bytes()) as usize, number);
            }
        }
        assert_eq!(terms.len(), words.len());
        assert_eq!(terms.find(b"x1"), Some(1));
        assert_eq!(terms.find(b"1"), None);
        assert_eq!(terms.word(0), b"0");
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_bytes(words in prop::collection::vec("[a-c\u{0}é]{0,12}", 0..60)) {
            let mut terms = Terms::new();
            for word in &words {
                terms.number(word.as_bytes());
            }
            let sorted: Vec<&[u8]> = terms.sorted().into_iter().map(|n| terms.word(n)).collect();
            let mut wanted: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(sorted, wanted);
        }
    }
}
