//! Chunked bodies (RFC 9112 7.1), read in pieces of any size.

use super::{BODY_TOO_LONG, Limits};
use crate::Fault;

/// Position of the reading in a chunked body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunked {
    place: Place,
    /// The chunk's size while its line is read, then the bytes of it that are still to come.
    left: u64,
    /// Bytes so far of this chunk's size line, or of all trailers: what a peer could make endless.
    line: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the first digit of a size.
    #[default]
    Size,
    /// Behind at least one digit.
    Digits,
    /// In blanks behind the size.
    Blank,
    /// In extensions, which mean nothing here.
    Extension,
    /// Behind the CR that ends a size.
    SizeEnd,
    /// In the chunk itself.
    Data,
    /// Behind the last byte of a chunk.
    DataEnd,
    /// Behind the CR after a chunk.
    DataLf,
    /// At the first byte of a trailer line, or of the empty line that ends everything.
    Trailer,
    /// Inside a trailer line.
    TrailerLine,
    /// Behind a CR at the beginning of a trailer line.
    TrailerEnd,
}

impl Chunked {
    /// Reads on from the front of `input`; gives every piece of the body to `piece` and adds the
    /// sizes of chunks that begin to `total`. Returns how many bytes were used and whether the body
    /// is complete; if it is not, all were, unless `piece` returned false: then up to its piece's end.
    ///
    /// # Errors
    /// A [`Fault::Protocol`] when the framing is broken or a limit was passed.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        limits: &Limits,
        total: &mut u64,
        mut piece: impl FnMut(&[u8]) -> bool,
    ) -> Result<(usize, bool), Fault> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            match self.place {
                Place::Data => {
                    let here = self.left.min((input.len() - at) as u64);
                    let here_bytes = here as usize;
                    let goes_on = piece(&input[at..at + here_bytes]);
                    at += here_bytes;
                    self.left -= here;
                    if self.left == 0 {
                        self.place = Place::DataEnd;
                    }
                    if goes_on {
                        continue;
                    }
                    return Ok((at, false));
                }
                Place::Extension | Place::TrailerLine => {
                    let rest = &input[at..];
                    let end = memchr::memchr(b'\n', rest);
                    let here = end.map_or(rest.len(), |lf| lf + 1);
                    at += here;
                    self.grow(here, limits)?;
                    match (end, self.place) {
                        (None, _) => {}
                        (Some(_), Place::Extension) => self.begin_chunk(limits, total)?,
                        (Some(_), _) => self.place = Place::Trailer,
                    }
                    continue;
                }
                _ => {}
            }
            at += 1;
            if self.byte(byte, limits, total)? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Takes one byte of the framing; true when it was the body's last.
    fn byte(&mut self, byte: u8, limits: &Limits, total: &mut u64) -> Result<bool, Fault> {
        match (self.place, byte) {
            (Place::Size | Place::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.grow(1, limits)?;
                if self.left >> 60 != 0 {
                    return Err(Fault::Protocol("a chunk size does not fit in 64 bits"));
                }
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                self.place = Place::Digits;
            }
            (Place::Digits | Place::Blank, b' ' | b'\t') => {
                self.grow(1, limits)?;
                self.place = Place::Blank;
            }
            (Place::Digits | Place::Blank, b';') => self.place = Place::Extension,
            (Place::Digits | Place::Blank, b'\r') => self.place = Place::SizeEnd,
            (Place::Digits | Place::Blank | Place::SizeEnd, b'\n') => {
                self.begin_chunk(limits, total)?;
            }
            (Place::DataEnd, b'\r') => self.place = Place::DataLf,
            (Place::DataEnd | Place::DataLf, b'\n') => *self = Chunked::default(),
            (Place::Trailer | Place::TrailerEnd, b'\n') => return Ok(true),
            (Place::Trailer, b'\r') => self.place = Place::TrailerEnd,
            (Place::Trailer, _) => {
                self.grow(1, limits)?;
                self.place = Place::TrailerLine;
            }
            (Place::DataEnd | Place::DataLf, _) => {
                return Err(Fault::Protocol("a chunk is longer than its size says"));
            }
            (Place::TrailerEnd, _) => {
                return Err(Fault::Protocol("a trailer line begins with a bare CR"));
            }
            _ => return Err(Fault::Protocol("a chunk does not begin with its size")),
        }
        Ok(false)
    }

    /// The size line is through: its size is known.
    fn begin_chunk(&mut self, limits: &Limits, total: &mut u64) -> Result<(), Fault> {
        self.line = 0;
        self.place = if self.left == 0 { Place::Trailer } else { Place::Data };
        match total.checked_add(self.left) {
            Some(sum) if sum <= limits.body_bytes => *total = sum,
            _ => return Err(BODY_TOO_LONG),
        }
        Ok(())
    }

    /// Counts framing bytes that a peer could go on sending for ever.
    fn grow(&mut self, bytes: usize, limits: &Limits) -> Result<(), Fault> {
        self.line += bytes;
        if self.line > limits.head_bytes {
            return Err(Fault::Protocol("a chunk's size line or the trailers exceed the limit"));
        }
        Ok(())
    }
}
