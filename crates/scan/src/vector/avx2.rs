//! Four lanes of AVX2.

use std::arch::x86_64::*;

use super::{AHEAD_BYTES, Vector};

/// A vector of four words; only made where the processor has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

/// Returns true if the processor has AVX2, and the small extensions that came with it.
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Wraps intrinsics that need nothing but AVX2.
macro_rules! avx2 {
    ($body:expr) => {
        // SAFETY: the trait's callers promise that the processor has AVX2; no address is read.
        unsafe { $body }
    };
}

/// Sixteen bytes at `low` beside sixteen at `high`.
#[inline(always)]
unsafe fn pair(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: the caller vouches for AVX2 and for 16 bytes at each address.
    unsafe {
        let low = _mm_loadu_si128(low.cast());
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), _mm_loadu_si128(high.cast()))
    }
}

/// For 64 bytes at each of two addresses: vector `i` holds, for either address in a half of its own, the bytes
/// `8 k + 2 i` and then the bytes `8 k + 2 i + 1`, `k` from 0 to 7.
#[inline(always)]
unsafe fn by_octet(low: *const u8, high: *const u8) -> [__m256i; 4] {
    // SAFETY: the caller vouches for AVX2 and for 64 bytes at each address.
    unsafe {
        let order = _mm256_setr_epi8(
            0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12,
            5, 13, 6, 14, 7, 15,
        );
        let a = _mm256_shuffle_epi8(pair(low, high), order);
        let b = _mm256_shuffle_epi8(pair(low.add(16), high.add(16)), order);
        let c = _mm256_shuffle_epi8(pair(low.add(32), high.add(32)), order);
        let d = _mm256_shuffle_epi8(pair(low.add(48), high.add(48)), order);
        let (ab_low, ab_high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
        let (cd_low, cd_high) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
        [
            _mm256_unpacklo_epi32(ab_low, cd_low),
            _mm256_unpackhi_epi32(ab_low, cd_low),
            _mm256_unpacklo_epi32(ab_high, cd_high),
            _mm256_unpackhi_epi32(ab_high, cd_high),
        ]
    }
}

/// Exchanges the bits of `b` under `mask` with those of `a` under `mask << SHIFT`.
#[inline(always)]
unsafe fn exchange<const SHIFT: i32>(v: &mut [__m256i; 8], a: usize, b: usize, mask: i8) {
    // SAFETY: the caller vouches for AVX2.
    unsafe {
        let mask = _mm256_set1_epi8(mask);
        let moved =
            _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi64::<SHIFT>(v[a]), v[b]), mask);
        v[b] = _mm256_xor_si256(v[b], moved);
        v[a] = _mm256_xor_si256(v[a], _mm256_slli_epi64::<SHIFT>(moved));
    }
}

