//! Seeded random numbers that stay the same for ever.
//!
//! Records promise "same seed, same requests", so the streams must not change with a library's
//! version. The generator is xoshiro256++ by Blackman and Vigna ("Scrambled linear pseudorandom number
//! generators", 2019), seeded through splitmix64 as its authors advise.

/// The odd number by which splitmix64 counts: 2^64 divided by the golden ratio.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of splitmix64 (Steele, Lea, Flood 2014): mixes a counter into 64 well spread bits.
#[inline]
#[must_use]
pub const fn splitmix64(state: u64) -> u64 {
    let mut z = state.wrapping_add(WEYL);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed of its own for one purpose, so that one dimension can vary while the others stand still.
#[must_use]
pub fn derive_seed(seed: u64, purpose: &str) -> u64 {
    purpose.bytes().fold(splitmix64(seed), |acc, byte| splitmix64(acc ^ u64::from(byte)))
}

/// The place of `index` in a seeded order of `0..count`, without the order in memory: a Feistel network over the next power
/// of four, walked until it falls below `count` (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
///
/// Every index below `count` has a place of its own; an index that is not below `count` has itself.
#[must_use]
pub fn permuted(index: u64, count: u64, seed: u64) -> u64 {
    if index >= count || count < 2 {
        return index;
    }
    let half_bits = (u64::BITS - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half_bits) - 1;
    let mut value = index;
    // The network is a permutation, so the walk comes back below `count` after four steps on average.
    loop {
        let (mut left, mut right) = (value >> half_bits, value & mask);
        for round in 0..FEISTEL_ROUNDS {
            let mixed = splitmix64(seed ^ splitmix64(right ^ (round << 60)));
            (left, right) = (right, (left ^ mixed) & mask);
        }
        value = (left << half_bits) | right;
        if value < count {
            return value;
        }
    }
}

/// Rounds of [`permuted`]; this number also mixes small orders.
const FEISTEL_ROUNDS: u64 = 8;

/// xoshiro256++: 256 bits of state, period 2^256 - 1.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A stream that depends only on `seed`.
    #[inline]
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Written out: a closure for each word is not inlined, and a workload may make a stream a request.
        let word = |n: u64| splitmix64(seed.wrapping_add(n.wrapping_mul(WEYL)));
        let state = [word(0), word(1), word(2), word(3)];
        Self { state }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform integer in `0..bound` without bias (Lemire 2019); 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Exponential with mean 1, by inversion: `-ln(1 - u)`.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(-self.uniform()).ln_1p()
    }

    /// Shuffles a slice in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned_for_ever() {
        // splitmix64's first output for seed 0 is published with the algorithm.
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        let mut rng = Rng::new(42);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(first, vec![15021278609987233951, 5881210131331364753, 18149643915985481100]);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = Rng::new(7);
        let n = 200_000;
        let mean_uniform = (0..n).map(|_| rng.uniform()).sum::<f64>() / f64::from(n);
        let mean_exponential = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        // Five standard errors: 0.289 / sqrt(n) and 1 / sqrt(n).
        assert!((mean_uniform - 0.5).abs() < 5.0 * 0.289 / f64::from(n).sqrt());
        assert!((mean_exponential - 1.0).abs() < 5.0 / f64::from(n).sqrt());
    }

    #[test]
    fn a_seeded_order_has_every_place_once_and_mixes() {
        for count in [1u64, 2, 3, 7, 10, 16, 17, 100, 1000] {
            let mut seen: Vec<u64> = (0..count).map(|i| permuted(i, count, 5)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{count}");
        }
        assert_eq!(permuted(12, 10, 5), 12);
        // Over many seeds, the first of ten is as often at each place; five standard deviations.
        let mut at = [0u32; 10];
        (0..10_000).for_each(|seed| at[permuted(0, 10, splitmix64(seed)) as usize] += 1);
        assert!(at.iter().all(|&n| (850..1150).contains(&n)), "{at:?}");
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 7];
        for _ in 0..500 {
            seen[rng.below(7) as usize] = true;
        }
        assert!(seen.iter().all(|&s| s));
        assert_eq!(rng.below(0), 0);
    }
}
