//! Gzip replies that several threads make piece by piece.
//!
//! A gzip file is one deflate stream between a head and a checksum. Deflate streams that end in a
//! synchronising flush can be put behind one another, and checksums can be combined; so each piece
//! is packed where it is made, and the order of the pieces is decided later. Costs a percent or two
//! of size against one packer over everything.

use flate2::{Compress, Compression, Crc, FlushCompress};
use hyper::header::{ACCEPT_ENCODING, HeaderMap};

/// Magic number, deflate, no name, no time, fast, Unix.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3];
/// An empty last block.
const LAST_BLOCK: [u8; 2] = [3, 0];
/// Shorter pieces are stored as they are: a packer costs more than it saves.
const MIN_PACKED_BYTES: usize = 512;
/// The least room that a packer is given.
const MIN_ROOM_BYTES: usize = 1024;
/// The longest stored block.
const MAX_STORED_BYTES: usize = 0xffff;

/// Returns true if the client takes gzip.
pub fn accepted(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        value.to_str().unwrap_or("").split(',').any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or("");
            let refused = parts
                .any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse::<f32>() == Ok(0.0)));
            !refused && (name.eq_ignore_ascii_case("gzip") || name == "*")
        })
    })
}

/// Bytes of a reply, ready to be sent, with what the checksum needs to know of them.
#[derive(Default)]
pub struct Fragment {
    /// The compressed bytes.
    pub bytes: Vec<u8>,
    crc: Option<Crc>,
}

impl Fragment {
    /// Bytes that are sent as they are.
    pub fn plain(bytes: Vec<u8>) -> Self {
        Self { bytes, crc: None }
    }

    /// Bytes packed as a part of a deflate stream.
    pub fn packed(plain: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(plain);
        let mut bytes = Vec::with_capacity(plain.len() / 3 + 64);
        if plain.len() < MIN_PACKED_BYTES || !deflate(plain, &mut bytes) {
            bytes.clear();
            store(plain, &mut bytes);
        }
        Self { bytes, crc: Some(crc) }
    }
}

/// Packs everything and ends in a synchronising flush; not so when the packer failed.
///
/// A packer that ran out of room gives what it had ready at the next call, and may leave it at that: with part
/// of the input still inside and without the flush. Only a flush that began with nothing ready and left room is
/// known to be complete.
fn deflate(plain: &[u8], out: &mut Vec<u8>) -> bool {
    let mut packer = Compress::new(Compression::fast(), false);
    let mut flush = FlushCompress::None;
    loop {
        let rest = &plain[packer.total_in() as usize..];
        let room = out.capacity();
        if packer.compress_vec(rest, out, flush).is_err() {
            return false;
        }
        let left_room = out.len() < room;
        let took_all = packer.total_in() as usize == plain.len();
        flush = match flush {
            FlushCompress::None if left_room && took_all => FlushCompress::Sync,
            FlushCompress::Sync if left_room => return true,
            _ => FlushCompress::None,
        };
        if out.capacity() - out.len() < MIN_ROOM_BYTES {
            out.reserve(out.len().max(MIN_ROOM_BYTES));
        }
    }
}

fn store(plain: &[u8], out: &mut Vec<u8>) {
    for part in plain.chunks(MAX_STORED_BYTES) {
        let length = part.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(part);
    }
}

/// Puts pieces behind one another, as they are or as one gzip file.
pub struct Joiner {
    crc: Option<Crc>,
}

impl Joiner {
    /// A reply of pieces, compressed or not.
    pub fn new(gzip: bool) -> Self {
        Self { crc: gzip.then(Crc::new) }
    }

    /// Returns true if pieces must come packed.
    pub fn packs(&self) -> bool {
        self.crc.is_some()
    }

    /// The bytes before the first piece.
    pub fn head(&self) -> &'static [u8] {
        if self.crc.is_some() { &HEAD } else { &[] }
    }

    /// Makes a piece in the form that this reply has.
    pub fn fragment(packs: bool, bytes: Vec<u8>) -> Fragment {
        if packs { Fragment::packed(&bytes) } else { Fragment::plain(bytes) }
    }

    /// Appends the next piece.
    pub fn join(&mut self, fragment: &Fragment, out: &mut Vec<u8>) {
        if let (Some(crc), Some(next)) = (&mut self.crc, &fragment.crc) {
            crc.combine(next);
        }
        out.extend_from_slice(&fragment.bytes);
    }

    /// Appends what comes after the last piece.
    pub fn finish(self, out: &mut Vec<u8>) {
        if let Some(crc) = self.crc {
            out.extend_from_slice(&LAST_BLOCK);
            out.extend_from_slice(&crc.sum().to_le_bytes());
            out.extend_from_slice(&crc.amount().to_le_bytes());
        }
    }
}

/// A whole body as one gzip file.
pub fn whole(plain: &[u8]) -> Vec<u8> {
    let mut joiner = Joiner::new(true);
    let mut out = joiner.head().to_vec();
    joiner.join(&Fragment::packed(plain), &mut out);
    joiner.finish(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    proptest! {
        #[test]
        fn pieces_make_one_file(pieces in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..40), 0usize..6000), 0..12)
        ) {
            let mut joiner = Joiner::new(true);
            let mut out = joiner.head().to_vec();
            let mut expected = Vec::new();
            for (pattern, times) in pieces {
                let plain = pattern.repeat(times.min(300_000 / pattern.len().max(1)));
                joiner.join(&Fragment::packed(&plain), &mut out);
                expected.extend_from_slice(&plain);
            }
            joiner.finish(&mut out);
            // One member: a reader that stops after the first one has everything.
            let mut decoder = GzDecoder::new(out.as_slice());
            let mut unpacked = Vec::new();
            decoder.read_to_end(&mut unpacked).unwrap();
            prop_assert_eq!(unpacked, expected);
            prop_assert!(decoder.into_inner().is_empty());
        }
    }

    /// Of some lengths the packer runs out of room when it has taken everything and packed only a part of it.
    #[test]
    fn text_of_any_length_is_whole() {
        let text: String = (0..60_000u64)
            .map(|n| format!("{:x} ", n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) >> 40))
            .collect();
        for length in (40_000..text.len() / 2).step_by(1733) {
            let from = length * 7 % (text.len() / 2);
            let plain = &text.as_bytes()[from..from + length];
            let mut unpacked = Vec::new();
            GzDecoder::new(whole(plain).as_slice()).read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == plain, "{length} bytes from {from}");
        }
    }

    #[test]
    fn clients_say_what_they_take() {
        let table = [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, identity", false),
            ("br", false),
            ("", false),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(accepted(&headers), expected, "{value}");
        }
        assert!(!accepted(&HeaderMap::new()));
    }
}
