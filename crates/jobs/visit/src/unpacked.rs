//! Replies that come packed with gzip (RFC 1952), unpacked while they arrive.

use super::reply_error::ReplyError;
use flate2::write::MultiGzDecoder;
use std::io::Write;

/// The first byte of a packed reply; JSON never begins with it.
const PACKED: u8 = 0x1f;
/// Bytes that are unpacked at once: at most about a megabyte comes of them.
const PACKED_BYTES: usize = 1_024;

/// Takes one reply apart, whether it is packed or not.
#[derive(Default)]
pub struct Unpacked {
    begun: bool,
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
}

impl Unpacked {
    /// Makes it ready for the next reply.
    pub fn clear(&mut self) {
        (self.begun, self.decoder) = (false, None);
    }

    /// Gives the bytes of a piece to `each` as they were before they were packed, in pieces themselves: what a few bytes
    /// unpack to can be a thousand times as many. Some are held back until a later piece.
    ///
    /// # Errors
    /// When they cannot be unpacked, or the first error of `each`.
    pub fn plain(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), ReplyError>,
    ) -> Result<(), ReplyError> {
        if !self.begun && !piece.is_empty() {
            self.begun = true;
            self.decoder = (piece[0] == PACKED).then(|| MultiGzDecoder::new(Vec::new()));
        }
        let Some(decoder) = &mut self.decoder else { return each(piece) };
        for part in piece.chunks(PACKED_BYTES) {
            decoder.get_mut().clear();
            decoder.write_all(part).map_err(|error| broken(&error))?;
            each(decoder.get_ref())?;
        }
        Ok(())
    }

    /// The reply is through; what was held back.
    pub fn end(&mut self) -> Result<Vec<u8>, ReplyError> {
        let Some(mut decoder) = self.decoder.take() else { return Ok(Vec::new()) };
        decoder.get_mut().clear();
        decoder.try_finish().map_err(|_| ReplyError::Truncated)?;
        Ok(std::mem::take(decoder.get_mut()))
    }
}

fn broken(error: &std::io::Error) -> ReplyError {
    ReplyError::Form(format!("it is compressed, and cannot be decompressed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn keep(out: &mut Vec<u8>, plain: &[u8]) -> Result<(), ReplyError> {
        out.extend_from_slice(plain);
        Ok(())
    }

    #[test]
    fn a_bomb_is_unpacked_in_pieces_and_no_further_than_they_are_wanted() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![b' '; 64 << 20]).unwrap();
        let bomb = bomb.finish().unwrap();
        let (mut unpacked, mut largest, mut total) = (Unpacked::default(), 0, 0);
        let read = unpacked.plain(&bomb, |plain| {
            (largest, total) = (plain.len().max(largest), total + plain.len());
            if total > 8 << 20 { Err(ReplyError::TooLong) } else { Ok(()) }
        });
        assert_eq!(read, Err(ReplyError::TooLong));
        assert!(largest <= 2 << 20, "{largest} bytes at once");
        assert!(total <= 10 << 20, "{total} bytes of 64 MiB");
    }

    #[test]
    fn memory_for_a_piece_that_stands_for_much_is_not_kept() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&vec![0; 30 << 20]).unwrap();
        let packed = packed.finish().unwrap();
        let mut unpacked = Unpacked::default();
        let (bomb, rest) = packed.split_at(packed.len() - 20);
        for piece in [bomb, rest] {
            unpacked.plain(piece, |_| Ok(())).unwrap();
        }
        let kept = unpacked.decoder.as_ref().unwrap().get_ref().capacity();
        assert!(kept <= 4 << 20, "{kept}");
    }

    #[test]
    fn packed_replies_are_unpacked_however_they_are_cut() {
        let text: Vec<u8> = (0..200_000).map(|i| b"{\"put\":\"id:a:b::c\"}\n"[i % 20]).collect();
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&text).unwrap();
        let packed = packed.finish().unwrap();
        for size in [1, 7, 100, packed.len()] {
            let (mut unpacked, mut out) = (Unpacked::default(), Vec::new());
            for piece in packed.chunks(size) {
                unpacked.plain(piece, |plain| keep(&mut out, plain)).unwrap();
            }
            out.extend(unpacked.end().unwrap());
            assert!(out == text, "{size}: {} of {}", out.len(), text.len());
            unpacked.clear();
            for piece in packed[..packed.len() / 2].chunks(size) {
                unpacked.plain(piece, |_| Ok(())).unwrap();
            }
            assert_eq!(unpacked.end(), Err(ReplyError::Truncated));
        }
        let (mut plain, mut out) = (Unpacked::default(), Vec::new());
        plain.plain(b"{", |bytes| keep(&mut out, bytes)).unwrap();
        plain.plain(b"\x1f}", |bytes| keep(&mut out, bytes)).unwrap();
        assert_eq!((out.as_slice(), plain.end()), (&b"{\x1f}"[..], Ok(Vec::new())));
    }
}
