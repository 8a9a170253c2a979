//! The static Huffman code (RFC 7541 appendix B).
//!
//! The code is canonical: symbols of the same length have consecutive codes in the order of their value, so
//! that the lengths say everything. Ten bits at once are looked up, which covers all that is usual in header
//! lines; longer codes are found by comparing with the first code of each length.

use super::BadBlock;

/// Bits of the code of each symbol. The 257th symbol, the end of the string, has 30.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The longest code, bits.
const LONGEST: usize = 30;
/// Number of bits that are looked up at once.
const FAST_BITS: u32 = 10;
/// The symbol that no string may hold.
const END: u16 = 256;

/// The code of each symbol, in its lowest bits.
const CODES: [u32; 257] = codes();
/// For the next ten bits: the symbol and, in the lowest four bits, the length of its code; 0 if it is longer.
static FAST: [u16; 1 << FAST_BITS] = fast();
/// Symbols in the order of their codes.
static ORDER: [u16; 257] = order();
/// For each length: the first code beyond it, aligned to the left of 32 bits (64 so that all of it fits).
const BEYOND: [u64; LONGEST + 1] = ends().0;
/// For each length: what to add to a code to get its place in [`ORDER`].
const SHIFT: [i64; LONGEST + 1] = ends().1;

const fn order() -> [u16; 257] {
    let mut order = [0; 257];
    let (mut place, mut length) = (0, 1);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                order[place] = symbol as u16;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    order
}

const fn codes() -> [u32; 257] {
    let order = order();
    let mut codes = [0; 257];
    let (mut place, mut code, mut length) = (0, 0u32, LENGTHS[order[0] as usize]);
    while place < 257 {
        let symbol = order[place] as usize;
        code <<= LENGTHS[symbol] - length;
        length = LENGTHS[symbol];
        codes[symbol] = code;
        code += 1;
        place += 1;
    }
    codes
}

const fn fast() -> [u16; 1 << FAST_BITS] {
    let codes = codes();
    let mut fast = [0; 1 << FAST_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol] as u32;
        if length <= FAST_BITS {
            let spare = FAST_BITS - length;
            let from = codes[symbol] << spare;
            let mut offset = 0;
            while offset < 1 << spare {
                fast[(from + offset) as usize] = (symbol as u16) << 4 | length as u16;
                offset += 1;
            }
        }
        symbol += 1;
    }
    fast
}

const fn ends() -> ([u64; LONGEST + 1], [i64; LONGEST + 1]) {
    let (order, codes) = (order(), codes());
    let (mut beyond, mut shift) = ([0; LONGEST + 1], [0; LONGEST + 1]);
    let mut place = 0;
    while place < 257 {
        let symbol = order[place] as usize;
        let length = LENGTHS[symbol] as usize;
        beyond[length] = (codes[symbol] as u64 + 1) << (32 - length);
        shift[length] = place as i64 - codes[symbol] as i64;
        place += 1;
    }
    (beyond, shift)
}

/// Length of `text` in this code, bytes.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends `text` in this code.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut pending, mut held) = (0u64, 0u32);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        pending = pending << length | u64::from(CODES[usize::from(byte)]);
        held += length;
        while held >= 8 {
            held -= 8;
            out.push((pending >> held) as u8);
        }
    }
    if held > 0 {
        // The rest is filled with ones, the beginning of the code for the end.
        out.push(((pending << (8 - held)) as u8) | (0xff >> held));
    }
}

/// Appends the text whose code is `code`; at most 1.6 times as long.
///
/// # Errors
/// When the code holds the end symbol, or is filled up with anything but up to seven ones.
#[inline]
pub(super) fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), BadBlock> {
    let mut rest = code;
    // The next bits are at the top; below those that are held there are zeros.
    let (mut window, mut held) = (0u64, 0u32);
    out.reserve(code.len() * 8 / 5 + 1);
    loop {
        if held < 32 {
            (window, held, rest) = refill(window, held, rest);
        }
        let entry = FAST[(window >> (64 - FAST_BITS)) as usize];
        let (symbol, length) = match entry & 15 {
            0 => long(window),
            length => (entry >> 4, u32::from(length)),
        };
        if length > held {
            break;
        }
        if symbol == END {
            return Err(BadBlock("a Huffman string in a header block holds the end symbol"));
        }
        out.push(symbol as u8);
        window <<= length;
        held -= length;
    }
    let ones = held < 8 && window >> (56) == 0xff & !(0xff >> held);
    if ones { Ok(()) } else { Err(BadBlock("a Huffman string in a header block ends badly")) }
}

#[inline]
fn refill(mut window: u64, mut held: u32, mut rest: &[u8]) -> (u64, u32, &[u8]) {
    if let Some((four, behind)) = rest.split_first_chunk::<4>() {
        window |= u64::from(u32::from_be_bytes(*four)) << (32 - held);
        return (window, held + 32, behind);
    }
    while let Some((&byte, behind)) = rest.split_first() {
        window |= u64::from(byte) << (56 - held);
        held += 8;
        rest = behind;
    }
    (window, held, rest)
}

/// The symbol at the front of `window` whose code is longer than ten bits, and that code's length.
#[cold]
fn long(window: u64) -> (u16, u32) {
    let top = window >> 32;
    for length in FAST_BITS as usize + 1..=LONGEST {
        if top < BEYOND[length] {
            let code = (top >> (32 - length)) as i64;
            return (ORDER[(code + SHIFT[length]) as usize], length as u32);
        }
    }
    (END, LONGEST as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_alone_and_between_others_comes_back() {
        for byte in 0..=255u8 {
            for text in [vec![byte], vec![byte; 7], vec![b'a', byte, b'0', byte, 0xff, byte]] {
                let (mut code, mut back) = (Vec::new(), Vec::new());
                encode(&text, &mut code);
                assert_eq!(code.len(), encoded_len(&text));
                decode(&code, &mut back).unwrap();
                assert_eq!(back, text);
            }
        }
    }

    #[test]
    fn the_code_is_that_of_the_appendix() {
        // Samples of appendix B, among them the first and the last of a length.
        let samples = [
            (0, 0x1ff8),
            (32, 0x14),
            (48, 0),
            (97, 3),
            (122, 0x7b),
            (255, 0x3ff_ffee),
            (92, 0x7fff0),
        ];
        for (symbol, code) in samples {
            assert_eq!(CODES[symbol], code, "{symbol}");
        }
        assert_eq!(CODES[256], 0x3fff_ffff);
    }

    #[test]
    fn bad_ends_are_refused() {
        let refused = |code: &[u8]| decode(code, &mut Vec::new()).is_err();
        // Eight ones, zeros behind the last symbol, the end symbol itself, a code that is cut.
        assert!(refused(&[0xff]));
        assert!(refused(&[0x00]));
        assert!(refused(&[0xff; 4]));
        assert!(refused(&[0xff, 0xff, 0xff, 0xf0]));
        assert!(!refused(&[]));
        assert!(!refused(&[0x07]));
        assert!(refused(&[0x07, 0xff]));
    }
}
