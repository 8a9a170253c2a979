//! Replies that come packed with gzip (RFC 1952), unpacked while they arrive.

use super::reply_error::ReplyError;
use flate2::write::MultiGzDecoder;
use std::io::Write;

/// The first byte of a packed reply; JSON never begins with it.
const PACKED: u8 = 0x1f;

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

    /// The bytes of a piece as they were before they were packed; some are held back until a later one.
    pub fn plain<'a>(&'a mut self, piece: &'a [u8]) -> Result<&'a [u8], ReplyError> {
        if !self.begun && !piece.is_empty() {
            self.begun = true;
            self.decoder = (piece[0] == PACKED).then(|| MultiGzDecoder::new(Vec::new()));
        }
        let Some(decoder) = &mut self.decoder else { return Ok(piece) };
        decoder.get_mut().clear();
        decoder.write_all(piece).map_err(|error| broken(&error))?;
        Ok(decoder.get_ref())
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

    #[test]
    fn packed_replies_are_unpacked_however_they_are_cut() {
        let text: Vec<u8> = (0..200_000).map(|i| b"{\"put\":\"id:a:b::c\"}\n"[i % 20]).collect();
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&text).unwrap();
        let packed = packed.finish().unwrap();
        for size in [1, 7, 100, packed.len()] {
            let (mut unpacked, mut out) = (Unpacked::default(), Vec::new());
            for piece in packed.chunks(size) {
                out.extend_from_slice(unpacked.plain(piece).unwrap());
            }
            out.extend(unpacked.end().unwrap());
            assert!(out == text, "{size}: {} of {}", out.len(), text.len());
            unpacked.clear();
            for piece in packed[..packed.len() / 2].chunks(size) {
                unpacked.plain(piece).unwrap();
            }
            assert_eq!(unpacked.end(), Err(ReplyError::Truncated));
        }
        let mut plain = Unpacked::default();
        assert_eq!(plain.plain(b"{").unwrap(), b"{");
        assert_eq!(plain.plain(b"\x1f}").unwrap(), b"\x1f}");
        assert_eq!(plain.end(), Ok(Vec::new()));
    }
}
