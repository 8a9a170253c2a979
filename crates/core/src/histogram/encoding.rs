//! HdrHistogram's V2 form, written from the cells in use.

use super::cells::{Cells, LAST};
use super::numbers::{put, take};
use super::{DIGITS, LARGEST_NS, SMALLEST_NS};
use flate2::read::ZlibDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Read as _;

const COOKIE: u32 = 0x1c84_9303 | 0x10;
const DEFLATED_COOKIE: u32 = 0x1c84_9304 | 0x10;
/// The head of zlib's form, without a dictionary, for data that is stored.
const ZLIB_HEAD: [u8; 2] = [0x78, 0x01];
/// Most bytes of a block that is stored.
const STORED_MAX: usize = u16::MAX as usize;

/// Bytes of the V2 form before its counts.
const HEAD: usize = 40;
/// Most bytes of the V2 form: no count takes more than nine.
const V2_MAX: usize = HEAD + 9 * (LAST + 1);

/// Memory that one histogram after another is unpacked in.
struct Unpacking {
    inflate: Decompress,
    out: Vec<u8>,
}

thread_local! {
    static UNPACKING: RefCell<Unpacking> =
        RefCell::new(Unpacking { inflate: Decompress::new(true), out: vec![0; V2_MAX] });
}

/// Adds the counts of a deflated V2 form. Returns `None` for a histogram of other bounds, before any of them, and an error for one
/// that is damaged.
pub(super) fn read(cells: &mut Cells, bytes: &[u8]) -> Option<Result<(), &'static str>> {
    let (head, packed) = bytes.split_at_checked(8)?;
    let length = u32::from_be_bytes(head[4..].try_into().ok()?) as usize;
    if head[..4] != DEFLATED_COOKIE.to_be_bytes() {
        return None;
    }
    // The library would read on without the checksum.
    if length > packed.len() {
        return Some(Err("the histogram is cut off"));
    }
    UNPACKING.with_borrow_mut(|Unpacking { inflate, out }| {
        inflate.reset(true);
        let ended = inflate.decompress(&packed[..length], out, FlushDecompress::Finish);
        let unpacked = usize::try_from(inflate.total_out()).ok()?;
        if !matches!(ended, Ok(Status::StreamEnd)) {
            return None;
        }
        let (head, counts) = out[..unpacked].split_at_checked(HEAD)?;
        let length = u32::from_be_bytes(head[4..8].try_into().ok()?) as usize;
        (head[..4] == COOKIE.to_be_bytes() && head[8..] == bounds() && length <= counts.len())
            .then(|| cells.add_v2(&counts[..length]))
    })
}

/// Most bytes of an unpacked histogram: the largest that HdrHistogram can make have some millions of cells.
const FOREIGN_MAX: u64 = 64_000_000;

/// Unpacks a histogram of other bounds, and checks the length of its counts: the library takes memory for as many as the
/// histogram claims, up to 4 GB for a text of 60 characters.
pub(super) fn sound(bytes: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    let cut = "the histogram is cut off";
    let (head, packed) = bytes.split_at_checked(8).ok_or(cut)?;
    let is_packed = head[..4] == DEFLATED_COOKIE.to_be_bytes();
    let bytes = if is_packed {
        let mut unpacked = Vec::new();
        let mut reader = ZlibDecoder::new(packed).take(FOREIGN_MAX);
        // An error behind the counts does not matter: they are checked below.
        let _ = reader.read_to_end(&mut unpacked);
        Cow::Owned(unpacked)
    } else {
        Cow::Borrowed(bytes)
    };
    let (head, counts) = bytes.split_at_checked(HEAD).ok_or(cut)?;
    if head[..4] != COOKIE.to_be_bytes() {
        return Err("not a histogram of HdrHistogram's V2 form");
    }
    let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let counts = counts.get(..length).ok_or(cut)?;
    // The library negates this number, which ends a program that is built with overflow checks.
    let mut at = 0;
    while let Some(number) = take(counts, &mut at) {
        if number == i64::MIN {
            return Err("the histogram has a count that cannot be");
        }
    }
    Ok(bytes)
}

/// The head of the V2 form behind its length: an unused offset, digits, bounds, and a ratio of 1.
fn bounds() -> [u8; HEAD - 8] {
    let mut out = [0; HEAD - 8];
    out[4..8].copy_from_slice(&u32::from(DIGITS).to_be_bytes());
    out[8..16].copy_from_slice(&SMALLEST_NS.to_be_bytes());
    out[16..24].copy_from_slice(&LARGEST_NS.to_be_bytes());
    out[24..].copy_from_slice(&1f64.to_be_bytes());
    out
}

/// The V2 form, not deflated.
fn v2(cells: &Cells) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend(COOKIE.to_be_bytes());
    // The length of the counts, an offset that is not used, and the digits.
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
    // The sums of 5,552 bytes fit into 32 bits; then they are reduced.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_cannot_be_negated_is_refused() {
        let mut bytes = v2(&Cells::new());
        bytes.truncate(HEAD);
        bytes[4..8].copy_from_slice(&9u32.to_be_bytes());
        bytes.extend([0xff; 9]);
        assert_eq!(sound(&bytes), Err("the histogram has a count that cannot be"));
        // One below it is a run of empty cells that no histogram has, and the library says so.
        bytes[HEAD] = 0xfd;
        assert!(sound(&bytes).is_ok());
    }
}
