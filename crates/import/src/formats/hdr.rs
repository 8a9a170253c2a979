//! Encoded histograms: HdrHistogram's forms V0, V1 and V2, as they are or deflated, in base64.
//!
//! The library reads V2 alone. Logs of some years ago have V1, and of the first versions V0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Read;

/// Most bytes of one unpacked histogram: the largest that HdrHistogram can make have some millions of cells.
const BYTES_MAX: u64 = 64_000_000;

/// Reads the values of a histogram: `take` gets the middle of each cell in use, and its count.
///
/// # Errors
/// If it is not a histogram, or is cut.
pub fn decode(text: &str, take: &mut dyn FnMut(u64, u64)) -> Result<(), String> {
    let bytes = STANDARD
        .decode(text)
        .or_else(|_| base64::engine::general_purpose::STANDARD_NO_PAD.decode(text))
        .map_err(|error| {
            format!("the histogram is not base64 ({error}); the line is cut or damaged")
        })?;
    let mut at = Bytes { bytes: &bytes };
    let cookie = at.u32()?;
    let unpacked;
    // The lowest 4 bits name the form; the next tell the width of a count.
    match cookie & !0xf0 {
        0x1c84_9304 | 0x1c84_9302 | 0x1c84_9309 => {
            let length = at.u32()? as usize;
            let packed = at.bytes.get(..length).unwrap_or(at.bytes);
            unpacked = inflate(packed)?;
            at = Bytes { bytes: &unpacked };
            let inner = at.u32()?;
            read(inner, at, take)
        }
        _ => read(cookie, at, take),
    }
}

fn inflate(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::ZlibDecoder::new(packed).take(BYTES_MAX);
    reader.read_to_end(&mut unpacked).map_err(|error| {
        format!("the histogram cannot be unpacked ({error}); the line is cut or damaged")
    })?;
    Ok(unpacked)
}

/// The shape of a histogram, from its head.
struct Shape {
    unit_magnitude: u32,
    half_magnitude: u32,
}

impl Shape {
    fn new(digits: u32, lowest: u64) -> Result<Self, String> {
        if digits > 5 || lowest == 0 {
            return Err("the head of the histogram is damaged".to_owned());
        }
        let largest_single = 2 * 10u64.pow(digits);
        let magnitude = u64::BITS - (largest_single - 1).leading_zeros();
        Ok(Self { unit_magnitude: lowest.ilog2(), half_magnitude: magnitude.max(1) - 1 })
    }

    /// The middle of the cell with this index.
    fn middle(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_magnitude;
        let bucket = index >> self.half_magnitude;
        let (bucket, sub) = match bucket {
            0 => (0, index & (half - 1)),
            bucket => (u32::try_from(bucket - 1).ok()?, (index & (half - 1)) + half),
        };
        let shift = bucket.checked_add(self.unit_magnitude)?;
        let value = u128::from(sub) << shift.min(64);
        let middle = value + ((1u128 << shift.min(64)) >> 1);
        u64::try_from(middle).ok().filter(|_| shift < 64)
    }
}

fn read(cookie: u32, mut at: Bytes<'_>, take: &mut dyn FnMut(u64, u64)) -> Result<(), String> {
    let width = (cookie >> 4) & 0xe;
    match cookie & !0xf0 {
        0x1c84_9303 | 0x1c84_9301 => {
            let length = at.u32()? as usize;
            if at.u32()? != 0 {
                return Err("a histogram whose values were shifted cannot be read".to_owned());
            }
            let (digits, lowest) = (at.u32()?, at.u64()?);
            let (_highest, ratio) = (at.u64()?, at.u64()?);
            if f64::from_bits(ratio) != 1.0 {
                return Err("a histogram of numbers with decimals cannot be read".to_owned());
            }
            let shape = Shape::new(digits, lowest)?;
            let cells = at.bytes.get(..length).ok_or("the histogram is cut")?;
            let at = Bytes { bytes: cells };
            if cookie & !0xf0 == 0x1c84_9303 {
                packed(at, &shape, take)
            } else {
                plain(at, width, &shape, take)
            }
        }
        0x1c84_9308 => {
            let (digits, lowest) = (at.u32()?, at.u64()?);
            let (_highest, _total) = (at.u64()?, at.u64()?);
            plain(at, width, &Shape::new(digits, lowest)?, take)
        }
        0x0c72_124e | 0x0c72_124f => Err("a DoubleHistogram cannot be read".to_owned()),
        _ => Err("not an encoded histogram of HdrHistogram".to_owned()),
    }
}

/// Counts of V2: numbers of variable length, a negative one for as many empty cells.
fn packed(mut at: Bytes<'_>, shape: &Shape, take: &mut dyn FnMut(u64, u64)) -> Result<(), String> {
    let mut index = 0u64;
    while !at.bytes.is_empty() {
        let count = at.zigzag()?;
        match u64::try_from(count) {
            Ok(count) => {
                cell(index, count, shape, take)?;
                index += 1;
            }
            Err(_) => {
                index =
                    index.checked_add(count.unsigned_abs()).ok_or("the histogram is damaged")?;
            }
        }
    }
    Ok(())
}

