//! Finding the end of a request's body. The targets do not read bodies, so bytes are counted and
//! dropped: a body of any size takes no memory.

use super::refusal::{HEAD_BYTES_MAX, Refusal};

/// The unread remainder of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes are still to come.
    Sized(u64),
    /// A chunked body, at this point of its grammar.
    Chunked(Chunk),
}

/// State of a chunked body. `spent` counts bytes of extensions or trailers against their limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size { value: u64, digits: u8 },
    Extension { value: u64, spent: u32 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataReturn,
    DataEnd,
    TrailerStart { spent: u32 },
    Trailer { spent: u32 },
    LastEnd,
    Done,
}

impl Body {
    /// A body of `length` bytes; 0 is no body.
    pub(crate) fn sized(length: u64) -> Self {
        Self::Sized(length)
    }

    /// A chunked body of which nothing was read.
    pub(crate) fn chunked() -> Self {
        Self::Chunked(Chunk::Size { value: 0, digits: 0 })
    }

    /// Returns true if the body has been read whole.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Sized(0) | Self::Chunked(Chunk::Done))
    }

    /// Takes what belongs to the body from the start of `data` and says how many bytes that were.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] when the chunks break the grammar or its limits: 16 hexadecimal
    /// digits for a size, 64 KiB for the extensions of a chunk and for all trailers.
    pub(crate) fn take(&mut self, data: &[u8]) -> Result<usize, Refusal> {
        match self {
            Self::Sized(left) => {
                let taken = (*left).min(data.len() as u64);
                *left -= taken;
                Ok(taken as usize)
            }
            Self::Chunked(chunk) => {
                let mut at = 0;
                while at < data.len() && *chunk != Chunk::Done {
                    if let Chunk::Data { left } = chunk {
                        let taken = (*left).min((data.len() - at) as u64);
                        at += taken as usize;
                        *left -= taken;
                        if *left == 0 {
                            *chunk = Chunk::DataReturn;
                        }
                    } else {
                        *chunk = chunk.after(data[at])?;
                        at += 1;
                    }
                }
                Ok(at)
            }
        }
    }
}

impl Chunk {
    /// The state after one byte that is not chunk data.
    fn after(self, byte: u8) -> Result<Self, Refusal> {
        let within = |spent: u32| match spent {
            spent if (spent as usize) < HEAD_BYTES_MAX => Ok(spent + 1),
            _ => Err(Refusal::Malformed),
        };
        Ok(match (self, byte) {
            (Self::Size { value, digits }, _) if byte.is_ascii_hexdigit() && digits < 16 => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { value, digits: 1.. }, b'\r') => Self::SizeEnd { value },
            (Self::Size { value, digits: 1.. }, b';' | b' ' | b'\t') => {
                Self::Extension { value, spent: 0 }
            }
            (Self::Extension { value, .. }, b'\r') => Self::SizeEnd { value },
            (Self::Extension { value, spent }, 0x20..=0x7e | 0x80.. | b'\t') => {
                Self::Extension { value, spent: within(spent)? }
            }
            (Self::SizeEnd { value: 0 }, b'\n') => Self::TrailerStart { spent: 0 },
            (Self::SizeEnd { value }, b'\n') => Self::Data { left: value },
            (Self::DataReturn, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::TrailerStart { .. }, b'\r') => Self::LastEnd,
            (Self::Trailer { spent }, b'\n') => Self::TrailerStart { spent: within(spent)? },
            (Self::TrailerStart { spent } | Self::Trailer { spent }, b'\r' | b'\t' | 0x20..) => {
                Self::Trailer { spent: within(spent)? }
            }
            (Self::LastEnd, b'\n') => Self::Done,
            _ => return Err(Refusal::Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] =
        b"4\r\nWiki\r\n5;name=\"v\"\r\npedia\r\nA \r\n0123456789\r\n0\r\nX: y\r\n\r\n";

    #[test]
    fn a_chunked_body_ends_where_it_ends_however_it_is_cut() {
        let mut data = CHUNKED.to_vec();
        data.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        for step in 1..=data.len() {
            let mut body = Body::chunked();
            let mut at = 0;
            while !body.is_done() {
                let end = data.len().min(at + step);
                at += body.take(&data[at..end]).unwrap();
            }
            assert_eq!(at, CHUNKED.len(), "in pieces of {step} bytes");
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        let long_size = "1".repeat(17);
        let long_extension = format!("1;{}", "x".repeat(HEAD_BYTES_MAX + 1));
        for text in
            ["x\r\n", "\r\n", "4\nWiki", "4\r\nWikis\r\n", "0\r\n\n", &long_size, &long_extension]
        {
            let mut body = Body::chunked();
            assert_eq!(body.take(text.as_bytes()), Err(Refusal::Malformed), "{text:.20}");
        }
    }

    #[test]
    fn a_sized_body_leaves_the_next_request_alone() {
        let mut body = Body::sized(3);
        assert_eq!(body.take(b"ab"), Ok(2));
        assert!(!body.is_done());
        assert_eq!(body.take(b"cGET /"), Ok(1));
        assert!(body.is_done());
    }
}
