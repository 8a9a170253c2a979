//! The first half of MurmurHash3 for x64 with 128 bits and seed 0, by Austin Appleby, who placed it in the
//! public domain.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The first 64 of the hash's 128 bits.
#[inline]
pub(super) fn murmur3_x64_128_first(bytes: &[u8]) -> u64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        h1 ^= mix_1(word(&block[..8]));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_2(word(&block[8..]));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    // Of nothing, both mixes are 0.
    h2 ^= mix_2(word(high));
    h1 ^= mix_1(word(low));
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    finish(h1).wrapping_add(finish(h2))
}

/// Up to eight bytes, the least first.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

#[inline]
const fn mix_1(word: u64) -> u64 {
    word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
const fn mix_2(word: u64) -> u64 {
    word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
const fn finish(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        for (text, first) in [
            ("", 0),
            ("hello", 0xcbd8_a7b3_41bd_9b02),
            ("hello, world", 0x342f_ac62_3a5e_bc8e),
            ("19 Jan 2038 at 3:14:07 AM", 0xb89e_5988_b737_affc),
            ("The quick brown fox jumps over the lazy dog.", 0xcd99_481f_9ee9_02c9),
        ] {
            assert_eq!(murmur3_x64_128_first(text.as_bytes()), first, "{text}");
        }
    }
}
