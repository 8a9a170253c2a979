//! HdrHistogram's V2 form, written from the cells in use.

use super::cells::Cells;
use super::{DIGITS, LARGEST_NS, SMALLEST_NS};

const COOKIE: u32 = 0x1c84_9303 | 0x10;
const DEFLATED_COOKIE: u32 = 0x1c84_9304 | 0x10;
/// The head of zlib's form, without a dictionary, for data that is stored.
const ZLIB_HEAD: [u8; 2] = [0x78, 0x01];
/// Most bytes of a block that is stored.
const STORED_MAX: usize = u16::MAX as usize;

/// The V2 form, not deflated.
fn v2(cells: &Cells) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend(COOKIE.to_be_bytes());
    // The length of the counts, an offset that nobody uses, and the digits.
    for word in [0, 0, u32::from(DIGITS)] {
        out.extend(word.to_be_bytes());
    }
    out.extend(SMALLEST_NS.to_be_bytes());
    out.extend(LARGEST_NS.to_be_bytes());
    out.extend(1f64.to_be_bytes());
    let head = out.len();
    let mut at = 0;
    for (index, count) in cells.recorded() {
        match (index - at) as i64 {
            0 => {}
            // One empty cell is its count; several are how many.
            1 => put(0, &mut out),
            empty => put(-empty, &mut out),
        }
        put(i64::try_from(count).unwrap_or(i64::MAX), &mut out);
        at = index + 1;
    }
    if at == 0 {
        // A histogram without values has one empty cell.
        put(0, &mut out);
    }
    let length = (out.len() - head) as u32;
    out[4..8].copy_from_slice(&length.to_be_bytes());
    out
}

/// A number in zigzag LEB128 of at most nine bytes.
fn put(number: i64, out: &mut Vec<u8>) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if left < 0x80 {
            return out.push(left as u8);
        }
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// The deflated V2 form whose data is stored as it is: valid for every reader, and written in no time. Counts are short
/// numbers, of which deflating saves a third at most.
pub(super) fn stored(cells: &Cells) -> Vec<u8> {
    let data = v2(cells);
    let mut out = Vec::with_capacity(data.len() + 32);
    out.extend(DEFLATED_COOKIE.to_be_bytes());
    out.extend([0; 4]);
    out.extend(ZLIB_HEAD);
    let blocks = data.len().div_ceil(STORED_MAX);
    for (number, block) in data.chunks(STORED_MAX).enumerate() {
        let length = block.len() as u16;
        out.push(u8::from(number + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend(adler32(&data).to_be_bytes());
    let length = (out.len() - 8) as u32;
    out[4..8].copy_from_slice(&length.to_be_bytes());
    out
}

/// Adler's checksum (RFC 1950).
fn adler32(data: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    // So many sums fit into 32 bits before they have to be reduced.
    for piece in data.chunks(5552) {
        for byte in piece {
            a += u32::from(*byte);
            b += a;
        }
        a %= 65_521;
        b %= 65_521;
    }
    b << 16 | a
}
