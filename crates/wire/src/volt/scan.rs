//! Reading numbers and texts from the front of bytes.

use super::kind::{DecodeError, Kind};

/// A place in bytes that moves on as they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The unread bytes.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(DecodeError::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Cut)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.array().map(i8::from_be_bytes)
    }

    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array().map(i16::from_be_bytes)
    }

    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_be_bytes)
    }

    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.array().map(f64::from_be_bytes)
    }

    /// A count of 16 bits; a negative one is refused.
    #[inline]
    pub fn count(&mut self) -> Result<u16, DecodeError> {
        match self.i16()? {
            count @ 0.. => Ok(count as u16),
            count => Err(DecodeError::Length(count.into())),
        }
    }

    /// A type's code.
    #[inline]
    pub fn kind(&mut self) -> Result<Kind, DecodeError> {
        Kind::from_code(self.i8()?)
    }

    /// Bytes behind their length of 32 bits; `None` is null.
    #[inline]
    pub fn counted(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.i32()? {
            length @ 0.. => self.take(length as usize).map(Some),
            -1 => Ok(None),
            length => Err(DecodeError::Length(length)),
        }
    }

    /// A text behind its length; `None` is null.
    #[inline]
    pub fn text(&mut self) -> Result<Option<&'a str>, DecodeError> {
        match self.counted()? {
            Some(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_| DecodeError::Utf8),
            None => Ok(None),
        }
    }

    /// A text that is not null.
    #[inline]
    pub fn some_text(&mut self) -> Result<&'a str, DecodeError> {
        self.text()?.ok_or(DecodeError::NoText)
    }
}

/// Appends bytes behind their length, or the length of null.
///
/// Lengths above 2 GiB cannot be said; messages end long before them.
#[inline]
pub(super) fn put_counted(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes {
        Some(bytes) => {
            out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
    }
}

/// Writes into the four bytes at `at` how many bytes follow them.
#[inline]
pub(super) fn patch_length(at: usize, out: &mut [u8]) {
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}
