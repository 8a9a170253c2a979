//! Hash maps of numbers that cost a multiplication per key. The keys are phone numbers of votes: an attacker with colliding
//! keys would only slow down their own benchmark.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are made of numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies to 128 bits and folds the halves, so that high and low bits are both good.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

impl NumberHasher {
    #[inline]
    fn add(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ ODD) * u128::from(ODD.rotate_left(17) | 1);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for NumberHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word) ^ chunk.len() as u64);
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    #[inline]
    fn write_i64(&mut self, number: i64) {
        self.add(number as u64);
    }

    #[inline]
    fn write_i32(&mut self, number: i32) {
        self.add(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::NumberHasher;
    use std::hash::Hasher;

    #[test]
    fn phone_numbers_spread_over_high_and_low_bits() {
        let mut low = vec![0u32; 1024];
        let mut high = vec![0u32; 128];
        for phone in 2_120_000_000i64..2_120_100_000 {
            let mut hasher = NumberHasher::default();
            hasher.write_i64(phone);
            low[(hasher.finish() & 1023) as usize] += 1;
            high[(hasher.finish() >> 57) as usize] += 1;
        }
        let most = |counts: &[u32]| *counts.iter().max().unwrap();
        assert!(most(&low) < 180, "of 98 expected: {}", most(&low));
        assert!(most(&high) < 1000, "of 781 expected: {}", most(&high));
    }
}
