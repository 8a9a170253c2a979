//! Vectors for any processor: arrays of words, which compilers turn into what vectors they have.

use super::Vector;

/// `N` words.
#[derive(Clone, Copy)]
pub(crate) struct Words<const N: usize>([u64; N]);

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

impl<const N: usize> Words<N> {
    #[inline(always)]
    fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Self(self.0.map(f))
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut out = self;
        for (a, b) in out.0.iter_mut().zip(other.0) {
            *a = f(*a, b);
        }
        out
    }
}

/// Exchanges the bits of `b` under `mask` with those of `a` under `mask << shift`.
#[inline(always)]
fn exchange<const N: usize>(v: &mut [Words<N>; 8], a: usize, b: usize, shift: u32, mask: u64) {
    for lane in 0..N {
        let moved = ((v[a].0[lane] >> shift) ^ v[b].0[lane]) & mask;
        v[b].0[lane] ^= moved;
        v[a].0[lane] ^= moved << shift;
    }
}

// SAFETY: nothing here needs more than the processor's own words; `planes` reads what the trait says.
unsafe impl<const N: usize> Vector for Words<N> {
    const LANES: usize = N;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self([word; N])
    }
    #[inline(always)]
    unsafe fn words(self) -> [u64; 8] {
        let mut out = [0; 8];
        out[..N].copy_from_slice(&self.0);
        out
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) != 0
    }
    #[inline(always)]
    unsafe fn top(self) -> Self {
        self.map(|word| word >> 63)
    }
    #[inline(always)]
    unsafe fn shift_one(self, before: Self) -> Self {
        self.zip(before, |now, before| (now << 1) | (before >> 63))
    }
    #[inline(always)]
    unsafe fn shift_in(self, before: Self, count: u64) -> Self {
        if count == 0 {
            return self;
        }
        self.zip(before, |now, before| (now << count) | (before >> (64 - count)))
    }
    #[inline(always)]
    unsafe fn planes(addresses: &[*const u8]) -> [Self; 8] {
        let mut v = [Self([0; N]); 8];
        for (lane, address) in addresses.iter().enumerate().take(N) {
            for (row, words) in v.iter_mut().enumerate() {
                // SAFETY: the caller vouches for 64 bytes at each address; eight of them are read here.
                let bytes = unsafe { address.add(8 * row).cast::<[u8; 8]>().read() };
                words.0[lane] = u64::from_le_bytes(bytes);
            }
        }
        // First bytes against rows, so that byte `i` of row `q` is text byte `8 i + q`; then bits against rows.
        const BYTES: [(usize, u64); 3] =
            [(4, 0xffff_ffff), (2, 0xffff_0000_ffff), (1, 0xff_00ff_00ff_00ff)];
        for (step, mask) in BYTES {
            for row in 0..8 {
                if row & step == 0 {
                    exchange(&mut v, row, row + step, 8 * step as u32, mask);
                }
            }
        }
        const BITS: [(usize, u64); 3] =
            [(4, 0x0f0f_0f0f_0f0f_0f0f), (2, 0x3333_3333_3333_3333), (1, 0x5555_5555_5555_5555)];
        for (step, mask) in BITS {
            for row in 0..8 {
                if row & step == 0 {
                    exchange(&mut v, row, row + step, step as u32, mask);
                }
            }
        }
        v
    }
    #[inline(always)]
    unsafe fn count_bytes(self) -> Self {
        self.map(|word| {
            let pairs = word - ((word >> 1) & 0x5555_5555_5555_5555);
            let fours = (pairs & 0x3333_3333_3333_3333) + ((pairs >> 2) & 0x3333_3333_3333_3333);
            (fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
        })
    }
    #[inline(always)]
    unsafe fn add_bytes(self, other: Self) -> Self {
        self.zip(other, |a, b| ((a & !HIGHS) + (b & !HIGHS)) ^ ((a ^ b) & HIGHS))
    }
    #[inline(always)]
    unsafe fn sub_bytes(self, other: Self) -> Self {
        self.zip(other, |a, b| ((a | HIGHS) - (b & !HIGHS)) ^ ((a ^ !b) & HIGHS))
    }
    #[inline(always)]
    unsafe fn up<const BITS: i32>(self) -> Self {
        self.map(|word| word << BITS)
    }
    #[inline(always)]
    unsafe fn spread_top_byte(self) -> Self {
        self.map(|word| (word >> 56).wrapping_mul(ONES))
    }
    #[inline(always)]
    unsafe fn bit_of_bytes<const BIT: u32>(self) -> Self {
        self.map(|word| (word >> BIT) & ONES)
    }
    #[inline(always)]
    unsafe fn at_most(self, limit: i8) -> Self {
        // A byte `b` is at most `limit` where its sign is set, or where `128 + limit - b` keeps its eighth bit.
        let base = (128 + limit as u64) * ONES;
        self.map(|word| ((((base - (word & !HIGHS)) | word) & HIGHS) >> 7) * 255)
    }
}
