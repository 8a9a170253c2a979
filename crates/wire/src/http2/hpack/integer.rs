//! Integers of variable length (RFC 7541 5.1).

use super::BadBlock;

const CUT: BadBlock = BadBlock("a header block ends inside an integer");
const TOO_LARGE: BadBlock = BadBlock("an integer in a header block is too large");

/// Appends `number` with a prefix of `prefix_bits` (1 to 8), whose byte already has the bits of `first`.
#[inline]
pub(super) fn put(number: u32, prefix_bits: u8, first: u8, out: &mut Vec<u8>) {
    let most = (1u32 << prefix_bits) - 1;
    if number < most {
        return out.push(first | number as u8);
    }
    out.push(first | most as u8);
    let mut rest = number - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads an integer whose prefix is in `block[*at]` and moves `at` behind it.
///
/// # Errors
/// When the block ends inside, or the number is above 2^28, which is beyond every limit here.
#[inline]
pub(super) fn get(block: &[u8], at: &mut usize, prefix_bits: u8) -> Result<u32, BadBlock> {
    let most = (1u32 << prefix_bits) - 1;
    let Some(&first) = block.get(*at) else { return Err(CUT) };
    *at += 1;
    let prefix = u32::from(first) & most;
    if prefix < most {
        return Ok(prefix);
    }
    let mut number = most;
    for shift in [0, 7, 14, 21] {
        let Some(&byte) = block.get(*at) else { return Err(CUT) };
        *at += 1;
        number += u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(TOO_LARGE)
}
