//! Content codings, undone only where a check has to look inside.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::{Encoding, Reply};

/// Reason why a body could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not what `Content-Encoding` says.
    #[error("the body is not valid {0}, as its Content-Encoding says it is")]
    Corrupt(&'static str),
    /// The decoded body would be longer than allowed (or is a decompression bomb).
    #[error("the decoded body is longer than {limit_bytes} bytes; raise the limit of the check")]
    TooLong {
        /// The limit given.
        limit_bytes: usize,
    },
    /// The body was too long to be kept whole, and a part cannot be decoded.
    #[error("the body was cut when it was kept, so it cannot be decoded; raise the kept length")]
    Truncated,
    /// A coding that plimsoll does not know.
    #[error("the body's Content-Encoding is neither gzip nor deflate; ask with Accept-Encoding")]
    Unsupported,
}

/// The body of `reply` with its content coding undone: the reply's own bytes where there is none,
/// or else `scratch`, whose former content is lost.
///
/// Never returns more than `limit_bytes`, and never makes `scratch` much longer than that.
///
/// # Errors
/// See [`DecodeError`]. An uncoded body that was cut when kept is returned as it is.
pub fn decode_body<'a>(
    reply: &Reply<'a>,
    scratch: &'a mut Vec<u8>,
    limit_bytes: usize,
) -> Result<&'a [u8], DecodeError> {
    let body = reply.body;
    if reply.encoding == Encoding::Identity || body.is_empty() {
        let fits = body.len() <= limit_bytes;
        return if fits { Ok(body) } else { Err(DecodeError::TooLong { limit_bytes }) };
    }
    if reply.truncated {
        return Err(DecodeError::Truncated);
    }
    match reply.encoding {
        Encoding::Gzip => read_all(MultiGzDecoder::new(body), "gzip", scratch, limit_bytes)?,
        Encoding::Deflate if looks_like_zlib(body) => {
            match read_all(ZlibDecoder::new(body), "deflate", scratch, limit_bytes) {
                // A bare stream may look like zlib by chance.
                Err(DecodeError::Corrupt(_)) => {
                    read_all(DeflateDecoder::new(body), "deflate", scratch, limit_bytes)?;
                }
                other => other?,
            }
        }
        Encoding::Deflate => read_all(DeflateDecoder::new(body), "deflate", scratch, limit_bytes)?,
        Encoding::Identity | Encoding::Other => return Err(DecodeError::Unsupported),
    }
    Ok(scratch)
}

/// The two bytes of a zlib header name method 8 and are a multiple of 31 (RFC 1950 2.2).
fn looks_like_zlib(body: &[u8]) -> bool {
    let [cmf, flg, ..] = *body else { return false };
    cmf & 15 == 8 && u16::from_be_bytes([cmf, flg]) % 31 == 0
}

fn read_all(
    decoder: impl Read,
    coding: &'static str,
    scratch: &mut Vec<u8>,
    limit_bytes: usize,
) -> Result<(), DecodeError> {
    scratch.clear();
    let mut bounded = decoder.take(limit_bytes as u64 + 1);
    bounded.read_to_end(scratch).map_err(|_| DecodeError::Corrupt(coding))?;
    if scratch.len() > limit_bytes {
        return Err(DecodeError::TooLong { limit_bytes });
    }
    Ok(())
}
