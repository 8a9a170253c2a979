//! Eight lanes of AVX-512, with the extensions of Ice Lake and Zen 4 (VBMI, VBMI2, BITALG, GFNI).

use std::arch::x86_64::*;

use super::{AHEAD_BYTES, Vector};

/// A vector of eight words; only made where the processor has what [`available`] asks for.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

/// Returns true if the processor has every extension used here.
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512bitalg")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Wraps intrinsics that read no memory.
macro_rules! avx512 {
    ($body:expr) => {
        // SAFETY: the trait's callers promise that the processor has what `available` asks for.
        unsafe { $body }
    };
}

// The columns of the arguments in the truth table that `vpternlog` takes.
const A: i32 = 0xf0;
const B: i32 = 0xcc;
const C: i32 = 0xaa;

/// In each qword, the bytes the other way round.
const REVERSE: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = ((i & !7) + 7 - (i & 7)) as u8;
        i += 1;
    }
    order
};

/// Byte `j` of qword `q` goes to byte `q` of qword `j`.
const GATHER: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = ((i & 7) * 8 + i / 8) as u8;
        i += 1;
    }
    order
};

/// The uppermost byte of each qword, eight times.
const TOP: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = (i | 7) as u8;
        i += 1;
    }
    order
};

#[inline(always)]
unsafe fn bytes(order: &[u8; 64]) -> __m512i {
    // SAFETY: the caller vouches for AVX-512; the array has the 64 bytes that are read.
    unsafe { _mm512_loadu_si512(order.as_ptr().cast()) }
}

/// The planes of 64 bytes, one a qword.
#[inline(always)]
unsafe fn planes_of_one(address: *const u8) -> __m512i {
    // SAFETY: the caller vouches for AVX-512 and for 64 bytes at the address.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(AHEAD_BYTES).cast());
        // As a matrix of 8 x 8 bits times the identity, a qword is transposed, its rows counted from the end.
        let text = _mm512_shuffle_epi8(_mm512_loadu_si512(address.cast()), bytes(&REVERSE));
        let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
        let transposed = _mm512_gf2p8affine_epi64_epi8::<0>(identity, text);
        _mm512_permutexvar_epi8(bytes(&GATHER), transposed)
    }
}

// SAFETY: made of the instructions that `available` asks for; `planes` reads what the trait says.
unsafe impl Vector for Avx512 {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self(avx512!(_mm512_set1_epi64(word as i64)))
    }
    #[inline(always)]
    unsafe fn words(self) -> [u64; 8] {
        let mut out = [0; 8];
        // SAFETY: the array has room for the eight words, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), self.0) };
        out
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(avx512!(_mm512_and_si512(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        Self(avx512!(_mm512_or_si512(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(avx512!(_mm512_xor_si512(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(avx512!(_mm512_add_epi64(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        avx512!(_mm512_test_epi64_mask(self.0, self.0)) != 0
    }
    #[inline(always)]
    unsafe fn top(self) -> Self {
        Self(avx512!(_mm512_srli_epi64::<63>(self.0)))
    }
    #[inline(always)]
    unsafe fn shift_one(self, before: Self) -> Self {
        Self(avx512!(_mm512_shldi_epi64::<1>(self.0, before.0)))
    }
    #[inline(always)]
    unsafe fn shift_in(self, before: Self, count: u64) -> Self {
        Self(avx512!(_mm512_shldv_epi64(self.0, before.0, _mm512_set1_epi64(count as i64))))
    }
    #[inline(always)]
    unsafe fn planes(addresses: &[*const u8]) -> [Self; 8] {
        // SAFETY: the caller vouches for AVX-512 and for 64 bytes at each of the eight addresses.
        unsafe {
            let mut v = [_mm512_setzero_si512(); 8];
            for lane in 0..8 {
                v[lane] = planes_of_one(addresses[lane]);
            }
            // Eight by eight qwords, lanes against planes.
            let mut pairs = v;
            for i in 0..4 {
                pairs[2 * i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
                pairs[2 * i + 1] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
            }
            let mut fours = v;
            for odd in 0..2 {
                for half in 0..2 {
                    let (a, b) = (pairs[4 * half + odd], pairs[4 * half + 2 + odd]);
                    // Parts 0 and 2 of either, then parts 1 and 3: planes `odd` and `odd + 4`, `odd + 2` ...
                    fours[4 * half + odd] = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
                    fours[4 * half + odd + 2] = _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b);
                }
            }
            let mut out = v;
            for plane in 0..4 {
                let (a, b) = (fours[plane], fours[4 + plane]);
                out[plane] = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
                out[plane + 4] = _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b);
            }
            let [a, b, c, d, e, f, g, h] = out;
            [Self(a), Self(b), Self(c), Self(d), Self(e), Self(f), Self(g), Self(h)]
        }
    }
    #[inline(always)]
    unsafe fn count_bytes(self) -> Self {
        Self(avx512!(_mm512_popcnt_epi8(self.0)))
    }
    #[inline(always)]
    unsafe fn add_bytes(self, other: Self) -> Self {
        Self(avx512!(_mm512_add_epi8(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn sub_bytes(self, other: Self) -> Self {
        Self(avx512!(_mm512_sub_epi8(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn up<const BITS: i32>(self) -> Self {
        Self(avx512!(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(BITS))))
    }
    #[inline(always)]
    unsafe fn spread_top_byte(self) -> Self {
        Self(avx512!(_mm512_shuffle_epi8(self.0, bytes(&TOP))))
    }
    #[inline(always)]
    unsafe fn bit_of_bytes<const BIT: u32>(self) -> Self {
        Self(avx512!({
            let down = _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(BIT as i32));
            _mm512_and_si512(down, _mm512_set1_epi8(1))
        }))
    }
    #[inline(always)]
    unsafe fn at_most(self, limit: i8) -> Self {
        Self(avx512!({
            let low = _mm512_cmple_epi8_mask(self.0, _mm512_set1_epi8(limit));
            _mm512_movm_epi8(low)
        }))
    }
    #[inline(always)]
    unsafe fn or_and(self, other: Self, mask: Self) -> Self {
        Self(avx512!(_mm512_ternarylogic_epi64::<{ (A | B) & C }>(self.0, other.0, mask.0)))
    }
    #[inline(always)]
    unsafe fn xor_or(self, other: Self, more: Self) -> Self {
        Self(avx512!(_mm512_ternarylogic_epi64::<{ (A ^ B) | C }>(self.0, other.0, more.0)))
    }
    #[inline(always)]
    unsafe fn or_nor(self, a: Self, b: Self) -> Self {
        Self(avx512!(_mm512_ternarylogic_epi64::<{ A | (!(B | C) & 0xff) }>(self.0, a.0, b.0)))
    }
    #[inline(always)]
    unsafe fn and3(self, a: Self, b: Self) -> Self {
        Self(avx512!(_mm512_ternarylogic_epi64::<{ A & B & C }>(self.0, a.0, b.0)))
    }
    #[inline(always)]
    unsafe fn full_add(self, a: Self, b: Self) -> (Self, Self) {
        let sum = avx512!(_mm512_ternarylogic_epi64::<{ A ^ B ^ C }>(self.0, a.0, b.0));
        const MAJORITY: i32 = (A & B) | (A & C) | (B & C);
        let carry = avx512!(_mm512_ternarylogic_epi64::<MAJORITY>(self.0, a.0, b.0));
        (Self(sum), Self(carry))
    }
}
