//! Vectors of 64-bit words, and the few operations that the kernels are made of.
//!
//! A word holds one bit for each of 64 consecutive bytes of text, and the lanes of a vector are different
//! streams of text, so nothing ever moves from one lane to another.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod portable;

/// The bytes of text that a word stands for, and the bits of a word.
pub(crate) const BLOCK: usize = 64;

/// Distance at which a stream is prefetched: the processor's own prefetching restarts on every page.
#[cfg(target_arch = "x86_64")]
pub(crate) const AHEAD_BYTES: usize = 512;

/// One vector of 64-bit lanes.
///
/// Kernels use plain loops over indices, and no closures or iterators: what the compiler does not inline is
/// compiled without the instructions that the vectors are made of.
///
/// # Safety
///
/// Every function may use the instructions its implementation is named for: a caller makes sure that the
/// processor has them. `planes` reads [`BLOCK`] bytes at each of its addresses.
pub(crate) unsafe trait Vector: Copy {
    /// Number of lanes: at most 8.
    const LANES: usize;

    /// The same word in every lane.
    unsafe fn splat(word: u64) -> Self;
    /// The words, lane by lane; those beyond [`LANES`](Self::LANES) are zero.
    unsafe fn words(self) -> [u64; 8];
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// Returns true if any bit of any lane is set.
    unsafe fn any(self) -> bool;
    /// The uppermost bit of each lane as a number.
    unsafe fn top(self) -> Self;
    /// Each bit one place up; into the lowest comes the uppermost bit of `before`.
    unsafe fn shift_one(self, before: Self) -> Self;
    /// The same by `count` places, at most 63.
    unsafe fn shift_in(self, before: Self, count: u64) -> Self;
    /// The eight bit planes of the 64 bytes at each address: bit `i` of lane `l` of plane `b` is bit `b` of
    /// byte `i` at `addresses[l]`.
    unsafe fn planes(addresses: &[*const u8]) -> [Self; 8];
    /// Number of bits that are set in each byte.
    unsafe fn count_bytes(self) -> Self;
    /// Sum and difference of bytes, without carries between them.
    unsafe fn add_bytes(self, other: Self) -> Self;
    unsafe fn sub_bytes(self, other: Self) -> Self;
    /// The words shifted up by 8, 16 or 32 bits.
    unsafe fn up<const BITS: i32>(self) -> Self;
    /// The uppermost byte of each lane in all of its bytes.
    unsafe fn spread_top_byte(self) -> Self;
    /// Bit `BIT` of each byte, as the number 0 or 1.
    unsafe fn bit_of_bytes<const BIT: u32>(self) -> Self;
    /// All bits set in those bytes that, as signed numbers, are at most `limit` (from 0 to 64).
    unsafe fn at_most(self, limit: i8) -> Self;

    /// `!self`
    #[inline(always)]
    unsafe fn not(self) -> Self {
        // SAFETY: the caller's promise covers the operations this one is made of.
        unsafe { self.xor(Self::splat(u64::MAX)) }
    }
    /// `(self | other) & mask`
    #[inline(always)]
    unsafe fn or_and(self, other: Self, mask: Self) -> Self {
        // SAFETY: as above.
        unsafe { self.or(other).and(mask) }
    }
    /// `(self ^ other) | more`
    #[inline(always)]
    unsafe fn xor_or(self, other: Self, more: Self) -> Self {
        // SAFETY: as above.
        unsafe { self.xor(other).or(more) }
    }
    /// `self | !(a | b)`
    #[inline(always)]
    unsafe fn or_nor(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { self.or(a.or(b).not()) }
    }
    /// `self & a & b`
    #[inline(always)]
    unsafe fn and3(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { self.and(a).and(b) }
    }
    /// Sum and carry of three bits.
    #[inline(always)]
    unsafe fn full_add(self, a: Self, b: Self) -> (Self, Self) {
        // SAFETY: as above.
        unsafe {
            let half = self.xor(a);
            (half.xor(b), self.and(a).or(half.and(b)))
        }
    }
}
