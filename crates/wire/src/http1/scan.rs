//! Finding the two bytes that shape a header line, sixteen bytes at a time.
//!
//! Header lines are short: half the cost of a library's vectorised search is the call. These
//! searches are inlined, use only what every x86-64 processor has, and look for all stops of a
//! line at once. Elsewhere the same is done with words of eight bytes.

/// The place of the first line feed or NUL at or behind `from`.
#[inline]
pub(super) fn line_stop(input: &[u8], from: usize) -> Option<usize> {
    let stop = |byte| byte == b'\n' || byte == 0;
    find(input, from, |lanes| lanes.equal(b'\n') | lanes.equal(0), stop)
}

/// The place of the first byte at or behind `from` that cannot stand in a field name: a colon, a
/// blank, a control character or a byte above ASCII. Other separators are let through.
#[inline]
pub(super) fn name_stop(input: &[u8], from: usize) -> Option<usize> {
    let stop = |byte| byte == b':' || byte <= b' ' || byte >= 0x80;
    find(input, from, |lanes| lanes.equal(b':') | lanes.blank_or_high(), stop)
}

/// The first stop at or behind `from`; `stops` marks those of several bytes at once.
#[inline]
fn find(
    input: &[u8],
    from: usize,
    stops: impl Fn(Lanes) -> Marks,
    stop: impl Fn(u8) -> bool,
) -> Option<usize> {
    let mut at = from;
    let mut rest = input.get(from..)?;
    while let Some((block, behind)) = rest.split_first_chunk() {
        let marks = stops(Lanes::new(block));
        if marks != 0 {
            return Some(at + first(marks));
        }
        at += block.len();
        rest = behind;
    }
    rest.iter().position(|&byte| stop(byte)).map(|offset| at + offset)
}

#[cfg(target_arch = "x86_64")]
use sse2::{Lanes, Marks, first};

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
    };

    /// One bit a byte.
    pub(super) type Marks = u32;

    #[derive(Clone, Copy)]
    pub(super) struct Lanes(__m128i);

    impl Lanes {
        #[inline]
        pub(super) fn new(block: &[u8; 16]) -> Self {
            // SAFETY: the block has the sixteen readable bytes of the load, which may lie anywhere.
            Lanes(unsafe { _mm_loadu_si128(block.as_ptr().cast()) })
        }

        #[inline]
        pub(super) fn equal(self, byte: u8) -> Marks {
            // SAFETY: SSE2 is part of x86-64.
            unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte as i8))) as Marks }
        }

        /// Marks bytes up to 0x20 and, because the comparison is signed, those from 0x80.
        #[inline]
        pub(super) fn blank_or_high(self) -> Marks {
            // SAFETY: SSE2 is part of x86-64.
            unsafe { _mm_movemask_epi8(_mm_cmplt_epi8(self.0, _mm_set1_epi8(0x21))) as Marks }
        }
    }

    #[inline]
    pub(super) const fn first(marks: Marks) -> usize {
        marks.trailing_zeros() as usize
    }
}

#[cfg(not(target_arch = "x86_64"))]
use words::{Lanes, Marks, first};

// Compiled for the tests too, so that it is tried on every machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    /// The top bit of each byte. Marks above the lowest may be false, for a borrow runs upwards.
    pub(super) type Marks = u64;

    #[derive(Clone, Copy)]
    pub(super) struct Lanes(u64);

    /// Every byte set to one.
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    /// The top bit of every byte.
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);

    impl Lanes {
        #[inline]
        pub(super) const fn new(block: &[u8; 8]) -> Self {
            Lanes(u64::from_le_bytes(*block))
        }

        #[inline]
        pub(super) const fn equal(self, byte: u8) -> Marks {
            let differences = self.0 ^ (ONES * byte as u64);
            differences.wrapping_sub(ONES) & !differences & TOPS
        }

        #[inline]
        pub(super) const fn blank_or_high(self) -> Marks {
            ((self.0.wrapping_sub(ONES * 0x21) & !self.0) | self.0) & TOPS
        }
    }

    #[inline]
    pub(super) const fn first(marks: Marks) -> usize {
        marks.trailing_zeros() as usize / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_bytes_agree_on_every_byte_in_every_place() {
        for byte in 0..=255u8 {
            for place in 0..20 {
                for filler in [b'a', b'!', b'~', b'Z'] {
                    let mut input = [filler; 20];
                    input[place] = byte;
                    let line = (byte == b'\n' || byte == 0).then_some(place);
                    assert_eq!(line_stop(&input, 0), line, "{byte} at {place}");
                    let name = byte == b':' || byte <= b' ' || byte >= 0x80;
                    assert_eq!(name_stop(&input, 0), name.then_some(place), "{byte} at {place}");
                    assert_eq!(name_stop(&input, place + 1), None);
                }
            }
        }
    }

    #[test]
    fn the_first_of_several_stops_counts() {
        let input = b"abcdefg:h\n\x00: ";
        assert_eq!(name_stop(input, 0), Some(7));
        assert_eq!(name_stop(input, 8), Some(9));
        assert_eq!(line_stop(input, 0), Some(9));
        assert_eq!(line_stop(input, 10), Some(10));
        assert_eq!(line_stop(input, 11), None);
        assert_eq!(line_stop(input, 99), None);
    }

    #[test]
    fn words_of_eight_bytes_find_the_same() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut block = *b"ab!~Z-9_";
                block[place] = byte;
                let lanes = words::Lanes::new(&block);
                let check = |marks: words::Marks, stop: fn(u8) -> bool| {
                    let found = (marks != 0).then(|| words::first(marks));
                    assert_eq!(found, block.iter().position(|&b| stop(b)), "{byte} at {place}");
                };
                check(lanes.equal(b'\n') | lanes.equal(0), |b| b == b'\n' || b == 0);
                let marks = lanes.equal(b':') | lanes.blank_or_high();
                check(marks, |b| b == b':' || b <= b' ' || b >= 0x80);
            }
        }
    }
}
