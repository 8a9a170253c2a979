//! Calls as a server reads them.

use super::kind::{DecodeError, Kind};
use super::scan::Scan;
use super::value::Value;
use thiserror::Error;

/// A message that is no call.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// The first byte is none of the versions 0, 1 and 2. The text is VoltDB's own.
    #[error("Unknown ProcedureInvocationType {0}")]
    Version(i8),
    /// The bytes behind it are not what that version has there.
    #[error("the call cannot be read: {0}")]
    Bytes(#[from] DecodeError),
}

/// A call of a procedure, in the bytes it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The form it came in: 0, 1 or 2.
    pub version: i8,
    /// The name of the procedure.
    pub procedure: &'a str,
    /// The caller's name for this call, to be sent back. Nothing says that it is unique.
    pub handle: i64,
    /// Longest time that a batch of statements may take, ms; 0 is without limit.
    pub timeout_ms: Option<i32>,
    /// True if the procedure is to run once at each partition.
    pub all_partitions: bool,
    /// The partition that it is meant for.
    pub partition: Option<i32>,
    /// True if it is one of a batch that is loaded.
    pub is_batch: bool,
    /// From 1, the most urgent, to 8.
    pub priority: Option<i8>,
    /// Time that the caller waits, us.
    pub request_timeout_us: Option<i32>,
    params: Params<'a>,
}

impl<'a> Call<'a> {
    /// Reads a call from a message, its length not included. Parameters are read as they are asked for.
    ///
    /// # Errors
    /// A version that is not known, or bytes that end too soon.
    #[inline]
    pub fn read(body: &'a [u8]) -> Result<Self, CallError> {
        let mut scan = Scan::new(body);
        let version = scan.i8()?;
        if !(0..=2).contains(&version) {
            return Err(CallError::Version(version));
        }
        let mut timeout_ms = None;
        if version == 1 && scan.i8()? >= 0 {
            timeout_ms = Some(scan.i32()?);
        }
        let (procedure, handle) = (scan.some_text()?, scan.i64()?);
        let mut call = Self {
            version,
            procedure,
            handle,
            timeout_ms,
            all_partitions: false,
            partition: None,
            is_batch: false,
            priority: None,
            request_timeout_us: None,
            params: Params { scan, left: 0 },
        };
        if version == 2 {
            for _ in 0..scan.i8()? as u8 {
                call.extend(&mut scan)?;
            }
        }
        let count = scan.count()?;
        call.params = Params { scan, left: count };
        Ok(call)
    }

    /// Reads an extension; those of unknown types are passed over.
    fn extend(&mut self, scan: &mut Scan<'a>) -> Result<(), DecodeError> {
        let (kind, size) = (scan.i8()?, scan.i8()?);
        let bytes = match size {
            0 => 0,
            1..=30 => 1usize << (size - 1),
            _ => return Err(DecodeError::Length(size.into())),
        };
        let mut payload = Scan::new(scan.take(bytes)?);
        match (kind, bytes) {
            (1, 4) => self.timeout_ms = Some(payload.i32()?),
            (2, 0) => self.all_partitions = true,
            (3, 4) => self.partition = Some(payload.i32()?),
            (4, 0) => self.is_batch = true,
            (5, 1) => self.priority = Some(payload.i8()?),
            (6, 4) => self.request_timeout_us = Some(payload.i32()?),
            (1..=6, _) => return Err(DecodeError::Extension(kind)),
            _ => {}
        }
        Ok(())
    }

    /// Its parameters.
    #[inline]
    #[must_use]
    pub const fn params(&self) -> Params<'a> {
        self.params
    }
}

/// The parameters of a call, with the type of each: a null keeps the type it was sent with. Ends behind the
/// first that cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    scan: Scan<'a>,
    left: u16,
}

impl PartialEq for Params<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.left, self.scan.rest()) == (other.left, other.scan.rest())
    }
}

impl Eq for Params<'_> {}

impl Params<'_> {
    /// Number of them to come.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.left as usize
    }

    /// Returns true if there are none to come.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = Result<(Kind, Value<'a>), DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut read = || {
            let kind = self.scan.kind()?;
            Ok((kind, Value::read(kind, &mut self.scan)?))
        };
        let param = read();
        if param.is_err() {
            self.left = 0;
        }
        Some(param)
    }
}