/// Counts of V0 and V1: each of the same width.
fn plain(
    mut at: Bytes<'_>,
    width: u32,
    shape: &Shape,
    take: &mut dyn FnMut(u64, u64),
) -> Result<(), String> {
    let mut index = 0u64;
    while !at.bytes.is_empty() {
        let count = match width {
            2 => u64::from(at.u16()?),
            4 => u64::from(at.u32()?),
            8 => at.u64()?,
            _ => return Err("the width of the counts is unknown".to_owned()),
        };
        cell(index, count, shape, take)?;
        index += 1;
    }
    Ok(())
}

fn cell(
    index: u64,
    count: u64,
    shape: &Shape,
    take: &mut dyn FnMut(u64, u64),
) -> Result<(), String> {
    if count == 0 {
        return Ok(());
    }
    // A count is signed where it is written.
    let is_count = i64::try_from(count).is_ok_and(|count| count < 1 << 40);
    let middle = shape.middle(index).filter(|_| is_count).ok_or("the histogram is damaged")?;
    take(middle, count);
    Ok(())
}

/// Bytes that are read from the front, numbers with the highest byte first.
struct Bytes<'a> {
    bytes: &'a [u8],
}

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (first, rest) = self.bytes.split_first_chunk().ok_or("the histogram is cut")?;
        self.bytes = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_be_bytes)
    }

    /// A signed number of 1 to 9 bytes: 7 bits each, the ninth has 8.
    fn zigzag(&mut self) -> Result<i64, String> {
        let mut value = 0u64;
        for place in 0..9 {
            let [byte] = self.take::<1>()?;
            if place == 8 {
                value |= u64::from(byte) << 56;
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::histogram::Histogram;

    fn values(text: &str) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        decode(text, &mut |value, many| found.push((value, many))).unwrap();
        found
    }

    /// The head of a histogram from 1 with 2 digits, and its counts.
    fn head(cookie: u32, counts: &[u8]) -> Vec<u8> {
        let mut bytes = cookie.to_be_bytes().to_vec();
        bytes.extend((counts.len() as u32).to_be_bytes());
        bytes.extend(0u32.to_be_bytes());
        bytes.extend(2u32.to_be_bytes());
        bytes.extend(1u64.to_be_bytes());
        bytes.extend(3_600_000u64.to_be_bytes());
        bytes.extend(1f64.to_bits().to_be_bytes());
        bytes.extend(counts);
        bytes
    }

    #[test]
    fn what_plimsoll_encodes_is_read() {
        let mut histogram = Histogram::new();
        for (ns, many) in [(5_000_000, 3), (7_000_000, 1), (90_000_000_000, 2)] {
            histogram.record_many(ns, many);
        }
        let found = values(&histogram.encode());
        assert_eq!(found.iter().map(|(_, many)| *many).collect::<Vec<_>>(), [3, 1, 2]);
        for ((value, _), ns) in found.iter().zip([5_000_000f64, 7_000_000.0, 9e10]) {
            assert!((*value as f64 - ns).abs() < ns / 1_000.0, "{value} {ns}");
        }
        assert_eq!(values(&histogram.encode_stored()), found);
    }

    #[test]
    fn counts_of_version_1_have_a_width() {
        // With 2 digits there are 256 cells of 1, then cells of 2: index 258 is 260 to 261.
        let mut counts = vec![0u8; 259 * 4];
        counts[5 * 4 + 3] = 9;
        counts[258 * 4 + 2] = 1;
        let bytes = head(0x1c84_9301 | 0x40, &counts);
        assert_eq!(values(&STANDARD.encode(bytes)), [(5, 9), (261, 256)]);
    }

    /// Version 0 has another head, with the number of all values, and no length.
    #[test]
    fn counts_of_version_0_are_as_those_of_version_1() {
        let mut bytes = (0x1c84_9308u32 | 0x20).to_be_bytes().to_vec();
        bytes.extend(2u32.to_be_bytes());
        for number in [1u64, 3_600_000, 9] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([0; 10]);
        bytes.extend(9u16.to_be_bytes());
        assert_eq!(values(&STANDARD.encode(bytes)), [(5, 9)]);
    }

    #[test]
    fn a_count_of_version_2_skips_empty_cells() {
        // -5 empty cells: zigzag 9; then the count 9: zigzag 18.
        let bytes = head(0x1c84_9303 | 0x10, &[9, 18]);
        assert_eq!(values(&STANDARD.encode(bytes)), [(5, 9)]);
    }

    #[test]
    fn a_cut_histogram_is_an_error() {
        let whole = Histogram::new().encode();
        for end in 0..whole.len() {
            let _ = decode(&whole[..end], &mut |_, _| {});
        }
        assert!(decode("", &mut |_, _| {}).unwrap_err().contains("cut"));
        assert!(decode("HISTFAAA", &mut |_, _| {}).is_err());
    }
}