// SAFETY: made of AVX2 instructions, as the trait's callers expect; `planes` reads what the trait says.
unsafe impl Vector for Avx2 {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self(avx2!(_mm256_set1_epi64x(word as i64)))
    }
    #[inline(always)]
    unsafe fn words(self) -> [u64; 8] {
        let mut out = [0; 8];
        // SAFETY: the array has room for the four words, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), self.0) };
        out
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(avx2!(_mm256_and_si256(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        Self(avx2!(_mm256_or_si256(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(avx2!(_mm256_xor_si256(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(avx2!(_mm256_add_epi64(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        avx2!(_mm256_testz_si256(self.0, self.0)) == 0
    }
    #[inline(always)]
    unsafe fn top(self) -> Self {
        Self(avx2!(_mm256_srli_epi64::<63>(self.0)))
    }
    #[inline(always)]
    unsafe fn shift_one(self, before: Self) -> Self {
        Self(avx2!(_mm256_or_si256(
            _mm256_add_epi64(self.0, self.0),
            _mm256_srli_epi64::<63>(before.0),
        )))
    }
    #[inline(always)]
    unsafe fn shift_in(self, before: Self, count: u64) -> Self {
        Self(avx2!(_mm256_or_si256(
            _mm256_sll_epi64(self.0, _mm_cvtsi64_si128(count as i64)),
            _mm256_srl_epi64(before.0, _mm_cvtsi64_si128(64 - count as i64)),
        )))
    }
    #[inline(always)]
    unsafe fn planes(addresses: &[*const u8]) -> [Self; 8] {
        // SAFETY: the caller vouches for AVX2 and for 64 bytes at each of the four addresses.
        unsafe {
            for address in [addresses[0], addresses[1], addresses[2], addresses[3]] {
                _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(AHEAD_BYTES).cast());
            }
            let even = by_octet(addresses[0], addresses[2]);
            let odd = by_octet(addresses[1], addresses[3]);
            let mut v = [_mm256_setzero_si256(); 8];
            for i in 0..4 {
                v[2 * i] = _mm256_unpacklo_epi64(even[i], odd[i]);
                v[2 * i + 1] = _mm256_unpackhi_epi64(even[i], odd[i]);
            }
            exchange::<4>(&mut v, 0, 4, 0x0f);
            exchange::<4>(&mut v, 1, 5, 0x0f);
            exchange::<4>(&mut v, 2, 6, 0x0f);
            exchange::<4>(&mut v, 3, 7, 0x0f);
            exchange::<2>(&mut v, 0, 2, 0x33);
            exchange::<2>(&mut v, 1, 3, 0x33);
            exchange::<2>(&mut v, 4, 6, 0x33);
            exchange::<2>(&mut v, 5, 7, 0x33);
            exchange::<1>(&mut v, 0, 1, 0x55);
            exchange::<1>(&mut v, 2, 3, 0x55);
            exchange::<1>(&mut v, 4, 5, 0x55);
            exchange::<1>(&mut v, 6, 7, 0x55);
            let [a, b, c, d, e, f, g, h] = v;
            [Self(a), Self(b), Self(c), Self(d), Self(e), Self(f), Self(g), Self(h)]
        }
    }
    #[inline(always)]
    unsafe fn count_bytes(self) -> Self {
        Self(avx2!({
            let counts = _mm256_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3,
                2, 3, 3, 4,
            );
            let nibble = _mm256_set1_epi8(0x0f);
            let low = _mm256_and_si256(self.0, nibble);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), nibble);
            _mm256_add_epi8(_mm256_shuffle_epi8(counts, low), _mm256_shuffle_epi8(counts, high))
        }))
    }
    #[inline(always)]
    unsafe fn add_bytes(self, other: Self) -> Self {
        Self(avx2!(_mm256_add_epi8(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn sub_bytes(self, other: Self) -> Self {
        Self(avx2!(_mm256_sub_epi8(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn up<const BITS: i32>(self) -> Self {
        Self(avx2!(_mm256_slli_epi64::<BITS>(self.0)))
    }
    #[inline(always)]
    unsafe fn spread_top_byte(self) -> Self {
        Self(avx2!({
            let order = _mm256_setr_epi8(
                7, 7, 7, 7, 7, 7, 7, 7, 15, 15, 15, 15, 15, 15, 15, 15, 7, 7, 7, 7, 7, 7, 7, 7, 15,
                15, 15, 15, 15, 15, 15, 15,
            );
            _mm256_shuffle_epi8(self.0, order)
        }))
    }
    #[inline(always)]
    unsafe fn bit_of_bytes<const BIT: u32>(self) -> Self {
        Self(avx2!({
            let down = _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(BIT as i32));
            _mm256_and_si256(down, _mm256_set1_epi8(1))
        }))
    }
    #[inline(always)]
    unsafe fn at_most(self, limit: i8) -> Self {
        Self(avx2!(_mm256_cmpgt_epi8(_mm256_set1_epi8(limit + 1), self.0)))
    }
}
